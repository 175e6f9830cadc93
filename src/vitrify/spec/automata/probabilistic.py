r"""Probabilistic finite automata, deterministic or not; `.pfsa.json` files.

    {
      "states": ["rain", "sun"],
      "alphabet": ["wet", "dry"],
      "initial": {"sun": 1},
      "transitions": [["sun", "dry", "sun", 0.6], ["sun", "wet", "rain", 0.2], …],
      "final": {"sun": 0.2, "rain": 0.1}
    }

An automaton begins in a state $q$ with probability $\lambda_q$. In $q$ it ends with probability $\rho_q$, or
writes $y$ and goes to $r$ with probability $A^y_{qr}$; these sum to 1. A string $y_1 \dots y_n$ has the probability
$\lambda A^{y_1} \cdots A^{y_n} \rho$, the sum over all paths through the states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import InputError
from vitrify.parameters import Help
from vitrify.spec.automata.checks import token_problems
from vitrify.spec.automata.weighted import WeightedAutomaton
from vitrify.spec.formats.data import json_object, read_data
from vitrify.spec.formats.text import in_file, refuse_any
from vitrify.spec.kinds import Kind, Meaning, Spec
from vitrify.spec.ngrams.model import NGramModel
from vitrify.spec.ngrams.trie import BEGIN, END, LOG10_ZERO

SUM_TOLERANCE = 1e-9  # of probabilities that must sum to 1

Transition = tuple[str, str, str, float]


@dataclass(frozen=True)
class ProbabilisticFile:
    """The schema of a `.pfsa.json` file."""

    states: tuple[str, ...]
    alphabet: tuple[str, ...]
    initial: Annotated[Mapping[str, float], Help("state: probability")]
    transitions: Annotated[tuple[Transition, ...], Help("[state, letter, state, probability]")]
    final: Annotated[Mapping[str, float], Help("state: probability")]


@dataclass(frozen=True)
class ProbabilisticAutomaton(Spec):
    """A probabilistic finite automaton: states, letters, and initial, transition and final probabilities.

    >>> coin = ProbabilisticAutomaton(("q",), ("h", "t"), (("q", 1.0),), (("q", "h", "q", 0.5), ("q", "t", "q", 0.25)),
    ...     (("q", 0.25),))
    >>> coin.probability("hht")
    0.015625
    """

    states: tuple[str, ...]
    alphabet: tuple[str, ...]
    initial: tuple[tuple[str, float], ...]
    transitions: tuple[Transition, ...]
    final: tuple[tuple[str, float], ...]
    suffix: ClassVar[str] = ".pfsa.json"

    def __post_init__(self) -> None:
        refuse_any(_problems(self))

    @classmethod
    def read(cls, path: str | Path) -> ProbabilisticAutomaton:
        """Read a `.pfsa.json` file; a SpecError lists all its problems."""
        file = read_data(Path(path), cls.suffix).read(ProbabilisticFile)
        with in_file(str(path)):
            initial, final = tuple(file.initial.items()), tuple(file.final.items())
            return cls(file.states, file.alphabet, initial, file.transitions, final)

    def to_text(self) -> str:
        values = {"states": self.states, "alphabet": self.alphabet, "initial": dict(self.initial)}
        return json_object(values | {"transitions": self.transitions, "final": dict(self.final)}, "transitions")

    @classmethod
    def samples(cls) -> dict[str, ProbabilisticAutomaton]:
        moves = (("p", "a", "q", 0.5), ("p", "b", "p", 0.25), ("q", "a", "p", 0.75))
        alternating = cls(("p", "q"), ("a", "b"), (("p", 1.0),), moves, (("p", 0.25), ("q", 0.25)))
        return {"two states": random_pfsa(0, 2, 2), "one state": random_pfsa(1, 1, 1), "deterministic": alternating}

    # Reference semantics

    def meanings(self) -> dict[str, Meaning]:
        """Return the expected outputs: the distribution of the next letter with its state."""
        return self.bigram.meanings()

    @cached_property
    def matrices(self) -> tuple[Floats, Floats, Floats]:
        r"""$\lambda$ [state], $A$ [letter, state, state] and $\rho$ [state]."""
        index = {state: i for i, state in enumerate(self.states)}
        begin, end = np.zeros(len(index)), np.zeros(len(index))
        for vector, pairs in ((begin, self.initial), (end, self.final)):
            for state, p in pairs:
                vector[index[state]] = p
        moves = np.zeros((len(self.alphabet), len(index), len(index)))
        for q, y, r, p in self.transitions:
            moves[self.alphabet.index(y), index[q], index[r]] = p
        return begin, moves, end

    def probability(self, string: Sequence[str]) -> float:
        """Return the probability of a string, by the forward algorithm."""
        unknown = sorted(set(string) - set(self.alphabet))
        if unknown:
            raise InputError(
                f"letters must be among {' '.join(self.alphabet)}; unknown: {', '.join(map(repr, unknown))}"
            )
        begin, moves, end = self.matrices
        for letter in string:
            begin = begin @ moves[self.alphabet.index(letter)]
        return float(begin @ end)

    @cached_property
    def weighted(self) -> WeightedAutomaton:
        """The automaton in exact fractions: decimal numbers as they are written, over their sum where that is not 1."""
        moves: dict[str, list[tuple[str, str, Fraction]]] = {state: [] for state in self.states}
        for q, y, r, p in self.transitions:
            moves[q].append((y, r, Fraction(repr(p))))
        ends = {state: Fraction(repr(p)) for state, p in self.final}

        def follow(state: str) -> tuple[list[tuple[str, str, Fraction]], Fraction]:
            end = ends.get(state, Fraction(0))
            total = sum((p for *_, p in moves[state]), end)
            return [(y, r, p / total) for y, r, p in moves[state]], end / total

        initial = {state: Fraction(repr(p)) for state, p in self.initial}
        total = sum(initial.values())
        shares = {state: p / total for state, p in initial.items()}
        return WeightedAutomaton.explore(shares, follow, self.alphabet)

    @classmethod
    def of_weighted(cls, exact: WeightedAutomaton) -> ProbabilisticAutomaton:
        """Return an automaton with its probabilities as decimal numbers."""
        names, moves = exact.names, dict[tuple[str, str, str], Fraction]()
        for q, y, r, p in exact.moves:
            moves[names[q], y, names[r]] = moves.get((names[q], y, names[r]), Fraction(0)) + p
        initial, final = (
            tuple((name, float(p)) for name, p in zip(names, vector, strict=True) if p)
            for vector in (exact.initial, exact.final)
        )
        return cls(names, exact.alphabet, initial, tuple((*key, float(p)) for key, p in moves.items()), final)

    # Letters alone

    def meaning(self, kind: str, inputs: Sequence[str]) -> Meaning | None:
        """Return the task: of a network that reads letters alone, the distribution of the next one."""
        alone = kind == "lm" and tuple(inputs) == self.alphabet
        return self.weighted.meaning if alone else self.ngrams_over(inputs).meaning(kind, inputs)

    # Chain of thought: every letter is written with the state that it leads to

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The tokens `letter/state`: letters with the states that they may lead to."""
        used = {(y, r) for _, y, r, p in self.transitions if p > 0}
        return tuple(f"{y}/{r}" for y in self.alphabet for r in self.states if (y, r) in used)

    @cached_property
    def bigram(self) -> NGramModel:
        r"""The bigram model over `letter/state` tokens whose strings, without the states, are those of the automaton.

        After $(y, q)$ comes $(y', r)$ with probability $A^{y'}_{qr}$ and the end with $\rho_q$; at the beginning
        these are averaged over $\lambda$. Only possible bigrams are listed; all others together have the probability
        $10^{-99}$.
        """
        begin, moves, end = self.matrices
        uniform = float(-np.log10(len(self.tokens) + 1))
        grams: dict[tuple[str, ...], tuple[float, float]] = {(BEGIN,): (LOG10_ZERO, LOG10_ZERO)}
        grams.update({(token,): (uniform, LOG10_ZERO) for token in self.tokens})
        grams[END,] = (uniform, 0.0)
        states = dict(zip(self.states, np.eye(len(self.states)), strict=True))
        contexts = {BEGIN: begin} | {token: states[token.partition("/")[2]] for token in self.tokens}
        for context, belief in contexts.items():
            after = {}
            for token in self.tokens:
                letter, _, state = token.partition("/")
                after[token] = float(belief @ moves[self.alphabet.index(letter)] @ states[state])
            after[END] = float(belief @ end)
            grams.update({(context, word): (float(np.log10(p)), 0.0) for word, p in after.items() if p > 0})
        return NGramModel.from_ngrams(grams)

    @cached_property
    def trigram(self) -> NGramModel:
        r"""The trigram model over states, written `/q`, and letters in turn; without the states, the automaton again.

        At the beginning comes $/q$ with probability $\lambda_q$. After $/q$ come a letter $y$ with probability $\sum_r
        A^y_{qr}$ and the end with $\rho_q$, after $/q$ and $y$ the state $/r$ with probability $A^y_{qr} / \sum_r
        A^y_{qr}$. All other n-grams have the probability $10^{-99}$.
        """
        begin, moves, end = self.matrices
        states = [f"/{state}" for state in self.states]
        words = (*states, *self.alphabet, END)
        uniform = float(-np.log10(len(words)))
        laws: dict[tuple[str, ...], dict[str, float]] = {(BEGIN,): dict(zip(states, begin.tolist(), strict=True))}
        for q, state in enumerate(states):
            after = dict(zip(self.alphabet, moves[:, q].sum(axis=1).tolist(), strict=True))
            laws[state,] = {**after, END: float(end[q])}
            laws |= {
                (state, y): dict(zip(states, (row / row.sum()).tolist(), strict=True))
                for y, row in zip(self.alphabet, moves[:, q], strict=True)
                if row.any()
            }
        grams: dict[tuple[str, ...], float] = {(BEGIN,): LOG10_ZERO}
        grams |= {(word,): uniform for word in words}
        for context, law in laws.items():
            grams |= {(*context, word): float(np.log10(p)) for word, p in law.items() if p > 0}
        return NGramModel.from_ngrams({g: (p, LOG10_ZERO if g in laws else 0.0) for g, p in grams.items()})

    def ngrams_over(self, inputs: Sequence[str]) -> NGramModel:
        """Return the n-gram model of a network that reads some tokens: the trigrams, or else the bigrams."""
        return self.trigram if set(inputs) == set(self.trigram.readable) else self.bigram

    def erased(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """Return the letters of some tokens, without the states and the end."""
        letters = (token.partition("/")[0] for token in tokens if token != END)
        return tuple(letter for letter in letters if letter)

    def conclusion(self, prompt: Sequence[str], thought: Sequence[str]) -> dict[str, str]:
        """Return the generated string, and its probability if it has ended."""
        string = self.erased([*prompt, *thought])
        ended = {"probability": f"{self.probability(string):.6g}"} if END in thought[-1:] else {}
        return {"string": " ".join(string)} | ended

    def missing(self, prompt: Sequence[str], thought: Sequence[str]) -> str:
        """Return the length of a string that has not ended."""
        return "" if END in thought[-1:] else f"after {len(prompt) + len(thought)} letters the string has not ended"


def _problems(automaton: ProbabilisticAutomaton) -> Iterator[str]:
    for what, names in (("state", automaton.states), ("letter", automaton.alphabet)):
        yield from token_problems(what, names)
        yield from (
            f"a {what} must not contain '/' or be {END}, as {name!r}" for name in names if "/" in name or name == END
        )
    for key in ("initial", "final"):
        pairs = getattr(automaton, key)
        yield from (
            f"{key} names the state {q!r}, which is not one of states" for q, _ in pairs if q not in automaton.states
        )
        yield from (
            f"{key}: the probability of {q!r} must be from 0 to 1, is {p!r}" for q, p in pairs if not 0 <= p <= 1
        )
    for number, (q, y, r, p) in enumerate(automaton.transitions, start=1):
        unknown = [repr(name) for name in dict.fromkeys((q, r)) if name not in automaton.states]
        unknown += [repr(y)] if y not in automaton.alphabet else []
        if unknown:
            yield f"transition {number} names {' and '.join(unknown)}, which the automaton does not have"
        if not 0 <= p <= 1:
            yield f"transition {number}: the probability must be from 0 to 1, is {p!r}"
    for (q, y, r), times in Counter(move[:3] for move in automaton.transitions).items():
        if times > 1:
            yield f"the transition from {q!r} to {r!r} on {y!r} is listed {times} times: list it once, with the sum"
    total = sum(p for _, p in automaton.initial)
    if not abs(total - 1) <= SUM_TOLERANCE:
        yield f"the probabilities of initial must sum to 1, they sum to {total!r}"
    for state in automaton.states:
        leaving = [p for q, _, _, p in automaton.transitions if q == state]
        total = sum(leaving) + dict(automaton.final).get(state, 0.0)
        if not abs(total - 1) <= SUM_TOLERANCE:
            yield f"the probabilities to leave {state!r} or to end there must sum to 1, they sum to {total!r}"


def random_pfsa(
    seed: int, states: int, letters: int, *, density: float = 0.7, deterministic: bool = False
) -> ProbabilisticAutomaton:
    """Return an automaton with random probabilities; each transition is present with probability `density`.

    The same state and letter may lead to several states, unless it is to be deterministic: then there is one initial
    state, too.
    """
    rng = np.random.default_rng(seed)
    names, alphabet = [f"q{n}" for n in range(states)], [chr(ord("a") + n) for n in range(letters)]
    moves, final = [], []
    for q in names:
        targets = [[str(rng.choice(names))] if deterministic else names for _ in alphabet]
        chosen = [(y, r) for y, some in zip(alphabet, targets, strict=True) for r in some if rng.random() < density]
        shares = rng.dirichlet(np.ones(len(chosen) + 1)).tolist()
        moves += [(q, y, r, p) for (y, r), p in zip(chosen, shares[:-1], strict=True)]
        final.append((q, 1.0 - sum(shares[:-1])))
    begin = [1.0, *[0.0] * (states - 1)] if deterministic else rng.dirichlet(np.ones(states)).tolist()
    initial = [*zip(names[:-1], begin[:-1], strict=True), (names[-1], 1.0 - sum(begin[:-1]))]
    return ProbabilisticAutomaton(tuple(names), tuple(alphabet), tuple(initial), tuple(moves), tuple(final))


def mixture(alpha: float = 0.5, beta: float = 0.25) -> ProbabilisticAutomaton:
    """Return the mixture of two geometric distributions of a^n, each with the probability 1/2."""
    rates = {"p": alpha, "q": beta}
    moves = tuple((state, "a", state, rate) for state, rate in rates.items())
    final = tuple((state, 1.0 - rate) for state, rate in rates.items())
    return ProbabilisticAutomaton(("p", "q"), ("a",), (("p", 0.5), ("q", 0.5)), moves, final)


KIND = Kind(ProbabilisticAutomaton, {".pfsa.json": "probabilistic automaton"})
