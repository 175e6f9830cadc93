"""Match3 nearby: whether this number and some two numbers within a few places of it add up to 0 modulo M.

Both may be the same, or this one itself. (Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from vitrify.spec.tasks._matching import Matching
from vitrify.spec.tasks.catalogue import Within


@dataclass(frozen=True)
class Match3Local(Matching):
    r"""`yes` where $x_i + x_j + x_k = 0$ modulo M for some $j, k$ with $|i - j|, |i - k| \le$ `reach`.

    >>> Match3Local(modulus=10, length=8, reach=1).answers(["3", "4", "1"])
    ['yes', 'yes', 'no']
    """

    name: ClassVar[str] = "match3-local"

    reach: Annotated[int, Within(1, 16)]

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if given["reach"] >= given["length"]:
            yield "reach", f"reach must be below length = {given['length']}, is {given['reach']}"

    def sums(self, numbers: Sequence[int]) -> Sequence[Set[int]]:
        near = [numbers[max(0, i - self.reach) : i + self.reach + 1] for i in range(len(numbers))]
        return [{(a + b) % self.modulus for a in some for b in some} for some in near]


TASK = Match3Local
