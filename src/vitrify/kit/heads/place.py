"""AtPlace: a head that reads from the position whose number the query holds, or some places before its own."""

from __future__ import annotations

import numpy as np

from vitrify.kit.network import Affine, Attend, Builder, Space
from vitrify.net.transformer import Mask


def earlier(net: Builder, offset: int) -> Affine:
    """The place so many positions before this one; below 1 where there is none."""
    return Affine.of({net.index: [[1.0]]}, [-float(offset)])


def at_place(net: Builder, place: Affine, value: Affine, writes: Space, *, mask: Mask = "causal") -> Space:
    r"""The value at the position with a given number, 1 for the first token; the value at BOS for 0 and less.

    `place` is one whole number $p$, no larger than the position's own; with the mask `none` it may be larger, and
    beyond the end of the word the last token is read. The score $2pj - j^2 = p^2 - (p - j)^2$ of key
    $j$ leads by at least 1 at the $j \ge 0$ nearest to $p$, BOS being $j = 0$: no sink is needed, and a number costs
    one dimension however long the words are.
    """
    length = float(net.max_length)
    return net.add(
        Attend(
            name=f"at place: {writes.name}",
            query=place @ np.array([[2.0, 0.0]]) + Affine.constant([0.0, -1.0]),
            key=Affine.copy(net.index).beside(Affine.copy(net.square)),
            value=value,
            writes=writes,
            attention=net.attention,
            mask=mask,
            gap=1.0,
            bound=length * (2 * float(place.bound[0]) + length),
        )
    )
