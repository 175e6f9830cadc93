"""Gradient norms at points: their exponents with intervals, and the null of the claim."""

from __future__ import annotations

import numpy as np

from vitrify.claims import sub_ngrams_are_near_stationary_points_before_one_head_per_lag as claim
from vitrify.claims.trials import points


def test_the_exponent_has_the_interval_of_a_jackknife() -> None:
    pairs, rng = ((8, 3.0), (32, 6.0), (128, 10.0)), np.random.default_rng(0)
    lengths = np.array([length for length, _ in pairs])
    slopes = -1.5 + 0.1 * rng.normal(size=points.BATCHES)
    left_out = (slopes.sum() - slopes) / (points.BATCHES - 1)
    value, (low, high) = points.exponent(lengths[:, None] ** left_out, pairs)
    error = slopes.std(ddof=1) / np.sqrt(points.BATCHES)
    np.testing.assert_allclose([value, (high - low) / 2], [slopes.mean(), 2.3646 * error], rtol=1e-3)


def test_points_that_compute_nothing_are_rejected_by_their_loss() -> None:
    subject = list(claim.subjects())[1]
    norms, gaps = 0.1 * np.geomspace(1, 1e-3, 3)[:, None] * np.ones(8), np.full((3, 8), 1e-3)
    arrays = {f"{name}/norms": norms for name in points.POINTS} | {f"{name}/gaps": gaps for name in points.POINTS}
    arrays["elsewhere/gaps"] = gaps + 0.1
    assert claim.judge(subject, arrays).statements == {"point": "holds"}
    null = claim.elsewhere(subject, arrays, np.random.default_rng(0))
    assert claim.judge(subject, null).statements == {"point": "fails"}
    flat = {**arrays, "bigram/norms": np.full((3, 8), 0.1) + 1e-3 * np.random.default_rng(0).normal(size=(3, 8))}
    assert claim.judge(subject, flat).statements["point"] != "holds"


def test_heads_that_share_the_lags_are_rejected() -> None:
    weights = np.array([[0.9, 0.1], [0.0, 0.8]])  # [lag, head]
    assert points.shared_out(weights) == 0.8
    assert points.shared_out(np.repeat(weights.mean(axis=1, keepdims=True), 2, axis=1)) == 0.4
