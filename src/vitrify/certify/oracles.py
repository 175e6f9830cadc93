"""Oracles: what a network built from a spec must answer after every prefix, from the spec's own semantics."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import FolderError
from vitrify.net.architecture import Transformer
from vitrify.net.run import log_probabilities
from vitrify.spec.automaton import Automaton
from vitrify.spec.ngram import BEGIN, NGramModel

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


class Oracle(Protocol):
    """The right answers for a network's input words."""

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


class NextTokenOracle:
    """A language model's next-token probabilities: the distance is the largest difference of two probabilities."""

    def __init__(self, model: NGramModel, net: Transformer) -> None:
        if net.output.symbols != model.predicted or set(net.inputs) != {BEGIN, *model.readable}:
            raise FolderError("the network and its spec do not speak about the same words")
        self.model, self.net = model, net
        self.exact = all(head.attention != "softmax" for block in net.blocks for head in block.heads)
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
        found = np.exp(log_probabilities(self.net.output, logits))
        errors: Floats = np.abs(found - np.exp(self._expected(words))).max(axis=-1)
        return np.where(np.isfinite(errors), errors, np.inf)

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        found = np.exp(log_probabilities(self.net.output, logits[-1]))
        expected = np.exp(self._expected(word[None])[0, -1])
        symbol = int(np.abs(found - expected).argmax())
        return {
            "history": [self.net.inputs[i] for i in word],
            "next": self.net.output.symbols[symbol],
            "expected": float(expected[symbol]),
            "found": float(found[symbol]),
        }

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


class StateOracle:
    """An automaton's state after every letter: the distance is 0 or 1."""

    def __init__(self, automaton: Automaton, net: Transformer) -> None:
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
        return np.where(right & np.isfinite(logits).all(axis=-1), 0.0, 1.0)

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        letters = [self.net.inputs[i] for i in word]
        return {
            "word": letters,
            "expected": self.automaton.run(letters)[-1],
            "found": self.net.output.symbols[int(logits[-1].argmax())],
        }

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:  # noqa: ARG002
        """Full-length words of one letter, and of one letter and then another: they drive counts to their ends."""
        letters, length = range(1, len(self.net.inputs)), self.net.max_length
        words = [[a] * length for a in letters]
        words += [[a] * (length // 2) + [b] * (length - length // 2) for a in letters for b in letters if a != b]
        return words[:count]


def oracle_for(spec: object, net: Transformer) -> Oracle:
    """The oracle of a spec for a network that was built from it."""
    if isinstance(spec, NGramModel):
        return NextTokenOracle(spec, net)
    if isinstance(spec, Automaton):
        return StateOracle(spec, net)
    raise FolderError(f"there is no oracle for a spec of type {type(spec).__name__}")
