r"""Whole numbers from means: two heads that find the $s$ of a fraction $s/n$, and copy $s$ and $s^2$.

A mean over $n$ positions gives $a = s/n$, and that of the flag of BOS gives $b = 1/n$. One head has the query $(2a,
-b)$, the other $(-2a, -b)$; the key of position $j$ is $(j, j^2)$. The scores $b(\pm 2sj - j^2)$ are largest at $j =
\max(\pm s, 0)$ alone, $b\delta^2$ or more above the key that is $\delta$ positions away. The first head copies $(j,
j^2)$, the other $(-j, j^2)$; their sum is $(s, s^2)$. No weight depends on the length; $|s|$ must be at most the last
position that the heads see.

**Rounding.** With unit roundoff $u$ all weights of a mean are one number $w = (1 + \epsilon)/n$, $|\epsilon| \le u$,
and $b = w$. A sum of $n$ of them, in any order, is $a = sw + e$ with $|e| \le \gamma_{n-1} \approx nu$. Two scores, of
at most $3n$, are off by $6n\gamma_2 \approx 12nu$ together. So the best key wins by at least $w\delta^2 - 2|e|\delta -
6n\gamma_2$, for $\delta \ge 1$ at least $w - 2|e| - 6n\gamma_2$, which is positive while $16 n^2 u \le 1$.
"""

from __future__ import annotations

from math import isqrt
from typing import Literal

from vitrify.kit.network import Affine, Attend, Bank, Builder, Integers, Space

ROUNDING = 16  # the factor of $n^2 u$


def longest_selection(bits: int) -> int:
    r"""Return the number of tokens, behind one BOS, up to which $16 n^2 u \le 1$ in a format of so many bits.

    >>> [longest_selection(bits) for bits in (53, 24, 11)]
    [23726565, 1023, 10]
    """
    return isqrt((1 << bits) // ROUNDING) - 1


def whole_from_mean(
    net: Builder,
    mean: Space,
    *,
    ahead: Space | None = None,
    mask: Literal["causal", "strict"] = "causal",
    name: str,
) -> Space:
    """Return a whole number and its square, from the mean of a value and of the flag of BOS over the same positions.

    The network has hard attention, and positions by formula. Where the flag `ahead` is 1, the mean of the value must be
    0; the result is then the last position that the heads see.
    """
    key = Affine.of({net.index: [[1.0, 0.0]], net.square: [[0.0, 1.0]]})
    longest = float(net.longest)
    writes = Space(name, Integers((name, f"{name}²"), -longest, longest**2))
    heads = []
    for sign, part in ((1.0, "positive"), (-1.0, "negative")):
        query = Affine.of({mean: [[2 * sign, 0.0], [0.0, -1.0]]})
        if ahead is not None:
            query = query + Affine.of({ahead: [[2 * sign, 0.0]]})
        value = Affine.of({net.index: [[sign, 0.0]], net.square: [[0.0, 1.0]]})
        heads.append(Attend(f"{name}, {part}", query, key, value, writes, "hard", mask=mask, beta=1.0))
    values = tuple(head.value for head in heads)
    return net.add(Bank(name, tuple(heads), writes, values, truncation=0.0, error=0.0))


def last_whole_match(net: Builder, query: Affine, key: Affine, value: Space, *, name: str) -> Space:
    r"""Return a value at the last position whose whole number $k$ equals the query $q$; that at BOS if there is none.

    The maps are $(q, q^2)$ and $(k, k^2)$, the latter $(0, 0)$ at BOS. The score is $2qk - k^2 = q^2 - (q-k)^2$, and
    $q^2 - 1/2$ at BOS: all scores are multiples of 1/2, and matches are tied.
    """
    longest = float(net.longest)
    asked = query @ [[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]] + Affine.constant([0.0, -1.0, -0.5])
    return net.attend(
        f"last match: {name}",
        query=asked,
        key=key.beside(Affine.of({net.bos: [[1.0]]})),
        value=Affine.copy(value),
        writes=Space(name, value.kind),
        gap=0.5,
        bound=4 * longest**2 + 0.5,
        ties="right",
        attends_to="last",
    )
