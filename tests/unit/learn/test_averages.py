"""Averaged weights and the validation split: both are what NumPy makes of the same run, and resume to the bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vitrify.learn.measure import TEST_SEED
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.learn.store import RunStore
from vitrify.learn.train import train
from vitrify.learn.trainer import TrainEvent
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.catalogue import make as make_sandbox

MARKOV = make_sandbox("markov", {"length": 8, "p": 0.2, "q": 0.3})
TINY = make_model("transformer", {"d_model": 8, "layers": 1, "heads": 1, "units": 8})
PLAIN = Recipe(steps=12, batch=4, test_examples=32)
AVERAGED = replace(PLAIN, average=True, validation_examples=96)


def program_of(recipe: Recipe, width: int = 1) -> TrainingProgram:
    (group,) = plan(MARKOV, TINY, recipe, {}, 2)
    return TrainingProgram(group, width=width)


def close(ours: Any, theirs: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), ours, theirs)


@pytest.mark.parametrize("width", [1, 2])
def test_the_average_is_that_of_the_weights_after_every_step(width: int) -> None:
    """Recomputed in float64 from the weights of the same run without an average, which it leaves as they are."""
    program, plain = program_of(AVERAGED, width), program_of(PLAIN, width)
    lanes, others = program.begin(), plain.begin()
    average = jax.tree.map(lambda array: np.asarray(array, np.float64), others[0].parameters)
    close(lanes[0].average, average)
    for step in range(12):
        lanes, others = program.advance(lanes, step, 1), plain.advance(others, step, 1)
        jax.tree.map(np.testing.assert_array_equal, lanes[0].parameters, others[0].parameters)
        weights = jax.tree.map(lambda array: np.asarray(array, np.float64), others[0].parameters)
        average = jax.tree.map(lambda a, b, t=step + 1: a + (b - a) / (0.1 * t + 1), average, weights)
        close(lanes[0].average, average)
    measured, raw = program.measure(lanes), plain.measure(others)
    swapped = [other._replace(parameters=lane.measured) for lane, other in zip(lanes, others, strict=True)]
    assert (measured["loss"] != raw["loss"]).all()
    np.testing.assert_allclose(measured["loss"], plain.measure(swapped)["loss"], rtol=1e-6)


def test_only_averaging_members_have_an_average() -> None:
    assert program_of(PLAIN).shapes.average is None
    assert program_of(PLAIN).identities[0]["recipe"].keys() == PLAIN.identity().keys()
    assert not {"average", "validation_examples"} & PLAIN.identity().keys()
    assert program_of(AVERAGED).identities[0]["recipe"]["average"] is True


def test_a_run_ends_with_the_weights_that_were_measured() -> None:
    """Its loss and its validation are those of its weights, worked out from logits and the optimum."""
    (run,) = train(TINY, MARKOV, recipe=AVERAGED)
    net, arrays = run.weights.architecture, dict(run.weights.arrays)
    (plain,) = train(TINY, MARKOV, recipe=PLAIN)
    assert plain.weights.digest != run.weights.digest

    def excess(split: Any, count: int) -> float:
        batch = examples(MARKOV, TEST_SEED, split, 0, count)
        logits = np.asarray(TINY.logits(net, MARKOV, arrays, batch), np.float64)
        logp = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        above = np.asarray(jax.vmap(MARKOV.optimal)(batch)) - logp
        each = np.take_along_axis(above, np.asarray(batch.targets)[..., None], axis=-1)[..., 0]
        return float((each * batch.weight).sum() / batch.weight.sum())

    assert run.last["excess"] == pytest.approx(excess("test", 32), abs=1e-5)
    assert run.last["validation"] == pytest.approx(excess("validation", 128), abs=1e-5)  # two pieces of 64
    assert "validation" not in plain.last


def test_validation_sequences_are_no_test_sequences() -> None:
    long = make_sandbox("markov", {"length": 64, "p": 0.5, "q": 0.5})
    rows = {split: np.asarray(examples(long, TEST_SEED, split, 0, 64).targets) for split in ("test", "validation")}
    distinct = {row.tobytes() for split in rows.values() for row in split}
    assert len(distinct) == 128
    part = make_sandbox("modular", {"modulus": 7, "fraction": 0.5})
    held_out = {split: part.of(split) for split in ("train", "test", "validation")}
    assert held_out["validation"] == held_out["test"] != held_out["train"]


def test_averaging_that_was_stopped_resumes_to_the_bit(tmp_path: Path) -> None:
    def go(last: int, store: RunStore) -> list[Run]:
        def callback(event: TrainEvent) -> None:
            if event.step == last:
                raise KeyboardInterrupt

        return train(TINY, MARKOV, members=2, recipe=AVERAGED, store=store, callback=callback, checkpoint_seconds=0.0)

    whole = train(TINY, MARKOV, members=2, recipe=AVERAGED)
    store = RunStore(tmp_path / "runs")
    with pytest.raises(KeyboardInterrupt):
        go(6, store)
    for one, other in zip(go(99, store), whole, strict=True):
        assert (one.id, one.curve, one.weights.digest) == (other.id, other.curve, other.weights.digest)


def test_a_broken_member_keeps_its_last_average() -> None:
    (group,) = plan(MARKOV, TINY, replace(AVERAGED, clip=None), {"lr": [1e30]}, 1)
    program = TrainingProgram(group)
    lanes = program.advance(program.begin(), 0, 2)
    before = jax.tree.map(jnp.copy, lanes[0].average)
    lanes = program.advance(lanes, 2, 5)
    assert not lanes[0].alive
    jax.tree.map(np.testing.assert_array_equal, lanes[0].average, before)
