"""Rows of an atlas without any check: evidence of each kind, made up or recorded, for tests of pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from vitrify.certification.evidence import Domain, Evidence, Method, Quantity, Verdict, combine, quantities
from vitrify.claims.catalogue import Outcome, listing
from vitrify.report.evidence import AtlasEntry, recorded

RECORDED = Path(__file__).parents[1] / "docs" / "evidence"
AUTOMATA = "any_automaton_runs_in_log_depth"
LOOPED = "one_layer_in_a_loop_runs_any_automaton"
DEPTH = "deeper_transformers_learn_longer_permutation_word_problems"
TABLE = "each_architecture_learns_what_its_theorems_allow"
MAP = "the_published_map_of_language_classes_follows_from_the_claims"
HEADLINES = {headline.name: headline for headline in listing()}
SWAP = "<b>&amp; $x$</b>"  # a name that must not become markup
SIZES = {"layers": 7, "d_model": 24, "exact": True}
QUANTITIES = quantities(SIZES, SIZES | {"units": [3, 4]})


def part(cases: int, *quantities: Quantity, **fields: Any) -> Evidence:
    """Evidence of one subject, as a check of a built net gives it."""
    domains = (Domain("words", Method.EXHAUSTIVE, cases, 0, 9), Domain("random words", Method.SAMPLED, 4, 9, 9))
    return Evidence("holds", cases, domains, quantities or QUANTITIES, seed=0, **fields)


def outcome(name: str, *, verdict: Verdict = "holds", witness: Any = None, **changed: Any) -> Outcome:
    """An outcome of two subjects, the first one with a colon in its name."""
    headline = HEADLINES[name]
    parts = changed.pop("parts", {"S5: softmax": part(12), SWAP: part(3456, notes=("a note",))})
    evidence = replace(combine(parts), verdict=verdict, witness=witness, seconds=changed.pop("seconds", 2.5))
    rejected = Evidence("fails", 7, witness={"word": ["a", "b"], "expected": "1"})
    known = Outcome(
        name,
        str(headline.fields["id"]),
        str(headline.fields["standing"]),
        headline.title,
        "quick",
        evidence,
        True,
        certificates={"S5: softmax": part(12)},
        saboteurs=dict.fromkeys(parts, rejected),
        measured_on={"device": "CPU", "date": "2026-11-16", "code": "0" * 16, "python": "3.11", "numpy": "2"},
    )
    return replace(known, **changed)


def live(name: str, **changed: Any) -> AtlasEntry:
    """A claim that was checked, it seems."""
    return AtlasEntry(HEADLINES[name], "live", outcome(name, **changed))


def kept(name: str, verdict: Verdict) -> AtlasEntry:
    """A claim with the evidence that the repository has of it, and another verdict."""
    known = recorded(HEADLINES[name], RECORDED)
    assert known is not None
    return AtlasEntry(
        HEADLINES[name], "recorded", replace(known, evidence=replace(known.evidence, verdict=verdict, witness=None))
    )


def of_every_kind() -> list[AtlasEntry]:
    """One row of each kind, in the order of the atlas."""
    witness = {"subject": SWAP, "word": ["<", "b"], "actual": float(1)}
    return [
        live(AUTOMATA),
        live("parity_takes_a_diagonal_recurrence_a_negative_eigenvalue", verdict="fails", witness=witness),
        live("two_layers_compose_functions", saboteur_rejected=False),
        AtlasEntry(HEADLINES["one_layer_errs_on_composition"], "waiting", why="It is being checked."),
        AtlasEntry(
            HEADLINES["state_bits_bound_recall_and_copying"], "broken", why="The check did not come to an end: <oops>."
        ),
        live(MAP),
        AtlasEntry(HEADLINES["in_context_markov_chains_are_learned_in_stages"], "absent", why="It is not here."),
        kept(TABLE, "holds"),
        kept(DEPTH, "holds"),
    ]
