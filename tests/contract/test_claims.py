"""The contract of every claim in the catalogue, found by looking; that they hold is seen in `test_claims_hold.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._kept import described, figure, kept, kept_names, settings
from vitrify.claims.catalogue import PACKAGE, Claim, Outcome, Status, Subject, claim_of, find, listing, run_claim
from vitrify.constructions.catalogue import Settings, build
from vitrify.errors import InputError
from vitrify.learn.recipe import Recipe
from vitrify.registry import Headline, load, names
from vitrify.spec.automata import cyclic

SECTIONS = ("Statement", "Why", "Checked", "Source", "Saboteur")
EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"
KEPT = kept_names(EVIDENCE)
HEADLINES = {headline.name: headline for headline in listing()}


@pytest.fixture(params=HEADLINES)
def headline(request: pytest.FixtureRequest) -> Headline:
    return HEADLINES[request.param]


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
    given = {"row": claim.row, "status": claim.status, "certified": claim.certified, "learned": claim.learned or None}
    assert headline.fields == {key: value for key, value in given.items() if value is not None}


def test_a_claim_that_has_a_figure_has_evidence_in_the_docs() -> None:
    assert [name for name in HEADLINES if claim_of(HEADLINES[name]).draw is not None] == KEPT


@pytest.mark.parametrize("name", KEPT)
def test_what_was_learned_is_kept(name: str) -> None:
    """The evidence in the docs is of this claim as it is set now, on a named device; there is a figure."""
    headline = HEADLINES[name]
    evidence = kept(headline, EVIDENCE)
    assert (evidence["row"], evidence["status"]) == (headline.fields["row"], headline.fields["status"])
    assert evidence["title"] == headline.title
    subjects = {"paper": claim_of(headline).paper, "quick": claim_of(headline).subjects}[evidence["scale"]]
    assert subjects is not None
    assert set(evidence["shown"]) == {subject.name for subject in subjects()}
    assert evidence["saboteur_rejected"] is True
    assert evidence["settings"] == settings(headline, evidence["scale"]), "it was set otherwise: run it again"
    assert evidence["measured on"]["device"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", evidence["measured on"]["date"])
    assert (EVIDENCE / f"{name}.json").stat().st_size < 400_000
    assert (EVIDENCE / f"{name}.svg").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_the_figure_in_the_docs_is_drawn_from_the_evidence(name: str, tmp_path: Path) -> None:
    figure(HEADLINES[name], kept(HEADLINES[name], EVIDENCE), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (EVIDENCE / f"{name}.svg").read_bytes()


def test_a_figure_in_the_docs_is_drawn_from_its_evidence(tmp_path: Path) -> None:
    """One of them, the others with the slow tests."""
    name = "depth_pays_on_words_of_permutations"
    figure(HEADLINES[name], kept(HEADLINES[name], EVIDENCE), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (EVIDENCE / f"{name}.svg").read_bytes()


def test_settings_that_differ_in_anything_are_described_differently() -> None:
    def scaled(factor: float) -> Callable[[float], float]:
        return lambda x: factor * x

    values = [1, 1.5, "1", None, (1, 2), {"a": 1}, {"a": 2}, Subject("x"), Subject("x", data={"a": np.arange(3)})]
    values += [Subject("x", data={"a": np.arange(4)}), scaled(1.0), scaled(2.0), partial(max, 1), partial(max, 2), {3}]
    told = [json.dumps(described(value)) for value in values]
    assert len(set(told)) == len(told)
    assert json.dumps(described(scaled(2.0))) == told[11]


def test_a_parameter_that_came_later_is_described_where_it_is_used() -> None:
    assert "anywhere" not in described(Recipe())[1]
    assert described(Recipe(anywhere=True))[1]["anywhere"] is True


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


def test_an_exact_net_that_is_not_right_fails_and_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a check says: a net that is meant to be exact is certified beside it, by its own examination if any."""
    headline = HEADLINES["any_automaton_runs_in_log_depth"]
    module = load(PACKAGE, headline.name)
    good, spec = build(cyclic(2), settings=Settings(max_length=6)), cyclic(2)
    bad = good.with_array("unembed.b_U", good.arrays["unembed.b_U"] + [9.0, 0.0])
    waved = Evidence("holds", "by hand", "nothing", 1, declared={"x": 1}, measured={"x": 1})
    seen = WordExamination(good.architecture, spec, max_length=3).run(good)
    more = replace(seen, cases=10**6, notes=("something else",))

    def outcome(found: Evidence, *subjects: Subject) -> Outcome:
        claim = Claim("R14", "proved", lambda: subjects, lambda _: found, lambda subject: subject)
        monkeypatch.setattr(module, "CLAIM", claim)
        return run_claim(headline)

    told = outcome(waved, Subject("bad", spec, bad))
    assert told.evidence.verdict == "fails"
    assert told.evidence.witness is not None
    assert told.evidence.witness["expected"] != told.evidence.witness["found"]
    assert not outcome(waved, Subject("bad", spec, bad, exact=False), Subject("no spec", None, bad)).certificates
    told = outcome(more, Subject("good", spec, good))
    assert told.certificates["good"]["cases"] == seen.cases < 10**6
    assert told.certificates["good"]["domain"] == seen.domain
    assert told.certificates["good"]["proved to length"] == 6
    assert told.methods == {"proved": 1}
    other = outcome(more, Subject("another net", spec, build(spec, "elman", Settings(max_length=6))))
    assert other.certificates["another net"]["domain"] != seen.domain
    assert other.methods == {"exhaustive": 1}
