"""CPWL functions: three descriptions, their maxout networks, and what a file may not say."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import Delaunay

from cases import each
from examples import examples
from vitrify.errors import InputError, SpecError
from vitrify.spec.geometry.cpwl import Cpwl
from vitrify.spec.geometry.grid import MAX_VERTICES, GridFunction
from vitrify.spec.geometry.max_min import MaxMin
from vitrify.spec.geometry.triangulation import (
    Triangulation,
    determinant,
    kuhn,
    random_triangulation,
    simplex_cell,
    split,
)

SQUARE = ((-1.0, 1.0), (-1.0, 1.0))
LEAVES = st.sampled_from(["x1", "x2", "0.5", "2", "-1", "x1 - x2"])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["max", "min"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
        st.tuples(inner, st.sampled_from("+-"), inner).map(lambda p: f"(({p[0]}) {p[1]} ({p[2]}))"),
        st.tuples(st.sampled_from(["-0.5", "3", "-1"]), inner).map(lambda p: f"({p[0]} * ({p[1]}))"),
        inner.map(lambda p: f"abs({p})"),
    ),
    max_leaves=5,
)


def points(spec: Cpwl, count: int = 2000) -> np.ndarray:
    return np.random.default_rng(1).uniform(spec.low, spec.high, size=(count, spec.inputs))


@settings(max_examples=examples(60), deadline=None)
@given(EXPRESSIONS)
def test_an_expression_is_what_python_makes_of_it_and_so_is_its_maxout_network(text: str) -> None:
    spec = MaxMin(box=SQUARE, function=text)
    x = points(spec, 50)
    right = [eval(text, {"max": max, "min": min, "abs": abs}, {"x1": a, "x2": b}) for a, b in x.tolist()]
    np.testing.assert_allclose(spec(x)[:, 0], right, atol=1e-12)
    np.testing.assert_allclose(spec.maxout()(x)[:, 0], right, atol=1e-12)


def test_a_form_leaves_out_sets_that_contain_others() -> None:
    spec = MaxMin(box=SQUARE, function="max(min(x1, x2), min(x1, x2, 1), x2)")
    assert [[list(map(int, piece)) for piece in each] for each in spec.form] == [[[0, 1, 0]]]
    (pieces,) = MaxMin(box=SQUARE, function="-max(x1, x2)").form
    assert sorted(list(map(int, piece)) for piece in pieces) == [[-1, 0, 0], [0, -1, 0]]


@pytest.mark.parametrize("seed", range(4))
def test_a_triangulation_is_the_interpolation_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)]
    vertices = np.array([*corners, *rng.uniform(-0.9, 0.9, size=(7, 2))])
    values, triangles = rng.normal(size=len(vertices)), Delaunay(vertices)
    spec = Triangulation(
        box=SQUARE,
        vertices=tuple(map(tuple, vertices.tolist())),
        values=tuple(values.tolist()),
        simplices=tuple(map(tuple, triangles.simplices.tolist())),
    )
    x = points(spec)
    right = LinearNDInterpolator(triangles, values)(x)
    np.testing.assert_allclose(spec(x)[:, 0], right, atol=1e-12)
    np.testing.assert_allclose(spec.maxout()(x)[:, 0], right, atol=1e-12)


@each("dimensions, inner", [(1, 4), (2, 5), (3, 2), (4, 0)], ids=str)
def test_a_maximum_of_minima_is_the_function_in_any_number_of_variables(dimensions: int, inner: int) -> None:
    spec = random_triangulation(inner, 3, dimensions=dimensions)
    x = points(spec)
    np.testing.assert_allclose(spec.maxout()(x), spec(x), atol=1e-11)


def test_a_split_cell_loses_no_volume() -> None:
    """Cells of a simplex, cut by random planes through one point: their volumes are computed by another library."""
    rng = np.random.default_rng(0)
    cells = [simplex_cell([tuple(map(Fraction, row)) for row in (np.zeros(4), *np.eye(4))])]
    for number in range(5, 10):
        normal = tuple(Fraction(int(n), 8) for n in rng.integers(-2, 3, size=4))
        plane = (*normal, -sum(normal, Fraction(0)) / 8)  # through a point inside
        cells = [part for cell in cells for part in split(cell, plane, number)]
    from scipy.spatial import ConvexHull

    hulls = [ConvexHull(np.array([[float(a) for a in point] for point, _ in cell])) for cell in cells]
    assert len(cells) > 8
    assert [len(hull.vertices) for hull in hulls] == [len(cell) for cell in cells]  # every point is a corner
    assert sum(hull.volume for hull in hulls) == pytest.approx(1 / 24, abs=1e-12)


def test_a_determinant_is_that_of_numpy() -> None:
    rows = np.random.default_rng(0).integers(-3, 4, size=(5, 5))
    assert float(determinant([[Fraction(int(a)) for a in row] for row in rows])) == pytest.approx(np.linalg.det(rows))


@each("cells", [(3,), (2, 3), (1, 2, 2)], ids=str)
def test_a_grid_is_its_triangulation_and_a_sum_of_hats(cells: tuple[int, ...]) -> None:
    count = int(np.prod([number + 1 for number in cells]))
    values = tuple(np.random.default_rng(0).normal(size=count).tolist())
    grid = GridFunction(box=((-1.0, 2.0),) * len(cells), cells=cells, values=values)
    triangles, x = kuhn(grid), points(grid)
    assert len(triangles.simplices) == np.prod(cells) * factorial(len(cells))
    np.testing.assert_allclose(grid(x), triangles(x), atol=1e-12)
    np.testing.assert_allclose(grid.maxout()(x), grid(x), atol=1e-11)
    np.testing.assert_allclose(grid(grid.corners())[:, 0], values, atol=1e-14)


def test_a_grid_of_zeros_is_zero_and_too_many_hats_are_refused() -> None:
    assert not GridFunction(box=SQUARE, cells=(1, 1), values=(0.0,) * 4).maxout()(np.ones((1, 2))).any()
    with pytest.raises(InputError, match=f"more than {MAX_VERTICES:,}: use fewer cells"):
        GridFunction(box=((0.0, 1.0),), cells=(MAX_VERTICES,), values=(1.0,) * (MAX_VERTICES + 1)).maxout()


HEAD = "box = [[0, 1], [0, 1]]\n"
TRIANGLES = HEAD + "vertices = [[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]]\nvalues = [0, 1, 1, 0, 2]\nsimplices = "
TWICE = HEAD + "vertices = [[0, 0], [1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [0, 1], [1, 1]]\n"
TWICE += "values = [0, 1, 1, 0, 0, 1, 1, 0]\nsimplices = [[0, 1, 2], [1, 3, 2], [4, 5, 6], [5, 7, 6]]"
BAD = {
    "nothing": (HEAD, "a function, simplices or cells"),
    "two": (HEAD + 'function = "x1"\ncells = [1, 1]', "one of the three"),
    "box": ('box = [[1, 1]]\nfunction = "x1"', ":1: box must have intervals from a smaller to a larger"),
    "product": (HEAD + 'function = "max(x1 * x2, 1)"', ":2: function must be piecewise linear, but 'x1 * x2'"),
    "name": (HEAD + 'function = "x3"', "must consist of x1, x2, numbers"),
    "division by zero": (HEAD + 'function = "x1 / 0"', "no product with a number"),
    "code": (HEAD + 'function = "__import__(1)"', "must consist of x1, x2"),
    "syntax": (HEAD + 'function = "2x1"', "must be one expression"),
    "deep": (HEAD + f'function = "{"-" * 3000}x1"', "function must"),
    "many": (HEAD + 'function = "' + " + ".join(f"abs(x1 - {n}*x2)" for n in range(99)) + '"', "must be smaller"),
    "far": (HEAD + 'function = "' + "1e9*" * 30 + 'x1"', "numbers up to 1e+12"),
    "hole": (TRIANGLES + "[[0, 1, 4], [1, 3, 4], [3, 2, 4]]", "inside"),
    "flat": (TRIANGLES + "[[0, 3, 4]]", ":4: simplices must have volume, but simplex 0 is flat"),
    "overlap": (TRIANGLES + "[[0, 1, 2], [1, 2, 3], [0, 1, 4]]", "must"),
    "side": (TRIANGLES + "[[0, 1, 2], [1, 3, 2], [0, 1, 3], [0, 3, 2]]", "same side of the facet with vertices 0, 2"),
    "unused": (TRIANGLES + "[[0, 1, 2], [1, 3, 2]]", "all vertices, but vertex 4 belongs to none"),
    "twice": (TWICE, "fill the box once: they have volume 2, the box 1"),
    "vertex": (TRIANGLES + "[[0, 1, 7]]", "3 different vertices each, of 0 to 4"),
    "few values": (TRIANGLES.replace(", 2]", "]") + "[[0, 1, 2], [1, 2, 3]]", ":3: values must be 5 numbers"),
    "grid": (HEAD + "cells = [1, 1]\nvalues = [1, 2]", ":3: values must be 4 numbers"),
    "axes": (HEAD + "cells = [3]\nvalues = [1, 2, 3, 4]", ":2: cells must be 2 numbers"),
}


@each("case", BAD)
def test_a_bad_file_is_refused_with_its_line(case: str, tmp_path: Path) -> None:
    text, message = BAD[case]
    (tmp_path / "f.cpwl.toml").write_text(text)
    with pytest.raises(SpecError) as refusal:
        Cpwl.read(tmp_path / "f.cpwl.toml")
    assert message in str(refusal.value), str(refusal.value)
