"""What claims about stages measure: the nearest predictors along a curve, and how far plateaus are from their names."""

from __future__ import annotations

import numpy as np
import pytest

from vitrify.claims._stages import Trial
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.in_context_markov import InContextMarkov

TRIAL = Trial(InContextMarkov(states=2, length=4, order=2), TransformerFamily(), Recipe(), members=1)
LEVELS = {"uniform": 0.7, "unigram": 0.6, "bigram": 0.5, "trigram": 0.4}


def curve(losses: list[float]) -> list[dict[str, float]]:
    """Points at doubling steps whose KL to a predictor is the distance of their losses."""
    found = []
    for number, loss in enumerate(losses):
        kl = {("kl" if name == "trigram" else f"kl.{name}"): abs(loss - level) for name, level in LEVELS.items()}
        floors = {("floor" if name == "trigram" else f"floor.{name}"): level for name, level in LEVELS.items()}
        found.append({"step": 2.0**number - 1, "loss": loss, **kl, **floors})
    return found


def test_predictors_are_passed_in_the_order_in_which_they_are_nearest() -> None:
    found = TRIAL.nearest(curve([0.7, 0.69, 0.62, 0.61, 0.51, 0.49, 0.52, 0.41, 0.4]), 0.5)
    assert [stage.name for stage in found] == ["uniform", "unigram", "bigram", "trigram"]
    assert [stage.plateau.level for stage in found] == [0.7, 0.61, 0.51, 0.4]
    assert (found[1].plateau.start, found[1].plateau.end) == (3.0, 7.0)


def test_a_predictor_that_is_nearest_for_a_moment_is_no_stage() -> None:
    found = TRIAL.nearest(curve([0.7, 0.69, 0.62, 0.69, 0.69, 0.41, 0.4]), 0.5)
    assert [stage.name for stage in found] == ["uniform", "trigram"]


def test_the_optimum_goes_by_its_order_and_levels_stand_from_the_worst_to_the_best() -> None:
    assert (TRIAL.best, list(TRIAL.levels(curve([0.7])))) == ("trigram", list(LEVELS))
    assert TRIAL.distances() == {
        "uniform": "kl.uniform",
        "unigram": "kl.unigram",
        "bigram": "kl.bigram",
        "trigram": "kl",
    }


def test_the_gap_is_that_of_the_plateau_that_is_furthest_from_its_name() -> None:
    losses = np.repeat([0.71, 0.6, 0.4], 12).tolist()
    dense = [point | {"step": float(round(1.3**number))} for number, point in enumerate(curve(losses))]
    dense = [point for number, point in enumerate(dense) if not number or point["step"] > dense[number - 1]["step"]]
    assert TRIAL.passes(dense, ("uniform", "unigram", "trigram"))
    assert TRIAL.gap(dense) == pytest.approx(0.71 / 0.7 - 1)
