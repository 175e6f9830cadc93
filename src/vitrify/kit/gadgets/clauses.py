"""Clauses: sums of conjunctions, and of numbers that pass where a conjunction holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Matrix
from vitrify.kit.network import Builder, Space, Units
from vitrify.net.spaces import Bits, Circle, Flag, MultiHot, OneHot

Asked = tuple[tuple[Space, int], ...]


@dataclass(frozen=True)
class Clause:
    """Where each space holds the value asked of it, `weight` times a coordinate of `value` (or 1) goes to `target`.

    A value is the number of a code, the member of a set, and 0 for a flag. The target is a coordinate, or the number of
    a code where the space that is written has codes on a circle.
    """

    asked: Asked
    target: int
    value: tuple[Space, int] | None = None
    weight: float = 1.0
    name: str = ""


def clauses(net: Builder, rows: Sequence[Clause], writes: Space, *, snap: bool = False, name: str = "") -> Space:
    r"""The sum of what the clauses send to each coordinate of a space.

    With codes $c$, their norms and gaps, a clause that asks $k$ things has the distance $D = \sum_i (\text{norm}_i -
    c_i \cdot x_i) / \text{gap}_i$, 0 where all agree and at least 1 elsewhere. Its unit is

    - $\mathrm{relu}(1 - 2D)$ for $k \ge 2$: a conjunction, with a whole unit to spare where it is 0;
    - $\mathrm{relu}(1 - D)$ for $k = 1$, the value of a bit itself: no bias, no threshold, and errors pass;
    - $\mathrm{relu}(x - 2UD)$ for a number $0 \le x \le U$ that passes where all agree: an open gate keeps $x$, a
      closed one stays at least $U$ below 0.

    With `snap` a conjunction has two units, $\mathrm{relu}(\tfrac32 - 2D) - \mathrm{relu}(\tfrac12 - 2D)$, and small
    errors vanish. Units: one per clause, two with `snap`.
    """
    codes = {space: _codes(space) for row in rows for space, _ in row.asked}
    most = max((row.value[0].kind.high for row in rows if row.value), default=0.0)
    copies = 2 if snap else 1
    reads = list(dict.fromkeys([*codes, *(row.value[0] for row in rows if row.value)]))
    inward = {space: _Entries() for space in reads}
    outward, written = _Entries(), writes.kind.codes if isinstance(writes.kind, Circle) else np.eye(writes.size)
    bias = np.zeros(copies * len(rows))
    gains: dict[Space, defaultdict[int, float]] = {space: defaultdict(float) for space in reads}
    margin = dict.fromkeys(reads, np.inf)
    for place, row in enumerate(rows):
        if snap and row.value:
            raise ValueError("a number that passes has no exact values to snap to")
        steep = 2.0 * most if row.value else 1.0 if len(row.asked) == 1 and not snap else 2.0
        start = 0.0 if row.value else 1.0
        units = [place, len(rows) + place] if snap else [place]
        reach = 0.0
        for space, value in row.asked:
            code, norm, gap = codes[space]
            for coordinate in np.flatnonzero(code[value]).tolist():
                for unit in units:
                    inward[space].put(coordinate, unit, steep / gap * code[value, coordinate])
            start -= steep * norm / gap
            own = steep * float(np.abs(code[value]).sum()) / gap
            reach += own
            gains[space][row.target] += abs(row.weight) * own
        if row.value:
            space, coordinate = row.value
            inward[space].put(coordinate, place, 1.0)
            gains[space][row.target] += abs(row.weight)
            margin[space] = min(margin[space], most / 2)
        for unit, sign, up in zip(units, (1.0, -1.0), (0.5 if snap else 0.0, -0.5), strict=False):
            bias[unit] = start + up
            for coordinate in np.flatnonzero(written[row.target]).tolist():
                outward.put(unit, coordinate, sign * row.weight * written[row.target, coordinate])
        spare = most / 2 if row.value else 0.5 if snap else 1.0
        for space, _ in row.asked:
            margin[space] = min(margin[space], spare / reach)
    return net.add(
        Units(
            name=name or f"clauses: {writes.name}",
            reads_by=tuple((space, found.matrix(space.size, len(bias))) for space, found in inward.items()),
            bias=bias,
            writes_by=((writes, outward.matrix(len(bias), writes.size)),),
            margin=margin,
            gain={space: 0.0 if snap else max(found.values(), default=0.0) for space, found in gains.items()},
            rows=tuple([row.name for row in rows] + [f"{row.name} (cut)" for row in rows if snap]),
        )
    )


class _Entries:
    """The entries of a matrix, equal places added up."""

    def __init__(self) -> None:
        self.found: defaultdict[tuple[int, int], float] = defaultdict(float)

    def put(self, row: int, column: int, value: float) -> None:
        self.found[row, column] += value

    def matrix(self, rows: int, columns: int) -> Matrix:
        from scipy.sparse import csc_array

        places = np.array(list(self.found), dtype=np.int64).reshape(-1, 2)
        return csc_array((np.array(list(self.found.values()), dtype=float), tuple(places.T)), shape=(rows, columns))


def _codes(space: Space) -> tuple[np.ndarray, float, float]:
    """The code of every value, their norm and their gap."""
    kind = space.kind
    if isinstance(kind, OneHot | Bits | Circle):
        return kind.codes, kind.norm, min(kind.gap, kind.norm)
    if isinstance(kind, MultiHot | Flag):
        return np.eye(space.size), 1.0, 1.0
    raise TypeError(f"{space.name} holds numbers: a clause asks for values of codes, members of sets and flags")
