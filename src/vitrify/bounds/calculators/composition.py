r"""One layer of attention errs when it composes two functions.

Statement: $f$ and $g$ are random functions of $n$ elements, given entry by entry, and $x$ is a random query. With $R =
n \log_2 n - H(d+1)p > 0$ every one-layer net of $H$ heads, value size $d$ and $p$ bits errs on $f(g(x))$ with
probability at least $R/(3 n \log_2 n)$, and by Fano's inequality at least the $e$ at which $h(e) + e\log_2(n-1) = R/n$;
either may be the larger.
Assumes: partial sums of $p$ bits, as in the published statement. Exact sums of $p$-bit numbers over the $n$ entries of
$f$ have $p + \lceil\log_2 n\rceil$ bits; the last two figures charge that.
Source: Peng, Narayanan & Papadimitriou 2024, arXiv 2402.08164 [S]; the Fano version is ours.
"""

from __future__ import annotations

from math import log2
from typing import Annotated

from vitrify.bounds.calculators._entropy import least_error
from vitrify.bounds.calculators.catalogue import Bits, Bound, BoundReading
from vitrify.bounds.quantized import sum_bits
from vitrify.parameters import Help, Within


def published(n: int, bits: int) -> float:
    """Return the least error when Faye sends `bits` bits: $R/(3 n \\log_2 n)$, or 0.

    >>> published(64, 15 * 16)
    0.125
    """
    missing = n * log2(n) - bits
    return max(missing, 0.0) / (3 * n * log2(n))


def by_fano(n: int, bits: int) -> float:
    """Return the least error by Fano's inequality: the missing bits are spread over $n$ entries at best."""
    return least_error((n * log2(n) - bits) / n, n)


def evaluate(
    *,
    n: Annotated[int, Within(2, 2**20), Help("elements that the functions map to each other")],
    H: Annotated[int, Within(1, 2**16), Help("heads")],
    d: Annotated[int, Within(1, 2**20), Help("size of a value")],
    p: Bits,
) -> BoundReading:
    """The least error."""
    numbers = H * (d + 1)
    bits, exact = numbers * p, numbers * sum_bits(p, n)
    error = published(n, bits)
    figures = {
        "bits of f": n * log2(n),
        "bits sent": bits,
        "R": n * log2(n) - bits,
        "error at least": error,
        "error at least, by Fano": by_fano(n, bits),
        "bits of exact sums": exact,
        "error at least, exact sums, by Fano": by_fano(n, exact),
    }
    if error == 0:
        return BoundReading(figures, "the layer may send enough bits: the bound says nothing about it")
    return BoundReading(
        figures, f"every one-layer net of this size is wrong on at least {100 * error:.4g} % of random f, g, x"
    )


BOUND = Bound(status="unconditional", evaluate=evaluate)
