r"""From scores to attention weights: softmax, sparsemax, hard and linear attention, under a mask.

Functions that weigh take `scores` [..., query, key] and a boolean `allowed` of the same trailing shape. All work on
NumPy and JAX arrays alike. A query without any allowed key gets weights 0.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from vitrify.arrays import Array, Bool, Float, Int, namespace
from vitrify.errors import InputError
from vitrify.net.transformer import Head

Scores: TypeAlias = Float[Array, "*lead query key"]
Allowed: TypeAlias = Bool[Array, "*#lead query key"]


def allowed_keys(
    head: Head, queries: Int[Array, " query"], keys: Int[Array, " key"], pads: int | None = None
) -> Bool[Array, "query key"]:
    """Return a mask [query, key]: the keys that each query may attend to.

    Segments begin after the `pads`, the copies of BOS at the front, which every query may attend to. A head with
    segments is refused where `pads` is not passed.
    """
    xp = namespace(keys)
    offset = queries[:, None] - keys[None, :]
    allowed = xp.ones_like(offset, dtype=bool)
    if head.mask == "after":
        allowed = allowed & (offset < 0)
    elif head.mask != "none":
        allowed = allowed & (offset >= (1 if head.mask == "strict" else 0))
    if head.window is not None:
        allowed = allowed & (offset >= 0) & (offset < head.window)
    if head.segment:
        if pads is None:
            raise InputError("heads with segments can be run and trained; nothing else is worked out for them")
        own = (queries[:, None] - pads) // head.segment == (keys[None, :] - pads) // head.segment
        allowed = allowed & (own | (keys < pads)[None, :])
    return allowed


def weigh(head: Head, scores: Scores, allowed: Allowed) -> Scores:
    """Return the attention weights of a head, by its kind."""
    if head.attention == "softmax":
        return softmax(scores, allowed)
    if head.attention == "sparsemax":
        return sparsemax(scores, allowed)
    if head.attention == "linear":
        return namespace(scores).where(allowed, scores, 0.0)
    return hardmax(scores, allowed, head)


def turned(
    head: Head, x: Float[Array, "batch pos head d"], positions: Int[Array, " pos"]
) -> Float[Array, "batch pos head d"]:
    """The queries or keys of a rotary head: pairs of numbers turned by angles that grow with
    the position."""
    if not head.rotary:
        return x
    xp, half = namespace(x), x.shape[-1] // 2
    speeds = head.rotary ** (-xp.arange(half) / half)
    angles = positions[:, None, None] * speeds
    cos, sin = xp.cos(angles).astype(x.dtype), xp.sin(angles).astype(x.dtype)
    left, right = x[..., :half], x[..., half:]
    return xp.concatenate([left * cos - right * sin, left * sin + right * cos], axis=-1)


def softmax(scores: Scores, allowed: Allowed) -> Scores:
    r"""$w_j = e^{s_j} / \sum_k e^{s_k}$ over the allowed keys; NumPy works in place: half the time for large arrays."""
    xp = namespace(scores)
    masked = xp.where(allowed, scores, -xp.inf)
    masked -= _best(masked)
    weights = np.exp(masked, out=masked) if isinstance(masked, np.ndarray) else xp.exp(masked)
    total = weights.sum(axis=-1, keepdims=True)
    weights /= xp.where(total > 0, total, 1.0)
    return weights


def sparsemax(scores: Scores, allowed: Allowed) -> Scores:
    r"""The Euclidean projection of the scores onto the simplex: $w_j = \max(s_j - \tau, 0)$ with $\sum_j w_j = 1$.

    With the scores sorted downwards, the support has the largest $k$ such that $1 + k s_k > \sum_{j \le k} s_j$, and
    $\tau = (\sum_{j \le k} s_j - 1) / k$ (Martins & Astudillo 2016). A winner that leads by at least 1 takes it all.
    """
    xp = namespace(scores)
    best = _best(xp.where(allowed, scores, -xp.inf))
    shifted = xp.where(allowed, scores - best, -2.0)  # 2 below the best: never in the support
    ordered = xp.flip(xp.sort(shifted, axis=-1), axis=-1)
    total = xp.cumulative_sum(ordered, axis=-1)
    rank = xp.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    size = xp.maximum((1 + rank * ordered > total).sum(axis=-1, keepdims=True), 1)
    tau = (xp.take_along_axis(total, size - 1, axis=-1) - 1) / size.astype(scores.dtype)
    return xp.where(allowed, xp.maximum(shifted - tau, 0.0), 0.0)


def hardmax(scores: Scores, allowed: Allowed, head: Head) -> Scores:
    """Return weights that are all on the best key; keys within the head's resolution of it are tied."""
    xp = namespace(scores)
    masked = xp.where(allowed, scores, -xp.inf)
    tied = allowed & (masked >= _best(masked) - head.resolution)
    if head.ties == "left":
        tied = tied & (xp.cumulative_sum(tied.astype(scores.dtype), axis=-1) == 1)
    elif head.ties == "right":
        tied = tied & (xp.flip(xp.cumulative_sum(xp.flip(tied, axis=-1).astype(scores.dtype), axis=-1), axis=-1) == 1)
    weights = tied.astype(scores.dtype)
    return weights / xp.maximum(weights.sum(axis=-1, keepdims=True), 1.0)


def _best(masked: Array) -> Array:
    """Return the best score of each query, 0 if no key is allowed; scores are -inf where a key is not."""
    xp = namespace(masked)
    best = masked.max(axis=-1, keepdims=True)
    return xp.where(xp.isfinite(best), best, 0.0)
