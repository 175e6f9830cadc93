"""AtPosition: a head that reads from the position whose index the query holds, such as a fixed offset back."""

from __future__ import annotations

import numpy as np

from vitrify.kit.network import Affine, Builder, Space
from vitrify.net.transformer import Mask


def earlier(net: Builder, offset: int) -> Affine:
    """Return the index of the position `offset` back; below 1 where there is none."""
    return Affine.of({net.index: [[1.0]]}, [-float(offset)])


def at_position(net: Builder, position: Affine, value: Affine, writes: Space, *, mask: Mask = "causal") -> Space:
    r"""Return the value at the position with a given index, 1 for the first token; the value at BOS for 0 and less.

    `position` is one integer $p$, no larger than the query's own; with the mask `none` it may be larger, and beyond the
    end of the word the last token is read. The score $2pj - j^2 = p^2 - (p - j)^2$ of key $j$ is largest, by at least
    1, at the $j \ge 0$ nearest to $p$, BOS being $j = 0$: no sink is needed, and an index takes one dimension at any
    length.
    """
    length = float(net.max_length)
    return net.attend(
        f"at place: {writes.name}",
        query=position @ np.array([[2.0, 0.0]]) + Affine.constant([0.0, -1.0]),
        key=Affine.copy(net.index).beside(Affine.copy(net.square)),
        value=value,
        writes=writes,
        mask=mask,
        gap=1.0,
        bound=length * (2 * float(position.bound[0]) + length),
    )
