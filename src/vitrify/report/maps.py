"""The two maps: which class of transformers does what, by theorem, and which architecture learned what, by measurement.

Every cell says what it rests on. A cell is marked where what was measured does not agree with what was proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from vitrify.bounds.classes import MODELS, OUTSIDE, PROBLEMS, WITHIN, published_map
from vitrify.claims._agreement import WORDS, agreement
from vitrify.report.evidence import Row
from vitrify.report.mathematics import said

SURVEY = "the_published_map_of_classes_follows_from_its_rows"
ARCHITECTURES = "each_architecture_learns_what_its_theorems_allow"
SIGNS = {"yes": "holds", "no": "no", "no, if": "undecided", "not known here": "pending"}
SHORT = {
    "as predicted": "agrees",
    "no theorem": "",
    "allowed, not found": "differs",
    "found against a theorem": "against",
}


def survey(rows: Mapping[str, Row]) -> dict[str, Any]:
    """The map of classes: a line for each model, a column for each problem."""
    cells = {(cell.model, cell.problem): cell for cell in published_map()}
    lines = []
    for model in MODELS:
        line = []
        for problem in PROBLEMS:
            cell = cells[model, problem]
            rests = [_claim(rows, name, row) for name, row in zip(cell.claims, cell.rows, strict=True)]
            shaken = [claim for claim in rests if claim["verdict"] in ("fails", "undecided")]
            line.append({"cell": cell, "sign": SIGNS[cell.verdict], "rests": rests, "shaken": shaken})
        lines.append({"model": model, "within": WITHIN.get(model), "cells": line})
    return {"problems": PROBLEMS, "lines": lines, "outside": OUTSIDE, "claim": _claim(rows, SURVEY, "B9")}


def architectures(rows: Mapping[str, Row]) -> dict[str, Any]:
    """The table of architectures: accuracies at the trained size and at twice it, beside what a theorem says."""
    row = rows.get(ARCHITECTURES)
    claim = _claim(rows, ARCHITECTURES, "G4")
    if row is None or row.data is None or not row.data.get("shown"):
        return {"claim": claim, "lines": []}
    (found,) = row.data["shown"].values()
    by_row: dict[str, list[dict[str, Any]]] = {}
    for other in rows.values():
        by_row.setdefault(other.row, []).append(_claim(rows, other.name, other.row))
    lines = []
    for at, name in enumerate(found["architectures"]):
        cells = [_cell(found, at, task, by_row) for task in range(len(found["tasks"]))]
        lines.append({"name": name, "parameters": found["parameters"][name], "cells": cells})
    tasks = [
        {"name": task, "short": short, "long": long, "beyond": beyond}
        for task, (short, long), beyond in zip(found["tasks"], found["lengths"], found["beyond"], strict=True)
    ]
    return {"claim": claim, "lines": lines, "tasks": tasks, "seeds": found["seeds"], "budget": found["budget"]}


def _cell(found: Mapping[str, Any], at: int, task: int, by_row: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """One architecture on one task."""
    values = found["accuracy"][at][task]  # [seed][size]
    sizes = [sorted(seed[size] for seed in values) for size in (0, 1)]
    judged = int(found["beyond"][task])
    predicted = found["predicted"][at][task]
    verdict = agreement(median(sizes[judged]), predicted)
    theorem = None
    if predicted:
        can, row = predicted
        theorem = {"row": row, "says": WORDS.get(row) or ("can" if can else "can't"), "claims": by_row.get(row, [])}
    return {
        "accuracy": [{"middle": f"{median(own):.2f}", "range": f"{own[0]:.2f} to {own[-1]:.2f}"} for own in sizes],
        "share": round(median(sizes[judged]), 2),
        "judged": judged,
        "verdict": verdict,
        "sign": SHORT[verdict],
        "theorem": theorem,
    }


def _claim(rows: Mapping[str, Row], name: str, row: str) -> dict[str, Any]:
    """A claim as a cell mentions it; without an address where it has no page."""
    known = rows.get(name)
    return {
        "row": row,
        "said": said(name),
        "address": f"claims/{name}.html" if known else None,
        "verdict": known.verdict if known else "not on this site",
    }
