r"""Extraction of counters: networks whose answer depends on how often each letter came, not on the order.

All words up to a length are run, and some longer ones. The answer $f(n)$ after letter counts $n$ is that after most of
the words with these counts. Letter $a$ *saturates* at $s$ with *modulus* $m$ if from there on $m$ more of it change
nothing:

$$f(n) = f(n + m e_a) \quad\text{wherever } n_a \ge s.$$

Parity has $s = 0$, $m = 2$; a counter that gets stuck at five has $s = 5$, $m = 1$; a letter that does not matter has
$s = 0$, $m = 1$. So $s + m$ states are enough for a letter, and their product for a counter. The smallest counter that
fits is returned; if none does, the one whose first mistake comes latest, and of these the one that is wrong on the
fewest words. As a spec it is an automaton.
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
MAX_SHAPES = 1 << 12  # counters that are compared where none fits
METHOD = "fitted to the answers by letter counts"
Shape = tuple[tuple[int, int], ...]  # of each letter: the count at which it saturates, and the modulus beyond


@dataclass(frozen=True)
class LetterCounts:
    """Answers by letter counts: `codes[code]` after `votes[vector, code]` words with the counts `vectors[vector]`.

    The smallest counts come first; those of the empty word are left out where its answer does not matter.
    """

    vectors: Ints  # [vector, letter]
    codes: Ints
    votes: Ints
    start: int  # the answer after the empty word

    @classmethod
    def of(cls, observations: Observations, longer: Ints) -> LetterCounts:
        """Count the answers to all words up to the complete length, and to the longer prefixes of some words."""
        letters, complete = np.arange(observations.letters), observations.complete
        rows = []
        for length, level in enumerate(observations.levels[: complete + 1]):
            words = observations.words(length, np.arange(len(level)))
            rows.append(np.column_stack([(words[..., None] == letters).sum(axis=1), level]))
        if len(longer):
            counts = (longer[..., None] == letters).cumsum(axis=1)[:, complete:].reshape(-1, len(letters))
            rows.append(np.column_stack([counts, observations.after(longer)[:, complete + 1 :].ravel()]))
        every, number = np.unique(np.concatenate(rows), axis=0, return_counts=True)
        vectors, place = np.unique(every[:, :-1], axis=0, return_inverse=True)
        codes, code = np.unique(every[:, -1], return_inverse=True)
        votes = np.zeros((len(vectors), len(codes)), dtype=np.int64)
        votes[place.ravel(), code.ravel()] = number
        matters = vectors.sum(axis=1) >= observations.first
        order = np.argsort(vectors[matters].sum(axis=1), kind="stable")
        return cls(vectors[matters][order], codes, votes[matters][order], int(observations.levels[0][0]))

    @cached_property
    def best(self) -> Ints:
        """The answer after most of the words of each vector."""
        return np.asarray(self.codes[self.votes.argmax(axis=1)])

    @property
    def mixed(self) -> int:
        """The number of vectors whose words have several answers, so that the order of the letters matters."""
        return int(((self.votes > 0).sum(axis=1) > 1).sum())

    def smallest(self, letter: int, most: int) -> tuple[int, int] | None:
        """Return where a letter saturates and its modulus, of the least sum up to `most`, if some repetition is seen.

        For a modulus, the last count that $m$ more letters change is the last one before it saturates.
        """
        row_of = {tuple(vector): row for row, vector in enumerate(self.vectors.tolist())}
        fitting = []
        for modulus in range(1, most + 1):
            more = self.vectors.copy()
            more[:, letter] += modulus
            after = np.array([row_of.get(tuple(vector), -1) for vector in more.tolist()])
            known, counts = after >= 0, self.vectors[:, letter]
            changed = counts[known & (self.best != self.best[after])]
            start = int(changed.max(initial=-1)) + 1
            if (known & (counts >= start)).any() and start + modulus <= most:
                fitting.append((start + modulus, modulus))
        size, modulus = min(fitting, default=(0, 0))
        return (size - modulus, modulus) if fitting else None

    def classes(self, shape: Shape) -> Ints:
        """Return the state of a counter after each vector, in mixed radix."""
        place = np.zeros(len(self.vectors), dtype=np.int64)
        for letter, (start, modulus) in enumerate(shape):
            counts = self.vectors[:, letter]
            place = place * (start + modulus) + np.where(counts < start, counts, start + (counts - start) % modulus)
        return place

    def answers(self, shape: Shape) -> Ints:
        """Return the answer in each state of a counter: that after the shortest words that lead to it."""
        chosen = np.full(states_of(shape), self.start)
        place = self.classes(shape)[::-1]
        chosen[place] = self.best[::-1]  # of several, the last one stays: the shortest
        return chosen

    def score(self, shape: Shape) -> tuple[int, int]:
        """Return the length of the shortest wrong word, and minus the number of wrong words."""
        expected = self.answers(shape)[self.classes(shape)]
        wrong = np.where(self.codes == expected[:, None], 0, self.votes).sum(axis=1)
        lengths = self.vectors.sum(axis=1)
        return int(lengths[wrong > 0].min(initial=lengths.max(initial=0) + 1)), -int(wrong.sum())

    def fitted(self, max_states: int) -> tuple[Shape, bool]:
        """Return the shape of the smallest counter that fits the answers after most words, or of the best, and if."""
        letters = self.vectors.shape[1]
        each = [self.smallest(letter, max_states) for letter in range(letters)]
        shape = tuple(one for one in each if one is not None)
        if len(shape) == letters and states_of(shape) <= max_states:
            return shape, True
        return max(islice(shapes(letters, max_states), MAX_SHAPES), key=self.score), False


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
    number = {state: place for place, state in enumerate(states)}

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
    shape, fits = counts.fitted(max_states)
    if not fits:
        stopped = stopped or f"no counter of {max_states} states, the most that are allowed, fits"
    result = samples.extraction("counter", machine_of(shape, counts.answers(shape)), METHOD, stopped)
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
