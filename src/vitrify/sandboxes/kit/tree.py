r"""Exact posteriors in a hierarchy of rules: messages up and down a complete tree, never a list of its strings.

`rules[h]` holds the productions of the symbols of height $h + 1$, [symbol, production, place], equally probable, and
no two alike. Weights of a node are known up to a factor: each message is divided by its largest entry.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Float, Int

Rules = Sequence[Int[Array, "symbol production place"]]
MAX_BELIEFS = 5_000  # distinct beliefs of a reader, when entropies are computed exactly
TINY = np.float32(1e-30)


def inside(rules: Rules, leaves: Array) -> list[Array]:
    """Return the likelihood of the leaves below each node given its symbol, [node, symbol] for each height."""
    messages = [leaves]
    for table in rules:
        below = messages[-1].reshape(-1, table.shape[2], messages[-1].shape[1])
        messages.append(_scaled(_product(table, [below[:, j] for j in range(table.shape[2])])))
    return messages


def from_the_left(rules: Rules, up: Sequence[Array], prior: Array) -> Array:
    """The distribution of each leaf given all leaves to its left: [leaf, symbol]. `up` is what `inside` found."""
    now = prior[None]
    for table, seen in zip(reversed(rules), reversed(up[:-1]), strict=True):
        _, m, s = table.shape
        below = seen.reshape(-1, s, seen.shape[1])
        weight = jnp.repeat(now, m, axis=1)  # [node, rule]
        children = []
        for j in range(s):
            children.append(_scaled(weight @ _one_hot(table[..., j], seen.shape[1])))
            weight = weight * below[:, j, table[..., j].reshape(-1)]
        now = jnp.stack(children, axis=1).reshape(-1, seen.shape[1])
    return now / jnp.maximum(now.sum(axis=-1, keepdims=True), TINY)


def from_a_window(rules: Rules, up: Sequence[Array], prior: Array, first: Array, leaf: Array) -> Array:
    """The distribution of one leaf given the leaves `first`, …, `leaf - 1` alone: [symbol]."""
    edge = [up[0][first]]  # of the node that `first` is in: its leaves from `first` on, given its symbol
    sizes = [1]
    for height, table in enumerate(rules):
        s = table.shape[2]
        node, place = first // (sizes[-1] * s), first // sizes[-1] % s
        parts = []
        for j in range(s):
            part = jnp.where(j == place, edge[-1], up[height][node * s + j])
            parts.append(jnp.where(j < place, 1.0, part)[None])
        edge.append(_scaled(_product(table, parts))[0])
        sizes.append(sizes[-1] * s)
    now = prior
    for height in reversed(range(len(rules))):
        table, symbols = rules[height], up[height].shape[1]
        s = table.shape[2]
        node, place = leaf // (sizes[height] * s), leaf // sizes[height] % s
        weight, below = jnp.repeat(now, table.shape[1]), jnp.zeros(symbols)
        for j in range(s):
            below = jnp.where(j == place, weight @ _one_hot(table[..., j], symbols), below)
            child = node * s + j
            message = jnp.where(child == first // sizes[height], edge[height], up[height][child])
            message = jnp.where((child + 1) * sizes[height] <= first, 1.0, message)
            weight = weight * jnp.where(j < place, message[table[..., j].reshape(-1)], 1.0)
        now = _scaled(below)
    return now / jnp.maximum(now.sum(), TINY)


def _product(table: Array, parts: Sequence[Array]) -> Array:
    """The sum over productions of the product of the children's weights: [node, symbol]."""
    total = parts[0][:, table[..., 0]]
    for j in range(1, table.shape[2]):
        total = total * parts[j][:, table[..., j]]
    return total.sum(axis=-1)


def _one_hot(symbols: Array, count: int) -> Array:
    return jax.nn.one_hot(symbols.reshape(-1), count)


def _scaled(weight: Array) -> Array:
    return weight / jnp.maximum(weight.max(axis=-1, keepdims=True), TINY)


# Entropies: all beliefs that a reader may come to hold, as whole numbers, equal ones merged


class TooMany(Exception):
    """More beliefs than are followed."""


def entropies(
    rules: Rules,
    beliefs: Int[Array, "belief symbol"],
    mass: Float[Array, " belief"],
    last: bool = False,
    seen: int | None = None,
) -> list[float]:
    r"""The entropy of each leaf below a node given the leaves to its left, in nats; `last`: of the last leaf alone.

    A reader comes to the node with the belief `beliefs[i]` about its symbol with probability `mass[i]`. As no two
    productions are alike, the leaves below a child tell its symbol, and nothing else about what is to come: a reader
    who has passed $j$ children believes in the productions that begin with these $j$ symbols. One who sees only the
    last `seen` leaves before the last leaf comes to hold as many beliefs as these can tell apart.
    """
    if not rules:
        p = beliefs / beliefs.sum(axis=1, keepdims=True)
        return [float(mass @ -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=1))]
    *lower, table = rules
    count, s = _count(rules), table.shape[2]
    inner = s ** len(lower) - 1  # leaves of the last child before the last leaf
    weights = np.repeat(beliefs, table.shape[1], axis=1)  # [belief, rule]
    entropies_of_leaves: list[float] = []
    for j in range(s):
        child = np.eye(count, dtype=np.int64)[table[..., j].reshape(-1)]  # [rule, symbol]
        if not last or j == s - 1:
            entropies_of_leaves += entropies(lower, *_merged(weights @ child, mass), last, seen)
        if j < s - 1:
            between = (s - 2 - j) * (inner + 1)  # leaves of the children from here to the last
            all_symbols = np.eye(count, dtype=np.int64)
            messages = all_symbols if seen is None else _tellings(lower, seen - inner - between, count)
            split = weights[:, None, :] * (messages @ child.T)[None]  # [belief, telling, rule]
            share = split.sum(axis=2) / (weights.sum(axis=1, keepdims=True) * messages[:, 0].sum())
            possible = share > 0
            weights, mass = _merged(split[possible], (mass[:, None] * share)[possible])
    return entropies_of_leaves


def _tellings(rules: Rules, seen: int, count: int) -> Int[Array, "telling symbol"]:
    """Return the distinct likelihoods of a node's symbol given its last `seen` leaves: integers [message, symbol].

    A column is proportional to how probable each telling is if the node has that symbol; all columns have one sum.
    Tellings that say the same are one.
    """
    if seen <= 0:
        return np.ones((1, count), dtype=np.int64)
    if not rules or seen >= rules[-1].shape[2] ** len(rules):
        return np.eye(count, dtype=np.int64)
    *lower, table = rules
    below, size = _count(rules), table.shape[2] ** len(lower)
    weights = np.ones((1, table[..., 0].size), dtype=np.int64)  # [telling, rule]
    for j in range(table.shape[2]):
        messages = _tellings(lower, seen - (table.shape[2] - 1 - j) * size, below)[:, table[..., j].reshape(-1)]
        weights = (weights[:, None, :] * messages[None]).reshape(-1, messages.shape[1])
    sums = weights.reshape(len(weights), *table.shape[:2]).sum(axis=2)
    sums = sums[sums.any(axis=1)]
    factor = np.gcd.reduce(sums, axis=1)
    different, times = _merged(sums, factor.astype(float))
    return different * np.rint(times).astype(np.int64)[:, None]


def _count(rules: Rules) -> int:
    """Return the number of symbols just below the highest rules."""
    return int(rules[-2].shape[0] if len(rules) > 1 else rules[-1].max() + 1)


def _merged(weights: Int[Array, "old symbol"], mass: Float[Array, " old"]) -> tuple[Array, Array]:
    weights = weights // np.gcd.reduce(weights, axis=1)[:, None]
    different, place = np.unique(weights, axis=0, return_inverse=True)
    if len(different) > MAX_BELIEFS:
        raise TooMany
    return different, np.bincount(place.reshape(-1), weights=mass, minlength=len(different))
