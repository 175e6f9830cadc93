"""Products of floating-point arrays without rounding: floats are binary fractions, and so are sums of products."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MANTISSA = 53
WORD = 62  # bits of a sum that int64 holds


def whole(array: Floats) -> tuple[NDArray[Any], int]:
    r"""Whole numbers $n$ and the least $b$ with $x = n / 2^b$; Python's own where int64 is too short.

    >>> whole(np.array([0.5, -1.25, 3.0]))
    (array([ 2, -5, 12]), 2)
    """
    mantissa, exponent = np.frexp(array)
    digits = (mantissa * 2.0**MANTISSA).astype(np.int64)
    lowest = np.where(digits == 0, 1, digits & -digits)
    zeros = np.where(digits == 0, MANTISSA, np.frexp(lowest.astype(np.float64))[1] - 1)
    needed = MANTISSA - exponent - zeros  # fractional bits of each number
    bits = max(0, int(np.where(digits == 0, 0, needed).max(initial=0)))
    up = exponent.astype(np.int64) - MANTISSA + bits  # n = digits · 2^up, and where up < 0 the zeros make up for it
    if int((exponent + bits).max(initial=0)) <= WORD:
        return np.where(up >= 0, digits << np.maximum(up, 0), digits >> np.minimum(-np.minimum(up, 0), 63)), bits
    shifted = [d << u if u >= 0 else d >> -u for d, u in zip(digits.ravel().tolist(), up.ravel().tolist(), strict=True)]
    return np.array(shifted, dtype=object).reshape(array.shape), bits


def products(left: Floats, right: Floats) -> tuple[NDArray[Any], int]:
    r"""$\text{left}\,\text{right}^\top$ exactly, as whole numbers over $2^b$.

    >>> found, bits = products(np.array([[0.1, 0.2]]), np.array([[3.0, -1.0]]))
    >>> Fraction(found[0, 0], 2**bits) == 3 * Fraction(0.1) - Fraction(0.2)
    True
    """
    a, abits = whole(left)
    b, bbits = whole(right)
    largest = int(abs(a).max(initial=1)) * int(abs(b).max(initial=1)) * left.shape[1]
    if largest < 2**MANTISSA:  # every partial sum is a whole number that a float holds
        return np.rint(a.astype(np.float64) @ b.astype(np.float64).T).astype(np.int64), abits + bbits
    if largest < 2**WORD:
        return a.astype(np.int64) @ b.astype(np.int64).T, abits + bbits
    return a.astype(object) @ b.astype(object).T, abits + bbits


def fraction(number: Any, bits: int) -> Fraction:
    """A whole number over a power of 2."""
    return Fraction(int(number), 2**bits)
