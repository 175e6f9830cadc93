r"""An automaton as a cascade of small permutation-reset machines, restricted to what its words can reach.

The holonomy decomposition defines the move of each level for every chain of tiles. A level needs less input: a
*context*, a function of the letter and the levels above. It determines the move of the coordinate and, together with
the coordinate before the letter, the context of the next level. Contexts with the same moves and next contexts are
merged, and levels whose coordinate never matters are omitted. Below the last level, the context is the state after the
letter. In the context None nothing moves, at this level and below, and the state is the initial one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.groups import PermutationGroup
from vitrify.spec.automata.holonomy import Chain, Holonomy, Move
from vitrify.spec.graphs import reached

MAX_STEPS = 1 << 18  # chains × letters × levels of the tables

Context = int | None
Next = Context | dict[int, int]
"""The next context: one for all coordinates, or one by the coordinate before the letter; those with None omitted."""

Key = tuple[int, int, int]
"""The old set, the new one, and the letter."""


@dataclass(frozen=True, eq=False)
class CascadeLevel:
    """A permutation-reset machine: the move of its coordinate and the next level's context, by its context.

    - `number`: the number of the holonomy level, from 1.
    - `size`: the number of coordinates, which are 0 to `size` - 1.
    - `start`: the coordinate before the first letter, None if a reset comes before it is used.
    - `moves`, `next_contexts`: by context.
    - `contexts`: the context by chain and letter.
    """

    number: int
    size: int
    start: int | None
    moves: tuple[Move, ...]
    next_contexts: tuple[Next, ...]
    contexts: tuple[tuple[Context, ...], ...]

    @cached_property
    def group(self) -> PermutationGroup:
        """The group that the permutations generate."""
        permutations = dict.fromkeys(move.permutation for move in self.moves)
        return PermutationGroup(self.size, tuple(each for each in permutations if each is not None))

    @property
    def resets(self) -> tuple[int, ...]:
        """The coordinates that some context resets to."""
        return tuple(dict.fromkeys(move.reset for move in self.moves if move.reset is not None))

    @property
    def used_coordinates(self) -> frozenset[int]:
        """The coordinates that some next context depends on."""
        return frozenset(k for to in self.next_contexts if isinstance(to, dict) for k in to)

    @property
    def attention_layers(self) -> int:
        """The number of attention layers: one for each abelian factor of the group, and one for the resets."""
        return self.group.derived_length + bool(self.resets)

    @property
    def next_table(self) -> tuple[tuple[int, int | None, int], ...]:
        """The next contexts as triples: context, coordinate (None for any), next context."""
        triples: list[tuple[int, int | None, int]] = []
        for context, to in enumerate(self.next_contexts):
            if isinstance(to, dict):
                triples += [(context, coordinate, after) for coordinate, after in to.items()]
            elif to is not None:
                triples.append((context, None, to))
        return tuple(triples)


@dataclass(frozen=True, eq=False)
class Cascade:
    """The levels whose coordinate matters, from the top.

    `first_contexts` are the contexts of the top level by letter. The contexts below the last level are the `states`
    without the initial one. `next_chains` is the graph of the chains: the next one by chain and letter; 0 is the first.
    """

    holonomy: Holonomy
    first_contexts: tuple[Context, ...]
    levels: tuple[CascadeLevel, ...]
    next_chains: tuple[tuple[int, ...], ...]

    @property
    def automaton(self) -> Automaton:
        """The decomposed automaton, without the states that no word reaches."""
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
        """The number of attention layers of all levels, one after the other."""
        return sum(level.attention_layers for level in self.levels)


def cascade(automaton: Automaton) -> Cascade:
    """Return the cascade of an automaton; states that no word reaches are omitted.

    >>> from vitrify.spec.automata.families import flip_flop, symmetric_group
    >>> [(level.size, level.group.name, level.resets) for level in cascade(flip_flop()).levels]
    [(2, 'trivial', (0, 1))]
    >>> cascade(symmetric_group(4)).attention_layers
    3
    """
    machine = automaton.reachable()
    holonomy = Holonomy(machine)
    paths, next_chains = _paths(holonomy)
    states = [state for state in range(len(machine.states)) if state != machine.initial]
    number: dict[int, Context] = {1 << state: index for index, state in enumerate(states)}
    labels: dict[Key, Context] = {path.keys[-1]: number.get(path.keys[-1][1]) for path in paths.values()}
    start = holonomy.chain(machine.initial)
    levels: list[CascadeLevel] = []
    for index in reversed(range(len(holonomy.levels))):
        level, labels = _level(index, start[index], paths, labels, len(machine.alphabet))
        levels = [level, *levels] if level else levels
    first = tuple(labels[paths[start, letter].keys[0]] for letter in range(len(machine.alphabet)))
    return Cascade(holonomy, first, tuple(levels), next_chains)


@dataclass(frozen=True)
class _Path:
    """The result of reading one letter in one chain: the keys of every level and below the last, and the moves."""

    keys: tuple[Key, ...]
    moves: tuple[Move, ...]


Paths = dict[tuple[Chain, int], _Path]


def _paths(holonomy: Holonomy) -> tuple[Paths, tuple[tuple[int, ...], ...]]:
    """Return the path of every letter in every chain that words reach, and the graph of these chains."""
    letters = range(len(holonomy.letters))
    most = MAX_STEPS // max(1, len(letters) * len(holonomy.levels))
    graph = reached(
        [holonomy.chain(holonomy.automaton.initial)],
        lambda chain: [holonomy.read(chain, letter) for letter in letters],
        most if holonomy.levels else None,
        f"the cascade of this automaton has {len(holonomy.levels)} levels and more than {most} chains of coordinates: "
        "its tables would be too large; use --construction log-depth",
    )
    paths = Paths()
    for chain, targets in graph.items():
        for letter, to in enumerate(targets):
            walk = list(holonomy.walk(chain, letter))
            last = (1 << holonomy.state(chain), 1 << holonomy.state(to), letter)
            keys = (*((step.old, step.new, letter) for step in walk), last)
            paths[chain, letter] = _Path(keys, tuple(step.move for step in walk))
    numbers = {chain: number for number, chain in enumerate(graph)}
    return paths, tuple(tuple(numbers[to] for to in targets) for targets in graph.values())


def _level(
    index: int, start: int | None, paths: Paths, below: Mapping[Key, Context], letters: int
) -> tuple[CascadeLevel | None, dict[Key, Context]]:
    """Return a level with merged contexts, and the context of every key; no level if no coordinate matters."""
    moves: dict[Key, Move] = {}
    after: dict[Key, dict[int | None, Context]] = {}
    for (chain, _), path in paths.items():
        moves[path.keys[index]] = path.moves[index]
        after.setdefault(path.keys[index], {})[chain[index]] = below[path.keys[index + 1]]
    constant = {key: next(iter(by.values())) for key, by in after.items() if len(set(by.values())) == 1}
    if len(constant) == len(after):
        return None, constant
    names = {old: new for new, old in enumerate(_reached(start, list(moves.values())))}
    signatures: dict[Key, tuple[Move, Context | tuple[tuple[int, int], ...]]] = {}
    for key, by in after.items():
        read = tuple((names[k], to) for k, to in by.items() if k is not None and to is not None)
        signatures[key] = _renamed(moves[key], names), constant[key] if key in constant else tuple(sorted(read))
    identity = (Move(), None)
    used = [signature for signature in dict.fromkeys(signatures.values()) if signature != identity]
    numbers = {signature: number for number, signature in enumerate(used)}
    labels: dict[Key, Context] = {key: numbers.get(signature) for key, signature in signatures.items()}
    contexts = [labels[path.keys[index]] for path in paths.values()]
    level = CascadeLevel(
        number=index + 1,
        size=len(names),
        start=None if start is None else names[start],
        moves=tuple(move for move, _ in used),
        next_contexts=tuple(dict(to) if isinstance(to, tuple) else to for _, to in used),
        contexts=tuple(tuple(contexts[at : at + letters]) for at in range(0, len(contexts), letters)),
    )
    return level, labels


def _reached(start: int | None, moves: Sequence[Move]) -> list[int]:
    """Return the coordinates that permutations can reach from the start and the resets, sorted."""
    starts = [coordinate for coordinate in (start, *(move.reset for move in moves)) if coordinate is not None]
    permutations = {move.permutation for move in moves} - {None}
    return sorted(reached(starts, lambda coordinate: [p[coordinate] for p in permutations if p]))


def _renamed(move: Move, names: Mapping[int, int]) -> Move:
    """Return a move with renamed coordinates; one that moves nothing becomes the identity."""
    if move.reset is not None:
        return Move(reset=names[move.reset])
    if move.permutation is None or all(move.permutation[old] == old for old in names):
        return Move()
    return Move(permutation=tuple(names[move.permutation[old]] for old in names))
