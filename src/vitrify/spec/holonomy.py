r"""The holonomy decomposition: an automaton as a cascade of levels that only permute or reset.

Krohn and Rhodes (1965): every automaton is simulated by a cascade in which each level either permutes its
coordinate or resets it, as told by the letter and the levels above. The holonomy way (Zeiger 1967, Eilenberg 1976)
finds the levels among the *image sets*: all states, what words make of them, and the single states.

Two image sets are equivalent if words lead from each onto the other. Each class of equivalent sets with two or more
states is a level, the largest in the order of subduction first ($P \le Q$ if $P$ lies inside some $Q \cdot w$). A set
is covered by its *tiles*, the maximal image sets inside it; those of equivalent sets correspond. A state is written
as a chain of tiles from all states down to itself: the coordinate at a level is the number of the tile chosen there.

Reading a letter $a$, walk down with the old set $R$ and the new one $R' \supseteq R \cdot a$. At the level of $R'$: if
$R \cdot a = R'$, the letter permutes the tiles; otherwise $R \cdot a$ lies inside a tile of $R'$, and the coordinate is
reset to it, whatever it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from vitrify.errors import BuildRefused
from vitrify.spec.automaton import Automaton
from vitrify.spec.groups import Group, Permutation, then

Set = int
"""A set of states, as bits."""

Chain = tuple[int | None, ...]
"""A coordinate per level; None where the level's class has no set in the chain."""

MOST_SETS = 4096


@dataclass(frozen=True)
class Move:
    """What a letter does at a level: a permutation of the tiles, a reset to one of them, or (neither) nothing."""

    permutation: Permutation | None = None
    reset: int | None = None

    def __call__(self, coordinate: int | None) -> int | None:
        """The coordinate afterwards."""
        if self.permutation is not None:
            return self.permutation[coordinate]  # type: ignore[index]
        return coordinate if self.reset is None else self.reset


@dataclass(frozen=True, eq=False)
class Level:
    """A class of equivalent image sets: maps from its representative onto each member, and the representative's tiles.

    `onto` has the set, then the map of all states that a word makes; the first set is the representative.
    """

    onto: dict[Set, Permutation]
    tiles: tuple[Set, ...]

    def tile(self, whole: Set, number: int) -> Set:
        """A tile of a member."""
        return _image(self.tiles[number], self.onto[whole])

    @cached_property
    def number(self) -> dict[Set, dict[Set, int]]:
        """The number of each tile of each member."""
        tiles = range(len(self.tiles))
        return {whole: {self.tile(whole, k): k for k in tiles} for whole in self.onto}


@dataclass(frozen=True, eq=False)
class Step:
    """One level of reading a letter: the sets before and after it, and what happens to the level's coordinate."""

    old: Set
    new: Set
    move: Move


class Holonomy:
    """The levels of an automaton, and how chains of tiles move.

    >>> from vitrify.spec.automata import gridworld
    >>> [(len(level.tiles), group.name) for level, group in Holonomy(gridworld(4)).groups()]
    [(2, 'trivial'), (2, 'trivial'), (2, 'trivial')]
    """

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.letters = tuple(automaton.maps().values())
        self.all: Set = (1 << len(automaton.states)) - 1
        images = _image_sets(self.all, len(automaton.states), self.letters)
        self.levels = _levels(images, self.letters)
        self.level_of = {whole: place for place, level in enumerate(self.levels) for whole in level.onto}

    def chain(self, state: int) -> Chain:
        """A chain of tiles down to a state: at each level the first tile that holds it."""
        coordinates: list[int | None] = [None] * len(self.levels)
        whole = self.all
        while whole & (whole - 1):
            at = self.level_of[whole]
            coordinates[at] = self._tile_with(whole, 1 << state)
            whole = self._below(whole, at, coordinates[at])
        return tuple(coordinates)

    def state(self, chain: Chain) -> int:
        """The state at the end of a chain."""
        whole = self.all
        while whole & (whole - 1):
            at = self.level_of[whole]
            whole = self._below(whole, at, chain[at])
        return whole.bit_length() - 1

    def walk(self, chain: Chain, letter: int) -> Iterator[Step]:
        """What reading a letter does, level by level; the move of a level depends on the levels above it only."""
        old = new = self.all
        for at, coordinate in enumerate(chain):
            move = self._move(at, old, new, letter)
            yield Step(old, new, move)
            if self.level_of.get(new) == at:
                new = self._below(new, at, move(coordinate))
            if self.level_of.get(old) == at:
                old = self._below(old, at, coordinate)

    def read(self, chain: Chain, letter: int) -> Chain:
        """The chain after a letter."""
        after: list[int | None] = []
        for at, (step, coordinate) in enumerate(zip(self.walk(chain, letter), chain, strict=True)):
            after.append(step.move(coordinate) if self.level_of.get(step.new) == at else None)
        return tuple(after)

    def groups(self) -> list[tuple[Level, Group]]:
        """Every level with its holonomy group, which the letters generate on the tiles of its representative."""
        found = []
        for at, level in enumerate(self.levels):
            moves = {
                self._move(at, whole, _image(whole, action), letter).permutation: None
                for whole in level.onto
                for letter, action in enumerate(self.letters)
                if _image(whole, action) in level.onto
            }
            identity = tuple(range(len(level.tiles)))
            generators = tuple(move for move in moves if move is not None and move != identity)
            found.append((level, Group(len(level.tiles), generators)))
        return found

    def _move(self, at: int, old: Set, new: Set, letter: int) -> Move:
        if self.level_of.get(new) != at:
            return Move()
        level, action = self.levels[at], self.letters[letter]
        if _image(old, action) != new:
            return Move(reset=self._tile_with(new, _image(old, action)))
        numbers = level.number[new]
        tiles = [_image(level.tile(old, k), action) for k in range(len(level.tiles))]
        return Move(permutation=tuple(numbers[tile] for tile in tiles))

    def _tile_with(self, whole: Set, part: Set) -> int:
        """The first tile of a set that holds a part of it."""
        return next(k for tile, k in self.levels[self.level_of[whole]].number[whole].items() if not part & ~tile)

    def _below(self, whole: Set, at: int, coordinate: int | None) -> Set:
        assert coordinate is not None
        return self.levels[at].tile(whole, coordinate)


def _image(whole: Set, action: Sequence[int]) -> Set:
    image, point = 0, 0
    while whole:
        if whole & 1:
            image |= 1 << action[point]
        whole >>= 1
        point += 1
    return image


def _image_sets(everything: Set, states: int, letters: Sequence[Permutation]) -> list[Set]:
    """All states, the images of that set under words, and the single states."""
    found = {everything: None} | {1 << state: None for state in range(states)}
    queue = [everything]
    for whole in queue:  # grows while it is walked
        for action in letters:
            image = _image(whole, action)
            if image not in found:
                found[image] = None
                queue.append(image)
        if len(found) > MOST_SETS:
            raise BuildRefused(
                f"the words of this automaton of {states} states make more than {MOST_SETS} different image sets: too "
                "many to decompose it; use --shape log-depth, which needs no decomposition"
            )
    return list(found)


def _levels(images: Sequence[Set], letters: Sequence[Permutation]) -> tuple[Level, ...]:
    """The classes of image sets with two or more states, highest first; equal heights in order of discovery."""
    larger = [whole for whole in images if whole & (whole - 1)]
    classes = _classes(larger, letters)
    class_of = {whole: place for place, members in enumerate(classes) for whole in members}
    below: list[set[int]] = []
    levels = []
    for place, members in enumerate(classes):
        first = members[0]
        level = Level(_onto(first, frozenset(members), letters), _tiles(first, images))
        levels.append(level)
        lower = {class_of[tile] for tile in level.tiles if tile in class_of}
        lower |= {class_of[image] for m in members for a in letters if (image := _image(m, a)) in class_of}
        below.append(lower - {place})
    heights = _heights(below)
    order = sorted(range(len(levels)), key=lambda place: (-heights[place], place))
    return tuple(levels[place] for place in order)


def _classes(larger: Sequence[Set], letters: Sequence[Permutation]) -> list[list[Set]]:
    """The sets that words lead onto each other, in order of discovery."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not larger:
        return []
    number = {whole: place for place, whole in enumerate(larger)}
    arrows = [(number[w], number[i]) for w in larger for a in letters if (i := _image(w, a)) in number]
    rows, columns = [row for row, _ in arrows], [column for _, column in arrows]
    graph = coo_array(([1] * len(arrows), (rows, columns)), shape=(len(larger), len(larger)))
    _, labels = connected_components(graph.tocsr(), directed=True, connection="strong")
    grouped: dict[int, list[Set]] = {}
    for whole, label in zip(larger, labels.tolist(), strict=True):
        grouped.setdefault(label, []).append(whole)
    return list(grouped.values())


def _onto(first: Set, members: frozenset[Set], letters: Sequence[Permutation]) -> dict[Set, Permutation]:
    """For every member, the map of a word that leads the first one onto it."""
    found = {first: tuple(range(len(letters[0])))}
    queue = [first]
    for whole in queue:  # grows while it is walked
        for action in letters:
            image = _image(whole, action)
            if image in members and image not in found:
                found[image] = then(found[whole], action)
                queue.append(image)
    return found


def _tiles(whole: Set, images: Sequence[Set]) -> tuple[Set, ...]:
    """The maximal image sets properly inside a set."""
    inside = sorted((s for s in images if not s & ~whole and s != whole), key=lambda s: (-s.bit_count(), s))
    found: list[Set] = []
    for part in inside:
        if not any(not part & ~tile for tile in found):
            found.append(part)
    return tuple(found)


def _heights(below: Sequence[set[int]]) -> list[int]:
    """The longest way down from every class."""
    above: list[list[int]] = [[] for _ in below]
    waiting = [len(lower) for lower in below]
    for place, lower in enumerate(below):
        for other in lower:
            above[other].append(place)
    heights = [0] * len(below)
    queue = [place for place, count in enumerate(waiting) if not count]
    for place in queue:  # grows while it is walked
        for other in above[place]:
            heights[other] = max(heights[other], heights[place] + 1)
            waiting[other] -= 1
            if not waiting[other]:
                queue.append(other)
    return heights
