"""Verdicts from values per seed, their intervals, and evidence that is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

from vitrify.certification.evidence import Criterion, Domain, Evidence, Method, combine, judged
from vitrify.claims.catalogue import Claim, Figure, Figures, Outcome, Subject, claim_of, listing, run_claim
from vitrify.claims.protocol import judging
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.protocol.planning import Plan, Statement
from vitrify.cli.app import app
from vitrify.encoding import encoded
from vitrify.errors import InputError
from vitrify.intervals import mean_interval, rate_interval
from vitrify.registry import load
from vitrify.report import recorded

NAME = "the_sqrt_position_code_needs_a_cubic_temperature"
DOMAIN = Domain("training runs", Method.TRAINED, 2, settings={"seeds": 2})
HEADLINE = next(headline for headline in listing() if headline.name == NAME)


def test_enough_values_must_lie_in_the_range_and_its_ends_belong_to_it() -> None:
    seven = [0.1] * 7 + [0.9]
    assert Criterion.judged("x", seven, at_most=0.1, share=7 / 8).met
    assert not Criterion.judged("x", seven, at_most=0.1).met
    assert not Criterion.judged("x", seven, at_least=0.2, share=2 / 8).met
    assert not Criterion.judged("x", [math.nan]).met
    assert Criterion.judged("x", [0.0] * 10, at_most=0, share=0.95).needed == 10
    with pytest.raises(InputError, match="no values"):
        Criterion.judged("x", [])


def test_a_premise_that_is_not_met_leaves_a_claim_unjudged() -> None:
    good, bad, first = (
        Criterion.judged("a", [1.0], at_least=0),
        Criterion.judged("b", [1.0, 3.0], at_most=2),
        Criterion.judged("c", [5.0], at_most=2, premise=True),
    )
    assert judged([good], [DOMAIN]).verdict == "holds"
    assert judged([good, bad], [DOMAIN]).verdict == "fails"
    told = judged([good, bad, first], [DOMAIN])
    assert told.verdict == "undecided"
    assert told.witness == {"criterion": "c", "seeds outside the range": [0], "their values": [5.0]}
    failed = judged([bad], [DOMAIN])
    assert failed.witness == {"criterion": "b", "seeds outside the range": [1], "their values": [3.0]}
    assert told.cases == 4
    assert [(each.name, each.verdict) for each in told.criteria] == [("a", "holds"), ("b", "fails"), ("c", "undecided")]
    assert told.domains == (DOMAIN,)


def test_intervals_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=9)
    theirs = scipy.stats.t.interval(0.95, 8, loc=values.mean(), scale=scipy.stats.sem(values))
    np.testing.assert_allclose(mean_interval(list(values)), theirs)
    for count in (0, 3, 8):
        exact = scipy.stats.binomtest(count, 8).proportion_ci(0.95, "exact")
        np.testing.assert_allclose(rate_interval(count, 8), (exact.low, exact.high), atol=1e-12)
    assert mean_interval([2.0]) == (2.0, 2.0)


@pytest.mark.long
def test_evidence_is_kept_with_its_device_and_its_figure_is_drawn_again_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {"steps": [1, 2, 4], "loss": np.array([[1.0, 0.5, 0.25], [1.0, 0.6, 0.3]])}
    evidence = combine({"chain": judged([Criterion.judged("x", [1.0])], [DOMAIN], figure=encoded(shown))})
    seen: list[object] = []

    def draw(found: Figures) -> Figure:
        from vitrify.learn.figures import band, by_step, reference_line, sheet

        seen.append(found)
        figure, planes = sheet(1, 2, "a title")
        band(planes[0, 0], [1, 2, 4], shown["loss"], "two seeds", "C0")
        reference_line(planes[0, 0], 0.25, "floor")
        by_step(planes[0, 0])
        return figure

    def nothing() -> list[Subject]:
        return []

    claim = Claim(nothing, lambda _: evidence, lambda s: s, draw=draw, id="L1", standing="experiment")
    monkeypatch.setattr(load("vitrify.claims", NAME), "CLAIM", claim)
    outcome = Outcome(NAME, "L1", "empirical", "a title", "large", evidence, True)
    path = recorded.keep(outcome, tmp_path)
    found = HEADLINE.recorded(tmp_path)
    assert found.scale == "large"
    assert found.measured_on["device"] == "CPU"
    assert found.evidence == evidence
    figures = {"chain": {"steps": [1, 2, 4], "loss": [[1.0, 0.5, 0.25], [1.0, 0.6, 0.3]]}}
    assert found.evidence.figures == figures
    assert len(path.read_text().splitlines()) < 50
    pages = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for page in pages:
        recorded.figure(HEADLINE, found, page)
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert seen == [figures] * 2
    run = CliRunner()
    assert run.invoke(app, ["figure", NAME, "--evidence", str(tmp_path), "-o", str(tmp_path / "f")]).exit_code == 0
    assert (tmp_path / "f" / f"{NAME}.svg").read_bytes() == pages[0].read_bytes()
    told = run.invoke(app, ["evidence", "--evidence", str(tmp_path)])
    assert told.exit_code == 0
    assert "large" in told.output
    assert json.loads(run.invoke(app, ["evidence", "--evidence", str(tmp_path), "--json"]).output) == [found.to_json()]


def test_what_is_missing_or_wrong_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is not there: 'vitrify check"):
        HEADLINE.recorded(tmp_path)
    with pytest.raises(InputError, match="there is no evidence in"):
        recorded.recorded_names(tmp_path)
    for text, why in (
        ("{", "must be JSON"),
        ("[]", "must be the evidence of"),
        ('{"name": "x"}', "must be the evidence"),
        (f'{{"name": "{NAME}", "verdict": "holds"}}', "of an earlier version: 'vitrify check"),
    ):
        (tmp_path / f"{NAME}.json").write_text(text)
        with pytest.raises(InputError, match=why):
            HEADLINE.recorded(tmp_path)
    plain = replace(claim_of(HEADLINE), draw=None, figure=None)
    monkeypatch.setattr(recorded, "claim_of", lambda _: plain)
    with pytest.raises(InputError, match="has no figure"):
        recorded.figure(HEADLINE, run_claim(HEADLINE), tmp_path / "x.svg")
    with pytest.raises(InputError, match="one scale only"):
        run_claim(HEADLINE, scale="large")
    told = CliRunner().invoke(app, ["check", NAME, "--all"])
    assert isinstance(told.exception, InputError)


def test_a_scale_has_its_own_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(subject: Subject) -> Measured:
        return {subject.name: np.zeros(1)}

    def judge(subject: Subject, measured: Measured) -> Evidence:
        del subject
        return judged([Criterion.judged("x", [next(iter(measured.values()))[0]], at_most=0.0, statement="s")], [DOMAIN])

    def null(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
        del subject, rng
        return {name: values + 1 for name, values in measured.items()}

    def at(name: str) -> Callable[[], list[Subject]]:
        return lambda: [Subject(name)]

    plan = Plan(1, "?", {"s": Statement("is 0", "at most 0", "is 1")}, "seed", (1,), (0,), "fixed", {})
    claim = Claim.planned(
        plan, at("small"), judge, {"s": null}, at("large"), measure=measure, id="L1", standing="experiment"
    )
    monkeypatch.setattr(load("vitrify.claims", NAME), "CLAIM", claim)
    monkeypatch.setattr(judging, "digest", lambda *_: "")
    for scale, name in (("quick", "small"), ("large", "large")):
        outcome = run_claim(HEADLINE, scale=scale)  # type: ignore[arg-type]
        assert list(outcome.evidence.parts) == [name]
        assert (outcome.scale, outcome.verdict, outcome.saboteur_rejected) == (scale, "holds", True)
