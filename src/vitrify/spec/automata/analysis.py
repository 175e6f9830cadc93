"""Algebraic analysis of an automaton, and the number of attention layers of each construction that can run it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import reduce

from vitrify.encoding import JsonObject
from vitrify.errors import BuildRefused, InputError
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.cascade import cascade
from vitrify.spec.automata.families import corridor
from vitrify.spec.automata.groups import then
from vitrify.spec.automata.holonomy import Holonomy
from vitrify.spec.graphs import reached

MAX_MAPS = 100_000


@dataclass(frozen=True)
class LevelReport:
    """A level of the holonomy decomposition.

    `attention_layers` are those of the cascade: 0 if nothing depends on the level, None if its group is not solvable.
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
    """The number of attention layers of a construction; or None, and `why` it can't run the automaton.

    For words longer than `crossover`, if it has one, log depth takes more layers.
    """

    construction: str
    attention_layers: int | str | None
    why: str = ""
    crossover: int | None = None


@dataclass(frozen=True)
class Analysis:
    """The report on an automaton; what would take too long to compute is None, and `notes` say why.

    `monoid` (its size), `finite`, `commutative`, `star_free` and `solvable` are properties of the language, that is of
    the minimal automaton; `levels` and `depths` are those of the automaton itself, whose states a net computes.
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

    def to_json(self) -> JsonObject:
        return asdict(self)


def analyze(spec: object) -> Analysis:
    """Return the report on an automaton.

    >>> from vitrify.spec.automata.families import gridworld
    >>> report = analyze(gridworld(4))
    >>> report.monoid, report.star_free, report.depths[2].attention_layers
    (18, True, 3)
    """
    if not isinstance(spec, Automaton):
        raise InputError(
            "only automata, regular expressions, and as language models probabilistic automata, n-gram models and "
            f"probabilistic Turing machines can be analyzed, got a spec of type {type(spec).__name__}"
        )
    minimal, reachable = spec.minimized(), spec.reachable()
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
    levels, constant = _decompose(spec, notes)
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
        depths=(
            _depth("commutative", 1, reachable.is_commutative(), "letters do not commute"),
            _depth("gridworld", 2, corridor(reachable), "no corridor with walls"),
            constant,
            Depth("log-depth", "⌈log₂ T⌉"),
        ),
        notes=tuple(dict.fromkeys(notes)),
    )


def _decompose(spec: Automaton, notes: list[str]) -> tuple[tuple[LevelReport, ...] | None, Depth]:
    """Return the levels and the depth of the cascade; if the automaton is too large, append the reason to the notes."""
    try:
        plan = cascade(spec)
        layers: dict[int, int] = {level.number: level.attention_layers for level in plan.levels}
        levels = []
        for number, (level, group) in enumerate(plan.holonomy.groups(), start=1):
            sizes = len(level.maps), group.degree, group.name, group.order, group.is_solvable
            levels.append(LevelReport(number, *sizes, layers.get(number, 0) if group.is_solvable else None))
        hard = plan.unsolvable
        if hard:
            why = f"level {hard.number} has the group {hard.group.name}, not solvable"
            return tuple(levels), Depth("cascade", None, why)
        return tuple(levels), Depth("cascade", plan.attention_layers, crossover=2**plan.attention_layers)
    except BuildRefused as refusal:
        notes.append(str(refusal))
        return None, Depth("cascade", None, "too many sets or chains to decompose")


def _depth(construction: str, layers: int, fits: object, why: str) -> Depth:
    return Depth(construction, layers, crossover=2**layers) if fits else Depth(construction, None, why)


def _is_finite(minimal: Automaton) -> bool:
    """Return True if the language is finite: no state on a cycle leads to an accepting state."""
    useful = set(minimal.accepting)
    while fresh := {q for q, row in enumerate(minimal.transitions) if q not in useful and useful & set(row)}:
        useful |= fresh
    left = set(useful)
    while ends := {q for q in left if not left & set(minimal.transitions[q])}:
        left -= ends
    return not left


def is_aperiodic(automaton: Automaton) -> bool:
    """Return whether the powers of every map in the transition monoid become constant: none cycles through states.

    The language of a minimal automaton is star-free iff this is so (Schützenberger 1965).

    >>> is_aperiodic(Automaton.from_regex("(ab)*")), is_aperiodic(Automaton.from_regex("(aa)*"))
    (True, False)
    """
    powers = ((g, reduce(then, [g] * len(g))) for g in transition_monoid(automaton))
    return all(then(power, g) == power for g, power in powers)


def transition_monoid(automaton: Automaton) -> tuple[tuple[int, ...], ...]:
    """Return the state maps of all words, shorter words first; of a minimal automaton, this is the syntactic monoid.

    >>> from vitrify.spec.automata.families import flip_flop
    >>> transition_monoid(flip_flop())
    ((0, 1), (0, 0), (1, 1))
    """
    start = tuple(range(len(automaton.states)))
    letters = list(dict.fromkeys(automaton.maps().values()))
    refusal = f"the words of this automaton induce more than {MAX_MAPS} different maps of its states"
    return tuple(reached([start], lambda g: [then(g, a) for a in letters], MAX_MAPS, refusal))
