r"""Reachable combinations of letters, remainders and resets in the counters of a level, and how high they count.

A *node* is a chain of the cascade, the exponents $E$ that the level's counters have added up, and the tile to which
the last reset was moved back. Words walk from node to node; only what is reachable is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from vitrify.errors import BuildRefused
from vitrify.spec.automata.cascade import Cascade, CascadeLevel
from vitrify.spec.automata.groups import Factor, Permutation, inverse, then
from vitrify.spec.automata.holonomy import Move

Exponents = tuple[tuple[int, ...], ...]
"""The exponents by factor."""

Node = tuple[int, Exponents, int | None]
MAX_NODES = 1 << 16


@dataclass(eq=False)
class Reach:
    """The reachable combinations of a level's counters.

    - `letters`: by factor, pairs of a letter and the exponents before it.
    - `looked_at`: pairs of the tile since the last reset and all exponents.
    - `resets`: from the coordinate that is reset to, with all exponents, to the tile that it is moved back to.
    - `highest`: by factor, the largest count of each of its parts.
    """

    letters: tuple[dict[tuple[Permutation, tuple[int, ...]], None], ...]
    resets: dict[tuple[int, Exponents], int] = field(default_factory=dict)
    looked_at: dict[tuple[int, Exponents], None] = field(default_factory=dict)
    highest: tuple[tuple[int, ...], ...] = ()


def reach(plan: Cascade, level: CascadeLevel, max_length: int) -> Reach:
    """Return a superset of what words of at most `max_length` letters reach."""
    factors = level.group.factors
    reached = Reach(letters=tuple({} for _ in factors))
    start: Node = (0, tuple((0,) * len(factor.orders) for factor in factors), level.start)
    numbers = {start: 0}
    queue, arrows = [start], []
    for node in queue:  # grows while it is walked
        for letter, chain in enumerate(plan.next_chains[node[0]]):
            exponents, since, weights = _read(level, node, letter, reached)
            after = (chain, exponents, since)
            if after not in numbers:
                numbers[after] = len(queue)
                queue.append(after)
            arrows.append((numbers[node], numbers[after], *(w for factor in weights for w in factor)))
        if len(queue) > MAX_NODES:
            raise BuildRefused(
                f"the counters of a level with the group {level.group.name} meet more than {MAX_NODES} combinations "
                "of remainders and coordinates: its tables would explode; use --construction log-depth"
            )
    highest = iter(_highest(np.array(arrows), len(queue), max_length - 1))
    reached.highest = tuple(tuple(next(highest) for _ in factor.orders) for factor in factors)
    return reached


def _read(
    level: CascadeLevel, node: Node, letter: int, reached: Reach
) -> tuple[Exponents, int | None, list[tuple[int, ...]]]:
    """Return exponents and tile after a letter, and what it adds to the exponents; record what is reached."""
    chain, exponents, since = node
    context = level.contexts[chain][letter]
    move, to = (Move(), None) if context is None else (level.moves[context], level.next_contexts[context])
    product = product_of(level.group.factors, exponents, level.group.identity)
    if isinstance(to, dict) and since is not None and product[since] in to:
        reached.looked_at[since, exponents] = None
    if move.reset is not None:
        since = reached.resets[move.reset, exponents] = inverse(product)[move.reset]
    permutation = level.group.identity if move.permutation is None else move.permutation
    weights = []
    for index, added, letters in series(level.group.factors, permutation, exponents):
        if letters != level.group.identity:
            reached.letters[index][letters, exponents[index]] = None
        weights.append(added)
    return tuple(_added(*three) for three in zip(level.group.factors, exponents, weights, strict=True)), since, weights


def series(
    factors: tuple[Factor, ...], letter: Permutation, exponents: Exponents
) -> Iterator[tuple[int, tuple[int, ...], Permutation]]:
    """Yield, for each factor, its index, what a letter adds to its exponents, and the letter in this factor's group."""
    for index, (factor, before) in enumerate(zip(factors, exponents, strict=True)):
        yield index, factor.exponents[letter], letter
        letter = seen_below(factor, letter, before)


def seen_below(factor: Factor, letter: Permutation, before: tuple[int, ...]) -> Permutation:
    r"""Return the next factor's letter, $x^{E}\, b\, x^{-(E + e(b))}$."""
    after = factor.element(_added(factor, before, factor.exponents[letter]))
    return then(then(factor.element(before), letter), inverse(after))


def product_of(factors: tuple[Factor, ...], exponents: Exponents, identity: Permutation) -> Permutation:
    """Return the product of all letters, from the exponents of the factors: the last factor comes first."""
    product = identity
    for factor, powers in zip(factors, exponents, strict=True):
        product = then(factor.element(powers), product)
    return product


def _added(factor: Factor, before: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple((e + m) % n for e, m, n in zip(before, more, factor.orders, strict=True))


def _highest(arrows: np.ndarray, nodes: int, letters: int) -> list[int]:
    """Return the largest sum of each weight along a path of `letters` arrows from node 0."""
    highest = []
    for weight in arrows.T[2:]:
        best = np.full(nodes, -1)
        best[0] = 0
        for _ in range(letters):
            after = np.full(nodes, -1)
            reached = best[arrows[:, 0]]
            np.maximum.at(after, arrows[:, 1], np.where(reached < 0, -1, reached + weight))
            best = after
        highest.append(int(best.max()))
    return highest
