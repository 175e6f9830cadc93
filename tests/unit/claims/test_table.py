"""What the table of architectures is made of, against hand-made numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from vitrify.claims import depth_pays_on_words_of_permutations as depth
from vitrify.claims import each_architecture_learns_what_its_theorems_allow as table
from vitrify.claims._agreement import agreement
from vitrify.claims.catalogue import Subject
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.train import Run
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata import cyclic

SHORT, LONG = (Regular(cyclic(2), length, "states") for length in (3, 6))
GOOD = {("LSTM", 0), ("reflections", 0), ("reflections", 1), ("transformer", 2)}  # architecture, task


def test_members_with_more_room_answer_as_before_and_go_on() -> None:
    family = TransformerFamily(layers=1, heads=2, d_model=8, units=8, positions="rotary")
    net = family.architecture(SHORT)
    run = Run({}, [], family.weights(net, family.first(net, jax.random.key(1)), {}))
    (longer,) = table.stretched(family, [run], LONG)
    words = np.array([[0, 1, 2, 2, 1, 2, 1]])  # BOS and six bits
    before = net.forward(run.weights.arrays, words[:, :4])
    after = longer.weights.architecture.forward(longer.weights.arrays, words)
    assert np.allclose(after[:, :4], before, atol=1e-6)
    assert after.shape[1] == 7


def test_trained_numbers_are_counted() -> None:
    lstm = RecurrentFamily(kind="lstm", state=5, d_embed=3)
    embedded, gates, read = 3 * 3, 5 * 20 + 3 * 20 + 20, 5 * 2 + 2
    assert table.parameters(lstm, SHORT) == embedded + gates + read
    assert table.parameters(TransformerFamily(positions="none"), SHORT) == table.parameters(
        TransformerFamily(positions="none"), LONG
    )


@pytest.mark.parametrize(
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
    names = {family: name for name, family in subject.data["setting"].families}

    def measured(family: Any, tasks: Any, recipe: Any, rates: Any, seeds: Any, rows: Any) -> Any:
        del recipe, rows
        found = np.full((len(tasks), len(seeds), 2), 0.5)
        for task, (_, _, beyond) in enumerate(tasks):
            found[task, :, 1 - beyond] = 0.9  # where nobody looks
            found[task, 1:, int(beyond)] += 0.4 * ((names[family], task) in GOOD)
        return found, np.full(len(tasks), rates[0])

    monkeypatch.setattr(table, "_measured", measured)
    found = table.check(subject)
    assert found.verdict == "holds"
    assert len(found.declared) == 2 + 2 + 2 + 3  # pairs that are published, of those in the table
    assert all(text.endswith("5 of 6") for text in found.measured.values())
    assert table.check(table.sabotage(subject)).verdict == "fails"
    few = replace(subject.data["setting"], seeds=(0, 1))  # of two seeds one is not enough
    assert table.check(Subject("few", data={"setting": few})).verdict == "fails"


@pytest.mark.parametrize(("slope", "verdict"), [(0.1, "holds"), (0.0, "fails")])
def test_depths_are_compared_in_second_halves(monkeypatch: pytest.MonkeyPatch, slope: float, verdict: str) -> None:
    def right(sandbox: Any, family: Any, recipe: Any, seeds: Any, count: Any) -> Any:
        del recipe, count
        found = np.ones((len(seeds), sandbox.length))
        found[:, sandbox.length // 2 :] = 0.3 + slope * np.log2(family.layers * family.loops)
        return found

    monkeypatch.setattr(depth, "_by_letters", right)
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
    monkeypatch.setattr(table, "train", lambda *_, **__: [Run({}, [one], None) for one in last])  # type: ignore[arg-type]
    monkeypatch.setattr(table, "stretched", lambda _, runs, __: runs)

    def later(family: Any, runs: Any, sandboxes: Any, count: Any) -> Any:
        del family, count
        return [[{"accuracy": box.task + at / 100} for at in range(len(runs))] for box in sandboxes]

    monkeypatch.setattr(table, "afterwards", later)
    tasks = (table.Task(SHORT, LONG, beyond=True),) * 2
    found, rates = table._measured.__wrapped__(None, tasks, None, (0.1, 0.2), (0, 1, 2), 8)
    assert rates.tolist() == [0.1, 0.2]
    assert np.allclose(found[..., 0], [[0, 0.01, 0.02], [0.09, 0.1, 0.11]])
    assert np.allclose(found[..., 1] - found[..., 0], [[0, 0, 0], [1, 1, 1]])
