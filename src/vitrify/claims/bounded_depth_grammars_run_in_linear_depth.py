r"""A bounded-depth grammar runs on a transformer whose depth is linear in the grammar's, with the exact next words.

Statement: For every non-recursive grammar of depth $d$ there is a transformer with $O(d)$ layers that gives, after
every prefix of a sentence, the exact set of next words. In the construction over tree shapes its units grow with shapes
times rules, in the construction over spans (numbers of words of phrases) quadratically with the length of sentences.
Why: In a tree of known shape every child ends at a known distance before the end of its parent. So heads fetch what is
known about the children, and one unit per rule is their conjunction: first bottom-up for complete phrases, then
top-down for expected ones, level by level. Spans fix the distances too. Rules are read child by child, so there is one
conjunction per pair of spans: those of the children so far and of the next one.
Checked: Every prefix of every sentence of five random ambiguous grammars (up to 42 shapes, arity 3, sentences of
unequal length) and of a Random Hierarchy Model, in both constructions; each grammar with one of softmax, sparsemax and
hard attention. Short prefixes and random sentences of a grammar of English phrases (5,280 shapes), over spans only.
Conjunctions, units, heads and layers are compared with the formulas of the constructions.
Not checked: The published bounds on width and units with their constants; many shapes in the construction over shapes.
The layers, linear in $d$, are compared with a formula for each grammar; $d$ is not varied on its own.
Source: Nandakumar et al. 2026, arXiv 2606.17522 [A]; the weights, features shared by several shapes, and the
construction over spans are our own derivation.
Saboteur: One conjunction that some prefix needs is never true.
"""

from __future__ import annotations

from dataclasses import replace

from vitrify.certification.checking import net_check
from vitrify.claims._nets import ATTENTIONS, Evidence, Quantity, Weights, built, check_net, sized, zeroed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions import grammar_spans
from vitrify.constructions.grammar_shapes import most_conjunctions
from vitrify.spec.grammars.families import english, random_grammar, random_hierarchy
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.phrases import Phrases

FORMS = ("shapes", "spans")


def subjects() -> Subjects:
    grammars: dict[str, Grammar] = {f"random grammar {seed}": random_grammar(seed, shapes=42) for seed in range(5)}
    grammars["random hierarchy"] = random_hierarchy(3, 2, 2, 3, seed=0)
    for number, (name, grammar) in enumerate(grammars.items()):
        attention = ATTENTIONS[number % 3]
        for form in FORMS:
            yield built(f"{name}, {form}, {attention}", grammar, form, {"form": form}, attention=attention)
    yield built("English phrases, spans, softmax", english(6), "spans", {"form": "spans"})  # 5,280 shapes


def check(subject: Subject) -> Evidence:
    grammar, rows = subject.spec, len(conjunctions(subject.weights))
    if subject.data["form"] == "spans":
        counted = Quantity("conjunctions", rows, grammar_spans.conjunctions(Phrases.of(grammar)), "=")
    else:
        counted = Quantity("conjunctions", rows, sum(most_conjunctions(grammar.leveled().with_end().shapes())), "<=")
    return check_net(replace(subject, data={})).adding(counted, *sized(subject))


def conjunctions(weights: Weights) -> list[tuple[int, list[int]]]:
    """The conjunctions: the block of each, and its unit in it, with the unit that cuts its noise where there is one."""
    pairs = []
    for units in weights.labels.units:
        if units.name.startswith("and: "):
            cut = [unit for unit, row in enumerate(units.unit_names, start=units.start) if row.endswith("(cut)")]
            plain = [unit for unit, row in enumerate(units.unit_names, start=units.start) if not row.endswith("(cut)")]
            pairs += [(units.block, [unit, *cut[number : number + 1]]) for number, unit in enumerate(plain)]
    return pairs


def sabotage(subject: Subject) -> Subject:
    """The last conjunction that some beginning of a sentence needs never holds."""
    questions = net_check(subject.weights.architecture, subject.spec)
    for block, units in reversed(conjunctions(subject.weights)):
        broken = zeroed(subject, f"blocks.{block}.mlp.W_out", units)
        if "history" in (questions.run(broken.weights, hardest_first=True).witness or {}):
            return broken
    return subject


CLAIM = Claim(subjects, check, sabotage, id="R3", standing="theorem", certified="sampled", budget_seconds=60)
