"""SetAttend: a head whose query encodes a set of positions, over which it takes the mean."""

from __future__ import annotations

from math import ceil

from vitrify.errors import BuildRefused
from vitrify.kit.heads.average import rounding_of_mean
from vitrify.kit.network import Affine, Builder, Space
from vitrify.kit.set_codes import ExactScores
from vitrify.net.transformer import Mask


def set_attend(
    net: Builder,
    query: Space,
    key: Space,
    value: Space,
    writes: Space,
    *,
    scores: ExactScores,
    beta: float,
    mask: Mask = "none",
) -> Space:
    r"""Return the mean of a value over the visible positions whose key belongs to the query's set.

    `scores` are the exact bounds of the products of all queries and keys; the value must be 0 at BOS, whose key is 0.
    With members' scores spread by at most $\delta$ and a gap $g$ below them, in a set of $q$:

    | attention | temperature | error for values of norm 1 |
    | --- | --- | --- |
    | softmax | `beta` | `scores.error(beta)` |
    | sparsemax | $\lceil 2/g \rceil$: only members have weight | $q\beta\delta$: each weight is off by $\beta\delta$ |
    | hard | 1 | 0, where $\delta < g/2$ |
    """
    gap, spread = float(scores.gap), float(scores.spread)
    if not spread < gap / 2:
        raise BuildRefused(
            f"the head {writes.name!r} must tell the members of a set, whose scores differ by {spread:.3g}, from other "
            f"positions, {gap:.3g} below them: take another code of sets, a larger one, or smaller sets"
        )
    largest = float(Affine.copy(value).bound.max(initial=0.0))
    soft = net.attention != "hard"
    sharp, short = (beta, scores.error(beta)) if net.attention == "softmax" else (float(ceil(2 / gap)), 0.0)
    if net.attention == "sparsemax":
        short = scores.size * sharp * spread * (1 + 1e-9)
    return net.attend(
        f"mean of a set: {writes.name}",
        query=Affine.copy(query),
        key=Affine.copy(key),
        value=Affine.copy(value),
        writes=writes,
        mask=mask,
        gap=None if soft else gap,
        bound=scores.bound,
        shares=True,
        beta=sharp if soft else None,
        shortfall=largest * short if soft else 0.0,
        error=rounding_of_mean(net, value) + (largest * scores.size * scores.rounding(sharp) if soft else 0.0),
    )
