"""Measures of trials on made-up measurements: graphs in attention, starts of training, plateaus."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.claims.trials import causal, starts
from vitrify.claims.trials.ladders import crossing, reached
from vitrify.claims.trials.starts import StartSettings
from vitrify.claims.trials.trial import Trained
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.learn.stages import plateau_share
from vitrify.sandboxes.causal_graph import CausalGraph

WEIGHTS: Any = None


def test_heads_are_judged_by_the_graph_of_their_tree_or_of_the_next() -> None:
    sandbox = CausalGraph(states=3, length=12, trees=3)
    trial = causal.tree_trial(sandbox, causal.FAMILY, Recipe(steps=4, batch=2, test_examples=8, evals_per_doubling=1))
    runs = []
    for tree in range(sandbox.trees):
        pattern = np.full((12, 12), 0.01)
        graph = causal.parents(sandbox, tree, 0)
        below = np.flatnonzero(graph >= 0)
        pattern[below, graph[below]] = 0.8
        even = np.full((12, 12), 1 / 12)
        curve = [{"first": pattern if step == 3 else even} for step in range(len(trial.recipe.eval_steps()))]
        runs.append(Run({}, curve, WEIGHTS))  # type: ignore[arg-type]
    share, weight = causal.on_parents(Trained(trial, runs), shift=0)
    assert share.shape == weight.shape == (3, 4)
    np.testing.assert_allclose(share[:, -1], 1.0)
    np.testing.assert_allclose(weight[:, -1], 0.8)
    np.testing.assert_allclose(weight[:, 0], 1 / 12)
    other, _ = causal.on_parents(Trained(trial, runs), shift=1)
    assert (other[:, -1] < 0.8).all()


def test_what_is_kept_repaired_and_found_is_counted_in_seeds() -> None:
    settings = StartSettings(4, 2, 0.1, (0.1, 0.5), (0.01, 1.0), (0.2, 0.3))

    def ends(excess: float, turn: float, kind: float, first: float = 1.0) -> dict[str, Any]:
        """Eight seeds, of which the last is far off."""
        last = [excess] * 7 + [1.0]
        return {
            "excess": np.array([[1.0, x] for x in last]),
            "turn": np.full((8, 2), [first, turn]),
            "kind": np.full((8, 2), kind),
        }

    curves = {
        "built, rate 0.1": ends(0.0, 0.1, 0.0),
        "built, rate 0.5": ends(0.0, 0.9, 0.0),
        "noise 0.01": ends(0.01, 0.1, 0.0, first=0.3),
        "noise 1": ends(0.5, 0.9, 0.0, first=0.9),
        "scratch, rate 0.2": ends(0.5, 1.0, 1.0),
        "scratch, rate 0.3": ends(0.02, 1.0, 0.2),
    }
    assert list(settings.starts) == list(curves)
    assert settings.judged == "built, rate 0.1"
    best = starts.best_from_scratch(curves, settings)
    assert best == "scratch, rate 0.3"
    assert starts.summary(curves, settings, best) == {
        "preserved": [7, 8],
        "largest rate kept": 0.1,
        "largest noise repaired by half": 0.01,
        "weights back by half": 0.01,
        "loss reached from scratch": [7, 8],
        "found in weights": [0, 8],
        "found in kind": [7, 8],
    }


def test_a_plateau_counts_until_the_loss_is_clearly_below_it() -> None:
    steps = [0, 10, 20, 30, 40]
    assert plateau_share(steps, [0.5, 0.5, 0.5, 0.5, 0.5], level=0.5, near=0.01, below=0.03) > 0.99
    assert plateau_share(steps, [0.9, 0.9, 0.9, 0.9, 0.9], level=0.5, near=0.01, below=0.03) == 0
    left = plateau_share(steps, [0.5, 0.5, 0.1, 0.5, 0.5], level=0.5, near=0.01, below=0.03)
    assert 0.2 < left < 0.35  # what comes after the fall does not count


def test_a_ladder_is_left_where_the_error_grows_beyond_a_hundredth() -> None:
    rungs, accuracy = [10, 20, 40], [1.0, 0.99, 0.5]
    assert abs(crossing(rungs, accuracy) - 20) < 1e-9
    assert reached(rungs, [3.0, 2.0, 1.0], 2.0) == 20
