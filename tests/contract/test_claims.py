"""The contract of every claim in the catalogue, found by looking: no line here names one."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest

from vitrify.claims.catalogue import PACKAGE, Claim, Status, Subject, find, listing, run_claim
from vitrify.errors import InputError
from vitrify.registry import Headline, load, names

SECTIONS = ("Statement", "Why", "Checked", "Source", "Saboteur")
BUDGET = 60.0  # seconds that one claim may take on one core

HEADLINES = {headline.name: headline for headline in listing()}


@pytest.fixture(params=HEADLINES)
def headline(request: pytest.FixtureRequest) -> Headline:
    return HEADLINES[request.param]


def claim_of(headline: Headline) -> Claim:
    claim = load(PACKAGE, headline.name).CLAIM
    assert isinstance(claim, Claim)
    return claim


def without_seconds(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "seconds"}


def test_there_are_claims_and_all_are_listed() -> None:
    assert len(HEADLINES) >= 8
    assert list(HEADLINES) == names(PACKAGE)


def test_the_docstring_says_everything(headline: Headline) -> None:
    module = load(PACKAGE, headline.name)
    assert module.__doc__ is not None
    assert headline.doc.splitlines()[0] == module.__doc__.splitlines()[0]
    assert headline.doc.splitlines()[0].endswith(".")
    for word in SECTIONS:
        assert len(headline.section(word).split()) >= 4, word
    told = " ".join(f"{word}: {headline.section(word)}" for word in SECTIONS)
    assert told == " ".join(" ".join(headline.doc.splitlines()[1:]).split())


def test_the_file_name_is_a_sentence(headline: Headline) -> None:
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+){3,}", headline.name)


def test_row_and_status(headline: Headline) -> None:
    claim = claim_of(headline)
    assert re.fullmatch(r"[RBLG]\d+", claim.row)
    assert claim.status in get_args(Status)


def test_what_is_read_without_importing_is_what_is_imported(headline: Headline) -> None:
    claim = claim_of(headline)
    assert headline.fields == {"row": claim.row, "status": claim.status}


def test_it_holds_and_its_saboteur_is_rejected(headline: Headline) -> None:
    """All that is asked of one run: in one test, because a claim is not run twice, whatever process it is in."""
    outcome = run_claim(headline)
    evidence = outcome.evidence
    assert evidence.verdict == "holds", evidence.witness
    assert evidence.witness is None
    assert outcome.saboteur_rejected
    assert evidence.cases > 0
    assert outcome.title == headline.title
    assert evidence.declared
    assert set(evidence.declared) <= set(evidence.measured)
    assert 0 < evidence.seconds <= BUDGET
    data = outcome.to_json()
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again.keys() == data.keys()
    assert {key: again[key] for key in ("name", "row", "status", "title", "verdict", "method", "cases")} == {
        key: data[key] for key in ("name", "row", "status", "title", "verdict", "method", "cases")
    }
    assert json.loads(json.dumps(again)) == again
    assert again["saboteur_rejected"] is True


@pytest.mark.slow
def test_it_is_deterministic(headline: Headline) -> None:
    once, again = run_claim(headline).to_json(), run_claim(headline).to_json()
    assert without_seconds(once) == without_seconds(again)


@pytest.mark.slow
def test_its_saboteur_breaks_every_subject_for_a_stated_reason(headline: Headline) -> None:
    claim = claim_of(headline)
    seen: list[str] = []
    for subject in claim.subjects():
        assert subject.name not in seen
        seen.append(subject.name)
        evidence = claim.check(claim.sabotage(subject))
        assert evidence.verdict == "fails", subject.name
        assert evidence.witness, subject.name
    assert seen


def test_a_unique_beginning_finds_a_claim(headline: Headline) -> None:
    assert find(headline.name) == headline
    unique = next(
        headline.name[:n]
        for n in range(1, len(headline.name) + 1)
        if sum(name.startswith(headline.name[:n]) for name in HEADLINES) == 1
    )
    assert find(unique) == headline


def test_anything_else_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match="no claim is called 'nonsense'; there are: ") as refused:
        find("nonsense")
    assert all(name in str(refused.value) for name in HEADLINES)
    with pytest.raises(InputError, match="several claims begin with ''"):
        find("")


def test_a_claim_whose_saboteur_passes_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    headline = HEADLINES["the_sqrt_position_code_needs_a_cubic_temperature"]
    module = load(PACKAGE, headline.name)
    true: Claim = module.CLAIM
    subjects: list[Subject] = list(true.subjects())
    told: list[str] = []
    lazy = Claim(true.row, true.status, lambda: subjects, true.check, lambda subject: subject)
    monkeypatch.setattr(module, "CLAIM", lazy)
    outcome = run_claim(headline, progress=told.append)
    assert outcome.evidence.verdict == "undecided"
    assert not outcome.saboteur_rejected
    assert any("the saboteur passed on" in note for note in outcome.evidence.notes)
    assert told == [f"{headline.name}: {subject.name}" for subject in subjects]
    false = Claim(true.row, true.status, lambda: subjects, lambda s: true.check(true.sabotage(s)), true.sabotage)
    monkeypatch.setattr(module, "CLAIM", false)
    outcome = run_claim(headline)
    assert outcome.evidence.verdict == "fails"
    assert outcome.evidence.witness is not None
    assert outcome.evidence.witness["subject"] == subjects[0].name
