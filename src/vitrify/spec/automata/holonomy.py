r"""The holonomy decomposition: an automaton as a cascade of levels that only permute or reset.

Krohn and Rhodes (1965): every automaton is simulated by a cascade in which each level either permutes its
coordinate or resets it, depending on the letter and the levels above. The holonomy method (Zeiger 1967, Eilenberg 1976)
takes the levels from the *image sets*: the set of all states, its images under words, and the single states.

Two image sets are equivalent if words map each onto the other. Each class of equivalent sets with two or more
states is a level, the largest in the order of subduction first ($P \le Q$ if $P$ lies inside some $Q \cdot w$). A set
is covered by its *tiles*, the maximal image sets inside it; those of equivalent sets correspond. A state is encoded
as a chain of tiles from the set of all states down to itself: the coordinate at a level is the index of the tile chosen
there.

To read a letter $a$, go down the levels with the old set $R$ and the new one $R' \supseteq R \cdot a$. At the level of
$R'$: if $R \cdot a = R'$, the letter permutes the tiles; otherwise $R \cdot a$ lies inside a tile of $R'$, and the
coordinate is reset to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.groups import Permutation, PermutationGroup, then
from vitrify.spec.graphs import children_first, reached

StateSet = int
"""A set of states, as bits."""

Chain = tuple[int | None, ...]
"""A coordinate per level; None where no set of the level occurs in the chain."""

MAX_IMAGE_SETS = 4096


@dataclass(frozen=True)
class Move:
    """The action of a letter on a level: a permutation of the tiles, a reset to one tile, or (neither) the identity."""

    permutation: Permutation | None = None
    reset: int | None = None

    def __call__(self, coordinate: int | None) -> int | None:
        """Return the coordinate after the move."""
        if self.permutation is not None:
            return self.permutation[coordinate]  # type: ignore[index]
        return coordinate if self.reset is None else self.reset


@dataclass(frozen=True, eq=False)
class HolonomyLevel:
    """A class of equivalent image sets; the first one is its representative.

    `maps` has, for every set of the class, the action of a word that maps the representative onto it. `tiles` are those
    of the representative.
    """

    maps: dict[StateSet, Permutation]
    tiles: tuple[StateSet, ...]

    def tile(self, subset: StateSet, index: int) -> StateSet:
        """Return a tile of a set of the class."""
        return _image(self.tiles[index], self.maps[subset])

    @cached_property
    def tile_index(self) -> dict[StateSet, dict[StateSet, int]]:
        """The index of each tile of each set of the class."""
        tiles = range(len(self.tiles))
        return {subset: {self.tile(subset, k): k for k in tiles} for subset in self.maps}


@dataclass(frozen=True, eq=False)
class Step:
    """The part of reading a letter at one level: the sets before and after, and the move of the coordinate."""

    old: StateSet
    new: StateSet
    move: Move


class Holonomy:
    """The holonomy decomposition of an automaton: its levels, and the transitions between chains of tiles.

    >>> from vitrify.spec.automata.families import gridworld
    >>> [(len(level.tiles), group.name) for level, group in Holonomy(gridworld(4)).groups()]
    [(2, 'trivial'), (2, 'trivial'), (2, 'trivial')]
    """

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.letters = tuple(automaton.maps().values())
        self.all: StateSet = (1 << len(automaton.states)) - 1
        images = _image_sets(self.all, len(automaton.states), self.letters)
        self.levels = _levels(images, self.letters)
        self.level_of = {subset: index for index, level in enumerate(self.levels) for subset in level.maps}

    def chain(self, state: int) -> Chain:
        """Return a chain of tiles down to a state: at each level the first tile that contains it."""
        coordinates: list[int | None] = [None] * len(self.levels)
        subset = self.all
        while subset & (subset - 1):
            index = self.level_of[subset]
            coordinates[index] = self._tile_containing(subset, 1 << state)
            subset = self._below(subset, index, coordinates[index])
        return tuple(coordinates)

    def state(self, chain: Chain) -> int:
        """Return the state at the end of a chain."""
        subset = self.all
        while subset & (subset - 1):
            index = self.level_of[subset]
            subset = self._below(subset, index, chain[index])
        return subset.bit_length() - 1

    def walk(self, chain: Chain, letter: int) -> Iterator[Step]:
        """Yield the step of every level when a letter is read; its move depends only on the levels above."""
        old = new = self.all
        for index, coordinate in enumerate(chain):
            move = self._move(index, old, new, letter)
            yield Step(old, new, move)
            if self.level_of.get(new) == index:
                new = self._below(new, index, move(coordinate))
            if self.level_of.get(old) == index:
                old = self._below(old, index, coordinate)

    def read(self, chain: Chain, letter: int) -> Chain:
        """Return the chain after a letter."""
        after: list[int | None] = []
        for index, (step, coordinate) in enumerate(zip(self.walk(chain, letter), chain, strict=True)):
            after.append(step.move(coordinate) if self.level_of.get(step.new) == index else None)
        return tuple(after)

    def groups(self) -> list[tuple[HolonomyLevel, PermutationGroup]]:
        """Return every level with its holonomy group: the permutations of the representative's tiles by words."""
        groups = []
        for index, level in enumerate(self.levels):
            moves = {
                self._move(index, subset, _image(subset, action), letter).permutation: None
                for subset in level.maps
                for letter, action in enumerate(self.letters)
                if _image(subset, action) in level.maps
            }
            identity = tuple(range(len(level.tiles)))
            generators = tuple(move for move in moves if move is not None and move != identity)
            groups.append((level, PermutationGroup(len(level.tiles), generators)))
        return groups

    def _move(self, index: int, old: StateSet, new: StateSet, letter: int) -> Move:
        if self.level_of.get(new) != index:
            return Move()
        level, action = self.levels[index], self.letters[letter]
        if _image(old, action) != new:
            return Move(reset=self._tile_containing(new, _image(old, action)))
        tile_index = level.tile_index[new]
        tiles = [_image(level.tile(old, k), action) for k in range(len(level.tiles))]
        return Move(permutation=tuple(tile_index[tile] for tile in tiles))

    def _tile_containing(self, subset: StateSet, part: StateSet) -> int:
        """Return the index of the first tile of a set that contains a part of it."""
        tile_index = self.levels[self.level_of[subset]].tile_index[subset]
        return next(k for tile, k in tile_index.items() if not part & ~tile)

    def _below(self, subset: StateSet, index: int, coordinate: int | None) -> StateSet:
        assert coordinate is not None
        return self.levels[index].tile(subset, coordinate)


def _image(subset: StateSet, action: Sequence[int]) -> StateSet:
    image, point = 0, 0
    while subset:
        if subset & 1:
            image |= 1 << action[point]
        subset >>= 1
        point += 1
    return image


def _image_sets(everything: StateSet, states: int, letters: Sequence[Permutation]) -> list[StateSet]:
    """Return the set of all states, the single states, and the images of all states under words."""
    refusal = (
        f"the words of this automaton of {states} states have more than {MAX_IMAGE_SETS} different image sets: too "
        "many to decompose it; use --construction log-depth, which needs no decomposition"
    )
    images = reached([everything], lambda s: [_image(s, action) for action in letters], MAX_IMAGE_SETS, refusal)
    return list(dict.fromkeys((everything, *(1 << state for state in range(states)), *images)))


def _levels(images: Sequence[StateSet], letters: Sequence[Permutation]) -> tuple[HolonomyLevel, ...]:
    """Return the classes of image sets with two or more states, highest first; equal heights in order of discovery."""
    larger = [subset for subset in images if subset & (subset - 1)]
    classes = _classes(larger, letters)
    class_of = {subset: index for index, members in enumerate(classes) for subset in members}
    below: list[set[int]] = []
    levels = []
    for index, members in enumerate(classes):
        first = members[0]
        level = HolonomyLevel(_maps_from(first, frozenset(members), letters), _tiles(first, images))
        levels.append(level)
        lower = {class_of[tile] for tile in level.tiles if tile in class_of}
        lower |= {class_of[image] for m in members for a in letters if (image := _image(m, a)) in class_of}
        below.append(lower - {index})
    heights = [0] * len(below)  # the length of the longest path down from every class
    for index in children_first(dict(enumerate(below)), range(len(below)))[0]:
        heights[index] = max((heights[other] + 1 for other in below[index]), default=0)
    order = sorted(range(len(levels)), key=lambda index: (-heights[index], index))
    return tuple(levels[index] for index in order)


def _classes(larger: Sequence[StateSet], letters: Sequence[Permutation]) -> list[list[StateSet]]:
    """Return the classes of sets that words map onto each other, in order of discovery."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not larger:
        return []
    number = {subset: index for index, subset in enumerate(larger)}
    edges = [(number[w], number[i]) for w in larger for a in letters if (i := _image(w, a)) in number]
    rows, columns = [row for row, _ in edges], [column for _, column in edges]
    graph = coo_array(([1] * len(edges), (rows, columns)), shape=(len(larger), len(larger)))
    _, labels = connected_components(graph.tocsr(), directed=True, connection="strong")
    classes: dict[int, list[StateSet]] = {}
    for subset, label in zip(larger, labels.tolist(), strict=True):
        classes.setdefault(label, []).append(subset)
    return list(classes.values())


def _maps_from(
    first: StateSet, members: frozenset[StateSet], letters: Sequence[Permutation]
) -> dict[StateSet, Permutation]:
    """Return, for every member, the action of a word that maps the first one onto it."""
    maps = {first: tuple(range(len(letters[0])))}
    queue = [first]
    for subset in queue:  # grows during the loop
        for action in letters:
            image = _image(subset, action)
            if image in members and image not in maps:
                maps[image] = then(maps[subset], action)
                queue.append(image)
    return maps


def _tiles(subset: StateSet, images: Sequence[StateSet]) -> tuple[StateSet, ...]:
    """Return the maximal image sets properly inside a set."""
    inside = sorted((s for s in images if not s & ~subset and s != subset), key=lambda s: (-s.bit_count(), s))
    tiles: list[StateSet] = []
    for part in inside:
        if not any(not part & ~tile for tile in tiles):
            tiles.append(part)
    return tuple(tiles)
