r"""The published map of what transformers can and cannot recognise follows from rows of this catalogue.

Statement: hard attention is inside AC⁰, softmax with $O(\log n)$ bits inside TC⁰, and AC⁰ ⊂ ACC⁰ ⊆ TC⁰ ⊆ NC¹; so hard
attention does neither PARITY nor MAJORITY nor Dyck-1 (unconditional), and softmax of constant depth does not do the
word problem of $S_5$ unless TC⁰ = NC¹ (conditional); while star-free languages and bounded brackets run on hard
attention, counting languages on softmax, PARITY on softmax with a vanishing lead (a rate), and $S_5$ in $\log n$
layers.
Why: an upper bound for a model and a problem outside of that class make a no; a construction makes a yes.
Checked: the table is derived from three lists of facts; every fact names its claim, which must be in the catalogue in
the row that the fact gives; no cell may follow as a yes and as a no (under a condition, too: that would decide whether
TC⁰ = NC¹); the number of cells of each kind, of which four are not known here.
The facts about circuits themselves are cited, not checked: that PARITY is outside of AC⁰ is no statement about a size.
Source: Strobl, Merrill, Weiss, Chiang & Angluin 2024, arXiv 2311.00208 [S]: the survey; the derivation here is our own.
Saboteur: softmax is put inside AC⁰, which its counting languages contradict; in the other subject a claim is renamed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from vitrify.bounds.classes import Map, Verdict, contradictions, published_map
from vitrify.certify.evidence import Evidence
from vitrify.claims.catalogue import Claim, Subject, listing

CELLS: dict[Verdict, int] = {"yes": 17, "no": 8, "no, if": 1, "not known here": 4}


def subjects() -> Iterator[Subject]:
    """The facts, examined for contradictions and for what they point to."""
    yield Subject("cells", data={"facts": Map()})
    yield Subject("pointers", data={"facts": Map()})


def check(subject: Subject) -> Evidence:
    """The map follows, nothing contradicts it, and every fact points to a claim."""
    facts: Map = subject.data["facts"]
    table = published_map(facts)
    clash = contradictions(facts)
    known = {(headline.fields["row"], headline.name) for headline in listing()}
    pointed = [(fact.row, fact.claim) for fact in facts.contained] + [(fact.row, fact.claim) for fact in facts.built]
    lost = [claim for row, claim in pointed if (row, claim) not in known]
    count = Counter(cell.verdict for cell in table)
    declared: dict[str, Any] = {**dict(CELLS.items()), "contradictions": 0, "facts without a claim": 0}
    measured: dict[str, Any] = {verdict: count[verdict] for verdict in CELLS}
    measured |= {"contradictions": len(clash), "facts without a claim": len(lost)}
    wrong = {name: (declared[name], measured[name]) for name in declared if declared[name] != measured[name]}
    return Evidence(
        verdict="fails" if wrong else "holds",
        method="derived",
        domain=f"{len(table)} cells",
        cases=len(table),
        witness={name: f"declared {a}, measured {b}" for name, (a, b) in wrong.items()} or None,
        declared=declared,
        measured=measured | {f"{cell.model} / {cell.problem}": str(cell) for cell in table},
        notes=("asymptotic throughout; only the cells that say so are conditional or a rate",),
    )


def sabotage(subject: Subject) -> Subject:
    """Softmax inside AC⁰; or a claim that is not there."""
    facts: Map = subject.data["facts"]
    if subject.name == "pointers":
        renamed = tuple(replace(fact, claim=fact.claim + "_not") for fact in facts.built[:1])
        return replace(subject, data={"facts": replace(facts, built=(*renamed, *facts.built[1:]))})
    small = tuple(replace(fact, inside="AC⁰") for fact in facts.contained)
    return replace(subject, data={"facts": replace(facts, contained=small)})


CLAIM = Claim(row="B9", status="cited", subjects=subjects, check=check, sabotage=sabotage)
