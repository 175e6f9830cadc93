r"""Star-free languages on diagonal recurrences of factors that are not negative, a layer for each level of resets.

In the spirit of Sarrof, Veitsman & Hahn (2024, arXiv 2405.17394): state space models with input-gated diagonal
transitions that are not negative recognize, in finite precision, exactly the star-free languages. Where the holonomy
decomposition of an automaton has no groups, a letter resets the coordinate of a level or leaves it (`cascade.py`).
What it does to the next level depends on the coordinate *before* it, which a recurrence with factors 0 and 1 has lost:
$h_t = A(x_t)h_{t-1} + B(x_t)$ with $A \in \{0, 1\}$ and $B = 0$ where $A = 1$ is the same after a letter that comes
twice, so that stacks of such layers recognize only languages that do not change when letters are repeated.

So a level is one number. Coordinates are numbered from 1. BOS sets the first one; a context that resets to $r$ has $A
= 2^{-30}$ and $B = r$, any other $A = 1$ and $B = 0$. In float64

$$h = r + 2^{-30} r',$$

where $r'$ is the coordinate before the last reset, and older ones are rounded off, at every length, while $r' < 2^7$.
In real arithmetic they add less than $2^{-22}$ to $2^{30}h$, which changes nothing either. An MLP writes the context of
the next level, a step function for each context $c$: of $h$ where $c$ moves nothing, of $2^{30}(h - r)$ where it resets
to $r$. The units of all other contexts are switched off.

| | formula |
| --- | --- |
| layers, heads | the levels of resets; 0 |
| state | one number for each level |
| units | for each context, two per coordinate at which the next context changes, and one if it has one from the first |
| width | $1 +$ levels $+$ contexts of all levels $+$ states, and one more where there is but one state |

Automata with groups are refused, and levels of more than 127 coordinates. Float32 needs other numbers: nets are for
float64.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.cascade import context_spaces, first_context, refuse_groups, state_of
from vitrify.constructions.catalogue import BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.log_depth import begin_symbol
from vitrify.kit.network import Affine, Builder, MultiHot, Network, Reals, Recur, Space, Units
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.cascade import Cascade, CascadeLevel, Next
from vitrify.spec.automata.cascade import cascade as decomposed

SHIFT = 2.0**30  # between the coordinate and the one before the last reset
MAX_COORDINATES = 127  # below 2^7: shifted twice, they are less than half a unit in the last place of 1
CLOSED = 2.0**9  # more than twice a coordinate, all that a unit reads; times the shift behind a reset
TOLERANCE = 2.0**-33  # of h: an eighth of a coordinate behind the shift
ROUNDING = 2.0**-52  # of h, relative to a coordinate


def sizes(automaton: Automaton) -> DeclaredSizes:
    """Return all sizes, by the levels of the holonomy decomposition and the contexts of each."""
    plan = decomposed(automaton)
    layers = len(plan.levels)
    contexts = sum(len(level.moves) for level in plan.levels) + max(1, len(plan.states))
    units = tuple(sum(_count(level, to) for to in level.next_contexts) for level in plan.levels)
    return DeclaredSizes.of_layers((0,) * layers, units, 2 + contexts + layers)


def _count(level: CascadeLevel, to: Next) -> int:
    """Return the units of a context: two per change of the next one along the coordinates, one where it begins."""
    following = _by_coordinate(level, to)
    changes = sum(one != other for one, other in pairwise(following))
    return 2 * changes + (following[0] is not None)


def _by_coordinate(level: CascadeLevel, to: Next) -> list[int | None]:
    """Return the next context by the coordinate before the letter."""
    return [to.get(coordinate) if isinstance(to, dict) else to for coordinate in range(level.size)]


@construction(
    "star-free-recurrence",
    "automata of star-free languages by layers of diagonal recurrences that are not negative",
    sizes,
    certified=("every length", "every length"),
)
def star_free_recurrence(automaton: Automaton, *, max_length: MaxLength = 128) -> Network:
    """Return a stack of recurrences, without heads, whose output after every letter is the automaton's state."""
    plan = decomposed(automaton)
    refuse_groups(plan, "recurrences whose factors are not negative recognize star-free languages only")
    large = next((level for level in plan.levels if level.size > MAX_COORDINATES), None)
    if large:
        raise BuildRefused(
            f"a level may have {MAX_COORDINATES} coordinates, two of which a float64 number holds, but level "
            f"{large.number} has {large.size}: build this automaton with --construction star-free"
        )
    name = f"automaton of {len(plan.automaton.states)} states, {len(plan.levels)} recurrences"
    net = Builder(name, (begin_symbol(automaton), *automaton.alphabet), max_length)
    letters = np.eye(2)[[0, *[1] * len(automaton.alphabet)]]
    flags = net.embed("beginning or letter", MultiHot((net.inputs[0], "letter")), letters)
    context, _ = first_context(net, plan)
    for index, level in enumerate(plan.levels):
        context = _next_context(net, plan, index, context, _coordinates(net, level, flags, context))
    output, readout = state_of(plan, context)
    facts = {"states": len(plan.automaton.states), "levels": len(plan.levels)}
    source = "in the spirit of Sarrof, Veitsman & Hahn 2024, arXiv 2405.17394"
    return net.network(output, readout, "cascade of recurrences", facts, source=source, reuse=False)


def _coordinates(net: Builder, level: CascadeLevel, flags: Space, context: Space) -> Space:
    """Return the number $r + 2^{-30} r'$ of a level: its coordinate, and the one before the last reset."""
    resets = [0 if move.reset is None else move.reset + 1 for move in level.moves]
    forgets = np.array([[(1 / SHIFT - 1.0) * (reset > 0)] for reset in resets])
    start = np.array([[(level.start or 0) + 1.0], [0.0]])
    return net.add(
        Recur(
            name=f"level {level.number}",
            scale=Affine.of({flags: np.array([[0.0], [1.0]]), context: forgets}),
            drives=Affine.of({flags: start, context: np.array(resets, dtype=float)[:, None]}),
            writes=Space(f"coordinates {level.number}", Reals(("r + r'/2³⁰",), 0.0, level.size + 1.0)),
            error_gain=1.0,
            error=ROUNDING * (level.size + 1),
        )
    )


def _next_context(net: Builder, plan: Cascade, index: int, context: Space, coordinates: Space) -> Space:
    """Return the context of the next level, a step function of the coordinate before the letter for each context."""
    level = plan.levels[index]
    writes, codes, _, _ = context_spaces(plan, index + 1)
    codes = np.vstack([codes, np.zeros(writes.size)])  # the last one is void
    units: list[tuple[int, float, float, float, Floats]] = []  # context, slope, bias, gate, output
    for number, (move, to) in enumerate(zip(level.moves, level.next_contexts, strict=True)):
        shift, origin = (1.0, 0.0) if move.reset is None else (SHIFT, move.reset + 1.0)
        following = [codes[-1 if each is None else each] for each in _by_coordinate(level, to)]
        if following[0].any():
            units.append((number, 0.0, 1.0, 1.0, following[0]))
        for coordinate, (before, after) in enumerate(pairwise(following), start=1):
            for part, sign in ((0.25, 1.0), (0.75, -1.0)):
                if (before != after).any():
                    bias = -2 * (shift * origin + coordinate + part)
                    units.append((number, 2 * shift, bias, CLOSED * shift, sign * (after - before)))
    gates = np.zeros((context.size, len(units)))
    for at, (number, _, _, gate, _) in enumerate(units):
        gates[number, at] = gate
    slopes, biases = np.array([[each[1] for each in units]]), np.array([each[2] - each[3] for each in units])
    return net.add(
        Units(
            name=f"next context of level {level.number}",
            reads_by=((context, gates), (coordinates, slopes)),
            bias=biases,
            writes_by=((writes, np.array([each[4] for each in units]).reshape(len(units), writes.size)),),
            margin={coordinates: TOLERANCE, context: TOLERANCE / SHIFT},
            gain={coordinates: 0.0, context: 0.0},
        )
    )
