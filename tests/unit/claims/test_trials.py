"""Trials: measurements as arrays, what is trained once, and the evidence that criteria on them make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify.certification.evidence import Criterion, Quantity
from vitrify.claims.catalogue import Subject
from vitrify.claims.trials import trial as kit
from vitrify.claims.trials.trial import Trained, Trial, domain, evidence, measured, recalled, run_trial, trained
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.learn.store import RunStore
from vitrify.learn.train import train as train_in_fact
from vitrify.sandboxes.markov import Markov

FAMILY = TransformerFamily(layers=1, heads=1, d_model=4, units=4)
RECIPE = Recipe(steps=4, batch=2, test_examples=8, evals_per_doubling=1)
TRIAL = Trial(Markov(length=4), FAMILY, RECIPE, (3, 5), {"p,q": [(0.2, 0.3), (0.5, 0.4), (0.1, 0.1)]})
WEIGHTS: Any = None


def made_up(*lengths: int) -> Trained:
    """Runs that ended after so many measurements, with a number and a probe of two at each."""
    curves = [[{"loss": 10.0 * at + n, "heads": [n, -n]} for n in range(length)] for at, length in enumerate(lengths)]
    return Trained.of(TRIAL, [Run({}, curve, WEIGHTS) for curve in curves])  # type: ignore[arg-type]


def test_curves_are_arrays_over_axes_seeds_and_steps_and_end_where_a_member_broke() -> None:
    nets = made_up(4, 4, 2, 4, 4, 4)
    assert TRIAL.shape == (3, 2)
    assert nets.steps == [0, 1, 2, 4]
    loss, heads = nets.curves("loss"), nets.curves("heads")
    assert loss.shape == (3, 2, 4)
    assert heads.shape == (3, 2, 4, 2)
    assert loss[1, 0].tolist()[:2] == [20.0, 21.0]
    assert np.isnan(loss[1, 0, 2:]).all()
    assert np.isnan(heads[1, 0, 2:]).all()
    assert not np.isnan(np.delete(loss.reshape(6, 4), 2, axis=0)).any()
    assert nets.final("loss").tolist() == [[3.0, 13.0], [21.0, 33.0], [43.0, 53.0]]  # the last that was measured
    assert nets.final("heads").shape == (3, 2, 2)


@pytest.mark.slow
def test_seeds_that_go_with_a_parameter_are_an_axis() -> None:
    coupled = replace(TRIAL, axes={"p": [0.1, 0.2, 0.3], "q,seed": [(0.5, 1), (0.6, 2)]})
    assert coupled.shape == (3, 2)
    nets = run_trial(coupled, None)
    assert [(run.identity["sandbox"]["p"], run.identity["seed"]) for run in nets.runs][:3] == [
        (0.1, 1),
        (0.1, 2),
        (0.2, 1),
    ]


def test_runs_are_in_the_order_of_the_axes_and_seeds() -> None:
    nets = run_trial(TRIAL, None)
    known = [(run.identity["sandbox"]["p"], run.identity["seed"]) for run in nets.runs]
    assert known == [(p, seed) for p, _ in TRIAL.axes["p,q"] for seed in TRIAL.seeds]
    assert nets.final("loss").shape == (3, 2)
    assert nets.curves("loss")[..., -1].tolist() == nets.final("loss").tolist()


def test_what_two_subjects_have_in_common_is_trained_once_and_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def train(*args: Any, **options: Any) -> Any:
        calls.append(options["store"])
        return train_in_fact(*args, **options)

    monkeypatch.setattr(kit, "train", train)
    run_trial.cache_clear()
    one = replace(TRIAL, axes={}, seeds=(0,))
    store = RunStore(tmp_path)
    first = Subject("first", trials={"a": one, "b": replace(one, seeds=(1,))}, store=store)
    second = replace(first, trials={"a": replace(one, sandbox=Markov(length=4)), "c": replace(one, seeds=(2,))})
    assert list(trained(first)) == ["a", "b"]
    assert trained(second)["a"].runs is trained(first)["a"].runs
    assert calls == [store] * 3
    assert len(store.runs()) == 3


def test_the_domain_says_what_was_trained_and_the_numbers_of_the_subject() -> None:
    longer = replace(TRIAL, recipe=replace(RECIPE, steps=8))
    data = {"length": 4, "points": ((0.1, 0.2),), "sizes": (1, 2), "columns": {"a": TRIAL}}
    subject = Subject("x", data=data, trials={"a": TRIAL, "same": replace(TRIAL), "b": longer})
    found = domain(subject)
    assert (found.kind, found.count) == ("training runs", 12)  # what is named twice is trained once
    assert found.settings == {"length": 4, "sizes": [1, 2], "seeds": 2, "steps": [4, 8], "batch": 2}


def test_seeds_are_counted_also_where_they_are_part_of_an_axis() -> None:
    first = replace(TRIAL, axes={"q,seed": [(0.5, 7), (0.6, 7), (0.7, 2)], "p": [0.1, 0.2]})
    assert (first.shape, first.trained_seeds) == ((3, 2), (7, 2))
    assert replace(TRIAL, axes={"p": [0.1] * 5}).trained_seeds == tuple(TRIAL.seeds)
    subject = Subject("x", trials={"a": first})
    assert (domain(subject).count, domain(subject).settings["seeds"]) == (6, 2)
    assert evidence(subject, [Criterion.judged("loss", [0.1], at_most=1)], {}).seed == 7


def test_evidence_has_the_verdict_of_its_criteria_and_a_rounded_figure() -> None:
    subject = Subject("x", trials={"a": TRIAL})
    good, bad = (Criterion.judged("loss", [0.1, 0.2], at_most=most) for most in (0.2, 0.1))
    found = evidence(subject, [good], {"loss": np.array([1.2345678, np.nan])}, [Quantity("mean", 0.15)])
    assert (found.verdict, found.seed, found.measured("mean")) == ("holds", 3, 0.15)
    assert found.figure["loss"][0] == 1.2346
    assert np.isnan(found.figure["loss"][1])
    assert evidence(subject, [good, bad], {}).verdict == "fails"


def test_stored_curves_are_recalled_as_they_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    nets = made_up(4, 4, 2, 4, 4, 4)
    subject = Subject("chains", trials={"a trial": TRIAL})
    monkeypatch.setattr(kit, "trained", lambda _: {"a trial": nets})
    again = recalled(subject, measured(subject))["a trial"]
    assert again.points == nets.points
    assert [len(points) for points in again.points] == [4, 4, 2, 4, 4, 4]
    assert np.array_equal(again.final("heads"), nets.final("heads"))
    assert np.array_equal(again.curves("loss"), nets.curves("loss"), equal_nan=True)
    assert not again.runs
