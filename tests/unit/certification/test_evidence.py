"""Evidence: combining verdicts, criteria, JSON and back, and the interval that a sample supports."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from cases import each
from vitrify.certification.evidence import (
    Criterion,
    Domain,
    Evidence,
    Link,
    Method,
    Quantity,
    Scope,
    Verdict,
    combine,
    judged,
    quantities,
)
from vitrify.encoding import NON_FINITE
from vitrify.errors import InputError
from vitrify.intervals import upper_failure_rate


def part(verdict: Verdict, **fields: Any) -> Evidence:
    witness = {"word": ["a"]} if verdict == "fails" else None
    return Evidence(verdict, 10, witness=witness, seconds=0.5, **fields)


@each(
    ("verdicts", "combined"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "fails", "undecided"], "fails"),
        (["undecided", "fails"], "fails"),
        (["holds", "undecided"], "undecided"),
        (["holds"], "holds"),
    ],
)
def test_the_worst_verdict_counts(verdicts: list[Verdict], combined: Verdict) -> None:
    parts = {str(place): part(verdict) for place, verdict in enumerate(verdicts)}
    assert combine(parts).verdict == combined


def test_a_witness_names_its_subject() -> None:
    found = combine({"one": part("holds"), "two": part("undecided"), "three": part("fails"), "four": part("fails")})
    assert found.witness == {"subject": "three", "word": ["a"]}
    assert combine({"one": part("holds")}).witness is None


def test_subjects_stay_apart_and_numbers_add_up() -> None:
    one = Evidence("holds", 3, (Domain("words", Method.EXHAUSTIVE, 3),), seconds=1.0, notes=("n",))
    two = Evidence("holds", 4, (Domain("words", Method.SAMPLED, 4), Domain("words", Method.EXHAUSTIVE, 1)), seconds=2.0)
    found = combine({"one": one, "two": two})
    assert found.methods == ("exhaustive", "sampled")
    assert (found.cases, found.seconds) == (7, 3.0)
    assert (found.domains, found.quantities, found.notes) == ((), (), ())
    assert found.parts == {"one": one, "two": two}
    nested = combine({"whole": found, "third": part("holds")})
    assert [path for path, _ in nested.leaves()] == [("whole", "one"), ("whole", "two"), ("third",)]
    assert nested.methods == ("exhaustive", "sampled")


def test_proved_is_a_method_where_both_links_are_and_real_arithmetic_has_its_own_name() -> None:
    run = Domain("words", Method.EXHAUSTIVE, 3, arithmetic="reals")
    margins, states = Link("weights", Scope.MAX_LENGTH, 9, "margins"), Link("spec", Scope.EVERY_LENGTH, lemma="states")
    both = Evidence("holds", 3, (run,), links=(margins, states), proof={"holds": True})
    assert both.methods == ("exhaustive in reals", "proved")
    assert both.headline == margins
    assert Evidence.from_json(both.to_json()) == both
    half = replace(both, links=(margins, Link("spec", Scope.EXHAUSTIVE, 2)))
    assert half.methods == ("exhaustive in reals",)
    assert half.headline is not None
    assert half.headline.name == "spec"


def test_a_quantity_is_met_by_its_relation() -> None:
    assert [Quantity("x", 2, 2, relation).met for relation in ("=", "<=", ">=", None)] == [True, True, True, None]
    assert [Quantity("x", 3, 2, relation).met for relation in ("=", "<=", ">=")] == [False, False, True]
    assert not Quantity("x", math.nan, 2, "<=").met
    assert not Quantity("x", None, 2, "<=").met
    assert Quantity("x", (1, 2), [1, 2], "=").met
    with pytest.raises(InputError, match="a relation is one of"):
        Quantity("x", 1, 2, "<")  # type: ignore[arg-type]


def test_criteria_decide_and_a_premise_leaves_it_open() -> None:
    good, bad = Criterion.judged("a", [1.0]), Criterion.judged("b", [1.0, 3.0, math.nan], at_most=2)
    premise = Criterion.judged("c", [5.0], at_most=2, premise=True)
    run = Domain("training runs", Method.TRAINED, 3)
    assert judged([good], [run]).verdict == "holds"
    failed = judged([good, bad], [run], seed=3)
    assert (failed.verdict, failed.cases, failed.seed, failed.methods) == ("fails", 4, 3, ("trained",))
    assert failed.witness == {"criterion": "b", "seeds outside the range": [1, 2], "their values": [3.0, math.nan]}
    assert judged([bad, premise], [run]).verdict == "undecided"
    with pytest.raises(InputError, match="no values"):
        Criterion.judged("d", [])


def test_json_is_plain_and_leaves_defaults_out() -> None:
    found = combine({"one": part("fails", quantities=quantities({"x": 1.5}, {"x": None}), seed=3, notes=("a note",))})
    data = found.to_json()
    assert json.loads(json.dumps(data)) == data
    assert data["verdict"] == "fails"
    assert data["witness"] == {"subject": "one", "word": ["a"]}
    one: Any = data["parts"]
    assert one["one"]["quantities"] == [{"name": "x", "measured": None, "declared": 1.5, "relation": "="}]
    assert (one["one"]["seed"], one["one"]["notes"]) == (3, ["a note"])
    assert part("holds").to_json() == {"verdict": "holds", "cases": 10, "seconds": 0.5}


def test_fields_that_are_missing_or_unknown_are_refused() -> None:
    with pytest.raises(InputError, match=r"Evidence as JSON has no field 'domain', lacks the field 'verdict'"):
        Evidence.from_json({"domain": "all words"})
    with pytest.raises(InputError, match=r"Domain as JSON lacks the field 'count', lacks the field 'kind'"):
        Evidence.from_json({"verdict": "holds", "domains": [{"method": "sampled"}]})


NAMES = st.text(max_size=8).filter(lambda text: text not in NON_FINITE)
FLOATS = st.floats(allow_nan=True, allow_infinity=True)
NUMPY = st.one_of(
    FLOATS.map(np.float64),
    st.integers(-(2**31), 2**31).map(np.int64),
    st.lists(FLOATS, max_size=3).map(np.array),
    st.booleans().map(np.bool_),
)
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), FLOATS, NAMES, NUMPY)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=6,
)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=3)
COUNTS = st.integers(0, 10**9)
DOMAINS = st.builds(
    Domain,
    kind=st.text(max_size=8),
    method=st.sampled_from(Method),
    count=st.none() | COUNTS,
    shortest=st.none() | COUNTS,
    longest=st.none() | COUNTS,
    arithmetic=st.sampled_from(["float64", "reals"]),
    settings=RECORDS,
)
QUANTITIES = st.builds(
    Quantity,
    name=st.text(max_size=8),
    measured=VALUES,
    declared=VALUES,
    relation=st.sampled_from([None, "=", "<=", ">="]),
    interval=st.none() | st.tuples(FLOATS, FLOATS),
)
CRITERIA = st.builds(
    Criterion.judged,
    st.text(max_size=8),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4) | st.lists(FLOATS, min_size=1, max_size=1),
    at_least=st.just(-math.inf) | st.floats(-10, 10),
    at_most=st.just(math.inf) | st.floats(-10, 10),
    share=st.floats(0, 1),
    premise=st.booleans(),
)
FIELDS: dict[str, Any] = {
    "verdict": st.sampled_from(["holds", "fails", "undecided"]),
    "cases": COUNTS | COUNTS.map(np.int64),
    "domains": st.lists(DOMAINS, max_size=2),
    "quantities": st.lists(QUANTITIES, max_size=2),
    "criteria": st.lists(CRITERIA, max_size=2),
    "witness": st.none() | RECORDS,
    "seed": st.none() | COUNTS,
    "seconds": st.floats(0, 1e6),
    "notes": st.lists(st.text(max_size=8), max_size=2),
    "proof": st.none() | RECORDS,
    "figure": RECORDS,
}
TREES = st.recursive(
    st.builds(Evidence, **FIELDS),
    lambda inner: st.builds(Evidence, **FIELDS, parts=st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=4,
)


@given(TREES)
def test_evidence_to_json_text_and_back_is_the_identity(evidence: Evidence) -> None:
    text = json.dumps(evidence.to_json(), allow_nan=False)
    again = Evidence.from_json(json.loads(text))
    assert again == evidence
    assert json.dumps(again.to_json(), allow_nan=False) == text


@each("confidence", [0.9, 0.95, 0.99])
@each(("failures", "cases"), [(0, 1), (0, 64), (0, 10_000), (1, 10), (3, 200), (199, 200), (5, 5)])
def test_the_bound_is_the_exact_one_sided_interval(failures: int, cases: int, confidence: float) -> None:
    exact = binomtest(failures, cases, alternative="less").proportion_ci(confidence, method="exact").high
    assert upper_failure_rate(failures, cases, confidence) == pytest.approx(exact, rel=1e-9)
