"""Linear recurrences as operations: what a cell beside the heads keeps, and the running sum that is made of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vitrify.kit.affine import UNIT_ROUNDOFF, Affine, Space
from vitrify.net.spaces import Circle, Integers, Reals

if TYPE_CHECKING:
    from vitrify.kit.network import Builder

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Recur:
    r"""A linear recurrence $h_t = h_{t-1} A + d_t$ from $h = 0$, whose state fills one space at every position.

    `drives` is $d$, read at each position, BOS too; it has no bias. An error of 1 in every $d_t$ moves a coordinate of
    the state by `lasting` at most, and rounding adds `error` (in float64).
    """

    name: str
    drives: Affine
    transition: Floats
    writes: Space
    lasting: float
    error: float = 0.0

    def __post_init__(self) -> None:
        if self.drives.bias.any():
            raise ValueError(f"what drives {self.name!r} must be zero where all that it reads is zero")

    @property
    def reads(self) -> tuple[Space, ...]:
        return self.drives.spaces


def running_sum(
    net: Builder, value: Affine, labels: Sequence[str], high: float, *, name: str, low: float = 0.0
) -> Space:
    """Exact sums of a value, which must be 0 at BOS, over the tokens read so far: a recurrence that forgets nothing.

    It does what `count` does with a head, without a sink, a position or an attention layer. Whole numbers below 2^53
    are added without rounding.
    """
    positions = net.max_length + net.pads
    whole = all(not isinstance(s.kind, Reals | Circle) and np.array_equal(m, np.round(m)) for s, m in value.parts)
    return net.add(
        Recur(
            name=f"running sum: {name}",
            drives=value,
            transition=np.eye(value.size),
            writes=Space(name, Integers(tuple(labels), low, high)),
            lasting=float(positions),
            error=0.0 if whole else positions * UNIT_ROUNDOFF * max(high, -low),
        )
    )
