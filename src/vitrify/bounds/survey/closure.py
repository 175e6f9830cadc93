r"""The map: what follows from the facts about a variant and a problem, with the derivation, or that it is open.

Rules, numbered as on the page of the map:

1. What a variant recognizes, every variant above it recognizes.
2. What contains a variant contains every variant below it; what a variant can't do, none below it can.
3. What is inside a class is inside every larger class.
4. A problem outside of a class is recognized by no variant inside it, under the condition of the fact, if it has one.
5. A problem that reduces to another by a change of letters is no harder: "yes" passes down, "no" passes up.
   A problem outside of a class that is closed under AC⁰ reductions passes that on to whatever it AC⁰-reduces to.
6. What recognizes a whole class recognizes all in it; what misses a language of a class does not recognize the class.
7. A variant and a problem for which both "yes" and "no" follow, even under a condition, are an error.
8. One net for all lengths is a net for each length; where there are none for single lengths, there is none for all.
   Nothing else passes from one scope to the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, Literal

from vitrify.bounds.survey.about_models import BUILT, INSIDE, REFUTED
from vitrify.bounds.survey.about_problems import BELOW, CLOSED, OUTSIDE, PROBLEMS
from vitrify.bounds.survey.models import MODELS, SCOPES, ModelVariant, Scope, covers
from vitrify.bounds.survey.statements import Below, Built, Executed, Fact, How, Inside, Outside, Refuted
from vitrify.errors import VitrifyError

Verdict = Literal["yes", "no", "no, if", "open"]
WITHIN: tuple[How, ...] = ("is in", "by a change of letters")  # that hold inside every variant
Path = tuple[Below, ...]


@dataclass(frozen=True)
class SurveyFacts:
    """All facts that a map follows from."""

    built: tuple[Built, ...] = BUILT
    inside: tuple[Inside, ...] = INSIDE
    refuted: tuple[Refuted, ...] = REFUTED
    outside: tuple[Outside, ...] = OUTSIDE
    below: tuple[Below, ...] = BELOW

    @property
    def about_models(self) -> tuple[Built | Inside | Refuted, ...]:
        """The facts that name a variant."""
        return *self.built, *self.inside, *self.refuted

    def near(self, model: ModelVariant, scope: Scope) -> SurveyFacts:
        """Return the facts without those about variants and scopes that say nothing about this one."""
        built = (fact for fact in self.built if fact.model.within(model) and covers(fact.scope, scope))
        inside = (fact for fact in self.inside if model.within(fact.model) and covers(scope, fact.scope))
        refuted = (fact for fact in self.refuted if model.within(fact.model) and covers(scope, fact.scope))
        return replace(self, built=tuple(built), inside=tuple(inside), refuted=tuple(refuted))

    def replaced(self, old: Built | Inside | Refuted, new: Built | Inside | Refuted) -> SurveyFacts:
        """Return the facts with one of them replaced by another of its kind."""
        parts: dict[str, Any] = {"built": self.built, "inside": self.inside, "refuted": self.refuted}
        changed: dict[str, Any] = {kind: tuple(new if fact == old else fact for fact in parts[kind]) for kind in parts}
        return replace(self, **changed)


@dataclass(frozen=True)
class MapCell:
    """What follows about a variant and a problem in one scope, from which facts, by which rules."""

    model: ModelVariant
    problem: str
    scope: Scope
    verdict: Verdict
    facts: tuple[Fact, ...] = ()
    rules: tuple[int, ...] = ()

    @property
    def condition(self) -> str:
        """The open equation under which a conditional "no" need not be true."""
        return next((fact.unless for fact in self.facts if isinstance(fact, Outside)), "")

    @property
    def executed(self) -> Executed | None:
        """The claim or construction that executes the fact about the variant, or part of it."""
        return next((fact.by for fact in self.facts if not isinstance(fact, Outside | Below)), None)

    @property
    def cost(self) -> tuple[bool, bool, int]:
        """The order of preference: no condition, executed here, few facts."""
        return bool(self.condition), self.executed is None, len(self.facts)


@cache
def paths(below: tuple[Below, ...], start: str, hows: tuple[How, ...], *, up: bool = True) -> dict[str, Path]:
    """Return a shortest chain of facts from a problem or class to each one above it (or below it), itself included."""
    chains: dict[str, Path] = {start: ()}
    queue = [start]
    for node in queue:
        for edge in below:
            near, far = (edge.lower, edge.upper) if up else (edge.upper, edge.lower)
            if near == node and far not in chains and edge.how in hows:
                chains[far] = (*chains[node], edge)
                queue.append(far)
    return chains


def _rules(*used: tuple[int, bool]) -> tuple[int, ...]:
    return tuple(number for number, is_used in used if is_used)


def _passing(path: Path) -> tuple[tuple[int, bool], ...]:
    return (5, any(edge.how != "is in" for edge in path)), (6, any(edge.how == "is in" for edge in path))


def positive(near: SurveyFacts, model: ModelVariant, problem: str, scope: Scope) -> Iterator[MapCell]:
    """Yield each derivation, from the facts near a variant, that it recognizes a problem or all of a class."""
    above = paths(near.below, problem, WITHIN)
    for fact in near.built:
        if fact.target in above:
            path = above[fact.target]
            rules = _rules((1, fact.model != model), *_passing(path), (8, fact.scope != scope))
            yield MapCell(model, problem, scope, "yes", (fact, *path), rules)


def negative(near: SurveyFacts, model: ModelVariant, problem: str, scope: Scope) -> Iterator[MapCell]:
    """Yield each derivation, from the facts near a variant, that it does not recognize a problem or all of a class."""
    easier = paths(near.below, problem, WITHIN, up=False)
    for refuted in near.refuted:
        if refuted.problem in easier:
            path = easier[refuted.problem]
            rules = _rules((2, refuted.model != model), *_passing(path), (8, refuted.scope != scope))
            yield MapCell(model, problem, scope, "no", (refuted, *path), rules)
    reducing = paths(near.below, problem, (*WITHIN, "by an AC⁰ reduction"), up=False)
    larger_than = {bound: paths(near.below, bound.inside, ("is in",)) for bound in near.inside}
    for bound, out in product(near.inside, near.outside):
        larger = larger_than[bound]
        known = reducing if out.outside in CLOSED else easier
        if out.outside in larger and out.problem in known:
            wide, path = larger[out.outside], known[out.problem]
            rules = _rules((2, bound.model != model), (3, bool(wide)), (4, True), *_passing(path))
            verdict: Verdict = "no, if" if out.unless else "no"
            rules += _rules((8, bound.scope != scope))
            yield MapCell(model, problem, scope, verdict, (bound, *wide, out, *path), rules)


def contained(facts: SurveyFacts, model: ModelVariant, inside: str, scope: Scope) -> bool:
    """Return whether it follows that a variant is inside a class."""
    near = facts.near(model, scope)
    return any(inside in paths(near.below, fact.inside, ("is in",)) for fact in near.inside)


def derived(facts: SurveyFacts, model: ModelVariant, problem: str, scope: Scope) -> MapCell:
    """Return the preferred derivation about a variant and a problem; without any, the cell is open."""
    near = facts.near(model, scope)
    every = [*positive(near, model, problem, scope), *negative(near, model, problem, scope)]
    return min(every, key=lambda cell: cell.cost, default=MapCell(model, problem, scope, "open"))


def contradictions(facts: SurveyFacts) -> list[tuple[MapCell, MapCell]]:
    """Return a pair of derivations, of "yes" and of "no", wherever both follow about what a fact calls built.

    If both follow about any variant, they do about one that is built: "no" passes down to it.
    """
    problems = dict.fromkeys((*PROBLEMS, *(edge.lower for edge in facts.below)))
    pairs = []
    for model, scope in product(dict.fromkeys(fact.model for fact in facts.built), SCOPES):
        near = facts.near(model, scope)
        for problem in problems if near.inside or near.refuted else ():
            yes = min(positive(near, model, problem, scope), key=lambda cell: cell.cost, default=None)
            no = yes and min(negative(near, model, problem, scope), key=lambda cell: cell.cost, default=None)
            if yes and no:
                pairs.append((yes, no))
    return pairs


def published_map(facts: SurveyFacts | None = None) -> list[MapCell]:
    """Return a cell for each variant, problem and scope; facts that contradict each other are an error."""
    facts = facts or SurveyFacts()
    for yes, no in contradictions(facts):
        raise VitrifyError(f"the facts contradict each other: {sentence(yes)} But {sentence(no)}")
    return [
        derived(facts, model, problem, scope) for model in MODELS.values() for problem in PROBLEMS for scope in SCOPES
    ]


def sentence(cell: MapCell) -> str:
    """Return a derivation in words: facts with their sources, and the rules that join them."""
    if cell.verdict == "open":
        return "No fact of the list decides it."
    parts = [f"{stated(fact)} ({fact.source})" for fact in cell.facts]
    rules = f" Rules: {', '.join(map(str, cell.rules))}." if cell.rules else ""
    return f"{'; '.join(parts)}.{rules}"


def stated(fact: Fact) -> str:
    """Return a fact in words, without its source."""
    match fact:
        case Built():
            return f"{fact.target}: built, {fact.scope}, on {fact.model}"
        case Inside():
            return f"inside {fact.inside}, {fact.scope}: {fact.model}"
        case Refuted():
            return f"{fact.problem}: not on {fact.model}, {fact.scope}"
        case Outside():
            return f"{fact.problem} is not in {fact.outside}" + (f", unless {fact.unless}" if fact.unless else "")
        case Below(how="is in"):
            return f"{fact.lower} is in {fact.upper}"
        case Below():
            return f"{fact.lower} reduces to {fact.upper} {fact.how}"
