"""Match2: whether some number of the word, perhaps this one itself, adds up with this one to 0 modulo M.

(Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.)
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from vitrify.spec.tasks._matching import Matching


@dataclass(frozen=True)
class Match2(Matching):
    """`yes` where $x_i + x_j = 0$ modulo M for some $j$.

    >>> Match2(modulus=10, length=8).answers(["3", "4", "7", "5"])
    ['yes', 'no', 'yes', 'yes']
    """

    name: ClassVar[str] = "match2"

    def sums(self, numbers: Sequence[int]) -> Sequence[Set[int]]:
        return [{*numbers}] * len(numbers)


TASK = Match2
