"""The oracle of associations and facts: the answer to every question, and nothing asked where there is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.right import one_of
from vitrify.certify.sentence_oracles import Beginnings
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.associations import Associations
from vitrify.spec.facts import Facts

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


class RecallOracle:
    """The right answer leads all others: the distance is 0 or 1."""

    TIE = 1e-6  # a lead below this is none

    def __init__(self, spec: Associations | Facts, net: SequenceArchitecture) -> None:
        self.language = Beginnings(spec, net, spec.answers)
        self.spec, self.net = spec, net
        self._symbol = {answer: place for place, answer in enumerate(spec.answers)}

    def tolerance(self) -> float:
        return 0.0

    def _expected(self, word: Ids) -> list[int]:
        """The number of the right answer after every prefix; -1 where there is none."""
        words = [self.net.inputs[i] for i in word]
        found = (self.spec.answer(words[:length]) for length in range(len(words) + 1))
        return [-1 if answer is None else self._symbol[answer] for answer in found]

    def asked(self, words: Ids) -> NDArray[np.bool_]:
        """Where there is a question, [word, prefix]."""
        return np.array([self._expected(word) for word in words]) >= 0

    def errors(self, words: Ids, logits: Floats) -> Floats:
        expected = np.array([self._expected(word) for word in words])
        asked = expected >= 0
        scores, rows = logits[asked], np.arange(int(asked.sum()))
        own = scores[rows, expected[asked]]
        others = scores.copy()
        others[rows, expected[asked]] = -np.inf
        clear = np.isfinite(scores).all(axis=1) & (own - others.max(axis=1) > self.TIE)
        wrong = np.zeros(expected.shape)
        wrong[asked] = np.where(clear, 0.0, 1.0)
        return wrong

    def right(self, word: Ids) -> Floats:
        return one_of(self._expected(word), len(self._symbol))

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        return {
            "words": [self.net.inputs[i] for i in word],
            "expected": self.spec.answer([self.net.inputs[i] for i in word]),
            "found": self.net.output.symbols[int(logits[-1].argmax())],
        }

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        return self.language.questions(rng, count)
