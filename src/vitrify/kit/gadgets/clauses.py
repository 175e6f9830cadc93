"""Clauses: weighted sums of conjunctions (*clause* as in Prolog), and of numbers gated by conjunctions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Matrix
from vitrify.kit.network import Affine, Bits, Builder, Circle, Flag, MultiHot, OneHot, Space

Conditions = tuple[tuple[Space, int], ...]
Entries = defaultdict[tuple[int, int], float]  # of a matrix, by row and column


@dataclass(frozen=True)
class Clause:
    """Where all conditions hold, add `weight` times a coordinate of `value` (or 1) to `target`.

    A condition is a space and the index of the value it must hold, or of the member its set must have; a flag has the
    index 0 only, and must be true. The target is a coordinate, or the index of a code if a circle is written.
    """

    conditions: Conditions
    target: int
    value: tuple[Space, int] | None = None
    weight: float = 1.0
    name: str = ""


def clauses(net: Builder, rows: Sequence[Clause], writes: Space, *, snap: bool = False, name: str = "") -> Space:
    r"""Return the space that holds, in each coordinate, the sum of what the clauses add there.

    Let a clause have $k$ conditions, with codes $c_i$ for which $c_i \cdot c_i = \text{norm}_i$ and other values have
    $c_i \cdot x_i \le \text{norm}_i - \text{gap}_i$. Its distance $D = \sum_i (\text{norm}_i - c_i \cdot x_i) /
    \text{gap}_i$ is 0 where all hold and at least 1 elsewhere. Its unit is

    - $\mathrm{relu}(1 - 2D)$ for $k \ne 1$: a conjunction. Where it is false, its input is at most $-1$;
    - $\mathrm{relu}(1 - D)$ for $k = 1$: 1 or 0, and the bit itself if $\text{gap} = \text{norm}$;
    - $\mathrm{relu}(x - 2UD)$ for a number $x$ gated by the conditions, if all such numbers are in $[0, U]$: an open
      gate passes $x$, a closed one has an input of at most $-U$.

    Errors of $x_i$ pass where a unit is active. With `snap` a conjunction has two units, $\mathrm{relu}(\tfrac32 - 2D)
    - \mathrm{relu}(\tfrac12 - 2D)$, and small errors vanish. Units: one per clause, two with `snap`.
    """
    codes = {space: _codes(space) for row in rows for space, _ in row.conditions}
    largest = max((row.value[0].kind.high for row in rows if row.value), default=0.0)
    copies = 2 if snap else 1
    reads = list(dict.fromkeys([*codes, *(row.value[0] for row in rows if row.value)]))
    inward = {space: Entries(float) for space in reads}
    outward, written = Entries(float), writes.kind.codes if isinstance(writes.kind, Circle) else np.eye(writes.size)
    bias = np.zeros(copies * len(rows))
    gains = {space: np.zeros(writes.size) for space in reads}  # by coordinate that is written
    margin = dict.fromkeys(reads, np.inf)
    for number, row in enumerate(rows):
        if snap and row.value:
            raise ValueError("a number that passes has no exact values to snap to")
        steep = 2.0 * largest if row.value else 1.0 if len(row.conditions) == 1 and not snap else 2.0
        start = 0.0 if row.value else 1.0
        units = [number, len(rows) + number] if snap else [number]
        reach = 0.0  # change of the unit's input by errors of 1
        added = np.abs(row.weight * written[row.target])
        for space, value in row.conditions:
            code, norm, gap = codes[space]
            for coordinate in np.flatnonzero(code[value]).tolist():
                for unit in units:
                    inward[space][coordinate, unit] += steep / gap * code[value, coordinate]
            start -= steep * norm / gap
            slope = steep * float(np.abs(code[value]).sum()) / gap
            reach += slope
            gains[space] += added * slope
        if row.value:
            space, coordinate = row.value
            inward[space][coordinate, number] += 1.0
            gains[space] += added
            margin[space] = min(margin[space], largest / 2)
        for unit, sign, up in zip(units, (1.0, -1.0), (0.5 if snap else 0.0, -0.5), strict=False):
            bias[unit] = start + up
            for coordinate in np.flatnonzero(written[row.target]).tolist():
                outward[unit, coordinate] += sign * row.weight * written[row.target, coordinate]
        spare = largest / 2 if row.value else 0.5 if snap else 1.0
        for space, _ in row.conditions:
            margin[space] = min(margin[space], spare / reach)
    return net.units(
        name or f"clauses: {writes.name}",
        Affine.of({space: _matrix(entries, space.size, len(bias)) for space, entries in inward.items()}, bias),
        writes,
        _matrix(outward, len(bias), writes.size),
        margin=margin,
        gain={space: 0.0 if snap else float(sums.max(initial=0.0)) for space, sums in gains.items()},
        rows=tuple([row.name for row in rows] + [f"{row.name} (cut)" for row in rows if snap]),
    )


def _matrix(entries: Entries, rows: int, columns: int) -> Matrix:
    from scipy.sparse import csc_array

    indices = np.array(list(entries), dtype=np.int64).reshape(-1, 2)
    return csc_array((np.array(list(entries.values()), dtype=float), tuple(indices.T)), shape=(rows, columns))


def _codes(space: Space) -> tuple[np.ndarray, float, float]:
    """Return the code of every value, and `norm` and `gap` as in `clauses`."""
    kind = space.kind
    if isinstance(kind, OneHot | Bits | Circle):
        return kind.codes, kind.norm, min(kind.gap, kind.norm)
    if isinstance(kind, MultiHot | Flag):
        return np.eye(space.size), 1.0, 1.0
    raise TypeError(f"{space.name} holds numbers: a condition needs codes, a set or a flag")
