"""Stages of learning: planted staircases are found again, power laws have none, trained members have theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import attention_on, induction, previous_token
from vitrify.learn.recipe import Recipe
from vitrify.learn.stages import (
    breakpoint_of,
    breakpoints,
    distances,
    gap,
    levels,
    nearest,
    order,
    plateau_and_transition,
    plateaus,
    stages,
)
from vitrify.learn.train import train
from vitrify.sandboxes.in_context_markov import InContextMarkov

STEPS = np.unique(np.round(2 ** np.arange(0, 13.01, 0.25))).astype(int)
LEVELS, FLOOR = {"uniform": 1.0, "unigram": 0.8, "optimal": 0.5}, 0.5


def staircase(breaks: tuple[float, float], noise: float = 0.0, seed: int = 0) -> list[dict[str, float]]:
    """A curve that goes from one level to the next at given steps, and lies apart from predictors by its loss."""
    rng, (one, two) = np.random.default_rng(seed), breaks

    def drop(at: float) -> Any:
        return 1 / (1 + (STEPS / at) ** 12)

    high, middle, low = LEVELS.values()
    loss = low + (middle - low) * drop(two) + (high - middle) * drop(one)
    loss = FLOOR + (loss - FLOOR) * np.exp(rng.normal(0, noise, len(STEPS)))
    found = []
    for step, value in zip(STEPS, loss, strict=True):
        kl = {("kl" if name == "optimal" else f"kl.{name}"): abs(value - level) for name, level in LEVELS.items()}
        floors = {f"floor.{name}": level for name, level in LEVELS.items() if name != "optimal"}
        found.append({"step": float(step), "loss": float(value), "floor": FLOOR, **floors, **kl})
    return found


@each("noise", [0.0, 0.01])
@each("breaks", [(20.0, 400.0), (8.0, 150.0), (40.0, 1000.0)])
def test_planted_staircases_are_found_again(breaks: tuple[float, float], noise: float) -> None:
    for seed in range(5):
        curve = staircase(breaks, noise, seed)
        found = stages(curve)
        assert order(found) == ("uniform", "unigram", "optimal")
        for stage, level in zip(found, LEVELS.values(), strict=True):
            assert abs(stage.plateau.level - level) <= 0.01
            assert stage.distance <= 0.01
        assert found[0].plateau.end <= breaks[0] <= found[1].plateau.start
        assert found[1].plateau.end <= breaks[1] <= found[2].plateau.start
        for at, (before, after) in zip(breaks, (("uniform", "unigram"), ("unigram", "optimal")), strict=True):
            step = breakpoint_of(curve, found, before, after)
            assert step == pytest.approx(at, rel=0.05)
        assert breakpoint_of(curve, found, "optimal", "uniform") is None


@each("exponent", [0.15, 0.5, 1.0])
@each("noise", [0.0, 0.01])
def test_a_power_law_has_no_plateau(exponent: float, noise: float) -> None:
    for seed in range(5):
        scatter = np.exp(np.random.default_rng(seed).normal(0, noise, len(STEPS)))
        loss = 0.5 + 40.0 * (1.0 + STEPS) ** -exponent * scatter
        assert plateaus(STEPS, loss, 0.5) == []


def test_a_curve_that_arrives_has_a_plateau_there() -> None:
    (only,) = plateaus(STEPS, 0.5 + 1.0 / (1.0 + STEPS) ** 2, 0.5)
    assert only.end == STEPS[-1]
    assert 10 <= only.start <= 40  # the excess is 0.003 at step 17


def test_plateaus_that_are_short_or_far_from_all_predictors_have_no_name() -> None:
    curve = staircase((20.0, 33.0))
    assert order(stages(curve)) == ("uniform", "optimal")
    away = [point | {"kl.unigram": 0.3} for point in staircase((20.0, 400.0))]
    names = [stage.name for stage in stages(away)]
    assert names == ["uniform", None, "optimal"]


def test_a_narrow_window_finds_plateaus_that_a_wide_one_blurs() -> None:
    curve = staircase((20.0, 74.0))
    assert order(stages(curve)) == ("uniform", "optimal")
    found = stages(curve, window=0.5)
    assert order(found) == ("uniform", "unigram", "optimal")
    assert 20 <= found[1].plateau.start <= found[1].plateau.end <= 74


def test_breakpoints_of_members_have_an_interval_that_covers_the_middle() -> None:
    rng = np.random.default_rng(0)
    places = 300 * np.exp(rng.normal(0, 0.3, 24))
    curves = [staircase((15.0, place), 0.005, seed) for seed, place in enumerate(places)]
    found = breakpoints([*curves, curves[0][:20]], "unigram", "optimal")
    assert (found.members, found.missing) == (25, 1)
    assert found.median == pytest.approx(np.median(places), rel=0.05)
    assert found.low < found.median < found.high
    assert found.low <= 300 <= found.high
    assert found == breakpoints([*curves, curves[0][:20]], "unigram", "optimal")
    nobody = breakpoints(curves, "optimal", "unigram")
    assert nobody.missing == 24
    assert np.isnan(nobody.median)


def test_curves_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="its steps go up"):
        plateaus([1, 1], [0.0, 0.0])
    with pytest.raises(InputError, match="not numbers"):
        plateaus([1, 2], [0.0, np.nan])


@pytest.mark.slow
def test_members_learn_unigrams_before_bigrams_and_then_have_an_induction_head() -> None:
    runs = train(
        TransformerFamily(layers=2, heads=1, d_model=32, units=0, positions="relative"),
        InContextMarkov(states=3, length=64),
        members=3,
        recipe=Recipe(steps=1400, batch=32, lr=3e-3, evals_per_doubling=6, test_examples=256),
        probes={"induction": attention_on(induction), "previous": attention_on(previous_token)},
    )
    curves = [run.curve for run in runs]
    for curve in curves:
        found = stages(curve)
        assert tuple(name for name in order(found) if name != "uniform") == ("unigram", "optimal")
        for stage in found:
            if stage.name == "unigram":
                assert stage.plateau.level == pytest.approx(curve[-1]["floor.unigram"], rel=0.05)
        step = breakpoint_of(curve, found, "unigram", "optimal")
        assert step is not None
        at = np.array([point["step"] for point in curve])
        second = np.array([point["induction"] for point in curve])[:, 1]
        assert second[at < step / 3].max() <= 0.5
        assert second[-1] >= 0.7
        first = np.array([point["previous"] for point in curve])[:, 0]
        assert first[-1] >= 3 * first[0]
    spread = breakpoints(curves, "unigram", "optimal")
    assert (spread.members, spread.missing) == (3, 0)
    assert spread.low <= spread.median <= spread.high


KNOWN = {"uniform": 0.7, "unigram": 0.6, "bigram": 0.5, "trigram": 0.4}


def doubling(losses: list[float]) -> list[dict[str, float]]:
    """Points at doubling steps whose KL to a predictor is the distance of their losses."""
    found = []
    for number, loss in enumerate(losses):
        kl = {("kl" if name == "trigram" else f"kl.{name}"): abs(loss - level) for name, level in KNOWN.items()}
        floors = {("floor" if name == "trigram" else f"floor.{name}"): level for name, level in KNOWN.items()}
        found.append({"step": 2.0**number - 1, "loss": loss, **kl, **floors})
    return found


def test_predictors_are_passed_in_the_order_in_which_they_are_nearest() -> None:
    found = nearest(doubling([0.7, 0.69, 0.62, 0.61, 0.51, 0.49, 0.52, 0.41, 0.4]), 0.5, "trigram")
    assert [stage.name for stage in found] == ["uniform", "unigram", "bigram", "trigram"]
    assert [stage.plateau.level for stage in found] == [0.7, 0.61, 0.51, 0.4]
    assert (found[1].plateau.start, found[1].plateau.end) == (3.0, 7.0)


def test_a_predictor_that_is_nearest_for_a_moment_is_no_stage() -> None:
    found = nearest(doubling([0.7, 0.69, 0.62, 0.69, 0.69, 0.41, 0.4]), 0.5, "trigram")
    assert [stage.name for stage in found] == ["uniform", "trigram"]


def test_the_optimum_goes_by_its_name_and_levels_stand_from_the_worst_to_the_best() -> None:
    curve = doubling([0.7])
    assert list(levels(curve, "trigram").items()) == list(KNOWN.items())
    keys = {"uniform": "kl.uniform", "unigram": "kl.unigram", "bigram": "kl.bigram", "trigram": "kl"}
    assert distances(curve, "trigram") == keys


def test_the_gap_is_that_of_the_plateau_that_is_furthest_from_its_name() -> None:
    losses = np.repeat([0.71, 0.6, 0.4], 12).tolist()
    dense = [point | {"step": float(round(1.3**number))} for number, point in enumerate(doubling(losses))]
    dense = [point for number, point in enumerate(dense) if not number or point["step"] > dense[number - 1]["step"]]
    found = stages(dense, window=0.5, optimal="trigram")
    assert order(found) == ("uniform", "unigram", "trigram")
    assert gap(found, levels(dense, "trigram")) == pytest.approx(0.71 / 0.7 - 1)


MARKS = [0, 100, 600, 700, 1000]


def of_two(losses: Any, scores: Any, chains: int) -> tuple[float, float]:
    level, low = float(np.log(chains)), 1 / chains + 0.15
    return plateau_and_transition(MARKS, losses, scores, level=level, near=0.1, low=low, high=0.95)


def test_a_plateau_ends_with_the_transition_and_that_begins_with_the_last_guess() -> None:
    guess = np.log(2)
    losses = [guess + 1.0, guess, guess, 0.0, guess]  # what comes back after the transition is no plateau
    plateau, transition = of_two(losses, [0.1, 0.5, 0.5, 1.0, 1.0], 2)
    assert plateau == pytest.approx(10 + 500 + 100 * 0.1 / guess, abs=0.2)
    assert transition == pytest.approx(100 * (0.95 - 0.65) / 0.5, abs=0.2)


def test_without_a_transition_the_plateau_lasts_to_the_end() -> None:
    plateau, transition = of_two([np.log(4)] * 5, [0.25, 0.25, 0.25, 0.6, 0.25], 4)
    assert plateau == pytest.approx(1000, abs=0.2)
    assert transition == np.inf
    assert of_two([np.log(4) + 0.2] * 5, [0.25] * 5, 4)[0] == 0


def test_a_curve_that_broke_has_neither_from_there() -> None:
    plateau, transition = of_two([2.0, np.log(4), np.nan, np.nan, np.nan], [0.25, 0.25, *[np.nan] * 3], 4)
    assert plateau < 100
    assert transition == np.inf
