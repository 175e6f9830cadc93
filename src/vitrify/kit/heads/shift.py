"""Shift: every position reads a space from a fixed number of places back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.kit.network import Affine, Attend, Builder, Space
from vitrify.kit.positions import PositionCode
from vitrify.net.spaces import Kind


def shift(
    net: Builder,
    value: Space,
    offset: int,
    code: PositionCode,
    positions: Space,
    *,
    name: str | None = None,
    only: tuple[Sequence[int], Kind] | None = None,
) -> Space:
    r"""The value `offset` places back; before the first token, the value at BOS.

    `only` copies some coordinates of the value, which together have the given kind.

    Queries and keys come from the position code; one more feature, a constant in the query times the BOS flag in the key,
    is the sink. The head's gap is the code's.
    """
    query, bias = code.query(offset)
    sink, level = code.sink(offset)
    key = code.key(offset)
    features = query.shape[1]
    chosen, kind = only or (range(value.size), value.kind)
    writes = Space(name or f"{value.name}[t-{offset}]", kind)
    head = Attend(
        name=f"shift by {offset}: {writes.name}",
        query=Affine.of({positions: np.column_stack([query, sink])}, [*bias, level]),
        key=Affine.of({positions: np.column_stack([key, np.zeros(len(key))]), net.bos: np.eye(features + 1)[-1:]}),
        value=Affine.of({value: np.eye(value.size)[:, list(chosen)]}),
        writes=writes,
        attention=net.attention,
        gap=code.gap(offset),
        bound=code.bound(offset),
    )
    return net.add(head)
