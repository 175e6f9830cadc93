r"""Solvable automata become transformers of constant depth: a cascade of counters and of resets, level by level.

In the spirit of Liu et al. (2023, arXiv 2210.10749), theorem 2, by way of the Krohn–Rhodes decomposition. Position $t$
holds, for every level of the cascade, the coordinate *before* letter $t$. The *context* of a level, which determines
what the letter does there, is a table of the context and the coordinate of the level above, at the same position.
Heads attend strictly back.

- *Resets.* One head reads the coordinate that the last reset has set.
- *Permutations* $b_1, b_2, \dots$ of a solvable group $G$. With an abelian factor $G/N$, let $e(b)$ be the exponents of
  $b$ in it and $x^e$ the product of powers of its lifts. One head counts $E_t = \sum_{s<t} e(b_s)$, an MLP takes the
  remainders, and $b'_t = x^{E_t}\, b_t\, x^{-(E_t + e(b_t))}$ lies in $N$: the next factor's letters. The product of
  the letters before $t$ is $P_t = P'_t\, x^{E_t}$, factor by factor.
- *Both.* A reset to $r$ is stored as $r \cdot P_t^{-1}$; read at $t'$, the coordinate is that tile moved by $P_{t'}$.

| | formula |
| --- | --- |
| attention layers | $\sum$ over levels of (derived length of the group + 1 if there are resets), one head each |
| units | two per count at which a remainder changes; one per row of a table (two where it reads a soft head) |
| rows | at most $\lvert G/N\rvert$ × letters per factor; $\lvert G\rvert$ × tiles; contexts × tiles |

Some MLPs are in blocks without a head. Hard attention counts behind as many BOS pads as there may be tokens.

**Star-free.** Where no level has permutations, hard attention needs no positions: a strict head whose ties go to the
right reads the last reset. In the spirit of Angluin, Chiang and Yang (2023, arXiv 2310.13897); a level is one strict
since of a formula, which `formula_of` reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from vitrify.constructions._cascade_reach import Reach, product_of, reach, seen_below
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.log_depth import begin_symbol
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.gadgets.table import ANY, table
from vitrify.kit.heads.average import count
from vitrify.kit.heads.match import last_marked
from vitrify.kit.network import Affine, Builder, Flag, Network, OneHot, Output, Readout, Space
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.cascade import Cascade, CascadeLevel
from vitrify.spec.automata.cascade import cascade as decomposed
from vitrify.spec.automata.groups import Factor, Permutation
from vitrify.spec.automata.holonomy import Move

OTHER_DIMENSIONS = 3  # the flag and the share of BOS, and the index of the position


def sizes(automaton: Automaton, *, max_length: int) -> DeclaredSizes:
    r"""Return the heads exactly, all else as bounds, by the levels of the holonomy decomposition.

    A level with $n$ tiles, $c$ contexts, $r$ resets and a group of order $g$ and derived length $d$ has $d$ heads, and
    one more for resets; at most $2d + 1$ layers (1 if $d = 0$), and one more for resets if $d > 0$. It adds at most
    $D = 2c + 3n + (d + 2)g$ dimensions, and $2(T - 1)(g - 1) + dg^2 + g(2n + r) + 2cn$ units: steps of counts, letters
    passed on, coordinates and resets, contexts of the next level. Two more units may erase a dimension.
    """
    heads = layers = units = 0
    width = len(automaton.states) + OTHER_DIMENSIONS
    for level in decomposed(automaton).levels:
        d, g, n, c, r = level.group.derived_length, level.group.order, level.size, len(level.moves), len(level.resets)
        heads += d + (r > 0)
        layers += 2 * d + 1 + (d > 0 and r > 0)
        units += 2 * (max_length - 1) * (g - 1) + d * g**2 + g * (2 * n + r) + 2 * c * n
        width += 2 * c + 3 * n + (d + 2) * g
    bounds = {"layers": layers, "units": units + 2 * width, "d_model": width}
    return DeclaredSizes({"heads": heads, "attention_layers": heads}, at_most=bounds)


@construction(
    "cascade",
    "solvable automata in constant depth, by counters and resets",
    sizes,
    certified=("to T", "to T"),
    counters=True,
)
@construction(
    "star-free",
    "automata of star-free languages by hard attention without positions",
    sizes,
    certified=("every length", "every length"),
    attention="hard",
    counters=False,
)
def cascade(
    automaton: Automaton, *, attention: Attention = "softmax", max_length: MaxLength = 128, counters: bool = True
) -> Network:
    """Return a transformer of constant depth whose output after every letter is the automaton's state.

    Without `counters`, automata with groups are refused.
    """
    plan = decomposed(automaton)
    refuse_groups(plan, "" if counters else "hard attention without positions recognizes star-free languages only")
    machine = plan.automaton
    counts = any(level.group.order > 1 for level in plan.levels)
    title = f"automaton of {len(machine.states)} states, cascade of {len(plan.levels)} levels, {attention}"
    net = Builder(
        title,
        (begin_symbol(automaton), *automaton.alphabet),
        max_length,
        attention,
        pads=max_length if counts and attention == "hard" else 1,
    )
    contexts = first_context(net, plan)
    for index, level in enumerate(plan.levels):
        coordinate, noisy = _Level(net, plan, level, f"level {level.number}", *contexts).coordinate()
        contexts = _next(net, plan, index, contexts[0], coordinate, noisy)
    levels = [f"{each.size} tiles, {each.group.name}{', resets' * bool(each.resets)}" for each in plan.levels]
    output, readout = state_of(plan, contexts[0])
    facts = {"states": len(machine.states), "levels": "; ".join(levels) or "none"}
    source = "in the spirit of Liu et al. 2023, arXiv 2210.10749"
    return net.network(output, readout, "cascade of an automaton", facts, source=source)


def state_of(plan: Cascade, state: Space) -> tuple[Output, Readout]:
    """Return output and readout of the state that the context below the last level is; void is the initial one."""
    machine = plan.automaton
    names = machine.states
    matrix = np.array([[float(name == other) for other in names] for name in plan.states]).reshape(-1, len(names))
    bias = np.where(np.arange(len(names)) == machine.initial, 0.5, 0.0)  # nothing says another state: the initial one
    output = Output("recognizer", names, accepting=machine.accepting_states)
    return output, Readout(((state, matrix),) if plan.states else (), bias, {state: 0.25})


def refuse_groups(plan: Cascade, only_star_free: str = "") -> None:
    """Refuse a cascade with a group that is not solvable; with any group, where a reason for that is given."""
    permuting = next((level for level in plan.levels if level.group.order > 1), None)
    if permuting and only_star_free:
        raise BuildRefused(
            f"{only_star_free}, but level {permuting.number} of {len(plan.holonomy.levels)} has the group "
            f"{permuting.group.name} of {permuting.group.order} permutations: minimize the automaton, or build it with "
            "--construction cascade or log-depth"
        )
    if plan.unsolvable:
        group = plan.unsolvable.group
        raise BuildRefused(
            f"only solvable automata run in constant depth, but level {plan.unsolvable.number} of "
            f"{len(plan.holonomy.levels)} has the group {group.name} of {group.order} permutations, whose derived "
            f"series stops at order {group.derived_series[-1].order}: build this automaton with "
            "--construction log-depth"
        )


def context_spaces(plan: Cascade, index: int) -> tuple[Space, np.ndarray, Space | None, np.ndarray]:
    """Return the spaces of a level's context and (if its group is not trivial) its move, and their codes by context.

    Below the last level, the context is the state.
    """
    if index == len(plan.levels):
        return Space("state", OneHot(plan.states, void=True)), np.eye(len(plan.states)), None, np.zeros(0)
    level = plan.levels[index]
    context = Space(f"context {level.number}", OneHot(tuple(map(str, range(len(level.moves)))), void=True))
    if level.group.order == 1:
        return context, np.eye(context.size), None, np.zeros(0)
    moves = _moves(level)
    codes = np.array([[float(move == other) for other in moves] for move in level.moves])
    move = Space(f"move {level.number}", OneHot(tuple(map(_move_name, moves)), void=True))
    return context, np.eye(context.size), move, codes


def first_context(net: Builder, plan: Cascade) -> tuple[Space, Space | None]:
    """Return the embedded context and move of the top level, which the letters determine."""
    context, codes, move, moves = context_spaces(plan, 0)
    contexts = [None, *plan.first_contexts]  # nothing at BOS
    if not context.size:
        return net.embed("nothing", Flag(), np.zeros((len(contexts), 1))), None  # there is but one state
    first = net.embed(context.name, context.kind, _rows(codes, contexts))
    return first, net.embed(move.name, move.kind, _rows(moves, contexts)) if move else None


def _next(
    net: Builder, plan: Cascade, index: int, context: Space, coordinate: Space, noisy: bool
) -> tuple[Space, Space | None]:
    """Return the context and move of the next level, a table of a level's context and coordinate."""
    level = plan.levels[index]
    writes, codes, move, moves = context_spaces(plan, index + 1)
    number = {coordinate: index for index, coordinate in enumerate(sorted(level.used_coordinates))}
    patterns = [(above, ANY if seen is None else number[seen]) for above, seen, _ in level.next_table]
    to = [after for *_, after in level.next_table]
    also = (move, moves[to]) if move else None
    table(net, [context, coordinate], np.array(patterns), writes, codes[to], also=also, snap=noisy)
    return writes, move


def _rows(codes: np.ndarray, chosen: Sequence[int | None]) -> np.ndarray:
    """Return rows of a table of codes, zeros for None."""
    return np.array([np.zeros(codes.shape[1]) if row is None else codes[row] for row in chosen])


def _moves(level: CascadeLevel) -> list[Move]:
    """Return the distinct moves of a level, without the identity."""
    return [move for move in dict.fromkeys(level.moves) if move != Move()]


def _move_name(move: Move) -> str:
    return f"→{move.reset}" if move.permutation is None else ",".join(map(str, move.permutation))


@dataclass(frozen=True, eq=False)
class _Level:
    """Builder of one level: computes its coordinate before each letter from its context and move."""

    net: Builder
    plan: Cascade
    level: CascadeLevel
    name: str
    context: Space
    move: Space | None

    @property
    def kind(self) -> OneHot:
        """The one-hot kind of the coordinates that are used; void stands for any other."""
        return OneHot(tuple(map(str, sorted(self.level.used_coordinates))), void=True)

    def coordinate(self) -> tuple[Space, bool]:
        """Return the coordinate before the letter, and whether it is noisy because soft attention fetched it."""
        level, soft = self.level, self.net.attention == "softmax"
        name = f"{self.name}: coordinate"
        if self.move is None:
            flags = [move.reset is not None for move in level.moves]
            codes = self._codes([move.reset for move in level.moves])
            return self._since_reset(self.context, flags, codes, self._codes([level.start]), self.kind, name), soft
        reached = reach(self.plan, level, self.net.max_length)
        remainders = self._remainders(reached)
        made, patterns = Space(name, self.kind), [tuple(chain(*e)) for _, e in reached.outputs]
        factors, identity = level.group.factors, level.group.identity
        codes = self._codes([product_of(factors, e, identity)[since] for since, e in reached.outputs])
        if not level.resets:
            return table(self.net, remainders, np.array(patterns), made, codes), False
        since = self._moved_back(reached, remainders)
        patterns = [(tile, *pattern) for (tile, _), pattern in zip(reached.outputs, patterns, strict=True)]
        return table(self.net, [since, *remainders], np.array(patterns), made, codes, snap=soft), False

    def _moved_back(self, reached: Reach, remainders: Sequence[Space]) -> Space:
        """Return the tile that the last reset has set, moved back by the permutations that came before it."""
        assert self.move is not None
        number = {move.reset: index for index, move in enumerate(_moves(self.level)) if move.reset is not None}
        kind = OneHot(tuple(map(str, range(self.level.size))), void=True)
        patterns = np.array([(number[reset], *chain(*e)) for reset, e in reached.resets])
        back = Space(f"{self.name}: reset, moved back", kind)
        table(self.net, [self.move, *remainders], patterns, back, kind.codes[list(reached.resets.values())])
        start = _rows(kind.codes, [self.level.start])
        return self._since_reset(back, [True] * kind.size, kind.codes, start, kind, f"{self.name}: since reset")

    def _since_reset(
        self, source: Space, flags: Sequence[bool], codes: np.ndarray, start: np.ndarray, kind: OneHot, name: str
    ) -> Space:
        """Return the value that the last reset has set; before the first reset, the initial one."""
        default = bool(start.any())
        value = Affine.of({source: codes} | ({self.net.bos: start} if default else {}))
        flag = Affine.of({source: np.array(flags, dtype=float)[:, None]})
        at_once = [
            context is not None and self.level.moves[context].reset is not None for context in self.level.contexts[0]
        ]
        sink = default and not all(at_once)  # where every first letter resets, only that letter sees the start
        return last_marked(self.net, flag, (value, kind), mask="strict", sink=sink, name=name)

    def _remainders(self, reached: Reach) -> list[Space]:
        """Return the exponents of all factors before the letter: count, take remainders, pass letters to the next."""
        assert self.move is not None
        space, remainders = self.move, list[Space]()
        indices = {m.permutation: index for index, m in enumerate(_moves(self.level)) if m.permutation is not None}
        for number, factor in enumerate(self.level.group.factors):
            name = f"{self.name}, factor {number + 1}"
            here = self._counted(space, indices, factor, reached.highest[number], name)
            remainders += here
            if number + 1 < len(self.level.group.factors):
                rows = [((indices[b], *e), seen_below(factor, b, e)) for b, e in reached.letters[number]]
                rows = [(pattern, letter) for pattern, letter in rows if letter != self.level.group.identity]
                indices = {letter: index for index, letter in enumerate(dict.fromkeys(letter for _, letter in rows))}
                kind = OneHot(tuple(_move_name(Move(letter)) for letter in indices), void=True)
                patterns, codes = np.array([pattern for pattern, _ in rows]), [indices[letter] for _, letter in rows]
                space = table(self.net, [space, *here], patterns, Space(f"{name}: passed on", kind), kind.codes[codes])
        return remainders

    def _counted(
        self, space: Space, indices: Mapping[Permutation, int], factor: Factor, highest: Sequence[int], name: str
    ) -> list[Space]:
        """Return the exponents of a factor, summed over the letters before this one, each modulo its order."""
        weights = np.zeros((space.size, len(factor.orders)))
        for letter, index in indices.items():
            weights[index] = factor.exponents[letter]
        labels, value = tuple(f"mod {order}" for order in factor.orders), Affine.of({space: weights})
        counted = count(self.net, value, labels, float(max(highest)), mask="strict", name=f"{name}: count")
        remainders: list[Space] = []
        for part, (order, high) in enumerate(zip(factor.orders, highest, strict=True)):
            kind = OneHot(tuple(map(str, range(order))))
            points = _reachable_sums({round(weight) for weight in weights[:, part]}, high)
            written = Space(f"{name}: remainder {part + 1}", kind)
            outputs = [(written, kind.codes[points % order])]
            name_of_units = f"remainder: {written.name}"
            remainders += steps(self.net, counted, points.astype(float), outputs, name=name_of_units, coordinate=part)
        return remainders

    def _codes(self, coordinates: Sequence[int | None]) -> np.ndarray:
        """Return codes of coordinates, zeros for those that are not used."""
        indices = {coordinate: index for index, coordinate in enumerate(sorted(self.level.used_coordinates))}
        return _rows(self.kind.codes, [None if c is None else indices.get(c) for c in coordinates])


def _reachable_sums(weights: Collection[int], high: int) -> np.ndarray:
    """Return all sums of some weights, up to the highest."""
    reachable = np.zeros(high + 1, dtype=bool)
    reachable[0] = True
    for total in range(1, high + 1):
        reachable[total] = any(0 < weight <= total and reachable[total - weight] for weight in weights)
    return np.flatnonzero(reachable)
