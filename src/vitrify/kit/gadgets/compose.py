"""IntCompose: the composition of two maps of a finite set, given as vectors of whole numbers."""

from __future__ import annotations

import numpy as np

from vitrify.kit.network import Builder, Space, Units
from vitrify.net.spaces import Integers


def int_compose(net: Builder, first: Space, then: Space, *, name: str) -> Space:
    r"""The map $q \mapsto g(f(q))$, where $f$ = `first` and $g$ = `then` hold $f_q, g_q \in \{0 \dots n-1\}$ in coordinate $q$.

    For a number $y$ that is at least $g$ or at most $-g$ in the wanted cases, $\mathrm{relu}(g + y) - \mathrm{relu}(y)$ is $g$ if
    $y \ge 0$ and 0 if $y \le -g$. With $y_{q,k} = 4n(f_q - k + \tfrac12)$ that is $g_k [f_q \ge k]$, so
    $g(f(q)) = \sum_k g_k [f_q \ge k] - g_k [f_q \ge k+1]$. The terms without $g$ telescope to $-4n(f_q + \tfrac12)$, one unit for each $q$.
    Errors of $f$ below 1/4 disappear; an error of $g$ passes once. Units: $2n^2 + n$ for a map of $n$ points
    (`first` may have fewer coordinates $m$: $2nm + m$).
    """
    n, m = then.size, first.size
    if isinstance(then.kind, Integers) and then.kind.high > n - 1:
        raise ValueError(f"{then.name} must map {n} points to 0..{n - 1}")
    steep = 4.0 * n
    q, k = np.divmod(np.arange(n * m), n)  # pair number → (q, k)
    units = 2 * n * m + m
    from_first, from_then = np.zeros((m, units)), np.zeros((n, units))
    bias, out = np.zeros(units), np.zeros((units, m))
    at = np.arange(n * m)
    for start, shift, sign in ((0, 0.5, 1.0), (n * m, -0.5, -1.0)):
        from_first[q, start + at] = steep
        from_then[k, start + at] = 1.0
        bias[start + at] = steep * (shift - k)
        out[start + at, q] = sign
    tail = np.arange(m)
    from_first[tail, 2 * n * m + tail] = steep  # relu(4n f + 2n): f is never below -1/2
    bias[2 * n * m :] = steep / 2
    out[2 * n * m + tail, tail] = -1.0
    writes = Space(name, Integers(tuple(first.kind.labels), 0.0, float(n - 1)) if isinstance(first.kind, Integers) else first.kind)
    return net.add(
        Units(
            name=f"compose: {name}",
            reads_by=((first, from_first), (then, from_then)),
            bias=bias,
            writes_by=((writes, out),),
            margin={first: 0.25, then: 0.25},
            gain={first: 0.0, then: 1.0},
        )
    )
