r"""Floating-point formats, and bounds on the rounding error of a step of a net that is computed in one.

A format has a unit roundoff $u$, a least and a largest number. Each operation gives $(a \circ b)(1+\delta)$ with
$|\delta| \le u$, products also lose up to the least number; the sum of $k$ terms, in any order and with any number of
fused steps, is off by at most $\gamma_{k-1} \sum |\text{terms}|$ with $\gamma_k = (1+u)^k - 1$ (Higham, *Accuracy and
Stability of Numerical Algorithms*, chapters 2 to 4). Nothing is lost where nothing is rounded: adding 0, multiplying by
a power of two, storing a weight that the format holds. All other stored weights are off by up to $u|w|$. Exponentials
are taken to be right within 4 units in the last place.

The analysis itself adds up the same terms in float64, with $u_{64} = 2^{-53}$. As $\gamma_k$ is convex in $u$, that is
off by at most $u_{64}/u$ of the format's own bound; `gamma` counts both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Array, Floats, Matrix
from vitrify.certification.margins.values import ROUNDED_UP, ROUNDOFF, Stretch, Undecided
from vitrify.net.sparse import is_sparse

MAX_SHARE_OF_LARGEST = 0.25  # sums may be in any order, and scores are subtracted from each other


@dataclass(frozen=True)
class Format:
    """A binary format: unit roundoff, least positive number (subnormal ones count) and largest number."""

    name: str
    bits: int
    roundoff: float
    least: float
    largest: float

    def gamma(self, steps: ArrayLike) -> Array:
        """Return the largest relative error of `steps` roundings, one after the other, in a run and in the analysis."""
        once = np.expm1(np.multiply(steps, np.log1p(self.roundoff)) * ROUNDED_UP)
        return once * (1 + ROUNDOFF / self.roundoff)

    def stored(self, numbers: ArrayLike) -> Floats:
        """Round numbers to the nearest of the format; those beyond its largest become infinite."""
        wide = np.asarray(numbers, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.name == "bfloat16":
                return _bfloat16(wide, self.least, self.largest)
            return wide.astype(self.name).astype(np.float64)

    def lost(self, matrix: Matrix) -> Matrix:
        """Return a bound on the error of storing each weight."""

        def one(numbers: Floats) -> Floats:
            size = np.abs(numbers)
            if size.size and size.max() > self.largest:
                raise Undecided(f"{self.name} has no number as large as the weight {size.max():.3g}")
            return np.where(self.stored(numbers) == numbers, 0.0, self.roundoff * size + self.least)

        return each(matrix, one)

    def fits(self, sizes: Floats | float, what: str) -> None:
        """Refuse numbers that may overflow in an intermediate result."""
        most = float(np.max(sizes, initial=0.0))
        if not most <= MAX_SHARE_OF_LARGEST * self.largest:
            raise Undecided(f"{what}: numbers up to {most:.3g} may not fit into {self.name}")

    def linear(self, stretch: Stretch, matrix: Matrix, bias: Floats, what: str) -> Floats:
        """Return the rounding error of $xW + b$, column by column, for all values that a stretch may hold."""
        lost = stretch.reach(self.lost(matrix)) + self.lost(bias)
        size = stretch.reach(abs(matrix)) + np.abs(bias) + lost
        self.fits(size, what)
        there = each(matrix, lambda numbers: (numbers != 0).astype(float))
        terms = np.minimum(stretch.terms(there), column_sums(there))
        return np.asarray(lost + self.summed(size, terms + (bias != 0), uneven(matrix)))

    def summed(self, size: Floats, terms: Floats, products: tuple[Floats, Floats]) -> Floats:
        """Return the error of sums of `terms` products whose sizes add up to `size`; see `uneven` for `products`."""
        odd, low = products
        steps = np.maximum(terms - 1, 0) + odd
        return np.where(terms > 0, self.gamma(steps) * size + low * terms * self.least, 0.0)

    def times(self, number: float) -> float:
        """Return the relative error of a product with a stored number."""
        stored = self.lost(np.array([number]))[0] / abs(number) if number else 0.0
        return float(stored + self.gamma(uneven(np.array([[number]]))[0][0]) * (1 + stored))


def _bfloat16(numbers: Floats, least: float, largest: float) -> Floats:
    """Numbers rounded to 8 significant bits, as Veltkamp splits them; below the normal ones, to multiples of the least.

    NumPy has no such format.
    """
    apart = numbers * (2.0**45 + 1)
    rounded = np.where(np.isfinite(apart), apart - (apart - numbers), numbers)
    rounded = np.where(np.abs(numbers) < 2.0**-126, np.rint(numbers / least) * least, rounded)
    return np.where(np.abs(rounded) > largest, np.copysign(np.inf, rounded), rounded)


def each(matrix: Matrix, change: Callable[[Floats], Floats]) -> Matrix:
    """Return a matrix with every entry changed by a function that maps 0 to 0."""
    if not is_sparse(matrix):
        return change(np.asarray(matrix))
    changed = matrix.copy()
    changed.data = change(changed.data)
    return changed


def column_sums(matrix: Matrix) -> Floats:
    """The sum of every column."""
    return np.asarray(matrix.sum(axis=0)).ravel()


def uneven(matrix: Matrix) -> tuple[Floats, Floats]:
    """For every column, 1 where some product with it is rounded; and 1 where some may be too small for a format.

    Powers of two round nothing; those from 1 on make nothing smaller.
    """
    odd = column_sums(each(matrix, lambda w: ((np.abs(np.frexp(w)[0]) != 0.5) & (w != 0)).astype(float)))
    low = column_sums(each(matrix, lambda w: ((np.abs(w) < 1) & (w != 0)).astype(float)))
    return np.minimum(odd, 1.0), np.minimum(odd + low, 1.0)


FORMATS = {
    fmt.name: fmt
    for fmt in (
        Format("float16", 16, 2.0**-11, 2.0**-24, 65504.0),
        Format("bfloat16", 16, 2.0**-8, 2.0**-133, float(np.float32(2.0**127 * (2 - 2.0**-7)))),
        Format("float32", 32, 2.0**-24, 2.0**-149, float(np.finfo(np.float32).max)),
        Format("float64", 64, 2.0**-53, 2.0**-1074, float(np.finfo(np.float64).max)),
    )
}
FLOAT64 = FORMATS["float64"]
