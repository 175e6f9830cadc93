r"""Solvable automata become transformers of constant depth: a cascade of counters and of resets, level by level.

In the spirit of Liu et al. (2023, arXiv 2210.10749), theorem 2, by way of the Krohn–Rhodes decomposition. Position $t$
holds, for every level of the cascade, the coordinate *before* letter $t$; so what the letter does at a level, its
context, is a table of the context above and the coordinate above, at the same position. Heads look strictly back.

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

Some MLPs stand in blocks without a head. Hard attention counts behind as many beginnings of the sequence as there may
be tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from vitrify.constructions._cascade_reach import Exponents, Reach, product_of, reach, seen_below
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.log_depth import begin_symbol
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import ANY, steps, table
from vitrify.kit.heads import count, last_marked
from vitrify.kit.network import Affine, Builder, Network, Readout, Space
from vitrify.net.architecture import Output
from vitrify.net.spaces import Flag, OneHot
from vitrify.net.transformer import AttentionKind
from vitrify.spec.automaton import Automaton
from vitrify.spec.cascade import Cascade, CascadeLevel
from vitrify.spec.cascade import cascade as decomposed
from vitrify.spec.groups import Factor, Permutation
from vitrify.spec.holonomy import Move


def cascade(automaton: Automaton, *, attention: AttentionKind = "softmax", max_length: int = 128) -> Network:
    """A transformer of constant depth whose output after every letter is the automaton's state."""
    if max_length < 1:
        raise BuildRefused(f"--max-length must be at least 1, got {max_length}")
    plan = decomposed(automaton)
    _check(plan)
    machine = plan.automaton
    counts = any(level.group.order > 1 for level in plan.levels)
    net = Builder(
        name=f"automaton of {len(machine.states)} states, cascade of {len(plan.levels)} levels, {attention}",
        inputs=(begin_symbol(automaton), *automaton.alphabet),
        max_length=max_length,
        attention=attention,
        pads=max_length if counts and attention == "hard" else 1,
    )
    told = _first(net, plan)
    for place, level in enumerate(plan.levels):
        coordinate, noisy = _Level(net, plan, level, f"level {level.place}", *told).coordinate()
        told = _next(net, plan, place, told[0], coordinate, noisy)
    names = machine.states
    matrix = np.array([[float(name == other) for other in names] for name in plan.states]).reshape(-1, len(names))
    bias = np.where(np.arange(len(names)) == machine.initial, 0.5, 0.0)  # nothing says another state: the initial one
    return net.network(
        Output("recogniser", names, accepting=machine.accepting_states),
        Readout(((told[0], matrix),) if plan.states else (), bias, {told[0]: 0.25}),
        {
            "construction": "cascade of an automaton",
            "attention": attention,
            "states": len(names),
            "levels": "; ".join(_described(level) for level in plan.levels) or "none",
            "source": "in the spirit of Liu et al. 2023, arXiv 2210.10749",
        },
    )


def _described(level: CascadeLevel) -> str:
    return f"{level.size} tiles, {level.group.name}" + (", resets" if level.resets else "")


def _check(plan: Cascade) -> None:
    """Refuse what has no constant depth here."""
    if plan.unsolvable:
        group = plan.unsolvable.group
        raise BuildRefused(
            f"only solvable automata run in constant depth, but level {plan.unsolvable.place} of "
            f"{len(plan.holonomy.levels)} has the group {group.name} of {group.order} permutations, whose derived "
            f"series stops at order {group.derived_series[-1].order}: build this automaton with --shape log-depth"
        )


def _told_spaces(plan: Cascade, place: int) -> tuple[Space, np.ndarray, Space | None, np.ndarray]:
    """The spaces that tell a level its context and (where its group is not trivial) its move, with a row per context.

    Below the last level, the context is the state.
    """
    if place == len(plan.levels):
        return Space("state", OneHot(plan.states, void=True)), np.eye(len(plan.states)), None, np.zeros(0)
    level = plan.levels[place]
    context = Space(f"context {level.place}", OneHot(tuple(map(str, range(len(level.moves)))), void=True))
    if level.group.order == 1:
        return context, np.eye(context.size), None, np.zeros(0)
    moves = _moves(level)
    codes = np.array([[float(move == other) for other in moves] for move in level.moves])
    return (
        context,
        np.eye(context.size),
        Space(f"move {level.place}", OneHot(tuple(map(_say, moves)), void=True)),
        codes,
    )


def _first(net: Builder, plan: Cascade) -> tuple[Space, Space | None]:
    """What the letters tell the top level."""
    context, codes, move, moves = _told_spaces(plan, 0)
    told = [None, *plan.first]  # nothing at BOS
    if not context.size:
        return net.embed("nothing", Flag(), np.zeros((len(told), 1))), None  # there is but one state
    first = net.embed(context.name, context.kind, _rows(codes, told))
    return first, net.embed(move.name, move.kind, _rows(moves, told)) if move else None


def _next(
    net: Builder, plan: Cascade, place: int, context: Space, coordinate: Space, noisy: bool
) -> tuple[Space, Space | None]:
    """What a level's context and coordinate tell the next one."""
    level = plan.levels[place]
    writes, codes, move, moves = _told_spaces(plan, place + 1)
    number = {coordinate: place for place, coordinate in enumerate(sorted(level.looked_at))}
    patterns = [(above, ANY if seen is None else number[seen]) for above, seen, _ in level.rows]
    to = [after for *_, after in level.rows]
    also = (move, moves[to]) if move else None
    table(net, [context, coordinate], np.array(patterns), writes, codes[to], also=also, snap=noisy)
    return writes, move


def _rows(codes: np.ndarray, chosen: Sequence[int | None]) -> np.ndarray:
    """Rows of a table of codes, zeros for None."""
    return np.array([np.zeros(codes.shape[1]) if row is None else codes[row] for row in chosen])


def _moves(level: CascadeLevel) -> list[Move]:
    """The moves that do something."""
    return [move for move in dict.fromkeys(level.moves) if move != Move()]


def _say(move: Move) -> str:
    return f"→{move.reset}" if move.permutation is None else ",".join(map(str, move.permutation))


@dataclass(frozen=True, eq=False)
class _Level:
    """One level in the making: its context and moves at every position become its coordinate before the letter."""

    net: Builder
    plan: Cascade
    level: CascadeLevel
    name: str
    context: Space
    move: Space | None

    @property
    def kind(self) -> OneHot:
        """The coordinates that are looked at; void stands for any other."""
        return OneHot(tuple(map(str, sorted(self.level.looked_at))), void=True)

    def coordinate(self) -> tuple[Space, bool]:
        """The coordinate before the letter, and whether it is noisy, as what soft attention has fetched is."""
        level, soft = self.level, self.net.attention == "softmax"
        name = f"{self.name}: coordinate"
        if self.move is None:
            flags = [move.reset is not None for move in level.moves]
            codes = self._codes([move.reset for move in level.moves])
            return self._since_reset(self.context, flags, codes, self._codes([level.start]), self.kind, name), soft
        met = reach(self.plan, level, self.net.max_length)
        remainders = self._remainders(met)
        made, patterns = Space(name, self.kind), [tuple(chain(*e)) for _, e in met.looked_at]
        codes = self._codes([self._product(e)[since] for since, e in met.looked_at])
        if not level.resets:
            return table(self.net, remainders, np.array(patterns), made, codes), False
        since = self._moved_back(met, remainders)
        patterns = [(tile, *pattern) for (tile, _), pattern in zip(met.looked_at, patterns, strict=True)]
        return table(self.net, [since, *remainders], np.array(patterns), made, codes, snap=soft), False

    def _moved_back(self, met: Reach, remainders: Sequence[Space]) -> Space:
        """The tile that the last reset has set, moved back to where it would have been at the start."""
        assert self.move is not None
        number = {move.reset: place for place, move in enumerate(_moves(self.level)) if move.reset is not None}
        kind = OneHot(tuple(map(str, range(self.level.size))), void=True)
        patterns = np.array([(number[reset], *chain(*e)) for reset, e in met.resets])
        back = Space(f"{self.name}: reset, moved back", kind)
        table(self.net, [self.move, *remainders], patterns, back, kind.codes[list(met.resets.values())])
        start = _rows(kind.codes, [self.level.start])
        return self._since_reset(back, [True] * kind.size, kind.codes, start, kind, f"{self.name}: since reset")

    def _since_reset(
        self, source: Space, flags: Sequence[bool], codes: np.ndarray, start: np.ndarray, kind: OneHot, name: str
    ) -> Space:
        """What the last reset has set; before the first, what stands at the start."""
        default = bool(start.any())
        value = Affine.of({source: codes} | ({self.net.bos: start} if default else {}))
        flag = Affine.of({source: np.array(flags, dtype=float)[:, None]})
        at_once = [
            context is not None and self.level.moves[context].reset is not None for context in self.level.told[0]
        ]
        sink = default and not all(at_once)  # where every first letter resets, only that letter sees the start
        return last_marked(self.net, flag, (value, kind), mask="strict", sink=sink, name=name)

    def _remainders(self, met: Reach) -> list[Space]:
        """The exponents of all factors before the letter: count, take the remainder, pass the letters on."""
        assert self.move is not None
        space, found = self.move, list[Space]()
        places = {m.permutation: place for place, m in enumerate(_moves(self.level)) if m.permutation is not None}
        for number, factor in enumerate(self.level.group.factors):
            name = f"{self.name}, factor {number + 1}"
            here = self._counted(space, places, factor, met.highest[number], name)
            found += here
            if number + 1 < len(self.level.group.factors):
                rows = [((places[b], *e), seen_below(factor, b, e)) for b, e in met.letters[number]]
                rows = [(pattern, letter) for pattern, letter in rows if letter != self.level.group.identity]
                places = {letter: place for place, letter in enumerate(dict.fromkeys(letter for _, letter in rows))}
                kind = OneHot(tuple(_say(Move(letter)) for letter in places), void=True)
                patterns, codes = np.array([pattern for pattern, _ in rows]), [places[letter] for _, letter in rows]
                space = table(self.net, [space, *here], patterns, Space(f"{name}: passed on", kind), kind.codes[codes])
        return found

    def _counted(
        self, space: Space, places: Mapping[Permutation, int], factor: Factor, highest: Sequence[int], name: str
    ) -> list[Space]:
        """The exponents of a factor, added up over the letters before this one, each modulo its order."""
        weights = np.zeros((space.size, len(factor.orders)))
        for letter, place in places.items():
            weights[place] = factor.exponents[letter]
        labels, value = tuple(f"mod {order}" for order in factor.orders), Affine.of({space: weights})
        counted = count(self.net, value, labels, float(max(highest)), mask="strict", name=f"{name}: count")
        found: list[Space] = []
        for part, (order, high) in enumerate(zip(factor.orders, highest, strict=True)):
            kind = OneHot(tuple(map(str, range(order))))
            points = _sums({round(weight) for weight in weights[:, part]}, high)
            written = Space(f"{name}: remainder {part + 1}", kind)
            outputs = [(written, kind.codes[points % order])]
            name_of_units = f"remainder: {written.name}"
            found += steps(self.net, counted, points.astype(float), outputs, name=name_of_units, coordinate=part)
        return found

    def _product(self, exponents: Exponents) -> Permutation:
        return product_of(self.level.group.factors, exponents, self.level.group.identity)

    def _codes(self, coordinates: Sequence[int | None]) -> np.ndarray:
        """Codes of coordinates, zeros for those that are not looked at."""
        looked = {coordinate: place for place, coordinate in enumerate(sorted(self.level.looked_at))}
        return _rows(self.kind.codes, [None if c is None else looked.get(c) for c in coordinates])


def _sums(weights: Collection[int], high: int) -> np.ndarray:
    """All sums of some weights, up to the highest."""
    found = np.zeros(high + 1, dtype=bool)
    found[0] = True
    for total in range(1, high + 1):
        found[total] = any(0 < weight <= total and found[total - weight] for weight in weights)
    return np.flatnonzero(found)


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Automaton)
    return cascade(spec, attention=settings.attention, max_length=settings.max_length or 128)


CONSTRUCTIONS = (
    Construction(
        "cascade", Automaton, "solvable automata in constant depth, by counters and resets", _make, certified="proved"
    ),
)
