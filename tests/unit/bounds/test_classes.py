"""The map of classes: what follows from the facts, and what would contradict them."""

from __future__ import annotations

from dataclasses import replace

from vitrify.bounds.classes import (
    DEEP,
    FIXED,
    HARD,
    MASKED,
    MODELS,
    PROBLEMS,
    SOFT,
    Built,
    Map,
    Outside,
    contradictions,
    markdown,
    published_map,
)


def verdict(model: str, problem: str, facts: Map | None = None) -> tuple[str, str]:
    (cell,) = [cell for cell in published_map(facts) if (cell.model, cell.problem) == (model, problem)]
    return cell.verdict, cell.kind


def test_the_map_has_a_cell_for_every_pair() -> None:
    assert [(cell.model, cell.problem) for cell in published_map()] == [(m, p) for m in MODELS for p in PROBLEMS]


def test_what_follows() -> None:
    assert verdict(HARD, "PARITY") == ("no", "unconditional")
    assert verdict(MASKED, "Dyck-1") == ("no", "unconditional")  # by way of the general case
    assert verdict(FIXED, "PARITY") == ("yes", "rate")
    assert verdict(SOFT, "MAJORITY") == ("yes", "unconditional")  # by way of the special case
    assert verdict(FIXED, "word problem of S5") == ("no, if", "conditional")
    assert verdict(SOFT, "word problem of S5") == ("not known here", "unconditional")
    assert verdict(DEEP, "word problem of S5") == ("yes", "unconditional")


def test_facts_that_contradict_each_other_are_found() -> None:
    facts = Map()
    assert not contradictions(facts)
    parity = Built(HARD, "PARITY", "R0", "nothing", "")
    (pair,) = contradictions(replace(facts, built=(*facts.built, parity)))
    assert [cell.verdict for cell in pair] == ["yes", "no"]
    wall = Built(FIXED, "word problem of S5", "R0", "nothing", "")
    (pair,) = contradictions(replace(facts, built=(*facts.built, wall)))
    assert [cell.verdict for cell in pair] == ["yes", "no, if"]
    outside = Outside("PARITY", "TC⁰", "nobody")  # PARITY is in ACC⁰
    assert contradictions(replace(facts, outside=(*facts.outside, outside)))


def test_what_is_outside_of_a_class_is_outside_of_smaller_ones_only() -> None:
    facts = replace(Map(), outside=(Outside("star-free", "ACC⁰", "nobody"),))
    assert verdict(HARD, "star-free", facts)[0] == "yes"
    assert contradictions(facts)[0][0].model in (HARD, MASKED)
    assert not [pair for pair in contradictions(facts) if pair[0].model == FIXED]


def test_the_table_shows_rows_and_conditions() -> None:
    text = markdown(published_map())
    assert "no (B8, conditional)" in text
    assert "yes (R11, a rate)" in text
    assert len(text.splitlines()) == 2 + len(MODELS)
