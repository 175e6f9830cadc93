"""Curves as a page gets them, against means and percentiles by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify.errors import InputError
from vitrify.learn.follow import Follower
from vitrify.learn.store import RunStore
from vitrify.report.curves import LINES, look

LOSSES = np.array([[0.9, 0.7, 0.60], [1.1, 0.8, 0.62], [1.0, 0.9, 0.64]])  # [seed, step]
STEPS = (0, 1, 4)


def identity(seed: int, p: float = 0.2, model: str = "transformer") -> dict[str, Any]:
    return {"sandbox": {"name": "markov", "p": p}, "model": {"name": model}, "seed": seed}


def trained(store: RunStore, p: float = 0.2, floor: float = 0.5, ended: bool = True, **more: Any) -> Any:
    """Runs of three seeds with the losses above; if they have not ended, the group is handed out."""
    opened = store.open_many([identity(seed, p, **more) for seed in range(3)])
    (group,) = opened.groups
    for step, losses in zip(STEPS, LOSSES.T, strict=True):
        point = {
            "loss": losses,
            "excess": losses - floor,
            "floor": np.full(3, floor),
            "floor.unigram": np.full(3, 0.65),
        }
        group.log({"step": step, **point, "kl": losses, "accuracy": losses})
    group.flush()
    if ended:
        group.finish_all({row: ({"loss": LOSSES[row, -1]}, None) for row in range(3)})
    return group


def test_a_line_is_the_mean_of_its_members_and_a_band_of_percentiles(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    trained(store)
    found = look(Follower(store))
    (line,) = found["chosen"]["lines"]
    assert line["steps"] == list(STEPS)
    np.testing.assert_allclose(line["mean"], LOSSES.mean(axis=0))
    np.testing.assert_allclose(line["low"], [0.92, 0.72, 0.604])
    np.testing.assert_allclose(line["high"], [1.08, 0.88, 0.636])
    assert (line["label"], line["members"], line["running"]) == ("all members", 3, 0)
    assert found["chosen"]["levels"] == [
        {"name": "optimal loss", "value": 0.5, "line": None},
        {"name": "unigram", "value": 0.65, "line": None},
    ]
    assert found["sweeps"] == [
        {"name": "transformer on markov", "runs": 3, "states": {"finished": 3}, "step": 4},
    ]
    json.dumps(found, allow_nan=False)


def test_combinations_have_lines_and_floors_of_their_own(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    trained(store)
    trained(store, p=0.4, floor=0.55)
    chosen = look(Follower(store), quantity="loss")["chosen"]
    assert [line["label"] for line in chosen["lines"]] == ["p = 0.2", "p = 0.4"]
    floors = [(level["name"], level["value"], level["line"]) for level in chosen["levels"]]
    assert floors == [("optimal loss (p = 0.2)", 0.5, 0), ("optimal loss (p = 0.4)", 0.55, 1), ("unigram", 0.65, None)]
    excess = look(Follower(store), "p=0.4", quantity="excess")["chosen"]
    assert excess["levels"] == []
    np.testing.assert_allclose(excess["lines"][0]["mean"], LOSSES.mean(axis=0) - 0.55)


def test_what_is_under_way_is_shown_first_and_grows(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    follower = Follower(store)
    group = trained(store, ended=False)
    trained(store, model="mlp")
    assert look(follower)["chosen"]["name"] == "transformer on markov"
    assert look(follower, sweep="mlp on markov")["chosen"]["name"] == "mlp on markov"
    assert look(follower)["chosen"]["lines"][0]["running"] == 3
    group.log({"step": 9, "loss": np.array([0.5, 0.6, math.nan])})
    group.flush()
    line = look(follower)["chosen"]["lines"][0]
    assert line["steps"] == [*STEPS, 9]
    assert line["mean"][-1] == pytest.approx(0.55)
    group.close()


def test_a_member_that_ended_keeps_its_last_value_and_one_under_way_does_not(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    group = trained(store, ended=False)
    group.finish(0, {"loss": 0.6})
    group.log({"step": 9, "loss": np.array([7.0, 0.5, 0.5])})
    group.flush()
    line = look(Follower(store))["chosen"]["lines"][0]
    assert line["mean"][-1] == pytest.approx((LOSSES[0, -1] + 0.5 + 0.5) / 3)
    group.close()


def test_of_a_member_under_way_nothing_is_said_about_later_steps(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    trained(store)
    with store.open(identity(3)) as run:
        run.log({"step": 0, "loss": 5.0})
        run.group.flush()
        line = look(Follower(store))["chosen"]["lines"][0]
        assert line["mean"][0] == pytest.approx((LOSSES[:, 0].sum() + 5) / 4)
        assert line["mean"][-1] == pytest.approx(LOSSES[:, -1].mean())


def test_more_combinations_than_colours_are_counted(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    for number in range(LINES + 2):
        with store.open(identity(0, p=number / 20)) as run:
            run.log({"step": 0, "loss": 1.0})
            run.finish({"loss": 1.0})
    chosen = look(Follower(store))["chosen"]
    assert (len(chosen["lines"]), chosen["left out"]) == (LINES, 2)


def test_a_store_that_is_not_there_yet_is_waited_for_and_mistakes_are_told(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    follower = Follower(store)
    assert "there is no run store" in look(follower)["message"]
    trained(store)
    assert look(follower)["message"] == ""
    assert look(follower, "nothing-like-this")["message"] == "no run is like that"
    with pytest.raises(InputError, match="no run has a value"):
        look(follower, "colour=3")
    with pytest.raises(InputError, match="what is drawn is"):
        look(follower, quantity="beauty")
