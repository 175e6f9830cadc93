"""Checks that train: `run_claim` gives their subjects the run store, and an interrupted check resumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify.certification.evidence import Criterion, Evidence, judged
from vitrify.claims import catalogue
from vitrify.claims.catalogue import Claim, Subject, run_claim
from vitrify.claims.protocol import judging
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.protocol.planning import Plan, Statement
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.recipe import Recipe
from vitrify.learn.store import RunStore
from vitrify.learn.train import train
from vitrify.learn.trainer import TrainEvent
from vitrify.registry import Headline
from vitrify.sandboxes.catalogue import make as make_sandbox

MARKOV = make_sandbox("markov", {"length": 8})
TINY = make_model("transformer", {"d_model": 8, "layers": 1, "heads": 1, "units": 8})


def test_an_interrupted_check_resumes_from_its_run_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    stop: list[int] = [4]

    def callback(event: TrainEvent) -> None:
        steps.append(event.step)
        if event.step in stop:
            raise KeyboardInterrupt

    def measure(subject: Subject) -> Measured:
        options: dict[str, Any] = {"store": subject.store, "callback": callback, "checkpoint_seconds": 0.0}
        runs = [train(TINY, MARKOV, recipe=Recipe(steps=n, batch=4, test_examples=16), **options) for n in (8, 2)]
        return {"steps": np.array([run.last["step"] for (run,) in runs])}

    def judge(subject: Subject, measured: Measured) -> Evidence:
        del subject
        return judged([Criterion.judged("steps", [measured["steps"][0]], at_least=8, statement="steps")], [])

    def untrained(_: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
        del rng
        return {"steps": 0 * measured["steps"]}

    plan = Plan(1, "?", {"steps": Statement("trains", "8 steps", "none")}, "seed", (1,), (0,), "fixed", {})
    subject = Subject("steps")
    claim = Claim.planned(
        plan, lambda: [subject], judge, {"steps": untrained}, measure=measure, id="L0", standing="experiment"
    )
    monkeypatch.setattr(catalogue, "claim_of", lambda _headline: claim)
    monkeypatch.setattr(judging, "digest", lambda *_: "")
    headline = Headline("a_claim", "A claim.", {"id": "L0"})
    with pytest.raises(KeyboardInterrupt):
        run_claim(headline, trainings=tmp_path / "runs")
    store = RunStore(tmp_path / "runs")
    before = store.seconds()
    steps.clear()
    stop.clear()
    outcome = run_claim(headline, trainings=tmp_path / "runs")
    assert steps[0] == 5
    assert outcome.evidence.verdict == "holds"
    assert outcome.saboteur_rejected
    assert outcome.evidence.seconds > before > 0
    assert [record.state for record in store.runs()] == ["finished"] * 2
    steps.clear()
    again = run_claim(headline, trainings=tmp_path / "runs")
    assert not steps  # all is there
    assert again.evidence.seconds == pytest.approx(store.seconds(), abs=0.1)
    run_claim(headline)
    assert steps  # without a store everything is trained
