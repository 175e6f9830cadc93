r"""A bounded-depth grammar becomes a deep transformer that gives the exact set of next words, one state per span.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522), but over the widths of phrases instead of the shapes of
trees, which can be exponentially many: a chart laid out in the residual stream. The grammar is taken as `Phrases`:
sets of words, and of sequences of two phrases or more.

- *Complete*: $C[A, w] = 1$ at $t$ iff the last $w$ words are an $A$. For $w = 1$ the word itself says so. A sequence
  $A_1 \dots A_k$ is complete with width $v + w$ iff $A_1 \dots A_{k-1}$ is with $v$, $w$ places back, and $A_k$ is with
  $w$ here: one conjunction per pair of widths, shared by all rules that begin alike.
- *Open*: $O[R] = 1$ at $t$ iff what follows may go on with one of a set $R$ of sequences. At the beginning $R$ is the
  sentence alone. Where $O[R]$ held $w$ places back and $A$ is complete with width $w$ here, what comes after $A$ in
  $R$ is open; where $R$ is open, so is everything that its sequences may begin with. It needs no width.

The words that open sequences may begin with are the answer, which the unembedding spreads. One conjunction is one unit
that looks at two bits, one of them fetched by a shift. Several conjunctions may say the same: their counts become bits,
two units each, in the MLP of the next layer, and the heads of the layer after that fetch them, one head per distance.

| | formula |
| --- | --- |
| conjunctions | $\sum_{\alpha A} \lvert W_\alpha\rvert\,\lvert W_A\rvert + \sum_{R, A} \lvert W_A\rvert$ |
| units | conjunctions, and two for each bit |
| layers | $2s - 1$ for $s$ steps, at most $(K - 1)(4d - 2) + 1$ for right sides of up to $K$ symbols and depth $d$ |

$\alpha A$ runs over the beginnings, of two phrases or more, of the sequences of phrases that something may follow and
of their parts; $R, A$ over the open sets and what stands in front of something else in them; $W$ are the possible
widths. So units are at most quadratic in the length of sentences, whatever the number of tree shapes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, Positions, construction
from vitrify.kit.gadgets.any_of import any_of
from vitrify.kit.gadgets.clauses import Clause, clauses
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Builder, Integers, MultiHot, Network, Output, Readout, Space
from vitrify.kit.positions import CodeName, dimensions, position_code
from vitrify.spec.grammars.grammar import BEGIN, END, Grammar
from vitrify.spec.grammars.phrases import Phrases, Side

T = TypeVar("T")


class Word(NamedTuple):
    """State: the word here is one of these."""

    words: frozenset[str]


class Complete(NamedTuple):
    """State: the last `width` words are one of these sequences."""

    sides: frozenset[Side]
    width: int


class Open(NamedTuple):
    """State: one of these sequences may follow."""

    rests: frozenset[Side]


State = Word | Complete | Open
BEGINNING = Word(frozenset({BEGIN}))  # a sentence is open


class Join(NamedTuple):
    """Two states that together imply a third: the older one `back` positions back, the newer one here."""

    older: State
    back: int
    newer: State


@dataclass(eq=False)
class SpanPlan:
    """The states that a grammar needs, and their derivations.

    `ways` are the joins, each of which makes one sequence complete or one set open. `any_of` lists, for each state, the
    ways that make it true, the beginning of the sentence among them.
    """

    phrases: Phrases
    ways: dict[State, list[Join]] = field(default_factory=dict)
    any_of: dict[State, list[State]] = field(default_factory=dict)
    names: dict[State, str] = field(default_factory=lambda: {BEGINNING: BEGIN})
    _steps: dict[State, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in self.phrases.complete:
            for width in self.phrases.widths[number]:
                self._complete((number,), width)
            for side in self.phrases.listed[number].sides:
                for stop in range(2, len(side) + 1):
                    self._recognize(side[:stop])
        self._follow()
        only = {state for state, ways in self.any_of.items() if ways == [BEGINNING]}
        for way, joins in self.ways.items():
            self.ways[way] = [j._replace(older=BEGINNING) if j.older in only else j for j in joins]

    # What follows from what

    def _recognize(self, side: Side) -> None:
        if Complete(frozenset({side}), self.phrases.widths_of(side)[0]) in self.ways:
            return
        for before in self.phrases.widths_of(side[:-1]):
            for width in self.phrases.widths[side[-1]]:
                way = Complete(frozenset({side}), before + width)
                self.names.setdefault(way, f"{self.phrases.text(side)}:{way.width}")
                join = Join(self._complete(side[:-1], before), width, self._complete(side[-1:], width))
                self.ways.setdefault(way, []).append(join)

    def _complete(self, side: Side, width: int) -> State:
        """Return the state that a sequence, or a single phrase, is complete with a width."""
        sides = self.phrases.listed[side[0]].sides if len(side) == 1 else (side,)
        state = Complete(frozenset(sides), width) if width > 1 else Word(self.phrases.listed[side[0]].words)
        self.names.setdefault(state, f"{self.phrases.text(side)}:{width}")
        if isinstance(state, Complete) and state not in self.any_of:
            fitting = [one for one in sides if width in self.phrases.widths_of(one)]
            self.any_of[state] = [Complete(frozenset({one}), width) for one in fitting]
        return state

    def _follow(self) -> None:
        """Add all open sets, from the sentence down."""
        waiting: list[State] = [BEGINNING]
        for way in waiting:  # grows while it is walked
            for state in self._opened(way):
                self.any_of.setdefault(state, []).append(way)
                if len(self.any_of[state]) > 1:
                    continue
                for part, after in _after(state):
                    if after not in self.ways:
                        waiting.append(after)
                        self.names.setdefault(after, f"… {' | '.join(map(self.phrases.text, sorted(after.rests)))}")
                    for width in self.phrases.widths[part]:
                        join = Join(state, width, self._complete((part,), width))
                        self.ways.setdefault(after, []).append(join)

    def _opened(self, way: State) -> list[Open]:
        """Return the sets that a way opens: its own sequences, and those of all phrases they may begin with."""
        opened = [way] if isinstance(way, Open) else []
        corners = (corner for part in self._firsts(way) for corner in self.phrases.corners[part])
        for phrase in (self.phrases.listed[corner] for corner in corners):
            if phrase.sides:
                opened.append(Open(frozenset(phrase.sides)))
                self.names.setdefault(opened[-1], f"{phrase.name} → •")
        return list(dict.fromkeys(opened))

    def _firsts(self, way: State) -> list[int]:
        return sorted({rest[0] for rest in way.rests}) if isinstance(way, Open) else [self.phrases.start]

    def next_words(self, way: State) -> frozenset[str]:
        """Return the words that may come next where a way holds; none if it opens nothing."""
        if isinstance(way, Complete):
            return frozenset()
        return frozenset().union(*(self.phrases.first_words[part] for part in self._firsts(way)))

    # What is looked at, and when it is known

    @property
    def used(self) -> list[State]:
        """The states that joins read."""
        return list(dict.fromkeys(s for joins in self.ways.values() for j in joins for s in (j.older, j.newer)))

    @property
    def fetched(self) -> list[tuple[State, int]]:
        """The states that joins read further back, with their distances."""
        return list(dict.fromkeys((j.older, j.back) for joins in self.ways.values() for j in joins))

    def step_of_way(self, way: State) -> int:
        """Return the step at which a way is known: one after all that its joins read."""
        if way not in self._steps:
            looked_at = (state for join in self.ways.get(way, ()) for state in (join.older, join.newer))
            self._steps[way] = max((1 + self.step(state) for state in looked_at), default=0)
        return self._steps[way]

    def step(self, state: State) -> int:
        """Return the step at which a state is known: that of the last of its ways, 0 for a word."""
        return max(map(self.step_of_way, self.any_of.get(state, ())), default=0)

    @property
    def steps(self) -> int:
        """The number of steps to the answer."""
        return max(map(self.step_of_way, self.ways))


def _after(state: Open) -> Iterator[tuple[int, Open]]:
    """Yield the phrases that are followed by others in an open set, and the set of what follows each."""
    rests: defaultdict[int, set[Side]] = defaultdict(set)
    for rest in state.rests:
        if len(rest) > 1:
            rests[rest[0]].add(rest[1:])
    return ((part, Open(frozenset(rests[part]))) for part in sorted(rests))


def conjunctions(phrases: Phrases) -> int:
    """Return the number of conjunctions: the sums of the table above."""
    up = sum(len(phrases.widths_of(side[:-1])) * len(phrases.widths[side[-1]]) for side in _beginnings(phrases))
    return up + sum(len(phrases.widths[part]) for rests in _open_sets(phrases) for part, _ in _after(Open(rests)))


def _beginnings(phrases: Phrases) -> set[Side]:
    """Return the prefixes, of two phrases or more, of all sequences that must be complete."""
    sides = [side for number in phrases.complete for side in phrases.listed[number].sides]
    return {side[:stop] for side in sides for stop in range(2, len(side) + 1)}


def _open_sets(phrases: Phrases) -> set[frozenset[Side]]:
    """Return what may follow each prefix of a phrase's sequences, the empty prefix included."""
    return {
        frozenset(other[stop:] for other in phrase.sides if other[:stop] == side[:stop] and len(other) > stop)
        for phrase in phrases.listed
        for side in phrase.sides
        for stop in range(len(side))
    }


def sizes(grammar: Grammar, *, max_length: int | None, positions: CodeName) -> DeclaredSizes:
    r"""Return bounds, with $C$ conjunctions, $B$ bits, $P$ phrases, $s$ steps and sentences of up to $T$ words.

    $B \le \sum_A \lvert W_A\rvert + \sum_\alpha \lvert W_\alpha\rvert + \lvert\{R\}\rvert$. Units are at most $C + 2B$,
    heads $sT$, and dimensions $C + 2B + P + 2$ and those of the position code.
    """
    phrases = Phrases.of(grammar)
    beginnings, count, longest = _beginnings(phrases), conjunctions(phrases), phrases.longest
    bits = sum(len(phrases.widths[part]) for part in phrases.complete) + len(_open_sets(phrases))
    bits += sum(len(phrases.widths_of(side)) for side in beginnings)
    steps = (max(len(rule.rhs) for rule in grammar.rules) - 1) * (2 * grammar.depth - 1) + 1
    code = dimensions(positions, max_length or longest, range(1, longest + 1))
    bounds: dict[str, int] = {"layers": 2 * steps - 1, "heads": steps * longest, "units": count + 2 * bits}
    return DeclaredSizes(at_most=bounds | {"d_model": count + 2 * bits + len(phrases.listed) + 2 + code})


@construction("spans", "bounded-depth grammars, one state per span of words", sizes, certified=("to T", "to T"))
def grammar_spans(
    grammar: Grammar,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength | None = None,
    positions: Positions = "dyadic",
) -> Network:
    """Return a transformer whose output after every prefix of a sentence is the set of words that may come next."""
    plan = SpanPlan(Phrases.of(grammar))
    longest = plan.phrases.longest
    if max_length is not None and max_length < longest:
        raise BuildRefused(f"sentences have up to {longest} words: --max-length must be at least that, or left out")
    name = f"grammar of depth {grammar.depth}, spans to {longest} words, {attention}"
    net = Builder(name, (BEGIN, *grammar.vocabulary), max_length or longest, attention)
    chart = _Chart(net, plan, positions)
    symbols = (*grammar.vocabulary, END)
    output = Output("next", symbols)
    readout = chart.readout(symbols)
    facts = {"rules": len(grammar.rules), "depth": grammar.depth, "longest sentence": longest, "steps": plan.steps}
    source = "in the spirit of Nandakumar et al. 2026, arXiv 2606.17522"
    return net.network(output, readout, "bounded-depth grammar over spans", facts, source=source, reuse=False)


class _Chart:
    """The chart while it is being built: the space and coordinate of each way, state, and fetched state."""

    def __init__(self, net: Builder, plan: SpanPlan, positions: CodeName) -> None:
        self.net, self.plan = net, plan
        self.code = position_code(positions, net.max_length, sorted({back for _, back in plan.fetched}))
        self.index = net.embed_position("position", self.code.kind(), self.code.table())
        self.ways: dict[State, tuple[Space, int]] = {}
        self.states: dict[State, tuple[Space, int]] = {}
        self.fetched: dict[tuple[State, int], tuple[Space, int]] = {}
        used, ways = _grouped(plan.step, plan.used), _grouped(plan.step_of_way, plan.ways)
        self._embed(used[0])
        for step in range(1, plan.steps + 1):
            self._count(step, ways[step])
            self._join(step, used[step])

    def _names(self, states: Iterable[State]) -> tuple[str, ...]:
        return tuple(self.plan.names[state] for state in states)

    def _embed(self, words: list[State]) -> None:
        meant = np.array([[float(isinstance(w, Word) and name in w.words) for w in words] for name in self.net.inputs])
        space = self.net.embed("state 0", MultiHot(self._names(words)), meant)
        self.ways[BEGINNING] = (space, words.index(BEGINNING))
        self._store(space, words)

    def _count(self, step: int, ways: list[State]) -> None:
        """Write, for each way, the number of its joins that hold."""
        rows: list[Clause] = []
        names = self.plan.names
        for number, way in enumerate(ways):
            for join in self.plan.ways[way]:
                conditions = self.fetched[join.older, join.back], self.states[join.newer]
                why = f"{names[join.older]} @ -{join.back}, {names[join.newer]}"
                rows.append(Clause(conditions, number, name=f"{names[way]} ⇐ {why}"))
        max_joins = max(len(self.plan.ways[way]) for way in ways)
        space = Space(f"ways {step}", Integers(self._names(ways), 0.0, float(max_joins)))
        clauses(self.net, rows, space, name=f"and: {space.name}")
        self.ways |= {way: (space, number) for number, way in enumerate(ways)}

    def _join(self, step: int, states: list[State]) -> None:
        """Write a bit for each state, 1 where one of its ways holds."""
        if not states:
            return
        groups: dict[Space, Floats] = {}
        for number, state in enumerate(states):
            for space, way in (self.ways[way] for way in self.plan.any_of[state]):
                groups.setdefault(space, np.zeros((space.size, len(states))))[way, number] = 1.0
        names = self._names(states)
        self._store(any_of(self.net, groups, Space(f"state {step}", MultiHot(names)), rows=names), states)

    def _store(self, space: Space, states: list[State]) -> None:
        """Record the coordinates of states, and fetch them for later positions: one head per distance."""
        number = {state: index for index, state in enumerate(states)}
        self.states |= {state: (space, index) for state, index in number.items()}
        backs = _grouped(lambda pair: pair[1], (pair for pair in self.plan.fetched if pair[0] in number))
        for back in sorted(backs):
            chosen = [state for state, _ in backs[back]]
            only = ([number[state] for state in chosen], MultiHot(self._names(chosen)))
            name = f"{space.name} @ -{back}"
            fetched = shift(self.net, space, back, self.code, self.index, name=name, only=only)
            self.fetched |= {(state, back): (fetched, index) for index, state in enumerate(chosen)}

    def readout(self, symbols: tuple[str, ...]) -> Readout:
        """Return the readout: the words that open sets may begin with."""
        spread: dict[Space, Floats] = {}
        for way, (space, index) in self.ways.items():
            allowed = self.plan.next_words(way)
            if allowed:
                rows = spread.setdefault(space, np.zeros((space.size, len(symbols))))
                rows[index, [symbols.index(word) for word in allowed]] = 1.0
        max_votes = sum(rows.sum(axis=0) for rows in spread.values()).max()
        needs = dict.fromkeys(spread, 0.25 / float(max_votes))
        return Readout(tuple(spread.items()), np.full(len(symbols), -0.5), needs)


def _grouped(key: Callable[[T], int], things: Iterable[T]) -> defaultdict[int, list[T]]:
    groups: defaultdict[int, list[T]] = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return groups
