"""Symbols as points on a circle: how heads compare them, and how an answer is read."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.kit.heads.select import Test
from vitrify.kit.network import Affine, Circle, Readout, Space


def same(query: Space | Affine, key: Space | Affine, codes: Circle) -> Test:
    r"""Return the test whether two codes are equal: $c_q \cdot c_k / g$ with the gap $g$ of the codes; void is 0."""
    gap = min(codes.gap, codes.norm)
    query_code, key_code = (Affine.copy(part) if isinstance(part, Space) else part for part in (query, key))
    return Test(query_code * (1 / gap), key_code, codes.norm / gap)


def opposite(query: Space, key: Space, codes: Circle) -> Test:
    """Return the test whether two values add up to 0 modulo their number: the key is mirrored, then compared."""
    return same(query, Affine.copy(key) @ np.diag([1.0, -1.0]), codes)


def readout(answer: Space, codes: Circle) -> Readout:
    r"""Return the readout whose logit of each value $v$ is $c_v \cdot x / g$: the margin is 1, and ½ under errors.

    Before division by $g$, the margin over another value at the distance $d$ is $d^2/2$, less at most
    $\sqrt2\,d\,\varepsilon$ for an error $\varepsilon$ of each coordinate; $d \ge 2\sin(\pi/N)$.
    """
    count = len(codes.values)
    distance = 2 * np.sin(np.pi / count) if count > 1 else 1.0
    return Readout(((answer, codes.codes.T / codes.gap),), np.zeros(count), {answer: float(distance / (4 * 2**0.5))})


def table(codes: Circle, numbers: Ints) -> Floats:
    """Return the codes of values by index; -1 is no value, a row of zeros."""
    rows: Floats = np.vstack([codes.codes, np.zeros(codes.size)])
    return rows[numbers]
