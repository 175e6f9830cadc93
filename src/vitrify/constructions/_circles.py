"""Symbols as points on a circle: how heads compare them, and how an answer is read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vitrify.kit.heads.select import Test
from vitrify.kit.network import Affine, Readout, Space
from vitrify.net.spaces import Circle


def same(query: Space | Affine, key: Space | Affine, codes: Circle) -> Test:
    r"""The test whether two codes are equal: $c_q \cdot c_k / g$, with the gap $g$ of the codes, none being zero."""
    gap = min(codes.gap, codes.norm)
    asked, found = (Affine.copy(part) if isinstance(part, Space) else part for part in (query, key))
    return Test(asked * (1 / gap), found, codes.norm / gap)


def opposite(query: Space, key: Space, codes: Circle) -> Test:
    """The test whether two values add up to 0 modulo their number: the key's mirror image is the query's code."""
    return same(query, Affine.copy(key) @ np.diag([1.0, -1.0]), codes)


def readout(answer: Space, codes: Circle) -> Readout:
    r"""The logit of each value is $c_v \cdot x / g$: the right one leads by 1, and by half where $x$ is a little off.

    The lead over another value at the distance $d$ is $d^2/2$, less at most $\sqrt2\,d\,\varepsilon$ for an error
    $\varepsilon$ of each coordinate; $d \ge 2\sin(\pi/N)$.
    """
    count = len(codes.values)
    distance = 2 * np.sin(np.pi / count) if count > 1 else 1.0
    return Readout(((answer, codes.codes.T / codes.gap),), np.zeros(count), {answer: float(distance / (4 * 2**0.5))})


def table(codes: Circle, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """The codes of values by their numbers; -1 is no value, a row of zeros."""
    rows: NDArray[np.float64] = np.vstack([codes.codes, np.zeros(codes.size)])
    return rows[numbers]
