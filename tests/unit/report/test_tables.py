"""Evidence as tables: quantities and criteria of every subject, what was declared first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atlas_rows import AUTOMATA, HEADLINES, QUANTITIES, RECORDED, SWAP, outcome, part
from vitrify.certification.domains import Scope
from vitrify.certification.evidence import Criterion, Link, Quantity
from vitrify.report.evidence import recorded
from vitrify.report.tables import by_subject, columns, items, line, tables
from vitrify.report.wording import certified_briefly


def test_subjects_keep_their_names_whatever_is_in_them() -> None:
    parts = by_subject(outcome(AUTOMATA).evidence)
    assert list(parts) == ["S5: softmax", SWAP]
    assert [item.name for item in parts[SWAP]] == ["layers", "d_model", "exact", "units"]
    assert [item.met for item in parts[SWAP]] == [True, True, True, None]
    assert tables(outcome(AUTOMATA))["notes"] == {SWAP: ["a note"]}


def test_what_was_declared_comes_first() -> None:
    evidence = part(1, Quantity("stated", 1), *QUANTITIES[:1])
    assert [item.name for item in items(evidence)] == ["layers", "stated"]


def test_what_many_seeds_gave_is_met_if_enough_of_them_did() -> None:
    values = [0.2, 0.3, 0.4, 0.2, 0.3, 0.4, 0.2]
    enough = Criterion.judged("x", [*values, 0.0], at_least=0.1, share=7 / 8)
    few = Criterion.judged("x", [*values[1:], 0.0, 0.0], at_least=0.1, share=7 / 8)
    assert [line(each)["met"] for each in (enough, few)] == [True, False]
    assert line(enough)["declared"] == "at least 0.1, 7 of 8"
    assert line(enough)["measured"].endswith("; 7 of 8")
    assert line(enough, brief=True)["measured"] == line(enough)["measured"].partition("], ")[0] + "]"
    assert line(Quantity("x", 2, 1, ">="))["declared"] == "at least 1"
    assert not line(Quantity("x", 2, 1, ">="))["same"]


def test_both_links_of_all_certified_nets_are_counted_and_only_two_proofs_count_as_proved() -> None:
    long, short = Link("weights", Scope.EVERY_LENGTH, None, "margins"), Link("spec", Scope.MAX_LENGTH, 8, "states")
    nets = {
        "both": replace(part(1), links=(long, short)),
        "one": replace(part(1), links=(long, replace(short, scope=Scope.SAMPLED))),
        "none": replace(part(1), links=(replace(long, scope=Scope.SAMPLED), replace(short, scope=Scope.SAMPLED))),
    }
    seen = dict(tables(replace(outcome(AUTOMATA), certificates=nets))["certified"])
    assert seen == {
        "weights = ideal network": "proved for every length: 2 nets; sampled: 1 net",
        "ideal network = spec": "proved up to the maximum length: 1 net; sampled: 2 nets",
    }
    assert certified_briefly(nets) == "both links proved: 1 of 3 nets"
    assert certified_briefly({}) == ""


def test_recorded_evidence_of_every_claim_is_a_tree() -> None:
    known = [recorded(headline, RECORDED) for headline in HEADLINES.values()]
    seen = [each for each in known if each is not None]
    assert len(seen) >= 20
    for each in seen:
        parts = by_subject(each.evidence)
        assert set(parts) == set(each.evidence.parts) == set(each.evidence.figures)
        assert all(isinstance(item, Criterion) for part in parts.values() for item in part if item.met is not None)
        assert each.evidence.methods
        assert set(each.evidence.methods) <= {"trained", "integrated", "exhaustive", "sampled"}


def test_a_table_needs_several_subjects_few_quantities_and_no_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = by_subject(outcome(AUTOMATA).evidence)
    assert columns(parts) == ["layers", "d_model", "exact"]
    assert columns(dict(list(parts.items())[:1])) is None
    assert columns({"a": [Quantity("x", "one", "one", "=")], "b": [Quantity("x", 1, 1, "=")]}) is None
    assert columns({name: [Criterion.judged("x", [1.0])] for name in "ab"}) is None
    apart = {name: [Quantity(f"{name}{n}", 1, 1, "=") for n in range(2)] for name in "abc"}
    assert columns(apart) is None
    monkeypatch.setattr("vitrify.report.tables.MAX_COLUMNS", 2)
    assert columns(parts) is None
