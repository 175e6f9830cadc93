r"""Maximum: a head whose score is its value, so that it attends to the largest.

Let $k$ keys compete, the largest and its $k-1$ *rivals*, with values $a_1 \ge a_2 \ge \dots$ and scores $\beta a_j$,
where $\beta$ is the inverse temperature. The $m$ other keys have values at least $F$ below $a_1$. The output falls
short of $a_1$ by at most

| attention | shortfall |
| --- | --- |
| hard | 0 |
| sparsemax | $\frac{k-1}{4k\beta}$, if $\beta F \ge 1$ |
| softmax | $\frac1\beta W\!\big(\frac{k-1}{e}\big) + mFe^{-\beta F}$, if $\beta F \ge 1$ |

where $W$ is Lambert's function, $We^W = x$.

**Softmax.** With gaps $g_j = \beta(a_1 - a_j)$ the shortfall, times $\beta$, is $D = \sum_j g_j e^{-g_j} / (1 + \sum_j
e^{-g_j})$ over the rivals. $\partial D/\partial g_j = 0$ says $g_j = 1 + D$, so the worst gaps are all equal: $g = 1 +
(k-1)ge^{-g}/(1 + (k-1)e^{-g})$, that is $(g-1)e^{g-1} = (k-1)/e$, so $D = g - 1 = W((k-1)/e)$. Any other key adds at
most $ge^{-g}$ with $g \ge \beta F \ge 1$, where $ge^{-g}$ decreases. **Sparsemax.** On a support of $s$ keys with mean
gap $\bar g$ the weights are $1/s + \bar g - g_j$, so $D = \bar g + s\bar g^2 - \sum g_j^2 \le \bar g - \bar g^2
s/(s-1)$ with equality for equal gaps of the rivals, at most $(s-1)/(4s)$. No key with a gap of 1 or more is in the
support, so $s \le k$.
"""

from __future__ import annotations

import math

import numpy as np

from vitrify.kit.heads.average import rounding_of_mean
from vitrify.kit.network import Affine, AttentionKind, Builder, Kind, Space

SEPARATION: dict[AttentionKind, float] = {"softmax": 40.0, "sparsemax": 1.0, "hard": 0.0}  # $\beta F$


def shortfall(attention: AttentionKind, rivals: int, others: int) -> float:
    """Return how far a maximum may fall short, times β.

    >>> [round(shortfall("softmax", k - 1, 0), 4) for k in (1, 2, 3, 5, 10)]
    [0.0, 0.2785, 0.4631, 0.7178, 1.101]
    """
    if attention == "hard":
        return 0.0
    if attention == "sparsemax":
        return rivals / (4 * (rivals + 1))
    from scipy.special import lambertw

    apart = SEPARATION[attention]
    return float(lambertw(rivals / math.e).real) + others * apart * math.exp(-apart)


def maximum(
    net: Builder, value: Space, coordinate: int, kind: Kind, *, rivals: int, beta: float = 1.0, name: str
) -> Space:
    r"""Return the largest value of a coordinate over all positions.

    `rivals` is how many keys besides the largest may come within `SEPARATION` / $\beta$ of it. The construction chooses
    the inverse temperature $\beta$, from `shortfall` and the error that it allows.
    """
    others = net.max_length + net.pads - 1 - rivals
    copy = Affine.of({value: np.eye(value.size)[:, [coordinate]]})
    return net.attend(
        f"maximum: {name}",
        query=Affine.of({}, [1.0]),
        key=copy,
        value=copy,
        writes=Space(name, kind),
        mask="none",
        ties="left",
        beta=beta,
        shortfall=shortfall(net.attention, rivals, others) / beta,
        error=rounding_of_mean(net, value),
    )
