r"""The published map: which model is inside which class, which problem is where, and what follows for each pair.

Three lists are written down, each entry with its source; every cell of the map is derived from them.

- `CONTAINED`: a model of transformers is inside a class of circuits (an upper bound), by a claim of the catalogue.
- `BUILT`: a model solves a problem (a lower bound), by a claim of the catalogue, under a stated assumption.
- `OUTSIDE`: a problem is not in a class, unconditionally, or if two classes differ, which nobody has proved.

AC⁰ ⊂ ACC⁰ ⊆ TC⁰ ⊆ NC¹: what is outside of a class is outside of the smaller ones. That the first inclusion is strict is
known (PARITY); of the others it is not. All of it is asymptotic: it is said of one net, or one size, for all lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["yes", "no", "no, if", "not known here"]
Kind = Literal["unconditional", "conditional", "rate"]

CHAIN = ("AC⁰", "ACC⁰", "TC⁰", "NC¹")  # each inside the next


@dataclass(frozen=True)
class Contained:
    """A model is inside a class, by a claim (row and name)."""

    model: str
    inside: str
    row: str
    claim: str
    source: str


@dataclass(frozen=True)
class Built:
    """A model solves a problem, by a claim; `assumption` says at what price."""

    model: str
    problem: str
    row: str
    claim: str
    assumption: str
    kind: Kind = "unconditional"


@dataclass(frozen=True)
class Outside:
    """A problem is outside of a class; `unless` names the equation that would have to hold otherwise."""

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
BRACKETS = "two_layers_generate_bounded_brackets"
COUNTING = "counting_languages_run_on_uniform_attention"
LOGIC = "past_time_logic_takes_one_layer_per_nested_look_back"
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
    Built(FIXED, "PARITY", "R11", PARITY, "positions j/n; the lead falls like 1/n², below the 1/n of B7", "rate"),
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
    """The three lists."""

    contained: Sequence[Contained] = CONTAINED
    built: Sequence[Built] = BUILT
    outside: Sequence[Outside] = OUTSIDE


@dataclass(frozen=True)
class Cell:
    """Whether a model solves a problem, why, and on what it rests."""

    model: str
    problem: str
    verdict: Verdict
    rows: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    kind: Kind = "unconditional"
    reason: str = ""

    def __str__(self) -> str:
        rests = f" ({', '.join(self.rows)}; {self.kind}: {self.reason})" if self.rows else ""
        return f"{self.verdict}{rests}"


def inside(smaller: str, larger: str) -> bool:
    """Whether one class of the chain is known to be inside another one.

    >>> inside("AC⁰", "TC⁰"), inside("TC⁰", "ACC⁰")
    (True, False)
    """
    return CHAIN.index(smaller) <= CHAIN.index(larger)


def cells(facts: Map, model: str, problem: str) -> Iterator[Cell]:
    """Everything that follows about a model and a problem.

    What a special case does, the general case does; what the general case is inside of, the special case is, too.
    """
    special = {model} | {small for small, large in WITHIN.items() if large == model}
    general = {model, WITHIN.get(model)}
    for fact in facts.built:
        if fact.model in special and fact.problem == problem:
            yield Cell(model, problem, "yes", (fact.row,), (fact.claim,), fact.kind, fact.assumption)
    for bound in facts.contained:
        for out in facts.outside:
            if bound.model in general and out.problem == problem and inside(bound.inside, out.outside):
                reason = f"inside {bound.inside} [{bound.source}], {problem} is not [{out.source}]"
                row, claim = (bound.row,), (bound.claim,)
                if out.unless:
                    yield Cell(model, problem, "no, if", row, claim, "conditional", f"unless {out.unless}: {reason}")
                else:
                    yield Cell(model, problem, "no", row, claim, "unconditional", reason)


def published_map(facts: Map | None = None) -> list[Cell]:
    """The map: one cell for each model and problem, models first."""
    facts = facts or Map()
    order: tuple[Verdict, ...] = ("yes", "no", "no, if")
    found = []
    for model in MODELS:
        for problem in PROBLEMS:
            known = sorted(cells(facts, model, problem), key=lambda cell: order.index(cell.verdict))
            found.append(known[0] if known else Cell(model, problem, "not known here"))
    return found


def contradictions(facts: Map) -> list[tuple[Cell, Cell]]:
    """Pairs of cells of which one says yes and the other no; under a condition, too: that would settle it."""
    found = []
    for model in MODELS:
        for problem in PROBLEMS:
            known = list(cells(facts, model, problem))
            found += [(a, b) for a in known for b in known if a.verdict == "yes" and b.verdict.startswith("no")]
    return found


def markdown(table: Sequence[Cell]) -> str:
    """The map as a table: models down, problems across; `?` where no claim here speaks about it."""
    lines = ["| | " + " | ".join(PROBLEMS) + " |", "| --- " * (len(PROBLEMS) + 1) + "|"]
    for model in MODELS:
        said = {cell.problem: cell for cell in table if cell.model == model}
        marks = []
        for problem in PROBLEMS:
            cell = said[problem]
            note = {"unconditional": "", "conditional": ", conditional", "rate": ", a rate"}[cell.kind]
            marks.append(f"{cell.verdict.replace(', if', '')} ({', '.join(cell.rows)}{note})" if cell.rows else "?")
        lines.append(f"| {model} | " + " | ".join(marks) + " |")
    return "\n".join(lines)
