"""Oracles: what a network built from a spec must answer after every prefix, from the spec's own semantics."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.knowledge_oracle import AnswerOracle
from vitrify.certify.probability_oracles import NextTokenOracle, NextWordOracle
from vitrify.certify.program_oracle import ProgramOracle, TruthOracle
from vitrify.certify.recall_oracle import RecallOracle
from vitrify.certify.right import one_of
from vitrify.certify.sentence_oracles import MembershipOracle, NextSetOracle, Sentences
from vitrify.certify.set_oracle import SetOracle
from vitrify.certify.task_oracle import TaskOracle
from vitrify.certify.thought_oracle import ThoughtOracle
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.labels import SpaceLabel
from vitrify.net.weights import Weights
from vitrify.spec.associations import Associations
from vitrify.spec.automaton import Automaton
from vitrify.spec.crasp import Crasp
from vitrify.spec.dyck import Dyck
from vitrify.spec.facts import Facts
from vitrify.spec.grammar import Grammar
from vitrify.spec.knowledge import Knowledge
from vitrify.spec.ltl import Formula
from vitrify.spec.ngram import NGramModel
from vitrify.spec.pfsa import ProbabilisticAutomaton
from vitrify.spec.program_file import Program
from vitrify.spec.tasks.catalogue import Task
from vitrify.spec.tasks.sparse_averaging import SparseAveraging
from vitrify.spec.thought import Thinking

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


class Language(Protocol):
    """The input words that may be asked about, where not all may: the beginnings of sentences."""

    def beginnings(self) -> Iterator[list[int]]:
        """Every beginning once, short ones first, up to what the network reads."""
        ...

    def draw(self, rng: np.random.Generator) -> list[int]:
        """A random sentence, cut to what the network reads."""
        ...


class Oracle(Protocol):
    """The right answers for a network's input words; `language` is None where every word may be asked about."""

    @property
    def language(self) -> Language | None: ...

    def errors(self, words: Ids, logits: Floats) -> Floats:
        """Distance of the answers from the right ones, [word, prefix]; words are input ids [word, length]."""
        ...

    def right(self, word: Ids) -> Floats:
        """The right answers [prefix, symbol]: probabilities, 1 for what is right and 0 for the rest, or numbers.

        NaN where nothing is asked.
        """
        ...

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        """One wrong answer in words a person understands: the prefix given, what was expected, what came."""
        ...

    def tolerance(self) -> float:
        """The largest distance that still counts as right."""
        ...

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Input words, at most `count`, that exercise every listed part of the spec."""
        ...


@runtime_checkable
class AsksSome(Protocol):
    """An oracle that has no right answer after some prefixes of the words that it asks about."""

    def asked(self, words: Ids) -> NDArray[np.bool_]:
        """Where there is one, [word, prefix]."""
        ...


@runtime_checkable
class KnowsNumbers(Protocol):
    """An oracle that also knows the numbers that a network keeps in its named spaces on the way to an answer."""

    def strayed(self, words: Ids, label: SpaceLabel, vectors: Floats) -> float | None:
        """How far a space [word, prefix, coordinate] is at most from what its name says; None if it is not known."""
        ...


@runtime_checkable
class Insider(Protocol):
    """An oracle that also knows what must hold inside a network."""

    def inside(self, weights: Weights[Any], seed: int) -> tuple[dict[str, object], dict[str, object] | None]:
        """What was measured inside, and a witness if it is wrong."""
        ...


class StateOracle:
    """An automaton's state after every letter: the distance is 0 or 1.

    A tie of the two largest logits counts as wrong: rounding would decide it.
    """

    language = None
    TIE = 1e-6  # logits nearer to each other than this are tied

    def __init__(self, automaton: Automaton, net: SequenceArchitecture) -> None:
        if net.inputs[1:] != automaton.alphabet or not set(net.output.symbols) <= set(automaton.states):
            raise FolderError("the network and its spec do not speak about the same letters and states")
        if set(net.output.accepting) != set(automaton.accepting_states) & set(net.output.symbols):
            raise FolderError("the network and its spec do not accept the same states")
        self.automaton, self.net = automaton, net
        symbols = {state: place for place, state in enumerate(net.output.symbols)}
        self._symbol = np.array([symbols.get(state, -1) for state in automaton.states])

    def tolerance(self) -> float:
        return 0.0

    def errors(self, words: Ids, logits: Floats) -> Floats:
        return self._distance(logits, self._symbol[self.automaton.run_batch(words - 1)])

    def right(self, word: Ids) -> Floats:
        return one_of(self._symbol[self.automaton.run_batch(word[None] - 1)[0]], len(self.net.output.symbols))

    def _distance(self, logits: Floats, wanted: Ids) -> Floats:
        right = logits.argmax(axis=-1) == wanted
        right &= np.isfinite(logits).all(axis=-1)
        if logits.shape[-1] > 1:
            known = np.where(np.isfinite(logits), logits, 0.0)
            second, first = np.moveaxis(np.partition(known, -2, axis=-1)[..., -2:], -1, 0)
            right &= first - second > self.TIE
        return np.where(right, 0.0, 1.0)

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        letters = [self.net.inputs[i] for i in word]
        return {
            "word": letters,
            "expected": self.automaton.run(letters)[-1],
            "found": self.net.output.symbols[int(logits[-1].argmax())],
        }

    REPEATED = 60  # at most so many short words are repeated
    WANDERING = 16  # so many random words stay out of traps

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Full-length words that random ones are not: repeated short words, one letter and then another, wanderers.

        Repetitions and changes drive counts to their ends; wanderers keep to the states from which most others can be
        reached, so that no sink swallows them.
        """
        letters, length = range(1, len(self.net.inputs)), self.net.max_length
        shorts = [[*short] for size in (1, 2) for short in product(letters, repeat=size)]
        words = [(first + short * length)[:length] for short in shorts for first in ([], *([a] for a in letters))]
        for cut in sorted({length // 2, max(length - 2, 0)}):
            words += [[a] * cut + [b] * (length - cut) for a in letters for b in letters if a != b]
        size = 3
        while len(letters) > 1 and len(letters) ** size <= self.REPEATED and size <= length:
            words += [(list(short) * length)[:length] for short in product(letters, repeat=size)]
            size += 1
        return [*words, *self._wanderers(rng)][:count]

    def _wanderers(self, rng: np.random.Generator) -> Iterator[list[int]]:
        table = self.automaton.table
        within = np.eye(len(table), dtype=bool)
        for _ in range(len(table)):
            within = within | within[table].any(axis=1)
        room = within.sum(axis=1)
        for _ in range(self.WANDERING):
            state, word = self.automaton.initial, []
            for _ in range(self.net.max_length):
                best = np.flatnonzero(room[table[state]] == room[table[state]].max())
                letter = int(rng.choice(best))
                word.append(letter + 1)
                state = int(table[state, letter])
            yield word


class FinalStateOracle(StateOracle):
    """An automaton's state after a whole word, the same answer at every position."""

    MIXED = 64  # words, at most
    TIE = 1e-12  # such nets lead by less the longer words are, and building refuses what rounding would decide

    def errors(self, words: Ids, logits: Floats) -> Floats:
        final = self._symbol[self.automaton.run_batch(words - 1)[:, -1:]]
        return self._distance(logits, np.broadcast_to(final, logits.shape[:2]))

    def right(self, word: Ids) -> Floats:
        return np.repeat(super().right(word)[-1:], len(word) + 1, axis=0)

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Words with any number of one letter among another, of full length."""
        letters, length = range(1, len(self.net.inputs)), self.net.max_length
        pairs = [(a, b) for a in letters for b in letters if a < b]
        shares = [(a, b, number) for a, b in pairs for number in range(length + 1)]
        picked = sorted(rng.permutation(len(shares))[: min(count, self.MIXED)].tolist())
        mixed = [[a] * number + [b] * (length - number) for a, b, number in (shares[i] for i in picked)]
        return [rng.permutation(word).tolist() for word in mixed]


def oracle_for(spec: object, net: SequenceArchitecture) -> Oracle:
    """The oracle of a spec for a network that was built from it."""
    if isinstance(spec, NGramModel):
        return NextTokenOracle(spec, net)
    if isinstance(spec, ProbabilisticAutomaton):
        return NextTokenOracle(spec.bigram, net)
    if isinstance(spec, Automaton):
        return FinalStateOracle(spec, net) if net.output.kind == "class" else StateOracle(spec, net)
    if isinstance(spec, SparseAveraging):
        return SetOracle(spec, net)
    if isinstance(spec, Task):
        return TaskOracle(spec, net)
    if isinstance(spec, Formula | Crasp):
        return TruthOracle(spec, net)
    if isinstance(spec, Program):
        return ProgramOracle(spec, net)
    if isinstance(spec, Grammar) and net.output.kind == "lm":
        return NextWordOracle(spec, net)
    if isinstance(spec, Dyck) and net.output.kind == "class":
        return MembershipOracle(spec, net)
    if isinstance(spec, Thinking):
        return ThoughtOracle(spec, net)
    if isinstance(spec, Associations | Facts):
        return RecallOracle(spec, net)
    if isinstance(spec, Sentences):
        return NextSetOracle(spec, net)
    if isinstance(spec, Knowledge):
        return AnswerOracle(spec, net)
    raise FolderError(f"there is no oracle for a spec of type {type(spec).__name__}")
