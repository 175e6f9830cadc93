"""Oracles: what a network built from a spec must answer after every prefix, from the spec's own semantics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice, product
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.knowledge_oracle import AnswerOracle
from vitrify.certify.program_oracle import FormulaOracle, ProgramOracle
from vitrify.errors import FolderError
from vitrify.kit.heads.logsum import floor_below, guessed, stepped
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.labels import SpaceLabel
from vitrify.net.run import log_probabilities
from vitrify.net.spaces import Reals
from vitrify.net.weights import Weights
from vitrify.spec.automaton import Automaton
from vitrify.spec.grammar import Grammar
from vitrify.spec.grammar_sums import Sums, log, sums
from vitrify.spec.knowledge import Knowledge
from vitrify.spec.ltl import Formula
from vitrify.spec.ngram import BEGIN, END, NGramModel
from vitrify.spec.program_file import Program

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


class NextTokenOracle:
    """A language model's next-token probabilities: the distance is the largest difference of two probabilities."""

    language = None

    def __init__(self, model: NGramModel, net: SequenceArchitecture) -> None:
        if net.output.symbols != model.predicted or set(net.inputs) != {BEGIN, *model.readable}:
            raise FolderError("the network and its spec do not speak about the same words")
        self.model, self.net = model, net
        self.exact = not net.soft
        self._word = model.ids(net.inputs)  # input id → vocabulary id

    def tolerance(self) -> float:
        return 1e-12 if self.exact else 1e-9

    def _expected(self, words: Ids) -> Floats:
        """Log-probabilities [word, prefix, symbol]; each distinct context is asked about once."""
        count, length = words.shape
        width = self.model.order - 1
        history = np.concatenate([np.full((count, width), -1), np.zeros((count, 1), dtype=int), words], axis=1)
        seen = np.where(history >= 0, self._word[history], -1)
        windows = np.lib.stride_tricks.sliding_window_view(seen, width + 1, axis=1)[:, :, 1:]
        windows = windows.reshape(count * (length + 1), width)
        distinct, place = np.unique(windows, axis=0, return_inverse=True)
        known: Floats = self.model.next_log_probs_of_contexts(distinct)
        return known[place.ravel()].reshape(count, length + 1, -1)

    def errors(self, words: Ids, logits: Floats) -> Floats:
        return _distances(self.net, logits, np.exp(self._expected(words)))

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        return _furthest(self.net, word, logits[-1], np.exp(self._expected(word[None])[0, -1]))

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Every listed context, first in a word or after a few random symbols; a random part if they are many."""
        input_of = {word: place for place, word in enumerate(self.net.inputs)}
        places = [(level, i) for level, index in enumerate(self.model.contexts()) for i in index.tolist()]
        if len(places) > count:
            places = [places[i] for i in sorted(rng.choice(len(places), size=count, replace=False).tolist())]
        asked = []
        for level, i in places:
            words = [input_of[self.model.vocabulary[w]] for w in self.model.words_of(level, np.array([i]))[0].tolist()]
            if words[0] == 0:
                words = words[1:]
            elif (room := self.net.max_length - len(words)) > 0:
                words = rng.integers(1, len(self.net.inputs), size=rng.integers(1, min(room, 4) + 1)).tolist() + words
            asked.append(words)
        return [words for words in asked if len(words) <= self.net.max_length]


def _distances(net: SequenceArchitecture, logits: Floats, expected: Floats) -> Floats:
    """The largest difference of two probabilities [word, prefix]; infinite where there is no number."""
    errors: Floats = np.abs(np.exp(log_probabilities(net.output, logits)) - expected).max(axis=-1)
    return np.where(np.isfinite(errors), errors, np.inf)


def _furthest(net: SequenceArchitecture, word: Ids, logits: Floats, expected: Floats) -> dict[str, object]:
    """The symbol whose probability is furthest off."""
    found = np.exp(log_probabilities(net.output, logits))
    symbol = int(np.abs(found - expected).argmax())
    return {
        "history": [net.inputs[i] for i in word],
        "next": net.output.symbols[symbol],
        "expected": float(expected[symbol]),
        "found": float(found[symbol]),
    }


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
        right = logits.argmax(axis=-1) == self._symbol[self.automaton.run_batch(words - 1)]
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


@runtime_checkable
class Sentences(Protocol):
    """A spec that says which words may come next, and what its sentences are."""

    @property
    def vocabulary(self) -> tuple[str, ...]: ...

    def next_words_along(self, sentence: Sequence[str]) -> tuple[frozenset[str], ...]: ...

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]: ...

    def examples(self) -> Iterator[tuple[str, ...]]: ...

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]: ...


class Beginnings:
    """What may be asked of a net whose spec has sentences: beginnings of these."""

    def __init__(self, spec: Sentences, net: SequenceArchitecture) -> None:
        if net.inputs[1:] != spec.vocabulary or net.output.symbols != (*spec.vocabulary, END):
            raise FolderError("the network and its spec do not speak about the same words")
        self.spec, self.net = spec, net
        self._input = {word: place for place, word in enumerate(net.inputs)}

    def beginnings(self) -> Iterator[list[int]]:
        return map(self._cut, self.spec.prefixes(self.net.max_length))

    def draw(self, rng: np.random.Generator) -> list[int]:
        return self._cut(self.spec.draw(rng))

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Sentences that have every word at every place where it may stand; a random part if they are many."""
        asked = [self._cut(sentence) for sentence in islice(self.spec.examples(), 100 * count)]
        if len(asked) > count:
            asked = [asked[i] for i in sorted(rng.choice(len(asked), size=count, replace=False).tolist())]
        return asked

    def _cut(self, words: Sequence[str]) -> list[int]:
        return [self._input[word] for word in words[: self.net.max_length]]


class NextSetOracle:
    """The set of words that may come next: the distance is 0 or 1; asked about beginnings of sentences only.

    A logit of 0 counts as wrong on either side: rounding would decide it.
    """

    SHOWN = 5  # words of each kind in a witness
    TIE = 1e-6  # logits nearer to 0 than this are none
    REMEMBERED = 1 << 12  # sentences whose answers are kept for the next variant of the net

    def __init__(self, spec: Sentences, net: SequenceArchitecture) -> None:
        self.language = Beginnings(spec, net)
        self.spec, self.net = spec, net
        self._symbol = {word: place for place, word in enumerate(net.output.symbols)}
        self._remembered = lru_cache(maxsize=self.REMEMBERED)(self._legal)

    def tolerance(self) -> float:
        return 0.0

    def _expected(self, word: Ids) -> NDArray[np.bool_]:
        """Which symbols may come next [prefix, symbol]."""
        return self._remembered(tuple(word.tolist()))

    def _legal(self, word: tuple[int, ...]) -> NDArray[np.bool_]:
        legal = np.zeros((len(word) + 1, len(self._symbol)), dtype=bool)
        for row, allowed in zip(legal, self.spec.next_words_along([self.net.inputs[i] for i in word]), strict=True):
            row[[self._symbol[symbol] for symbol in allowed]] = True
        return legal

    def errors(self, words: Ids, logits: Floats) -> Floats:
        right = [((found > 0) == self._expected(word)).all(axis=-1) for word, found in zip(words, logits, strict=True)]
        clear = (np.isfinite(logits) & (np.abs(logits) > self.TIE)).all(axis=-1)
        return np.where(np.array(right) & clear, 0.0, 1.0)

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        found, expected = logits[-1] > 0, self._expected(word)[-1]
        return {
            "history": [self.net.inputs[i] for i in word],
            "missing": self._some(expected & ~found),
            "too many": self._some(found & ~expected),
            "undecided": self._some(~(np.abs(logits[-1]) > self.TIE)),
        }

    def _some(self, chosen: NDArray[np.bool_]) -> list[str]:
        return [self.net.output.symbols[i] for i in np.flatnonzero(chosen)[: self.SHOWN].tolist()]

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        return self.language.questions(rng, count)


class NextWordOracle:
    """The exact probabilities of the next word in a grammar, asked about beginnings of sentences only.

    The distance is the largest difference of two probabilities. Rules of a grammar without probabilities count as
    equally probable. Every distinct beginning is parsed once. The numbers on the way are logarithms of the weights in
    `spec/grammar_sums.py`; that of 0 must only be low.
    """

    LOW = 10.0  # above the least number that a space holds

    def __init__(self, grammar: Grammar, net: SequenceArchitecture) -> None:
        self.language = Beginnings(grammar, net)
        self.grammar = grammar if grammar.probabilistic else grammar.uniform()
        self.net = net
        self._known: dict[tuple[int, ...], Floats] = {}
        self._values: dict[tuple[int, ...], dict[str, Floats]] = {}

    def tolerance(self) -> float:
        return 1e-9

    def _expected(self, word: Ids) -> Floats:
        """Probabilities [prefix, symbol]."""
        ids = tuple(word.tolist())
        if ids not in self._known:
            for place, chances in enumerate(self.grammar.next_word_probs_along([self.net.inputs[i] for i in ids])):
                row = np.array([float(chances.get(symbol, 0)) for symbol in self.net.output.symbols])
                self._known[ids[:place]] = row
        return np.stack([self._known[ids[:place]] for place in range(len(ids) + 1)])

    def strayed(self, words: Ids, label: SpaceLabel, vectors: Floats) -> float | None:
        if not isinstance(label.kind, Reals) or not label.name.startswith(("sums of", "products of", "last word")):
            return None
        names = label.kind.labels
        back = int(label.name.partition(" @ -")[2] or 0)  # what was fetched from so many places back
        expected = np.full(vectors.shape, -np.inf)
        for row, word in zip(expected, words, strict=True):
            whole = np.stack([self._weights(word)[name] for name in names], axis=-1)
            row[back:] = whole[: max(len(whole) - back, 0)]
        meant = self._meant(label.name.rpartition(", ")[2], names, expected)
        low = np.maximum(vectors - (label.kind.low + self.LOW), 0.0)
        return float(np.where(np.isfinite(meant), np.abs(vectors - meant), low).max())

    def _meant(self, step: str, names: Sequence[str], logs: Floats) -> Floats:
        """What a step on the way to a logarithm is meant to hold: a guess, a better one, or the logarithm itself."""
        if step not in ("guessed", "step 1"):
            return logs
        ranges = {str(found.weight): (found.low, found.high) for found in self._sums.listed}
        floor = floor_below(self._sums.low, self._sums.most_rows)
        guesses = np.stack([guessed(logs[..., i], *ranges[name], floor) for i, name in enumerate(names)], axis=-1)
        return guesses if step == "guessed" else np.where(np.isfinite(logs), stepped(logs, guesses), logs)

    def _weights(self, word: Ids) -> dict[str, Floats]:
        """The logarithms of all weights after each number of words, by name."""
        ids = tuple(word.tolist())
        if ids not in self._values:
            values = self._sums.values([self.net.inputs[i] for i in ids])
            logs = {str(w): [log(x) if x else -np.inf for x in numbers] for w, numbers in values.items()}
            self._values[ids] = {name: np.array(numbers) for name, numbers in logs.items()}
        return self._values[ids]

    @cached_property
    def _sums(self) -> Sums:
        return sums(self.grammar)

    def errors(self, words: Ids, logits: Floats) -> Floats:
        return _distances(self.net, logits, np.stack([self._expected(word) for word in words]))

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        return _furthest(self.net, word, logits[-1], self._expected(word)[-1])

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        return self.language.questions(rng, count)


def oracle_for(spec: object, net: SequenceArchitecture) -> Oracle:
    """The oracle of a spec for a network that was built from it."""
    if isinstance(spec, NGramModel):
        return NextTokenOracle(spec, net)
    if isinstance(spec, Automaton):
        return StateOracle(spec, net)
    if isinstance(spec, Formula):
        return FormulaOracle(spec, net)
    if isinstance(spec, Program):
        return ProgramOracle(spec, net)
    if isinstance(spec, Grammar) and net.output.kind == "lm":
        return NextWordOracle(spec, net)
    if isinstance(spec, Sentences):
        return NextSetOracle(spec, net)
    if isinstance(spec, Knowledge):
        return AnswerOracle(spec, net)
    raise FolderError(f"there is no oracle for a spec of type {type(spec).__name__}")
