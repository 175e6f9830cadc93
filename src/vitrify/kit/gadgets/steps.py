"""Functions of one number, defined by finitely many points: Snap, Step, IntLookup, Digits, and CPWL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from vitrify.arrays import Floats
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Builder, Space, Units
from vitrify.net.spaces import Bits, Categorical, Flag, OneHot


def steps(
    net: Builder,
    reads: Space | Affine,
    points: Floats,
    outputs: Sequence[tuple[Space, Floats]],
    *,
    name: str,
    each: bool = False,
    total: bool = False,
    coordinate: int = 0,
    error: float = 0.0,
) -> tuple[Space, ...]:
    r"""Write the piecewise constant function through some points into each output (a space and its values).

    Between neighboring points $x_k < x_{k+1}$ with different values there is one ramp, $\mathrm{clip}\big(\tfrac{x -
    a}{b - a}, 0, 1\big)$ with $a, b = x_k + \tfrac14 d, x_k + \tfrac34 d$, $d = x_{k+1} - x_k$, made of two units.
    The output is the value at $x_0$ plus the jumps, so input errors below $d/4$ disappear. Units: two per jump.

    It reads one `coordinate` of a space or of an affine map; values are [point, output dimension]. With `each`, every
    coordinate goes through the same function, with units of its own, into the same coordinate of the output; values
    are [point]. With `total` as well, the results are added up in the one coordinate of the output. `error` is what
    rounding adds where values are not integers.
    """
    argument = Affine.copy(reads) if isinstance(reads, Space) else reads
    gaps = np.diff(points)
    jumps = [np.diff(values, axis=0) for _, values in outputs]
    used = np.flatnonzero(np.any([jump.any(axis=tuple(range(1, jump.ndim))) for jump in jumps], axis=0))
    left, gap = points[used], gaps[used]
    slope = 2.0 / gap  # a ramp of width gap/2
    sources = list(range(argument.size)) if each else [coordinate]
    copies = len(sources)
    matrix = np.kron(np.eye(argument.size)[:, sources], np.concatenate([slope, slope]))
    bias = np.tile(np.concatenate([-slope * (left + gap / 4), -slope * (left + 3 * gap / 4)]), copies)
    read = argument @ matrix
    reach = sum(argument.gain(space) for space in argument.spaces)
    writes_by, constants = [], []
    for (space, values), jump in zip(outputs, jumps, strict=True):
        ramp = np.concatenate([jump[used], -jump[used]])  # [unit, out] or [unit]
        if each:
            ramp = np.kron(np.ones((copies, 1)) if total else np.eye(copies), ramp[:, None])
        writes_by.append((space, ramp))
        constants.append((space, np.full(space.size, values[0] * (copies if total else 1)) if each else values[0]))
    net.add(
        Units(
            name=name,
            reads_by=read.parts,
            bias=bias + read.bias,
            writes_by=tuple(writes_by),
            constants=tuple(constants),
            margin=dict.fromkeys(argument.spaces, float(gap.min(initial=4.0)) / (4 * max(reach, 1e-300))),
            gain=dict.fromkeys(argument.spaces, 0.0),
            error=error,
        )
    )
    return tuple(space for space, _ in outputs)


def snap(net: Builder, space: Space, *, name: str | None = None, void: bool = False) -> Space:
    r"""Return the exact code nearest to a noisy one-hot, flag or bit code.

    Coordinates of 0/1 codes go through $\mathrm{clip}(2x - \tfrac12, 0, 1)$, those of ±1 codes likewise. Two units per
    coordinate; errors below 1/4 (below 1/2 for ±1) vanish. With `void`, the copy may hold no value (all zeros).
    """
    if not isinstance(space.kind, OneHot | Bits | Flag):
        raise TypeError(f"{space.name} has no exact codes to snap to")
    points = np.array([space.kind.low, space.kind.high])
    kind = replace(space.kind, void=True) if void and not isinstance(space.kind, Flag) else space.kind
    out = Space(name or f"snap({space.name})", kind)
    return steps(net, space, points, [(out, points)], name=f"snap: {out.name}", each=True)[0]


def step(net: Builder, space: Space, threshold: float, grid: float, *, name: str) -> Space:
    r"""Return the flag $[x \ge \theta]$, exact when $x \ge \theta$ or $x \le \theta - \text{grid}$. Two units."""
    points = np.array([threshold - grid, threshold])
    return steps(net, space, points, [(Space(name, Flag()), np.array([[0.0], [1.0]]))], name=f"step: {name}")[0]


def int_lookup(
    net: Builder, space: Space, function: Callable[[int], Floats], writes: Space, *, coordinate: int = 0
) -> Space:
    """Return any function of an integer in the space's range. Two units per point where it changes."""
    low, high = round(space.kind.low), round(space.kind.high)
    values = np.array([function(number) for number in range(low, high + 1)], dtype=float)
    points = np.arange(low, high + 1, dtype=float)
    name = f"table of whole numbers: {writes.name}"
    return steps(net, space, points, [(writes, values)], name=name, coordinate=coordinate)[0]


def digits(
    net: Builder, space: Space | Affine, base: float, names: Sequence[str], kind: Categorical
) -> tuple[Space, ...]:
    r"""Return the $m$ digits of $x = \sum_{i<m} d_i b^{-i}$, coordinate by coordinate, each in a space of its own.

    Digits are 0/1 or ±1, as the codes of the kind are. For $b \ge 3$ the $2^m$ possible sums are at least $(d^+ -
    d^-)\, b^{-(m-1)}$ apart, so each digit is a piecewise constant function of $x$. Units: at most $2(2^m - 1)$ per
    coordinate.
    """
    sums = np.array(
        [sum(d * base**-i for i, d in enumerate(ds)) for ds in product((kind.low, kind.high), repeat=len(names))]
    )
    order = np.argsort(sums)
    choices = np.array(list(product((kind.low, kind.high), repeat=len(names))))[order]
    outputs = [(Space(name, kind), choices[:, index]) for index, name in enumerate(names)]
    return steps(net, space, sums[order], outputs, name=f"digits: {', '.join(names)}", each=True)


def at_least(net: Builder, value: Affine, floor: float, writes: Space, *, rows: Sequence[str] = ()) -> Space:
    r"""Return $\max(x, f)$ for every coordinate $x$ of a map, as $f + \mathrm{relu}(x - f)$ with $f$ = `floor`.

    One unit per coordinate. Errors pass through.
    """
    bound = float(value.bound.max(initial=0.0)) + abs(floor)
    return net.units(
        f"at least {floor:g}: {writes.name}",
        Affine(value.parts, value.bias - floor),
        writes,
        np.eye(value.size),
        np.full(value.size, floor),
        rows=tuple(rows),
        passes=(value,),
        error=UNIT_ROUNDOFF * (value.terms + 4) * bound,
    )


def cpwl(net: Builder, space: Space, points: Floats, values: Floats, writes: Space) -> Space:
    r"""Return the continuous piecewise linear function through $(x_k, y_k)$, constant outside.

    It is $y_0 + \sum_k (m_k - m_{k-1})\,\mathrm{relu}(x - x_k)$ with the slopes $m_k$ on either side.
    One unit per point where the slope changes. Errors pass through, times the steepest slope.
    """
    slopes = np.concatenate([[0.0], np.diff(values) / np.diff(points), [0.0]])
    change = np.diff(slopes)
    used = np.flatnonzero(change)
    return net.units(
        f"piecewise linear: {writes.name}",
        Affine.of({space: np.ones((1, len(used)))}, -points[used]),
        writes,
        change[used][:, None],
        values[:1],
        gain={space: float(np.abs(slopes).max())},
    )
