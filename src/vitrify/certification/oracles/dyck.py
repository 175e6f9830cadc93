"""The oracle of networks that say whether a word is in a Dyck language."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.meanings import Beginnings
from vitrify.certification.oracles.right import Oracle, symbol_indices
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.languages.dyck import ANSWERS, Dyck


@oracle(Dyck, output="class")
class MembershipOracle(Oracle):
    """Oracle of membership: whether the complete word is in a language, the same answer at every position.

    Random words are hardly ever in it, so it asks about members, and about members with one symbol changed, missing or
    doubled.
    """

    answer = "symbol"
    SENTENCES = 200  # of each kind, at most

    def __init__(self, spec: Dyck, net: SequenceArchitecture) -> None:
        self._answers = symbol_indices(net, ANSWERS)
        self.spec, self.net, self._sentences = spec, net, Beginnings(spec, net)

    def known(self, words: Ints) -> Ints:
        member = [self.spec.holds([self.net.inputs[i] for i in word]) for word in words.tolist()]
        return np.repeat(self._answers[np.array(member, dtype=np.int64)][:, None], words.shape[1] + 1, axis=1)

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
