r"""Lookup, RecentMatch and LastMarked: heads that choose their keys by content.

The key must be void (all zeros) at BOS: BOS is the sink, read when nothing matches, and its value is the default.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vitrify.errors import BuildRefused
from vitrify.kit.heads.average import rounding_of_mean
from vitrify.kit.heads.select import Test, Which, select
from vitrify.kit.network import Affine, Bits, Builder, Circle, Flag, Kind, OneHot, Space
from vitrify.net.transformer import Mask

Value = Space | tuple[Affine, Kind]  # a space as it is, or a linear function of spaces and the kind that it has


def _codes(space: Space) -> tuple[float, float]:
    """Return norm and gap of a space's codes; a flag is a code with one value. A void key (score 0) must not match."""
    if isinstance(space.kind, OneHot | Bits | Circle):
        return space.kind.norm, min(space.kind.gap, space.kind.norm)
    if isinstance(space.kind, Flag):
        return 1.0, 1.0
    raise TypeError(f"{space.name} has no codes to match: it must be a one-hot, a bit code, a circle or a flag")


def lookup(
    net: Builder, query: Space, key: Space, value: Space, *, mask: Mask = "causal", name: str | None = None
) -> Space:
    r"""Return the mean of `value` over all positions whose key equals the query; the value at BOS when there is none.

    Score $c_q \cdot c_k$: norm at a match, at most norm − gap elsewhere. The sink (BOS) scores norm − gap/2, so the
    head's gap is half the code's. Matches share the weight equally only if their scores are equal: under softmax and
    sparsemax the query and the key must be exact, so snap what a soft head has fetched.
    """
    norm, gap = _codes(query)
    writes = Space(name or f"{value.name}@{key.name}={query.name}", value.kind)
    return net.attend(
        f"lookup: {writes.name}",
        query=Affine.copy(query).beside(Affine.constant(norm - gap / 2)),
        key=Affine.copy(key).beside(Affine.of({net.bos: [[1.0]]})),
        value=Affine.copy(value),
        writes=writes,
        gap=gap / 2,
        bound=norm,
        mask=mask,
        error=rounding_of_mean(net, value),
        shares=True,
        attends_to="all",
    )


def cosine_match(
    net: Builder, query: Affine, key: Affine, value: Affine, writes: Space, *, sink: Affine, sharp: CosineSharpness
) -> Space:
    r"""Return the mean of `value` over the positions whose key equals the query, both unit vectors; else that at BOS.

    The score is the cosine: 1 at a match, at most $1 - \text{gap}$ elsewhere. At BOS, where `sink` is 1 instead of 0,
    the key must be orthogonal to every query that has a match, and $1 - \text{gap}/2$ is added. Queries and keys need
    not be exact: see `cosine_sharpness`.
    """
    hard = net.attention == "hard"
    return net.attend(
        f"alike: {writes.name}",
        query=query.beside(Affine.constant(1 - sharp.gap / 2)),
        key=key.beside(sink),
        value=value,
        writes=writes,
        gap=sharp.gap / 2 if hard else None,
        bound=2.0,
        beta=None if hard else sharp.beta,
        shortfall=sharp.error,
        noise=None if hard else sharp.noise,
        key_noise=None if hard else sharp.key_noise,
        error=rounding_of_mean(net, writes),
        shares=True,
    )


class CosineSharpness(NamedTuple):
    """The inverse temperature of `cosine_match`, its error there, and the gap and noise for which this holds."""

    beta: float
    error: float
    gap: float
    noise: float
    key_noise: float


def cosine_sharpness(
    net: Builder, gap: float, largest: float, *, noise: float, key_noise: float, leak: float
) -> CosineSharpness:
    r"""Return how sharp `cosine_match` is for values up to `largest` $= V$.

    If no score is off by more than `noise` $= \nu$, and by more than `key_noise` $= \kappa$ for errors of keys alone,
    then for $n$ keys and $g = \text{gap}/2 - 2\nu$,

    - softmax at $\beta = \ln(2Vn/\text{leak})/g$ is off by at most leak plus $2V(e^{2\beta\kappa} - 1)$, as matches
      share the weight unequally; an error of the query moves all of them alike;
    - sparsemax at $\beta = 1/g$ by at most $2V n\,\beta\kappa$.
    """
    keys, half_gap, beta, error = net.max_length + net.pads, gap / 2 - 2 * noise, 1.0, 0.0
    if half_gap <= gap / 8:
        raise BuildRefused(
            f"unit vectors that differ by {gap:.3g} in their cosine can't be told apart under errors of {noise:.3g}: "
            "use a shorter context or another construction"
        )
    if net.attention == "sparsemax":
        beta = float(math.ceil(1 / half_gap))
        error = 2 * largest * keys * beta * key_noise
    elif net.attention == "softmax":
        beta = float(math.ceil(math.log(2 * largest * keys / leak) / half_gap))
        error = leak + 2 * largest * math.expm1(2 * beta * key_noise)
    return CosineSharpness(beta, error, gap, noise, key_noise)


def recent_match(
    net: Builder,
    query: Space,
    key: Space | Affine,
    value: Value,
    *,
    which: Which = "last",
    mask: Mask = "causal",
    sink: bool = True,
    name: str | None = None,
) -> Space:
    r"""Return `value` at the last (or first) position whose key equals the query; the value at BOS if there is none.

    The key may be an affine map of spaces, as long as it is a code of the query's kind; so may the value.

    Score $C\, c_q \cdot c_k \pm j$ with $C = T/\text{gap}$: a match scores at least $C\,\text{norm} + \min \pm j$, a
    mismatch at any position at least 1 less; the sink (BOS) is halfway between. Two matches differ by at least 1. So
    the gap is 1/2, and the largest score about $T\,\text{norm}/\text{gap}$. If the value is 0 at all positions that do
    not match and at BOS, or if only BOS comes before the first match, no `sink` is needed, and the gap is 1.
    """
    length = float(net.max_length)
    norm, gap = _codes(query)
    scale, sign = length / gap, 1.0 if which == "last" else -1.0
    matched, read, kind, default_name = _parts(key, value, which)
    writes = Space(name or f"{default_name}={query.name}", kind)
    asked, held = (
        Affine.copy(query, scale).beside(Affine.constant(sign)),
        matched.beside(Affine.of({net.index: [[1.0]]})),
    )
    if sink:
        lowest = scale * norm + (1.0 if which == "last" else -length)
        asked, held = asked.beside(Affine.constant(lowest - 0.5)), held.beside(Affine.of({net.bos: [[1.0]]}))
    return net.attend(
        f"{which} match: {writes.name}",
        query=asked,
        key=Affine(held.parts, np.append(matched.bias, np.zeros(held.size - matched.size))),
        value=read,
        writes=writes,
        gap=0.5 if sink else 1.0,
        bound=scale * norm + length,
        mask=mask,
        attends_to=which,
    )


def last_marked(
    net: Builder,
    flag: Space | Affine,
    value: Value,
    *,
    which: Which = "last",
    mask: Mask = "causal",
    sink: bool = True,
    name: str | None = None,
) -> Space:
    """Return `value` at the last (or first) position whose flag is 1; hard attention needs no positions for it.

    Without `sink`, the conditions of `recent_match` must hold.
    """
    matched, read, kind, default_name = _parts(flag, value, which)
    test, writes = Test(Affine.constant(1.0), matched, 1.0), Space(name or default_name, kind)
    described = f"{which} marked: {writes.name}"
    return select(net, [test], read, writes, sink="default" if sink else "none", which=which, mask=mask, name=described)


def _parts(key: Space | Affine, value: Value, which: Which) -> tuple[Affine, Affine, Kind, str]:
    """Return key and value as maps, the value's kind, and a name for what is read."""
    matched = Affine.copy(key) if isinstance(key, Space) else key
    read, kind = (Affine.copy(value), value.kind) if isinstance(value, Space) else value
    known, sought = ("+".join(space.name for space in affine.spaces) for affine in (read, matched))
    return matched, read, kind, f"{which} {known}@{sought}"
