r"""CPWL functions by their values at the vertices of a triangulation of a box, in any number of variables.

**Max–min form.** With the affine functions $l_1, \dots, l_n$ of the simplices, $f = \max_i \min_{j \in S_i} l_j$, where
there is a set $S = \{j : l_j \ge l_i\}$ for every cell into which the hyperplanes $l_j = l_i$ cut a simplex of $l_i$
(Tarela & Martínez 1999; Ovchinnikov 2002). One set per simplex is wrong where pieces cross inside it: then $\min_S l_j$
is too small on a part of it, or too large elsewhere. Cells are enumerated exactly: a polytope is its corners, each with
the facets that it lies on, and a cut adds a corner on every edge that it crosses. Two corners share an edge if and only
if no third one lies on all their common facets. Of sets that contain each other the smallest are kept.

**Difference of convex functions.** Where $f$ is the smaller of its pieces $a, b$ on either side of a facet,
$|a - b|/2$ takes the bend away. With $h$ the sum of such terms, one for each hyperplane on which inner facets lie,
with the largest bend of those, $g = f + h$ has no bend downwards, so it is convex on the box. A convex function is the
maximum of its pieces: those on the cells into which the hyperplanes of $h$ cut the simplices.

**A valid triangulation.** Simplices have volume. Every facet belongs to two simplices, on opposite sides of it, or
lies in a face of the box. Then almost all points of the box lie in equally many simplices, as no path between them
changes that number; the volumes add up to that of the box, so the number is 1. All of this is checked in fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations, permutations, product
from math import factorial, prod
from operator import add, mul
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import InputError
from vitrify.parameters import Natural, Within
from vitrify.spec.geometry.cpwl import Cpwl, Numbers
from vitrify.spec.geometry.grid import GridFunction, vertices_of
from vitrify.spec.geometry.max_min import MAX_SETS, Form, Piece, lattice, minimal
from vitrify.spec.geometry.maxout import Maxout
from vitrify.spec.geometry.regions import Point, value

Corner: TypeAlias = tuple[Point, frozenset[int]]  # a corner of a cell, with the hyperplanes of the facets it lies on
MAX_VERTICES = 1000
MAX_CUTS = 20_000  # cells, times the affine functions that cut them


@dataclass(frozen=True, kw_only=True)
class Triangulation(Cpwl):
    """The function with some values at the vertices of a triangulation of the box, affine on every simplex.

    >>> saddle = Triangulation.samples()["saddle"]
    >>> saddle(np.array([[0.5, 0.25], [0.75, 1.0]])).tolist()
    [[0.75], [0.25]]
    """

    SAMPLES: ClassVar[dict[str, dict[str, object]]] = {
        "saddle": {
            "box": ((0.0, 1.0), (0.0, 1.0)),
            "vertices": ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)),
            "values": (0.0, 1.0, 1.0, 0.0),
            "simplices": ((0, 1, 2), (1, 2, 3)),
        },
        "tent": {
            "box": ((-1.0, 1.0), (-1.0, 1.0)),
            "vertices": ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (0.25, 0.0)),
            "values": (0.0, 0.5, -0.5, 0.25, 1.0),
            "simplices": ((0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
        },
    }

    vertices: Annotated[tuple[Numbers, ...], Within(2, MAX_VERTICES)]
    values: Numbers
    simplices: Annotated[tuple[tuple[Natural, ...], ...], Within(1, MAX_VERTICES)]

    def conflicts(self) -> Iterator[tuple[str, str]]:
        problems = [*super().conflicts(), *self._mismatches()]
        yield from problems or (("simplices", message) for message in self._gaps())

    def _mismatches(self) -> Iterator[tuple[str, str]]:
        """Yield which lists do not fit each other."""
        size, last = self.inputs, len(self.vertices) - 1
        if any(len(vertex) != size for vertex in self.vertices):
            yield "vertices", f"must have a coordinate for each of the {size} intervals of the box"
        if len(self.values) != len(self.vertices):
            yield "values", f"must be {len(self.vertices)} numbers, one per vertex, not {len(self.values)}"
        if any(not len({*each}) == len(each) == size + 1 or max(each) > last for each in self.simplices):
            yield "simplices", f"must have {size + 1} different vertices each, of 0 to {last}"

    def _gaps(self) -> Iterator[str]:
        """Yield what is wrong with the triangulation; see the top of the file."""
        volumes = [self._volume(each) for each in self.simplices]
        if not all(volumes):
            yield f"must have volume, but simplex {volumes.index(Fraction(0))} is flat"
            return
        beside: dict[tuple[int, ...], list[bool]] = {}  # on which side of a facet simplices are
        for simplex in self.simplices:
            for corner in simplex:
                facet = tuple(sorted({*simplex} - {corner}))
                beside.setdefault(facet, []).append(self._volume((*facet, corner)) > 0)
        for facet, sides in beside.items():
            named = f"the facet with vertices {', '.join(map(str, facet))}"
            if len(sides) == 1 and not self._outer(facet):
                yield f"must fill the box, but {named} belongs to one simplex only and is inside"
                return
            if len(sides) > 2 or (len(sides) == 2 and sides[0] == sides[1]):
                yield f"must not overlap, but more than one lies on the same side of {named}"
                return
        total = sum(map(abs, volumes)) / factorial(self.inputs)
        whole = prod(Fraction(high) - Fraction(low) for low, high in self.box)
        if total != whole:
            yield f"must fill the box once: they have volume {float(total):g}, the box {float(whole):g}"
        unused = sorted({*range(len(self.vertices))}.difference(*self.simplices))
        if unused:
            yield f"must use all vertices, but vertex {unused[0]} belongs to none"

    def _volume(self, simplex: Sequence[int]) -> Fraction:
        """Return the signed volume of a simplex, times the factorial of the dimension."""
        first, *others = (self._points[index] for index in simplex)
        return determinant([[a - b for a, b in zip(point, first, strict=True)] for point in others])

    def _outer(self, facet: tuple[int, ...]) -> bool:
        """Return whether a facet lies in a face of the box."""
        axes = zip(self.box, zip(*(self.vertices[index] for index in facet), strict=True), strict=True)
        return any(set(numbers) in ({low}, {high}) for (low, high), numbers in axes)

    @cached_property
    def _points(self) -> tuple[Point, ...]:
        return tuple(tuple(map(Fraction, vertex)) for vertex in self.vertices)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The affine function of each simplex, in fractions."""
        return tuple(
            affine_through([self._points[i] for i in each], [Fraction(self.values[i]) for i in each])
            for each in self.simplices
        )

    @cached_property
    def folds(self) -> tuple[Piece, ...]:
        r"""The affine functions $l$ whose absolute values, added to the function, make it convex.

        One for each hyperplane with a facet at which the function bends downwards: half of the largest such bend.
        """
        folds: dict[Piece, Fraction] = {}  # the size of each, by what has 1 as its first coefficient that is not 0
        beside: dict[frozenset[int], Piece] = {}
        for simplex, own in zip(self.simplices, self.pieces, strict=True):
            for corner in simplex:
                other = beside.setdefault(frozenset(simplex) - {corner}, own)
                bend = tuple(a - b for a, b in zip(other, own, strict=True))
                if value(bend, self._points[corner]) > 0:  # here the own piece is the smaller one
                    scale = next(filter(None, bend))
                    line = tuple(a / scale for a in bend)
                    folds[line] = max(folds.get(line, Fraction(0)), abs(scale) / 2)
        return tuple(tuple(size * a for a in line) for line, size in sorted(folds.items()))

    def difference(self, folds: Sequence[Piece]) -> tuple[set[Piece], set[Piece]]:
        """Return the pieces of the function plus its folds, and of the folds: both are convex, the maximum of these."""
        first, second, budget = set[Piece](), set[Piece](), MAX_CUTS
        for simplex, own in zip(self.simplices, self.pieces, strict=True):
            cells = [simplex_cell([self._points[index] for index in simplex])]
            for number, fold in enumerate(folds, start=len(simplex)):
                cells = [part for cell in cells for part in split(cell, fold, number)]
                budget -= len(cells)
                if budget < 0:
                    raise InputError(f"the triangulation is cut more than {MAX_CUTS:,} times: use fewer simplices")
            for cell in cells:
                total = [Fraction(0)] * len(own)
                for fold in folds:
                    sign = 1 if sum(value(fold, point) for point, _ in cell) > 0 else -1
                    total = [a + sign * b for a, b in zip(total, fold, strict=True)]
                first.add(tuple(map(add, own, total)))
                second.add(tuple(total))
        if len(first) > MAX_SETS:
            raise InputError(f"the convex function has {len(first)} pieces, more than {MAX_SETS}: use fewer simplices")
        return first, second

    @cached_property
    def form(self) -> Form:
        """The function as a maximum of minima of affine functions."""
        every, sets = sorted(set(self.pieces)), set[frozenset[Piece]]()
        budget = MAX_CUTS
        for simplex, own in zip(self.simplices, self.pieces, strict=True):
            cells = [simplex_cell([self._points[index] for index in simplex])]
            for number, other in enumerate(every, start=len(simplex)):
                difference = tuple(a - b for a, b in zip(other, own, strict=True))
                if any(difference):
                    cells = [part for cell in cells for part in split(cell, difference, number) if part]
                    budget -= len(cells)
                if budget < 0:
                    raise InputError(f"the triangulation is cut more than {MAX_CUTS:,} times: use fewer simplices")
            for cell in cells:
                differences = ((other, tuple(a - b for a, b in zip(other, own, strict=True))) for other in every)
                sets.add(frozenset(p for p, form in differences if all(value(form, x) >= 0 for x, _ in cell)))
        form = minimal(sets)
        if len(form) > MAX_SETS:
            raise InputError(f"the max-min form has {len(form)} sets, more than {MAX_SETS}: use fewer simplices")
        return form

    def __call__(self, x: Floats) -> Floats:
        """Return the values, by barycentric coordinates of the simplex in which a point lies deepest."""
        x = np.asarray(x, dtype=np.float64)
        corners = np.array(self.vertices)[np.array(self.simplices)]  # [simplex, corner, input]
        ones = np.concatenate([corners, np.ones((*corners.shape[:2], 1))], axis=-1)
        shares = np.einsum("bi,sik->bsk", np.column_stack([x, np.ones(len(x))]), np.linalg.inv(ones))
        inside = shares.min(axis=-1).argmax(axis=-1)
        rows = np.arange(len(x))
        values = np.array(self.values)[np.array(self.simplices)[inside]]
        return np.asarray((shares[rows, inside] * values).sum(axis=-1, keepdims=True))

    def corners(self) -> Floats:
        return np.array(self.vertices)

    def maxout(self) -> Maxout:
        return lattice(self.form, self.radius)


def simplex_cell(points: Sequence[Point]) -> list[Corner]:
    """Return a simplex as a cell: corner $k$ lies on all facets but the one opposite to it, number $k$."""
    every = frozenset(range(len(points)))
    return [(point, every - {index}) for index, point in enumerate(points)]


def split(cell: list[Corner], form: Piece, number: int) -> list[list[Corner]]:
    """Return the parts of a cell on either side of the zeros of an affine function, which are facet `number` of both.

    A part without interior is left out.
    """
    heights = [value(form, point) for point, _ in cell]
    if min(heights) >= 0 or max(heights) <= 0:
        return [cell]
    above = [(point, on) for (point, on), height in zip(cell, heights, strict=True) if height > 0]
    below = [(point, on) for (point, on), height in zip(cell, heights, strict=True) if height < 0]
    level = [(point, on | {number}) for (point, on), height in zip(cell, heights, strict=True) if height == 0]
    size = len(cell[0][0])
    for i, j in combinations(range(len(cell)), 2):
        if heights[i] * heights[j] < 0:
            common = cell[i][1] & cell[j][1]
            others = (on for k, (_, on) in enumerate(cell) if k not in (i, j))
            if len(common) >= size - 1 and not any(common <= on for on in others):
                share = heights[i] / (heights[i] - heights[j])
                ends = zip(cell[i][0], cell[j][0], strict=True)
                level.append((tuple(a + share * (b - a) for a, b in ends), common | {number}))
    return [above + level, below + level]


def affine_through(points: Sequence[Point], values: Sequence[Fraction]) -> Piece:
    """Return the affine function with given values at the corners of a simplex, by Cramer's rule."""
    rows = [[*point, Fraction(1)] for point in points]
    whole = determinant(rows)
    columns = range(len(rows))
    return tuple(
        determinant([[*row[:at], y, *row[at + 1 :]] for row, y in zip(rows, values, strict=True)]) / whole
        for at in columns
    )


def determinant(rows: Sequence[Sequence[Fraction]]) -> Fraction:
    """Return the determinant of a square matrix, by elimination."""
    matrix, result = [list(row) for row in rows], Fraction(1)
    for at in range(len(matrix)):
        pivot = next((row for row in range(at, len(matrix)) if matrix[row][at]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != at:
            matrix[at], matrix[pivot], result = matrix[pivot], matrix[at], -result
        result *= matrix[at][at]
        for row in matrix[at + 1 :]:
            factor = row[at] / matrix[at][at]
            row[at:] = [a - factor * b for a, b in zip(row[at:], matrix[at][at:], strict=True)]
    return result


def kuhn_simplices(cells: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the simplices of Kuhn's triangulation of a grid, by the indices of its vertices.

    >>> kuhn_simplices([1, 1])
    [(0, 2, 3), (0, 1, 3)]
    """
    strides = [prod(number + 1 for number in cells[axis + 1 :]) for axis in range(len(cells))]
    starts = [sum(map(mul, corner, strides)) for corner in product(*map(range, cells))]
    return [tuple(accumulate(order, initial=start)) for start in starts for order in permutations(strides)]


def kuhn(grid: GridFunction) -> Triangulation:
    """Return the triangulation of a grid."""
    vertices = tuple(map(tuple, grid.corners().tolist()))
    return Triangulation(
        box=grid.box, vertices=vertices, values=grid.values, simplices=tuple(kuhn_simplices(grid.cells))
    )


def random_triangulation(inner: int, seed: int, *, dimensions: int = 2) -> Triangulation:
    """Return random values on a random triangulation of the box of radius 1.

    A cube's triangulation by Kuhn is refined: one simplex after the other is divided at a point inside.
    """
    rng = np.random.default_rng(seed)
    vertices = vertices_of(-np.ones(dimensions), np.ones(dimensions), (1,) * dimensions).tolist()
    simplices = kuhn_simplices((1,) * dimensions)
    for _ in range(inner):
        simplex = simplices.pop(0)
        shares = rng.dirichlet(np.full(dimensions + 1, 8.0))
        point = np.round(shares @ np.array([vertices[index] for index in simplex]) * 1024) / 1024
        simplices += [(*simplex[:at], len(vertices), *simplex[at + 1 :]) for at in range(len(simplex))]
        vertices.append(point.tolist())
    values = tuple(rng.normal(size=len(vertices)).round(2).tolist())
    box = ((-1.0, 1.0),) * dimensions
    return Triangulation(box=box, vertices=tuple(map(tuple, vertices)), values=values, simplices=tuple(simplices))
