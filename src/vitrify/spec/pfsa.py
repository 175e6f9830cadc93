r"""Probabilistic finite automata, deterministic or not; `.pfsa.json` files.

    {
      "states": ["rain", "sun"],
      "alphabet": ["wet", "dry"],
      "initial": {"sun": 1},
      "transitions": [["sun", "dry", "sun", 0.6], ["sun", "wet", "rain", 0.2], …],
      "final": {"sun": 0.2, "rain": 0.1}
    }

An automaton begins in a state $q$ with the probability $\lambda_q$. In $q$ it ends with the probability $\rho_q$, or
writes $y$ and goes to $r$ with the probability $A^y_{qr}$; these sum to 1. A string $y_1 \dots y_n$ has the probability
$\lambda A^{y_1} \cdots A^{y_n} \rho$, the sum over all ways through the states.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import InputError, Problem, SpecError
from vitrify.spec.automaton_checks import token_problems
from vitrify.spec.display import Displayed
from vitrify.spec.files import Pairs, kind_of, parse_json, refuse_any, refuse_suffix, text_of
from vitrify.spec.ngram import BEGIN, END, NGramModel

Floats = NDArray[np.float64]
KEYS = ("states", "alphabet", "initial", "transitions", "final")
SUMS = 1e-9  # how far probabilities may be from summing to 1
NEVER = -99.0  # the logarithm of 0 in ARPA files

Transition = tuple[str, str, str, float]


@dataclass(frozen=True)
class ProbabilisticAutomaton(Displayed):
    """States, letters, and probabilities to begin, to go on and to end.

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
        problems = list(_problems(self))
        if problems:
            raise SpecError(problems)

    @classmethod
    def read(cls, path: str | Path) -> ProbabilisticAutomaton:
        """The automaton of a `.pfsa.json` file."""
        path = Path(path)
        if not path.name.endswith(cls.suffix):
            raise refuse_suffix(path, cls.suffix)
        given = parse_json(text_of(path), str(path))
        refuse_any(Problem(message, str(path)) for message in _shape_problems(given))
        assert isinstance(given, Pairs)
        data: dict[str, Any] = dict(given)
        try:
            return cls(
                tuple(data["states"]),
                tuple(data["alphabet"]),
                tuple((q, float(p)) for q, p in data["initial"].items()),
                tuple((q, y, r, float(p)) for q, y, r, p in data["transitions"]),
                tuple((q, float(p)) for q, p in data["final"].items()),
            )
        except SpecError as error:
            raise SpecError([Problem(problem.message, str(path)) for problem in error.problems]) from None

    def write(self, path: str | Path) -> None:
        """Write a `.pfsa.json` file that reads back as this value."""
        rows = ",\n".join(f"    {_json(list(move))}" for move in self.transitions)
        parts = {key: _json(getattr(self, key)) for key in ("states", "alphabet")}
        parts |= {
            "initial": _json(dict(self.initial)),
            "transitions": f"[\n{rows}\n  ]",
            "final": _json(dict(self.final)),
        }
        text = ",\n".join(f'  "{key}": {parts[key]}' for key in KEYS)
        Path(path).write_text(f"{{\n{text}\n}}\n", encoding="utf-8", newline="\n")

    # What it means

    @cached_property
    def matrices(self) -> tuple[Floats, Floats, Floats]:
        r"""$\lambda$ [state], $A$ [letter, state, state] and $\rho$ [state]."""
        place = {state: number for number, state in enumerate(self.states)}
        begin, end = np.zeros(len(place)), np.zeros(len(place))
        for vector, pairs in ((begin, self.initial), (end, self.final)):
            for state, p in pairs:
                vector[place[state]] = p
        moves = np.zeros((len(self.alphabet), len(place), len(place)))
        for q, y, r, p in self.transitions:
            moves[self.alphabet.index(y), place[q], place[r]] = p
        return begin, moves, end

    def probability(self, string: Sequence[str]) -> float:
        """The probability of a string, by the forward algorithm."""
        strange = sorted(set(string) - set(self.alphabet))
        if strange:
            raise InputError(f"{', '.join(map(repr, strange))}: a string has the letters {' '.join(self.alphabet)}")
        begin, moves, end = self.matrices
        for letter in string:
            begin = begin @ moves[self.alphabet.index(letter)]
        return float(begin @ end)

    # As a chain of thought: letters with the states that they lead to

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The letters with the states that they may lead to, `letter/state`."""
        used = {(y, r) for _, y, r, p in self.transitions if p > 0}
        return tuple(f"{y}/{r}" for y in self.alphabet for r in self.states if (y, r) in used)

    @cached_property
    def bigram(self) -> NGramModel:
        r"""The bigram model over letters with states whose strings, without the states, are those of the automaton.

        After $(y, q)$ comes $(y', r)$ with the probability $A^{y'}_{qr}$ and the end with $\rho_q$; at the beginning
        these are averaged over $\lambda$. Only what is possible is listed; the rest has the probability $10^{-99}$ in
        all.
        """
        begin, moves, end = self.matrices
        even = float(-np.log10(len(self.tokens) + 1))
        grams: dict[tuple[str, ...], tuple[float, float]] = {(BEGIN,): (NEVER, NEVER)}
        grams.update({(token,): (even, NEVER) for token in self.tokens})
        grams[END,] = (even, 0.0)
        states = dict(zip(self.states, np.eye(len(self.states)), strict=True))
        contexts = {BEGIN: begin} | {token: states[token.partition("/")[2]] for token in self.tokens}
        for context, held in contexts.items():
            after = {
                token: float(
                    held @ moves[self.alphabet.index(token.partition("/")[0])] @ states[token.partition("/")[2]]
                )
                for token in self.tokens
            }
            after[END] = float(held @ end)
            grams.update({(context, word): (float(np.log10(p)), 0.0) for word, p in after.items() if p > 0})
        return NGramModel.from_ngrams(grams)

    def erased(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """The letters of some tokens, without the states and the end."""
        return tuple(token.partition("/")[0] for token in tokens if token != END)

    def conclusion(self, prompt: Sequence[str], thought: Sequence[str]) -> dict[str, str]:
        """The string that was written, and its probability where it has ended."""
        string = self.erased([*prompt, *thought])
        ended = {"probability": f"{self.probability(string):.6g}"} if END in thought[-1:] else {}
        return {"string": " ".join(string)} | ended


def _problems(automaton: ProbabilisticAutomaton) -> Iterator[str]:
    """Every broken rule of an automaton."""
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
        strange = [repr(name) for name in dict.fromkeys((q, r)) if name not in automaton.states]
        strange += [repr(y)] if y not in automaton.alphabet else []
        if strange:
            yield f"transition {number} names {' and '.join(strange)}, which the automaton does not have"
        if not 0 <= p <= 1:
            yield f"transition {number}: the probability must be from 0 to 1, is {p!r}"
    for (q, y, r), times in Counter(move[:3] for move in automaton.transitions).items():
        if times > 1:
            yield f"the transition from {q!r} to {r!r} on {y!r} is given {times} times: add them up"
    total = sum(p for _, p in automaton.initial)
    if not abs(total - 1) <= SUMS:
        yield f"the probabilities of initial must sum to 1, they sum to {total!r}"
    for state in automaton.states:
        leaving = [p for q, _, _, p in automaton.transitions if q == state]
        total = sum(leaving) + dict(automaton.final).get(state, 0.0)
        if not abs(total - 1) <= SUMS:
            yield f"the probabilities to leave {state!r} or to end there must sum to 1, they sum to {total!r}"


def _shape_problems(given: object) -> Iterator[str]:
    """What keeps a JSON value from being read as an automaton at all."""
    if not isinstance(given, Pairs):
        yield f"the file must hold one JSON object with {', '.join(KEYS)}, got {kind_of(given)}"
        return
    yield from (f"the key {key!r} is given twice; keep one" for key in given.repeated)
    yield from (f"the key {key!r} is missing" for key in KEYS if key not in given)
    yield from (f"the key {key!r} is unknown; the keys are {', '.join(KEYS)}" for key in given if key not in KEYS)
    for key in ("states", "alphabet"):
        value = given.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            yield f"{key} must be a list of strings, got {kind_of(value)}"
    for key in ("initial", "final"):
        pairs = given.get(key, {})
        if not isinstance(pairs, Mapping) or not all(_number(p) for p in pairs.values()):
            yield f"{key} must be an object {{state: probability}}, got {kind_of(pairs)}"
        elif isinstance(pairs, Pairs):
            yield from (f"{key} gives the state {q!r} twice; keep one" for q in pairs.repeated)
    moves = given.get("transitions", [])
    if not isinstance(moves, list):
        yield f"transitions must be a list of [state, letter, state, probability], got {kind_of(moves)}"
        return
    for number, move in enumerate(moves, start=1):
        named = isinstance(move, list) and len(move) == 4 and all(isinstance(name, str) for name in move[:3])
        if not named or not _number(move[3]):
            yield f"transition {number} must be [state, letter, state, probability], got {_json(move)}"


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
