r"""A bounded-depth grammar runs on a transformer whose depth is linear in the grammar's, with the exact next words.

Statement: for every non-recursive grammar of depth $d$ there is a transformer of $O(d)$ layers that gives, after every
beginning of a sentence, exactly the words that may come next; its units grow with tree shapes times rules, or, where
shapes are too many, quadratically with the length of sentences.
Why: in a fixed tree shape every child ends at a fixed distance, so recognition bottom-up and prediction top-down are
conjunctions over what a few heads fetch, level by level. The same holds for a fixed width of each child, and widths,
unlike shapes, are never more than the words of a sentence.
Checked: every beginning of every sentence of random ambiguous grammars with up to 42 shapes, arity 3 and sentences of
unequal length, and of a random hierarchy, over shapes and over spans; short beginnings and random sentences of a
grammar of English phrases over spans; the numbers of conjunctions, units, heads and layers against the formulas.
Source: Nandakumar et al. 2026, arXiv 2606.17522 [A]; the weights, states that shapes share, and states over spans are
our own derivation.
Saboteur: one conjunction, which some beginning of a sentence needs, never holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vitrify.certify.evidence import Evidence
from vitrify.certify.examine import examination
from vitrify.claims._nets import ATTENTIONS, with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.grammar_shapes import grammar_shapes
from vitrify.constructions.grammar_shapes import sizes as sizes_of_shapes
from vitrify.constructions.grammar_spans import grammar_spans
from vitrify.constructions.grammar_spans import sizes as sizes_of_spans
from vitrify.kit import Network, assemble
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.grammar import Grammar
from vitrify.spec.grammars import english, random_grammar, random_hierarchy

FORMS: dict[str, tuple[Callable[..., Network], Callable[[Grammar], dict[str, int]]]] = {
    "shapes": (grammar_shapes, sizes_of_shapes),
    "spans": (grammar_spans, sizes_of_spans),
}


def subjects() -> Iterator[Subject]:
    """Random grammars, a random hierarchy and English phrases; the kinds of attention take turns."""
    grammars: dict[str, Grammar] = {f"random grammar {seed}": random_grammar(seed, shapes=42) for seed in range(5)}
    grammars["random hierarchy"] = random_hierarchy(3, 2, 2, 3, seed=0)
    for place, (name, grammar) in enumerate(grammars.items()):
        attention = ATTENTIONS[place % 3]
        for form, (make, _) in FORMS.items():
            yield Subject(f"{name}, {form}, {attention}", grammar, assemble(make(grammar, attention=attention)))
    phrases = english(6)  # 5,280 shapes
    yield Subject("English phrases, spans, softmax", phrases, assemble(grammar_spans(phrases)))


def check(subject: Subject) -> Evidence:
    """Exact sets on all beginnings, and sizes."""
    promised = FORMS[subject.weights.about["construction"].split()[-1]][1](subject.spec)
    size = Ledger.of(subject.weights)
    limit = f"layers at most {promised.pop('most_layers')}"
    found = {
        "conjunctions": len(conjunctions(subject.weights)),
        "units": size.units,
        "heads": size.heads,
        "layers": size.layers,
    }
    declared = {**promised, limit: True}
    measured = {**found, limit: size.layers <= int(limit.split()[-1])}
    evidence = examination(subject.weights.architecture, subject.spec).run(subject.weights)
    return with_sizes(evidence, declared, measured)


def conjunctions(weights: Weights) -> list[tuple[int, list[int]]]:
    """The conjunctions: the block of each, and its unit in it, with the unit that cuts its noise where there is one."""
    found = []
    for units in weights.labels.units:
        if units.name.startswith("and: "):
            cut = [place for place, row in enumerate(units.rows, start=units.start) if row.endswith("(cut)")]
            plain = [place for place, row in enumerate(units.rows, start=units.start) if not row.endswith("(cut)")]
            found += [(units.block, [place, *cut[number : number + 1]]) for number, place in enumerate(plain)]
    return found


def sabotage(subject: Subject) -> Subject:
    """The last conjunction that some beginning of a sentence needs never holds."""
    questions = examination(subject.weights.architecture, subject.spec)
    for block, units in reversed(conjunctions(subject.weights)):
        broken = zeroed(subject, f"blocks.{block}.mlp.W_out", units)
        if "history" in (questions.run(broken.weights, hardest_first=True).witness or {}):
            return broken
    return subject


CLAIM = Claim(row="R3", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
