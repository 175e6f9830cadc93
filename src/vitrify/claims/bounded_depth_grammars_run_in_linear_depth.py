r"""A bounded-depth grammar runs on a transformer whose depth is linear in the grammar's, with the exact next words.

Statement: for every non-recursive grammar of depth $d$ there is a transformer of $O(d)$ layers that gives, after every
beginning of a sentence, exactly the words that may come next; its units grow with tree shapes times rules.
Why: in a fixed tree shape every child ends at a fixed distance, so recognition bottom-up and prediction top-down are
conjunctions over what a few heads fetch, level by level.
Checked: every beginning of every sentence of random ambiguous grammars with up to 42 shapes, arity 3 and sentences of
unequal length, and of a random hierarchy; layers, heads, conjunctions and units against the formulas.
Source: Nandakumar et al. 2026, arXiv 2606.17522 [A]; the weights, and states that shapes share, are our own derivation.
Saboteur: one word is never offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import ATTENTIONS, with_sizes
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.grammar_shapes import grammar_shapes, sizes
from vitrify.kit import assemble
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.grammar import Grammar
from vitrify.spec.grammars import random_grammar, random_hierarchy


def subjects() -> Iterator[Subject]:
    """Random grammars and a random hierarchy; the kinds of attention take turns."""
    grammars: dict[str, Grammar] = {f"random grammar {seed}": random_grammar(seed, shapes=42) for seed in range(5)}
    grammars["random hierarchy"] = random_hierarchy(3, 2, 2, 3, seed=0)
    for place, (name, grammar) in enumerate(grammars.items()):
        attention = ATTENTIONS[place % 3]
        yield Subject(f"{name}, {attention}", grammar, assemble(grammar_shapes(grammar, attention=attention)))


def conjunctions(weights: Weights) -> int:
    """The units that stand for a rule, those that only cut noise left out."""
    rules = [row for units in weights.labels.units if units.name.startswith("and: ") for row in units.rows]
    return sum(not row.endswith("(cut)") for row in rules)


def check(subject: Subject) -> Evidence:
    """Exact sets on all beginnings, and sizes."""
    promised, ledger = sizes(subject.spec), Ledger.of(subject.weights)
    limit = f"layers at most {promised.pop('most_layers')}"
    declared = {**promised, limit: True}
    measured = {
        "layers": ledger.layers,
        "heads": ledger.heads,
        "conjunctions": conjunctions(subject.weights),
        "units": ledger.units,
        limit: ledger.layers <= int(limit.split()[-1]),
    }
    evidence = WordExamination(subject.weights.architecture, subject.spec).run(subject.weights)
    return with_sizes(evidence, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """One word is never offered."""
    bias = subject.weights.arrays["unembed.b_U"].copy()
    bias[0] = -1e6
    return replace(subject, weights=subject.weights.with_array("unembed.b_U", bias))


CLAIM = Claim(row="R3", status="proved", subjects=subjects, check=check, sabotage=sabotage)
