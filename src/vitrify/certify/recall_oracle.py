"""The oracle of associations and facts: the answer to every question, and nothing asked where there is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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

    def _expected(self, word: Ids) -> list[int | None]:
        """The number of the right answer after every prefix, where there is one."""
        words = [self.net.inputs[i] for i in word]
        found = (self.spec.answer(words[:length]) for length in range(len(words) + 1))
        return [None if answer is None else self._symbol[answer] for answer in found]

    def errors(self, words: Ids, logits: Floats) -> Floats:
        wrong = np.zeros(logits.shape[:2])
        for row, word in enumerate(words):
            for prefix, right in enumerate(self._expected(word)):
                if right is not None:
                    scores = logits[row, prefix]
                    others = np.delete(scores, right)
                    clear = np.isfinite(scores).all() and scores[right] - others.max(initial=-np.inf) > self.TIE
                    wrong[row, prefix] = 0.0 if clear else 1.0
        return wrong

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        return {
            "words": [self.net.inputs[i] for i in word],
            "expected": self.spec.answer([self.net.inputs[i] for i in word]),
            "found": self.net.output.symbols[int(logits[-1].argmax())],
        }

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        return self.language.questions(rng, count)
