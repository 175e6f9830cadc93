"""Approximation of functions: errors within what is stated, bounds that are attained, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from examples import examples
from vitrify.certification import mutation_test
from vitrify.certification.reading.distance import largest_distance
from vitrify.claims.any_continuous_function_is_approximated_within_a_stated_error import (
    _half_folded,
    _one_per_simplex,
    _pyramids,
)
from vitrify.constructions.approximation import approximate, interpolation_bound
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused, VitrifyError
from vitrify.spec.geometry.grid import GridFunction
from vitrify.spec.geometry.regions import value
from vitrify.spec.geometry.triangulation import kuhn, random_triangulation

Floats = Any
SQUARE = [(-1.0, 1.0), (0.0, 1.0)]
GRID = GridFunction(box=((-1.0, 1.0),) * 2, cells=(2, 1), values=(1.0, 0.5, -1.0, 0.25, 2.0, 1.0))


def wave(x: Floats) -> Floats:
    return np.sin(x[:, 0]) * np.cos(x[:, 1])


def off(net: Callable[[Floats], Floats], f: Callable[[Floats], Floats], box: list[tuple[float, float]]) -> float:
    low, high = np.array(box).T
    x = np.random.default_rng(5).uniform(low, high, size=(1000, len(box)))
    return float(np.abs(net(x) - f(x)).max())


@each("attention", ["softmax", "sparsemax", "hard"])
@each("known", [{"lipschitz": 1.5}, {"hessian": 1.0}, {}], ids=str)
def test_a_network_is_within_eps(attention: Any, known: dict[str, float]) -> None:
    net = approximate(wave, SQUARE, 0.6, attention=attention, **known)
    assert off(net, wave, SQUARE) <= net.error <= 0.6
    assert net.proved == bool(known)
    assert net.weights.about["error"] == net.error == net.interpolation_error + net.emulation_error + net.rounding_error
    assert net.weights.sizes.heads == 3 * net.grid.support
    assert str(net).startswith(f"within {net.error:.4g}{'' if known else ' at all sampled points'}: ")


def test_a_grid_is_the_coarsest_of_its_bound() -> None:
    """With one cell less along a variable, its step is above its share of the bound."""
    net = approximate(wave, SQUARE, 0.1, hessian=1.0, attention="hard")
    assert net.grid.cells == (4, 2)
    for axis in range(2):
        cells = tuple(number - (place == axis) for place, number in enumerate(net.grid.cells))
        values = (0.0,) * int(np.prod([number + 1 for number in cells]))
        steps = GridFunction(box=net.grid.box, cells=cells, values=values).steps
        assert steps[axis] > (8 * 0.1 / 2) ** 0.5  # an equal share for both variables


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 1000))
def test_interpolation_bounds_hold_for_functions_that_reach_their_constants(d: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = (m,) * d
    box, center = ((0.0, 1.0),) * d, rng.uniform(0, 1, size=d)
    grid = GridFunction(box=box, cells=cells, values=(0.0,) * (m + 1) ** d)
    x = np.vstack([rng.uniform(0, 1, size=(200, d)), center, np.full((1, d), 0.5 / m)])
    functions: dict[str, Callable[[Floats], Floats]] = {
        "lipschitz": lambda p: np.abs(p - center).max(axis=1),
        "hessian": lambda p: ((p - center) ** 2).sum(axis=1) / 2,
    }
    for known, f in functions.items():
        interpolant = GridFunction(box=box, cells=cells, values=tuple(f(grid.corners()).tolist()))
        error, bound = np.abs(interpolant(x)[:, 0] - f(x)).max(), interpolation_bound(grid, **{known: 1.0})
        assert error <= bound * (1 + 1e-12)
        assert known == "lipschitz" or error == pytest.approx(bound)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "eps": ({"eps": 0.0}, "eps must be a positive number"),
    "both": ({"hessian": 1.0, "lipschitz": 1.0}, "not both"),
    "negative": ({"hessian": -1.0}, "hessian must be a number of at least 0"),
    "box": ({"box": [(1.0, 0.0)]}, "low < high"),
    "fine": ({"eps": 1e-3, "lipschitz": 1.5}, "more than 1,500: use a larger eps"),
    "very fine": ({"eps": 1e-300, "lipschitz": 1.5}, "more than 1,500: use a larger eps"),
    "sampled": ({"eps": 1e-6}, "more than 1,500: use a larger eps"),
    "wrong constant": ({"eps": 0.3, "lipschitz": 0.1}, "lipschitz=0.1 is too small"),
    "shape": ({"f": lambda x: x}, r"must map points of shape \(.*\) to .* finite numbers"),
    "infinite": ({"f": lambda x: x[:, 0] / 0.0}, "finite numbers"),
    "too exact": ({"f": lambda x: 1e12 * x[:, 0], "eps": 1e-6, "hessian": 0.0}, "double precision"),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@each("case", REFUSED)
def test_what_cannot_be_had_is_refused(case: str) -> None:
    given, message = REFUSED[case]
    choices = {"f": wave, "box": SQUARE, "eps": 0.1, **given}
    with pytest.raises(VitrifyError, match=message):
        approximate(**choices)


def test_a_linear_function_needs_one_cell_and_zero_no_head() -> None:
    assert approximate(lambda x: x[:, 0], SQUARE, 1e-3, hessian=0.0).grid.cells == (1, 1)
    nothing = approximate(lambda x: 0 * x[:, 0], SQUARE, 1e-3, lipschitz=0.0)
    assert nothing.weights.sizes.heads == 0
    assert off(nothing, lambda x: 0 * x[:, 0], SQUARE) == 0


def test_the_largest_distance_is_that_of_the_weights_on_the_whole_box() -> None:
    net = build(GRID, attention="hard")
    assert largest_distance(net, kuhn(GRID))[0] < 1e-14
    name = "unembed.W_U"
    array = net.arrays[name].copy()
    array[array == 2.0] += 0.01  # the value of one vertex
    far, point = largest_distance(net.with_array(name, array), kuhn(GRID))
    assert float(far) == pytest.approx(0.01, abs=1e-12)
    assert list(map(float, point)) == [1.0, -1.0]


def test_nearest_mistakes_are_mistakes() -> None:
    """The errors that the claim's saboteurs make: one minimum per simplex, half of the folds, pyramids for hats."""
    triangles = random_triangulation(3, 1)
    x = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    assert np.abs(_one_per_simplex(triangles)(x) - triangles(x)).max() > 1
    assert np.abs(_half_folded(triangles)(x) - triangles(x)).max() > 0.1
    grid = GridFunction(box=((-1.0, 1.0),) * 2, cells=(1, 1), values=(1.0,) * 4)
    assert np.abs(grid(x) - 1).max() < 1e-12
    assert np.abs(_pyramids(grid)(x) - 1).max() > 0.5


@pytest.mark.long
@each("inner, dimensions", [(4, 1), (9, 1), (2, 2), (9, 2), (1, 3), (2, 3)])
@each("seed", range(3))
def test_a_difference_of_convex_functions_is_the_function_in_fractions(inner: int, dimensions: int, seed: int) -> None:
    """In every simplex, at its corners and at random points: a maximum of affine functions is convex by itself."""
    spec = random_triangulation(inner, seed, dimensions=dimensions)
    first, second = spec.difference(spec.folds)
    rng = np.random.default_rng(seed)
    for simplex, own in zip(spec.simplices, spec.pieces, strict=True):
        corners = [tuple(map(Fraction, spec.vertices[index])) for index in simplex]
        for _ in range(10):
            shares = [
                Fraction(int(share)) for share in rng.integers(0, 9, len(corners)) + np.eye(len(corners), dtype=int)[0]
            ]
            point = tuple(
                Fraction(sum(share * corner[axis] for share, corner in zip(shares, corners, strict=True))) / sum(shares)
                for axis in range(dimensions)
            )
            largest = [max(value(piece, point) for piece in pieces) for pieces in (first, second)]
            assert largest[0] - largest[1] == value(own, point)


def test_a_convex_function_has_no_folds_and_a_concave_one_no_other_bends() -> None:
    bowl = kuhn(
        GridFunction(box=((-1.0, 1.0),) * 2, cells=(2, 2), values=(2.0, 1.0, 2.0, 1.0, 0.0, 1.0, 2.0, 1.0, 2.0))
    )
    first, second = bowl.difference(bowl.folds)
    assert (len(bowl.folds), len(second)) == (0, 1)
    assert len(first) == len(set(bowl.pieces))
    dome = replace(bowl, values=tuple(-height for height in bowl.values))
    first, second = dome.difference(dome.folds)
    assert len(first) == 1
    assert len(second) == len(set(dome.pieces))


def test_one_attention_layer_of_two_heads_is_exact_on_the_whole_box() -> None:
    spec = random_triangulation(4, 1)
    net = build(spec, "convex-parts", attention="hard")
    assert net.sizes.heads_per_layer == (0, 2)
    assert largest_distance(net, spec)[0] <= net.about["rounding allowed"]


def test_a_large_triangulation_is_refused_by_its_construction() -> None:
    with pytest.raises(BuildRefused, match="use fewer simplices"):
        build(random_triangulation(60, 0))
    with pytest.raises(BuildRefused, match="use fewer simplices"):
        build(random_triangulation(60, 0), "convex-parts")


@each("spec", [random_triangulation(3, 1), GRID], ids=["triangulation", "grid"])
def test_a_mutant_that_is_not_noticed_computes_the_same(spec: Any) -> None:
    """Some pieces are nowhere the least of a minimum, or are outside the box."""
    found = mutation_test(build(spec, attention="hard"), spec, count=40)
    assert found.rate >= 0.8
    assert all("no answer on the whole domain moves" in reason for _, reason in found.survivors)
