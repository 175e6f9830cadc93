"""Verdicts from values per seed, their intervals, and evidence that is kept."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

from vitrify.certify.evidence import Evidence, combine
from vitrify.claims import _kept
from vitrify.claims._learned import Asked, decided, interval, rate_interval, slope_interval
from vitrify.claims.catalogue import Claim, Outcome, Subject, listing, run_claim
from vitrify.cli.app import app
from vitrify.errors import InputError
from vitrify.registry import load

NAME = "the_sqrt_position_code_needs_a_cubic_temperature"
HEADLINE = next(headline for headline in listing() if headline.name == NAME)


def test_enough_values_must_lie_in_the_range_and_its_ends_belong_to_it() -> None:
    seven = [0.1] * 7 + [0.9]
    assert Asked("x", seven, most=0.1, share=7 / 8).met
    assert not Asked("x", seven, most=0.1).met
    assert not Asked("x", seven, least=0.2, share=2 / 8).met
    assert not Asked("x", [math.nan]).met
    assert Asked("x", [0.0] * 10, most=0, share=0.95).needed == 10
    with pytest.raises(InputError, match="no values"):
        Asked("x", [])


def test_a_premise_that_is_not_met_leaves_a_claim_undecided() -> None:
    good, bad, first = (
        Asked("a", [1.0], least=0),
        Asked("b", [1.0, 3.0], most=2),
        Asked("c", [5.0], most=2, premise=True),
    )
    assert decided([good], domain="d").verdict == "holds"
    assert decided([good, bad], domain="d").verdict == "fails"
    told = decided([good, bad, first], domain="d")
    assert told.verdict == "undecided"
    assert told.witness == {"asked": "c", "expected": "at most 2, 1 of 1", "value": 5.0, "at": 0}
    assert decided([bad], domain="d").witness == {"asked": "b", "expected": "at most 2, 2 of 2", "value": 3.0, "at": 1}
    assert told.cases == 4
    assert told.declared.keys() == told.measured.keys()


def test_intervals_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    values, across = rng.normal(size=9), np.arange(9.0)
    theirs = scipy.stats.t.interval(0.95, 8, loc=values.mean(), scale=scipy.stats.sem(values))
    np.testing.assert_allclose(interval(list(values)), theirs)
    fit = scipy.stats.linregress(across, values)
    half = scipy.stats.t.ppf(0.975, 7) * fit.stderr
    slope = slope_interval(across.tolist(), values.tolist())
    np.testing.assert_allclose(np.array(slope), [fit.slope, fit.slope - half, fit.slope + half])
    for count in (0, 3, 8):
        exact = scipy.stats.binomtest(count, 8).proportion_ci(0.95, "exact")
        np.testing.assert_allclose(rate_interval(count, 8), (exact.low, exact.high), atol=1e-12)
    assert interval([2.0]) == (2.0, 2.0)
    with pytest.raises(InputError, match="at least 3 points"):
        slope_interval([1, 2], [1, 2])


def test_evidence_is_kept_with_its_device_and_its_figure_is_drawn_again_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {"steps": [1, 2, 4], "loss": np.array([[1.0, 0.5, 0.25], [1.0, 0.6, 0.3]])}
    evidence = combine({"chain": decided([Asked("x", [1.0])], domain="d", shown=shown)})
    seen: list[object] = []

    def draw(found: object) -> object:
        from vitrify.learn.figures import band, by_step, level, sheet

        seen.append(found)
        figure, planes = sheet(1, 2, "a title")
        band(planes[0, 0], [1, 2, 4], shown["loss"], "two seeds", "C0")
        level(planes[0, 0], 0.25, "floor")
        by_step(planes[0, 0])
        return figure

    def nothing() -> list[Subject]:
        return []

    claim = Claim("L1", "empirical", nothing, lambda _: evidence, lambda s: s, learned=True, draw=draw)
    monkeypatch.setattr(load("vitrify.claims", NAME), "CLAIM", claim)
    outcome = Outcome(NAME, "L1", "empirical", "a title", evidence, True, scale="paper")
    path = _kept.keep(outcome, tmp_path)
    found = _kept.kept(HEADLINE, tmp_path)
    assert found["scale"] == "paper"
    assert found["measured on"]["device"] == "CPU"
    assert found["shown"] == {"chain": {"steps": [1, 2, 4], "loss": [[1.0, 0.5, 0.25], [1.0, 0.6, 0.3]]}}
    assert len(path.read_text().splitlines()) < 50
    pages = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for page in pages:
        _kept.figure(HEADLINE, found, page)
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert seen == [found["shown"]] * 2
    run = CliRunner()
    assert run.invoke(app, ["figure", NAME, "--evidence", str(tmp_path), "-o", str(tmp_path / "f")]).exit_code == 0
    assert (tmp_path / "f" / f"{NAME}.svg").read_bytes() == pages[0].read_bytes()
    told = run.invoke(app, ["evidence", "--evidence", str(tmp_path)])
    assert told.exit_code == 0
    assert "paper" in told.output
    assert json.loads(run.invoke(app, ["evidence", "--evidence", str(tmp_path), "--json"]).output) == [found]


def test_what_is_missing_or_wrong_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not there: 'vitrify check"):
        _kept.kept(HEADLINE, tmp_path)
    with pytest.raises(InputError, match="there is no evidence in"):
        _kept.kept_names(tmp_path)
    for text, why in (
        ("{", "must be JSON"),
        ("[]", "must be the evidence of"),
        ('{"name": "x"}', "must be the evidence"),
    ):
        (tmp_path / f"{NAME}.json").write_text(text)
        with pytest.raises(InputError, match=why):
            _kept.kept(HEADLINE, tmp_path)
    with pytest.raises(InputError, match="has no figure"):
        _kept.figure(HEADLINE, {}, tmp_path / "x.svg")
    with pytest.raises(InputError, match="one scale only"):
        run_claim(HEADLINE, scale="paper")
    told = CliRunner().invoke(app, ["check", NAME, "--all"])
    assert isinstance(told.exception, InputError)


def test_a_scale_has_its_own_subjects_and_the_saboteur_is_tried_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def check(subject: Subject) -> Evidence:
        seen.append(subject.name)
        return decided([Asked("x", [float(subject.name == "broken")], most=0.0)], domain="d")

    def small() -> list[Subject]:
        return [Subject("small")]

    def large() -> list[Subject]:
        return [Subject("large")]

    claim = Claim("L1", "empirical", small, check, lambda _: Subject("broken"), learned=True, paper=large)
    monkeypatch.setattr(load("vitrify.claims", NAME), "CLAIM", claim)
    for scale, name in (("quick", "small"), ("paper", "large")):
        seen.clear()
        outcome = run_claim(HEADLINE, scale=scale)  # type: ignore[arg-type]
        assert seen == [name, "broken"]
        assert (outcome.scale, outcome.evidence.verdict, outcome.saboteur_rejected) == (scale, "holds", True)
