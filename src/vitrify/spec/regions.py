r"""Exact linear regions of piecewise linear functions, on a segment and on a polygon.

A *cell* is a segment or a convex polygon with rational corners; on it every quantity of interest is an affine function
with rational coefficients. Taking a maximum cuts the cell where the leader changes, so a network is followed layer by
layer: cells, each with the affine functions that its activations are there. Floating-point weights are binary
fractions, so nothing is rounded and no tolerance is needed.

Cells of the result are *activation regions*: on each, every unit is led by pieces of its own choice, and neighbours
differ in some unit. *Linear regions* are unions of neighbours (polygons that share more than a point, segments that
share an end) on which the outputs are the same affine functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

from vitrify.errors import InputError
from vitrify.spec.maxout import Layer, Maxout

Point = tuple[Fraction, ...]
Form = tuple[Fraction, ...]  # an affine function: its coefficients, one per coordinate, then its constant
MOST_CELLS = 100_000  # cells multiply with every layer; more than this are refused


@dataclass(frozen=True)
class Cell:
    """A segment (two corners) or a convex polygon (three or more, in order), and affine functions on it."""

    corners: tuple[Point, ...]
    forms: tuple[Form, ...]


@dataclass(frozen=True)
class Regions:
    """The regions of a function: those of its activations, and how many linear ones they make together."""

    cells: tuple[Cell, ...]
    linear: int

    @property
    def activation(self) -> int:
        return len(self.cells)


def regions(net: Maxout) -> Regions:
    """The regions of a network of one or two inputs, on the whole of its box.

    >>> regions(Maxout.from_points([(-1, 0), (0, 1), (1, 0)])).linear
    2
    """
    return counted(_through(net.layers, box(net.inputs, net.radius)))


def regions_on_line(net: Maxout, start: Sequence[float], end: Sequence[float]) -> Regions:
    """The regions that a network has along a segment, from start to end; cells run from 0 to 1.

    >>> regions_on_line(Maxout.from_points([(-1, 0), (0, 1), (1, 0)]), [-0.5], [0.5]).linear
    2
    """
    return counted(_through(net.layers, line(start, end)))


def line(start: Sequence[float], end: Sequence[float]) -> Cell:
    """The segment from 0 to 1, with the coordinates of a point that goes from start to end."""
    ends = [(Fraction(a), Fraction(b)) for a, b in zip(start, end, strict=True)]
    return Cell(((Fraction(0),), (Fraction(1),)), tuple((b - a, a) for a, b in ends))


def box(size: int, radius: float) -> Cell:
    """The box of one or two coordinates up to a radius, with these coordinates."""
    r = Fraction(radius)
    corners: dict[int, tuple[Point, ...]] = {1: ((-r,), (r,)), 2: ((-r, -r), (r, -r), (r, r), (-r, r))}
    if size not in corners:
        raise InputError(f"regions are counted for one or two inputs, this network has {size}: count on a line")
    return Cell(corners[size], tuple(tuple(Fraction(i == j) for j in range(size + 1)) for i in range(size)))


def _through(layers: Sequence[Layer], start: Cell) -> list[Cell]:
    """The cells of a network's output, from those of its input, layer by layer."""
    cells = [start]
    for layer in layers:
        pieces = [[affine_of(row, bias) for row, bias in zip(w, b, strict=True)] for w, b in layer.pieces]
        cells = [
            Cell(corners, tuple(chosen))
            for cell in cells
            for corners, chosen in _maxima(cell, [[combine(f, cell.forms) for f in unit] for unit in pieces])
        ]
        if len(cells) > MOST_CELLS:
            raise InputError(f"the network has more than {MOST_CELLS} regions: count on a line, or a smaller network")
    return cells


Row = list[tuple[int, Fraction]]  # the places and values of coefficients that are not 0


def affine_of(row: Iterable[float], bias: float) -> tuple[Row, Fraction]:
    """Coefficients and constant as fractions, zeros left out."""
    return [(i, Fraction(a)) for i, a in enumerate(row) if a], Fraction(bias)


def combine(function: tuple[Row, Fraction], forms: Sequence[Form]) -> Form:
    """An affine function of affine functions."""
    row, bias = function
    total = [Fraction(0)] * (len(forms[0]) if forms else 1)
    total[-1] = bias
    for place, factor in row:
        for i, a in enumerate(forms[place]):
            if a:
                total[i] += factor * a
    return tuple(total)


def _maxima(cell: Cell, units: Sequence[Sequence[Form]]) -> Iterator[tuple[tuple[Point, ...], list[Form]]]:
    """Parts of a cell on which every unit has a leader, with the leaders."""
    parts: list[tuple[tuple[Point, ...], list[Form]]] = [(cell.corners, [])]
    for forms in units:
        parts = [
            (corners, [*chosen, forms[leader]]) for part, chosen in parts for corners, leader in leaders(part, forms)
        ]
    yield from parts


def leaders(corners: tuple[Point, ...], forms: Sequence[Form]) -> list[tuple[tuple[Point, ...], int]]:
    """Parts of a cell, each with the place of an affine function that is largest on the whole of it.

    Functions that are equal count as one, the first of them; so neighbouring parts have different leaders.
    """
    first: dict[Form, int] = {}
    for place, form in enumerate(forms):
        first.setdefault(form, place)
    rivals = list(first)
    if len(rivals) == 1:
        return [(corners, 0)]
    values = [[value(form, corner) for corner in corners] for form in rivals]
    for form, own in zip(rivals, values, strict=True):  # most cells are not cut: one function leads at all corners
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
    """An affine function at a point."""
    return sum((a * x for a, x in zip(form, point, strict=False) if a), form[-1])


def clip(corners: tuple[Point, ...], form: Form) -> tuple[Point, ...]:
    """The part of a cell on which an affine function is not negative; nothing if that has no inside."""
    heights = [value(form, corner) for corner in corners]
    if all(height >= 0 for height in heights):
        return corners if any(height > 0 for height in heights) or not any(form) else ()
    if all(height <= 0 for height in heights):
        return ()
    kept: list[Point] = []
    closed = len(corners) > 2
    for i, (corner, height) in enumerate(zip(corners, heights, strict=True)):
        if height >= 0:
            kept.append(corner)
        j = (i + 1) % len(corners)
        if (closed or i == 0) and height * heights[j] < 0:
            share = height / (height - heights[j])
            kept.append(tuple(a + share * (b - a) for a, b in zip(corner, corners[j], strict=True)))
    return tuple(kept)


def counted(cells: Sequence[Cell]) -> Regions:
    """Cells with the number of linear regions that they make: neighbours with the same functions count once."""
    alike: dict[tuple[Form, ...], list[tuple[Point, ...]]] = {}
    for cell in cells:
        alike.setdefault(cell.forms, []).append(cell.corners)
    return Regions(tuple(cells), sum(_parts(group) for group in alike.values()))


def _parts(group: Sequence[tuple[Point, ...]]) -> int:
    """How many connected parts some cells make."""
    meet = _share_an_end if len(group[0]) == 2 and len(group[0][0]) == 1 else _share_an_edge
    root = list(range(len(group)))

    def find(place: int) -> int:
        while root[place] != place:
            place = root[place]
        return place

    for a, b in combinations(range(len(group)), 2):
        if find(a) != find(b) and meet(group[a], group[b]):
            root[find(a)] = find(b)
    return sum(place == origin for place, origin in enumerate(root))


def _share_an_end(a: tuple[Point, ...], b: tuple[Point, ...]) -> bool:
    return bool(set(a) & set(b))


def _share_an_edge(a: tuple[Point, ...], b: tuple[Point, ...]) -> bool:
    """Whether two polygons have more than a point in common: an edge of one lies along an edge of the other."""
    return any(_overlap(p, q, r, s) for p, q in _edges(a) for r, s in _edges(b))


def _edges(corners: tuple[Point, ...]) -> Iterator[tuple[Point, Point]]:
    yield from pairwise((*corners, corners[0]))


def _overlap(p: Point, q: Point, r: Point, s: Point) -> bool:
    """Whether the segments pq and rs lie on one line and have more than a point in common."""
    along = (q[0] - p[0], q[1] - p[1])
    for x in (r, s):
        if along[0] * (x[1] - p[1]) != along[1] * (x[0] - p[0]):
            return False
    places = sorted(along[0] * (x[0] - p[0]) + along[1] * (x[1] - p[1]) for x in (r, s))
    length = along[0] ** 2 + along[1] ** 2
    return places[0] < length and places[1] > 0
