"""Measures of trials on made-up measurements: graphs in attention, starts of training, plateaus."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from vitrify.claims.trials import causal, starts
from vitrify.claims.trials.ladders import crossing, reached
from vitrify.claims.trials.starts import StartSettings
from vitrify.claims.trials.trial import Trained
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.learn.stages import plateau_share
from vitrify.sandboxes.causal_graph import CausalGraph

WEIGHTS: Any = None


def test_attention_to_parents_is_that_of_each_tree() -> None:
    sandbox = CausalGraph(states=3, length=12, trees=3)
    trial = causal.tree_trial(sandbox, causal.FAMILY, Recipe(steps=4, batch=2, test_examples=8, evals_per_doubling=1))
    runs = []
    for tree in range(sandbox.trees):
        pattern = np.full((12, 12), 0.01)
        graph = causal.parents(sandbox, tree)
        below = np.flatnonzero(graph >= 0)
        pattern[below, graph[below]] = 0.8
        even = np.full((12, 12), 1 / 12)
        curve = [{"first": pattern if step == 3 else even} for step in range(len(trial.recipe.eval_steps()))]
        runs.append(Run({}, curve, WEIGHTS))  # type: ignore[arg-type]
    measured = {f"trees/{name}": each for name, each in causal.attended(Trained.of(trial, runs)).items()}
    assert measured["trees/mean"].shape == (3, 4)
    np.testing.assert_allclose(measured["trees/mean"][:, 0], 1 / 12)
    np.testing.assert_allclose(measured["trees/other"][~np.isnan(measured["trees/other"])], 0.01)
    share, weight = causal.shares_and_weights(measured, "trees")
    np.testing.assert_allclose(share, 1.0)
    np.testing.assert_allclose(weight, 0.8)


def test_a_matrix_is_largest_at_the_parent_until_it_is_exchanged_with_the_best_other() -> None:
    graphs = np.array([[-1, 0, 0, 2], [-1, -1, 1, 1]])
    matrices = np.zeros((2, 4, 4))
    for tree, at in zip(*np.nonzero(graphs >= 0), strict=True):
        matrices[tree, at, graphs[tree, at]] = 2
        matrices[tree, at, at] = 1
    np.testing.assert_allclose(causal.at_parents(matrices, graphs, itself=True), 1.0)
    changed = causal.exchanged(matrices, graphs, np.ones((2, 4), bool))
    np.testing.assert_allclose(causal.at_parents(changed, graphs, itself=False), [1 / 3, 0])  # one has no other


def test_rank_correlations_are_means_over_positions() -> None:
    graphs = np.array([[-1, 0, 0, 0, 0, 0]])
    one = np.tril(np.random.default_rng(0).random((1, 6, 6)))
    expected = np.mean([spearmanr(one[0, at, :at], one[0, at, :at] ** 3).statistic for at in (4, 5)])
    np.testing.assert_allclose(causal.rank_correlations(one, one**3, graphs), [expected])
    np.testing.assert_allclose(causal.rank_correlations(one, -one, graphs), [-1])


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
