r"""Bit programs: formulas in disjunctive normal form over earlier positions, and the nets that compute them.

A bit is 1 at a position iff one of its *rows* holds there. A row is a conjunction of *literals* (bit, $b$): the bit is
1 $b$ positions back. Before a program is built, it is simplified without changing any answer:

- a bit with one row of one literal is replaced by that literal; two bits with the same rows become one; a row that
  needs a bit without rows is dropped;
- a row that implies another row of its bit is dropped;
- bits that no answer depends on are dropped. A bit is fetched only at the *times* (numbers of words read) at which an
  answer may need it: a row can hold only where all its literals can, and a literal is read only where its row is.

Sizes follow from the program alone. A group of bits, held by one space, takes one block of units if each of its bits
has one row (two units per row: the second removes noise), and else two blocks: one unit per row counts the rows that
hold, two per bit turn the count into a bit. Heads: one for each group and distance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vitrify.kit.gadgets.clauses import Clause, Conditions, clauses
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Builder, Circle, Integers, MultiHot, OneHot, Space
from vitrify.kit.positions import ChosenPositions

WORD, WORDS_READ = "word", "words read"  # the spaces that the input sets


class BitGroup(NamedTuple):
    """Bits that one space holds; groups of lower rank are computed first.

    The rows of a group with `sums` may also be added up as products of their literals, to a count instead of a bit.
    """

    rank: int
    name: str
    sums: bool = False


class Bit(NamedTuple):
    """A bit of a group: its index there, and its name."""

    group: BitGroup
    number: int
    name: str


Literal = tuple[Bit, int]  # a bit, and how many positions back it is read
Row = frozenset[Literal]

MAX_COMPARED_ROWS = 64  # with more rows, a bit's rows are not compared for implications
WORDS, POSITIONS = BitGroup(-1, WORD), BitGroup(-1, WORDS_READ)


@dataclass(eq=False)
class BitProgram:
    """Rows of literals by bit, each with a name and a weight: how often it was added.

    The methods take `answers`, the group that the readout reads, as counts.
    """

    longest: int
    rows: dict[Bit, dict[Row, str]] = field(default_factory=dict)
    weights: Counter[tuple[Bit, Row]] = field(default_factory=Counter)

    def put(self, bit: Bit, literals: Iterable[Literal], name: str, weight: int = 1) -> None:
        """Add a row to a bit."""
        row = frozenset(literals)
        self.rows.setdefault(bit, {}).setdefault(row, name)
        self.weights[bit, row] += weight

    def smaller(self, answers: BitGroup) -> BitProgram:
        """Return the program with aliases replaced, and without rows and bits that change no answer."""
        before, program = None, self
        while before is None or before.rows != program.rows:
            before = program
            program = program._without_aliases(answers)._without_unused_rows(answers)._without_implied_rows()
        return program

    def _without_aliases(self, answers: BitGroup) -> BitProgram:
        alias: dict[Bit, Literal] = {}
        same: dict[frozenset[Row], Bit] = {}
        smaller = BitProgram(self.longest)
        for bit in sorted(self.rows, key=lambda bit: bit.group.rank):
            rows: dict[Row, str] = {}
            for row, name in self.rows[bit].items():
                if all(part.group.rank < 0 or part in alias or part in smaller.rows for part, _ in row):
                    rows.setdefault(frozenset(_moved(alias, literal) for literal in row), name)
            only = next(iter(rows)) if len(rows) == 1 else frozenset()
            if len(only) == 1 and bit.group != answers:
                (alias[bit],) = only
            elif bit.group != answers and frozenset(rows) in same:
                alias[bit] = same[frozenset(rows)], 0
            elif rows:
                smaller.rows[bit] = rows
                same[frozenset(rows)] = bit
        return smaller

    def _without_implied_rows(self) -> BitProgram:
        smaller = BitProgram(self.longest)
        for bit, rows in self.rows.items():
            left = list(rows)
            if len(left) <= MAX_COMPARED_ROWS:
                for row in rows:
                    others = [other for other in left if other is not row]
                    if any(all(smaller.implies(row, literal) for literal in other) for other in others):
                        left = others
            smaller.rows[bit] = {row: rows[row] for row in left}
        return smaller

    def implies(self, row: Row, literal: Literal, *, split: bool = True) -> bool:
        """Return True if a literal was shown to hold wherever a row does; False proves nothing.

        It is in the row; or it has a row of its own whose literals are implied; or some literal of the row is a bit
        each of whose rows, substituted for it, implies it.
        """
        if literal in row:
            return True
        bit, back = literal
        if any(all(self.implies(row, part, split=split) for part in _shifted(q, back)) for q in self.rows.get(bit, ())):
            return True
        return split and any(
            all(self.implies((row - {(part, b)}) | _shifted(q, b), literal, split=False) for q in self.rows[part])
            for part, b in row
            if part in self.rows
        )

    def _without_unused_rows(self, answers: BitGroup) -> BitProgram:
        smaller = BitProgram(self.longest)
        for bit, row, name, times in self.uses(answers):
            if times:
                smaller.put(bit, row, name)
        smaller.rows = {bit: smaller.rows[bit] for bit in self.rows if bit in smaller.rows}
        return smaller

    def uses(self, answers: BitGroup) -> list[tuple[Bit, Row, str, set[int]]]:
        """Return every row, readers first, with the numbers of words after which it may hold and is needed."""
        can: dict[Bit, set[int]] = {}
        for bit, rows in self.rows.items():
            can[bit] = set().union(*(self._times(row, can) for row in rows))
        needed_after: defaultdict[Bit, set[int]] = defaultdict(set)
        uses = []
        for bit in reversed(list(self.rows)):
            for row, name in self.rows[bit].items():
                times = self._times(row, can)
                times = times if bit.group == answers else times & needed_after[bit]
                for part, back in row:
                    needed_after[part] |= {t - back for t in times}
                uses.append((bit, row, name, times))
        return uses

    def _times(self, row: Row, can: Mapping[Bit, set[int]]) -> set[int]:
        """Return the numbers of words after which a row may hold."""
        words = [(back, part) for part, back in row if part.group == WORDS]
        if len(words) > len({back for back, _ in words}):  # two words at one place
            return set()
        times = set(range(self.longest + 1))
        for part, back in row:
            if part.group == POSITIONS:
                times &= {part.number + back}
            else:
                held = range(1, self.longest + 1) if part.group == WORDS else can[part]
                times &= {t + back for t in held}
        return times

    @cached_property
    def groups(self) -> dict[BitGroup, list[Bit]]:
        """The bits of each group in the order of their indices, the groups in the order of computation."""
        groups: defaultdict[BitGroup, list[Bit]] = defaultdict(list)
        for bit in sorted(self.rows):
            groups[bit.group].append(bit)
        return dict(groups)


def _shifted(row: Row, back: int) -> Row:
    return frozenset((part, further + back) for part, further in row) if back else row


def _moved(alias: Mapping[Bit, Literal], literal: Literal) -> Literal:
    bit, back = literal
    if bit not in alias:
        return literal
    other, further = alias[bit]
    if other.group == POSITIONS:  # position p, b positions back, is position p + b here
        index = other.number + back + further
        return Bit(POSITIONS, index, str(index)), 0
    return other, back + further


def inputs(net: Builder, kind: MultiHot | Circle, longest: int) -> dict[BitGroup, Space]:
    """Return the spaces set by the input: the word, in a space of the given kind, and the number of words read."""
    codes = kind.codes if isinstance(kind, Circle) else np.eye(kind.size)
    letters = np.array([codes[kind.values.index(n)] if n in kind.values else np.zeros(kind.size) for n in net.inputs])
    spots = OneHot(tuple(str(t) for t in range(longest + 1)), void=True)  # void beyond the longest sentence
    counted = np.zeros((net.max_length, spots.size))
    counted[:longest] = spots.codes[1:]
    return {
        WORDS: net.embed(WORD, kind, letters),
        POSITIONS: net.embed_position(WORDS_READ, spots, counted, pads=spots.codes[:1]),
    }


@dataclass(eq=False)
class Wiring:
    """State of building a program: which space holds each group, and what heads have fetched."""

    net: Builder
    program: BitProgram
    spaces: dict[BitGroup, Space]
    answers: BitGroup
    fetched: dict[Literal, tuple[Space, int]] = field(default_factory=dict)

    def run(self, write: Callable[[Wiring, BitGroup], Space]) -> Space:
        """Fetch what each group needs and write it, group by group; return the space of the answers."""
        self._needs = self._fetches()
        for group in self.program.groups:
            self._fetch(group)
            self.spaces[group] = write(self, group)
        return self.spaces[self.answers]

    def _fetches(self) -> dict[tuple[BitGroup, int], dict[Bit, set[int]]]:
        """Return, by group and distance, the bits that are fetched and the positions that need them."""
        fetches: defaultdict[tuple[BitGroup, int], defaultdict[Bit, set[int]]] = defaultdict(lambda: defaultdict(set))
        for _, row, _, times in self.program.uses(self.answers):
            for part, back in row:
                if back:
                    fetches[part.group, back][part] |= times
        return {key: dict(sorted(fetches[key].items())) for key in sorted(fetches)}

    def _fetch(self, group: BitGroup) -> None:
        """Add the heads whose results the group reads, unless they exist."""
        wanted = {(p.group, back) for b in self.program.groups[group] for r in self.program.rows[b] for p, back in r}
        for key in sorted(wanted):
            source, back = key
            bits = self._needs.get(key, {})
            if not back or (next(iter(bits)), back) in self.fetched:
                continue
            space = self.spaces[source]
            at = tuple(sorted(set().union(*bits.values())))
            chosen = [self._coordinate(bit) for bit in bits]
            on_circle = isinstance(space.kind, Circle)  # all of it, or nothing
            code, name = ChosenPositions(self.program.longest, at), f"{space.name} @ -{back}"
            only = None if on_circle else (chosen, MultiHot(tuple(bit.name for bit in bits)))
            fetched = shift(self.net, space, back, code, self.spaces[POSITIONS], name=name, only=only)
            for index, bit in enumerate(bits):
                self.fetched[bit, back] = fetched, chosen[index] if on_circle else index

    def _coordinate(self, bit: Bit) -> int:
        return bit.number if bit.group.rank < 0 else self.program.groups[bit.group].index(bit)

    def value(self, literal: Literal) -> tuple[Space, int]:
        """Return the space that holds a literal at the position that reads it, and its coordinate or value there."""
        bit, back = literal
        return self.fetched[literal] if back else (self.spaces[bit.group], self._coordinate(bit))

    def values(self, row: Iterable[Literal]) -> Conditions:
        """Return the same for the literals of a row, in a fixed order."""
        return tuple(sorted(map(self.value, row), key=lambda condition: (condition[0].name, condition[1])))


def as_bits(wiring: Wiring, group: BitGroup) -> Space:
    """Write the bits of a group, 1 where a row holds, or the counts of the answers; return their space."""
    program, bits = wiring.program, wiring.program.groups[group]
    rows = [
        Clause(wiring.values(row), index, name=name)
        for index, bit in enumerate(bits)
        for row, name in program.rows[bit].items()
    ]
    names, max_rows = tuple(bit.name for bit in bits), max(len(program.rows[bit]) for bit in bits)
    counts = Integers(names, 0.0, float(max_rows))
    if group == wiring.answers:
        return clauses(wiring.net, rows, Space(group.name, counts), name=f"and: {group.name}")
    space = Space(group.name, MultiHot(names))
    if max_rows == 1:  # else their count must be turned into a bit
        return clauses(wiring.net, rows, space, snap=True, name=f"and: {group.name}")
    sums = clauses(wiring.net, rows, Space(f"{group.name}, counted", counts), name=f"and: {group.name}, counted")
    points = np.arange(max_rows + 1.0)
    some = [(space, np.minimum(points, 1.0))]
    return steps(wiring.net, sums, points, some, name=f"some: {group.name}", each=True)[0]
