"""AtPlace: a head that reads from the position whose number the query holds; Neighbour: from some places away."""

from __future__ import annotations

import numpy as np

from vitrify.kit.network import Affine, Attend, Builder, Space


def earlier(net: Builder, offset: int) -> Affine:
    """The place so many positions before this one; below 1 where there is none."""
    return Affine.of({net.index: [[1.0]]}, [-float(offset)])


def at_place(net: Builder, place: Affine, value: Affine, writes: Space) -> Space:
    r"""The value at the position with a given number, 1 for the first token; the value at BOS for 0 and less.

    `place` is one whole number $p$, no larger than the position's own. The score $2pj - j^2 = p^2 - (p - j)^2$ of key
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
            gap=1.0,
            bound=length * (2 * float(place.bound[0]) + length),
        )
    )


def neighbour(net: Builder, offset: int, value: Affine, writes: Space) -> Space:
    r"""The value so many places on, or back for an offset below 0; the value at BOS where the word has no such place.

    With $p = i + \text{offset}$, key $j$ scores $2pj - j^2$ as for a place: $p^2$ at $j = p$, at most $p^2 - 1$
    elsewhere. BOS scores $p^2 - \tfrac12$, a function of the index and its square. So the gap is one half.
    """
    length, far = float(net.max_length), float(net.max_length + abs(offset))
    level = Affine.of({net.index: [[2.0 * offset]], net.square: [[1.0]]}, [offset**2 - 0.5])
    place = Affine.of({net.index: [[2.0]]}, [2.0 * offset])
    return net.add(
        Attend(
            name=f"neighbour at {offset:+}: {writes.name}",
            query=place.beside(Affine.constant(-1.0)).beside(level),
            key=Affine.copy(net.index).beside(Affine.copy(net.square)).beside(Affine.copy(net.bos)),
            value=value,
            writes=writes,
            attention=net.attention,
            mask="none",
            gap=0.5,
            bound=max(length * (2 * far + length), far**2 + 0.5),
        )
    )
