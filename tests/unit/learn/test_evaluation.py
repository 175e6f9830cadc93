"""Trained members on rows of other sandboxes, against the curve and against a NumPy run of the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from at_once import rows
from vitrify.errors import InputError
from vitrify.learn.evaluation import evaluate
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.learn.train import train
from vitrify.sandboxes.flip_flop import DENSE, FlipFlop

SANDBOX = FlipFlop.ffl(0.8, length=12)
TINY = TransformerFamily(layers=1, heads=1, d_model=8, units=8)


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return train(TINY, SANDBOX, members=2, recipe=Recipe(steps=30, batch=8, test_examples=128, evals_per_doubling=0))


def by_numpy(run: Run, sandbox: FlipFlop, seed: int, count: int) -> tuple[float, float]:
    """Wrong reads and reads, from the NumPy forward pass on the same rows."""
    row: Any = jax.device_get(rows(sandbox, seed, "test", 0, count))
    weights = run.weights
    logits = weights.architecture.forward(weights.arrays, np.pad(row.tokens + 1, ((0, 0), (1, 0))))
    wrong = (logits.argmax(axis=-1) != row.targets) * row.weight
    return float(wrong.sum()), float(row.weight.sum())


@pytest.mark.slow
def test_where_it_was_trained_a_member_says_what_its_curve_says(runs: list[Run]) -> None:
    (found,) = evaluate(TINY, runs, [SANDBOX], 128, piece=32)
    for run, one in zip(runs, found, strict=True):
        assert one["loss"] == pytest.approx(run.last["loss"], abs=1e-5)
        assert one["accuracy"] == pytest.approx(run.last["accuracy"], abs=1e-6)
        assert one["wrong"] == pytest.approx(one["queries"] * (1 - one["accuracy"]))


def test_elsewhere_reads_are_counted_one_by_one(runs: list[Run]) -> None:
    dense = FlipFlop.ffl(DENSE, length=12)
    same, tail = evaluate(TINY, runs, [SANDBOX, dense], 96, piece=48)
    assert [(one["wrong"], one["queries"]) for one in tail] == [by_numpy(run, dense, 0, 96) for run in runs]
    assert tail[0]["queries"] > 1.5 * same[0]["queries"]
    assert 0 < tail[0]["wrong"] < tail[0]["queries"]


def test_apart_every_member_has_rows_of_its_own(runs: list[Run]) -> None:
    twice = [runs[1], runs[1]]
    (found,) = evaluate(TINY, twice, [SANDBOX], 64, apart=True)
    assert [(one["wrong"], one["queries"]) for one in found] == [
        by_numpy(runs[1], SANDBOX, seed, 64) for seed in (0, 1)
    ]
    assert found[0] != found[1]


def test_rows_that_do_not_fit_are_refused(runs: list[Run]) -> None:
    with pytest.raises(InputError, match=r"can't read sequences of flip_flop of 19 tokens: pos_embed.W_pos would have"):
        evaluate(TINY, runs, [replace(SANDBOX, length=20)], 8)
