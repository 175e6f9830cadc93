"""Match2: does the number at each position sum to 0 modulo M with some number of the word, possibly itself?

(Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.)
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from vitrify.spec.computation.matching import Matching


@dataclass(frozen=True)
class Match2(Matching):
    """`yes` where $x_i + x_j = 0$ modulo M for some $j$.

    >>> Match2(modulus=10, length=8).answers(["3", "4", "7", "5"])
    ['yes', 'no', 'yes', 'yes']
    """

    name: ClassVar[str] = "match2"
    SAMPLES: ClassVar = {"match2": {"modulus": 101, "length": 32}}

    def sums(self, numbers: Sequence[int]) -> Sequence[Set[int]]:
        return [{*numbers}] * len(numbers)


TASK = Match2
