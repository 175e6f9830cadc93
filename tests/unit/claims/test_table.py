"""What the table of architectures is made of, against hand-made numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from cases import each
from vitrify.claims import deeper_transformers_learn_longer_permutation_word_problems as depth
from vitrify.claims import each_architecture_learns_what_its_theorems_allow as table
from vitrify.claims.catalogue import Subject
from vitrify.claims.trials import benchmark
from vitrify.claims.trials.trial import Trained, Trial
from vitrify.learn.agreement import agreement
from vitrify.learn.cost import parameters
from vitrify.learn.evaluation import stretched
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.sandboxes.medley import Medley
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata.families import cyclic

SHORT, LONG = (Regular(cyclic(2), length, "states") for length in (3, 6))
WEIGHTS: Any = None
GOOD = {("LSTM", 0), ("reflections", 0), ("reflections", 1), ("transformer", 2)}  # architecture, task


def untrained(subject: Subject) -> dict[str, Trained]:
    return {name: Trained(trial, ()) for name, trial in subject.trials.items()}


def test_members_with_more_room_answer_as_before_and_go_on() -> None:
    family = TransformerFamily(layers=1, heads=2, d_model=8, units=8, positions="rotary")
    net = family.architecture(SHORT)
    run = Run({}, [], family.weights(net, family.first(net, jax.random.key(1)), {}))
    (longer,) = stretched(family, [run], LONG)
    words = np.array([[0, 1, 2, 2, 1, 2, 1]])  # BOS and six bits
    before = net.forward(run.weights.arrays, words[:, :4])
    after = longer.weights.architecture.forward(longer.weights.arrays, words)
    assert np.allclose(after[:, :4], before, atol=1e-6)
    assert after.shape[1] == 7


def test_trained_numbers_are_counted() -> None:
    lstm = RecurrentFamily(kind="lstm", state=5, d_embed=3)
    embedded, gates, read = 3 * 3, 5 * 20 + 3 * 20 + 20, 5 * 2 + 2
    assert parameters(lstm, SHORT) == embedded + gates + read
    assert parameters(TransformerFamily(positions="none"), SHORT) == parameters(
        TransformerFamily(positions="none"), LONG
    )


@each(
    ("median", "predicted", "says"),
    [
        (0.99, (True, "R24"), "as predicted"),
        (0.6, (False, "B7"), "as predicted"),
        (0.6, (True, "R24"), "allowed, not found"),
        (0.99, (False, "B7"), "found against a theorem"),
        (0.99, None, "no theorem"),
    ],
)
def test_a_cell_is_laid_beside_its_theorem(median: float, predicted: Any, says: str) -> None:
    assert agreement(median, predicted) == says


def test_the_table_is_judged_at_the_declared_length_and_rows_under_other_names_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (subject,) = table.subjects()
    names = {trial.family: name for name, trial in subject.trials.items()}
    beyond = [column.beyond for column in subject.data["columns"].values()]

    def accuracies(nets: Trained, longer: Any, test_examples: int) -> Any:
        del longer, test_examples
        found = np.full((len(beyond), len(nets.trial.seeds), 2), 0.5)
        for task, judged in enumerate(beyond):
            found[task, :, 1 - judged] = 0.9  # what is not judged
            found[task, 1:, int(judged)] += 0.4 * ((names[nets.trial.family], task) in GOOD)
        return found, np.full(len(beyond), 0.1)

    monkeypatch.setattr(table, "accuracies", accuracies)
    monkeypatch.setattr(table, "trained", untrained)
    found = table.check(subject)
    assert found.verdict == "holds"
    assert len(found.criteria) == 2 + 2 + 2 + 3  # pairs that are published, of those in the table
    assert all((each.passed, each.total) == (5, 6) for each in found.criteria)
    assert table.check(table.sabotage(subject)).verdict == "fails"
    few = {name: replace(trial, seeds=(0, 1)) for name, trial in subject.trials.items()}
    assert table.check(replace(subject, trials=few)).verdict == "fails"  # of two seeds one is not enough


@pytest.mark.parametrize(("slope", "verdict"), [(0.1, "holds"), (0.0, "fails")])
def test_depths_are_compared_in_second_halves(monkeypatch: pytest.MonkeyPatch, slope: float, verdict: str) -> None:
    def runs(subject: Subject) -> dict[str, Trained]:
        found = {}
        for name, trial in subject.trials.items():
            right = np.ones(trial.sandbox.length)
            right[len(right) // 2 :] = 0.3 + slope * np.log2(trial.family.layers * trial.family.loops)  # type: ignore[attr-defined]
            last: Any = {"right": right}
            found[name] = Trained(trial, [Run({}, [last], WEIGHTS)] * len(trial.seeds))
        return found

    monkeypatch.setattr(depth, "trained", runs)
    (subject,) = depth.subjects()
    assert depth.check(subject).verdict == verdict
    assert depth.check(depth.sabotage(subject)).verdict == "fails"


def test_a_cell_takes_the_rate_of_the_least_training_loss_and_every_member_its_own_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Members come by task, rate and seed; a broken one has no loss to speak of."""
    losses = np.array([[[0.2, 0.2, 9.0], [0.3, 0.3, 0.3]], [[0.1, 0.1, 0.1], [0.5, 0.5, 0.5]]])
    broken = np.full(losses.shape, -1)
    broken[1, 0, :2] = 7
    last = [
        {"train": loss, "broken": gone, "accuracy": at / 100}
        for at, (loss, gone) in enumerate(zip(losses.ravel(), broken.ravel(), strict=True))
    ]
    monkeypatch.setattr(benchmark, "stretched", lambda _, runs, __: runs)

    def later(family: Any, runs: Any, sandboxes: Any, count: Any) -> Any:
        del family, count
        return [[{"accuracy": box.task + at / 100} for at in range(len(runs))] for box in sandboxes]

    monkeypatch.setattr(benchmark, "evaluate", later)
    trial = Trial(
        Medley((SHORT, SHORT)), TransformerFamily(), Recipe(), range(3), {"task": (0.0, 1.0), "lr": (0.1, 0.2)}
    )
    nets = Trained(trial, [Run({}, [one], WEIGHTS) for one in last])
    found, rates = benchmark.accuracies(nets, Medley((LONG, LONG)), 8)
    assert rates.tolist() == [0.1, 0.2]
    assert np.allclose(found[..., 0], [[0, 0.01, 0.02], [0.09, 0.1, 0.11]])
    assert np.allclose(found[..., 1] - found[..., 0], [[0, 0, 0], [1, 1, 1]])
