"""Formats round as NumPy's and ml_dtypes' do, and what they can do to a step is bounded, tightly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cases import each
from vitrify.certification.margins.values import Stretch, Undecided, ValueFactor
from vitrify.certification.precision.formats import FORMATS, Format
from vitrify.certification.precision.narrow import narrowed
from vitrify.net.architecture import Output
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

NARROW = ("float16", "bfloat16", "float32")
DTYPES: dict[str, Any] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}


def numbers(seed: int, count: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=count) * 2.0 ** rng.integers(-30, 30, size=count)


@pytest.mark.parametrize("name", NARROW)
def test_they_round_to_the_nearest(name: str) -> None:
    kind, dtype = FORMATS[name], DTYPES[name]
    limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    edges = [0.0, 1.0, -1.0, 3 * kind.least, 1.4 * kind.least, kind.largest, -kind.largest, float(limits.tiny) * 1.5]
    given = np.concatenate([numbers(1), edges, numbers(2) * 2.0**-120, numbers(3) * 2.0**100])
    found = kind.stored(given)
    with np.errstate(over="ignore"):
        usual = given.astype(dtype).astype(np.float64)
    inside = np.isfinite(found)
    np.testing.assert_array_equal(found[inside], found[inside].astype(dtype).astype(np.float64))  # it is of the format
    assert np.isfinite(usual[inside]).all()
    assert (np.abs(found - given)[inside] <= np.abs(usual - given)[inside]).all()  # and no other number is nearer
    assert (np.abs(found - given)[inside] <= kind.roundoff * np.abs(given)[inside] + kind.least / 2).all()
    assert np.isinf(kind.stored(np.array([4 * kind.largest, -4 * kind.largest]))).all()
    assert (kind.roundoff, kind.least, kind.largest) == (
        float(limits.eps) / 2,
        float(limits.smallest_subnormal),
        float(limits.max),
    )


@each("name", NARROW)
@each("operation", [np.add, np.subtract, np.multiply, np.divide, np.maximum])
def test_narrow_arrays_compute_as_the_format_does(name: str, operation: Callable[..., Any]) -> None:
    kind, dtype = FORMATS[name], DTYPES[name]
    left, right = (kind.stored(np.random.default_rng(seed).normal(size=3000)) for seed in (4, 5))
    found = operation(narrow(left, kind), narrow(right, kind))
    with np.errstate(over="ignore"):
        wanted = operation(left.astype(dtype), right.astype(dtype)).astype(np.float64)
    np.testing.assert_array_equal(np.asarray(found), wanted)
    assert type(found) is type(narrow(left, kind))


def narrow(array: np.ndarray, kind: Format) -> Any:
    net = Transformer(("<s>", "a"), Output("class", ("x",)), 1, 1)
    shapes = {key: np.zeros(shape) for key, shape in net.shapes().items()}
    some = narrowed(Weights(net, shapes), kind).arrays["embed.W_E"]
    made: Any = array.view(type(some))
    made.format = kind
    return made


@pytest.mark.parametrize("name", NARROW)
def test_products_and_sums_are_rounded_term_by_term(name: str) -> None:
    kind = FORMATS[name]
    left, right = (kind.stored(np.random.default_rng(seed).normal(size=(7, 7))) for seed in (6, 7))
    total = np.zeros((7, 7))
    for k in range(7):
        total = kind.stored(total + kind.stored(left[:, k : k + 1] * right[k : k + 1]))
    np.testing.assert_array_equal(np.asarray(narrow(left, kind) @ narrow(right, kind)), total)
    row = np.zeros(7)
    for k in range(7):
        row = kind.stored(row + left[:, k])
    np.testing.assert_array_equal(np.asarray(narrow(left, kind).sum(axis=1)), row)
    assert (kind.stored(left @ right) != total).any()


@pytest.mark.long
@each("name", NARROW)
@each("dims", [1, 2, 5])
def test_a_step_stays_within_its_bound_and_not_far(name: str, dims: int) -> None:
    kind = FORMATS[name]
    worst = 0.0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        points, matrix, bias = rng.normal(size=(4, dims)), rng.normal(size=(dims, 1)), rng.normal(size=1) * (seed % 2)
        points = kind.stored(points)
        stretch = Stretch("tokens", 1, np.zeros((1, dims)), (ValueFactor.of("x", range(dims), points),), np.zeros(dims))
        bound = kind.linear(stretch, matrix, bias, "test")
        found = np.asarray(narrow(points, kind) @ narrow(kind.stored(matrix), kind) + narrow(kind.stored(bias), kind))
        off = np.abs(found - (points @ matrix + bias)).max()
        assert off <= bound[0] * (1 + 1e-9) + 1e-14
        worst = max(worst, off / bound[0])
    assert worst > 0.25  # a bound that is four times smaller would be noticed


def test_what_rounds_nothing_loses_nothing() -> None:
    stretch = Stretch("tokens", 1, np.zeros((1, 3)), (ValueFactor.of("x", [0, 1, 2], np.eye(3)),), np.zeros(3))
    copies = np.array([[1.0, 0.0, 4.0], [0.0, -2.0, 1.0], [1.0, 0.0, 0.0]])
    for kind in FORMATS.values():
        assert not kind.linear(stretch, copies, np.zeros(3), "test").any()
        assert kind.linear(stretch, copies, np.array([0.0, 0.0, 1.0]), "test").tolist()[:2] == [0.0, 0.0]
    moved = Stretch("tokens", 1, np.zeros((1, 3)), stretch.factors, np.full(3, 1e-3))
    assert FORMATS["float32"].linear(moved, copies, np.zeros(3), "test")[0] > 0  # two terms that both may be there


def test_what_does_not_fit_is_refused() -> None:
    stretch = Stretch("tokens", 1, np.full((1, 2), 300.0), (), np.zeros(2))
    with pytest.raises(Undecided, match="may not fit into float16"):
        FORMATS["float16"].linear(stretch, np.full((2, 1), 200.0), np.zeros(1), "units")
    FORMATS["bfloat16"].linear(stretch, np.full((2, 1), 200.0), np.zeros(1), "units")
    with pytest.raises(Undecided, match="no number as large as the weight 1e\\+05"):
        FORMATS["float16"].lost(np.array([1e5]))


def test_factors_that_exclude_each_other_are_not_added_up() -> None:
    rng, dims = np.random.default_rng(0), range(40)
    matrix = np.abs(rng.normal(size=(40, 3)))
    for factor in (ValueFactor.of("x", dims, np.eye(40)), ValueFactor.of("x", dims, 1.0 * np.eye(40)[::-1])):
        stretch = Stretch("tokens", 1, np.zeros((2, 40)), (factor,), np.zeros(40))
        np.testing.assert_array_equal(stretch.reach(matrix), matrix.max(axis=0))
        np.testing.assert_array_equal(stretch.terms(np.ones((40, 3))), [1, 1, 1])
    both = Stretch("tokens", 1, np.eye(2, 40), (factor,), np.full(40, 0.5))
    np.testing.assert_allclose(both.reach(matrix), matrix.max(axis=0) + matrix[:2].max(axis=0) + matrix.sum(axis=0) / 2)
    box = Stretch(
        "tokens", 1, np.zeros((1, 2)), (ValueFactor.box("x", [0, 1], np.full(2, -3.0), np.ones(2)),), np.zeros(2)
    )
    np.testing.assert_array_equal(box.reach(np.ones((2, 1))), [6.0])
