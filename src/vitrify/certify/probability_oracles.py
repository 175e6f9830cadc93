"""Oracles of language models: next-word probabilities, of n-gram models and of grammars."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.right import where_any
from vitrify.certify.sentence_oracles import Beginnings
from vitrify.errors import FolderError
from vitrify.kit.heads.logsum import floor_below, guessed, stepped
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.labels import SpaceLabel
from vitrify.net.run import log_probabilities
from vitrify.net.spaces import Reals
from vitrify.spec.grammar import Grammar
from vitrify.spec.grammar_sums import Sums, log, sums
from vitrify.spec.ngram import BEGIN, NGramModel

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


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
        return distances(self.net, logits, np.exp(self._expected(words)))

    def right(self, word: Ids) -> Floats:
        found: Floats = np.exp(self._expected(word[None])[0])
        return found

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        return furthest(self.net, word, logits[-1], np.exp(self._expected(word[None])[0, -1]))

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


def distances(net: SequenceArchitecture, logits: Floats, expected: Floats) -> Floats:
    """The largest difference of two probabilities [word, prefix]; infinite where there is no number."""
    errors: Floats = np.abs(np.exp(log_probabilities(net.output, logits)) - expected).max(axis=-1)
    return np.where(np.isfinite(errors), errors, np.inf)


def furthest(net: SequenceArchitecture, word: Ids, logits: Floats, expected: Floats) -> dict[str, object]:
    """The symbol whose probability is furthest off."""
    found = np.exp(log_probabilities(net.output, logits))
    symbol = int(np.abs(found - expected).argmax())
    return {
        "history": [net.inputs[i] for i in word],
        "next": net.output.symbols[symbol],
        "expected": float(expected[symbol]),
        "found": float(found[symbol]),
    }


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
        return distances(self.net, logits, np.stack([self._expected(word) for word in words]))

    def right(self, word: Ids) -> Floats:
        return where_any(self._expected(word))

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        return furthest(self.net, word, logits[-1], self._expected(word)[-1])

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        return self.language.questions(rng, count)
