"""SetAttend: a head whose query names a set of positions, over which it takes the mean."""

from __future__ import annotations

from math import ceil

from vitrify.errors import BuildRefused
from vitrify.kit.heads.average import rounding_of_mean
from vitrify.kit.network import Affine, Attend, Builder, Space
from vitrify.kit.set_codes import Inspection


def set_attend(
    net: Builder, query: Space, key: Space, value: Space, writes: Space, *, seen: Inspection, beta: float
) -> Space:
    r"""The mean of a value over the positions whose key belongs to the query's set; all positions are visible.

    `seen` is what was found out about all queries and keys; the value must be 0 at BOS, whose key is 0. With members'
    scores spread by at most $\delta$ and a gap $g$ below them, in a set of $q$:

    | attention | temperature | error for values of norm 1 |
    | --- | --- | --- |
    | softmax | `beta` | `seen.error(beta)` |
    | sparsemax | $\lceil 2/g \rceil$: only members have weight | $q\beta\delta$: each weight is off by $\beta\delta$ |
    | hard | 1 | 0, where $\delta < g/2$ |
    """
    gap, spread = float(seen.gap), float(seen.spread)
    if not spread < gap / 2:
        raise BuildRefused(
            f"the head {writes.name!r} must tell the members of a set, whose scores differ by {spread:.3g}, from other "
            f"positions, {gap:.3g} below them: take another code of sets, a larger one, or smaller sets"
        )
    largest = float(Affine.copy(value).bound.max(initial=0.0))
    soft = net.attention != "hard"
    sharp, short = (beta, seen.error(beta)) if net.attention == "softmax" else (float(ceil(2 / gap)), 0.0)
    if net.attention == "sparsemax":
        short = seen.size * sharp * spread * (1 + 1e-9)
    return net.add(
        Attend(
            name=f"mean of a set: {writes.name}",
            query=Affine.copy(query),
            key=Affine.copy(key),
            value=Affine.copy(value),
            writes=writes,
            attention=net.attention,
            mask="none",
            gap=None if soft else gap,
            bound=seen.bound,
            shares=True,
            beta=sharp if soft else None,
            shortfall=largest * short if soft else 0.0,
            error=rounding_of_mean(net, value) + (largest * seen.size * seen.rounding(sharp) if soft else 0.0),
        )
    )
