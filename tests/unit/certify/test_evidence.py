"""Evidence: combining verdicts, plain JSON, and the interval that a sample supports."""

from __future__ import annotations

import json

import pytest
from scipy.stats import binomtest

from vitrify.certify.evidence import Evidence, Verdict, combine, upper_failure_rate


def part(verdict: Verdict, **fields: object) -> Evidence:
    witness = {"word": ["a"]} if verdict == "fails" else None
    return Evidence(verdict, "exhaustive", "all words", 10, witness, seconds=0.5, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
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


def test_quantities_keep_their_subject_and_numbers_add_up() -> None:
    one = Evidence("holds", "exhaustive", "short", 3, declared={"x": 1}, measured={"x": 2}, seconds=1.0, notes=("n",))
    two = Evidence("holds", "sampled+exhaustive", "long", 4, declared={"x": 5}, measured={"y": 6}, seconds=2.0)
    found = combine({"one": one, "two": two})
    assert found.method == "exhaustive+sampled"
    assert found.domain == "one: short; two: long"
    assert found.cases == 7
    assert found.seconds == 3.0
    assert found.declared == {"one: x": 1, "two: x": 5}
    assert found.measured == {"one: x": 2, "two: y": 6}
    assert found.notes == ("one: n",)


def test_json_is_plain() -> None:
    found = combine({"one": part("fails", declared={"x": 1.5}, measured={"x": None}, seed=3, notes=("a note",))})
    data = found.to_json()
    assert json.loads(json.dumps(data)) == data
    assert data["verdict"] == "fails"
    assert data["witness"] == {"subject": "one", "word": ["a"]}
    assert data["seed"] == 3
    assert data["notes"] == ["one: a note"]
    assert part("holds").to_json()["witness"] is None


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(("failures", "cases"), [(0, 1), (0, 64), (0, 10_000), (1, 10), (3, 200), (199, 200), (5, 5)])
def test_the_bound_is_the_exact_one_sided_interval(failures: int, cases: int, confidence: float) -> None:
    exact = binomtest(failures, cases, alternative="less").proportion_ci(confidence, method="exact").high
    assert upper_failure_rate(failures, cases, confidence) == pytest.approx(exact, rel=1e-9)
