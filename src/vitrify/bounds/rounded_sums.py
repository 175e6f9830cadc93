r"""Sums that are rounded after every addition, as circuits of AND and OR gates of constant depth.

A partial sum moves by $x \mapsto \mathrm{round}(x + a)$. This map is monotone on the finite chain of numbers that a
partial sum may be, with saturation too, and so is every composition of such maps. A monotone permutation of a finite
chain is the identity: the sum is an automaton without groups, hence star-free (Schützenberger 1965). That sums rounded
after each addition keep constant precision inside AC⁰ is due to Li, Liu, Zhou and Ma (2024, arXiv 2402.12875 [A]); the
circuit is our own. On an infinite chain the argument fails: exact sums move by $x \mapsto x + 1$, and count.

**The cascade.** Every monotone map of $m$ points but the identity misses a point. So after a letter whose map is not
the identity, the partial sum is one of the $m - 1$ points other than the one that is missed, and it stays so until the
next such letter: a *reset*. Relative to that point the letters act as monotone maps of $m - 1$ points, and so on down
to one point. `spec/automata/holonomy.py` finds a cascade for any automaton, but of a sum it makes tables that grow like
$2^m$; here all maps are monotone, and each level adds at most four levels of gates:

1. OR: the map of the letter at $j$ misses the point $k$; the map of the letter is $f$.
2. AND: the letter at $j$ misses $k$, and no letter after it, before $t$, misses any point.
3. OR: $k$ is the last point that was missed before $t$.
4. AND: the map of the letter at $t$ is $f$, and the last point that was missed is $k$.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.fixed_point import Grid
from vitrify.bounds.gates import FALSE, TRUE, GateWiring, any_of_each, merged
from vitrify.errors import BuildRefused
from vitrify.spec.graphs import reached

Map = tuple[int, ...]
"""The action of a letter on a chain: the index of the image of every point."""

LEVEL_DEPTH = 4  # circuit levels for each point of a chain but one
MAX_POINTS = 64  # of a chain: each one is a level of the cascade


@cache
def chain(grid: Grid, summands: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[Map, ...]]:
    """Return the partial sums that these summands reach from 0, in order, and the map of each summand.

    Maps that are not monotone are refused: the monotone ones are the certificate that the sum has no groups.
    """
    added = np.array(summands, dtype=np.int64)
    refusal = f"partial sums have more than {MAX_POINTS} values: take a coarser grid or fewer significant bits"
    graph = reached([0], lambda x: grid.plus(np.array(x), added).tolist(), MAX_POINTS, refusal)
    points = tuple(sorted(graph))
    index = {point: number for number, point in enumerate(points)}
    maps = tuple(tuple(index[graph[x][letter]] for x in points) for letter in range(len(summands)))
    refuse_cycles(maps)
    return points, maps


def refuse_cycles(maps: Sequence[Map]) -> None:
    """Raise BuildRefused unless all maps are monotone, so that no composition of them permutes points."""
    falling = next((map_ for map_ in maps if any(x > y for x, y in pairwise(map_))), None)
    if falling:
        raise BuildRefused(
            f"a summand must move partial sums monotonically, but one moves the points 0, 1, 2, … to {falling}: such "
            "sums can count modulo a number, which no circuit of AND and OR gates of constant depth does"
        )


def rounded_sum(
    wiring: GateWiring, grid: Grid, summands: Ints, positions: Ints, literals: Sequence[int]
) -> dict[int, int]:
    """Return the values that a sum over positions may have, each with the literal that it has this value.

    The summand `summands[k]` is added at `positions[k]`, which ascend, iff the literal `literals[k]` is true.
    """
    letters = dict.fromkeys(summands.tolist())
    points, maps = chain(grid, tuple(letters))
    map_of = dict(zip(letters, maps, strict=True))
    pairs: dict[int, list[tuple[Map, int]]] = {}
    for position, summand, literal in zip(positions.tolist(), summands.tolist(), literals, strict=True):
        pairs.setdefault(position, []).append((map_of[summand], literal))
    last = point_after(wiring, list(pairs.values()), points.index(0), len(points))
    return {points[point]: literal for point, literal in last.items() if literal != FALSE}


def rounded_means(
    wiring: GateWiring, grid: Grid, weights: Ints, values: Ints, positions: Ints, literals: Sequence[int]
) -> list[dict[int, tuple[int, int]]]:
    """Return, per coordinate of `values` [key, d_value], what the head may output, each with two literals.

    The shares depend on the sum of all weights, which is known at the end only: for each value that this sum may have,
    one more sum adds the products under it.
    """
    totals = rounded_sum(wiring, grid, weights, positions, literals)
    means = []
    for column in values.T:
        cases = []
        for total, literal in totals.items():
            products = grid.rounded(grid.share(weights, np.array(total)) * column)
            by_value = rounded_sum(wiring, grid, products, positions, literals)
            cases += [(value, wiring.all_of([literal, wire])) for value, wire in by_value.items()]
        means.append({value: (literal, TRUE) for value, literal in any_of_each(wiring, cases).items()})
    return means


def point_after(wiring: GateWiring, words: list[list[tuple[Map, int]]], start: int, size: int) -> dict[int, int]:
    """Return the points of a chain that it may end in, each with a literal, by the possible maps at every position."""
    if not words:
        return {start: TRUE}
    *front, last = words
    for points in range(size, 1, -1):
        other = 0 if start else points - 1  # a point that the start is not
        before = _last_missed(wiring, front, other)
        maps = merged(wiring, front)
        front = [
            [
                (_without(map_, k), both)
                for map_, literal in here.items()
                for k, seen in by.items()
                if (both := wiring.all_of([literal, seen])) != FALSE
            ]
            for here, by in zip(maps, before, strict=False)
        ]
        ends = any_of_each(wiring, last)
        last = [
            (images[:k] + images[k + 1 :], wiring.all_of([literal, seen]))
            for images, literal in ends.items()
            for k, seen in before[-1].items()
        ]
        start -= other < start
    return {images[0]: literal for images, literal in any_of_each(wiring, last).items()}


def _missed(map_: Map) -> int | None:
    """Return a point that a monotone map misses, an end if possible; None for the identity."""
    if map_[0] > 0:
        return 0
    if map_[-1] < len(map_) - 1:
        return len(map_) - 1
    return next((point for point in range(len(map_)) if point not in map_), None)


def _without(map_: Map, old: int) -> Map:
    """Return a map as one of the chain without `old` to the chain without the point that it misses."""
    missed = _missed(map_)
    new = old if missed is None else missed
    return tuple(image - (image > new) for point, image in enumerate(map_) if point != old)


def _last_missed(wiring: GateWiring, words: list[list[tuple[Map, int]]], first: int) -> list[dict[int, int]]:
    """Return, before every position and at the end, the points that may be missed last, each with a literal."""
    missing: list[dict[int, int]] = []
    for here in words:
        resets = [(missed, literal) for map_, literal in here if (missed := _missed(map_)) is not None]
        missing.append(any_of_each(wiring, resets))
    last_missed = []
    for end in range(len(words) + 1):
        quiet: list[int] = []  # nothing is missed from here to the end
        cases = []
        for missed_here in reversed(missing[:end]):
            cases += [(point, wiring.all_of([literal, *quiet])) for point, literal in missed_here.items()]
            quiet += [literal ^ 1 for literal in missed_here.values()]
        cases.append((first, wiring.all_of(quiet)))
        last_missed.append({k: literal for k, literal in any_of_each(wiring, cases).items() if literal != FALSE})
    return last_missed
