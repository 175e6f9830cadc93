"""Linear regions: counts that are known, and agreement with linear programs and with a walk along a line."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from cases import each
from oracles.maxout_regions import linear_regions, patterns, walk
from vitrify.errors import InputError
from vitrify.spec.geometry.maxout import Layer, Maxout, random_maxout, random_relu, zigzag
from vitrify.spec.geometry.regions import Point, leaders, regions, regions_on_line


def small_numbers(widths: tuple[int, ...], rank: int, seed: int) -> Maxout:
    """Weights that meet in many places: parallel pieces, three lines through a point, units that agree."""
    rng = np.random.default_rng(seed)
    sizes = [((units, rank, inputs), (units, rank)) for inputs, units in pairwise(widths)]
    return Maxout(tuple(Layer.of(rng.integers(-2, 3, size=w), rng.integers(-2, 3, size=b) / 2) for w, b in sizes))


@each(("k", "depth"), [(2, 1), (2, 3), (2, 5), (3, 2), (3, 3), (4, 3), (5, 2), (2, 10)])
def test_zigzags_have_k_to_the_l_regions(k: int, depth: int) -> None:
    found = regions(zigzag(k, depth))
    assert (found.activation, found.linear) == (k**depth, k**depth)


@pytest.mark.parametrize(("k", "depth"), [(2, 2), (3, 1), (3, 2)])
def test_zigzags_side_by_side_multiply(k: int, depth: int) -> None:
    found = regions(zigzag(k, depth, 2))
    assert (found.activation, found.linear) == (k ** (2 * depth), k ** (2 * depth))


def families(seed: int) -> dict[str, Maxout]:
    return {
        "maxout": random_maxout((2, 3, 2, 1), 3, seed),
        "ReLU": random_relu((2, 4, 3, 1), seed),
        "small numbers": small_numbers((2, 3, 2, 1), 2, seed),
        "small numbers, rank 3": small_numbers((2, 2, 2, 2), 3, seed),
        "one input": random_maxout((1, 6, 5, 1), 3, seed),
        "one input, ReLU": random_relu((1, 6, 5, 1), seed),
        "one input, small numbers": small_numbers((1, 3, 3, 2), 3, seed),
    }


def agree(net: Maxout) -> None:
    found, tried = regions(net), patterns(net)
    assert (found.activation, found.linear) == (len(tried), linear_regions(tried))


@pytest.mark.long
@pytest.mark.parametrize("family", families(0))
@pytest.mark.parametrize("seed", range(2))
def test_linear_programs_find_the_same_regions(family: str, seed: int) -> None:
    agree(families(seed)[family])


@pytest.mark.slow
@pytest.mark.parametrize("family", families(0))
@pytest.mark.parametrize("seed", range(2, 40))
def test_linear_programs_find_the_same_regions_on_many_nets(family: str, seed: int) -> None:
    agree(families(seed)[family])


@each("seed", range(4))
def test_a_walk_from_breakpoint_to_breakpoint_finds_the_same_regions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for net in (*families(seed).values(), random_maxout((4, 8, 8, 2), 4, seed), small_numbers((3, 4, 4, 1), 3, seed)):
        start, end = rng.uniform(-1, 1, size=(2, net.inputs))
        found = regions_on_line(net, start, end)
        assert (found.activation, found.linear) == walk(net, start, end)
        if net.inputs == 1:
            whole = regions(net)
            assert (whole.activation, whole.linear) == walk(net, [-1.0], [1.0])


@each("seed", range(5))
def test_one_layer_of_lines_has_the_regions_of_their_arrangement(seed: int) -> None:
    """Euler: lines in general position cut a convex box into 1 + lines + crossings regions, counted inside."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(6, 2)), rng.normal(size=6) / 2
    net = Maxout((Layer(np.stack([a, 0 * a], axis=1), np.stack([b, 0 * b], axis=1)),))
    crossing = [i for i in range(6) if abs(b[i]) < np.abs(a[i]).sum()]
    met = 0
    for place, i in enumerate(crossing):
        for j in crossing[:place]:
            met += bool((np.abs(np.linalg.solve(a[[i, j]], -b[[i, j]])) < 1).all())
    assert regions(net).activation == regions(net).linear == 1 + len(crossing) + met


@each("seed", range(4))
def test_cells_tile_the_box_and_say_what_the_net_does(seed: int) -> None:
    net = random_maxout((2, 3, 3, 2), 3, seed)
    area = 0.0
    for cell in regions(net).cells:
        corners = np.array([[float(x) for x in corner] for corner in cell.corners])
        x, y = corners.T
        area += float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
        middle = corners.mean(axis=0)
        said = [float(sum(a * b for a, b in zip(form, [*middle, 1.0], strict=True))) for form in cell.forms]
        np.testing.assert_allclose(net(middle[None])[0], said, atol=1e-12)
    assert area == pytest.approx(4.0)


def test_neighbours_with_the_same_function_are_one_linear_region_and_others_are_not() -> None:
    hidden = Layer.of([[[1.0], [0.0]], [[1.0], [0.0]]], [[0.0, 0.0], [-0.5, 0.0]])
    ramp = Maxout((hidden, Layer.of([[1.0, 0.0]], [0.0])))
    assert (regions(ramp).activation, regions(ramp).linear) == (3, 2)
    plateau = Maxout.from_points([(-3, 0), (-2, 0), (-1, 1), (0, 1), (1, 0), (3, 0)])
    assert (regions(plateau).activation, regions(plateau).linear) == (5, 5)  # the same zero on either side


def test_corners_alone_do_not_join_regions() -> None:
    """The larger of |x| and |y|, cut down to where x and y have different signs: opposite cells meet in the origin."""
    units = Layer.of([[[1.0, 0.0], [-1.0, 0.0]], [[0.0, 1.0], [0.0, -1.0]]], np.zeros((2, 2)))
    both = Layer.of([[[1.0, 0.0], [0.0, 1.0]]], [[0.0, 0.0]])
    cross = Maxout((units, both))
    assert (regions(cross).activation, regions(cross).linear) == (8, 4)


def test_three_inputs_are_refused_and_so_are_too_many_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="one or two inputs, this network has 3: count on a line"):
        regions(random_maxout((3, 2, 1), 2, 0))
    monkeypatch.setattr("vitrify.spec.geometry.regions.MAX_CELLS", 10)
    with pytest.raises(InputError, match="more than 10 regions"):
        regions(zigzag(2, 4))


def test_of_equal_leaders_the_first_counts() -> None:
    half = Fraction(1, 2)
    up, flat = (Fraction(1), Fraction(0)), (Fraction(0), half)
    segment: tuple[Point, ...] = ((Fraction(0),), (Fraction(1),))
    assert leaders(segment, [up, flat, up, flat]) == [(((half,), (Fraction(1),)), 0), (((Fraction(0),), (half,)), 1)]
    assert leaders(segment, [flat, flat]) == [(segment, 0)]
