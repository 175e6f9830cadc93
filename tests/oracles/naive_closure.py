"""The map once more: all that follows from the facts, by single steps until nothing is new, over every variant at once.

It shares the facts and the axes with the package, and neither the order of variants nor a search along chains.
"""

from __future__ import annotations

from itertools import product

from vitrify.bounds.survey.closure import SurveyFacts
from vitrify.bounds.survey.models import MODELS, STRONGER, ModelVariant

Yes = set[tuple[ModelVariant, str, str]]
No = set[tuple[ModelVariant, str, str, str]]  # the last is the condition under which it need not be true
CLOSED = {"AC⁰", "ACC⁰", "TC⁰", "NC¹", "TC¹", "P/poly"}


def smaller_values() -> dict[str, set[tuple[str, str]]]:
    """Return for each axis all pairs of a value and one that is at least as large, by transitive closure."""
    pairs = {}
    for axis, above in STRONGER.items():
        known = {(value, value) for value in above} | {(low, high) for low in above for high in above[low]}
        while True:
            more = {(a, d) for a, b in known for c, d in known if b == c} - known
            if not more:
                break
            known |= more
        pairs[axis] = known
    return pairs


def closure(facts: SurveyFacts) -> tuple[Yes, No]:
    """Return every "yes" and every "no" that follows about the rows of the map and the variants that facts name."""
    models = list(dict.fromkeys([*MODELS.values(), *(fact.model for fact in facts.about_models)]))
    order = smaller_values()
    special = {
        (a, b) for a, b in product(models, models) if all((getattr(a, x), getattr(b, x)) in order[x] for x in order)
    }
    outside = _outside(facts)
    yes: Yes = {(fact.model, fact.target, fact.scope) for fact in facts.built}
    while True:
        more = {(large, what, scope) for m, what, scope in yes for small, large in special if small == m}
        more |= {(m, what, "each length") for m, what, _ in yes}
        for edge in facts.below:
            if edge.how != "by an AC⁰ reduction":
                more |= {(m, edge.lower, scope) for m, what, scope in yes if what == edge.upper}
        if more <= yes:
            break
        yes |= more
    inside: Yes = {(fact.model, fact.inside, fact.scope) for fact in facts.inside}
    while True:
        more = {(small, kind, scope) for m, kind, scope in inside for small, large in special if large == m}
        more |= {(m, kind, "one net") for m, kind, _ in inside}
        for edge in facts.below:
            if edge.how == "is in":
                more |= {(m, edge.upper, scope) for m, kind, scope in inside if kind == edge.lower}
        if more <= inside:
            break
        inside |= more
    no: No = {(fact.model, fact.problem, fact.scope, "") for fact in facts.refuted}
    no |= {(m, p, scope, unless) for m, kind, scope in inside for p, out, unless in outside if kind == out}
    while True:
        fresh = {(small, p, scope, c) for m, p, scope, c in no for small, large in special if large == m}
        fresh |= {(m, p, "one net", c) for m, p, _, c in no}
        for edge in facts.below:
            if edge.how != "by an AC⁰ reduction":
                fresh |= {(m, edge.upper, scope, c) for m, p, scope, c in no if p == edge.lower}
        if fresh <= no:
            return yes, no
        no |= fresh


def _outside(facts: SurveyFacts) -> set[tuple[str, str, str]]:
    """Return which problems are outside of which classes, with conditions."""
    known = {(fact.problem, fact.outside, fact.unless) for fact in facts.outside}
    while True:
        more: set[tuple[str, str, str]] = set()
        for edge in facts.below:
            for problem, kind, unless in known:
                if problem == edge.lower and (kind in CLOSED or edge.how != "by an AC⁰ reduction"):
                    more.add((edge.upper, kind, unless))
        if more <= known:
            return known
        known |= more
