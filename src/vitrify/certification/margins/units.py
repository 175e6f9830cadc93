r"""Margins of hidden units: what ReLU units write for every combination of values that they may read, and its error.

Where no unit changes sign within the errors $e$, the layer is affine with the Jacobian $J = W_{in} A W_{out}$ ($A$
picks the active units), and errors pass as $e|J|$: units that cancel pass nothing on. A unit whose sign the errors
leave open counts in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from vitrify.arrays import Bools, Floats, Ints, Matrix
from vitrify.certification.margins import values
from vitrify.certification.margins.values import (
    ROUNDED_UP,
    ROUNDOFF,
    Stretch,
    Undecided,
    ValueFactor,
    distinct,
    reads,
    rows_of,
)
from vitrify.certification.precision.formats import FLOAT64, Format, each, uneven
from vitrify.net.labels import SpaceLabel
from vitrify.net.sparse import dense, is_sparse

DECIMALS = 12  # of the sums of some units; numbers that differ by less are one
MOST_PRODUCTS = 1 << 27  # multiplications for one table of combinations


@dataclass(frozen=True, eq=False)
class UnitLayer:
    """The hidden units of one block, computed in a format; `erased`: dimensions that are also taken away."""

    w_in: Matrix
    b_in: Floats
    w_out: Matrix
    b_out: Floats
    arithmetic: Format = FLOAT64
    erased: frozenset[int] = frozenset()

    @cached_property
    def _columns(self) -> Matrix:
        return self.w_in.tocsc() if is_sparse(self.w_in) else self.w_in

    @cached_property
    def _out_columns(self) -> Matrix:
        return self.w_out.tocsc() if is_sparse(self.w_out) else self.w_out

    def without_erasers(self, spaces: Sequence[SpaceLabel], moment: int) -> tuple[UnitLayer, dict[int, float]]:
        """Return the other units and, by dimension that a unit takes away, the number below which that fails.

        A unit takes nothing away from a space that lives on after the moment at which the block writes.
        """
        alive = {dim for space in spaces if space.born < moment <= space.dies for dim in space.dims}
        kept, erased = np.ones(len(self.b_in), dtype=bool), dict[int, float]()
        alone = (_nonzeros(self.w_in, axis=0) == 1) & (_nonzeros(self.w_out, axis=1) == 1)
        for unit in np.flatnonzero(alone)[:, None]:
            column, row = (dense(part).ravel() for part in (self.inward(unit), rows_of(self.w_out, unit)))
            dim = int(np.flatnonzero(column)[0])
            if column[dim] == 1.0 and row[dim] == -1.0 and dim not in alive and dim not in erased:
                kept[unit], erased[dim] = False, -float(self.b_in[unit[0]])
        if not erased:
            return self, {}
        b_out, units = self.b_out.copy(), np.flatnonzero(kept)
        b_out[list(erased)] += list(erased.values())  # the constants of the units that take away
        outward = rows_of(self.w_out, units)
        return UnitLayer(
            self.inward(units), self.b_in[units], outward, b_out, self.arithmetic, frozenset(erased)
        ), erased

    def rounded(self, stretch: Stretch, units: Ints, inward: Matrix) -> Floats:
        """Return the rounding error of each unit before its ReLU."""
        return self.arithmetic.linear(stretch, inward, self.b_in[units], "units")

    def fits(self, stretch: Stretch) -> None:
        """Refuse numbers that may be too large for the format, at positions that are known."""
        noise = self.arithmetic.linear(stretch, self.w_in, self.b_in, "units") + stretch.moved(self.w_in)
        post = np.maximum(np.asarray(stretch.places @ self.w_in) + self.b_in + noise, 0.0)
        self.arithmetic.fits(np.asarray(post @ abs(self.w_out)) + np.abs(self.b_out), "what units write")

    def leaves(self, stretch: Stretch, dim: int, least: float) -> float:
        """Return the residue in a dimension that a unit erases: the unit, its bias, and the sum are rounded."""
        fmt, (low, high) = self.arithmetic, stretch.bounds()
        size = 2 * max(abs(low[dim]), abs(high[dim])) + 2 * abs(least) + abs(float(self.b_out[dim]))
        terms = _nonzeros(self._out_columns[:, [dim]], axis=0)[0] + 4
        relative = fmt.gamma(terms) + 2 * ROUNDOFF * len(stretch.factors)  # the analysis adds up the bounds of factors
        return float(relative * size + 2 * fmt.lost(np.array([least]))[0])

    def written_error(
        self, size: Floats | float, lost: Floats | float, terms: Floats | float, weight: Matrix, dims: Sequence[int]
    ) -> Floats:
        """Return the rounding error of the sums that units write; sizes, stored errors and terms are without the bias.

        What takes a dimension away is one more term; what it leaves behind counts by itself.
        """
        fmt, at = self.arithmetic, list(dims)
        bias = self.b_out[at]
        off = lost + fmt.lost(bias)
        fmt.fits(size + off + np.abs(bias), "outputs of units")
        more = (bias != 0) + np.array([dim in self.erased for dim in at])
        return np.asarray(off + fmt.summed(size + off + np.abs(bias), terms + more, uneven(weight)))

    def writers(self, dims: Sequence[int]) -> Ints:
        """The units that write some dimensions."""
        return np.flatnonzero(reads(self._out_columns[:, list(dims)]))

    def inward(self, units: Ints) -> Matrix:
        """The columns of W_in of some units."""
        return self._columns[:, units]

    def outward(self, units: Ints, dims: Sequence[int]) -> Floats:
        """The part of W_out from some units to some dimensions."""
        return np.asarray(dense(rows_of(self.w_out, units)[:, list(dims)]))


def _nonzeros(matrix: Matrix, axis: int) -> Ints:
    if is_sparse(matrix):
        return np.asarray((matrix != 0).sum(axis=axis)).ravel()
    return np.asarray(np.count_nonzero(matrix, axis=axis))


def table(
    name: str, stretch: Stretch, layer: UnitLayer, units: Ints, dims: Sequence[int], most: int
) -> tuple[Floats, Floats]:
    """The vectors that some units write into dimensions, over all combinations of what they read; and their error."""
    inward, outward = layer.inward(units), layer.outward(units, dims)
    constant = layer.b_out[list(dims)]
    if not len(units):
        return constant[None], layer.written_error(0.0, 0.0, 0.0, outward, dims)
    inward = np.asarray(dense(inward)) if inward.shape[0] * inward.shape[1] <= MOST_PRODUCTS else inward
    contents = stretch.contents(inward, most=most)
    places = distinct(np.asarray(stretch.at_places(inward, layer.b_in[units])))
    if len(places) * len(contents) * len(units) > MOST_PRODUCTS:
        raise Undecided(f"{name!r}: {len(places)} × {len(contents)} combinations for {len(units)} units are too many")
    before = distinct((places[:, None] + contents[None]).reshape(-1, len(units)))
    fresh = layer.rounded(stretch, units, inward)
    noise = stretch.moved(inward) + fresh
    points = np.maximum(before, 0.0) @ outward + constant
    signs = np.where(before > noise, 1, np.where(before < -noise, -1, 0)).astype(np.int8)
    error = np.zeros(len(dims))
    touched = np.flatnonzero(reads(inward) & (stretch.error > 0))
    into, by = np.asarray(dense(rows_of(inward, touched))), stretch.error[touched]
    for pattern in np.unique(signs, axis=0):
        active, unsure = pattern > 0, pattern == 0
        passed = by @ np.abs(into[:, active] @ outward[active]) if active.any() else 0.0
        passed = passed + fresh[active] @ np.abs(outward[active])
        left = 2 * noise[unsure] @ np.abs(outward[unsure]) if unsure.any() else 0.0
        error = np.maximum(error, (passed + left) * ROUNDED_UP)
    post = np.maximum(before + noise, 0.0)
    return points, error + layer.written_error(*_largest_sums(layer, post, post > 0, outward), outward, dims)


def _largest_sums(layer: UnitLayer, post: Floats, active: Bools, outward: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the largest sizes of sums of what units write, of what storing weights loses, and numbers of terms."""
    there = active.astype(float) @ (outward != 0).astype(float)
    sums = post @ np.abs(outward), post @ layer.arithmetic.lost(outward), there
    size, lost, terms = (each_sum.max(axis=0) for each_sum in sums)
    return size, lost, terms


def case_by_case(
    name: str, stretch: Stretch, layer: UnitLayer, units: Ints, dims: Sequence[int], most: int
) -> tuple[Floats, Floats]:
    """The same for one dimension, where one factor decides which units are active: each of its values leaves a sum."""
    inward, outward = np.asarray(dense(layer.inward(units))), layer.outward(units, dims)
    factors, placed = stretch.touched(inward), stretch.at_places(inward, layer.b_in[units])
    images = [factor.image(rows_of(inward, factor.dims)) for factor in factors]
    fresh = layer.rounded(stretch, units, inward)
    noise = stretch.moved(inward) + fresh
    for pivot in sorted(range(len(images)), key=lambda at: -np.count_nonzero(np.ptp(images[at], axis=0))):
        low, high = (
            images[pivot]
            + end(placed, axis=0)
            + sum(end(image, axis=0) for at, image in enumerate(images) if at != pivot)
            for end in (np.min, np.max)
        )
        active = low > 2 * noise  # twice: these sums are rounded, too
        if (active | (high < -2 * noise)).all():
            break
    else:
        raise Undecided(f"{name!r}: no factor decides which units are active")
    points, error = [], np.zeros(1)
    for value, on in zip(images[pivot], active, strict=True):
        column = inward[:, on] @ outward[on]
        others = [f.image(rows_of(column, f.dims)) for at, f in enumerate(factors) if at != pivot]
        fixed = distinct((placed + value)[:, on] @ outward[on]) + layer.b_out[list(dims)]
        points.append((values.sums(others, 1, most=most)[:, None] + fixed).reshape(-1, 1))
        passed = stretch.error @ np.abs(column) + 2 * fresh[on] @ np.abs(outward[on])
        error = np.maximum(error, passed * ROUNDED_UP)
    post = np.where(active, high + noise, 0.0)
    rounded = layer.written_error(*_largest_sums(layer, post, active, outward), outward, dims)
    return distinct(np.vstack(points)), error + 2 * rounded


def one_by_one(
    name: str, stretch: Stretch, layer: UnitLayer, units: Ints, dims: Sequence[int], most: int
) -> tuple[Floats, Floats]:
    """The same for one dimension, when units that read different things are taken to be independent of each other."""
    inward = layer.inward(units)
    alike: dict[tuple[bytes, bytes], list[int]] = {}
    for place, unit in enumerate(units.tolist()):
        column = np.asarray(dense(inward[:, [place]])).ravel()
        at = np.flatnonzero(column)
        alike.setdefault((at.tobytes(), (column[at] / column[at[:1]]).tobytes()), []).append(unit)
    alone = replace(layer, b_out=np.zeros_like(layer.b_out))
    parts, error = [layer.b_out[list(dims)][None]], np.zeros(1)
    for group in alike.values():
        points, passed = table(name, stretch, alone, np.array(group), dims, most)
        near = np.round(points, DECIMALS)
        parts.append(distinct(near))
        error = error + passed + np.abs(near - points).max()
    error = error + within(stretch, layer, units, dims)[3]  # the groups are added up, too
    return values.sums(parts, 1, most=most), error


def within(
    stretch: Stretch, layer: UnitLayer, units: Ints, dims: Sequence[int]
) -> tuple[Floats, Floats, Floats, Floats]:
    r"""Bounds on what many units write, without going through combinations, by dimension.

    These are the least and the most, the error that the units pass on, and the rounding of their sums.

    A unit that one value of a factor must switch on excludes the units that another value must switch on, so of such
    units only the worst value counts.
    """
    inward = layer.inward(units)
    noise = stretch.moved(inward) + layer.rounded(stretch, units, inward)
    top = stretch.at_places(inward, layer.b_in[units]).max(axis=0)
    best = []
    for factor in stretch.touched(inward):
        most, second, which = _best(factor, rows_of(inward, factor.dims))
        best.append((most, second, which))
        top = top + most
    can = top + noise > 0
    needed = []
    for most, second, which in best:
        must = (top - most + second + noise <= 0) & (which >= 0)
        needed.append(np.where(must, which, -1))
    need = np.stack(needed, axis=1) if needed else np.zeros((len(units), 0), dtype=np.int64)
    outward = rows_of(layer.w_out, units)[:, list(dims)]
    weight = abs(outward)
    passed = _at_most(weight, np.where(can, noise, 0.0), need)
    post = np.where(can, np.maximum(top, 0.0) + noise, 0.0)
    reach = _at_most(weight, post, need)
    constant = layer.b_out[list(dims)]
    lost = _at_most(layer.arithmetic.lost(outward), post, need)
    terms = _at_most(each(outward, lambda w: (w != 0).astype(float)), can.astype(float), need)
    return constant - reach, constant + reach, passed, layer.written_error(reach, lost, terms, outward, dims)


def _best(factor: ValueFactor, rows: Matrix) -> tuple[Floats, Floats, Ints]:
    """The largest and second largest contribution of a factor to every unit, and the value that gives the largest."""
    from scipy.sparse import csc_array

    if not factor.finite:
        size = abs(rows)
        most = np.asarray(np.maximum(np.abs(factor.low), np.abs(factor.high)) @ size)
        return most, most, np.full(rows.shape[1], -1)
    if not factor.units:
        return best_of_points(factor.points, rows)
    csc = csc_array(rows)
    count = np.diff(csc.indptr)
    if count.max(initial=0) > 1:
        raise Undecided(f"{factor.name!r} is read by units that look at several of its many values")
    most, second, which = np.zeros(rows.shape[1]), np.zeros(rows.shape[1]), np.full(rows.shape[1], -1)
    one = np.flatnonzero(count)
    value = csc.data[csc.indptr[one]]
    empty = rows.shape[0] + factor.void > 1  # some other value contributes nothing
    most[one] = np.maximum(value, 0.0) if empty else value
    second[one] = np.minimum(value, 0.0) if empty else -np.inf
    which[one] = np.where(value > 0, csc.indices[csc.indptr[one]], -1)
    return most, second, which


def best_of_points(points: Matrix, rows: Matrix) -> tuple[Floats, Floats, Ints]:
    """Return the two largest sums that points [case, size] give every column, and which point gives the largest."""
    count, width = points.shape[0], rows.shape[1]
    most, second, which = np.zeros(width), np.full(width, -np.inf), np.zeros(width, dtype=np.int64)
    columns = rows.tocsc() if is_sparse(rows) else rows
    step = max(1, values.MAX_NUMBERS // count)
    for at in range(0, width, step):
        part = slice(at, at + step)
        table = np.asarray(dense(points @ dense(columns[:, part]))).T  # one unit per row
        here = np.arange(len(table))
        best = table.argmax(axis=1)
        which[part], most[part] = best, table[here, best]
        if count > 1:
            table[here, best] = -np.inf
            second[part] = table.max(axis=1)
    return most, second, which


def _at_most(weight: Matrix, size: Floats, need: Ints) -> Floats:
    """The most that units can add up to in each dimension, when units that need different values exclude each other."""
    from scipy.sparse import csr_array

    total = np.zeros(weight.shape[1])
    scaled = csr_array(weight.multiply(size[:, None])) if is_sparse(weight) else csr_array(weight * size[:, None])
    shape = need >= 0
    for group in np.unique(shape, axis=0) if need.shape[1] else [np.zeros(0, dtype=bool)]:
        members = np.flatnonzero((shape == group).all(axis=1)) if need.shape[1] else np.arange(len(size))
        part = scaled[members]
        if not group.any():
            total = total + np.asarray(part.sum(axis=0)).ravel()
            continue
        _, which = np.unique(need[members][:, group], axis=0, return_inverse=True)
        which = which.ravel()
        gather = csr_array(
            (np.ones(len(members)), (which, np.arange(len(members)))), shape=(which.max() + 1, len(members))
        )
        total = total + np.asarray((gather @ part).max(axis=0).todense()).ravel()
    return total
