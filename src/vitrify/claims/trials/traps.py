r"""Nets with tied embeddings on drawn Markov kernels: Hessians where they ignore the input, and exact training.

A kernel $P$ has the stationary distribution $\pi$, $C = \mathrm{diag}(\pi) P - \pi\pi^\top$ is its covariance of two
successive symbols (one-hot), and $\lambda$ the largest eigenvalue of $C_s = (C + C^\top)/2$ on vectors orthogonal to
the vector of ones, which is always null. A net gives the logits $U h_x + b$ after the symbol $x$, with $h_x = E_x$ or,
with an MLP, $h_x = E_x + W_2\,\mathrm{relu}(W_1 E_x)$; tied means $U = E$. Its expected loss needs no samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Bools, Floats
from vitrify.certification.evidence import Criterion
from vitrify.claims.statistics.estimates import IntervalEstimate
from vitrify.learn.landscape import float64
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.in_context_markov import InContextMarkov

D, UNITS = 8, 16  # width and hidden units of trained nets
LOWEST, HIGHEST = {3: -0.1, 4: -0.04}, 0.1  # λ of trained kernels by number of states: lower ones are too rare
CANDIDATES = 10_000  # kernels that those with evenly spread λ are chosen from
WIDTHS, SIZES = (1, 3, 8), (2, 3, 4, 5, 6)  # widths and numbers of states of the Hessians
TOKENS = {2: 5, 3: 3, 4: 2}  # read by the transformer, by number of states
MIN_SAVED = 1e-6  # nats below H(π): the input is read
TIMED_FROM = 0.01  # λ of the kernels whose escape is timed
SHALLOW = -0.02  # λ of traps that are shallow under null hypotheses
DRAWN = 100_000  # kernels that are counted for each number of states
COUNTED = (2, 3, 4, 5)  # numbers of states of the kernels that are counted
RIVALS = "trace < 0", "P_aa < π_a for all a", "P has no other eigenvalue with a positive real part"

Point = Mapping[str, Array]


class Descent(NamedTuple):
    """A net and its training: standard deviations of the first E, U and of W₁, W₂; rate and number of steps."""

    start: float
    rate: float
    steps: int
    tied: bool = True
    mlp: tuple[float, float] = (0.0, 0.0)


SMALL, SMALLER = 1e-3, 1e-5  # starts of the nets whose escape is timed
NETS = {
    "no MLP": Descent(SMALL, 0.5, 4000),
    "no MLP, smaller start": Descent(SMALLER, 0.5, 4000),
    "no MLP, large start": Descent(1.0, 0.2, 5000),
    "untied": Descent(SMALL, 0.5, 4000, tied=False),
    "MLP": Descent(0.01, 0.5, 4000, mlp=(0.1, 0.1)),
    "MLP, large start": Descent(1.0, 0.2, 10_000, mlp=(D**-0.5, UNITS**-0.5)),
}
TIMED = "no MLP", "no MLP, smaller start"


# Kernels [..., from, to]


def stationary(kernels: Floats) -> Floats:
    """Return the stationary distributions."""
    states = kernels.shape[-1]
    matrix: Array = np.eye(states) - np.swapaxes(kernels, -1, -2) + 1.0
    solution: Floats = np.asarray(np.linalg.solve(matrix, np.ones((*kernels.shape[:-1], 1)))[..., 0])
    return solution


def covariance(kernels: Floats) -> Floats:
    """Return C; its symmetric part is C_s."""
    pi = stationary(kernels)
    product: Floats = pi[..., :, None] * (kernels - pi[..., None, :])
    return product


def symmetric(matrices: Floats) -> Array:
    """Return the symmetric parts of matrices."""
    half: Array = (matrices + np.swapaxes(matrices, -1, -2)) / 2
    return half


def top(kernels: Floats) -> Floats:
    """Return λ: the null vector of ones is moved to -1, below all other eigenvalues."""
    states = kernels.shape[-1]
    largest: Floats = np.linalg.eigvalsh(symmetric(covariance(kernels)) - 1 / states)[..., -1]
    return largest


def rival_signs(kernels: Floats) -> Bools:
    """Return which kernels rival criteria call traps: [rival, kernel]."""
    pi, own = stationary(kernels), np.diagonal(kernels, axis1=-2, axis2=-1)
    trace = np.trace(covariance(kernels), axis1=-2, axis2=-1)
    second = np.sort(np.linalg.eigvals(kernels).real, axis=-1)[..., -2]
    return np.stack([trace < 0, (own < pi).all(axis=-1), second < 0])


def dirichlet(rng: np.random.Generator, states: int, count: int) -> Floats:
    """Return kernels with rows drawn uniformly from the simplex."""
    return rng.dirichlet(np.ones(states), (count, states))


def spread(number: int, states: int, count: int) -> Floats:
    """Return kernels of a batch with λ spread evenly, one for each of `count` parts of its range.

    They are chosen from mixtures of uniformly drawn kernels with and without a diagonal.
    """
    rng = np.random.default_rng((number, states))
    moving = np.zeros((CANDIDATES, states, states))
    off = rng.dirichlet(np.ones(states - 1), (CANDIDATES, states))
    moving[:, ~np.eye(states, dtype=bool)] = off.reshape(CANDIDATES, -1)
    part = rng.random((CANDIDATES, 1, 1))
    kernels = (1 - part) * dirichlet(rng, states, CANDIDATES) + part * moving
    order = np.argsort(top(kernels))
    low = LOWEST[states]
    goals = low + (HIGHEST - low) * (np.arange(count) + rng.random(count)) / count
    at = np.searchsorted(top(kernels)[order], goals).clip(0, CANDIDATES - 1)
    chosen: Floats = kernels[order[at]]
    return chosen


def trap_counts(numbers: Sequence[int], each: int) -> Array:
    """Return how many of uniformly drawn kernels are traps: [number of states, batch]."""
    rngs = [np.random.default_rng((number, 0)) for number in numbers]
    return np.array([[(top(dirichlet(rng, states, each)) <= 0).sum() for rng in rngs] for states in COUNTED])


# Training on the expected loss


def expected_loss(point: Point, pi: Array, kernel: Array) -> Array:
    """Return the expected loss of one net."""
    read = point["E"]
    if "W_1" in point:
        read = read + jax.nn.relu(read @ point["W_1"]) @ point["W_2"]
    logits = read @ point.get("U", point["E"]).T + point["b"]
    return -(pi[:, None] * kernel * jax.nn.log_softmax(logits)).sum()


def entropies(kernels: Floats) -> tuple[Floats, Floats]:
    """Return the entropies of a single symbol and the entropy rates."""
    pi = stationary(kernels)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.where(kernels > 0, -kernels * np.log(kernels), 0.0).sum(axis=-1)
    return -(pi * np.log(pi)).sum(axis=-1), (pi * rows).sum(axis=-1)


def saved(net: Descent, kernels: Floats, seed: int) -> Floats:
    """Return how far the loss is below that of ignoring the input, at every step of training: [step, kernel]."""
    pi, rng, (count, states) = stationary(kernels), np.random.default_rng((seed, 1)), kernels.shape[:2]
    shapes = {"E": (states, D)} | ({} if net.tied else {"U": (states, D)})
    scales = {"E": net.start, "U": net.start, "W_1": net.mlp[0], "W_2": net.mlp[1]}
    shapes |= {"W_1": (D, UNITS), "W_2": (UNITS, D)} if any(net.mlp) else {}
    first = {name: scales[name] * rng.normal(size=(count, *shape)) for name, shape in shapes.items()}
    slopes = jax.vmap(jax.value_and_grad(expected_loss))

    def step(point: Point, _: None) -> tuple[Point, Array]:
        loss, slope = slopes(point, pi, kernels)
        return {name: point[name] - net.rate * slope[name] for name in point}, loss

    with float64():
        start = {name: jnp.asarray(array) for name, array in {**first, "b": np.log(pi)}.items()}
        losses = jax.jit(lambda point: jax.lax.scan(step, point, None, length=net.steps)[1])(start)
        below: Floats = entropies(kernels)[0] - np.asarray(losses)
    return below


def escape_times(curves: Floats) -> Floats:
    """Return the number of steps until half of what is saved in the end [kernel], from curves [step, kernel]."""
    times: Floats = np.argmax(curves >= curves[-1] / 2, axis=0).astype(float)
    return times


def trained(numbers: Sequence[int], count: int) -> dict[str, Array]:
    """Return what every net saves by "net/saved", and λ, rival criteria and times: [number of states, batch, kernel].

    `rivals` have an axis of rivals before.
    """
    sizes = {states: np.stack([spread(number, states, count) for number in numbers]) for states in LOWEST}
    each = []
    for states, kernels in sizes.items():
        flat, shape = kernels.reshape(-1, states, states), kernels.shape[:2]
        alone, rate = entropies(flat)
        own: dict[str, Array] = {"λ": top(flat), "gap": alone - rate, "rivals": rival_signs(flat)}
        for at, (name, net) in enumerate(NETS.items()):
            curves = saved(net, flat, numbers[0] * len(NETS) + at)
            own[f"{name}/saved"] = curves[-1]
            own |= {f"{name}/time": escape_times(curves)} if name in TIMED else {}
        each.append({name: array.reshape(*array.shape[:-1], *shape) for name, array in own.items()})
    stacked = {name: np.stack([own[name] for own in each], axis=-3) for name in each[0]}
    return {name: a if a.dtype == bool else a.astype(np.float32) for name, a in stacked.items()}


# Hessians


def bare_hessian(kernels: Floats, d: int) -> tuple[Array, Array]:
    """Return Hessians in (E, b) where the input is ignored, by differentiation and by the formula."""
    pi, (count, states) = stationary(kernels), kernels.shape[:2]
    block, corner = np.eye(d), states * d
    formula = np.zeros((count, corner + states, corner + states))
    formula[:, :corner, :corner] = np.einsum("kxy,ij->kxiyj", -2 * symmetric(covariance(kernels)), block).reshape(
        count, corner, corner
    )
    formula[:, corner:, corner:] = pi[:, :, None] * (np.eye(states) - pi[:, None])

    def loss(vector: Array, pi: Array, kernel: Array) -> Array:
        return expected_loss({"E": vector[:corner].reshape(states, d), "b": vector[corner:]}, pi, kernel)

    with float64():
        start = np.concatenate([np.zeros((count, corner)), np.log(pi)], axis=1)
        return np.asarray(jax.jit(jax.vmap(jax.hessian(loss)))(start, pi, kernels)), formula


@cache
def _transformer(states: int) -> tuple[TransformerFamily, InContextMarkov]:
    """Return a tied transformer of one layer, and a sandbox that has its symbols and length."""
    family = TransformerFamily(layers=1, heads=2, d_model=4, units=8, positions="none", norm=False, tied=True)
    return family, InContextMarkov(states=states, length=TOKENS[states] + 1)


def transformer_hessian(kernels: Floats, seed: int) -> tuple[Array, Array]:
    """Return Hessians in the embedding of a transformer that writes nothing, and by the formula.

    Its output weights of heads and units are zero, all others random; the loss is over all strings after a symbol.
    """
    states = kernels.shape[-1]
    family, sandbox = _transformer(states)
    net, rng = family.architecture(sandbox), np.random.default_rng((seed, 2))
    silent = "W_O", "W_out", "b_out", "b_U"
    arrays = {name: rng.normal(size=shape) for name, shape in family.trained(net).items()}
    arrays |= {name: np.zeros_like(array) for name, array in arrays.items() if name.endswith(silent)}
    symbols = np.indices((states,) * (TOKENS[states] + 1), dtype=np.int32).reshape(TOKENS[states] + 1, -1).T

    def loss(vector: Array, pi: Array, kernel: Array) -> Array:
        chance = pi[symbols[:, 0]] * kernel[symbols[:, :-1], symbols[:, 1:]].prod(axis=1)
        weight = chance[:, None] * (np.arange(symbols.shape[1]) > 0)
        table = jnp.concatenate([arrays["embed.W_E"][:1], vector.reshape(states, -1)])
        weights = family.arrays(net, {**arrays, "embed.W_E": table, "unembed.b_U": jnp.log(pi)})
        batch = Example(jnp.asarray(symbols[:, :-1]), jnp.asarray(symbols), weight, {})
        return mean_loss(family.logits(net, sandbox, weights, batch), batch)

    with float64():
        start = np.zeros(states * net.d_model)
        hessian = jax.jit(jax.vmap(jax.hessian(loss), (None, 0, 0)))(start, stationary(kernels), kernels)
        formula = np.einsum("kxy,ij->kxiyj", -2 * symmetric(covariance(kernels)), np.eye(net.d_model))
        return np.asarray(hessian), formula.reshape(hessian.shape)


def hessian_errors(numbers: Sequence[int]) -> dict[str, Array]:
    """Return the largest errors of Hessians [case, batch], and those of two rival formulas [rival, case, batch].

    A case is a number of states with a width, or a number of states of the transformer. The rivals have the factor 1
    instead of 2, and C instead of its symmetric part.
    """
    errors, rivals = [], []
    for states, width in [*((states, d) for states in SIZES for d in WIDTHS), *((states, 0) for states in TOKENS)]:
        draws = [dirichlet(np.random.default_rng((number, 3, states, width)), states, 1) for number in numbers]
        kernels = np.concatenate(draws)
        exact, formula = bare_hessian(kernels, width) if width else transformer_hessian(kernels, numbers[0])
        errors.append(abs(exact - formula).max(axis=(1, 2)))
        c = covariance(kernels)
        rivals.append([abs(symmetric(c)).max(axis=(1, 2)), 2 * abs(c - symmetric(c)).max(axis=(1, 2))])
    return {"Hessian": np.array(errors), "Hessian of rivals": np.moveaxis(np.array(rivals), 1, 0)}


# Statistics of batches, of arrays [number of states, batch, kernel]


def shares(right: Bools, which: Bools) -> Floats:
    """Return the share of the kernels of every batch that are right, among those that are judged (`which`)."""
    each: Floats = (right & which).sum(axis=(0, 2)) / which.sum(axis=(0, 2))
    return each


def time_slopes(lambdas: Floats, times: Floats, which: Bools) -> Floats:
    """Return the slope of ln time on ln λ in every batch, with an intercept for each number of states."""
    x, y = (np.log(np.where(which, each, 1.0).clip(1e-12)) for each in (lambdas, times))
    count = which.sum(axis=2, keepdims=True)
    x, y = (np.where(which, each - each.sum(axis=2, keepdims=True) / count, 0.0) for each in (x, y))
    slopes: Floats = (x * y).sum(axis=(0, 2)) / (x * x).sum(axis=(0, 2))
    return slopes


def delays(lambdas: Floats, times: Sequence[Floats], which: Bools) -> Floats:
    """Return in every batch the mean delay by the smaller start, in units of that at the rate of the Hessian."""
    rate = np.log1p(2 * NETS[TIMED[0]].rate * np.where(which, lambdas, 0.0)) / np.log(SMALL / SMALLER)
    means: Floats = ((times[1] - times[0]) * rate).sum(axis=(0, 2), where=which) / which.sum(axis=(0, 2))
    return means


def within(
    name: str, each: IntervalEstimate, ends: tuple[float, float], *, statement: str, null: float | None = None
) -> Criterion:
    """Return the criterion that an interval lies within two ends."""
    return Criterion.estimated(name, *each, at_least=ends[0], at_most=ends[1], statement=statement, null=null)


def shares_by_top(lambdas: Floats, stays: Mapping[str, Bools], bins: int = 20) -> dict[str, list[float | None]]:
    """Return the middles of bins of λ, and the share of kernels in each that every net stays at; None where none is."""
    ends = np.linspace(-HIGHEST, HIGHEST, bins + 1)
    bin_of = np.digitize(lambdas, ends[1:-1])
    inside = [bin_of == at for at in range(bins)]
    curves = {name: [float(each[own].mean()) if own.any() else None for own in inside] for name, each in stays.items()}
    return {"λ": list((ends[1:] + ends[:-1]) / 2), **curves}
