"""The population loss of a one-layer transformer on a chain of bits, around the point θ_π that ignores its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.encoding import JsonObject
from vitrify.learn import bit_chain
from vitrify.learn.landscape import Landscape, float64, population_loss, strings
from vitrify.learn.models.scalar import ScalarFamily, low_rank
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.markov import Markov

POSITIONS_SIZE, RANDOM_SIZE = 0.1, 0.05  # scale of the position embedding at θ_π; of random weights
POINTS, MAX_DISTANCE, STEP = 200, 0.1, 0.05  # random points near θ_π; their distance; length of a step down
LOW_RANK = ((0.7, 0.3, 0.2), (1.5, -1.2, -0.5), (0.2, -0.7, 1.0))  # (e, w, b)
SLICED = ((0.2, 0.3), (0.5, 0.8))  # points (p, q) in the figure

Point = Mapping[str, Array]


class ChainSizes(NamedTuple):
    """A network: whether its weights are tied, its width, and how many tokens it reads."""

    tied: bool
    d: int
    tokens: int


def variance(p: float, q: float) -> float:
    r"""Return $\pi_0 \pi_1$."""
    return float(bit_chain.ones(p, q) * bit_chain.ones(q, p))


@cache
def landscape(sizes: ChainSizes) -> tuple[Transformer, Landscape]:
    """Return the network and its population loss; with tied weights there is no coordinate `a`."""
    family, chain = ScalarFamily(d_model=sizes.d, tied=float(sizes.tied)), Markov(length=sizes.tokens + 1)
    net, loss = family.architecture(chain), population_loss(family, chain)
    zero = np.zeros(sizes.d)

    def over(parameters: Point, row: Example) -> Array:
        return loss({"a": zero, **parameters}, row)

    return net, Landscape.of(over, coordinates(bit_chain.blank(net), sizes.tied), all_strings(sizes.tokens))


@cache
def all_strings(tokens: int) -> Example:
    """Return every string of `tokens` + 1 bits; the weights are replaced by those of each chain."""
    return strings(Markov(length=tokens + 1))


def coordinates(parameters: Point, tied: bool) -> dict[str, Array]:
    """Return the independent parameters: without `a` if weights are tied."""
    return {name: value for name, value in parameters.items() if not (tied and name == "a")}


def hessian(land: Landscape, positions: Array, p: float, q: float, tied: bool) -> Array:
    """Return the Hessian at θ_π by its formula, with this position embedding and all other weights zero."""
    matrix = np.zeros((len(land.names),) * 2)
    at = {name: [i for i, each in enumerate(land.names) if each.split("[")[0] == name] for name in ("b", "a", "e")}
    read = at["e"] if tied else at["a"]
    matrix[at["b"], at["b"]] = 1
    matrix[at["b"], read] = matrix[read, at["b"]] = positions.mean(axis=0)
    matrix[np.ix_(read, read)] += positions.T @ positions / len(positions)
    matrix[read, at["e"]] += p + q - 1
    matrix[at["e"], read] += p + q - 1
    return variance(p, q) * matrix


def measured(sizes: ChainSizes, points: Sequence[tuple[float, float]]) -> dict[str, Array]:
    """Return every measure by name: [point], for spectra [point, zero or random weights]."""
    net, land = landscape(sizes)
    losses = jax.jit(jax.vmap(land.functions[0], (0, None)))
    each = [_measured(net, land.over(bit_chain.weighted(land.data, p, q)), losses, p, q, sizes.tied) for p, q in points]
    return {name: np.array([own[name] for own in each]) for name in each[0]}


def _measured(net: Transformer, land: Landscape, losses: Array, p: float, q: float, tied: bool) -> dict[str, Array]:
    positions, entropy = bit_chain.blank(net, POSITIONS_SIZE)["pos_embed.W_pos"], bit_chain.alone(p, q)
    start = coordinates(bit_chain.unread(net, p, q, 0.0) | {"pos_embed.W_pos": positions}, tied)
    here, random = land.look(start), land.look(coordinates(bit_chain.unread(net, p, q, RANDOM_SIZE), tied))
    best = coordinates(bit_chain.solved(net, p, q), tied)
    middle, rng = land.vector(start), np.random.default_rng(0)
    around = rng.normal(size=(POINTS, len(middle)))
    around = middle + MAX_DISTANCE * rng.random((POINTS, 1)) * around / np.linalg.norm(around, axis=1, keepdims=True)
    with float64():
        lowest = float(losses(jnp.asarray(around), land.data).min())
    return {
        "slope at θ_π": max(here.slope, random.slope),
        "loss at θ_π": max(abs(here.loss - entropy), abs(random.loss - entropy)),
        "slope at θ*": np.abs(land.gradient(best)).max(),
        "loss at θ*": abs(land.loss(best) - bit_chain.rate(p, q)),
        "Hessian": np.abs(land.hessian(start) - hessian(land, positions, p, q, tied)).max(),
        "negative": (here.counts[0], random.counts[0]),
        "positive": (here.counts[2], random.counts[2]),
        "smallest": (here.values[0], random.values[0]),
        "nearby": lowest - here.loss,
        "down": land.loss(middle + STEP * here.vectors[:, 0]) - here.loss,
    }


def closed_form_errors(sizes: ChainSizes, points: Sequence[tuple[float, float]]) -> Array:
    """Return errors of the closed form of the low-rank loss, and of its values and gradients at the best bias."""
    net, land = landscape(sizes)
    p, q = np.array(points).T
    alone, rate = (np.vectorize(each)(p, q) for each in (bit_chain.alone, bit_chain.rate))
    errors = []
    with float64():
        for e, w, b in LOW_RANK:
            point = coordinates(bit_chain.blank(net) | low_rank(net, e, w) | {"b": b}, tied=True)
            full = [land.over(bit_chain.weighted(land.data, *each)).loss(point) for each in points]
            errors.append(full - np.asarray(bit_chain.reduced(e, w, b, jnp.asarray(p), jnp.asarray(q))))
        profile = jax.jit(jax.vmap(jax.value_and_grad(bit_chain.profile)))
        none, slope = profile(jnp.zeros(len(p)), p, q)
        best, flat = profile(jnp.asarray(bit_chain.contrast(p, q)), p, q)
        exact_slope = bit_chain.ones(p, q) * bit_chain.ones(q, p) * (p + q - 1)
        errors += [none - alone, best - rate, flat, slope - exact_slope]
    return np.abs(np.concatenate(errors))


def slices(sizes: ChainSizes) -> JsonObject:
    """Return the loss above H(π) along the direction from θ_π that curves down most, or up least among e."""
    net, land = landscape(sizes)
    along, unit, lines = np.linspace(-1.5, 1.5, 31), np.ones(sizes.d) / np.sqrt(sizes.d), []
    for p, q in SLICED:
        here, start = land.over(bit_chain.weighted(land.data, p, q)), bit_chain.unread(net, p, q, 0.0)
        sign = 1.0 if p + q < 1 else -1.0  # which way of (e, a) leads down without tying
        path = [coordinates(start | {"e": t * unit, "a": sign * t * unit}, sizes.tied) for t in along]
        lines.append({"p": p, "q": q, "above": [here.loss(point) - bit_chain.alone(p, q) for point in path]})
    return {"along": along, "lines": lines}
