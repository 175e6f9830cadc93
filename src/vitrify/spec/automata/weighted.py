r"""Automata whose moves have exact probabilities: total mass of all strings, and letters that are erased.

Initial probabilities $\lambda$, moves $A^y$ by letter, final probabilities $\rho$, all of them fractions. The string
$y_1 \dots y_n$ has the probability $\lambda A^{y_1} \cdots A^{y_n} \rho$, and all strings together

$$Z = \lambda (I - A)^{-1} \rho, \qquad A = \textstyle\sum_y A^y,$$

where states that reach no end are left out. If moves and end of each state sum to 1, then $Z = 1$, and the automaton is
*tight*, iff every state that it reaches can reach an end; else some of its runs never end, with the probability $1 -
Z$ (Booth & Thompson 1973; Cotterell et al. 2023, arXiv 2212.14578).

The empty letter stands for letters that are erased. With its moves $A_\epsilon$, the strings of all other letters have
the probabilities of the automaton $\lambda$, $(I - A_\epsilon)^{-1} A^y$, $(I - A_\epsilon)^{-1} \rho$ (Mohri 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from vitrify.errors import BuildRefused, InputError
from vitrify.spec.graphs import reached
from vitrify.spec.kinds import Answer, Meaning, PrefixStates, prefixes_by_length
from vitrify.spec.ngrams.trie import END

ERASED = ""  # the letter of moves that write nothing
MAX_STATES = 1 << 14
MAX_SOLVED = 300  # states of a system of linear equations in fractions

N_EXAMPLES = 1 << 10
MAX_CACHED = 1 << 14  # distributions and steps of a language model

Move = tuple[int, str, int, Fraction]  # state, letter, state, probability
Belief = tuple[tuple[int, Fraction], ...]  # probabilities of states, given a word
S = TypeVar("S", bound=Hashable)
Following = tuple[Iterable[tuple[str, S, Fraction]], Fraction]  # moves (letter, state, probability), and end


class Tightness(NamedTuple):
    """Probability that a string ends, the reachable states, and one of them that reaches no end, or None."""

    mass: Fraction
    states: int
    trap: str | None

    @property
    def tight(self) -> bool:
        """Whether the probabilities of all strings sum to 1."""
        return self.mass == 1


@dataclass(frozen=True)
class WeightedAutomaton:
    """An automaton over numbered states with names; moves with the letter `ERASED` write nothing.

    >>> half, third = Fraction(1, 2), Fraction(1, 3)
    >>> coin = WeightedAutomaton.explore(
    ...     {"q": Fraction(1)}, lambda q: ([("h", q, half), ("", q, half * third)], third), ("h",))
    >>> coin.probability("h"), coin.mass
    (Fraction(6, 25), Fraction(1, 1))
    """

    names: tuple[str, ...]
    alphabet: tuple[str, ...]
    initial: tuple[Fraction, ...]
    moves: tuple[Move, ...]
    final: tuple[Fraction, ...]

    @classmethod
    def explore(
        cls,
        initial: Mapping[S, Fraction],
        follow: Callable[[S], Following[S]],
        alphabet: Sequence[str],
        name: Callable[[S], str] = str,
    ) -> WeightedAutomaton:
        """Return the automaton of all states that are reached from the initial ones."""
        rows: dict[S, tuple[list[tuple[str, S, Fraction]], Fraction]] = {}

        def successors(state: S) -> list[S]:
            moves, end = follow(state)
            rows[state] = [move for move in moves if move[2]], end
            return [after for _, after, _ in rows[state][0]]

        refusal = f"the automaton has more than {MAX_STATES:,} states"
        states = tuple(reached([state for state, p in initial.items() if p], successors, MAX_STATES, refusal))
        index = {state: number for number, state in enumerate(states)}
        moves = tuple((index[q], y, index[r], p) for q in states for y, r, p in rows[q][0])
        begin, end = tuple(initial.get(state, Fraction(0)) for state in states), tuple(rows[q][1] for q in states)
        return cls(tuple(map(name, states)), tuple(alphabet), begin, moves, end)

    def relabelled(self, images: Mapping[str, str]) -> WeightedAutomaton:
        """Return the automaton that writes the image of every letter; `ERASED` is nothing."""
        alphabet = dict.fromkeys(images.get(letter, letter) for letter in self.alphabet)
        moves = tuple((q, images.get(y, y), r, p) for q, y, r, p in self.moves)
        return replace(self, alphabet=tuple(letter for letter in alphabet if letter != ERASED), moves=moves)

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether it has one initial state, and for each state and letter at most one next state."""
        moves = {(q, y, r) for q, y, r, p in self.moves if p}
        silent = any(y == ERASED for _, y, _ in moves)
        return not silent and sum(p > 0 for p in self.initial) == 1 and len({move[:2] for move in moves}) == len(moves)

    def probability(self, string: Sequence[str]) -> Fraction:
        """Return the exact probability of a string."""
        if unknown := sorted(set(string) - set(self.alphabet)):
            raise InputError(f"letters must be among {' '.join(self.alphabet)}; unknown: {unknown}")
        if any(y == ERASED for _, y, _, _ in self.moves):
            return self.without_erased.probability(string)
        held = list(self.initial)
        for letter in string:
            after = [Fraction(0)] * len(held)
            for q, r, p in self._by_letter.get(letter, ()):
                if held[q]:
                    after[r] += held[q] * p
            held = after
        return sum((p * end for p, end in zip(held, self.final, strict=True)), Fraction(0))

    @cached_property
    def _by_letter(self) -> dict[str, list[tuple[int, int, Fraction]]]:
        rows: dict[str, list[tuple[int, int, Fraction]]] = {}
        for q, y, r, p in self.moves:
            rows.setdefault(y, []).append((q, r, p))
        return rows

    # As a language model over letters

    @cached_property
    def meaning(self) -> Meaning:
        """The distribution of the next letter or the end after every word; None where its probability is 0."""
        if any(y == ERASED for _, y, _, _ in self.moves):
            return self.without_erased.meaning
        outputs, states = (*self.alphabet, END), PrefixStates(self.start, self.step)
        return Meaning("distribution", self.alphabet, outputs, self._after, Sentences(self), states=states)

    @property
    def start(self) -> Belief:
        """The initial states with their probabilities."""
        return tuple((q, p) for q, p in enumerate(self.initial) if p)

    @cached_property
    def step(self) -> Callable[[Belief, str], Belief | None]:
        """The map to the probabilities of the states after one more letter; to None if it is impossible."""

        def after(belief: Belief, letter: str) -> Belief | None:
            held, following = dict(belief), dict[int, Fraction]()
            for q, r, p in self._by_letter.get(letter, ()):
                if q in held and p:
                    following[r] = following.get(r, Fraction(0)) + held[q] * p
            total = sum(following.values())
            return tuple((r, p / total) for r, p in sorted(following.items())) if total else None

        return lru_cache(MAX_CACHED)(after)

    @cached_property
    def distribution(self) -> Callable[[Belief], dict[str, Fraction]]:
        """The map of the probabilities of the states to the distribution of the next letter or the end."""

        def following(belief: Belief) -> dict[str, Fraction]:
            held = dict(belief)
            shares = {
                y: sum((held[q] * p for q, _, p in self._by_letter.get(y, ()) if q in held), Fraction(0))
                for y in self.alphabet
            }
            return shares | {END: sum((p * self.final[q] for q, p in belief), Fraction(0))}

        return lru_cache(MAX_CACHED)(following)

    def _after(self, word: Sequence[str]) -> list[Answer]:
        belief: Belief | None = self.start
        answers: list[Answer] = []
        for letter in (*word, None):
            answers.append(None if belief is None else self.distribution(belief))
            belief = None if belief is None or letter is None else self.step(belief, letter)
        return answers

    # Mass

    @cached_property
    def mass(self) -> Fraction:
        """The probability of all strings together, $Z$."""
        return self.tightness.mass

    @cached_property
    def tightness(self) -> Tightness:
        """The mass, and whether every reachable state reaches an end."""
        starts = [q for q, p in enumerate(self.initial) if p]
        after: dict[int, list[int]] = {}
        before: dict[int, list[int]] = {}
        for q, _, r, p in self.moves:
            if p:
                after.setdefault(q, []).append(r)
                before.setdefault(r, []).append(q)
        reachable = reached(starts, lambda q: after.get(q, []))
        ending = reached([q for q, p in enumerate(self.final) if p], lambda q: before.get(q, []))
        trap = next((self.names[q] for q in reachable if q not in ending), None)
        totals = dict(enumerate(self.final))
        for q, _, _, p in self.moves:
            totals[q] += p
        if trap is None and all(totals[q] == 1 for q in reachable):
            return Tightness(sum(self.initial, Fraction(0)), len(reachable), None)
        useful = [q for q in reachable if q in ending]
        moves = [(q, r, p) for q, _, r, p in self.moves]
        ends = _solved(useful, moves, [[self.final[q]] for q in useful])
        mass = sum((self.initial[q] * end for q, (end,) in zip(useful, ends, strict=True)), Fraction(0))
        return Tightness(mass, len(reachable), trap)

    @cached_property
    def without_erased(self) -> WeightedAutomaton:
        """The automaton of the same strings without moves that write nothing."""
        silent = [(q, r, p) for q, y, r, p in self.moves if y == ERASED and p]
        written = [move for move in self.moves if move[1] != ERASED]
        leaving = {q for q, *_ in written} | {q for q, p in enumerate(self.final) if p}
        before: dict[int, list[int]] = {}
        for q, r, _ in silent:
            before.setdefault(r, []).append(q)
        useful = sorted(reached(sorted(leaving), lambda q: before.get(q, [])))  # others write nothing for ever
        columns = list(dict.fromkeys((y, r) for _, y, r, _ in written))
        at = {column: number for number, column in enumerate(columns)}
        right = {q: [Fraction(0)] * len(columns) + [self.final[q]] for q in useful}
        for q, y, r, p in written:
            right[q][at[y, r]] += p
        rows = dict(zip(useful, _solved(useful, silent, [right[q] for q in useful]), strict=True))
        moves = tuple((q, *columns[k], p) for q, row in rows.items() for k, p in enumerate(row[:-1]) if p)
        final = tuple(rows[q][-1] if q in rows else Fraction(0) for q in range(len(self.names)))
        return replace(self, moves=moves, final=final)


@dataclass(frozen=True)
class Sentences:
    """The words of positive probability of an automaton, without their end: the test cases of a network."""

    automaton: WeightedAutomaton

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        """Return every prefix of a sentence once, short ones first, up to a length."""
        automaton = self.automaton
        reached_by: dict[tuple[str, ...], Belief] = {(): automaton.start}

        def following(word: tuple[str, ...]) -> Iterator[str]:
            belief = reached_by.pop(word)
            for letter in automaton.alphabet:
                after = automaton.step(belief, letter)
                if after is not None:
                    reached_by[*word, letter] = after
                    yield letter

        return prefixes_by_length(following, longest)

    def examples(self) -> Iterator[Iterator[str]]:
        """Return random sentences, always the same ones."""
        rng = np.random.default_rng(0)
        return (self.draw(rng) for _ in range(N_EXAMPLES))

    def draw(self, rng: np.random.Generator) -> Iterator[str]:
        """Return a random sentence, which may have no end."""
        belief: Belief | None = self.automaton.start
        while belief is not None:
            shares = self.automaton.distribution(belief)
            letter = str(rng.choice([*shares], p=[float(p) for p in shares.values()]))
            if letter == END:
                return
            yield letter
            belief = self.automaton.step(belief, letter)


def _solved(
    states: Sequence[int], moves: Iterable[tuple[int, int, Fraction]], right: Sequence[Sequence[Fraction]]
) -> list[list[Fraction]]:
    r"""Return $(I - A)^{-1} B$ for the moves $A$ between some states and the rows $B$ of each of them."""
    from flint import fmpq, fmpq_mat

    if not states:
        return []
    if len(states) > MAX_SOLVED:
        raise BuildRefused(f"{len(states):,} states are too many for exact equations: at most {MAX_SOLVED}")
    index = {state: number for number, state in enumerate(states)}

    def exact(number: Fraction) -> Any:
        return fmpq(number.numerator, number.denominator)

    matrix = fmpq_mat(len(states), len(states))
    for number in range(len(states)):
        matrix[number, number] = fmpq(1)
    for q, r, p in moves:
        if q in index and r in index:
            matrix[index[q], index[r]] -= exact(p)
    solution = matrix.solve(fmpq_mat(len(states), len(right[0]), [exact(p) for row in right for p in row]))
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in solution.tolist()]
