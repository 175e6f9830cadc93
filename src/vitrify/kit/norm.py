"""Layer norm over the dimensions of one space: readers see it normalized, the residual stream holds it as it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from vitrify.kit.affine import UNIT_ROUNDOFF, Affine, Space


@dataclass(frozen=True, eq=False)
class Norm:
    r"""The space `source` scaled to mean 0 and variance 1 over its own dimensions; equal coordinates become zeros.

    Nothing is written: a reader of `writes` reads the dimensions of `source` through the norm before its attention or
    MLP. The same attention or MLP can't read `source` itself. `min_rms` $= m$ is the least root mean square of the
    source (less its mean) over every input where it matters. With noise up to $e < m/2$ on each of $n$ coordinates the
    direction turns by at most $2e/m$, so a coordinate moves by at most $2\sqrt{n}\,e/m$. For $n = 2$ only the sign of
    the difference is left, and no noise passes.
    """

    name: str
    source: Space
    writes: Space
    min_rms: float
    joint: ClassVar[None] = None
    passes: ClassVar[tuple[Affine, ...]] = ()

    @property
    def reads(self) -> tuple[Space, ...]:
        return (self.source,)

    @property
    def margin(self) -> Mapping[Space, float]:
        return {self.source: self.min_rms / 2}

    @property
    def gain(self) -> Mapping[Space, float]:
        return {self.source: 2.0 * math.sqrt(self.source.size) / self.min_rms if self.source.size > 2 else 0.0}

    @property
    def error(self) -> float:
        """Return a bound on the rounding error (in float64)."""
        return 4 * UNIT_ROUNDOFF * (self.source.size + 4) * math.sqrt(self.source.size)
