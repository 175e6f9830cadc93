r"""Matrices of real numbers, each an exact fraction plus a ball that is certain to hold the rest.

A matrix is $N/d + B$: integers over one denominator, and balls (midpoint and radius, of FLINT's Arb) that are missing
where everything is a fraction. Stored weights are binary fractions, so sums and products keep an entry exact until
something that is no fraction is added to it: then its ball is no longer exactly 0. Of two exact entries it is always
known whether they are equal. Balls are computed with the working precision of the caller (`flint.ctx.prec`); whatever
the precision, they hold the true value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import Any, TypeVar

import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat, fmpz, fmpz_mat

from vitrify.arrays import Floats, Matrix
from vitrify.errors import InputError
from vitrify.net.sparse import is_sparse, nonzeros

LONG = 512  # bits of a denominator from which on it is worth cancelling
SMALL = 1 << 15  # entries of a matrix below which it is multiplied as it is, however empty
FULL = 0.05  # so is one of which more than this share is not zero
NOTHING = arb(0)
NOT_REAL = "a network with an infinite weight, or one that is no number, has no meaning in real arithmetic"

Entry = tuple[fmpq, arb]
M = TypeVar("M", fmpz_mat, arb_mat)


@dataclass(frozen=True, eq=False)
class RealMatrix:
    """A matrix $N/d + B$; without `ball` it is exact."""

    numerators: fmpz_mat
    denominator: fmpz
    ball: arb_mat | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.numerators.nrows(), self.numerators.ncols()

    def as_balls(self) -> arb_mat:
        """The entries as balls."""
        exact = arb_mat(self.numerators) / arb(self.denominator)
        return exact if self.ball is None else exact + self.ball

    def entries(self) -> list[Entry]:
        """Fraction and ball of every entry, row by row."""
        exact = [fmpq(number, self.denominator) for number in self.numerators.entries()]
        return list(zip(exact, self.balls(), strict=True))

    def balls(self) -> list[arb]:
        """The balls alone, row by row: exactly 0 where an entry is exact."""
        rows, columns = self.shape
        return [NOTHING] * (rows * columns) if self.ball is None else self.ball.entries()

    def __add__(self, other: RealMatrix) -> RealMatrix:
        here, there = self.denominator, other.denominator
        common = here if here == there else here * there // fmpz(gcd(int(here), int(there)))
        numerators = _scaled(self.numerators, common // here) + _scaled(other.numerators, common // there)
        return RealMatrix(numerators, common, _sum(self.ball, other.ball))

    def __matmul__(self, other: RealMatrix) -> RealMatrix:
        """The product of two matrices: only what is not exact in one of them is computed with balls."""
        ball = None if self.ball is None else self.ball * (arb_mat(other.numerators) / arb(other.denominator))
        if other.ball is not None:
            ball = _sum(ball, self.as_balls() * other.ball)
        return _short(RealMatrix(self.numerators * other.numerators, self.denominator * other.denominator, ball))

    def times(self, number: float) -> RealMatrix:
        """Every entry times a stored number."""
        top, bottom = number.as_integer_ratio()
        ball = None if self.ball is None else self.ball * arb(number)
        return RealMatrix(self.numerators * fmpz(top), self.denominator * fmpz(bottom), ball)

    @property
    def T(self) -> RealMatrix:
        ball = None if self.ball is None else self.ball.transpose()
        return RealMatrix(self.numerators.transpose(), self.denominator, ball)

    def pick(self, columns: Sequence[int]) -> RealMatrix:
        """Some columns, in the order given."""
        return RealMatrix(
            _picked(fmpz_mat, self.numerators, columns),
            self.denominator,
            None if self.ball is None else _picked(arb_mat, self.ball, columns),
        )


def exact(array: Floats) -> RealMatrix:
    """Stored numbers [row, column], or one row of them, as they are."""
    array = np.atleast_2d(array)
    if not np.isfinite(array).all():
        raise InputError(NOT_REAL)
    numbers, denominator = integers(array.ravel())
    return RealMatrix(fmpz_mat(len(array), array.shape[1], numbers), fmpz(denominator))


def integers(numbers: Floats) -> tuple[list[int], int]:
    """Stored numbers as integers over one power of two."""
    ratios = {place: float(numbers[place]).as_integer_ratio() for place in np.flatnonzero(numbers).tolist()}
    denominator = max((bottom for _, bottom in ratios.values()), default=1)
    numerators = [0] * len(numbers)
    for place, (top, bottom) in ratios.items():
        numerators[place] = top * (denominator // bottom)
    return numerators, denominator


def zeros(rows: int, columns: int) -> RealMatrix:
    """A matrix of zeros."""
    return RealMatrix(fmpz_mat(rows, columns), fmpz(1))


def ones(rows: int) -> RealMatrix:
    """A column of ones: times a row it is that row, repeated."""
    return RealMatrix(fmpz_mat(rows, 1, [1] * rows), fmpz(1))


def together(rows: int, columns: int, entries: Sequence[Entry]) -> RealMatrix:
    """The matrix with these fractions and balls, row by row."""
    numerators, denominator = fmpq_mat(rows, columns, [fraction for fraction, _ in entries]).numer_denom()
    balls = [ball for _, ball in entries]
    sure = all(ball.is_zero() for ball in balls)
    return RealMatrix(numerators, denominator, None if sure else arb_mat(rows, columns, balls))


def beside(parts: Sequence[RealMatrix]) -> RealMatrix:
    """Matrices of as many rows each, side by side."""
    if len(parts) == 1:
        return parts[0]
    rows = parts[0].shape[0]
    split = [(part.shape[1], part.entries()) for part in parts]
    entries = [entry for row in range(rows) for wide, part in split for entry in part[row * wide : (row + 1) * wide]]
    return together(rows, sum(wide for wide, _ in split), entries)


def below(parts: Sequence[RealMatrix]) -> RealMatrix:
    """Matrices of as many columns each, one below the other."""
    entries = [entry for part in parts for entry in part.entries()]
    return together(sum(part.shape[0] for part in parts), parts[0].shape[1], entries)


def each(function: Callable[..., Entry], *parts: RealMatrix) -> RealMatrix:
    """A function of the entries that stand at the same place."""
    numerators = [function(*entries) for entries in zip(*(part.entries() for part in parts), strict=True)]
    return together(*parts[0].shape, numerators)


def relu(x: RealMatrix) -> RealMatrix:
    """The larger of 0 and each entry; an open sign leaves the ball from 0 to the largest value it may have."""
    rows, columns = x.shape
    numbers = x.numerators.entries()
    if x.ball is None:
        return RealMatrix(fmpz_mat(rows, columns, [max(int(n), 0) for n in numbers]), x.denominator)
    balls = x.ball.entries()
    for place, number in enumerate(numbers):
        if balls[place].is_zero():
            numbers[place] = number if number > 0 else fmpz(0)
            continue
        value = arb(number) / x.denominator + balls[place]
        if not value > 0:
            numbers[place] = fmpz(0)
            balls[place] = NOTHING if value < 0 else NOTHING.union(value.upper())
    sure = all(ball.is_zero() for ball in balls)
    return RealMatrix(fmpz_mat(rows, columns, numbers), x.denominator, None if sure else arb_mat(rows, columns, balls))


class Linear:
    """A stored matrix that multiplies rows from the right; a large and empty one is gone through entry by entry."""

    def __init__(self, matrix: Matrix) -> None:
        self.shape: tuple[int, int] = (matrix.shape[0], matrix.shape[1])
        size = self.shape[0] * self.shape[1]
        self.sparse = size > SMALL and nonzeros(matrix) < FULL * size
        if not self.sparse:
            stored = matrix.toarray() if is_sparse(matrix) else np.asarray(matrix)
            self._exact = exact(stored.reshape(self.shape))
            self._balls = arb_mat(*self.shape, stored.ravel().tolist())
            return
        from scipy.sparse import csr_array

        csr = csr_array(matrix)
        if not np.isfinite(csr.data).all():
            raise InputError(NOT_REAL)
        numbers, denominator = integers(csr.data)
        self._exact = RealMatrix(fmpz_mat(0, 0), fmpz(denominator))
        ends, places = csr.indptr.tolist(), csr.indices.tolist()
        self._rows = [
            list(zip(places[a:b], numbers[a:b], csr.data[a:b].tolist(), strict=True)) for a, b in pairwise(ends)
        ]

    def of(self, x: RealMatrix) -> RealMatrix:
        """The product of a matrix with this one."""
        denominator = x.denominator * self._exact.denominator
        if self.sparse:
            numerators = fmpz_mat(x.shape[0], self.shape[1], self._by_entry(x.numerators.entries(), 0, 1))
            ball = None
            if x.ball is not None:
                ball = arb_mat(x.shape[0], self.shape[1], self._by_entry(x.ball.entries(), NOTHING, 2))
        else:
            numerators = x.numerators * self._exact.numerators
            ball = None if x.ball is None else x.ball * self._balls
        return _short(RealMatrix(numerators, denominator, ball))

    def _by_entry(self, entries: list[Any], nothing: Any, which: int) -> Any:
        """Sums over the entries that are not zero, row by row of what comes in."""
        numerators: list[Any] = []
        for start in range(0, len(entries), self.shape[0]):
            row = [nothing] * self.shape[1]
            for place, entry in enumerate(entries[start : start + self.shape[0]]):
                if entry == 0:
                    continue
                for item in self._rows[place]:
                    row[item[0]] += entry * item[which]
            numerators += row
        return numerators


def _sum(left: arb_mat | None, right: arb_mat | None) -> arb_mat | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _scaled(matrix: fmpz_mat, factor: fmpz) -> fmpz_mat:
    return matrix if factor == 1 else matrix * factor


def _picked(kind: type[M], matrix: M, columns: Sequence[int]) -> M:
    entries, wide = matrix.entries(), matrix.ncols()
    return kind(
        matrix.nrows(), len(columns), [entries[row * wide + c] for row in range(matrix.nrows()) for c in columns]
    )


def _short(x: RealMatrix) -> RealMatrix:
    """The same matrix, with what all entries share cancelled where the denominator has grown long."""
    if x.denominator.bit_length() < LONG:
        return x
    shared = int(x.denominator)
    for number in x.numerators.entries():
        shared = gcd(shared, int(number))
        if shared == 1:
            return x
    numbers = [number // shared for number in x.numerators.entries()]
    return RealMatrix(fmpz_mat(*x.shape, numbers), x.denominator // shared, x.ball)
