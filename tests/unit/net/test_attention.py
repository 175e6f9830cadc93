"""Attention weights: each kind against its definition, on rows with ties, with margins and without keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, minimize

from cases import each
from examples import examples
from oracles import naive_transformer
from vitrify.net.attention import allowed_keys, hardmax, softmax, sparsemax, weigh
from vitrify.net.transformer import Head, Mask

Floats = NDArray[np.float64]
Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

FREE = np.ones((1, 3), dtype=bool)
SCORES = arrays(np.float64, st.integers(1, 6), elements=st.floats(-4, 4))
KINDS = [Head("softmax"), Head("sparsemax"), *(Head("hard", ties=ties) for ties in ("left", "right", "average"))]


def row(head: Head, *scores: float) -> list[float]:
    weights: Floats = weigh(head, np.array([scores]), np.ones((1, len(scores)), dtype=bool))
    return [float(weight) for weight in weights[0]]


@each("mask", ["none", "causal", "strict", "after"])
@each("window", [None, 1, 2, 9])
def test_the_keys_a_query_sees(mask: Mask, window: int | None) -> None:
    head = Head(mask=mask, window=window)
    seen = allowed_keys(head, np.arange(2, 5), np.arange(6))
    assert [np.flatnonzero(keys).tolist() for keys in seen] == [
        naive_transformer.visible_keys(head, query, 6) for query in (2, 3, 4)
    ]


@pytest.mark.parametrize("head", KINDS, ids=str)
@settings(max_examples=examples(40), deadline=None)
@given(scores=SCORES, data=st.data())
def test_weights_follow_the_definition(head: Head, scores: Floats, data: st.DataObject) -> None:
    allowed = data.draw(arrays(bool, len(scores)))
    weights = weigh(head, scores[None], allowed[None])[0]
    wanted = naive_transformer.weights(head, {j: float(s) for j, s in enumerate(scores) if allowed[j]})
    np.testing.assert_allclose(weights, [wanted.get(j, 0.0) for j in range(len(scores))], rtol=1e-12, atol=1e-14)
    assert weights.sum() == pytest.approx(float(allowed.any()), abs=1e-12)
    assert not weights[~allowed].any()


@each("head", KINDS, ids=str)
def test_a_query_without_keys_gets_nothing(head: Head) -> None:
    scores = np.array([[5.0, -5.0, 0.0]])
    assert not weigh(head, scores, ~FREE).any()


@each("head", KINDS, ids=str)
@each("dtype", [np.float32, np.float64])
def test_weights_keep_the_precision_of_the_scores(head: Head, dtype: type) -> None:
    assert weigh(head, np.array([[0.25, 0.5, 0.0]], dtype=dtype), FREE).dtype == dtype


@settings(max_examples=examples(25), deadline=None)
@given(SCORES)
def test_sparsemax_is_the_nearest_point_of_the_simplex(scores: Floats) -> None:
    """The projection, found by a solver that knows nothing of thresholds."""
    n = len(scores)

    def distance(w: Vector) -> float:
        return float(((w - scores) ** 2).sum())

    def slope(w: Vector) -> Floats:
        return 2 * (w - scores)

    nearest = minimize(
        distance,
        np.full(n, 1 / n),
        jac=slope,
        bounds=Bounds(np.zeros(n), np.ones(n)),
        constraints=LinearConstraint(np.ones((1, n)), 1, 1),
        method="SLSQP",
        tol=1e-14,
    )
    np.testing.assert_allclose(sparsemax(scores[None], np.ones((1, n), dtype=bool))[0], nearest.x, atol=1e-6)


@each("lead", [1.0, 1.5, 1e6])
@each("best", [0.0, 0.1, -7.3, 1e8])
def test_a_lead_of_one_takes_it_all(lead: float, best: float) -> None:
    assert row(Head("sparsemax"), best - lead, best, best - 2 * lead) == [0, 1, 0]


def test_a_smaller_lead_does_not() -> None:
    assert row(Head("sparsemax"), 0.5, 1.0) == [0.25, 0.75]


def test_far_and_forbidden_keys_stay_out_of_the_support() -> None:
    scores = np.array([[0.0, -0.5, -100.0, 50.0]])
    assert sparsemax(scores, np.array([[True, True, True, False]])).tolist() == [[0.75, 0.25, 0, 0]]


@pytest.mark.parametrize("size", [1e3, 1e300])
def test_softmax_of_large_scores(size: float) -> None:
    assert softmax(np.array([[-size, size, size]]), FREE).tolist() == [[0, 0.5, 0.5]]


@each(
    ("ties", "resolution", "wanted"),
    [
        ("left", 0.0, [0, 1, 0, 0]),
        ("right", 0.0, [0, 0, 0, 1]),
        ("average", 0.0, [0, 0.5, 0, 0.5]),
        ("left", 0.25, [0, 1, 0, 0]),
        ("left", 0.5, [1, 0, 0, 0]),
        ("right", 1.0, [0, 0, 0, 1]),
        ("average", 0.5, [1 / 3, 1 / 3, 0, 1 / 3]),
        ("average", 1.0, [0.25, 0.25, 0.25, 0.25]),
    ],
)
def test_hard_ties(ties: str, resolution: float, wanted: list[float]) -> None:
    head = Head("hard", ties=ties, resolution=resolution)  # type: ignore[arg-type]
    assert row(head, 1.5, 2.0, 1.0, 2.0) == wanted


def test_ties_are_among_allowed_keys_only() -> None:
    scores, allowed = np.array([[9.0, 2.0, 2.0]]), np.array([[False, True, True]])
    assert hardmax(scores, allowed, Head("hard", ties="left")).tolist() == [[0, 1, 0]]
    assert hardmax(scores, allowed, Head("hard", ties="average")).tolist() == [[0, 0.5, 0.5]]
