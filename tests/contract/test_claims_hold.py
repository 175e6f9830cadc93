"""Every claim holds, its saboteur is rejected, and its exact nets are certified: the long runs of the contract."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from vitrify.certification.evidence import Evidence
from vitrify.claims import is_learned
from vitrify.claims.catalogue import (
    PACKAGE,
    STRENGTH,
    TRAINING_SECONDS,
    Claim,
    Outcome,
    claim_of,
    listing,
    run_claim,
)
from vitrify.claims.trials.trial import run_trial
from vitrify.registry import Headline, load
from vitrify.report.recorded import figure, keep

HEADLINES = {headline.name: headline for headline in listing()}
MAX_WHOLE_SECONDS = 10.0  # budget of a claim that is checked on all its subjects in `make test`
MAX_PART_SECONDS = 60.0  # budget of a claim that is checked on its first subjects there, on all with the slow tests
FIRST_SUBJECTS = 1


def budget(name: str) -> float:
    default = TRAINING_SECONDS if is_learned(HEADLINES[name]) else Claim.budget_seconds
    return float(HEADLINES[name].fields.get("budget_seconds", default))


SLOW = [name for name in HEADLINES if budget(name) > MAX_WHOLE_SECONDS or is_learned(HEADLINES[name])]
PART = [name for name in SLOW if budget(name) <= MAX_PART_SECONDS and not is_learned(HEADLINES[name])]
LEARNED = [name for name in HEADLINES if is_learned(HEADLINES[name])]
BUILT = [name for name in HEADLINES if name not in LEARNED]
RUN = [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in BUILT]


@pytest.fixture(params=HEADLINES)
def headline(request: pytest.FixtureRequest) -> Headline:
    return HEADLINES[request.param]


def without_seconds(evidence: Evidence) -> Evidence:
    parts = {name: without_seconds(part) for name, part in evidence.parts.items()}
    proof = {key: value for key, value in (evidence.proof or {}).items() if key != "seconds"}
    return replace(evidence, seconds=0.0, proof=proof, parts=parts)


def test_few_claims_that_need_no_training_are_left_to_the_slow_tests() -> None:
    built = [name for name, headline in HEADLINES.items() if not is_learned(headline)]
    whole = [name for name in built if name not in SLOW]
    assert len(whole) >= 25
    assert len(built) - len(whole) - len(PART) <= 4


@pytest.mark.long
@pytest.mark.parametrize("name", PART)
def test_it_holds_for_its_first_subjects(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = claim_of(HEADLINES[name])
    monkeypatch.setattr(
        load(PACKAGE, name), "CLAIM", replace(claim, subjects=lambda: list(islice(claim.subjects(), FIRST_SUBJECTS)))
    )
    outcome = run_claim(HEADLINES[name])
    assert outcome.evidence.verdict == "holds", outcome.evidence.witness
    assert outcome.saboteur_rejected
    assert outcome.evidence.cases > 0
    assert (claim.certified is None) == (claim.uncertified is not None)
    order = STRENGTH
    assert all(claim.certified and order.index(method) <= order.index(claim.certified) for method in outcome.methods)


@pytest.mark.long
@pytest.mark.parametrize("name", RUN)
def test_it_holds_and_its_saboteur_is_rejected(name: str) -> None:
    """All that is asked of one run: in one test, because a claim is not run twice, whatever process it is in.

    Claims that train take longer, and run with the slow tests (below).
    """
    headline = HEADLINES[name]
    start = time.process_time()
    outcome = run_claim(headline)
    seconds = time.process_time() - start
    evidence = outcome.evidence
    assert evidence.verdict == "holds", evidence.witness
    assert evidence.witness is None
    assert outcome.saboteur_rejected
    assert evidence.cases > 0
    assert outcome.title == headline.title
    leaves = [leaf for _, leaf in evidence.leaves()]
    assert any(quantity.relation for leaf in leaves for quantity in leaf.quantities) or any(
        leaf.criteria for leaf in leaves
    )
    assert all(quantity.met is not False for leaf in leaves for quantity in leaf.quantities)
    assert all(leaf.domains for leaf in leaves)
    assert evidence.seconds > 0
    assert seconds <= budget(name), "on one core; declare budget_seconds"
    again = Outcome.from_json(json.loads(json.dumps(outcome.to_json(), allow_nan=False)))
    assert again == outcome
    assert again.saboteur_rejected is True
    assert set(again.saboteurs) == set(evidence.parts)
    assert all(broken.verdict != "holds" for broken in again.saboteurs.values())
    assert all(each.cases > 0 and each.domains and each.methods for each in again.certificates.values())
    weakest = max(outcome.methods, key=STRENGTH.index, default=None)
    assert claim_of(headline).certified == weakest, f"declare certified={weakest!r}"
    assert (weakest is None) == (claim_of(headline).uncertified is not None)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNED)
def test_a_claim_about_training_runs_quickly_and_rejects_its_nulls(name: str, tmp_path: Path) -> None:
    """A quick run may have another verdict than the recorded one: what is asked of it is that its check can fail."""
    page, claim = HEADLINES[name], claim_of(HEADLINES[name])
    assert claim.plan is not None
    start = time.process_time()
    outcome = run_claim(page)
    assert time.process_time() - start <= budget(name), "on one core; declare budget_seconds"
    assert set(outcome.statements) <= set(claim.plan.statements)
    assert {key for own in outcome.rejections.values() for key in own} == set(outcome.statements)
    assert outcome.saboteur_rejected, outcome.rejections
    assert not outcome.criterion_older
    assert all(leaf.criteria and leaf.domains for _, leaf in outcome.evidence.leaves())
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json(), allow_nan=False))) == outcome
    path = keep(outcome, tmp_path)
    figure(page, page.recorded(tmp_path), tmp_path / "figure.svg")
    assert path.stat().st_size < 400_000
    assert (tmp_path / "figure.svg").stat().st_size > 5_000


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT)
def test_it_also_holds_at_large_scale(name: str) -> None:
    if claim_of(HEADLINES[name]).large is None:
        pytest.skip("it has one scale only")
    outcome = run_claim(HEADLINES[name], scale="large")
    assert outcome.evidence.verdict == "holds", outcome.evidence.witness
    assert outcome.saboteur_rejected
    assert outcome.scale == "large"


@pytest.mark.slow
def test_it_is_deterministic(headline: Headline) -> None:
    outcomes = []
    for _ in range(2):
        run_trial.cache_clear()  # trained again
        outcome = run_claim(headline)
        outcomes.append(replace(outcome, evidence=without_seconds(outcome.evidence)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT)
def test_its_saboteur_breaks_every_subject_for_a_stated_reason(name: str) -> None:
    claim = claim_of(HEADLINES[name])
    assert claim.check
    assert claim.sabotage
    seen: list[str] = []
    for subject in claim.subjects():
        assert subject.name not in seen
        seen.append(subject.name)
        evidence = claim.check(claim.sabotage(subject))
        assert evidence.verdict == "fails", subject.name
        assert evidence.witness, subject.name
    assert seen
