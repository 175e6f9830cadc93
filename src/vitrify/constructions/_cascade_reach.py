r"""What the counters of a level can meet: which letters, remainders and resets come together, and how high they count.

A *node* is a chain of the cascade, the exponents $E$ that the level's counters have added up, and the tile to which
the last reset was moved back. Words walk from node to node; only what they meet is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from vitrify.errors import BuildRefused
from vitrify.spec.cascade import Cascade, CascadeLevel
from vitrify.spec.groups import Factor, Permutation, inverse, then
from vitrify.spec.holonomy import Move

Exponents = tuple[tuple[int, ...], ...]
"""The exponents by factor."""

Node = tuple[int, Exponents, int | None]
MOST_NODES = 1 << 16


@dataclass(eq=False)
class Reach:
    """What a level's counters meet.

    `letters` has, by factor, the letters with the exponents before them; `looked_at` the tile since the last reset with
    all exponents; `resets` the coordinate that is reset to with all exponents, and the tile that it is moved back to.
    `highest` is, by factor, the largest count of each of its parts.
    """

    letters: tuple[dict[tuple[Permutation, tuple[int, ...]], None], ...]
    resets: dict[tuple[int, Exponents], int] = field(default_factory=dict)
    looked_at: dict[tuple[int, Exponents], None] = field(default_factory=dict)
    highest: tuple[tuple[int, ...], ...] = ()


def reach(plan: Cascade, level: CascadeLevel, max_length: int) -> Reach:
    """Everything that words of at most so many letters may meet, and perhaps a little more."""
    factors = level.group.factors
    found = Reach(letters=tuple({} for _ in factors))
    start: Node = (0, tuple((0,) * len(factor.orders) for factor in factors), level.start)
    numbers = {start: 0}
    queue, arrows = [start], []
    for node in queue:  # grows while it is walked
        for letter, chain in enumerate(plan.after[node[0]]):
            exponents, since, weights = _read(level, node, letter, found)
            after = (chain, exponents, since)
            if after not in numbers:
                numbers[after] = len(queue)
                queue.append(after)
            arrows.append((numbers[node], numbers[after], *(w for factor in weights for w in factor)))
        if len(queue) > MOST_NODES:
            raise BuildRefused(
                f"the counters of a level with the group {level.group.name} meet more than {MOST_NODES} combinations "
                "of remainders and coordinates: its tables would explode; use --shape log-depth"
            )
    highest = iter(_highest(np.array(arrows), len(queue), max_length - 1))
    found.highest = tuple(tuple(next(highest) for _ in factor.orders) for factor in factors)
    return found


def _read(
    level: CascadeLevel, node: Node, letter: int, found: Reach
) -> tuple[Exponents, int | None, list[tuple[int, ...]]]:
    """The exponents and the tile after a letter, and what it adds to the exponents; notes what is met."""
    chain, exponents, since = node
    context = level.told[chain][letter]
    move, to = (Move(), None) if context is None else (level.moves[context], level.nexts[context])
    product = product_of(level.group.factors, exponents, level.group.identity)
    if isinstance(to, dict) and since is not None and product[since] in to:
        found.looked_at[since, exponents] = None
    if move.reset is not None:
        since = found.resets[move.reset, exponents] = inverse(product)[move.reset]
    permutation = level.group.identity if move.permutation is None else move.permutation
    weights = []
    for place, added, letters in series(level.group.factors, permutation, exponents):
        if letters != level.group.identity:
            found.letters[place][letters, exponents[place]] = None
        weights.append(added)
    return tuple(_added(*three) for three in zip(level.group.factors, exponents, weights, strict=True)), since, weights


def series(
    factors: tuple[Factor, ...], letter: Permutation, exponents: Exponents
) -> Iterator[tuple[int, tuple[int, ...], Permutation]]:
    """For each factor: its number, what a letter adds to its exponents, and the letter as this factor sees it."""
    for place, (factor, before) in enumerate(zip(factors, exponents, strict=True)):
        yield place, factor.exponents[letter], letter
        letter = seen_below(factor, letter, before)


def seen_below(factor: Factor, letter: Permutation, before: tuple[int, ...]) -> Permutation:
    r"""The next factor's letter, $x^{E}\, b\, x^{-(E + e(b))}$."""
    after = factor.element(_added(factor, before, factor.exponents[letter]))
    return then(then(factor.element(before), letter), inverse(after))


def product_of(factors: tuple[Factor, ...], exponents: Exponents, identity: Permutation) -> Permutation:
    """The product of all letters, from the exponents of the factors: the last factor comes first."""
    product = identity
    for factor, powers in zip(factors, exponents, strict=True):
        product = then(factor.element(powers), product)
    return product


def _added(factor: Factor, before: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple((e + m) % n for e, m, n in zip(before, more, factor.orders, strict=True))


def _highest(arrows: np.ndarray, nodes: int, letters: int) -> list[int]:
    """The largest sum of each weight along a way of so many arrows from node 0."""
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
