"""What the table of architectures is made of, against hand-made numbers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from cases import each
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


def planted(subject: Subject, reflections: float = 1.0) -> dict[str, Any]:
    """Return measurements in which architectures differ as published; DeltaProduct has an accuracy on longer words."""
    names = list(subject.data["columns"])
    arrays: dict[str, Any] = {}
    for name, trial in subject.trials.items():
        accuracy = np.full((len(names), len(trial.seeds), 2), 0.5)
        if name in ("LSTM", "reflections"):
            accuracy[names.index("parity")] = [1.0, reflections if name == "reflections" else 1.0]
        if name == "reflections":
            accuracy[names.index("permutations")] = [1.0, reflections]
        accuracy[names.index("recall"), :, 0] = 1.0 if name == "transformer" else 0.3
        arrays[f"{name}/accuracy"] = accuracy
        arrays[f"{name}/rates"], arrays[f"{name}/parameters"] = np.full(len(names), 0.1), np.array(7)
    return arrays


def test_published_differences_hold_and_exchanged_results_and_guesses_beyond_the_trained_length_do_not() -> None:
    (subject,) = table.subjects()
    arrays = planted(subject)
    assert set(table.judge(subject, arrays).statements.values()) == {"holds"}
    for key, null in table.CLAIM.nulls.items():
        rng = np.random.default_rng(0)
        verdicts = [table.judge(subject, null(subject, arrays, rng)).statements[key] for _ in range(40)]
        assert "holds" not in verdicts


def test_nets_that_fit_and_are_wrong_on_longer_words_fail_and_those_that_do_not_fit_are_undecided() -> None:
    (subject,) = table.subjects()
    assert table.judge(subject, planted(subject, reflections=0.8)).statements == {
        "parity": "fails",
        "permutations": "fails",
        "separations": "holds",
        "lookup": "holds",
    }
    arrays = planted(subject)
    arrays["reflections/accuracy"][0, :, 0] = 0.9
    assert table.judge(subject, arrays).statements["parity"] == "undecided"
    arrays["reflections/accuracy"][0, 0, 0] = 1.0
    few = table.judge(subject, arrays)
    assert few.statements["parity"] == "undecided"  # one of six seeds has fitted
    assert next(each for each in few.criteria if "reflections, twice" in each.name).total == 1


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
    nets = Trained.of(trial, [Run({}, [one], WEIGHTS) for one in last])
    found, rates = benchmark.accuracies(nets, Medley((LONG, LONG)), 8)
    assert rates.tolist() == [0.1, 0.2]
    assert np.allclose(found[..., 0], [[0, 0.01, 0.02], [0.09, 0.1, 0.11]])
    assert np.allclose(found[..., 1] - found[..., 0], [[0, 0, 0], [1, 1, 1]])
