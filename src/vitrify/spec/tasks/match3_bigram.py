"""Match3 with bigrams: does each number sum to 0 modulo M with some two adjacent numbers?

(Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.)
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from vitrify.spec.computation.matching import Matching


@dataclass(frozen=True)
class Match3Bigram(Matching):
    """`yes` where $x_i + x_j + x_{j+1} = 0$ modulo M for some $j$.

    >>> Match3Bigram(modulus=10, length=8).answers(["3", "4", "7", "9"])
    ['yes', 'yes', 'no', 'yes']
    """

    name: ClassVar[str] = "match3-bigram"
    SAMPLES: ClassVar = {"match3-bigram": {"modulus": 31, "length": 24}}

    def sums(self, numbers: Sequence[int]) -> Sequence[Set[int]]:
        return [{(a + b) % self.modulus for a, b in pairwise(numbers)}] * len(numbers)


TASK = Match3Bigram
