"""The landscape explorer's numbers, against cross-entropies by hand, finite differences, and the flow itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cases import each
from vitrify.errors import InputError
from vitrify.learn import bit_chain
from vitrify.report.landscape import EDGE, FORMS, MIN_P, critical_points, nearest, path, runs, surface

CHAINS = ((0.2, 0.3), (0.5, 0.8), (0.9, 0.35))
POINTS = ((0.7, 0.3, 0.4), (-1.2, -1.1, -0.3), (0.4, -0.6, 0.9), (1.9, 1.4, -1.6))
STARTS = np.vstack([np.random.default_rng(0).uniform(-2, 2, (14, 3)), [[0.3, -1.6, 0.8], [-0.4, -1.3, -0.2]]])


def contrast(key: str, e: float, w: float, third: float) -> float:
    """A by its definition."""
    first = {"tied": e * e, "attention": e * e * (1 + third), "untied": e * third}[key]
    return first * (1 + 2 * w * abs(w))


def by_hand(a: float, p: float, q: float) -> float:
    """The least cross-entropy of two logits that differ by a contrast, found by search."""

    def mean(zero: float) -> float:
        says = [1 / (1 + np.exp(-zero)), 1 / (1 + np.exp(-(zero + a)))]
        after = [
            -p * np.log(says[0]) - (1 - p) * np.log(1 - says[0]),
            -(1 - q) * np.log(says[1]) - q * np.log(1 - says[1]),
        ]
        return float((q * after[0] + p * after[1]) / (p + q))

    return float(minimize_scalar(mean, bounds=(-14, 14), method="bounded", options={"xatol": 1e-10}).fun)


@each("key", FORMS)
@each(("p", "q"), CHAINS)
def test_the_surface_is_the_least_cross_entropy_at_every_point(key: str, p: float, q: float) -> None:
    found = surface(key, p, q, 0.3)
    side = np.linspace(-EDGE, EDGE, len(found["loss"]))
    for row, column in ((40, 55), (25, 45), (60, 30), (20, 62)):
        expected = by_hand(contrast(key, side[column], side[row], 0.3), p, q)
        assert found["loss"][row][column] == pytest.approx(expected, abs=2e-6)
    assert found["rate"] == pytest.approx(by_hand(found["contrast"], p, q), abs=1e-8)
    assert found["alone"] == pytest.approx(by_hand(0.0, p, q), abs=1e-8)
    assert np.min(found["loss"]) >= found["rate"] - 1e-6


@pytest.mark.parametrize("key", FORMS)
def test_the_flow_goes_down_the_gradient(key: str) -> None:
    p, q = 0.5, 0.8
    used = [0, 1, 2] if key != "tied" else [0, 1]
    for point in POINTS:
        slope = []
        for at in range(3):
            step = 1e-6 * np.eye(3)[at]
            ends = [float(bit_chain.profile(contrast(key, *(point + sign * step)), p, q)) for sign in (1, -1)]
            slope.append((ends[0] - ends[1]) / 2e-6)
        down = FORMS[key].downhill(np.array(point), p, q)
        np.testing.assert_allclose(down[used], -np.array(slope)[used], atol=1e-7)


@pytest.mark.long
@each("key", FORMS)
@each(("p", "q"), CHAINS[:2])
def test_the_flow_ends_where_the_rule_says(key: str, p: float, q: float) -> None:
    alone, rate = bit_chain.alone(p, q), bit_chain.rate(p, q)
    seen = set()
    for e, w, third in STARTS:
        found = path(key, p, q, e, w, third)
        seen.add(found["kind"])
        assert found["loss"][-1] == pytest.approx(rate if found["kind"] == "global minimum" else alone, abs=1e-6)
        assert found["converged"]
        assert np.all(np.diff(found["loss"]) <= 1e-9)
    assert "global minimum" in seen
    assert ("bad local minimum" in seen) == (key != "untied")


def test_without_tying_only_starts_with_e_as_large_as_the_readout_end_at_the_saddle() -> None:
    starts = {(0.2, 0.3, 0.2): True, (0.2, 0.3, 0.21): False, (0.2, 0.3, -0.2): False}
    starts |= {(0.4, -0.3, 0.4): True, (0.55, -0.3, 0.55): False}  # here w decides: it may come to -0.707 before
    for start, stays in starts.items():
        found = path("untied", 0.5, 0.8, *start)
        assert found["kind"] == ("saddle" if stays else "global minimum")
        assert (found["loss"][-1] > 0.66) == stays


def test_what_the_flow_keeps_is_kept_along_a_way() -> None:
    way = np.array(path("tied", 0.5, 0.8, 1.2, -0.4)["way"])
    energies = bit_chain.energy(way[:, 0], way[:, 1])
    np.testing.assert_allclose(energies, energies[0], atol=2e-3)
    assert abs(way[-1] - way[0]).max() > 0.3


def test_the_rule_of_two_numbers_is_that_of_the_claim() -> None:
    side = np.linspace(-EDGE, EDGE, 60)
    e, w = np.meshgrid(side, side)
    for p, q in CHAINS:
        np.testing.assert_array_equal(FORMS["tied"].trapped(e, w, 0.0, p, q), bit_chain.trapped(e, w, p, q))


@each("key", ["tied", "attention"])
@each(("p", "q"), CHAINS[:2])
@each("third", [0.0, -1.5])
def test_places_without_reading_are_named_by_the_curvature_along_e(key: str, p: float, q: float, third: float) -> None:
    for place in critical_points(key, p, q, third)[1:3]:
        w = float(np.mean(place["w"]))
        third = third if key == "attention" else 0.0
        rise = [
            float(bit_chain.profile(contrast(key, e, w, third), p, q)) - bit_chain.alone(p, q) for e in (0.01, -0.01)
        ]
        assert (min(rise) > 0) == (place["kind"] == "bad local minimum")
        assert place["loss"] == pytest.approx(bit_chain.alone(p, q))


@pytest.mark.parametrize("key", FORMS)
def test_goals_have_the_right_contrast_and_lines_go_down(key: str) -> None:
    for p, q in CHAINS[:2]:
        found = surface(key, p, q, 0.5)
        assert found["goals"]
        for goal in found["goals"]:
            for e, w in goal[::7]:
                loss = float(bit_chain.profile(contrast(key, e, w, 0.5), p, q))
                assert loss == pytest.approx(found["rate"], abs=2e-3)
        for line in found["lines"]:
            losses = [float(bit_chain.profile(contrast(key, e, w, 0.5), p, q)) for e, w in line]
            assert losses[-1] <= losses[0] + 1e-6


def test_words_say_what_is_seen_and_nothing_breaks_on_the_line() -> None:
    assert "is a bad local minimum" in surface("tied", 0.5, 0.8)["caption"]
    assert "is a saddle" in surface("tied", 0.2, 0.3)["caption"]
    assert "p + q = 1" in surface("tied", 0.3, 0.7)["caption"]
    assert surface("tied", 0.3, 0.7)["share"] == 0
    even = path("tied", 0.3, 0.7, 0.5, 0.5)
    assert even["kind"] == "global minimum"
    assert "ignores the input" in even["caption"]
    json.dumps([surface(key, 0.3, 0.7) for key in FORMS], allow_nan=False)
    still = path("tied", 0.5, 0.8, 0.0, -1.0)
    assert (still["kind"], len(still["way"])) == ("saddle", 1)


@each("asked", [("other", 0.5, 0.5), ("tied", 0.0, 0.5), ("tied", 0.5, MIN_P / 2), ("tied", float("nan"), 0.5)])
def test_what_makes_no_sense_is_refused(asked: Any) -> None:
    with pytest.raises(InputError):
        surface(*asked)
    with pytest.raises(InputError):
        path(asked[0], asked[1], asked[2], 0.1, 0.1)
    with pytest.raises(InputError):
        path("tied", 0.5, 0.5, 1e9, 0.1)


def test_the_nearest_recorded_chain_is_on_the_same_side() -> None:
    assert [(found["p"], found["q"]) for found in (nearest("tied", 0.49, 0.81), nearest("untied", 0.17, 0.32))] == [
        (0.5, 0.8),
        (0.2, 0.3),
    ]
    for p in np.linspace(0.02, 0.98, 21):
        for q in np.linspace(0.02, 0.98, 22):
            near = nearest("tied", p, q)
            assert (near["p"] + near["q"] > 1) == (p + q > 1) or abs(p + q - 1) < 1e-9
            assert abs(near["p"] - p) + abs(near["q"] - q) < 0.4
    assert {one["kind"] for one in near["kinds"]} == {"tied", "tied, start w = −1"}
    assert {one["kind"] for one in nearest("untied", 0.5, 0.51)["kinds"]} == {"untied"}


def test_recorded_networks_are_what_the_claim_speaks_of() -> None:
    """Tied and small they are stuck above p + q = 1 and nowhere else, where the two losses are far enough apart."""
    every = runs()
    assert every["networks"] == sum(len(one["loss"]) for one in every["chains"])
    assert {len(curve) for one in every["chains"] for curve in one["loss"]} == {len(every["steps"])}
    for one in every["chains"]:
        if one["alone"] - one["floor"] < 0.03 or one["kind"] == "tied, start w = −1":
            continue
        left = [(curve[-1] - one["floor"]) / (one["alone"] - one["floor"]) for curve in one["loss"]]
        stuck = one["kind"] == "tied" and one["p"] + one["q"] > 1
        assert all((share > 0.5) == stuck for share in left), (one["kind"], one["p"], one["q"], left)


@pytest.mark.slow
@pytest.mark.parametrize("key", FORMS)
def test_ways_are_those_of_the_library_s_own_flow(key: str) -> None:
    """`learn/flow.py` integrates by another method, with gradients by JAX."""
    from vitrify.learn.flow import flow

    def loss(point: Any, chain: Any) -> Any:
        e, w, third = point["e"], point["w"], point["third"]
        first = {"tied": e**2, "attention": e**2 * (1 + third), "untied": e * third}[key]
        return bit_chain.profile(first * bit_chain.gain(w), *chain)

    starts = dict(zip(("e", "w", "third"), STARTS.T, strict=True))
    for p, q in CHAINS[:2]:
        chains = (np.full(len(STARTS), p), np.full(len(STARTS), q))
        found = flow(loss, starts, chains)
        for at, (e, w, third) in enumerate(STARTS):
            mine = path(key, p, q, e, w, third)
            ends = [float(found.ends[name][at]) for name in ("e", "w")]
            np.testing.assert_allclose([mine["end"]["e"], mine["end"]["w"]], ends, atol=1e-3)
