r"""Exact linear regions of piecewise linear functions, on a segment and on a polygon.

A *cell* is a segment or a convex polygon with rational corners; on it every quantity of interest is an affine function
with rational coefficients. Taking a maximum cuts the cell where the largest piece changes, so a network is processed
layer by layer: cells, each with the affine functions that its activations are there. Floating-point weights are binary
fractions, so nothing is rounded and no tolerance is needed.

Cells of the result are *activation regions*: on each, the largest piece of every unit is the same, and neighbours
differ in some unit. *Linear regions* are unions of neighbours (polygons that share more than a point, segments that
share an end) on which the outputs are the same affine functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

from vitrify.errors import InputError
from vitrify.spec.geometry.maxout import Layer, Maxout

Point = tuple[Fraction, ...]
Form = tuple[Fraction, ...]  # an affine function: its coefficients, one per coordinate, then its constant
MAX_CELLS = 100_000  # cells multiply with every layer; more than this are refused


@dataclass(frozen=True)
class AffinePiece:
    """A segment (two corners) or a convex polygon (three or more, in order), and affine functions on it."""

    corners: tuple[Point, ...]
    forms: tuple[Form, ...]


@dataclass(frozen=True)
class Regions:
    """Activation regions of a function, and the number of linear regions that they form."""

    cells: tuple[AffinePiece, ...]
    linear: int

    @property
    def activation(self) -> int:
        return len(self.cells)


def regions(net: Maxout) -> Regions:
    """Return the regions of a network with one or two inputs, on its box of inputs.

    >>> regions(Maxout.from_points([(-1, 0), (0, 1), (1, 0)])).linear
    2
    """
    return counted(_through(net.layers, box(net.inputs, net.radius)))


def regions_on_line(net: Maxout, start: Sequence[float], end: Sequence[float]) -> Regions:
    """Return the regions of a network along a segment from start to end; cells run from 0 to 1.

    >>> regions_on_line(Maxout.from_points([(-1, 0), (0, 1), (1, 0)]), [-0.5], [0.5]).linear
    2
    """
    return counted(_through(net.layers, line(start, end)))


def line(start: Sequence[float], end: Sequence[float]) -> AffinePiece:
    """The segment from 0 to 1, with the coordinates of a point that goes from start to end."""
    ends = [(Fraction(a), Fraction(b)) for a, b in zip(start, end, strict=True)]
    return AffinePiece(((Fraction(0),), (Fraction(1),)), tuple((b - a, a) for a, b in ends))


def box(size: int, radius: float) -> AffinePiece:
    """The box of one or two coordinates up to a radius, with these coordinates."""
    r = Fraction(radius)
    corners: dict[int, tuple[Point, ...]] = {1: ((-r,), (r,)), 2: ((-r, -r), (r, -r), (r, r), (-r, r))}
    if size not in corners:
        raise InputError(f"regions are counted for one or two inputs, this network has {size}: count on a line")
    return AffinePiece(corners[size], tuple(tuple(Fraction(i == j) for j in range(size + 1)) for i in range(size)))


def _through(layers: Sequence[Layer], start: AffinePiece) -> list[AffinePiece]:
    """Return the cells of a network's output, from those of its input, layer by layer."""
    cells = [start]
    for layer in layers:
        pieces = [[affine_of(row, bias) for row, bias in zip(w, b, strict=True)] for w, b in layer.pieces]
        cells = [
            AffinePiece(corners, tuple(chosen))
            for cell in cells
            for corners, chosen in _maxima(cell, [[combine(f, cell.forms) for f in unit] for unit in pieces])
        ]
        if len(cells) > MAX_CELLS:
            raise InputError(f"the network has more than {MAX_CELLS} regions: count on a line, or a smaller network")
    return cells


Row = list[tuple[int, Fraction]]  # indices and values of nonzero coefficients


def affine_of(row: Iterable[float], bias: float) -> tuple[Row, Fraction]:
    """Coefficients and constant as fractions, zeros left out."""
    return [(i, Fraction(a)) for i, a in enumerate(row) if a], Fraction(bias)


def combine(function: tuple[Row, Fraction], forms: Sequence[Form]) -> Form:
    """Return an affine function of affine functions."""
    row, bias = function
    total = [Fraction(0)] * (len(forms[0]) if forms else 1)
    total[-1] = bias
    for index, factor in row:
        for i, a in enumerate(forms[index]):
            if a:
                total[i] += factor * a
    return tuple(total)


def _maxima(cell: AffinePiece, units: Sequence[Sequence[Form]]) -> Iterator[tuple[tuple[Point, ...], list[Form]]]:
    """Return the parts of a cell on which every unit has one largest piece, with these pieces."""
    parts: list[tuple[tuple[Point, ...], list[Form]]] = [(cell.corners, [])]
    for forms in units:
        parts = [
            (corners, [*chosen, forms[leader]]) for part, chosen in parts for corners, leader in leaders(part, forms)
        ]
    yield from parts


def leaders(corners: tuple[Point, ...], forms: Sequence[Form]) -> list[tuple[tuple[Point, ...], int]]:
    """Return parts of a cell, each with the index of an affine function that is largest on all of it.

    Functions that are equal count as one, the first of them; so neighbouring parts have different indices.
    """
    first: dict[Form, int] = {}
    for index, form in enumerate(forms):
        first.setdefault(form, index)
    rivals = list(first)
    if len(rivals) == 1:
        return [(corners, 0)]
    values = [[value(form, corner) for corner in corners] for form in rivals]
    for form, own in zip(rivals, values, strict=True):  # most cells are not cut: one function is largest at all corners
        if all(a >= b for other in values for a, b in zip(own, other, strict=True)):
            return [(corners, first[form])]
    parts = []
    for form in rivals:
        part: tuple[Point, ...] = corners
        for other in rivals:
            if other is not form and part:
                part = clip(part, tuple(a - b for a, b in zip(form, other, strict=True)))
        if part:
            parts.append((part, first[form]))
    return parts


def value(form: Form, point: Point) -> Fraction:
    """Return the value of an affine function at a point."""
    return sum((a * x for a, x in zip(form, point, strict=False) if a), form[-1])


def clip(corners: tuple[Point, ...], form: Form) -> tuple[Point, ...]:
    """Return the part of a cell on which an affine function is not negative; empty without interior."""
    heights = [value(form, corner) for corner in corners]
    if all(height >= 0 for height in heights):
        return corners if any(height > 0 for height in heights) or not any(form) else ()
    if all(height <= 0 for height in heights):
        return ()
    remaining: list[Point] = []
    closed = len(corners) > 2
    for i, (corner, height) in enumerate(zip(corners, heights, strict=True)):
        if height >= 0:
            remaining.append(corner)
        j = (i + 1) % len(corners)
        if (closed or i == 0) and height * heights[j] < 0:
            share = height / (height - heights[j])
            remaining.append(tuple(a + share * (b - a) for a, b in zip(corner, corners[j], strict=True)))
    return tuple(remaining)


def counted(cells: Sequence[AffinePiece]) -> Regions:
    """Return cells with the number of linear regions: neighbours with the same functions count once."""
    alike: dict[tuple[Form, ...], list[tuple[Point, ...]]] = {}
    for cell in cells:
        alike.setdefault(cell.forms, []).append(cell.corners)
    return Regions(tuple(cells), sum(_parts(group) for group in alike.values()))


def _parts(group: Sequence[tuple[Point, ...]]) -> int:
    """Return the number of connected components of some cells."""
    segments = len(group[0]) == 2 and len(group[0][0]) == 1
    root = list(range(len(group)))

    def find(index: int) -> int:
        while root[index] != index:
            index = root[index]
        return index

    for a, b in combinations(range(len(group)), 2):
        if find(a) != find(b) and (set(group[a]) & set(group[b]) if segments else _share_an_edge(group[a], group[b])):
            root[find(a)] = find(b)
    return sum(index == origin for index, origin in enumerate(root))


def _share_an_edge(a: tuple[Point, ...], b: tuple[Point, ...]) -> bool:
    """Return True if two polygons share more than a point: an edge of one overlaps an edge of the other."""
    return any(_overlap(p, q, r, s) for p, q in _edges(a) for r, s in _edges(b))


def _edges(corners: tuple[Point, ...]) -> Iterator[tuple[Point, Point]]:
    yield from pairwise((*corners, corners[0]))


def _overlap(p: Point, q: Point, r: Point, s: Point) -> bool:
    """Return True if the segments pq and rs are collinear and share more than a point."""
    along = (q[0] - p[0], q[1] - p[1])
    for x in (r, s):
        if along[0] * (x[1] - p[1]) != along[1] * (x[0] - p[0]):
            return False
    offsets = sorted(along[0] * (x[0] - p[0]) + along[1] * (x[1] - p[1]) for x in (r, s))
    length = along[0] ** 2 + along[1] ** 2
    return offsets[0] < length and offsets[1] > 0
