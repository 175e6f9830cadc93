"""The evidence of a claim as tables: quantities and criteria of every subject, declared beside measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vitrify.certification.evidence import Criterion, Evidence, Quantity
from vitrify.claims.catalogue import Outcome
from vitrify.encoding import JsonMapping, JsonObject
from vitrify.report import wording
from vitrify.report.wording import number, value

MAX_COLUMNS = 12  # quantities of a table with a row for each subject
MAX_VALUES = 4  # of a criterion over several subjects

Item = Quantity | Criterion


def items(evidence: Evidence) -> list[Item]:
    """Return the quantities and criteria of an evidence itself, those that were declared first."""
    return sorted([*evidence.quantities, *evidence.criteria], key=lambda item: item.met is None)


def line(item: Item, *, brief: bool = False) -> JsonObject:
    """Return a quantity or criterion in words; with `brief`, a criterion by its mean and interval alone."""
    if isinstance(item, Criterion):
        (declared, measured), same = wording.criterion(item), False
        measured = wording.mean(item) if brief else measured
    else:
        declared, measured = wording.quantity(item)
        same = item.relation is not None and bool(item.declared == item.measured)
    return {"name": item.name, "declared": declared, "measured": measured, "met": item.met, "same": same}


def columns(parts: Mapping[str, Sequence[Item]]) -> list[str] | None:
    """Return the names of the declared quantities, if they make a table with a row for each subject; else None.

    They do if there are several subjects, few quantities, which most subjects have, and no criteria or texts.
    """
    declared = [item for each in parts.values() for item in each if item.met is not None]
    names = list(dict.fromkeys(item.name for item in declared))
    wordy = any(
        isinstance(item, Criterion) or isinstance(item.declared, str) or isinstance(item.measured, str)
        for item in declared
    )
    fits = len(parts) > 1 and len(names) <= MAX_COLUMNS and 2 * len(declared) >= len(names) * len(parts)
    return names if fits and not wordy else None


def by_subject(evidence: Evidence) -> dict[str, list[Item]]:
    """Return the quantities and criteria of each subject that has any."""
    return {name: items(part) for name, part in evidence.parts.items() if part.quantities or part.criteria}


def criteria(evidence: Evidence) -> list[JsonObject]:
    """Return every declared quantity and criterion once: its threshold and what was measured, over all subjects."""
    groups: dict[str, list[JsonObject]] = {}
    for item in [*items(evidence), *(item for each in by_subject(evidence).values() for item in each)]:
        if item.met is not None:
            groups.setdefault(item.name, []).append(line(item, brief=True))
    return [
        {
            "name": name,
            "threshold": _some(each["declared"] for each in lines),
            "measured": _some(each["measured"] for each in lines),
            "met": f"{sum(each['met'] for each in lines)} of {len(lines)}" if len(lines) > 1 else None,
            "all": all(each["met"] for each in lines),
        }
        for name, lines in groups.items()
    ]


def _some(texts: Iterable[str]) -> str:
    """Return different texts in a line; of many, the first ones and their number."""
    different = list(dict.fromkeys(texts))
    more = [f"… ({len(different)} in all)"] if len(different) > MAX_VALUES else []
    return "; ".join(different[:MAX_VALUES] + more)


def tables(outcome: Outcome) -> JsonObject:
    """Return the evidence of a claim as tables: with a row for each subject, or a table for each."""
    evidence = outcome.evidence
    parts = by_subject(evidence)
    together = columns(parts)
    cells = {name: {item.name: line(item) for item in each if item.met is not None} for name, each in parts.items()}
    beyond = {name: [line(item) for item in each if item.met is None] for name, each in parts.items()}
    remarks = {name: wording.remarks(part) for name, part in {"": evidence, **evidence.parts}.items()}
    return {
        "columns": together,
        "cells": cells if together else {},
        "apart": {} if together else {name: [line(item) for item in each] for name, each in parts.items()},
        "beyond": {name: lines for name, lines in beyond.items() if lines and together},
        "witness": pairs(evidence.witness),
        "notes": {name: each for name, each in remarks.items() if each},
        "subjects": {name: _examined(part) for name, part in evidence.parts.items()},
        "certified": wording.certified(outcome.certificates),
        "certificates": {name: _certificate(each) for name, each in outcome.certificates.items()},
        "rejected": {
            name: {"verdict": each.verdict, "witness": pairs(each.witness), "differs": list(map(line, items(each)))}
            for name, each in outcome.saboteurs.items()
        },
    }


def _examined(part: Evidence) -> JsonObject:
    return {
        "verdict": part.verdict,
        "method": wording.methods(part),
        "cases": number(part.cases),
        "domains": wording.domains(part),
    }


def _certificate(evidence: Evidence) -> list[tuple[str, str]]:
    rows = [("method", wording.methods(evidence)), *wording.links(evidence), ("cases", number(evidence.cases))]
    rows += [("domain", text) for text in wording.domains(evidence)]
    return rows + wording.lines(evidence) + [("note", text) for text in wording.remarks(evidence)]


def pairs(data: JsonMapping | None) -> list[tuple[str, str]]:
    """Return the entries of a mapping, each in words."""
    return [(key, value(each)) for key, each in (data or {}).items()]
