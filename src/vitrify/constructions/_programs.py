r"""Programs of bits: each is 1 where some row of literals holds, a literal being a bit so many places back.

A program is made *smaller* before it is built, without a change in what it says anywhere it is asked:

- a bit with one row of one literal is that literal, two bits with the same rows are one, and a row that asks for a bit
  without rows can't hold;
- a row that implies another row of its bit goes;
- bits that no answer depends on go; and a bit is fetched only where some answer may ask for it, its *times*: forwards
  a row can hold only where all its literals can, backwards a literal is read only where its row may be asked for.

Sizes follow from the program alone. A group of bits, held by one space, takes one block of units if each of its bits
has one row (two units per row: the second cuts noise), and else two: one unit per row counts, two per bit turn a count
into a bit. Heads: one for each group and distance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vitrify.kit.gadgets import Asked, Clause, clauses, steps
from vitrify.kit.heads import shift
from vitrify.kit.network import Builder, Space
from vitrify.kit.positions import Places
from vitrify.net.spaces import Circle, Integers, MultiHot, OneHot

WORD, WHERE = "word", "words read"  # the spaces that the input sets


class Group(NamedTuple):
    """Bits that one space holds: groups of lower rank are computed first.

    The rows of `sums` may also be added up, as products of their literals, where a number is wanted and not a bit.
    """

    rank: int
    name: str
    sums: bool = False


class Bit(NamedTuple):
    """A coordinate of a group, with its name."""

    group: Group
    place: int
    name: str


Literal = tuple[Bit, int]  # a bit so many places back
Row = frozenset[Literal]

COMPARED = 64  # rows of one bit up to which each is compared with each other
WORDS, PLACES = Group(-1, WORD), Group(-1, WHERE)


@dataclass(eq=False)
class Program:
    """Rows of literals by bit, each with a name and how often it was put there.

    `answers` is, in what follows, the group that is read at the end, as counts.
    """

    longest: int
    rows: dict[Bit, dict[Row, str]] = field(default_factory=dict)
    weights: Counter[tuple[Bit, Row]] = field(default_factory=Counter)

    def put(self, bit: Bit, literals: Iterable[Literal], name: str, weight: int = 1) -> None:
        """Add a row to a bit."""
        row = frozenset(literals)
        self.rows.setdefault(bit, {}).setdefault(row, name)
        self.weights[bit, row] += weight

    def smaller(self, answers: Group) -> Program:
        """The program with aliases replaced, and without rows and bits that change no answer."""
        before, found = None, self
        while before is None or before.rows != found.rows:
            before, found = found, found._without_aliases(answers)._without_the_unasked(answers)._without_the_implied()
        return found

    def _without_aliases(self, answers: Group) -> Program:
        alias: dict[Bit, Literal] = {}
        same: dict[frozenset[Row], Bit] = {}
        kept = Program(self.longest)
        for bit in sorted(self.rows, key=lambda bit: bit.group.rank):
            rows: dict[Row, str] = {}
            for row, name in self.rows[bit].items():
                if all(part.group.rank < 0 or part in alias or part in kept.rows for part, _ in row):
                    rows.setdefault(frozenset(_moved(alias, literal) for literal in row), name)
            only = next(iter(rows)) if len(rows) == 1 else frozenset()
            if len(only) == 1 and bit.group != answers:
                (alias[bit],) = only
            elif bit.group != answers and frozenset(rows) in same:
                alias[bit] = same[frozenset(rows)], 0
            elif rows:
                kept.rows[bit] = rows
                same[frozenset(rows)] = bit
        return kept

    def _without_the_implied(self) -> Program:
        kept = Program(self.longest)
        for bit, rows in self.rows.items():
            left = list(rows)
            if len(left) <= COMPARED:
                for row in rows:
                    others = [other for other in left if other is not row]
                    if any(all(kept.implies(row, literal) for literal in other) for other in others):
                        left = others
            kept.rows[bit] = {row: rows[row] for row in left}
        return kept

    def implies(self, row: Row, literal: Literal, *, split: bool = True) -> bool:
        """Whether a literal certainly holds where a row does: False may also mean that it was not found out.

        It is in the row; or it has a row of its own whose literals are implied; or some literal of the row is a bit
        each of whose rows, put in its place, implies it.
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

    def _without_the_unasked(self, answers: Group) -> Program:
        kept = Program(self.longest)
        for bit, row, name, times in self.uses(answers):
            if times:
                kept.put(bit, row, name)
        kept.rows = {bit: kept.rows[bit] for bit in self.rows if bit in kept.rows}
        return kept

    def uses(self, answers: Group) -> list[tuple[Bit, Row, str, set[int]]]:
        """Every row, readers first, with the numbers of words after which it may hold and be asked for."""
        can: dict[Bit, set[int]] = {}
        for bit, rows in self.rows.items():
            can[bit] = set().union(*(self._times(row, can) for row in rows))
        asked: defaultdict[Bit, set[int]] = defaultdict(set)
        found = []
        for bit in reversed(list(self.rows)):
            for row, name in self.rows[bit].items():
                times = self._times(row, can)
                times = times if bit.group == answers else times & asked[bit]
                for part, back in row:
                    asked[part] |= {t - back for t in times}
                found.append((bit, row, name, times))
        return found

    def _times(self, row: Row, can: Mapping[Bit, set[int]]) -> set[int]:
        """After how many words a row may hold."""
        words = [(back, part) for part, back in row if part.group == WORDS]
        if len(words) > len({back for back, _ in words}):  # two words at one place
            return set()
        found = set(range(self.longest + 1))
        for part, back in row:
            if part.group == PLACES:
                found &= {part.place + back}
            else:
                held = range(1, self.longest + 1) if part.group == WORDS else can[part]
                found &= {t + back for t in held}
        return found

    # Sizes

    @cached_property
    def groups(self) -> dict[Group, list[Bit]]:
        """The bits of each group in the order of their places, the groups in the order of their making."""
        found: defaultdict[Group, list[Bit]] = defaultdict(list)
        for bit in sorted(self.rows):
            found[bit.group].append(bit)
        return dict(found)

    def counted(self, group: Group) -> bool:
        """Whether several rows can say the same, so that a count must be turned into a bit."""
        return any(len(self.rows[bit]) > 1 for bit in self.groups[group])

    def sizes(self, answers: Group) -> dict[str, int]:
        """Layers, heads, rows and units of the net that `build` makes."""
        ready: dict[Group, int] = {WORDS: 0, PLACES: 0}  # the first block in which a group can be read
        heads: set[tuple[Group, int]] = set()
        rows = units = 0
        for group, bits in self.groups.items():
            literals = {(part.group, back) for bit in bits for row in self.rows[bit] for part, back in row}
            heads |= {(part, back) for part, back in literals if back}
            own = sum(len(self.rows[bit]) for bit in bits)
            twice = group != answers and self.counted(group)
            ready[group] = max(ready[part] for part, _ in literals) + (2 if twice else 1)
            rows += own
            units += own + 2 * len(bits) if twice else own if group == answers else 2 * own
        return {"layers": ready[answers], "heads": len(heads), "conjunctions": rows, "units": units}


def _shifted(row: Row, back: int) -> Row:
    return frozenset((part, further + back) for part, further in row) if back else row


def _moved(alias: Mapping[Bit, Literal], literal: Literal) -> Literal:
    bit, back = literal
    if bit not in alias:
        return literal
    other, further = alias[bit]
    if other.group == PLACES:  # the position so many places back is this one, so many places on
        place = other.place + back + further
        return Bit(PLACES, place, str(place)), 0
    return other, back + further


def inputs(net: Builder, kind: MultiHot | Circle, longest: int) -> dict[Group, Space]:
    """The spaces that the input sets: the word, in a kind that has its values, and how many words have been read."""
    codes = kind.codes if isinstance(kind, Circle) else np.eye(kind.size)
    letters = np.array([codes[kind.values.index(n)] if n in kind.values else np.zeros(kind.size) for n in net.inputs])
    spots = OneHot(tuple(str(t) for t in range(longest + 1)), void=True)  # void beyond the longest sentence
    counted = np.zeros((net.max_length, spots.size))
    counted[:longest] = spots.codes[1:]
    return {
        WORDS: net.embed(WORD, kind, letters),
        PLACES: net.place(WHERE, spots, counted, pads=spots.codes[:1]),
    }


def build(net: Builder, program: Program, spaces: dict[Group, Space], answers: Group) -> Space:
    """Add heads and units for every group of a program; the space that holds the counts of the answers."""
    return Wiring(net, program, spaces, answers).run(as_bits)


@dataclass(eq=False)
class Wiring:
    """A program on its way into a net: which space holds which group, and what heads have fetched."""

    net: Builder
    program: Program
    spaces: dict[Group, Space]
    answers: Group
    fetched: dict[Literal, tuple[Space, int]] = field(default_factory=dict)

    def run(self, write: Callable[[Wiring, Group], Space]) -> Space:
        """Fetch what each group needs and write it, group by group; the space of the answers."""
        self._needs = self._fetches()
        for group in self.program.groups:
            self._fetch(group)
            self.spaces[group] = write(self, group)
        return self.spaces[self.answers]

    def _fetches(self) -> dict[tuple[Group, int], dict[Bit, set[int]]]:
        """By group and distance, the bits that are fetched and the positions that ask for them."""
        found: defaultdict[tuple[Group, int], defaultdict[Bit, set[int]]] = defaultdict(lambda: defaultdict(set))
        for _, row, _, times in self.program.uses(self.answers):
            for part, back in row:
                if back:
                    found[part.group, back][part] |= times
        return {key: dict(sorted(found[key].items())) for key in sorted(found)}

    def _fetch(self, group: Group) -> None:
        """The heads whose results the group reads and that are not there yet."""
        wanted = {(p.group, back) for b in self.program.groups[group] for r in self.program.rows[b] for p, back in r}
        for key in sorted(wanted):
            source, back = key
            bits = self._needs.get(key, {})
            if not back or (next(iter(bits)), back) in self.fetched:
                continue
            space = self.spaces[source]
            at = tuple(sorted(set().union(*bits.values())))
            chosen = [self._coordinate(bit) for bit in bits]
            plane = isinstance(space.kind, Circle)  # all of it, or nothing
            found = shift(
                self.net,
                space,
                back,
                Places(self.program.longest, at),
                self.spaces[PLACES],
                name=f"{space.name} @ -{back}",
                only=None if plane else (chosen, MultiHot(tuple(bit.name for bit in bits))),
            )
            for place, bit in enumerate(bits):
                self.fetched[bit, back] = found, chosen[place] if plane else place

    def _coordinate(self, bit: Bit) -> int:
        return bit.place if bit.group.rank < 0 else self.program.groups[bit.group].index(bit)

    def value(self, literal: Literal) -> tuple[Space, int]:
        """The space that holds a literal at the place where it is read, and its coordinate or value there."""
        bit, back = literal
        return self.fetched[literal] if back else (self.spaces[bit.group], self._coordinate(bit))

    def values(self, row: Iterable[Literal]) -> Asked:
        """The same for the literals of a row, in a fixed order."""
        return tuple(sorted(map(self.value, row), key=lambda asked: (asked[0].name, asked[1])))


def as_bits(wiring: Wiring, group: Group) -> Space:
    """A bit is 1 where one of its rows holds; the answers stay counts of rows."""
    program, bits = wiring.program, wiring.program.groups[group]
    rows = [
        Clause(wiring.values(row), place, name=name)
        for place, bit in enumerate(bits)
        for row, name in program.rows[bit].items()
    ]
    names, most = tuple(bit.name for bit in bits), max(len(program.rows[bit]) for bit in bits)
    counts = Integers(names, 0.0, float(most))
    if group == wiring.answers:
        return clauses(wiring.net, rows, Space(group.name, counts), name=f"and: {group.name}")
    space = Space(group.name, MultiHot(names))
    if not program.counted(group):
        return clauses(wiring.net, rows, space, snap=True, name=f"and: {group.name}")
    sums = clauses(wiring.net, rows, Space(f"{group.name}, counted", counts), name=f"and: {group.name}, counted")
    points = np.arange(most + 1.0)
    some = [(space, np.minimum(points, 1.0))]
    return steps(wiring.net, sums, points, some, name=f"some: {group.name}", each=True)[0]
