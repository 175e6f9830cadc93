r"""Known results: which model lies inside which circuit class, which problem lies where, and what follows.

Three lists are written down, each entry with its source; every cell of the map is derived from them.

- `CONTAINED`: a model of transformers is inside a class of circuits (an upper bound), by a claim of the catalogue.
- `BUILT`: a model solves a problem (a lower bound), by a claim of the catalogue, under a stated assumption.
- `OUTSIDE`: a problem is not in a class, unconditionally, or if two classes differ, which nobody has proved.

AC⁰ ⊂ ACC⁰ ⊆ TC⁰ ⊆ NC¹: a problem outside a class is outside the smaller ones. The first inclusion is known to be strict
(PARITY); for the others this is open. All statements are asymptotic in the length $n$ of words: the depth does not grow
with it (but for log n layers); one net may serve all lengths, or there is one for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Verdict = Literal["yes", "no", "no, if", "not known here"]
Kind = Literal["unconditional", "conditional", "rate"]  # a rate: the margin shrinks with n

CHAIN = ("AC⁰", "ACC⁰", "TC⁰", "NC¹")  # each inside the next


@dataclass(frozen=True)
class Contained:
    """A model is inside a class, by a claim (`claim_id` is its id)."""

    model: str
    inside: str
    claim_id: str
    claim: str
    source: str


@dataclass(frozen=True)
class Built:
    """A model solves a problem, by a claim, under an `assumption`."""

    model: str
    problem: str
    claim_id: str
    claim: str
    assumption: str
    kind: Kind = "unconditional"


@dataclass(frozen=True)
class Outside:
    """A problem is outside a class; `unless` names the equation under which it need not be."""

    problem: str
    outside: str
    source: str
    unless: str = ""


HARD = "hard attention, ties to one side"
MASKED = "hard attention with masks, no positions"
FIXED = "softmax, O(log n) bits"
SOFT = "softmax, real numbers"
DEEP = "softmax, log n layers"

WITHIN = {MASKED: HARD, FIXED: SOFT}  # the first is a special case of the second
MODELS = (MASKED, HARD, FIXED, SOFT, DEEP)
PROBLEMS = ("star-free", "bounded Dyck", "PARITY", "MAJORITY", "Dyck-1", "word problem of S5")

AS_CIRCUIT = "hard_attention_runs_as_circuits_of_constant_depth"
AS_THRESHOLDS = "finite_precision_softmax_runs_as_threshold_circuits"
AUTOMATA = "any_automaton_runs_in_log_depth"
BRACKETS = "two_layers_generate_bounded_dyck_languages"
COUNTING = "counting_languages_run_on_uniform_attention"
LOGIC = "past_time_temporal_logic_takes_one_layer_per_nested_operator"
PARITY = "parity_takes_two_softmax_layers_or_a_counter"

CONTAINED = (
    Contained(HARD, "AC⁰", "B6", AS_CIRCUIT, "Hao 2022; for PARITY and Dyck-1 Hahn 2020"),
    Contained(FIXED, "TC⁰", "B8", AS_THRESHOLDS, "Merrill & Sabharwal 2023; Strobl 2023"),
)

BUILT = (
    Built(MASKED, "star-free", "R12", LOGIC, "a layer per nested look back"),
    Built(HARD, "bounded Dyck", "R10", BRACKETS, "D + 1 layers, a net per length"),
    Built(FIXED, "star-free", "R12", LOGIC, "sharp softmax, a net per length"),
    Built(FIXED, "bounded Dyck", "R10", BRACKETS, "two layers, a net per length"),
    Built(FIXED, "MAJORITY", "R9", COUNTING, "margin 1/n, a net per length"),
    Built(FIXED, "Dyck-1", "R9", COUNTING, "margin 1/n, a net per length"),
    Built(FIXED, "PARITY", "R11", PARITY, "positions j/n; the margin falls like 1/n², below the 1/n of B7", "rate"),
    Built(DEEP, "star-free", "R14", AUTOMATA, "⌈log₂ n⌉ layers, a net per length"),
    Built(DEEP, "bounded Dyck", "R14", AUTOMATA, "⌈log₂ n⌉ layers, a net per length"),
    Built(DEEP, "PARITY", "R14", AUTOMATA, "⌈log₂ n⌉ layers, a net per length"),
    Built(DEEP, "word problem of S5", "R14", AUTOMATA, "⌈log₂ n⌉ layers, a net per length"),
)

OUTSIDE = (
    Outside("PARITY", "AC⁰", "Furst, Saxe & Sipser 1984"),
    Outside("MAJORITY", "AC⁰", "Furst, Saxe & Sipser 1984"),
    Outside("Dyck-1", "AC⁰", "MAJORITY reduces to it"),
    Outside("word problem of S5", "AC⁰", "PARITY reduces to it"),
    Outside("word problem of S5", "TC⁰", "complete for NC¹: Barrington 1989", unless="TC⁰ = NC¹"),
)


@dataclass(frozen=True)
class Map:
    """The three lists of results."""

    contained: Sequence[Contained] = CONTAINED
    built: Sequence[Built] = BUILT
    outside: Sequence[Outside] = OUTSIDE


@dataclass(frozen=True)
class MapCell:
    """Verdict on whether a model solves a problem, with the claims and the reason."""

    model: str
    problem: str
    verdict: Verdict
    claim_ids: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    kind: Kind = "unconditional"
    reason: str = ""

    def __str__(self) -> str:
        rests = f" ({', '.join(self.claim_ids)}; {self.kind}: {self.reason})" if self.claim_ids else ""
        return f"{self.verdict}{rests}"


def inside(smaller: str, larger: str) -> bool:
    """Return True if one class of the chain is known to be inside another.

    >>> inside("AC⁰", "TC⁰"), inside("TC⁰", "ACC⁰")
    (True, False)
    """
    return CHAIN.index(smaller) <= CHAIN.index(larger)


def cells(facts: Map, model: str, problem: str) -> Iterator[MapCell]:
    """Yield everything that follows about a model and a problem.

    A problem that a special case solves is solved by the general case; a class that contains the general case contains
    the special case.
    """
    special = {model} | {small for small, large in WITHIN.items() if large == model}
    general = {model, WITHIN.get(model)}
    for fact in facts.built:
        if fact.model in special and fact.problem == problem:
            yield MapCell(model, problem, "yes", (fact.claim_id,), (fact.claim,), fact.kind, fact.assumption)
    for bound in facts.contained:
        for out in facts.outside:
            if bound.model in general and out.problem == problem and inside(bound.inside, out.outside):
                reason = f"inside {bound.inside} [{bound.source}], {problem} is not [{out.source}]"
                cell = MapCell(model, problem, "no", (bound.claim_id,), (bound.claim,), "unconditional", reason)
                unless = f"unless {out.unless}: {reason}"
                yield replace(cell, verdict="no, if", kind="conditional", reason=unless) if out.unless else cell


def published_map(facts: Map | None = None) -> list[MapCell]:
    """Return one cell for each model and problem, models first."""
    facts = facts or Map()
    order: tuple[Verdict, ...] = ("yes", "no", "no, if")
    best = []
    for model in MODELS:
        for problem in PROBLEMS:
            known = sorted(cells(facts, model, problem), key=lambda cell: order.index(cell.verdict))
            best.append(known[0] if known else MapCell(model, problem, "not known here"))
    return best


def contradictions(facts: Map) -> list[tuple[MapCell, MapCell]]:
    """Return pairs of cells of which one says yes and the other no, even under a condition."""
    known = (list(cells(facts, model, problem)) for model in MODELS for problem in PROBLEMS)
    return [(a, b) for some in known for a in some for b in some if a.verdict == "yes" and b.verdict.startswith("no")]


def markdown(table: Sequence[MapCell]) -> str:
    """Return the map as a table: models down, problems across; `?` where no claim applies."""
    lines = ["| | " + " | ".join(PROBLEMS) + " |", "| --- " * (len(PROBLEMS) + 1) + "|"]
    for model in MODELS:
        by_problem = {cell.problem: cell for cell in table if cell.model == model}
        marks = []
        for problem in PROBLEMS:
            cell = by_problem[problem]
            note = {"unconditional": "", "conditional": ", conditional", "rate": ", a rate"}[cell.kind]
            marks.append(
                f"{cell.verdict.replace(', if', '')} ({', '.join(cell.claim_ids)}{note})" if cell.claim_ids else "?"
            )
        lines.append(f"| {model} | " + " | ".join(marks) + " |")
    return "\n".join(lines)
