r"""Probes of activations: where heads look, and what can be read off the residual stream by a linear map.

Each is made for `train(probes={…})` and called with a net, its arrays, a batch of sequences and the recorded
activations; on built nets it works alike. Heads are numbered through all layers, in order: `heads_of(net)` names them.

A score of a head is the weight that it puts on the keys it is supposed to look at, averaged over the queries that have
any; which keys these are is a `Target`. A head that spreads its weight evenly has the score `chance(target)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp

from vitrify.arrays import Array, Arrays, Attention, Bool, Float, Num
from vitrify.errors import InputError
from vitrify.learn.program import Probe
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Example

Keys: TypeAlias = Bool[Array, "batch query key"]  # over all positions of a net, pads included
Target = Callable[[Transformer, Example], Keys]


def heads_of(net: Transformer) -> tuple[str, ...]:
    """The names of all heads, in the order of their scores: `L0H0`, `L0H1`, …"""
    return tuple(f"L{turn}H{head}" for turn, (_, block) in enumerate(net.turns) for head in range(len(block.heads)))


def attention_on(target: Target) -> Probe:
    """Return a probe: the mean attention weight of each head on the target positions [head]."""

    def probe(net: Transformer, arrays: Arrays, batch: Example, seen: Arrays) -> Array:
        del arrays
        wanted = jnp.asarray(target(net, batch))
        return _mean(_patterns(net, seen), wanted, lambda pattern: (pattern * wanted[:, None]).sum(axis=-1))

    return probe


def entropy(net: Transformer, arrays: Arrays, batch: Example, seen: Arrays) -> Array:
    """Return the mean entropy of each head's weights, in nats, over the queries after the pads: [head]."""
    del arrays, batch
    patterns = _patterns(net, seen)[:, :, net.pads :]
    return -jax.scipy.special.xlogy(patterns, patterns).sum(axis=-1).mean(axis=(0, 2))


def between_symbols(net: Transformer, arrays: Arrays, batch: Example, seen: Arrays) -> Array:
    """Return the mean attention between positions by their symbols: [2, head, query symbol, key symbol].

    First the sum of the weights, times the number of places, so that a head which looks everywhere alike has 1 for
    every pair of places; then how many pairs there were. A place is not paired with itself.
    """
    del arrays
    patterns, symbols = _patterns(net, seen)[..., net.pads :, net.pads :], len(net.inputs) - 1
    count = patterns.shape[-1]
    one, apart = jax.nn.one_hot(batch.tokens, symbols), 1.0 - jnp.eye(count)
    every = jnp.broadcast_to(apart, patterns.shape)
    return jnp.stack([jnp.einsum("bqv,bhqk,bkw->hvw", one, each, one) for each in (patterns * apart * count, every)])


def value_at_sink(net: Transformer, arrays: Arrays, batch: Example, seen: Arrays) -> Array:
    """The norm of each head's value at the first place, over the mean norm of those at all later places: [head]."""
    del batch
    norms = []
    for turn, (index, block) in enumerate(net.turns):
        x, name = jnp.asarray(seen[f"blocks.{turn}.hook_resid_pre"]), f"blocks.{index}"
        if net.norm:
            x = seen[f"blocks.{turn}.ln1.hook_normalized"] * arrays[f"{name}.ln1.w"] + arrays[f"{name}.ln1.b"]
        if block.heads:
            v = jnp.einsum("bpd,hdv->bphv", x, arrays[f"{name}.attn.W_V"]) + arrays[f"{name}.attn.b_V"]
            size = jnp.linalg.norm(v, axis=-1)
            norms.append(size[:, 0].mean(axis=0) / size[:, 1:].mean(axis=(0, 1)))
    return jnp.concatenate(norms)


def chance(target: Target) -> Probe:
    """The score of a head that looks at all keys up to its own place alike: a number."""

    def probe(net: Transformer, arrays: Arrays, batch: Example, seen: Arrays) -> Array:
        del arrays, seen
        wanted = jnp.asarray(target(net, batch))
        even = jnp.tril(jnp.ones(wanted.shape[1:]))
        even = jnp.broadcast_to(even / even.sum(axis=-1, keepdims=True), wanted.shape)
        return _mean(even[:, None], wanted, lambda pattern: (pattern * wanted[:, None]).sum(axis=-1))[0]

    return probe


def _patterns(net: Transformer, seen: Arrays) -> Attention:
    """The weights of all heads: [batch, head, query, key]."""
    turns = enumerate(getattr(net, "turns", ()))  # other architectures have no attention
    names = [f"blocks.{turn}.attn.hook_pattern" for turn, (_, block) in turns if block.heads]
    if not names:
        raise InputError(f"attention is probed where there are heads: {net.name} has none")
    return jnp.concatenate([jnp.asarray(seen[name]) for name in names], axis=1)


def _mean(patterns: Attention, wanted: Keys, score: Callable[[Attention], Array]) -> Float[Array, " head"]:
    """The mean score of every head over the queries that have a target."""
    has_target = wanted.any(axis=-1)[:, None]
    return (score(patterns) * has_target).sum(axis=(0, 2)) / jnp.maximum(has_target.sum(), 1)


def back(lag: int) -> Target:
    """The token `lag` places before, for every token that has one."""

    def target(net: Transformer, batch: Example) -> Keys:
        count, length = batch.tokens.shape
        return _over_tokens(net, jnp.broadcast_to(jnp.eye(length, k=-lag, dtype=bool), (count, length, length)))

    return target


def previous_token(net: Transformer, batch: Example) -> Keys:
    """The token before, for every token but the first."""
    return back(1)(net, batch)


def matches(net: Transformer, batch: Example) -> Keys:
    """Return all earlier places with the present token."""
    tokens = batch.tokens
    earlier = jnp.tri(tokens.shape[1], k=-1, dtype=bool)
    return _over_tokens(net, (tokens[:, :, None] == tokens[:, None, :]) & earlier)


def induction(net: Transformer, batch: Example) -> Keys:
    """All places right after an earlier place with the present token."""
    tokens = batch.tokens
    before = jnp.pad(tokens, ((0, 0), (1, 0)), constant_values=-1)[:, :-1]
    return _over_tokens(net, (tokens[:, :, None] == before[:, None, :]) & jnp.tri(tokens.shape[1], dtype=bool))


def induction_of(wanted: Array) -> Target:
    """The same, where the present token is one of the `wanted` (booleans [token])."""

    def target(net: Transformer, batch: Example) -> Keys:
        return induction(net, batch) & jnp.pad(wanted[batch.tokens], ((0, 0), (net.pads, 0)))[:, :, None]

    return target


def sink(net: Transformer, batch: Example) -> Keys:
    """The beginning: the pads, or where there are none the first token; for every later place."""
    length, first = batch.tokens.shape[1] + net.pads, max(net.pads, 1)
    places = jnp.arange(length)
    return jnp.broadcast_to((places[:, None] >= first) & (places < first), (len(batch.tokens), length, length))


def parents(net: Transformer, batch: Example) -> Keys:
    """Return the parents of every token: `batch.latent["parents"]`, [token] or [token, parent], -1 for none.

    The graph may be of the first so many tokens.
    """
    known = batch.latent["parents"]
    known = known if known.ndim == 3 else known[..., None]
    count = batch.tokens.shape[1]
    edges = (known[..., None] == jnp.arange(count)).any(axis=2)  # [batch, token, key]
    return _over_tokens(net, jnp.pad(edges, ((0, 0), (0, count - edges.shape[1]), (0, 0))))


def _over_tokens(net: Transformer, mask: Array) -> Keys:
    """A mask over tokens as one over the net's positions."""
    return jnp.pad(mask, ((0, 0), (net.pads, 0), (net.pads, 0)))


def decodes(latent: Callable[[Example], Array] | str, classes: int | None = None, *, ridge: float = 1e-3) -> Probe:
    r"""Return a linear probe of a latent variable in the residual stream, at each of `net.moments`: [moment].

    What is read is `batch.latent[latent]` or a function of sequences: one of `classes` values per sequence [batch], per
    token [batch, n] or per question [batch, n + 1]; without classes real numbers, with their components along one axis
    more. That of a sequence is read at the last place, that of a question at the place before its answer. The map $W =
    (X^\top X + \text{ridge}\,N\sigma^2 I)^{-1} X^\top Y$ is fitted to the $N$ centered activations $X$ of every second
    sequence, with the mean variance $\sigma^2$, and judged on the other sequences: by its accuracy where there are
    classes, else by the explained part of the variance, $R^2$. (A class whose mean lies between those of others may be
    read badly: this is least squares.)
    """

    def probe(net: Transformer, arrays: Arrays, batch: Example, seen: Arrays) -> Array:
        del arrays
        value = jnp.asarray(batch.latent[latent] if isinstance(latent, str) else latent(batch))
        wanted = value if classes is None else jax.nn.one_hot(value, classes)
        start, wanted = _placed(net, batch.tokens.shape[1], wanted)
        moments = [jnp.asarray(seen[name])[:, start : start + wanted.shape[1]] for name in net.moments]
        if len({moment.shape for moment in moments}) == 1:
            return jax.vmap(lambda x: _held_out(x, wanted, ridge, classes))(jnp.stack(moments))
        return jnp.stack([_held_out(x, wanted, ridge, classes) for x in moments])

    return probe


def _placed(net: Transformer, tokens: int, wanted: Array) -> tuple[int, Array]:
    """The first of the net's positions at which something is read, and what: [batch, place, component]."""
    if wanted.ndim == 2:
        return net.pads + tokens - 1, wanted[:, None]
    if wanted.ndim == 3 and wanted.shape[1] == tokens:
        return net.pads, wanted
    if wanted.ndim == 3 and wanted.shape[1] == tokens + 1 and net.pads:
        return net.pads - 1, wanted
    raise InputError(
        f"the probed value is per sequence, per token ({tokens}) or, with pads, per target; real ones have an axis of "
        f"components; this has the axes {wanted.shape}"
    )


def _held_out(
    x: Float[Array, "batch pos model"], wanted: Num[Array, "batch pos component"], ridge: float, classes: int | None
) -> Float[Array, ""]:
    """The quality, on sequences of odd number, of the linear map that fits those of even number best."""
    fit, test = ((x[at::2].reshape(-1, x.shape[-1]), wanted[at::2].reshape(-1, wanted.shape[-1])) for at in (0, 1))
    center, mean = fit[0].mean(axis=0), fit[1].mean(axis=0)
    known, goal = fit[0] - center, fit[1] - mean
    square = known.T @ known
    shrink = ridge * jnp.trace(square) / len(square) + 1e-12
    weights = jnp.linalg.solve(square + shrink * jnp.eye(len(square)), known.T @ goal)
    predicted = (test[0] - center) @ weights + mean
    if classes is not None:
        return (predicted.argmax(axis=-1) == test[1].argmax(axis=-1)).mean()
    return 1 - ((predicted - test[1]) ** 2).sum() / ((test[1] - mean) ** 2).sum()
