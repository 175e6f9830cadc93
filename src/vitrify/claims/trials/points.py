"""Sub-n-gram points of a two-attention model: the gradient norm there, corrected for sampling noise.

For comparison there is a point without a meaning, whose attention is as sharp: its heads look one token too far back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certification.evidence import Domain, Method
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.intervals import mean_interval
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.catalogue import Parameters
from vitrify.learn.models.two_attentions import DISTANCES, TOKENS, TwoAttentionsFamily
from vitrify.sandboxes.catalogue import Example, examples
from vitrify.sandboxes.in_context_markov import InContextMarkov
from vitrify.sandboxes.kit.contexts import order_name

LAGS = (1, 2)
MIN_PROBABILITY = 1e-3  # added to the output: an unseen symbol costs at most ln 1000
BATCHES = 8  # of sequences, for independent estimates of the gradient
MIN_NORM = 1e-12  # in place of an estimate of zero
POINTS = {"unigram": (0, 1), "bigram": (1, 1), "elsewhere": (1, 2)}  # order; how many tokens back heads attend


def shared_out(weights: Array) -> float:
    """Return the smallest attention of a head to its lag, for the best assignment; `weights` is [lag, head]."""
    lags = range(len(LAGS))
    return max(float(weights[lags, list(chosen)].min()) for chosen in permutations(lags))


def subject(pairs: tuple[tuple[float, float], ...], batch: int, first: int) -> Subject:
    """Return the subject of the points with two states, for pairs of sequence length and attention sharpness.

    `first` is the number of the first of the batches.
    """
    settings = {"lengths and sharpness": pairs, "batch": batch}
    ran = Domain("gradients at points", Method.SAMPLED, len(POINTS) * BATCHES * len(pairs), settings=settings)
    return Subject(
        "points, 2 states", data={"pairs": pairs, "states": 2, "batch": batch, "first": first, "domain": ran}
    )


def measured(subject: Subject) -> Measured:
    """Return gradient norms [pair, batch left out] and losses above counting [pair, batch], by "point/quantity"."""
    chosen = {name: subject.data[name] for name in ("states", "batch", "first")}
    arrays: dict[str, Array] = {}
    for name, (order, back) in POINTS.items():
        pairs = (slopes_at(order, *pair, back=back, **chosen) for pair in subject.data["pairs"])
        norms, gaps = zip(*pairs, strict=True)
        arrays |= {f"{name}/norms": np.array(norms), f"{name}/gaps": np.array(gaps)}
    return arrays


def exponent(norms: Array, pairs: tuple[tuple[float, float], ...]) -> tuple[float, tuple[float, float]]:
    """Return the exponent of the length that fits gradient norms [pair, batch left out], and its jackknife interval."""
    powers = np.polyfit(np.log([length for length, _ in pairs]), np.log(np.maximum(norms, MIN_NORM)), 1)[0]
    low, high = mean_interval(powers)  # of the mean of independent values: those with one batch left out vary less
    half = (len(powers) - 1) * (high - low) / 2
    return float(powers.mean()), (float(powers.mean() - half), float(powers.mean() + half))


def draw_slopes(axes: Array, name: str, data: Mapping[str, Array]) -> None:
    """Draw the gradient norm at each point against the sequence length."""
    lengths = [length for length, _ in data["pairs"]]
    for order, color in (("unigram", "C2"), ("bigram", "C3")):
        norms = np.array(data[order]["norms"])
        axes.plot(lengths, norms.mean(axis=1), "o-", color=color, label=f"{order} point")
        axes.fill_between(lengths, norms.min(axis=1), norms.max(axis=1), color=color, alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [f"{length}\n{sharp:g}" for length, sharp in data["pairs"]])
    axes.set(ylabel="norm of the gradient", yscale="log", title=name, xlabel="sequence length, sharpness of attention")
    axes.legend(fontsize=8)


def slopes_at(
    order: int, length: int, sharp: float, *, states: int, batch: int, back: int, first: int
) -> tuple[list[float], list[float]]:
    r"""Return gradient norms at the point of an order, each without one batch, and losses above counting by batch.

    With the gradients $g_b$ of $n$ independent batches, $(|\sum g_b|^2 - \sum |g_b|^2) / (n(n-1))$ has the mean
    $|\mathrm{E}\,g|^2$: sampling noise cancels.
    """
    point = point_of(order, length, sharp, states, back)
    losses, counted, slopes = (np.asarray(part) for part in _slopes(states, length, batch, first)(point))
    norms = []
    for left in range(BATCHES):
        others, n = np.delete(slopes, left, axis=0), BATCHES - 1
        norms.append(float(np.sqrt(max((others.sum(axis=0) ** 2).sum() - (others**2).sum(), 0.0) / (n * (n - 1)))))
    return norms, (losses - counted[:, order]).tolist()


def point_of(order: int, length: int, sharp: float, states: int, back: int = 1) -> Parameters:
    """Return the unigram point (uniform attention) or the bigram point (heads attend `back` tokens back)."""
    heads = len(LAGS)
    distances = np.zeros((heads, length), np.float32)
    compared = np.zeros((1, states * (1 + heads), states * heads), np.float32)
    if order:
        distances[:, back] = sharp
        compared[0, :states] = sharp * np.tile(np.eye(states), heads)
    return {DISTANCES: distances, TOKENS: compared}


@cache
def _slopes(states: int, length: int, batch: int, first: int) -> Callable[[Parameters], tuple[Array, Array, Array]]:
    """Return a function: loss, losses of unigram and bigram counts, and gradient by batch, at the last position."""
    sandbox = InContextMarkov(states=states, length=length + 1, order=len(LAGS))
    family = TwoAttentionsFamily(heads=len(LAGS), wide=True, relative=True, epsilon=MIN_PROBABILITY)
    net = family.architecture(sandbox)

    def last(row: Example) -> Example:
        """Return the last query only, with the distribution of its answer."""
        word = jnp.zeros(batch, jnp.int32)
        for lag in reversed(LAGS):
            word = word * states + row.tokens[:, -lag]
        soft = jnp.take_along_axis(row.latent["kernel"], word[:, None, None], axis=1)
        return row._replace(targets=row.targets[:, -1:], weight=row.weight[:, -1:], soft=soft)

    def one(theta: Parameters, number: Array) -> tuple[Array, Array, Array]:
        row = examples(sandbox, 0, "test", number * batch, batch)
        query = last(row)

        def loss(theta: Parameters) -> Array:
            # keeps the compiler from folding zeros
            barrier: Callable[[Parameters], Parameters] = jax.lax.optimization_barrier
            arrays = barrier(family.arrays(net, theta))
            return mean_loss(family.logits(net, sandbox, arrays, row)[:, -1:], query)

        value, slope = jax.value_and_grad(loss)(theta)
        known = [sandbox.predictors()[order_name(order)] for order in (0, 1)]
        counted = jnp.stack([mean_loss(jax.vmap(predictor)(row)[:, -1:], query) for predictor in known])
        return value, counted, jnp.concatenate([slope[DISTANCES].ravel(), _symmetric(slope[TOKENS], states).ravel()])

    return jax.jit(lambda theta: jax.lax.map(lambda n: one(theta, n), first + jnp.arange(BATCHES, dtype=jnp.uint32)))


def _symmetric(slope: Array, states: int) -> Array:
    """Return the mean over all permutations of the symbols, under which the expected gradient is invariant."""
    blocks = slope.reshape(-1, states, len(LAGS), states)
    same = jnp.eye(states)[:, None]
    equal = (blocks * same).sum(axis=(1, 3), keepdims=True) / states
    other = (blocks * (1 - same)).sum(axis=(1, 3), keepdims=True) / (states * (states - 1))
    return equal * same + other * (1 - same)
