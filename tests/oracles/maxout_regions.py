"""Regions of maxout networks by two other ways: linear programs over activation patterns, and a walk along a line."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from vitrify.spec.geometry.maxout import Maxout

Floats = NDArray[np.float64]
Constraint = tuple[Floats, float]  # g, h: the half space g·x ≤ h
INSIDE = 1e-7  # a ball of this radius fits into a region that counts


def patterns(net: Maxout) -> list[tuple[list[Constraint], Floats]]:
    """Every activation pattern that some ball of inputs has: its half spaces, and the outputs there [output, input+1].

    Unit by unit, each piece that can lead is tried, and a linear program says whether it can. Pieces that are the same
    function of the input, given the choices before, are one.
    """
    box = [(np.array(row), net.radius) for row in (*np.eye(net.inputs), *-np.eye(net.inputs))]
    found = [(box, np.column_stack([np.eye(net.inputs), np.zeros(net.inputs)]))]
    for layer in net.layers:
        after = []
        for half_spaces, z in found:
            pieces = [
                weights @ z + np.column_stack([np.zeros((len(biases), net.inputs)), biases])
                for weights, biases in zip(layer.weights, layer.biases, strict=True)
            ]
            open_ones: list[tuple[list[Constraint], list[Floats]]] = [(half_spaces, [])]
            for unit in pieces:
                open_ones = [
                    (more, [*chosen, unit[j]])
                    for held, chosen in open_ones
                    for j in _different(unit)
                    if _has_inside(more := [*held, *_leads(unit, j)])
                ]
            after += [(held, np.array(chosen)) for held, chosen in open_ones]
        found = after
    return found


def linear_regions(found: Sequence[tuple[list[Constraint], Floats]]) -> int:
    """How many regions remain when neighbours with the same outputs are joined."""
    root = list(range(len(found)))

    def find(place: int) -> int:
        return place if root[place] == place else find(root[place])

    for a, b in combinations(range(len(found)), 2):
        same = np.allclose(found[a][1], found[b][1], rtol=0, atol=1e-9)
        if same and find(a) != find(b) and _touch(found[a][0], found[b][0]):
            root[find(a)] = find(b)
    return sum(place == origin for place, origin in enumerate(root))


def _leads(unit: Floats, j: int) -> list[Constraint]:
    """Where piece j is the largest."""
    return [(other[:-1] - unit[j][:-1], unit[j][-1] - other[-1]) for other in unit]


def _different(unit: Floats) -> list[int]:
    return [j for j in range(len(unit)) if not any(np.allclose(unit[i], unit[j], rtol=0, atol=1e-12) for i in range(j))]


def _has_inside(half_spaces: Sequence[Constraint]) -> bool:
    """Whether a ball fits in: the largest radius r with g·x + |g| r ≤ h."""
    rows = [(g, h) for g, h in half_spaces if np.abs(g).max() > 1e-12 or h < 0]
    matrix = np.array([[*g, np.linalg.norm(g)] for g, _ in rows])
    size = matrix.shape[1]
    best = linprog(
        -np.eye(size)[-1], A_ub=matrix, b_ub=[h for _, h in rows], bounds=[(None, None)] * (size - 1) + [(None, 1.0)]
    )
    return best.fun is not None and bool(-best.fun > INSIDE)


def _touch(a: Sequence[Constraint], b: Sequence[Constraint]) -> bool:
    """Whether two regions share a point (one input) or more than a point (two inputs)."""
    size = len(a[0][0])
    matrix, limits = np.array([g for g, _ in (*a, *b)]), [h + 1e-10 for _, h in (*a, *b)]
    extents = []
    for u in np.eye(size):
        low, high = (linprog(s * u, A_ub=matrix, b_ub=limits, bounds=[(None, None)] * size).fun for s in (1, -1))
        if low is None or high is None:
            return False
        extents.append(-high - low)
    return size == 1 or max(extents) > INSIDE


def walk(net: Maxout, start: Sequence[float], end: Sequence[float]) -> tuple[int, int]:
    """Activation and linear regions along a segment, by a walk from breakpoint to breakpoint, without rounding.

    At a point every activation has a value and a slope in the direction of the walk; units choose the piece with the
    largest value, and among equals the steepest. The pattern lasts until some rival catches up.
    """
    ends = [(Fraction(a), Fraction(b)) for a, b in zip(start, end, strict=True)]
    t, kinks, bends = Fraction(0), 0, 0
    slopes: list[Fraction] | None = None
    while t < 1:
        z = [(a + t * (b - a), b - a) for a, b in ends]
        step = 1 - t
        for layer in net.layers:
            after = []
            for weights, biases in zip(layer.weights.tolist(), layer.biases.tolist(), strict=True):
                lines = [
                    (
                        sum((Fraction(w) * x for w, (x, _) in zip(row, z, strict=True)), Fraction(bias)),
                        sum((Fraction(w) * v for w, (_, v) in zip(row, z, strict=True)), Fraction(0)),
                    )
                    for row, bias in zip(weights, biases, strict=True)
                ]
                leader = max(lines)
                catch_up = [(leader[0] - x) / (v - leader[1]) for x, v in lines if v > leader[1]]
                step = min([step, *catch_up])
                after.append(leader)
            z = after
        kinks += 1
        if slopes != [v for _, v in z]:
            bends += 1
        slopes = [v for _, v in z]
        t += step
    return kinks, bends
