"""Bits and errors: binary entropy, and Fano's inequality in both directions."""

from __future__ import annotations

from math import log2


def entropy(share: float) -> float:
    """Return the binary entropy, in bits.

    >>> entropy(0.5), entropy(0.0)
    (1.0, 0.0)
    """
    if share in (0, 1):
        return 0.0
    return -share * log2(share) - (1 - share) * log2(1 - share)


def doubt(error: float, choices: int) -> float:
    """Return the most bits that may be missing about one of `choices` values at this error rate (Fano's inequality).

    >>> doubt(0.0, 8), doubt(0.5, 2)
    (0.0, 1.0)
    """
    return entropy(error) + error * log2(choices - 1) if choices > 1 else 0.0


def least_error(missing: float, choices: int) -> float:
    """Return the least error rate when `missing` bits about one of `choices` values are missing (Fano's inequality).

    Rounded downwards, so that it stays a lower bound.

    >>> least_error(0.0, 64), round(least_error(6.0, 64), 4), round(least_error(2.25, 64), 4)
    (0.0, 0.9844, 0.2427)
    """
    low, high = 0.0, 1 - 1 / choices  # where doubt rises from 0 to its largest, log2(choices)
    if missing <= 0:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if doubt(middle, choices) < missing else (low, middle)
    return low
