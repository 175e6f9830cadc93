"""Local Match3: does each number sum to 0 modulo M with some two numbers within a few positions of it?

Both may be the same, or this one itself. (Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Annotated, ClassVar

from vitrify.parameters import Within
from vitrify.spec.computation.matching import Matching


@dataclass(frozen=True)
class Match3Local(Matching):
    r"""`yes` where $x_i + x_j + x_k = 0$ modulo M for some $j, k$ with $|i - j|, |i - k| \le$ `reach`.

    >>> Match3Local(modulus=10, length=8, reach=1).answers(["3", "4", "1"])
    ['yes', 'yes', 'no']
    """

    name: ClassVar[str] = "match3-local"
    SAMPLES: ClassVar = {"match3-local": {"modulus": 31, "length": 24, "reach": 2}}

    reach: Annotated[int, Within(1, 64)]

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.reach >= self.length:
            yield "reach", f"must be below length = {self.length}, not {self.reach}"

    def sums(self, numbers: Sequence[int]) -> Sequence[Set[int]]:
        windows = [numbers[max(0, i - self.reach) : i + self.reach + 1] for i in range(len(numbers))]
        return [{(a + b) % self.modulus for a in window for b in window} for window in windows]


TASK = Match3Local
