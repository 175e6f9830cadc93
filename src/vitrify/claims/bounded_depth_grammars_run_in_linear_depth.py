r"""A bounded-depth grammar runs on a transformer whose depth is linear in the grammar's, with the exact next words.

Statement: For every non-recursive grammar of depth $d$ with $M$ rules, whose derivation trees have $c$ shapes, there is
a transformer with $O(d)$ layers and $O(cM^2)$ units that gives, after every prefix of a sentence, the exact set of next
words. In the construction over tree shapes its units grow with shapes times rules, in the construction over spans
(numbers of words of phrases) quadratically with the length of sentences.
Why: In a tree of known shape every child ends at a known distance before the end of its parent. So heads fetch what is
known about the children, and one unit per rule is their conjunction: first bottom-up for complete phrases, then
top-down for expected ones, level by level. Spans fix the distances too. Rules are read child by child, so there is one
conjunction per pair of spans: those of the children so far and of the next one.
Checked: Every prefix of every sentence of five random ambiguous grammars (up to 42 shapes, arity 3, sentences of
unequal length) and of a Random Hierarchy Model, in both constructions; each grammar with one of softmax, sparsemax and
hard attention. Short prefixes and random sentences of a grammar of English phrases (5,280 shapes), over spans only.
Conjunctions, units, heads and layers are compared with the formulas of the constructions. The law: unambiguous grammars
of depth $d = 2, \dots, 8$, all with $c = 6$ shapes and $M = 24$ rules in levels, in three constructions. Units are
at most $cM^2 = 3456$; there are exactly $d + 1$ layers in one pass, at most $4d + 1$ over shapes and $4d - 1$ over
spans, for right sides of two symbols. The end of the sentence is one level.
Not checked: The published constant of units; many shapes in the construction over shapes; other $c$ and $M$ in the law,
whose units are 1 to 9 % of $cM^2$, so that nothing here needs the square.
Source: Nandakumar et al. 2026, arXiv 2606.17522 [A]; the weights, features shared by several shapes, and the
construction over spans are our own derivation.
Saboteur: One conjunction that some prefix needs is never true.
"""

from __future__ import annotations

from dataclasses import replace

from vitrify.certification.checking import net_check
from vitrify.certification.evidence import Relation
from vitrify.claims._figures import last_word, points, show
from vitrify.claims._nets import ATTENTIONS, Evidence, Quantity, Weights, built, check_net, quantities, sized, zeroed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions import grammar_spans
from vitrify.constructions.grammar_shapes import most_conjunctions
from vitrify.spec.grammars.families import english, random_grammar, random_hierarchy
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.phrases import Phrases

FORMS = ("shapes", "spans")
SHAPES, RULES = 6, 24  # c and M of the grammars of the law, of which these are the seeds by depth d
SEEDS = {2: 22365, 3: 8938, 4: 3145, 5: 2252, 6: 678, 7: 775, 8: 451}
LAYERS: dict[str, tuple[int, int, Relation]] = {
    "unambiguous": (1, 1, "="),
    "shapes": (4, 1, "<="),
    "spans": (4, -1, "<="),
}  # slope, rest, relation


def subjects() -> Subjects:
    grammars: dict[str, Grammar] = {f"random grammar {seed}": random_grammar(seed, shapes=42) for seed in range(5)}
    grammars["random hierarchy"] = random_hierarchy(3, 2, 2, 3, seed=0)
    for number, (name, grammar) in enumerate(grammars.items()):
        attention = ATTENTIONS[number % 3]
        for form in FORMS:
            yield built(f"{name}, {form}, {attention}", grammar, form, {"form": form}, attention=attention)
    yield built("English phrases, spans, softmax", english(6), "spans", {"form": "spans"})  # 5,280 shapes
    for depth in SEEDS:
        for form in LAYERS:
            yield built(f"depth {depth}, {form}", grammar_of_depth(depth), form, {"form": form, "depth": depth})


def grammar_of_depth(depth: int) -> Grammar:
    """Return a random unambiguous grammar of a depth, with the shapes and rules of the law."""
    limits = {"nonterminals": 4, "words": 6, "rules": RULES // depth, "arity": 2, "shapes": SHAPES, "largest": 3000}
    return random_grammar(SEEDS[depth], depth=depth, ambiguous=None, unequal=None, **limits)


def check(subject: Subject) -> Evidence:
    grammar, rows = subject.spec, len(conjunctions(subject.weights))
    if subject.data["form"] == "spans":
        counted = Quantity("conjunctions", rows, grammar_spans.conjunctions(Phrases.of(grammar)), "=")
    else:
        shapes = grammar.leveled().with_end().shapes()
        up, down = most_conjunctions(shapes)
        words = len(shapes.levels.words) if subject.data["form"] == "unambiguous" else 1  # each has counts of its own
        counted = Quantity("conjunctions", rows, up + words * down, "<=")
    evidence = check_net(replace(subject, data={})).adding(counted, *sized(subject))
    return evidence.adding(*law(subject)) if "depth" in subject.data else evidence


def law(subject: Subject) -> tuple[Quantity, ...]:
    """Return c and M of a grammar, layers linear in the depth that it was drawn with, and units against c·M²."""
    levels, size, depth = subject.spec.leveled(), subject.weights.sizes, subject.data["depth"]
    slope, rest, relation = LAYERS[subject.data["form"]]
    drawn = quantities({"shapes": SHAPES, "rules": RULES}, {"shapes": levels.count_shapes(), "rules": levels.size})
    layers = Quantity("layers, linear in d", size.layers, slope * depth + rest, relation)
    most = SHAPES * RULES**2
    units = Quantity("units against c·M²", size.units, most, "<=")
    return *drawn, layers, units, Quantity("share of c·M²", round(size.units / most, 4))


def conjunctions(weights: Weights) -> list[tuple[int, list[int]]]:
    """Return the conjunctions: the block of each, and its unit in it, with the unit that cuts its noise if any."""
    pairs = []
    for units in weights.labels.units:
        if units.name.startswith("and: "):
            cut = [unit for unit, row in enumerate(units.unit_names, start=units.start) if row.endswith("(cut)")]
            plain = [unit for unit, row in enumerate(units.unit_names, start=units.start) if not row.endswith("(cut)")]
            pairs += [(units.block, [unit, *cut[number : number + 1]]) for number, unit in enumerate(plain)]
    return pairs


def sabotage(subject: Subject) -> Subject:
    """Return the subject whose last conjunction that some prefix needs never holds."""
    questions = net_check(subject.weights.architecture, subject.spec)
    for block, units in reversed(conjunctions(subject.weights)):
        broken = zeroed(subject, f"blocks.{block}.mlp.W_out", units)
        if "history" in (questions.run(broken.weights, hardest_first=True).witness or {}):
            return broken
    return subject


FIGURE = show(
    points("depth {}", "layers", "depth of the grammar", "layers", by=last_word),
    points("depth {}", "units", "depth of the grammar", "units", "y", by=last_word),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R3", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
