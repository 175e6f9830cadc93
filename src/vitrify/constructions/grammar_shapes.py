r"""A bounded-depth grammar becomes a deep transformer that gives the exact set of next words, one state per shape.

In the spirit of Nandakumar et al. (2026, arXiv 2606.17522): two passes over a levelled grammar of depth $d$, bottom-up
and top-down, with states that all sentences share.

- *Complete*: $Q_{h,k}[A] = 1$ at $t$ iff $A$, of level $h$, derives the last words up to $w_t$ in shape $k$. A shape
  has a fixed width, so its children end at fixed distances before $t$: heads are shifts, one per shape and distance.
- *Open*: $O_{h,k,p}[A] = 1$ at $t$ iff the node of level $h$ that holds word $t+1$ may be an $A$ of shape $k$ of which
  $p$ words have been read. At the top, $p$ is the position. Going down, the child that holds the next word follows
  from $(k, p)$; its elder siblings must be complete. At level 0 this is the answer.

Each pass costs one conjunction per rule, shape (and dot), two units where its noise is cut. Where several rules can
say the same, a second MLP turns their count into a bit, two units per symbol.

| | formula |
| --- | --- |
| layers | at most $4d - 3$, $d$ the depth with the end of the sentence |
| conjunctions | $\sum U'_{hk}$ over shapes with a younger sibling and their parts, $+ \sum w_{hk} U_{hk}$ over all |

$U_{hk}$ is the number of rules that can stand at a node of shape $k$ ($U'$: leaving out those that end the sentence),
and $w_{hk}$ the number of words that it spans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import ANY, steps, table
from vitrify.kit.heads import shift
from vitrify.kit.network import Builder, Network, Readout, Space
from vitrify.kit.positions import CodeName, PositionCode, position_code
from vitrify.net.architecture import Output
from vitrify.net.spaces import Integers, MultiHot, OneHot
from vitrify.net.transformer import AttentionKind
from vitrify.spec.grammar import BEGIN, END, Grammar
from vitrify.spec.grammar_levels import LevelRule
from vitrify.spec.grammar_shapes import Shapes

SHAPES = 2_000  # more shapes in a level than this make nets that are too wide to be read

Dotted = tuple[int, int, int]  # level, shape, words of it that have been read
Asked = dict[Space, int]  # the value that a conjunction wants of each space it looks at
Row = tuple[Asked, int, str]  # what is asked, the symbol that is then allowed, and the rule, for the label


def grammar_shapes(
    grammar: Grammar,
    *,
    attention: AttentionKind = "softmax",
    max_length: int | None = None,
    positions: CodeName = "dyadic",
    limit: int = SHAPES,
) -> Network:
    """A transformer whose output after every beginning of a sentence is the set of words that may come next."""
    shapes = grammar.levelled().with_end().shapes(limit)
    longest = max(shapes.widths[-1]) - 1
    if max_length is not None and max_length < longest:
        raise BuildRefused(f"sentences have up to {longest} words: --max-length must be at least that, or left out")
    net = Builder(
        name=f"grammar of depth {shapes.levels.depth}, {len(shapes)} shapes, {attention}",
        inputs=(BEGIN, *grammar.vocabulary),
        max_length=max_length or longest,
        attention=attention,
    )
    work = _Passes(net, shapes, positions)
    counts = work.answer()
    symbols = (*grammar.vocabulary, END)
    spread = np.zeros((counts.size, len(symbols)))
    for place, word in enumerate(work.words_at(0, 0)):
        spread[place, symbols.index(shapes.levels.words[word])] = 1.0
    return net.network(
        Output("next", symbols),
        Readout(((counts, spread),), np.full(len(symbols), -0.5), {counts: 0.25}),
        {
            "construction": "bounded-depth grammar",
            "attention": attention,
            "rules": len(grammar.rules),
            "depth": shapes.levels.depth,
            "shapes": len(shapes),
            "longest sentence": longest,
            "source": "in the spirit of Nandakumar et al. 2026, arXiv 2606.17522",
        },
        reuse=False,
    )


def sizes(grammar: Grammar, limit: int = SHAPES) -> dict[str, int]:
    """What the formulas promise: the conjunctions of both passes, and a bound on the layers."""
    shapes = grammar.levelled().with_end().shapes(limit)
    ends = last_symbols(shapes)
    up = sum(rule.lhs not in ends[h] for h, k in complete(shapes) if h for rule in _usable(shapes, h, k))
    down = sum(
        shapes.widths[h][k] * len(list(_usable(shapes, h, k)))
        for h in range(1, len(shapes.trees))
        for k in range(len(shapes.trees[h]))
    )
    return {"conjunctions": up + down, "most_layers": 4 * shapes.levels.depth - 3}


def complete(shapes: Shapes) -> list[tuple[int, int]]:
    """The shapes (level, number) that must be recognised: those with a younger sibling, and all they are made of."""
    wanted: set[tuple[int, int]] = set()
    for h in range(len(shapes.trees) - 1, 0, -1):
        for k, tree in enumerate(shapes.trees[h]):
            children = tree if (h, k) in wanted else tree[:-1]
            wanted |= {(h - 1, child) for child in children}
    return sorted(wanted)


def last_symbols(shapes: Shapes) -> list[set[int]]:
    """By level, the symbols that end with the end of the sentence: these are never complete before it."""
    found = [{word for word, name in enumerate(shapes.levels.words) if name == END}]
    for rules in shapes.levels.rules[1:]:
        found.append({rule.lhs for rule in rules if rule.rhs[-1] in found[-1]})
    return found


def _usable(shapes: Shapes, level: int, shape: int) -> Iterator[LevelRule]:
    return (rule for rule in shapes.levels.rules[level] if shapes.usable(level, rule, shape))


@dataclass(eq=False)
class _Passes:
    """The two passes, while they are being built."""

    net: Builder
    shapes: Shapes
    positions: CodeName
    states: dict[tuple[int, int], Space] = field(default_factory=dict)
    fetched: dict[tuple[int, int, int], Space] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ends = last_symbols(self.shapes)
        kind = MultiHot(self._names(0, self.complete_at(0, 0)))
        letters = np.array([[float(name == word) for word in kind.values] for name in self.net.inputs])
        self.states[0, 0] = self.net.embed("word", kind, letters)
        longest = max(self.shapes.widths[-1]) - 1
        offsets = range(1, longest + 1)
        self.code: PositionCode = position_code(self.positions, self.net.max_length, offsets)
        self.place = self.net.place("position", self.code.kind(), self.code.table())
        spots = OneHot(tuple(str(t) for t in range(longest + 1)), void=True)  # void beyond the longest sentence
        counted = np.zeros((self.net.max_length, spots.size))
        counted[:longest] = spots.codes[1:]
        self.where = self.net.place("words read", spots, counted, pads=spots.codes[:1])
        for h, k in complete(self.shapes):
            if h:
                self._recognise(h, k)

    def words_at(self, level: int, shape: int) -> list[int]:
        """The symbols of a level that can have a shape."""
        return [a for a, own in enumerate(self.shapes.of_symbol[level]) if shape in own]

    def complete_at(self, level: int, shape: int) -> list[int]:
        """Those of them that can be complete before the sentence is."""
        return [a for a in self.words_at(level, shape) if a not in self.ends[level]]

    def _names(self, level: int, symbols: list[int]) -> tuple[str, ...]:
        return tuple(self.shapes.levels.symbols[level][a] for a in symbols)

    def _rule(self, level: int, rule: LevelRule) -> str:
        names, below = self.shapes.levels.symbols[level], self.shapes.levels.symbols[level - 1]
        return f"{names[rule.lhs]} → {' '.join(below[child] for child in rule.rhs)}"

    def _state(self, level: int, shape: int, back: int) -> Space:
        """The complete state of a shape, so many places back."""
        if back == 0:
            return self.states[level, shape]
        key = (level, shape, back)
        if key not in self.fetched:
            name = f"{self.states[level, shape].name} @ -{back}"
            self.fetched[key] = shift(self.net, self.states[level, shape], back, self.code, self.place, name=name)
        return self.fetched[key]

    def _sibling(self, level: int, shape: int, symbol: int, back: int) -> tuple[Space, int]:
        return self._state(level, shape, back), self.complete_at(level, shape).index(symbol)

    def _recognise(self, h: int, k: int) -> None:
        tree, widths = self.shapes.trees[h][k], self.shapes.widths[h - 1]
        rows: list[Row] = []
        symbols = self.complete_at(h, k)
        for rule in (rule for rule in _usable(self.shapes, h, k) if rule.lhs in symbols):
            back, row = 0, Asked()
            for child, symbol in zip(reversed(tree), reversed(rule.rhs), strict=True):
                space, value = self._sibling(h - 1, child, symbol, back)
                row[space] = value
                back += widths[child]
            rows.append((row, symbols.index(rule.lhs), self._rule(h, rule)))
        self.states[h, k] = self._bits(rows, f"complete {h}.{k}", self._names(h, symbols))

    def answer(self) -> Space:
        """Go down from the start symbol to the words; how often each is allowed next."""
        top = len(self.shapes.trees) - 1
        spaces: dict[Dotted, Space] = {}
        dots: list[Dotted] = [(top, k, p) for k in self.shapes.whole for p in range(self.shapes.widths[top][k])]
        for h in range(top, 0, -1):
            found: defaultdict[Dotted, list[Row]] = defaultdict(list)
            for dot in dots:
                opened = None if h == top else spaces[dot]
                for rule in _usable(self.shapes, h, dot[1]):
                    target, row, symbol = self._open(dot, rule, opened)
                    allowed = self.words_at(h - 1, target[1]).index(symbol)
                    found[target].append((row, allowed, self._rule(h, rule)))
            dots = sorted(found)
            for dot in dots:
                name = f"open {h - 1}.{dot[1]}.{dot[2]}"
                names = self._names(h - 1, self.words_at(h - 1, dot[1]))
                if h == 1:
                    return self._counts(found[dot], "next words", names)
                spaces[dot] = self._bits(found[dot], name, names)
        raise AssertionError("a levelled grammar has at least one level of rules")

    def _open(self, dot: Dotted, rule: LevelRule, opened: Space | None) -> tuple[Dotted, Asked, int]:
        """What a rule at an open node demands, the child that holds the next word, and that child's symbol."""
        h, k, p = dot
        tree, widths = self.shapes.trees[h][k], self.shapes.widths[h - 1]
        j, inside = 0, p
        while inside >= widths[tree[j]]:
            inside -= widths[tree[j]]
            j += 1
        row = Asked()
        if opened is None:
            row[self.where] = p
        else:
            row[opened] = self.words_at(h, k).index(rule.lhs)
        back = inside
        for i in reversed(range(j)):
            space, value = self._sibling(h - 1, tree[i], rule.rhs[i], back)
            row[space] = value
            back += widths[tree[i]]
        return (h - 1, tree[j], inside), row, rule.rhs[j]

    def _bits(self, rows: list[Row], name: str, names: tuple[str, ...]) -> Space:
        """Conjunctions, and a bit for each symbol that at least one of them allows."""
        kind = MultiHot(names)
        written = [symbol for _, symbol, _ in rows]
        if len(set(written)) == len(written):
            return self._conjunctions(rows, Space(name, kind), snap=True)
        counts = self._counts(rows, f"{name}, counted", names)
        points = np.arange(counts.kind.high + 1)
        return steps(
            self.net, counts, points, [(Space(name, kind), np.minimum(points, 1.0))], name=f"some: {name}", each=True
        )[0]

    def _counts(self, rows: list[Row], name: str, names: tuple[str, ...]) -> Space:
        most = max(np.bincount([symbol for _, symbol, _ in rows]).tolist())
        return self._conjunctions(rows, Space(name, Integers(names, 0.0, float(most))), snap=False)

    def _conjunctions(self, rows: list[Row], writes: Space, *, snap: bool) -> Space:
        reads = list(dict.fromkeys(space for asked, _, _ in rows for space in asked))
        patterns = np.array([[asked.get(space, ANY) for space in reads] for asked, _, _ in rows])
        outputs = np.zeros((len(rows), writes.size))
        outputs[np.arange(len(rows)), [symbol for _, symbol, _ in rows]] = 1.0
        return table(
            self.net,
            reads,
            patterns,
            writes,
            outputs,
            snap=snap,
            matches=round(writes.kind.high),
            name=f"and: {writes.name}",
            rows=[rule for _, _, rule in rows],
        )


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Grammar)
    return grammar_shapes(
        spec,
        attention=settings.attention,
        max_length=settings.max_length,
        positions=settings.positions or "dyadic",
    )


CONSTRUCTIONS = (
    Construction("shapes", Grammar, "bounded-depth grammars, one state per shape of a tree", _make, default=True),
)
