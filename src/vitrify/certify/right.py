"""Right answers as rows of numbers, one for each symbol that a network may say."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def one_of(places: ArrayLike, symbols: int) -> Floats:
    """Rows with a 1 at the place of the right symbol, 0 elsewhere; where the place is negative nothing is asked.

    >>> one_of([1, -1], 2)
    array([[ 0.,  1.],
           [nan, nan]])
    """
    asked = np.asarray(places, dtype=np.int64)[:, None]
    return np.where(asked < 0, np.nan, asked == np.arange(symbols))


def where_any(rows: ArrayLike) -> Floats:
    """Rows of chances or of 0 and 1 as they are; one without any symbol is none: nothing is asked there."""
    given = np.asarray(rows, dtype=np.float64)
    return np.where(given.any(axis=-1, keepdims=True), given, np.nan)
