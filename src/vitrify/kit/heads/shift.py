"""Shift and itself: every position reads a space from a fixed number of positions back, or from its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.kit.heads.average import rounding_of_mean
from vitrify.kit.network import Affine, Builder, Kind, Space
from vitrify.kit.positions import ChosenPositions, PositionCode


def itself(net: Builder, value: Affine, writes: Space, *, error: float = 0.0) -> Space:
    """Return a map of the spaces at the position itself: a window of one key, which has all the weight.

    `error` is what rounding adds, where the value is more than a copy.
    """
    alone = Affine.of({}, [0.0])
    return net.attend(f"itself: {writes.name}", alone, alone, value, writes, window=1, bias=np.zeros(1), error=error)


def shift(
    net: Builder,
    value: Space,
    offset: int,
    code: PositionCode | ChosenPositions,
    positions: Space,
    *,
    name: str | None = None,
    only: tuple[Sequence[int], Kind] | None = None,
    sink: Space | None = None,
    leak: float | None = None,
) -> Space:
    r"""Return the value `offset` positions back; before the first token, the value at BOS.

    `only` copies some coordinates of the value, which together have the given kind. `sink` is the flag of the key that
    is read where there is no such position, by default that of BOS. `leak` is the head's allowed error, for a value of
    real numbers; without it, the value is a code, and the operations that read it say how much error they allow.

    Queries and keys come from the position code; one more feature, a constant in the query times the BOS flag in the
    key, is the sink. The gap of the head is that of the position code. With offset 0 the head sees nothing but its own
    position (a window of one) and needs no code.
    """
    from scipy.sparse import csc_array

    chosen, kind = only or (range(value.size), value.kind)
    writes = Space(name or f"{value.name}[t-{offset}]", kind)
    picked = csc_array((np.ones(len(chosen)), (list(chosen), range(len(chosen)))), shape=(value.size, len(chosen)))
    copied = Affine.of({value: picked})
    if offset == 0:
        return itself(net, copied, writes)
    match = code.match(offset)
    flag = np.eye(len(match.bias) + 1)[-1:]
    return net.attend(
        f"shift by {offset}: {writes.name}",
        query=Affine.of({positions: np.column_stack([match.query, match.sink])}, [*match.bias, match.level]),
        key=Affine.of({positions: np.column_stack([match.key, np.zeros(len(match.key))]), sink or net.bos: flag}),
        value=copied,
        writes=writes,
        gap=match.gap,
        bound=match.bound,
        leak=1e-9 if leak is None else leak,
        attends_to=offset if sink is None and not isinstance(code, ChosenPositions) else None,
        error=0.0 if leak is None else rounding_of_mean(net, value),
    )
