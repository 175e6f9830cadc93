"""Evidence taken apart by subject."""

from __future__ import annotations

from atlas_rows import AUTOMATA, HEADLINES, RECORDED, SWAP, evidence
from vitrify.report.evidence import recorded
from vitrify.report.promises import numbers
from vitrify.report.subjects import Quantity, by_subject, columns, notes_of


def test_names_with_colons_are_taken_apart_where_the_subject_ends() -> None:
    found = by_subject(evidence(AUTOMATA))
    assert list(found) == ["S5: softmax", SWAP]
    assert [each.name for each in found[SWAP]] == ["layers", "d_model", "exact", "units"]
    assert found[SWAP][0] == Quantity("layers", 7, 7, promised=True)
    assert found[SWAP][-1] == Quantity("units", None, [3, 4], promised=False)
    assert [each.kept for each in found[SWAP]] == [True, True, True, False]
    assert notes_of(evidence(AUTOMATA)) == {SWAP: ["a note"]}


def test_what_many_seeds_gave_is_kept_if_enough_of_them_did() -> None:
    asked = "at least 0.1, 7 of 8"
    enough, few = (Quantity("x", asked, f"0.3 [0.2, 0.4], from 0 to 1; {n} of 8", promised=True) for n in (7, 6))
    assert [(each.kept, each.missed) for each in (enough, few)] == [(True, False), (False, True)]
    words = Quantity("x", "at least 1", "2", promised=True)
    assert (words.kept, words.missed) == (False, False)


def test_a_domain_tells_subjects_where_evidence_lists_none() -> None:
    data = evidence(AUTOMATA, subjects={})
    assert list(by_subject(data)) == ["S5: softmax", SWAP]
    assert list(by_subject(data | {"domain": "S5: softmax: all"})) == ["S5: softmax", ""]


def test_recorded_evidence_of_every_claim_comes_apart() -> None:
    seen = 0
    for headline in HEADLINES.values():
        data = recorded(headline, RECORDED)
        if data:
            found = by_subject(data)
            seen += 1
            assert set(found) <= set(data["shown"])
            assert sum(map(len, found.values())) == len(data["measured"])
    assert seen >= 20


def test_a_table_needs_several_subjects_few_quantities_and_no_sentences() -> None:
    found = by_subject(evidence(AUTOMATA))
    assert columns(found, 3) == ["layers", "d_model", "exact"]
    assert columns(found, 2) is None
    assert columns(dict(list(found.items())[:1]), 3) is None
    wordy = {"a": [Quantity("x", "at most 1", "0.5", promised=True)], "b": [Quantity("x", 1, 1, promised=True)]}
    assert columns(wordy, 3) is None
    apart = {name: [Quantity(f"{name}{n}", 1, 1, promised=True) for n in range(2)] for name in "abc"}
    assert columns(apart, 9) is None


def test_quantities_that_tell_subjects_apart_are_drawn_first_and_truths_never() -> None:
    data = evidence(AUTOMATA)
    data["declared"] |= {f"{SWAP}: d_model": 30, "S5: softmax: errors": 0, f"{SWAP}: errors": 0}
    data["measured"] |= {f"{SWAP}: d_model": 31, "S5: softmax: errors": 0, f"{SWAP}: errors": 0}
    found = numbers(data)
    assert list(found) == ["d_model", "layers", "errors"]
    assert found["d_model"] == {"S5: softmax": (24, 24), SWAP: (30, 31)}
