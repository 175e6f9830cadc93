r"""Sets of values of a residual stream: independent parts with finitely many vectors each, known up to an error.

At a position of a *stretch* (the pads, or the tokens) the stream is $x = \text{place}_i + \sum_f v_f + \text{error}$:
a row that only the position sets, one vector of every *factor*, and in each dimension an error of at most `error`.
Every input word gives such a sum, whichever vectors it picks, so what holds for all choices holds for all words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vitrify.arrays import Array, Bools, Float, Floats, Int, Ints, Matrix, Num
from vitrify.net.sparse import dense, is_sparse
from vitrify.net.weights import Weights

MAX_POINTS = 1 << 21  # vectors of one factor or one sum
MAX_NUMBERS = 1 << 22  # numbers in one table of vectors
MAX_ENTRIES = 1 << 25  # of a matrix that is written out
MANY = 32  # dimensions from which a one-hot is not written out
ROUNDOFF = 2.0**-53
ROUNDED_UP = 1 + 2.0**-40  # factor on sums of errors, which float64 rounds itself


class Undecided(Exception):
    """The analysis can't prove what it should; the message says why."""


@dataclass(frozen=True, eq=False)
class ValueFactor:
    """Dimensions that move together: `points` are the vectors they may hold; None is any vector of the box.

    `units` says instead that they hold a unit vector (or, if `void`, zero): large one-hot spaces are never written out.
    """

    name: str
    dims: Int[np.ndarray, " size"]
    low: Float[np.ndarray, " size"]
    high: Float[np.ndarray, " size"]
    points: Num[Matrix, "n size"] | None = None
    units: bool = False
    void: bool = False

    @classmethod
    def of(cls, name: str, dims: Sequence[int] | Ints, points: Matrix) -> ValueFactor:
        """From the vectors themselves, dense or sparse; unit vectors of many dimensions are not kept."""
        if is_sparse(points):
            low, high = (np.asarray(f(axis=0).todense()).ravel() for f in (points.min, points.max))
        else:
            low, high = points.min(axis=0), points.max(axis=0)
            ones = np.count_nonzero(points == 1, axis=1)
            if len(dims) > MANY and np.count_nonzero(points) == ones.sum() and ones.max(initial=0) <= 1:
                return cls.unit_vectors(name, dims, void=bool((ones == 0).any()))
        return cls(name, np.asarray(dims, dtype=np.int64), low, high, points)

    @classmethod
    def unit_vectors(cls, name: str, dims: Sequence[int] | Ints, *, void: bool) -> ValueFactor:
        """One of the unit vectors of the dimensions."""
        size = len(dims)
        return cls(name, np.asarray(dims, dtype=np.int64), np.zeros(size), np.ones(size), None, True, void)

    @classmethod
    def box(cls, name: str, dims: Sequence[int] | Ints, low: Floats, high: Floats) -> ValueFactor:
        """Any vector between two."""
        return cls(name, np.asarray(dims, dtype=np.int64), low, high)

    @property
    def finite(self) -> bool:
        return self.units or self.points is not None

    @property
    def count(self) -> int | None:
        """Return the number of vectors; None in a box."""
        if self.units:
            return len(self.dims) + self.void
        return None if self.points is None else int(self.points.shape[0])

    def written_out(self) -> Floats:
        """The vectors [n, size] of a factor with few of them."""
        return np.eye(len(self.dims)) if self.points is None else np.asarray(dense(self.points))

    def image(self, rows: Matrix) -> Floats:
        """The different vectors that a matrix [size, out] makes of the points."""
        if not self.finite:
            raise Undecided(f"{self.name!r} holds numbers that are known only within bounds")
        rows = dense(rows) if not is_sparse(rows) or rows.shape[0] * rows.shape[1] <= MAX_ENTRIES else rows
        if is_sparse(rows):
            raise Undecided(f"{self.name!r} is read by too many units at once")
        if self.units:
            images = np.vstack([rows, np.zeros((1, rows.shape[1]))]) if self.void else rows
        else:
            images = self.points @ rows
        return distinct(dense(images))

    def without(self, gone: Ints) -> ValueFactor | None:
        """The factor when some dimensions no longer count."""
        keep = ~np.isin(self.dims, gone)
        if keep.all():
            return self
        if not keep.any():
            return None
        if self.units:
            return replace(
                self, dims=self.dims[keep], low=self.low[keep], high=self.high[keep], void=self.void or not keep.all()
            )
        points = None if self.points is None else self.points[:, np.flatnonzero(keep)]
        if points is not None and not is_sparse(points):
            points = distinct(points)
        return replace(self, dims=self.dims[keep], low=self.low[keep], high=self.high[keep], points=points)


@dataclass(frozen=True, eq=False)
class Stretch:
    """Positions of one sort, and what the stream may hold there; `error` is by dimension."""

    name: str
    start: int
    places: Float[np.ndarray, "position dim"]
    factors: tuple[ValueFactor, ...]
    error: Float[np.ndarray, " dim"]

    def __len__(self) -> int:
        return len(self.places)

    @property
    def positions(self) -> Ints:
        return self.start + np.arange(len(self.places))

    def touched(self, matrix: Matrix) -> list[ValueFactor]:
        """The factors that a matrix [dimensions, …] reads."""
        return self.factors_of(np.flatnonzero(reads(matrix)))

    def factors_of(self, dims: Ints) -> list[ValueFactor]:
        """The factors that some dimensions are part of."""
        every, owner = self._dims_of_factors
        wanted = np.zeros(self.places.shape[1], dtype=bool)
        wanted[dims] = True
        return [self.factors[number] for number in np.unique(owner[wanted[every]]).tolist()]

    @cached_property
    def _dims_of_factors(self) -> tuple[Ints, Ints]:
        """The dimensions of all factors, one after the other, and the number of the factor of each."""
        parts = [factor.dims for factor in self.factors]
        dims = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        return dims, np.repeat(np.arange(len(parts)), [len(part) for part in parts])

    def at_places(self, matrix: Matrix, bias: Floats) -> Floats:
        """Return the output of a matrix for the position embeddings alone."""
        used = np.flatnonzero(self.places.any(axis=0) & reads(matrix))
        if not len(used):
            return np.broadcast_to(bias, (len(self), len(bias)))
        return np.asarray(self.places[:, used] @ rows_of(matrix, used)) + bias

    def contents(self, matrix: Matrix, *, most: int = MAX_POINTS) -> Floats:
        """All sums of one vector of each factor, mapped by a matrix [dimensions, out]."""
        parts = [factor.image(rows_of(matrix, factor.dims)) for factor in self.touched(matrix)]
        return sums(parts, matrix.shape[1], most=most)

    def reach(self, sizes: Matrix) -> Floats:
        """The most that the sizes of the numbers, times a matrix that has no negative entry, add up to by column."""
        return self._folded(sizes, np.abs)

    def terms(self, there: Matrix) -> Floats:
        """Return how many of the entries that each column of a 0/1 matrix reads can differ from 0."""
        return self._folded(there, lambda numbers: (numbers != 0).astype(float))

    def _folded(self, matrix: Matrix, size: Callable[[Floats], Floats]) -> Floats:
        total = size(self.error) @ matrix
        if not total.size or not reads(matrix).any():
            return np.asarray(total)
        used = np.flatnonzero(self.places.any(axis=0) & reads(matrix))
        if len(used):
            total = total + _highest(size(self.places[:, used]) @ rows_of(matrix, used))
        for factor in self.touched(matrix):
            rows = rows_of(matrix, factor.dims)
            if factor.units:
                total = total + _highest(rows)
            elif factor.points is None:
                total = total + np.maximum(size(factor.low), size(factor.high)) @ rows
            else:
                points = factor.points
                if is_sparse(points):
                    points = points.copy()
                    points.data = size(points.data)
                    total = total + _highest(points @ rows)
                else:
                    total = total + _highest(_few(size(points), rows.shape[1]) @ rows)
        return np.asarray(total)

    def moved(self, matrix: Matrix) -> Floats:
        """Return by how much the errors can move each output of a matrix, rounded up."""
        return np.asarray(self.error @ abs(matrix)) * ROUNDED_UP

    def empty(self, dims: Ints) -> Bools:
        """Which of some dimensions hold exactly 0 at every position."""
        full = self.places.any(axis=0) | (self.error != 0)
        for factor in self.factors:
            full[factor.dims] = True
        return np.asarray(~full[dims])

    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the largest number in each dimension, errors included."""
        low, high = self.places.min(axis=0), self.places.max(axis=0)
        for factor in self.factors:
            np.add.at(low, factor.dims, factor.low)
            np.add.at(high, factor.dims, factor.high)
        return low - self.error, high + self.error

    def cleared(self, dims: Ints, left: Floats) -> Stretch:
        """The same with some dimensions set to zero, up to an error that is left in each."""
        places, error = self.places.copy(), self.error.copy()
        places[:, dims] = 0.0
        error[dims] = left
        remaining = [factor.without(dims) for factor in self.factors]
        return replace(
            self, places=places, error=error, factors=tuple(factor for factor in remaining if factor is not None)
        )

    def holding(self, factors: Iterable[ValueFactor], dims: Ints, error: Floats | float) -> Stretch:
        """The same with new factors, whose dimensions are off by an error."""
        added = self.error.copy()
        added[dims] += error
        return replace(self, factors=(*self.factors, *factors), error=added)


def at_pads(weights: Weights) -> tuple[list[Floats], Floats]:
    """Return the residual stream [pad, dim] of the pads at every moment, and the first logits, the same for all words.

    That is so if no head attends ahead.
    """
    net, seen = weights.architecture, dict[str, Array]()
    logits = net.forward(weights.prepared, np.zeros((1, net.pads), dtype=np.int64), record=seen.__setitem__)
    return [np.asarray(seen[name])[0] for name in net.moments], np.asarray(logits)[0, -1]


def reads(matrix: Matrix) -> Bools:
    """Which rows of a matrix are not zero."""
    if is_sparse(matrix):
        return np.asarray(abs(matrix).sum(axis=1)).ravel() > 0
    return np.asarray(np.any(matrix != 0, axis=tuple(range(1, matrix.ndim))))


def _highest(table: Matrix) -> Floats:
    """The largest entry of every column."""
    return np.asarray(table.max(axis=0).todense()).ravel() if is_sparse(table) else np.asarray(table.max(axis=0))


def _few(points: Floats, columns: int) -> Floats:
    """Return the different points; where products of them with so many columns are too many, their largest entries."""
    points = distinct(points) if len(points) * columns > MAX_NUMBERS else points
    return points if len(points) * columns <= MAX_ENTRIES else points.max(axis=0, keepdims=True)


def rows_of(matrix: Matrix, dims: Ints) -> Matrix:
    """Some rows of a matrix, dense or sparse."""
    return matrix.tocsr()[dims] if is_sparse(matrix) else matrix[dims]


def distinct(points: Floats) -> Floats:
    """The different rows."""
    if points.shape[1] == 1:
        return np.unique(points[:, 0])[:, None]
    if points.shape[1] == 0:
        return points[:1]
    return np.unique(points, axis=0)


def sums(parts: Sequence[Floats], size: int, *, most: int = MAX_POINTS) -> Floats:
    """All different sums of one row of each part; too many are refused."""
    if len(parts) == 1 and len(parts[0]) <= most:
        return parts[0]
    total: Floats = np.zeros((1, size))
    for part in sorted(parts, key=len):
        if len(total) * len(part) > most or len(total) * len(part) * max(size, 1) > MAX_NUMBERS:
            raise Undecided(f"{len(total)} × {len(part)} combinations of values are too many to enumerate")
        total = distinct((total[:, None] + part[None]).reshape(-1, size))
    return total


def is_unit(matrix: Matrix) -> bool:
    """Return whether a matrix maps unit vectors to different unit vectors or to zero."""
    from scipy.sparse import csr_array

    csr = csr_array(matrix)
    csr.eliminate_zeros()
    alone = np.diff(csr.indptr).max(initial=0) <= 1 and np.bincount(csr.indices, minlength=1).max(initial=0) <= 1
    return bool(alone and (csr.data == 1).all())
