"""Rows of an atlas without any check: evidence of each kind, made up or recorded, for tests of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitrify.claims.catalogue import listing
from vitrify.report.evidence import Row, recorded

RECORDED = Path(__file__).parents[1] / "docs" / "evidence"
AUTOMATA = "any_automaton_runs_in_log_depth"
DEPTH = "depth_pays_on_words_of_permutations"
TABLE = "each_architecture_learns_what_its_theorems_allow"
MAP = "the_published_map_of_classes_follows_from_its_rows"
HEADLINES = {headline.name: headline for headline in listing()}
SWAP = "<b>&amp; $x$</b>"  # a name that must not become markup


def evidence(name: str, **changed: Any) -> dict[str, Any]:
    """Evidence of two subjects, the second one with a colon in its name, as a check of a built net gives it."""
    headline = HEADLINES[name]
    subjects = {"S5: softmax": 12, SWAP: 3456}
    declared = {"layers": 7, "d_model": 24, "exact": True}
    rejected = {"verdict": "fails", "witness": {"word": ["a", "b"], "expected": "1"}, "differs": {}, "notes": []}
    data: dict[str, Any] = {
        "name": name,
        **{key: headline.fields[key] for key in ("row", "status")},
        "title": headline.title,
        "scale": "quick",
        "verdict": "holds",
        "method": "exhaustive+sampled",
        "domain": "; ".join(f"{subject}: all words" for subject in subjects),
        "cases": sum(subjects.values()),
        "witness": None,
        "declared": {f"{subject}: {key}": value for subject in subjects for key, value in declared.items()},
        "measured": {
            f"{subject}: {key}": value for subject in subjects for key, value in (declared | {"units": [3, 4]}).items()
        },
        "seed": 0,
        "seconds": 2.5,
        "notes": [f"{SWAP}: a note"],
        "proof": None,
        "saboteur_rejected": True,
        "certificates": {"S5: softmax": {"method": "exhaustive", "cases": 12, "notes": []}},
        "subjects": {
            subject: {"verdict": "holds", "method": "exhaustive", "domain": "all words", "cases": cases}
            | {"saboteur": rejected}
            for subject, cases in subjects.items()
        },
        "measured on": {"device": "CPU", "date": "2026-11-16", "code": "0" * 16, "python": "3.11", "numpy": "2"},
    }
    return data | changed


def live(name: str, **changed: Any) -> Row:
    """A claim that was checked, it seems."""
    return Row(HEADLINES[name], "live", evidence(name, **changed))


def kept(name: str, **changed: Any) -> Row:
    """A claim with the evidence that the repository has of it."""
    data = recorded(HEADLINES[name], RECORDED)
    assert data is not None
    return Row(HEADLINES[name], "recorded", data | changed)


def of_every_kind() -> list[Row]:
    """One row of each kind, in the order of the atlas."""
    witness = {"subject": SWAP, "word": ["<", "b"], "found": float(1)}
    return [
        live(AUTOMATA),
        live("parity_takes_a_diagonal_recurrence_a_negative_eigenvalue", verdict="fails", witness=witness),
        live("two_layers_compose_functions", saboteur_rejected=False),
        Row(HEADLINES["one_layer_errs_on_composition"], "waiting", why="It is being checked."),
        Row(
            HEADLINES["state_bits_bound_recall_and_copying"], "broken", why="The check did not come to an end: <oops>."
        ),
        live(MAP),
        Row(HEADLINES["in_context_chains_are_learned_in_stages"], "absent", why="It is not here."),
        kept(TABLE, verdict="holds", witness=None),
        kept(DEPTH, verdict="holds", witness=None),
    ]
