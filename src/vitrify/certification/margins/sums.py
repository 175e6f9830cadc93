"""Sums with fixed weights: the set of numbers that a head can write that counts or averages."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Float, Floats
from vitrify.certification.margins.values import ValueFactor, distinct, sums

MAX_ENUMERATED_KEYS = 10  # weighted sums of at most this many keys are enumerated
MAX_NUMBERS = 1 << 22  # different numbers that a sum may take
RELATIVE_ROUNDING = 1e-9  # numbers that differ by less, relatively, differ by rounding


def weighted(
    name: str, weight: Float[np.ndarray, "query key"], values: Float[np.ndarray, " value"], dim: int
) -> tuple[ValueFactor, float]:
    """Return all weighted sums of one value per key, for any query, and their largest error.

    A few keys are enumerated; equal weights make a grid, as in counting; all else is known within bounds.
    """
    dims, total = np.array([dim]), weight.sum(axis=1)
    if len(values) == 1:
        return ValueFactor.of(name, dims, distinct((total * values[0])[:, None])), 0.0
    rows = {tuple(np.sort(row[row > 0]).tolist()) for row in weight}
    if max(map(len, rows)) <= MAX_ENUMERATED_KEYS:
        sets = [sums([weight * values[:, None] for weight in row], 1) for row in rows]
        return ValueFactor.of(name, dims, distinct(np.vstack(sets))), 0.0
    grid = _grid({len(row): (row[0], row[-1]) for row in rows if row}, values)
    if grid is not None:
        return ValueFactor.of(name, dims, grid[0][:, None]), grid[1]
    ends = np.stack([total * values.min(), total * values.max()])
    return ValueFactor.box(name, dims, ends.min(keepdims=True).ravel(), ends.max(keepdims=True).ravel()), 0.0


def _grid(ranges: dict[int, tuple[float, float]], values: Floats) -> tuple[Floats, float] | None:
    """Return the sums of keys with one common weight, if the values are multiples of one step apart, and their error.

    Weights and steps that are only nearly equal put the sums a little off the grid: that is the error.
    """
    least, most = min(low for low, _ in ranges.values()), max(high for _, high in ranges.values())
    if most - least > RELATIVE_ROUNDING * most:
        return None
    grain = (least + most) / 2
    steps = grain * (values - values.min())
    unit, whole = float(steps[steps > 0].min()), np.round(steps)
    if np.abs(steps - whole).max() <= RELATIVE_ROUNDING and whole[steps > 0].all():
        unit = float(np.gcd.reduce(whole.astype(np.int64)))
    if np.abs(steps / unit - np.round(steps / unit)).max() > RELATIVE_ROUNDING:
        return None
    top = round(float(steps.max() / unit))
    if sum(count * top + 1 for count in ranges) > MAX_NUMBERS:
        return None
    grids = [np.zeros(1)] + [count * grain * values.min() + unit * np.arange(count * top + 1) for count in ranges]
    numbers, most_keys = np.concatenate(grids), max(ranges)
    off = most_keys * (most - least) * float(np.abs(values).max())
    off += most_keys * unit * float(np.abs(steps / unit - np.round(steps / unit)).max())
    integers = np.round(numbers)
    if np.abs(numbers - integers).max() <= RELATIVE_ROUNDING * max(1.0, np.abs(integers).max()):
        off, numbers = off + float(np.abs(numbers - integers).max()), integers
    return np.unique(numbers), off
