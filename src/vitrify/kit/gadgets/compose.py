"""IntCompose: the composition of two maps of a finite set, given as integer vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from vitrify.kit.network import Affine, Builder, Integers, Space


def int_compose(
    net: Builder, first: Space, then: Space, *, name: str, values: Sequence[Sequence[int]] | None = None
) -> Space:
    r"""Return the map $q \mapsto g(f(q))$, where $f$ = `first` and $g$ = `then` hold integers $f_q, g_q < n$.

    Let $v_0 < v_1 < \dots$ be the values that $f_q$ can take: `values[q]`, by default all of them. For $g \ge
    0$, $\mathrm{relu}(g + y) - \mathrm{relu}(y)$ is $g$ if $y \ge 0$ and 0 if $y \le -g$. With $y_{qi} = 4n(f_q -
    \tfrac12(v_{i-1} + v_i))$ that is $g\,[f_q \ge v_i]$, so $g(f(q)) = g_{v_0} + \sum_{i \ge 1} (g_{v_i} -
    g_{v_{i-1}}) [f_q \ge v_i] = g_{v_0} + \sum_{i \ge 1} \mathrm{relu}(g_{v_i} + y_{qi}) - \mathrm{relu}(g_{v_{i-1}}
    + y_{qi})$: the terms without $g$ cancel. Errors of $f$ below 1/4 disappear; an error of $g$ passes once. Units:
    two for each $q$ and $i \ge 1$, and one for each number that is some $v_0$; at most $2m(n-1) + 1$ for $m$
    coordinates of `first`.
    """
    n, m = then.size, first.size
    if not isinstance(first.kind, Integers) or not isinstance(then.kind, Integers) or then.kind.high > n - 1:
        raise TypeError(
            f"{first.name} and {then.name} must hold whole numbers, the second a map of its {n} coordinates"
        )
    ordered = [sorted(set(v)) for v in values] if values is not None else [list(range(n))] * m
    steps = [(q, lower, upper) for q, v in enumerate(ordered) for lower, upper in pairwise(v)]
    lowest = sorted({v[0] for v in ordered})
    units = 2 * len(steps) + len(lowest)
    from_first, from_then = np.zeros((m, units)), np.zeros((n, units))
    bias, out = np.zeros(units), np.zeros((units, m))
    steep = 4.0 * n
    for at, (q, lower, upper) in enumerate(steps):
        for unit, source, sign in ((2 * at, upper, 1.0), (2 * at + 1, lower, -1.0)):
            from_first[q, unit], from_then[source, unit] = steep, 1.0
            bias[unit], out[unit, q] = -steep * (lower + upper) / 2, sign
    for at, low in enumerate(lowest, start=2 * len(steps)):  # g itself, as relu(g + 1) - 1
        from_then[low, at], bias[at] = 1.0, 1.0
        out[at] = [float(v[0] == low) for v in ordered]
    writes = Space(name, Integers(first.kind.labels, 0.0, float(n - 1)))
    read = Affine.of({first: from_first, then: from_then}, bias)
    margin, gain = {first: 0.25, then: 0.25}, {then: 1.0}
    return net.units(f"compose: {name}", read, writes, out, np.full(m, -1.0), margin=margin, gain=gain)
