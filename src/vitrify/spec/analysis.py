"""What an automaton is, algebraically, and how deep a transformer has to be to run it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from vitrify.errors import BuildRefused, InputError
from vitrify.spec.automata import corridor
from vitrify.spec.automaton import Automaton
from vitrify.spec.cascade import cascade
from vitrify.spec.groups import Group
from vitrify.spec.holonomy import Holonomy
from vitrify.spec.monoids import transition_monoid


@dataclass(frozen=True)
class LevelReport:
    """A level of the holonomy decomposition.

    `attention_layers` are those of the cascade: 0 where nothing depends on the level, None where its group is not
    solvable.
    """

    level: int
    sets: int
    tiles: int
    group: str
    order: int
    solvable: bool
    attention_layers: int | None


@dataclass(frozen=True)
class Depth:
    """How many attention layers a shape takes, or None and why it does not fit.

    Words longer than `crossover`, if it has one, take more layers in log depth.
    """

    shape: str
    attention_layers: int | str | None
    why: str = ""
    crossover: int | None = None


@dataclass(frozen=True)
class Analysis:
    """The report on an automaton; figures that would take too long are None, and `notes` say why.

    The classes are those of the language, that is of the minimal automaton; levels and depths are those of the
    automaton as it is given, whose states a net follows.
    """

    states: int
    letters: int
    minimal_states: int
    monoid: int | None
    finite: bool
    commutative: bool
    star_free: bool | None
    solvable: bool | None
    levels: tuple[LevelReport, ...] | None
    depths: tuple[Depth, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)


def analyse(spec: object) -> Analysis:
    """The report on an automaton.

    >>> from vitrify.spec.automata import gridworld
    >>> report = analyse(gridworld(4))
    >>> report.monoid, report.star_free, report.depths[2].attention_layers
    (18, True, 3)
    """
    if not isinstance(spec, Automaton):
        raise InputError(
            f"automata and regular expressions can be analysed, a spec of type {type(spec).__name__} not yet: its "
            "states, monoid and levels are not those of a finite automaton"
        )
    minimal = spec.minimised()
    notes: list[str] = []
    monoid = star_free = solvable = None
    try:
        monoid = len(transition_monoid(minimal))
    except BuildRefused as refusal:
        notes.append(str(refusal))
    try:
        groups = [group for _, group in Holonomy(minimal).groups()]
        star_free = all(group.order == 1 for group in groups)
        solvable = all(group.is_solvable for group in groups)
    except BuildRefused as refusal:
        notes.append(str(refusal))
    levels, constant = _decomposed(spec, notes)
    return Analysis(
        states=len(spec.states),
        letters=len(spec.alphabet),
        minimal_states=len(minimal.states),
        monoid=monoid,
        finite=_is_finite(minimal),
        commutative=minimal.is_commutative(),
        star_free=star_free,
        solvable=solvable,
        levels=levels,
        depths=(_commutative(spec), _corridor(spec), constant, Depth("log-depth", "⌈log₂ T⌉")),
        notes=tuple(dict.fromkeys(notes)),
    )


def _decomposed(spec: Automaton, notes: list[str]) -> tuple[tuple[LevelReport, ...] | None, Depth]:
    try:
        plan = cascade(spec)
        layers: dict[int, int] = {level.place: level.attention_layers for level in plan.levels}
        levels = tuple(
            _level(place, len(level.onto), group, layers.get(place, 0))
            for place, (level, group) in enumerate(plan.holonomy.groups(), start=1)
        )
        bad = plan.unsolvable
        if bad:
            return levels, Depth("cascade", None, f"level {bad.place} has the group {bad.group.name}, not solvable")
        return levels, Depth("cascade", plan.attention_layers, crossover=2**plan.attention_layers)
    except BuildRefused as refusal:
        notes.append(str(refusal))
        return None, Depth("cascade", None, "too many sets or chains to decompose")


def _level(place: int, sets: int, group: Group, layers: int) -> LevelReport:
    good = group.is_solvable
    return LevelReport(place, sets, group.degree, group.name, group.order, good, layers if good else None)


def _commutative(spec: Automaton) -> Depth:
    if spec.reachable().is_commutative():
        return Depth("commutative", 1, crossover=2)
    return Depth("commutative", None, "letters do not commute")


def _corridor(spec: Automaton) -> Depth:
    if corridor(spec.reachable()):
        return Depth("gridworld", 2, crossover=4)
    return Depth("gridworld", None, "no corridor with walls")


def _is_finite(minimal: Automaton) -> bool:
    """Whether no cycle leads on to an accepting state."""
    useful = set(minimal.accepting)
    while fresh := {q for q, row in enumerate(minimal.transitions) if q not in useful and useful & set(row)}:
        useful |= fresh
    left = set(useful)
    while ends := {q for q in left if not left & set(minimal.transitions[q])}:
        left -= ends
    return not left
