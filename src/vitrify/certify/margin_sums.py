"""Sums with fixed weights: which numbers a head can write that counts or averages."""

from __future__ import annotations

import numpy as np

from vitrify.certify.values import Factor, Floats, distinct, sums

FEW_KEYS = 10  # weighted sums of so few keys are gone through one by one
MOST_NUMBERS = 1 << 22  # different numbers that a sum may take
ALIKE = 1e-9  # numbers that differ by less, relatively, differ by rounding


def weighted(name: str, weight: Floats, values: Floats, dim: int) -> tuple[Factor, float]:
    """All sums of one of the values per key, times the weights [query, key], for any query; and how far they are off.

    Few keys are gone through; equal weights make a grid, as in counting; all else is known within bounds.
    """
    dims, total = np.array([dim]), weight.sum(axis=1)
    if len(values) == 1:
        return Factor.of(name, dims, distinct((total * values[0])[:, None])), 0.0
    rows = {tuple(np.sort(row[row > 0]).tolist()) for row in weight}
    if max(map(len, rows)) <= FEW_KEYS:
        return Factor.of(name, dims, distinct(np.vstack([_one_by_one(row, values) for row in rows]))), 0.0
    grid = _grid({len(row): (row[0], row[-1]) for row in rows if row}, values)
    if grid is not None:
        return Factor.of(name, dims, grid[0][:, None]), grid[1]
    ends = np.stack([total * values.min(), total * values.max()])
    return Factor.box(name, dims, ends.min(keepdims=True).ravel(), ends.max(keepdims=True).ravel()), 0.0


def _one_by_one(row: tuple[float, ...], values: Floats) -> Floats:
    return sums([weight * values[:, None] for weight in row], 1)


def _grid(ranges: dict[int, tuple[float, float]], values: Floats) -> tuple[Floats, float] | None:
    """The numbers that so many keys of one common weight can add up to, if the values are steps of one size apart.

    Weights and steps that are only nearly equal put the sums a little off the grid: by how much comes with it.
    """
    least, most = min(low for low, _ in ranges.values()), max(high for _, high in ranges.values())
    if most - least > ALIKE * most:
        return None
    grain = (least + most) / 2
    steps = grain * (values - values.min())
    unit = float(steps[steps > 0].min())
    if np.abs(steps / unit - np.round(steps / unit)).max() > ALIKE:
        return None
    top = round(float(steps.max() / unit))
    if sum(count * top + 1 for count in ranges) > MOST_NUMBERS:
        return None
    found = [np.zeros(1)] + [count * grain * values.min() + unit * np.arange(count * top + 1) for count in ranges]
    numbers, most_keys = np.concatenate(found), max(ranges)
    off = most_keys * (most - least) * float(np.abs(values).max())
    off += most_keys * unit * float(np.abs(steps / unit - np.round(steps / unit)).max())
    whole = np.round(numbers)
    if np.abs(numbers - whole).max() <= ALIKE * max(1.0, np.abs(whole).max()):
        off, numbers = off + float(np.abs(numbers - whole).max()), whole
    return np.unique(numbers), off
