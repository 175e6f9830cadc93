"""A norm over the dimensions of one space: how readers see it, not what the stream holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from vitrify.kit.affine import UNIT_ROUNDOFF, Affine, Space


@dataclass(frozen=True, eq=False)
class Norm:
    r"""A space with mean 0 and variance 1 over its own dimensions, at every position; equal numbers become zeros.

    Nothing is written: who reads `writes` finds it in the dimensions of `source`, through the norm that stands before
    every half layer. The space itself can't be read in the same half layer. `least` is the least root mean square of
    the source (less its mean) over every input where it matters. With noise up to $e < \text{least}/2$ on each of $n$
    coordinates the direction turns by at most $2e/\text{least}$, so a coordinate moves by $2\sqrt{n}\,e/\text{least}$;
    of two numbers only the sign of their difference is left, and no noise passes at all.
    """

    name: str
    source: Space
    writes: Space
    least: float
    joint: ClassVar[None] = None
    passes: ClassVar[tuple[Affine, ...]] = ()

    @property
    def reads(self) -> tuple[Space, ...]:
        return (self.source,)

    @property
    def margin(self) -> Mapping[Space, float]:
        return {self.source: self.least / 2}

    @property
    def gain(self) -> Mapping[Space, float]:
        return {self.source: 2.0 * math.sqrt(self.source.size) / self.least if self.source.size > 2 else 0.0}

    @property
    def error(self) -> float:
        """What rounding adds (in float64)."""
        return 4 * UNIT_ROUNDOFF * (self.source.size + 4) * math.sqrt(self.source.size)
