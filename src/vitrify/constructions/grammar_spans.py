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
from numpy.typing import NDArray

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import Clause, clauses, some
from vitrify.kit.heads import shift
from vitrify.kit.network import Builder, Network, Readout, Space
from vitrify.kit.positions import CodeName, position_code
from vitrify.net.architecture import Output
from vitrify.net.spaces import Integers, MultiHot
from vitrify.net.transformer import AttentionKind
from vitrify.spec.grammar import BEGIN, END, Grammar
from vitrify.spec.grammar_phrases import Phrases, Side

T = TypeVar("T")


class Word(NamedTuple):
    """The word here is one of these."""

    words: frozenset[str]


class Complete(NamedTuple):
    """The last words, so many of them, are one of these sequences."""

    sides: frozenset[Side]
    width: int


class Open(NamedTuple):
    """What comes next may go on with one of these sequences."""

    rests: frozenset[Side]


State = Word | Complete | Open
BEGINNING = Word(frozenset({BEGIN}))  # a sentence is open


class Join(NamedTuple):
    """Two states that together speak for a third: one so many places back, one here."""

    older: State
    back: int
    newer: State


@dataclass(eq=False)
class Plan:
    """The states that a grammar needs, and what they follow from.

    `ways` are the joins that speak for one sequence to be complete, or one set to be open. `any_of` are the ways,
    the beginning among them, each of which makes a state true.
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
                    self._recognise(side[:stop])
        self._follow()
        only = {state for state, ways in self.any_of.items() if ways == [BEGINNING]}
        for way, joins in self.ways.items():
            self.ways[way] = [j._replace(older=BEGINNING) if j.older in only else j for j in joins]

    # What follows from what

    def _recognise(self, side: Side) -> None:
        if Complete(frozenset({side}), self.phrases.widths_of(side)[0]) in self.ways:
            return
        for before in self.phrases.widths_of(side[:-1]):
            for width in self.phrases.widths[side[-1]]:
                way = Complete(frozenset({side}), before + width)
                self.names.setdefault(way, f"{self.phrases.text(side)}:{way.width}")
                join = Join(self._complete(side[:-1], before), width, self._complete(side[-1:], width))
                self.ways.setdefault(way, []).append(join)

    def _complete(self, side: Side, width: int) -> State:
        """The state that says whether a sequence, or a phrase alone, is complete with a width."""
        sides = self.phrases.listed[side[0]].sides if len(side) == 1 else (side,)
        state = Complete(frozenset(sides), width) if width > 1 else Word(self.phrases.listed[side[0]].words)
        self.names.setdefault(state, f"{self.phrases.text(side)}:{width}")
        if isinstance(state, Complete) and state not in self.any_of:
            fitting = [one for one in sides if width in self.phrases.widths_of(one)]
            self.any_of[state] = [Complete(frozenset({one}), width) for one in fitting]
        return state

    def _follow(self) -> None:
        """Follow all open sets, from the sentence down."""
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
        """What a way opens: its own sequences, and those of all that they may begin with."""
        found = [way] if isinstance(way, Open) else []
        corners = (corner for part in self._firsts(way) for corner in self.phrases.corners[part])
        for phrase in (self.phrases.listed[corner] for corner in corners):
            if phrase.sides:
                found.append(Open(frozenset(phrase.sides)))
                self.names.setdefault(found[-1], f"{phrase.name} → •")
        return list(dict.fromkeys(found))

    def _firsts(self, way: State) -> list[int]:
        return sorted({rest[0] for rest in way.rests}) if isinstance(way, Open) else [self.phrases.start]

    def next_words(self, way: State) -> frozenset[str]:
        """The words that may come next where a way holds; none if it opens nothing."""
        if isinstance(way, Complete):
            return frozenset()
        return frozenset().union(*(self.phrases.first_words[part] for part in self._firsts(way)))

    # What is looked at, and when it is known

    @property
    def used(self) -> list[State]:
        """The states that joins look at."""
        return list(dict.fromkeys(s for joins in self.ways.values() for j in joins for s in (j.older, j.newer)))

    @property
    def fetched(self) -> list[tuple[State, int]]:
        """The states that joins look for further back, with their distances."""
        return list(dict.fromkeys((j.older, j.back) for joins in self.ways.values() for j in joins))

    def step_of_way(self, way: State) -> int:
        """A way is known one step after all that its joins look at."""
        if way not in self._steps:
            looked_at = (state for join in self.ways.get(way, ()) for state in (join.older, join.newer))
            self._steps[way] = max((1 + self.step(state) for state in looked_at), default=0)
        return self._steps[way]

    def step(self, state: State) -> int:
        """A state is known with the last of its ways; a word at once."""
        return max(map(self.step_of_way, self.any_of.get(state, ())), default=0)

    @property
    def steps(self) -> int:
        """How many steps lead to the answer."""
        return max(map(self.step_of_way, self.ways))


def _after(state: Open) -> Iterator[tuple[int, Open]]:
    """The phrases that stand in front of something else in an open set, and what comes after each."""
    rests: defaultdict[int, set[Side]] = defaultdict(set)
    for rest in state.rests:
        if len(rest) > 1:
            rests[rest[0]].add(rest[1:])
    return ((part, Open(frozenset(rests[part]))) for part in sorted(rests))


def grammar_spans(
    grammar: Grammar,
    *,
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    positions: CodeName = "dyadic",
) -> Network:
    """A transformer whose output after every beginning of a sentence is the set of words that may come next."""
    plan = Plan(Phrases.of(grammar))
    longest = plan.phrases.longest
    if max_length is not None and max_length < longest:
        raise BuildRefused(f"sentences have up to {longest} words: --max-length must be at least that, or left out")
    net = Builder(
        name=f"grammar of depth {grammar.depth}, spans to {longest} words, {attention}",
        inputs=(BEGIN, *grammar.vocabulary),
        max_length=max_length or longest,
        attention=attention,
    )
    chart = _Chart(net, plan, positions)
    symbols = (*grammar.vocabulary, END)
    return net.network(
        Output("next", symbols),
        chart.readout(symbols),
        {
            "construction": "bounded-depth grammar over spans",
            "attention": attention,
            "rules": len(grammar.rules),
            "depth": grammar.depth,
            "longest sentence": longest,
            "steps": plan.steps,
            "source": "in the spirit of Nandakumar et al. 2026, arXiv 2606.17522",
        },
        reuse=False,
    )


def sizes(grammar: Grammar) -> dict[str, int]:
    """What the formulas promise."""
    plan = Plan(Phrases.of(grammar))
    phrases = plan.phrases
    sides = {side for number in phrases.complete for side in phrases.listed[number].sides}
    beginnings = {side[:stop] for side in sides for stop in range(2, len(side) + 1)}
    up = sum(len(phrases.widths_of(side[:-1])) * len(phrases.widths[side[-1]]) for side in beginnings)
    opened = [state for state in plan.any_of if isinstance(state, Open)]
    down = sum(len(phrases.widths[part]) for state in opened for part, _ in _after(state))
    bits = sum(not isinstance(state, Word) for state in plan.used)
    arity = max(len(rule.rhs) for rule in grammar.rules)
    return {
        "conjunctions": up + down,
        "units": up + down + 2 * bits,
        "heads": len({(plan.step(state), back) for state, back in plan.fetched}),
        "layers": 2 * plan.steps - 1,
        "most_layers": (arity - 1) * (4 * grammar.depth - 2) + 1,
    }


class _Chart:
    """The chart while it is being built: where each way, each state, and each state from further back stands."""

    def __init__(self, net: Builder, plan: Plan, positions: CodeName) -> None:
        self.net, self.plan = net, plan
        self.code = position_code(positions, net.max_length, sorted({back for _, back in plan.fetched}))
        self.place = net.place("position", self.code.kind(), self.code.table())
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
        self._keep(space, words)

    def _count(self, step: int, ways: list[State]) -> None:
        """How many joins speak for each way."""
        rows: list[Clause] = []
        names = self.plan.names
        for number, way in enumerate(ways):
            for join in self.plan.ways[way]:
                asked = self.fetched[join.older, join.back], self.states[join.newer]
                why = f"{names[join.older]} @ -{join.back}, {names[join.newer]}"
                rows.append(Clause(asked, number, name=f"{names[way]} ⇐ {why}"))
        most = max(len(self.plan.ways[way]) for way in ways)
        space = Space(f"ways {step}", Integers(self._names(ways), 0.0, float(most)))
        clauses(self.net, rows, space, name=f"and: {space.name}")
        self.ways |= {way: (space, number) for number, way in enumerate(ways)}

    def _join(self, step: int, states: list[State]) -> None:
        """A bit for each state that some way makes true."""
        if not states:
            return
        groups: dict[Space, NDArray[np.float64]] = {}
        for number, state in enumerate(states):
            for space, way in (self.ways[way] for way in self.plan.any_of[state]):
                groups.setdefault(space, np.zeros((space.size, len(states))))[way, number] = 1.0
        names = self._names(states)
        self._keep(some(self.net, groups, Space(f"state {step}", MultiHot(names)), rows=names), states)

    def _keep(self, space: Space, states: list[State]) -> None:
        """Remember where states stand, and fetch them to where they are looked for: one head per distance."""
        number = {state: place for place, state in enumerate(states)}
        self.states |= {state: (space, place) for state, place in number.items()}
        backs = _grouped(lambda pair: pair[1], (pair for pair in self.plan.fetched if pair[0] in number))
        for back in sorted(backs):
            chosen = [state for state, _ in backs[back]]
            only = ([number[state] for state in chosen], MultiHot(self._names(chosen)))
            name = f"{space.name} @ -{back}"
            found = shift(self.net, space, back, self.code, self.place, name=name, only=only)
            self.fetched |= {(state, back): (found, place) for place, state in enumerate(chosen)}

    def readout(self, symbols: tuple[str, ...]) -> Readout:
        """The words that open sets may begin with."""
        spread: dict[Space, NDArray[np.float64]] = {}
        for way, (space, place) in self.ways.items():
            allowed = self.plan.next_words(way)
            if allowed:
                rows = spread.setdefault(space, np.zeros((space.size, len(symbols))))
                rows[place, [symbols.index(word) for word in allowed]] = 1.0
        most = sum(rows.sum(axis=0) for rows in spread.values()).max()
        needs = dict.fromkeys(spread, 0.25 / float(most))
        return Readout(tuple(spread.items()), np.full(len(symbols), -0.5), needs)


def _grouped(key: Callable[[T], int], things: Iterable[T]) -> defaultdict[int, list[T]]:
    found: defaultdict[int, list[T]] = defaultdict(list)
    for thing in things:
        found[key(thing)].append(thing)
    return found


def make(spec: object, settings: Settings) -> Network:
    """The network of a grammar, as settings ask."""
    assert isinstance(spec, Grammar)
    return grammar_spans(
        spec,
        attention=settings.attention,
        max_length=settings.max_length,
        positions=settings.positions or "dyadic",
    )


CONSTRUCTIONS = (
    Construction(
        "spans",
        Grammar,
        "bounded-depth grammars, one state per span of words",
        make,
        choices=("attention", "max_length", "positions"),
        certified="proved",
    ),
)
