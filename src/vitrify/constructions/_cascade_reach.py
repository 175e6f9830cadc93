r"""Inputs that the lookup tables of one level of a cascade can meet, and the largest values of its counters.

A level acts on its tiles (by index; the current one is its *coordinate*) by permutations and resets. Its group has
abelian factors with generators $x$; counters hold the product of all permutations so far as exponents $E$ of these
generators, modulo their orders. A reset to tile $r$ is stored as the tile that this product maps to $r$. A *node* is a
triple: state of the whole cascade (chain), exponents, stored tile. Only what words reach from the first node is built.
"""

from __future__ import annotations

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
    """The reachable inputs of a level's tables.

    - `letters`: for each factor, pairs (permutation other than the identity, exponents of this factor before it).
    - `resets`: the stored tile by (tile that is reset to, exponents of all factors).
    - `outputs`: pairs (stored tile, exponents of all factors) at which the next level needs this coordinate.
    - `highest`: for each factor, the largest sum of each exponent before it is reduced modulo its order.
    """

    letters: tuple[dict[tuple[Permutation, tuple[int, ...]], None], ...]
    resets: dict[tuple[int, Exponents], int] = field(default_factory=dict)
    outputs: dict[tuple[int, Exponents], None] = field(default_factory=dict)
    highest: tuple[tuple[int, ...], ...] = ()


def reach(plan: Cascade, level: CascadeLevel, max_length: int) -> Reach:
    """Return a superset of what words of at most `max_length` letters reach; counters add all letters but the last."""
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
                "of states, remainders and coordinates: its tables would explode; use --construction log-depth"
            )
    highest = iter(_highest(np.array(arrows), len(queue), max_length - 1))
    reached.highest = tuple(tuple(next(highest) for _ in factor.orders) for factor in factors)
    return reached


def _read(
    level: CascadeLevel, node: Node, letter: int, reached: Reach
) -> tuple[Exponents, int | None, list[tuple[int, ...]]]:
    """Return exponents and stored tile after a letter, and what it adds to the exponents; record what is reached."""
    chain, exponents, since = node
    context = level.contexts[chain][letter]
    move, to = (Move(), None) if context is None else (level.moves[context], level.next_contexts[context])
    product = product_of(level.group.factors, exponents, level.group.identity)
    if isinstance(to, dict) and since is not None and product[since] in to:
        reached.outputs[since, exponents] = None
    if move.reset is not None:
        since = reached.resets[move.reset, exponents] = inverse(product)[move.reset]
    permutation = level.group.identity if move.permutation is None else move.permutation
    weights = []
    for seen, factor, before in zip(reached.letters, level.group.factors, exponents, strict=True):
        if permutation != level.group.identity:
            seen[permutation, before] = None
        weights.append(factor.exponents[permutation])
        permutation = seen_below(factor, permutation, before)
    return tuple(_added(*three) for three in zip(level.group.factors, exponents, weights, strict=True)), since, weights


def seen_below(factor: Factor, letter: Permutation, before: tuple[int, ...]) -> Permutation:
    r"""Return what the next factor is given for the letter $b$: $x^{E}\, b\, x^{-(E + e(b))}$, $e(b)$ its exponents."""
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


def _highest(arrows: np.ndarray, nodes: int, length: int) -> list[int]:
    """Return the largest sum of each weight along a path of `length` arrows from node 0."""
    highest = []
    for weight in arrows.T[2:]:
        best = np.full(nodes, -1)
        best[0] = 0
        for _ in range(length):
            after = np.full(nodes, -1)
            before = best[arrows[:, 0]]
            np.maximum.at(after, arrows[:, 1], np.where(before < 0, -1, before + weight))
            best = after
        highest.append(int(best.max()))
    return highest
