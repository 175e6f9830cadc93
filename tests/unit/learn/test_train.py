"""Training: to the known optimum, the same to the bit in any company, and after any interruption."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vitrify.learn import program as learn_program
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.learn.store import RunStore
from vitrify.learn.train import train, train_groups
from vitrify.learn.trainer import Trainer, TrainEvent
from vitrify.net.folder import load, save
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.catalogue import make as make_sandbox

MARKOV = make_sandbox("markov", {"length": 8, "p": 0.2, "q": 0.3})
TINY = make_model("transformer", {"d_model": 8, "layers": 1, "heads": 1, "units": 8})
SHORT = Recipe(steps=12, batch=4, test_examples=32)


@pytest.fixture(scope="module")
def four() -> list[Run]:
    return train(TINY, MARKOV, members=4, recipe=SHORT)


def test_members_learn_and_are_measured_against_the_oracle() -> None:
    recipe = Recipe(steps=300, batch=32, lr=1e-2, test_examples=256)
    runs = train(TINY, MARKOV, members=2, recipe=recipe)
    for run in runs:
        first, last = run.curve[0], run.last
        assert last["loss"] - last["floor"] == pytest.approx(last["excess"], abs=1e-6)
        assert first["excess"] > 0.05
        assert 0 < last["kl"] < 0.01
        assert last["kl"] < last["kl.unigram"]
        assert abs(last["floor.unigram"] - 0.673) < 0.05
        assert [point["step"] for point in run.curve] == recipe.eval_steps()


def test_a_member_is_the_same_to_the_bit_whoever_is_trained_beside_it(four: list[Run]) -> None:
    alone = train(TINY, MARKOV, axes={"seed": [2]}, recipe=SHORT)[0]
    assert alone.id == four[2].id
    assert alone.weights.digest == four[2].weights.digest
    assert list(alone.curve) == list(four[2].curve)
    assert alone.weights.digest != four[1].weights.digest


def test_steps_may_be_taken_in_any_pieces(four: list[Run]) -> None:
    group = plan(MARKOV, TINY, SHORT, {}, 4)[0]
    program = TrainingProgram(group)
    lanes = program.begin()
    for start, steps in ((0, 5), (5, 1), (6, 6)):
        lanes = program.advance(lanes, start, steps)
    whole = program.joined([lane.parameters for lane in lanes])
    for member, run in enumerate(four):
        assert all(np.array_equal(whole[name][member], run.weights.arrays[name]) for name in whole)


def test_groups_that_differ_in_their_members_only_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not if they differ in anything else: batches, lanes, or code of the caller."""
    compiled: list[TrainingProgram] = []

    def compile_(program: TrainingProgram) -> tuple[TrainingProgram, str, str]:
        compiled.append(program)
        return program, "advance", "measure"

    monkeypatch.setattr(TrainingProgram, "_compile", compile_)
    monkeypatch.setattr(learn_program, "_compiled_once", cache(learn_program._compiled_once.__wrapped__))

    def program(recipe: Recipe, *seeds: int, **options: Any) -> TrainingProgram:
        return TrainingProgram(plan(MARKOV, TINY, recipe, {"seed": seeds})[0], **options)

    first, more = program(SHORT, 0), program(SHORT, 1, 2)
    assert first.compiled[:3] == more.compiled[:3] == more.only([1]).compiled[:3]
    assert compiled == [first]
    others = [program(replace(SHORT, batch=5), 0), program(SHORT, 0, 1, width=2), program(SHORT, 0, first=TINY.first)]
    for other in others:
        assert len(other.compiled) == 4
    with jax.enable_x64(True):
        others.append(program(SHORT, 0))
        assert len(others[-1].compiled) == 4
    assert compiled == [first, *others]


def test_a_lane_of_several_members_learns_the_same(four: list[Run]) -> None:
    """The form of a GPU: one program for all, with a last lane that is filled up; equal up to rounding."""
    program = TrainingProgram(plan(MARKOV, TINY, SHORT, {}, 4)[0], width=3)
    trainer = Trainer(program)
    for _ in trainer.events():
        pass
    assert len(program.lanes) == 2
    for run, other in zip(trainer.runs(), four, strict=True):
        assert run.id == other.id
        assert run.last["loss"] == pytest.approx(other.last["loss"], abs=1e-3)


def test_trained_weights_are_saved_and_run_like_built_ones(four: list[Run], tmp_path: Path) -> None:
    save(four[0].weights, tmp_path / "net")
    again = load(tmp_path / "net")
    assert again.digest == four[0].weights.digest
    tokens = np.array([[0, 1, 2, 2, 1, 1, 2, 1]])
    ours = again.architecture.forward(again.prepared, tokens)
    theirs = jax.jit(again.architecture.forward)(dict(again.map(jnp.asarray).arrays), jnp.asarray(tokens))
    assert np.allclose(ours, theirs, atol=1e-5)


def test_a_member_whose_loss_is_no_number_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    axes: dict[str, list[float]] = {"lr": [1e-2, 1e30], "seed": [5]}
    recipe = replace(SHORT, clip=None, optimizer="sgd")
    fine, broken = train(TINY, MARKOV, axes=axes, recipe=recipe)
    assert fine.last["step"] == 12
    assert fine.last["broken"] == -1
    assert 0 < broken.last["broken"] < 12
    good, bad = train_groups(plan(MARKOV, TINY, recipe, axes), RunStore(tmp_path / "runs"))
    assert good.state == "finished"
    assert bad.state == "failed"
    assert bad.message == f"the loss was not a number at step {broken.last['broken']:g} (seed 5)"


def test_a_member_stops_when_it_is_near_enough() -> None:
    recipe = replace(SHORT, steps=200, batch=32, lr=2e-2, stop=0.02)
    runs = train(TINY, MARKOV, members=2, recipe=recipe)
    for run in runs:
        assert run.last["excess"] <= 0.02
        assert run.last["stopped"] == run.last["step"] < 200
        assert all(point["excess"] > 0.02 for point in run.curve[:-1])


def test_a_finite_training_set_is_drawn_from_again_and_again() -> None:
    program = TrainingProgram(plan(MARKOV, TINY, replace(SHORT, train_examples=3), {}, 1)[0])
    draw = jax.jit(lambda step: program._rows(MARKOV, program.group.recipe, jnp.uint32(0), step).tokens)
    seen = {row.tobytes() for step in range(20) for row in np.asarray(draw(step))}
    assert len(seen) <= 3


@pytest.mark.slow
def test_members_of_one_program_have_training_sets_of_their_own() -> None:
    axes = {"train_examples": [2, None, 40]}
    groups = plan(MARKOV, TINY, SHORT, axes, 2)
    assert [len(group.members) for group in groups] == [4, 2]
    assert [one["recipe"]["train_examples"] for one in groups[0].identities()] == [2, 2, 40, 40]
    few, many = train(TINY, MARKOV, axes={"train_examples": [2, 40]}, recipe=SHORT)
    (alone,) = train(TINY, MARKOV, recipe=replace(SHORT, train_examples=40))
    assert many.id == alone.id != few.id
    assert many.curve == alone.curve != few.curve


@pytest.mark.slow
def test_half_precision_learns_like_single(four: list[Run]) -> None:
    recipe = replace(SHORT, precision="bfloat16")
    rough = train(TINY, MARKOV, members=4, recipe=recipe)
    gaps = [a.last["loss"] - b.last["loss"] for a, b in zip(rough, four, strict=True)]
    assert max(map(abs, gaps)) < 0.05
    assert any(gaps)  # it is another arithmetic
    assert all(array.dtype == np.float32 for array in rough[0].weights.arrays.values())


def test_what_a_store_holds_is_not_trained_again(tmp_path: Path, four: list[Run]) -> None:
    store, seen = RunStore(tmp_path / "runs"), []
    first = train_groups(plan(MARKOV, TINY, SHORT, {}, 2), store)
    more = train_groups(plan(MARKOV, TINY, SHORT, {}, 4), store, callback=lambda event: seen.append(event.members))
    assert set(seen) == {2}
    assert [record.id for record in more[:2]] == [record.id for record in first]
    for record, run in zip(more, four, strict=True):
        assert record.id == run.id
        assert store.weights(record).keys() == run.weights.arrays.keys()
        assert all(np.array_equal(array, run.weights.arrays[name]) for name, array in store.weights(record).items())
        assert store.curve(record) == list(run.curve)


def test_training_that_was_stopped_before_its_first_checkpoint_starts_again(tmp_path: Path) -> None:
    store, steps = RunStore(tmp_path / "runs"), list[int]()

    def stop(event: TrainEvent) -> None:
        steps.append(event.step)
        if event.step == 6:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train(TINY, MARKOV, members=4, recipe=SHORT, store=store, callback=stop)
        assert {record.state for record in store.runs()} == {"new"}
    assert steps.count(0) == 2


def test_training_that_was_stopped_resumes_from_its_store(tmp_path: Path, four: list[Run]) -> None:
    steps: list[int] = []

    def go(last: int, store: RunStore) -> list[Run]:
        def callback(event: TrainEvent) -> None:
            steps.append(event.step)
            if event.step == last:
                raise KeyboardInterrupt

        return train(TINY, MARKOV, members=4, recipe=SHORT, store=store, callback=callback, checkpoint_seconds=0.0)

    store, began = RunStore(tmp_path / "runs"), time.monotonic()
    assert store.seconds() == 0
    with pytest.raises(KeyboardInterrupt):
        go(6, store)
    stopped = time.monotonic() - began
    spent = [store.seconds()]
    for again in range(2):
        steps.clear()
        runs = go(99, store)
        spent.append(store.seconds())
        assert steps[:1] == ([] if again else [7])
        for run, whole in zip(runs, four, strict=True):
            assert (run.id, run.curve, run.state) == (whole.id, whole.curve, "finished")
            assert run.weights.digest == whole.weights.digest
    assert 0 < spent[0] <= stopped
    assert spent[0] < spent[1] == spent[2] <= time.monotonic() - began


def test_runs_of_a_store_end_where_they_ended(tmp_path: Path) -> None:
    """Members that stop early or break have the curve, the state and the weights that they have without a store."""
    axes = {"lr": [2e-2, 1e30]}
    recipe = replace(SHORT, steps=40, clip=None, stop=0.5)
    store = RunStore(tmp_path / "runs")
    alone, saved, again = (train(TINY, MARKOV, axes=axes, recipe=recipe, store=where) for where in (None, store, store))
    assert [run.state for run in alone] == ["finished", "failed"]
    for run, *others in zip(alone, saved, again, strict=True):
        for other in others:
            assert (other.id, other.state, other.message) == (run.id, run.state, run.message)
            assert repr(other.curve) == repr(run.curve)  # losses that are not numbers are not equal
            assert other.weights.digest == run.weights.digest


@pytest.mark.slow
def test_probes_and_initial_weights_are_part_of_a_run_s_identity(tmp_path: Path) -> None:
    """They are code: two of one name are told apart by what they compute, so a store never mixes them up."""

    def size(factor: float) -> Any:
        return lambda _net, arrays, _row, _seen: factor * sum(abs(array).sum() for array in arrays.values())

    def shrunk(factor: float) -> Any:
        return lambda net, key, _values: {name: factor * x for name, x in TINY.first(net, key).items()}

    store, events = RunStore(tmp_path / "runs"), list[int]()
    ids = []
    for probe, first in ((1.0, 1.0), (2.0, 1.0), (1.0, 0.5), (1.0, 1.0)):
        events.clear()
        (run,) = train(
            TINY,
            MARKOV,
            recipe=replace(SHORT, steps=1),
            probes={"size": size(probe)},
            first=shrunk(first),
            store=store,
            callback=lambda event: events.append(event.step),
        )
        ids.append(run.id)
        total = sum(np.abs(array).sum() for array in run.weights.arrays.values())
        assert run.last["size"] == pytest.approx(probe * total, rel=1e-4)
    assert not events  # the last one was there
    assert len(set(ids)) == 3
    assert ids[0] == ids[3]


CHILD = """
import sys
from pathlib import Path
from vitrify.learn import trainer
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import plan
from vitrify.learn.compiler import remember_programs
from vitrify.learn.recipe import Recipe
from vitrify.learn.store import RunStore
from vitrify.learn.train import train_groups
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.catalogue import make as make_sandbox

remember_programs()
trainer.EVENT_SECONDS = 1e-9
markov = make_sandbox("markov", {"length": 8, "p": 0.2, "q": 0.3})
tiny = make_model("transformer", {"d_model": 8, "layers": 1, "heads": 1, "units": 8})
print("ready", flush=True)
groups = plan(markov, tiny, Recipe(steps=60, batch=4, test_examples=32), {}, 2)
train_groups(groups, RunStore(Path(sys.argv[1])), checkpoint_seconds=0.0)
"""


def killed_and_resumed(store: Path, cache: Path, rng: random.Random, most: int) -> int:
    """Start a sweep, kill it at random moments, start it again, until it ends; how often it was killed."""
    environment = {**os.environ, "VITRIFY_CACHE": str(cache), "JAX_COMPILATION_CACHE_DIR": ""}
    kills = 0
    while True:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(store)], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        if kills < most:
            time.sleep(rng.uniform(0.0, 2.5))
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                kills += 1
        child.wait()
        child.stdout.close()
        if child.returncode == 0:
            return kills
        assert child.returncode == -signal.SIGKILL


def compare(left: RunStore, right: RunStore) -> None:
    ours, theirs = left.runs(), right.runs()
    assert {record.id for record in ours} == {record.id for record in theirs}
    others: dict[str, Any] = {record.id: record for record in theirs}
    for record in ours:
        other = others[record.id]
        assert record.state == other.state == "finished"
        assert left.curve(record) == right.curve(other)
        mine, its = left.weights(record), right.weights(other)
        assert all(mine[name].tobytes() == its[name].tobytes() for name in its)


@pytest.mark.parametrize("kills", [pytest.param(1, id="1"), pytest.param(20, id="20", marks=pytest.mark.slow)])
def test_a_killed_sweep_ends_like_one_that_was_left_alone(tmp_path: Path, kills: int) -> None:
    recipe = replace(SHORT, steps=60)
    train_groups(plan(MARKOV, TINY, recipe, {}, 2), RunStore(tmp_path / "alone"))
    done, seed = 0, 0
    while done < kills:
        seed += 1
        store = tmp_path / f"killed-{seed}"
        done += killed_and_resumed(store, tmp_path / "cache", random.Random(seed), min(4, kills - done))
        compare(RunStore(store), RunStore(tmp_path / "alone"))


def test_the_squared_loss_is_the_distance_from_one_hot_targets() -> None:
    logits = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    targets, weight = np.array([[0, 1, 2, 1], [2, 2, 0, 1]]), np.array([[0.0, 1, 1, 2], [1, 0, 1, 1]])
    row = Example(targets[:, 1:], targets, weight, {})
    each = ((logits - np.eye(3)[targets]) ** 2).sum(axis=-1)
    assert np.isclose(mean_loss(logits, row, squared=True), (each * weight).sum() / weight.sum())
    soft = np.full((2, 4, 3), 1 / 3)
    shifted = ((logits - soft) ** 2).sum(axis=-1)
    assert np.isclose(mean_loss(logits, row._replace(soft=soft), squared=True), (shifted * weight).sum() / weight.sum())
