r"""The published map of what transformers can and cannot recognize follows from claims of this catalogue.

Statement: Hard attention is inside AC⁰, softmax attention with $O(\log n)$ bits inside TC⁰, and AC⁰ ⊂ ACC⁰ ⊆ TC⁰ ⊆ NC¹.
So hard attention recognizes neither PARITY nor MAJORITY nor Dyck-1 (unconditional), and softmax of constant depth does
not recognize the word problem of $S_5$ unless TC⁰ = NC¹ (conditional). Star-free languages and bounded brackets run on
hard attention, counting languages on softmax, PARITY on softmax with a vanishing margin, and $S_5$ in $O(\log n)$
layers.
Why: A model inside a class and a problem outside of it make a "no"; a construction makes a "yes".
Checked: The table of five models and six problems is derived from three lists of facts. Every fact names a claim that
exists in this catalogue under that id; no cell is derived both as yes and as no, conditional ones included; the number
of cells of each kind is as declared, four of them "not known here".
Not checked: The facts about circuit classes (such as PARITY ∉ AC⁰): these are cited. The claims that a cell points to
check instances of a size, while a cell is about all lengths. The survey's table has more models (precision, masks,
position codes) than the five here.
Source: Strobl, Merrill, Weiss, Chiang & Angluin 2024, arXiv 2311.00208 [S]; the derivation here is our own.
Saboteur: Softmax is put inside AC⁰, which its counting languages contradict; in the other subject a claim is renamed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from vitrify.bounds.classes import Built, Contained, Map, Verdict, contradictions, published_map
from vitrify.certification.evidence import Domain, Evidence, Method, quantities
from vitrify.claims.catalogue import Claim, Subject, Subjects, listing

CELLS: dict[Verdict, int] = {"yes": 17, "no": 8, "no, if": 1, "not known here": 4}


def subjects() -> Subjects:
    yield Subject("cells", data={"facts": Map()})
    yield Subject("pointers", data={"facts": Map()})


def check(subject: Subject) -> Evidence:
    facts: Map = subject.data["facts"]
    table = published_map(facts)
    clash = contradictions(facts)
    known = {(headline.fields["id"], headline.name) for headline in listing()}
    stated: list[Contained | Built] = [*facts.contained, *facts.built]
    lost = [fact for fact in stated if (fact.claim_id, fact.claim) not in known]
    count = Counter(cell.verdict for cell in table)
    declared: dict[str, object] = {**dict(CELLS.items()), "contradictions": 0, "facts without a claim": 0}
    measured: dict[str, object] = {verdict: count[verdict] for verdict in CELLS}
    measured |= {"contradictions": len(clash), "facts without a claim": len(lost)}
    notes = ("asymptotic throughout; only the cells that say so are conditional or a rate",)
    domain = Domain("cells of the map", Method.DERIVED, len(table))
    cells = {f"{cell.model} / {cell.problem}": str(cell) for cell in table}
    return Evidence("holds", len(table), (domain,), notes=notes).adding(*quantities(declared, measured | cells))


def sabotage(subject: Subject) -> Subject:
    facts: Map = subject.data["facts"]
    if subject.name == "pointers":
        renamed = tuple(replace(fact, claim=fact.claim + "_not") for fact in facts.built[:1])
        return replace(subject, data={"facts": replace(facts, built=(*renamed, *facts.built[1:]))})
    small = tuple(replace(fact, inside="AC⁰") for fact in facts.contained)
    return replace(subject, data={"facts": replace(facts, contained=small)})


CLAIM = Claim(subjects, check, sabotage, id="B9", standing="theorem", uncertified="about published statements")
