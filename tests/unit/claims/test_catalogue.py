"""Checks that train: `run_claim` gives their subjects the run store, and an interrupted check resumes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vitrify.certification.evidence import Evidence
from vitrify.claims import catalogue
from vitrify.claims.catalogue import Claim, Subject, run_claim
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

    def check(subject: Subject) -> Evidence:
        recipe = Recipe(steps=subject.data["steps"], batch=4, test_examples=16)
        options: dict[str, Any] = {"store": subject.store, "callback": callback, "checkpoint_seconds": 0.0}
        (run,) = train(TINY, MARKOV, recipe=recipe, **options)
        verdict: Any = "holds" if run.last["step"] == 8 else "fails"
        return Evidence(verdict, 1)

    def sabotage(subject: Subject) -> Subject:
        return replace(subject, data={"steps": 2})

    claim = Claim(
        lambda: [Subject("steps", data={"steps": 8})], check, sabotage, id="R0", standing="experiment", learned=True
    )
    monkeypatch.setattr(catalogue, "claim_of", lambda _headline: claim)
    headline = Headline("a_claim", "A claim.", {})
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
    assert again.evidence.seconds > store.seconds()
    run_claim(headline)
    assert steps  # without a store everything is trained
