"""Mean, CountExact and Window: heads that average instead of selecting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from vitrify.errors import BuildRefused
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Attend, Builder, Integers, Reals, Space

NO_WEIGHT = -1000.0  # the score of a key that a softmax ignores: e^-1000 is 0 in every format


def mean(
    net: Builder,
    value: Space | Affine,
    *,
    mask: Literal["none", "causal", "strict"] = "causal",
    name: str | None = None,
    kind: Reals | None = None,
) -> Space:
    r"""Return the mean of a space, or of a map into a space of some kind, over the visible positions, BOS included.

    All scores are 0, so every kind of attention gives each of the $n$ visible keys the weight $1/n$. For a count $c$
    over a prefix of $i$ tokens the result is $c/(i+1)$, when the value at BOS is 0.
    """
    if isinstance(value, Space):
        name = name or f"mean({value.name})"
        kind = kind or Reals(tuple(value.kind.names), value.kind.low, value.kind.high)
        value = Affine.copy(value)
    if name is None or kind is None:
        raise TypeError("the mean of a map needs a name and a kind")
    writes = Space(name, kind)
    return net.attend(
        f"mean: {writes.name}",
        query=Affine.of({}, [0.0]),
        key=Affine.of({}, [0.0]),
        value=value,
        writes=writes,
        mask=mask,
        error=rounding_of_mean(net, writes),
    )


def weighted_mean(
    net: Builder, score: Affine, value: Affine, writes: Space, *, mask: Literal["none", "causal"] = "causal"
) -> Space:
    r"""Return the mean of a value over the visible positions $j$ under softmax, each with the weight $e^{s_j}$.

    The score $s_j$ is a function of the key alone, and no inverse temperature multiplies it.
    """
    largest = float(value.bound.max(initial=0.0))
    return net.add(
        Attend(
            name=f"weighted mean: {writes.name}",
            query=Affine.constant(1.0),
            key=score,
            value=value,
            writes=writes,
            attention="softmax",
            mask=mask,
            error=4 * UNIT_ROUNDOFF * (net.max_length + net.pads + 4 * float(score.bound.max())) * largest,
        )
    )


def rounding_of_mean(net: Builder, value: Space) -> float:
    """Return a bound on the rounding error of the mean of a space over any number of positions."""
    return 4 * UNIT_ROUNDOFF * (net.longest + net.pads) * max(abs(value.kind.low), abs(value.kind.high))


def count(
    net: Builder,
    value: Affine,
    labels: Sequence[str],
    high: float,
    *,
    name: str,
    low: float = 0.0,
    abs_total: float = 0.0,
    mask: Literal["causal", "strict"] = "causal",
) -> Space:
    r"""Return exact sums of a value over the tokens read so far (with a strict mask: before this one).

    Let $t$ of at most $T$ tokens be visible, behind $p$ BOS pads with the score $s_t$ each. Every token gets the same
    weight $1/(T+1)$ if $s_t = \ln\frac{T+1-t}{p}$ under softmax ($p e^{s_t} + t = T+1$), and if $s_t =
    \frac{T+1-t}{p(T+1)} - \frac1{T+1}$ under sparsemax (all keys are in the support with $\tau = -1/(T+1)$). The value,
    0 at BOS, is multiplied by $T+1$. Hard attention gives equal weights to the keys it chooses: behind $T$ pads it
    chooses the last $T$ keys, tokens and pads, each with the weight $1/T$. With fewer pads the weight would depend on
    $t$, and hard attention is refused.

    Rounding: under softmax the sum of $n$ weights and the weighted sum round by $n$ units each, in the last place of
    the result. Sparsemax finds $\tau$ by a running sum over up to $T+p$ keys, and every weight inherits its rounding.
    Where terms of both signs cancel, it is the last place of `abs_total`, a bound on the sum of their absolute values.
    """
    length, strict = net.max_length, mask == "strict"
    seen = np.arange(1.0, length + 1) - strict
    left = (length + 1 - seen) / net.pads
    query, key, total, window = Affine.of({}, [0.0]), Affine.of({}, [0.0]), length + 1, None
    if net.attention == "hard":
        if net.pads < length:
            raise BuildRefused(
                "hard attention averages over the keys it chooses, so it can't count: "
                "use --attention softmax or sparsemax"
            )
        total, window, roundings = length, length + strict, 16 + 2 * (length + net.pads)
    else:
        if net.attention == "softmax":
            sink, roundings = np.log(left), 16 + 2 * (length + net.pads)
        else:
            sink, roundings = (left - 1) / (length + 1), (16 + length + net.pads) * (length + net.pads)
        kind = Reals(("s_t",), min(float(sink.min()), 0.0), max(float(sink.max()), 0.0))
        query = Affine.of({net.embed_position(f"sink of {name}", kind, sink[:, None]): [[1.0]]})
        key = Affine.of({net.bos: [[1.0]]})
    writes = Space(name, Integers(tuple(labels), low, high))
    return net.attend(
        f"count: {name}",
        query=query,
        key=key,
        value=Affine(tuple((s, total * m) for s, m in value.parts), total * value.bias),
        writes=writes,
        mask=mask,
        window=window,
        bias=None if window is None else np.zeros(window),
        error=roundings * UNIT_ROUNDOFF * max(high, -low, abs_total, 1.0),
    )


def window(
    net: Builder, value: Space | Affine, weights: Sequence[float], *, name: str, kind: Reals | None = None
) -> Space:
    r"""Return $\sum_i w_i v_{t-i}$ over the last positions, with fixed weights $w_i \ge 0$; a map's values have a kind.

    The scores are the relative biases $r_i$ alone. Softmax normalizes $e^{r_i}$, so $r_i = \ln w_i$, and -1000 for
    $w_i = 0$: that is 0 in every format. Sparsemax leaves a point of the simplex unchanged, so $r_i = w_i / \sum w$.
    Hard attention shares equally among ties, so positive weights must be equal, with $r_i = 0$, and -1 for $w_i = 0$.
    The value is multiplied by $\sum w$. There must be as many BOS pads as weights, so that every window is full.
    """
    w = np.asarray(weights, dtype=float)
    if net.pads < len(w):
        raise BuildRefused(f"a window of {len(w)} needs {len(w)} BOS pads, the network has {net.pads}")
    if net.attention == "softmax":
        bias = np.log(w, out=np.full(len(w), NO_WEIGHT), where=w > 0)
    elif net.attention == "sparsemax":
        bias = w / w.sum()
    elif np.ptp(w[w > 0]) == 0:
        bias = np.where(w > 0, 0.0, -1.0)
    else:
        raise BuildRefused(
            "hard attention shares its weight equally: a window with unequal weights needs soft or sparse"
        )
    if isinstance(value, Space):
        kind = kind or Reals(tuple(value.kind.names), min(value.kind.low, 0.0), value.kind.high)
        value = Affine.copy(value)
    if kind is None:
        raise TypeError("the window of a map needs a kind")
    total = float(w.sum())
    extreme = total * max(abs(kind.low), abs(kind.high))
    return net.attend(
        f"window of {len(w)}: {name}",
        query=Affine.of({}, [0.0]),
        key=Affine.of({}, [0.0]),
        value=value * total,
        writes=Space(name, Reals(kind.labels, total * kind.low, extreme)),
        window=len(w),
        bias=bias,
        error=8 * UNIT_ROUNDOFF * len(w) * extreme,
    )
