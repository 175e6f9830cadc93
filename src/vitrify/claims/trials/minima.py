"""The population loss of a one-layer transformer on a chain of bits, around the point θ_π that ignores its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certification.evidence import Criterion
from vitrify.learn import bit_chain
from vitrify.learn.landscape import Landscape, float64, population_loss, strings
from vitrify.learn.models.scalar import ScalarFamily, low_rank
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.markov import Markov

MIN_PROBABILITY, MIN_APART, MAX_APART = 0.05, 0.05, 0.8  # of p, q, 1 - p and 1 - q; of p + q from 1
GOLDEN = (5**0.5 - 1) / 2  # its multiples, without their whole parts, are spread evenly
POSITIONS_SIZE, RANDOM_SIZE = 0.1, 0.05  # scale of the position embedding at θ_π; of random weights
POINTS, MAX_DISTANCE, STEP = 200, 0.1, 0.05  # random points near θ_π; their distance; length of a step down
ALONG = np.linspace(-1.5, 1.5, 31)  # distances from θ_π in the figure
KINDS = "negative", "positive", "smallest", "nearby", "down"  # measures of what kind of point θ_π is
MAX_ERROR, MIN_CURVE = 1e-12, 1e-3  # of losses and gradients; how far below zero a saddle's smallest eigenvalue is
OFF = 1e-6  # distance from θ_π at which the gradient is taken for comparison
LOW_RANK = ((0.7, 0.3, 0.2), (1.5, -1.2, -0.5), (0.2, -0.7, 1.0))  # (e, w, b)
SLICED = ((0.2, 0.3), (0.5, 0.8))  # points (p, q) in the figure

Point = Mapping[str, Array]
Chain = tuple[float, float]  # p, q


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


def chain(number: int) -> Chain:
    """Return (p, q) drawn by a number: |p + q - 1| evenly on a logarithmic scale, p + q > 1 for odd numbers."""
    apart = MIN_APART * (MAX_APART / MIN_APART) ** (number // 2 * GOLDEN % 1)
    total = 1 + apart if number % 2 else 1 - apart
    least, most = max(MIN_PROBABILITY, total - 1 + MIN_PROBABILITY), min(1 - MIN_PROBABILITY, total - MIN_PROBABILITY)
    p = float(np.random.default_rng(number).uniform(least, most))
    return p, total - p


def measured(sizes: ChainSizes, numbers: Sequence[int], chains: Sequence[Chain]) -> dict[str, Array]:
    """Return every measure by name: [chain], for spectra [chain, zero or random weights]; `numbers` are the seeds."""
    net, land = landscape(sizes)
    losses = jax.jit(jax.vmap(land.functions[0], (0, None)))
    each = [_measured(net, land, losses, *pair, sizes.tied) for pair in zip(numbers, chains, strict=True)]
    return {name: np.array([own[name] for own in each], dtype=float) for name in each[0]}


def _measured(
    net: Transformer, strings: Landscape, losses: Array, number: int, chain: Chain, tied: bool
) -> dict[str, Array]:
    (p, q), land = chain, strings.over(bit_chain.weighted(strings.data, *chain))
    positions, entropy = bit_chain.blank(net, POSITIONS_SIZE, number)["pos_embed.W_pos"], bit_chain.alone(p, q)
    start = coordinates(bit_chain.unread(net, p, q, 0.0) | {"pos_embed.W_pos": positions}, tied)
    here, random = land.look(start), land.look(coordinates(bit_chain.unread(net, p, q, RANDOM_SIZE, number), tied))
    best, middle = coordinates(bit_chain.solved(net, p, q), tied), land.vector(start)
    rng = np.random.default_rng((number, 1))
    around = rng.normal(size=(POINTS, len(middle)))
    around /= np.linalg.norm(around, axis=1, keepdims=True)
    with float64():
        lowest = float(losses(middle + MAX_DISTANCE * rng.random((POINTS, 1)) * around, land.data).min())
    return {
        "slope at θ_π": max(here.slope, random.slope),
        "slope off θ_π": np.abs(land.gradient(middle + OFF * around[0])).max(),
        "loss at θ_π": max(abs(here.loss - entropy), abs(random.loss - entropy)),
        "slope at θ*": np.abs(land.gradient(best)).max(),
        "loss at θ*": abs(land.loss(best) - bit_chain.rate(p, q)),
        "Hessian": np.abs((here.vectors * here.values) @ here.vectors.T - hessian(land, positions, p, q, tied)).max(),
        "negative": (here.counts[0], random.counts[0]),
        "positive": (here.counts[2], random.counts[2]),
        "smallest": (here.values[0], random.values[0]),
        "nearby": lowest - here.loss,
        "down": land.loss(middle + STEP * here.vectors[:, 0]) - here.loss,
    }


def closed_form_errors(sizes: ChainSizes, chains: Sequence[Chain]) -> Array:
    """Return errors of the closed form of the low-rank loss, and of its values and slopes at the best bias.

    [point, chain]: the points of `LOW_RANK`, then four values at the best bias.
    """
    net, land = landscape(sizes)
    p, q = np.array(chains).T
    alone, rate = (np.vectorize(each)(p, q) for each in (bit_chain.alone, bit_chain.rate))
    errors = []
    with float64():
        for e, w, b in LOW_RANK:
            point = coordinates(bit_chain.blank(net) | low_rank(net, e, w) | {"b": b}, tied=True)
            full = [land.over(bit_chain.weighted(land.data, *each)).loss(point) for each in chains]
            errors.append(full - np.asarray(bit_chain.reduced(e, w, b, jnp.asarray(p), jnp.asarray(q))))
        profile = jax.jit(jax.vmap(jax.value_and_grad(bit_chain.profile)))
        none, slope = profile(jnp.zeros(len(p)), p, q)
        best, flat = profile(jnp.asarray(bit_chain.contrast(p, q)), p, q)
        exact_slope = bit_chain.ones(p, q) * bit_chain.ones(q, p) * (p + q - 1)
        errors += [none - alone, best - rate, flat, slope - exact_slope]
    return np.abs(np.stack([np.asarray(each) for each in errors]))


def slices(sizes: ChainSizes) -> Array:
    """Return the loss above H(π) along the direction from θ_π that curves down most, or up least among e.

    [chain, distance], of the chains `SLICED` at the distances `ALONG`.
    """
    net, land = landscape(sizes)
    unit, rows = np.ones(sizes.d) / np.sqrt(sizes.d), []
    for p, q in SLICED:
        here, start = land.over(bit_chain.weighted(land.data, p, q)), bit_chain.unread(net, p, q, 0.0)
        sign = 1.0 if p + q < 1 else -1.0  # which way of (e, a) leads down without tying
        path = [coordinates(start | {"e": t * unit, "a": sign * t * unit}, sizes.tied) for t in ALONG]
        rows.append([here.loss(point) - bit_chain.alone(p, q) for point in path])
    return np.array(rows)


def above(chains: Sequence[Chain], border: float = 1.0) -> Array:
    """Return which chains have p + q above the border."""
    over: Array = np.sum(chains, axis=1) > border
    return over


def kind_criteria(
    sizes: ChainSizes, arrays: Mapping[str, Array], chains: Sequence[Chain], over: bool
) -> list[Criterion]:
    """Return the criteria of the kind of point that θ_π is, for the chains on one side of p + q = 1."""
    side, key, minimum = "p + q > 1" if over else "p + q < 1", "tied" if sizes.tied else "untied", sizes.tied and over
    counts = {"negative": 0 if minimum else sizes.d, "positive": 1 if sizes.tied and not over else sizes.d + 1}
    values = {name: arrays[name][above(chains) == over].ravel() for name in KINDS}
    ranges: dict[str, tuple[Array, float, float]]
    ranges = {f"{name} eigenvalues": (values[name], count, count) for name, count in counts.items()}
    if minimum:
        ranges["smallest eigenvalue"] = values["smallest"], -MAX_ERROR, np.inf
        ranges["loss near θ_π above that at θ_π"] = values["nearby"], -MAX_ERROR, np.inf
    else:
        ranges["smallest eigenvalue"] = values["smallest"], -np.inf, -MIN_CURVE
        ranges["change of loss one step down"] = values["down"], -np.inf, -MAX_ERROR
    judged = partial(Criterion.judged, statement=key)
    return [judged(f"{name}, {side}", own, at_least=a, at_most=b) for name, (own, a, b) in ranges.items()]
