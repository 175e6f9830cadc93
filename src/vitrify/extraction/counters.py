r"""Extraction of counters: networks whose answer depends on how often each letter came, not on the order.

All words up to a length are run, and some longer ones. The answer $f(n)$ after letter counts $n$ is that after most of
the words with these counts. Letter $a$ *saturates* at $s$ with *modulus* $m$ if from there on $m$ more of it change
nothing:

$$f(n) = f(n + m e_a) \quad\text{wherever } n_a \ge s \text{ and words with both counts were run.}$$

Parity has $s = 0$, $m = 2$; a counter that gets stuck at five has $s = 5$, $m = 1$; a letter that does not matter has
$s = 0$, $m = 1$. So $s + m$ states are enough for a letter, and their product for a counter. Each letter gets the least
$s + m$ for which this holds and at least one such pair of counts was run. The product of the letters is returned, as a
minimal automaton, if it gives all answers $f(n)$. Otherwise the reason is stated, and the first `MAX_SHAPES` smallest
products are compared: the one whose first mistake comes latest is returned, of several the one that is wrong on the
fewest words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from math import prod
from pathlib import Path

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification.evidence import Progress, Quantity
from vitrify.errors import InputError
from vitrify.extraction.automata import answering_after_every_letter, refuse, spec_of
from vitrify.extraction.learned import Samples, observed
from vitrify.extraction.observations import INTERRUPTED, Exhausted, Observations, SearchBudget
from vitrify.extraction.result import MIXED, Extraction, counts_of
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.weights import Weights
from vitrify.spec.automata.moore import MooreMachine

LONGER, MAX_LONGER = 1024, 64  # words longer than those that are all run, and their length
MAX_SHAPES = 1 << 12  # counters that are compared where the letters do not fit one by one
MAX_PRODUCT = 1 << 14  # states of a counter before it is minimized
METHOD = "fitted to the answers by letter counts"
Shape = tuple[tuple[int, int], ...]  # of each letter: the count at which it saturates, and the modulus beyond


@dataclass(frozen=True)
class LetterCounts:
    """Answers by letter counts: `votes[i, j]` words with the counts `vectors[i]` have the answer `codes[j]`.

    The smallest counts come first; those of the empty word are left out where its answer does not matter.
    """

    vectors: Ints  # [vector, letter]
    codes: Ints
    votes: Ints  # [vector, code]
    start: int  # the answer after the empty word, also given in states that no word reached

    @classmethod
    def of(cls, observations: Observations, longer: Ints) -> LetterCounts:
        """Count the answers to all words up to the complete length, and to the longer prefixes of sorted words."""
        letters, complete = np.arange(observations.letters), observations.complete
        counted = []
        for length, level in enumerate(observations.levels[: complete + 1]):
            words = observations.words(length, np.arange(len(level)))
            counted.append(np.column_stack([(words[..., None] == letters).sum(axis=1), level]))
        if len(longer):
            counts = (longer[..., None] == letters).cumsum(axis=1)[:, complete:]
            fresh = np.ones(longer.shape, dtype=bool)  # [word, prefix]: not a prefix of the word before, too
            fresh[1:] = np.logical_or.accumulate(longer[1:] != longer[:-1], axis=1)
            answers = observations.after(longer)[:, complete + 1 :]
            fresh = fresh[:, complete:]
            counted.append(np.column_stack([counts[fresh], answers[fresh]]))
        distinct, number = np.unique(np.concatenate(counted), axis=0, return_counts=True)
        vectors, vector = np.unique(distinct[:, :-1], axis=0, return_inverse=True)
        codes, code = np.unique(distinct[:, -1], return_inverse=True)
        votes = np.zeros((len(vectors), len(codes)), dtype=np.int64)
        votes[vector.ravel(), code.ravel()] = number
        shortest = observations.first  # 1 where the answer after the empty word does not matter
        matters = vectors.sum(axis=1) >= shortest
        order = np.argsort(vectors[matters].sum(axis=1), kind="stable")
        return cls(vectors[matters][order], codes, votes[matters][order], int(observations.levels[0][0]))

    @cached_property
    def best(self) -> Ints:
        """The answer after most of the words of each vector; of several, the one with the smallest code."""
        return np.asarray(self.codes[self.votes.argmax(axis=1)])

    @property
    def mixed(self) -> int:
        """The number of vectors whose words have several answers, so that the order of the letters matters."""
        return int(((self.votes > 0).sum(axis=1) > 1).sum())

    def smallest(self, letter: int, most: int) -> tuple[int, int] | None:
        r"""Return the saturation point $s$ and the modulus $m$ of a letter with the least $s + m$, or None.

        For each modulus, $s$ is one more than the last count at which $m$ more letters change an answer. A modulus is
        left out if $s + m$ exceeds `most`, or if no words with counts $n_a \ge s$ and $n_a + m$ were run.
        """
        index_of = {tuple(vector): index for index, vector in enumerate(self.vectors.tolist())}
        fitting = []
        for modulus in range(1, most + 1):
            more = self.vectors.copy()
            more[:, letter] += modulus
            after = np.array([index_of.get(tuple(vector), -1) for vector in more.tolist()])
            known, counts = after >= 0, self.vectors[:, letter]
            changed = counts[known & (self.best != self.best[after])]
            start = int(changed.max(initial=-1)) + 1
            if (known & (counts >= start)).any() and start + modulus <= most:
                fitting.append((start + modulus, modulus))
        size, modulus = min(fitting, default=(0, 0))
        return (size - modulus, modulus) if fitting else None

    def classes(self, shape: Shape) -> Ints:
        """Return the state of a counter after each vector, in mixed radix."""
        states = np.zeros(len(self.vectors), dtype=np.int64)
        for letter, (start, modulus) in enumerate(shape):
            counts = self.vectors[:, letter]
            states = states * (start + modulus) + np.where(counts < start, counts, start + (counts - start) % modulus)
        return states

    def answers(self, shape: Shape) -> Ints:
        """Return the answer in each state of a counter: that after the shortest words that lead to it."""
        chosen = np.full(states_of(shape), self.start)
        states = self.classes(shape)[::-1]
        chosen[states] = self.best[::-1]  # of several, the last one stays: the shortest
        return chosen

    def fits(self, shape: Shape) -> bool:
        """Return whether a counter gives the answer after most of the words of each vector."""
        return bool((self.answers(shape)[self.classes(shape)] == self.best).all())

    def machine(self, shape: Shape) -> MooreMachine:
        """Return the minimal machine of a counter."""
        machine = machine_of(shape, self.answers(shape))
        return machine.with_free_start() if self.vectors[0].any() else machine

    def score(self, shape: Shape) -> tuple[int, int]:
        """Return the length of the shortest wrong word, and minus the number of wrong words."""
        expected = self.answers(shape)[self.classes(shape)]
        wrong = np.where(self.codes == expected[:, None], 0, self.votes).sum(axis=1)
        lengths = self.vectors.sum(axis=1)
        return int(lengths[wrong > 0].min(initial=lengths.max(initial=0) + 1)), -int(wrong.sum())

    def fitted(self, max_states: int) -> tuple[Shape, str | None]:
        """Return the shape of a counter and, unless it fits the answers after most words, the reason."""
        letters = self.vectors.shape[1]
        each = [self.smallest(letter, max_states) for letter in range(letters)]
        shape = tuple(one for one in each if one is not None)
        if len(shape) < letters:
            reason = (
                f"a letter takes more than {max_states} states, the most that are allowed, or the words that were run "
                "are too short to show where it repeats"
            )
        elif (states := states_of(shape)) > MAX_PRODUCT:
            reason = f"the letters together take {states:,} states before minimization: {MAX_PRODUCT:,} are the most"
        elif not self.fits(shape):
            reason = "each letter fits alone, but not all of them together"
        elif (states := len(self.machine(shape).answers)) > max_states:
            reason = f"the counter that fits has {states} states: {max_states} are the most that are allowed"
        else:
            return shape, None
        shape = max(islice(shapes(letters, max_states), MAX_SHAPES), key=self.score)
        return shape, None if self.fits(shape) else reason


def states_of(shape: Shape) -> int:
    """Return the number of states of a counter."""
    return prod(start + modulus for start, modulus in shape)


def shapes(letters: int, max_states: int) -> Iterator[Shape]:
    """Yield the shapes with up to a number of states, the smallest first.

    >>> [*shapes(1, 2)]
    [((0, 1),), ((0, 2),), ((1, 1),)]
    """

    def sizes(left: int, states: int) -> Iterator[tuple[int, ...]]:
        """Yield numbers of states of the letters that are left, whose product is `states`."""
        if not left:
            yield from [()] if states == 1 else []
            return
        for size in range(1, states + 1):
            if states % size == 0:
                yield from ((size, *others) for others in sizes(left - 1, states // size))

    for states in range(1, max_states + 1):
        for each in sizes(letters, states):
            yield from product(*([(start, size - start) for start in range(size)] for size in each))


def machine_of(shape: Shape, answers: Ints) -> MooreMachine:
    """Return the machine that counts."""
    states = [*product(*(range(start + modulus) for start, modulus in shape))]
    number = {state: index for index, state in enumerate(states)}

    def after(state: tuple[int, ...], letter: int) -> int:
        start, modulus = shape[letter]
        count = state[letter] + 1
        return number[*state[:letter], start if count == start + modulus else count, *state[letter + 1 :]]

    table = tuple(tuple(after(state, letter) for letter in range(len(shape))) for state in states)
    return MooreMachine(table, tuple(answers.tolist())).minimized()


def extract_counter(
    weights: Weights[SequenceArchitecture],
    budget: SearchBudget,
    *,
    max_length: int | None = None,
    max_states: int = 64,
    seed: int = 0,
    resume: Path | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Return the counter that a network is, with what is known of the two; parameters as those of `extract`."""
    refuse(weights)
    net = answering_after_every_letter(weights)
    observations, stopped = observed(net, budget, max_length, resume, progress)
    if observations.complete < observations.first:
        raise InputError(f"nothing was extracted: {stopped}")
    samples = Samples(observations, spec_of, seed, progress, max_length)
    counts = LetterCounts.of(observations, np.zeros((0, 0), dtype=np.int64))
    try:
        counts = LetterCounts.of(observations, longer_words(observations, seed))
    except (Exhausted, KeyboardInterrupt) as stop:
        stopped = stopped or str(stop) or INTERRUPTED
        budget.close()
    if resume is not None:
        observations.save(resume)
    shape, unfit = counts.fitted(max_states)
    result = samples.extraction("counter", counts.machine(shape), METHOD, stopped or unfit)
    letters = zip(net.architecture.inputs[1:], shape, strict=True)
    facts = [Quantity(counts_of(letter), describe(*one)) for letter, one in letters]
    mixed = [Quantity(MIXED, counts.mixed)] if counts.mixed else []
    return replace(result, evidence=result.evidence.adding(*facts, *mixed))


def longer_words(observations: Observations, seed: int) -> Ints:
    """Return words [word, position] longer than those that are all known, of many different shares of the letters.

    They are one letter alone, blocks of letters, and letters in random order.
    """
    letters, length = observations.letters, min(observations.net.max_length, MAX_LONGER)
    if not letters or length <= observations.complete:
        return np.zeros((0, 0), dtype=np.int64)
    rng = np.random.default_rng([seed, letters])
    shares = rng.dirichlet(np.full(letters, 0.5), size=LONGER)
    words = np.stack([rng.choice(letters, size=length, p=share) for share in shares])
    order = rng.permuted(np.tile(np.arange(letters), (LONGER // 2, 1)), axis=1)
    rank = np.take_along_axis(order, words[: LONGER // 2], axis=1)
    blocks = np.take_along_axis(words[: LONGER // 2], rank.argsort(axis=1, kind="stable"), axis=1)
    alone = np.repeat(np.arange(letters)[:, None], length, axis=1)
    return np.unique(np.concatenate([alone, blocks, words[LONGER // 2 :]]), axis=0)


def describe(start: int, modulus: int) -> str:
    """Return in words what a counter knows of a letter.

    >>> describe(0, 1), describe(0, 2), describe(5, 1), describe(3, 2)
    ('does not matter', 'counted modulo 2', 'counted up to 5', 'counted up to 3, then modulo 2')
    """
    if modulus == 1:
        return f"counted up to {start}" if start else "does not matter"
    return f"counted up to {start}, then modulo {modulus}" if start else f"counted modulo {modulus}"
