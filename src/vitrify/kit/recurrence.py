"""Linear recurrences: an operation that runs in a cell beside the heads, and the running sum made of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vitrify.kit.affine import UNIT_ROUNDOFF, Affine, Space
from vitrify.net.spaces import Circle, Integers, Reals

if TYPE_CHECKING:
    from vitrify.kit.network import Builder


@dataclass(frozen=True, eq=False)
class Recur:
    r"""A recurrence $h_t = h_{t-1} \odot s_t + d_t$ from $h = 0$, whose state fills one space at every position.

    `scale` is $s$ and `drives` is $d$, both read at every position, BOS included, without a bias. The scales are at
    most 1 in size and must be read without error. An error of 1 in every $d_t$ moves a coordinate of the state by
    `error_gain` at most, and rounding adds `error` (in float64). A `full` recurrence is $h_t = h_{t-1} S_t + d_t$ with
    the rows of the matrix $S_t$ in `scale`, one after the other; all that it reads must be exact.
    """

    name: str
    scale: Affine
    drives: Affine
    writes: Space
    error_gain: float
    error: float = 0.0
    full: bool = False

    def __post_init__(self) -> None:
        if self.drives.bias.any() or self.scale.bias.any():
            raise ValueError(f"{self.name!r} can't read a constant: its inputs must be in the residual stream")

    @property
    def reads(self) -> tuple[Space, ...]:
        return tuple(dict.fromkeys(self.scale.spaces + self.drives.spaces))


def running_sum(
    net: Builder, value: Affine, labels: Sequence[str], high: float, *, carry: Affine, name: str, low: float = 0.0
) -> Space:
    """Return the exact sum of each coordinate of a value over the tokens read so far.

    `carry` is 1 where the sum continues and 0 where it restarts; at BOS the value must be 0. `count` does the same with
    a head; this needs no sink, no position and no attention layer. Integers below 2^53 are added without rounding.
    """
    positions = net.max_length + net.pads
    integral = all(not isinstance(s.kind, Reals | Circle) and np.array_equal(m, np.round(m)) for s, m in value.parts)
    return net.add(
        Recur(
            name=f"running sum: {name}",
            scale=carry @ np.ones((1, value.size)),
            drives=value,
            writes=Space(name, Integers(tuple(labels), low, high)),
            error_gain=float(positions),
            error=0.0 if integral else positions * UNIT_ROUNDOFF * max(high, -low),
        )
    )
