r"""An automaton as a cascade of small permutation-reset machines, cut down to what its words can reach.

The holonomy decomposition says what each level does after every chain of tiles. What a level has to be told is less:
a *context*, made of the letter and of the levels above, that says how its coordinate moves and, with the coordinate
before the letter, which context the next level gets. Contexts that lead to the same moves and states are one, and
levels whose coordinate never matters are left out. Below the last level, the context is the state after the letter.
The context None is the one in which nothing moves, at this level and below, and the state is the initial one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from vitrify.errors import BuildRefused
from vitrify.spec.automaton import Automaton
from vitrify.spec.groups import Group
from vitrify.spec.holonomy import Chain, Holonomy, Move

MOST_STEPS = 1 << 18  # chains × letters × levels that are walked

Context = int | None
Next = Context | dict[int, int]
"""The next context: one for all coordinates, or by the coordinate before the letter; None where it is left out."""

Key = tuple[int, int, int]
"""The old set, the new one, and the letter."""


@dataclass(frozen=True, eq=False)
class CascadeLevel:
    """A permutation-reset machine: how each context moves its coordinate, and the context of the level below.

    `place` is the number of the holonomy level, from 1. Coordinates are 0 to `size` - 1; `start` is the one before the
    first letter, None if a reset comes before it is looked at. `told` is the context by chain and letter.
    """

    place: int
    size: int
    start: int | None
    moves: tuple[Move, ...]
    nexts: tuple[Next, ...]
    told: tuple[tuple[Context, ...], ...]

    @cached_property
    def group(self) -> Group:
        """What the permutations generate."""
        found = dict.fromkeys(move.permutation for move in self.moves)
        return Group(self.size, tuple(permutation for permutation in found if permutation is not None))

    @property
    def resets(self) -> tuple[int, ...]:
        """The coordinates that some context resets to."""
        return tuple(dict.fromkeys(move.reset for move in self.moves if move.reset is not None))

    @property
    def looked_at(self) -> frozenset[int]:
        """The coordinates that decide something."""
        return frozenset(k for to in self.nexts if isinstance(to, dict) for k in to)

    @property
    def attention_layers(self) -> int:
        """One for each abelian factor of the group, and one for the resets."""
        return self.group.derived_length + bool(self.resets)

    @property
    def rows(self) -> tuple[tuple[int, int | None, int], ...]:
        """The table of next contexts: context, coordinate (None for any), next context."""
        found: list[tuple[int, int | None, int]] = []
        for context, to in enumerate(self.nexts):
            if isinstance(to, dict):
                found += [(context, coordinate, after) for coordinate, after in to.items()]
            elif to is not None:
                found.append((context, None, to))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Cascade:
    """The levels that matter, from the top; `first` is the context that each letter gives to the top level.

    The contexts below the last level are the `states` without the initial one. `after` is the graph of the chains:
    the next one by chain and letter, 0 being the first.
    """

    holonomy: Holonomy
    first: tuple[Context, ...]
    levels: tuple[CascadeLevel, ...]
    after: tuple[tuple[int, ...], ...]

    @property
    def automaton(self) -> Automaton:
        """The automaton that is decomposed, without the states that no word reaches."""
        return self.holonomy.automaton

    @property
    def states(self) -> tuple[str, ...]:
        """The states without the initial one."""
        machine = self.automaton
        return machine.states[: machine.initial] + machine.states[machine.initial + 1 :]

    @property
    def unsolvable(self) -> CascadeLevel | None:
        """The first level whose group is not solvable, if there is one."""
        return next((level for level in self.levels if not level.group.is_solvable), None)

    @property
    def attention_layers(self) -> int:
        """What the whole cascade takes: levels come one after the other."""
        return sum(level.attention_layers for level in self.levels)


def cascade(automaton: Automaton) -> Cascade:
    """The cascade of an automaton; states that no word reaches are left out.

    >>> from vitrify.spec.automata import flip_flop, symmetric_group
    >>> [(level.size, level.group.name, level.resets) for level in cascade(flip_flop()).levels]
    [(2, 'trivial', (0, 1))]
    >>> cascade(symmetric_group(4)).attention_layers
    3
    """
    machine = automaton.reachable()
    holonomy = Holonomy(machine)
    paths, after = _paths(holonomy)
    states = [state for state in range(len(machine.states)) if state != machine.initial]
    number: dict[int, Context] = {1 << state: place for place, state in enumerate(states)}
    labels: dict[Key, Context] = {path.keys[-1]: number.get(path.keys[-1][1]) for path in paths.values()}
    start = holonomy.chain(machine.initial)
    levels: list[CascadeLevel] = []
    for place in reversed(range(len(holonomy.levels))):
        found, labels = _level(place, start[place], paths, labels, len(machine.alphabet))
        levels = [found, *levels] if found else levels
    first = tuple(labels[paths[start, letter].keys[0]] for letter in range(len(machine.alphabet)))
    return Cascade(holonomy, first, tuple(levels), after)


@dataclass(frozen=True)
class _Path:
    """Reading one letter: the keys of every level and below the last, and the moves."""

    keys: tuple[Key, ...]
    moves: tuple[Move, ...]


Paths = dict[tuple[Chain, int], _Path]


def _paths(holonomy: Holonomy) -> tuple[Paths, tuple[tuple[int, ...], ...]]:
    """What every letter does in every chain that words reach, and the next chains by number."""
    begin = holonomy.chain(holonomy.automaton.initial)
    numbers: dict[Chain, int] = {begin: 0}
    queue, found, after, steps = [begin], Paths(), [], 0
    for chain in queue:  # grows while it is walked
        row = []
        for letter in range(len(holonomy.letters)):
            walk = list(holonomy.walk(chain, letter))
            to = holonomy.read(chain, letter)
            last = (1 << holonomy.state(chain), 1 << holonomy.state(to), letter)
            keys = (*((step.old, step.new, letter) for step in walk), last)
            found[chain, letter] = _Path(keys, tuple(step.move for step in walk))
            if to not in numbers:
                numbers[to] = len(queue)
                queue.append(to)
            row.append(numbers[to])
        after.append(tuple(row))
        steps += len(holonomy.letters) * len(chain)
        if steps > MOST_STEPS:
            raise BuildRefused(
                f"the cascade of this automaton has {len(holonomy.levels)} levels and more than {len(queue)} chains of "
                "coordinates: its tables would explode; use --shape log-depth"
            )
    return found, tuple(after)


def _level(
    place: int, start: int | None, paths: Paths, below: Mapping[Key, Context], letters: int
) -> tuple[CascadeLevel | None, dict[Key, Context]]:
    """A level with its contexts merged, and their numbers; no level where no coordinate matters."""
    moves: dict[Key, Move] = {}
    after: dict[Key, dict[int | None, Context]] = {}
    for (chain, _), path in paths.items():
        moves[path.keys[place]] = path.moves[place]
        after.setdefault(path.keys[place], {})[chain[place]] = below[path.keys[place + 1]]
    same = {key: next(iter(by.values())) for key, by in after.items() if len(set(by.values())) == 1}
    if len(same) == len(after):
        return None, same
    names = {old: new for new, old in enumerate(_reached(start, list(moves.values())))}
    signatures: dict[Key, tuple[Move, Context | tuple[tuple[int, int], ...]]] = {}
    for key, by in after.items():
        read = tuple((names[k], to) for k, to in by.items() if k is not None and to is not None)
        signatures[key] = _renamed(moves[key], names), same[key] if key in same else tuple(sorted(read))
    nothing = (Move(), None)
    used = [signature for signature in dict.fromkeys(signatures.values()) if signature != nothing]
    numbers = {signature: number for number, signature in enumerate(used)}
    labels: dict[Key, Context] = {key: numbers.get(signature) for key, signature in signatures.items()}
    told = [labels[path.keys[place]] for path in paths.values()]
    level = CascadeLevel(
        place=place + 1,
        size=len(names),
        start=None if start is None else names[start],
        moves=tuple(move for move, _ in used),
        nexts=tuple(dict(to) if isinstance(to, tuple) else to for _, to in used),
        told=tuple(tuple(told[at : at + letters]) for at in range(0, len(told), letters)),
    )
    return level, labels


def _reached(start: int | None, moves: Sequence[Move]) -> list[int]:
    """The coordinates that the start and the resets can be moved to."""
    found = dict.fromkeys([start, *(move.reset for move in moves)])
    queue = [coordinate for coordinate in found if coordinate is not None]
    for coordinate in queue:  # grows while it is walked
        for permutation in dict.fromkeys(move.permutation for move in moves):
            if permutation is not None and permutation[coordinate] not in found:
                found[permutation[coordinate]] = None
                queue.append(permutation[coordinate])
    return sorted(queue)


def _renamed(move: Move, names: Mapping[int, int]) -> Move:
    """The same move of coordinates with other names; one that moves nothing is no move."""
    if move.reset is not None:
        return Move(reset=names[move.reset])
    if move.permutation is None or all(move.permutation[old] == old for old in names):
        return Move()
    return Move(permutation=tuple(names[move.permutation[old]] for old in names))
