"""The contract of every claim in the catalogue, found by looking; that they hold is seen in `test_claims_hold.py`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from cases import each
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.evidence import Evidence, Quantity
from vitrify.claims import is_learned
from vitrify.claims.catalogue import (
    PACKAGE,
    TRAINING_SECONDS,
    Claim,
    Outcome,
    Standing,
    Subject,
    claim_of,
    find,
    listing,
    run_claim,
)
from vitrify.claims.protocol.contract import declaration_problems, docstring_problems
from vitrify.claims.protocol.planning import digest, read_plan
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.learn.recipe import Recipe
from vitrify.registry import Headline, load, names, source_of
from vitrify.report.checks import reproduced
from vitrify.report.recorded import all_versions, described, figure, latest, recorded_names, settings
from vitrify.spec.automata.families import cyclic

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"
KEPT = recorded_names(EVIDENCE)
HEADLINES = {headline.name: headline for headline in listing()}


each_claim = each("headline", HEADLINES.values(), ids=lambda headline: headline.name)


def test_there_are_claims_and_all_are_listed() -> None:
    assert len(HEADLINES) >= 8
    assert list(HEADLINES) == names(PACKAGE)


@each_claim
def test_the_docstring_says_everything(headline: Headline) -> None:
    module = load(PACKAGE, headline.name)
    assert module.__doc__ is not None
    assert headline.doc.splitlines()[0] == module.__doc__.splitlines()[0]
    assert headline.doc.splitlines()[0].endswith(".")
    assert docstring_problems(headline, planned=module.CLAIM.plan is not None) == []


@each_claim
def test_the_declaration_is_one_that_a_file_of_a_user_could_have(headline: Headline) -> None:
    _, path = source_of(PACKAGE, headline.name)
    assert list(declaration_problems(ast.parse(path.read_text(encoding="utf-8")))) == []


@each_claim
def test_the_file_name_is_a_sentence(headline: Headline) -> None:
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+){3,}", headline.name)


@each_claim
def test_id_and_standing(headline: Headline) -> None:
    claim = claim_of(headline)
    assert re.fullmatch(r"[RBLG]\d+", claim.id)
    assert claim.standing in get_args(Standing)


@each_claim
def test_what_is_read_without_importing_is_what_is_imported(headline: Headline) -> None:
    claim = claim_of(headline)
    literal = ("id", "standing", "certified", "budget_seconds", "uncertified")
    chosen = {name: getattr(claim, name) for name in literal}
    defaults = {field.name: field.default for field in fields(Claim)}
    defaults |= {"budget_seconds": TRAINING_SECONDS} if claim.plan else {}
    assert headline.fields == {name: value for name, value in chosen.items() if value != defaults[name]}


LEARNED = [name for name, headline in HEADLINES.items() if is_learned(headline)]


@each("name", LEARNED)
def test_no_member_of_a_trial_is_trained_twice(name: str) -> None:
    """A store, which `check --resume` saves trainings in, refuses to hold a run twice."""
    claim = claim_of(HEADLINES[name])
    subjects = list(claim.subjects())
    trials = [trial for subject in subjects for trial in subject.trials.values()]
    for axis in (values for trial in trials for values in (*trial.axes.values(), trial.seeds)):
        assert len(set(axis)) == len(axis)


def test_a_claim_that_has_a_figure_has_evidence_in_the_docs() -> None:
    """Unless its plan is not run yet."""
    drawn = {name: claim_of(HEADLINES[name]) for name in HEADLINES if claim_of(HEADLINES[name]).draw is not None}
    assert set(KEPT) <= set(drawn)
    assert all(drawn[name].plan is not None for name in set(drawn) - set(KEPT))


@each("name", LEARNED)
def test_a_claim_about_training_has_a_plan_whose_file_is_of_its_code(name: str) -> None:
    """Its units are fresh, each statement has a null, and an earlier version is never lost."""
    plan, page = claim_of(HEADLINES[name]).plan, HEADLINES[name]
    assert plan is not None
    assert set(claim_of(page).nulls) == set(plan.statements)
    assert plan.scale
    assert all(each.says and each.rule and each.null for each in plan.statements.values())
    written, outcome = read_plan(page, plan.version), latest(page, EVIDENCE)
    assert written["plan"] == plan.to_json(), f"vitrify plan {name}"
    if outcome is None or outcome.version < plan.version:
        assert written["digest"] == digest(page, plan), f"vitrify plan {name}"
    else:  # judged: its code may be rewritten as long as it computes the same numbers
        assert written["digest"] == outcome.plan["digest"]
        assert written["digest"] == digest(page, plan) or reproduced(page, EVIDENCE) == ""
    assert all(read_plan(page, version) for version in range(1, plan.version))
    assert [each.version for each in all_versions(page, EVIDENCE)] == sorted(
        {each.version for each in all_versions(page, EVIDENCE)}
    )


def test_the_queue_lists_every_plan_that_is_not_run() -> None:
    outcomes = {name: latest(HEADLINES[name], EVIDENCE) for name in LEARNED}
    run = {name for name, outcome in outcomes.items() if outcome and outcome.criterion_older}
    queue = (EVIDENCE.parent / "queue.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \d+ \| `(\w+)` \| [\d.]+ \|", queue, re.MULTILINE)) == set(LEARNED) - run


@each("name", KEPT)
def test_what_was_learned_is_kept(name: str) -> None:
    """The evidence in the docs is of this claim as it is set now, on a named device; there is a figure."""
    headline = HEADLINES[name]
    outcome = headline.recorded(EVIDENCE)
    assert (outcome.id, outcome.standing) == (headline.fields["id"], headline.fields["standing"])
    subjects = {"large": claim_of(headline).large, "quick": claim_of(headline).subjects}[outcome.scale]
    assert subjects is not None
    plan = claim_of(headline).plan
    if plan is None or outcome.version == plan.version:
        assert set(outcome.evidence.parts) == {subject.name for subject in subjects()}
        assert outcome.settings == settings(headline, outcome.scale), "it was set otherwise: run it again"
    assert set(outcome.evidence.figures) == set(outcome.evidence.parts)
    assert all(part.criteria and part.domains for part in outcome.evidence.parts.values())
    assert outcome.saboteur_rejected is True or outcome.version > 0
    assert outcome.measured_on["device"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", outcome.measured_on["date"])
    assert (EVIDENCE / f"{name}.json").stat().st_size < 400_000
    assert (EVIDENCE / f"{name}.svg").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_the_figure_in_the_docs_is_drawn_from_the_evidence(name: str, tmp_path: Path) -> None:
    figure(HEADLINES[name], HEADLINES[name].recorded(EVIDENCE), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (EVIDENCE / f"{name}.svg").read_bytes()


def test_a_figure_in_the_docs_is_drawn_from_its_evidence(tmp_path: Path) -> None:
    """One of them, the others with the slow tests."""
    name = "deeper_transformers_learn_longer_permutation_word_problems"
    figure(HEADLINES[name], HEADLINES[name].recorded(EVIDENCE), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (EVIDENCE / f"{name}.svg").read_bytes()


def test_settings_that_differ_in_anything_are_described_differently() -> None:
    def scaled(factor: float) -> Callable[[float], float]:
        return lambda x: factor * x

    values = [1, 1.5, "1", None, (1, 2), {"a": 1}, {"a": 2}, Subject("x"), Subject("x", data={"a": np.arange(3)})]
    values += [Subject("x", data={"a": np.arange(4)}), scaled(1.0), scaled(2.0), partial(max, 1), partial(max, 2), {3}]
    told = [json.dumps(described(value)) for value in values]
    assert len(set(told)) == len(told)
    assert json.dumps(described(scaled(2.0))) == told[11]
    bare = scaled(2.0)
    assert json.dumps(described(wraps(bare)(lambda *checked: bare(*checked)))) == told[11]  # a check of types around it


def test_a_parameter_that_came_later_is_described_where_it_is_used() -> None:
    assert "random_offset" not in described(Recipe())[1]
    assert described(Recipe(random_offset=True))[1]["random_offset"] is True


@each_claim
def test_a_unique_beginning_finds_a_claim(headline: Headline) -> None:
    assert find(headline.name) == headline
    unique = next(
        headline.name[:n]
        for n in range(1, len(headline.name) + 1)
        if sum(name.startswith(headline.name[:n]) for name in HEADLINES) == 1
    )
    assert find(unique) == headline


def test_a_claim_is_found_by_id_and_by_words_in_any_order() -> None:
    assert find("r14").name == find("depth log automaton").name == "any_automaton_runs_in_log_depth"


def test_anything_else_is_refused_with_the_candidates() -> None:
    for nothing in ("nonsense", "", "R99"):
        with pytest.raises(InputError, match=f"no claim has the name, id or words '{nothing}': 'vitrify list'"):
            find(nothing)
    with pytest.raises(InputError, match="claims match 'R1'") as refused:
        find("R1")
    assert all(name in str(refused.value) for name, page in HEADLINES.items() if page.fields["id"] == "R1")


def test_a_claim_whose_saboteur_passes_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    headline = HEADLINES["the_sqrt_position_code_needs_a_cubic_temperature"]
    module = load(PACKAGE, headline.name)
    true: Claim = module.CLAIM
    subjects: list[Subject] = list(true.subjects())
    told: list[str] = []
    lazy = Claim(lambda: subjects, true.check, lambda subject: subject, id=true.id, standing=true.standing)
    monkeypatch.setattr(module, "CLAIM", lazy)
    outcome = run_claim(headline, progress=told.append)
    assert outcome.evidence.verdict == "undecided"
    assert not outcome.saboteur_rejected
    assert any("the saboteur passed on" in note for note in outcome.evidence.notes)
    assert told == [f"{headline.name}: {subject.name}" for subject in subjects]
    check, sabotage = true.check, true.sabotage
    assert check
    assert sabotage
    false = replace(true, subjects=lambda: subjects, check=lambda subject: check(sabotage(subject)))
    monkeypatch.setattr(module, "CLAIM", false)
    outcome = run_claim(headline)
    assert outcome.evidence.verdict == "fails"
    assert outcome.evidence.witness is not None
    assert outcome.evidence.witness["subject"] == subjects[0].name


def test_an_exact_net_that_is_not_right_fails_and_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a check says: a net that is meant to be exact is certified beside it, by its own check if any."""
    headline = HEADLINES["any_automaton_runs_in_log_depth"]
    module = load(PACKAGE, headline.name)
    good, spec = build(cyclic(2), max_length=6), cyclic(2)
    bad = good.with_array("unembed.b_U", good.arrays["unembed.b_U"] + [9.0, 0.0])
    waved = Evidence("holds", 1, quantities=(Quantity("x", 1, 1, "="),))
    seen = WordCheck(good.architecture, spec, max_length=3).run(good)
    more = replace(seen, cases=10**6, notes=("something else",))

    def outcome(found: Evidence, *subjects: Subject) -> Outcome:
        claim = Claim(lambda: subjects, lambda _: found, lambda subject: subject, id="R14", standing="theorem")
        monkeypatch.setattr(module, "CLAIM", claim)
        return run_claim(headline)

    told = outcome(waved, Subject("bad", spec, bad))
    assert told.evidence.verdict == "fails"
    assert told.evidence.witness is not None
    assert told.evidence.witness["expected"] != told.evidence.witness["actual"]
    assert not outcome(waved, Subject("bad", spec, bad, exact=False), Subject("no spec", None, bad)).certificates
    told = outcome(more, Subject("good", spec, good))
    assert told.certificates["good"].cases == seen.cases < 10**6
    assert told.certificates["good"].domains == seen.domains
    assert told.certificates["good"].notes == ()
    assert (told.certificates["good"].proof or {})["max_length"] == 6
    assert told.methods == {"proved": 1}
    other = outcome(more, Subject("another net", spec, build(spec, "elman", max_length=6)))
    assert other.certificates["another net"].domains != seen.domains
    assert other.methods == {"proved": 1}  # by the pairs of states
