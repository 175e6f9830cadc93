"""The oracle of networks that say whether a word is in a Dyck language."""

from __future__ import annotations

import numpy as np

from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.meanings import Beginnings, MeaningOracle
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.languages.dyck import Dyck


@oracle(Dyck, output="class")
class MembershipOracle(MeaningOracle):
    """Oracle of membership: whether the complete word is in a language, the same answer at every position.

    Random words are hardly ever in it, so it asks about members, and about members with one symbol changed, missing or
    doubled.
    """

    SENTENCES = 200  # of each kind, at most

    def __init__(self, spec: Dyck, net: SequenceArchitecture) -> None:
        super().__init__(spec.meanings()["class"], net)
        self._sentences = Beginnings(spec, net)

    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        share = min(count // 8, self.SENTENCES)
        sentences = self._sentences.cases(rng, share)
        sentences += [self._sentences.draw(rng) for _ in range(share)]
        return [*sentences, *(self._changed(word, rng) for word in sentences for _ in range(3))][:count]

    def _changed(self, word: list[int], rng: np.random.Generator) -> list[int]:
        """A word with one symbol changed, missing or doubled."""
        if not word:
            return [1]
        at = int(rng.integers(len(word)))
        instead = ([int(rng.integers(1, len(self.net.inputs)))], [], [word[at], word[at]])[int(rng.integers(3))]
        return [*word[:at], *instead, *word[at + 1 :]][: self.net.max_length]
