r"""Probes of activations: where heads look, and what can be read off the residual stream by a linear map.

Each is made for `train(probes={…})` and called with a net, its arrays, a batch of rows and the recorded activations;
on built nets it works alike. Heads are numbered through all layers, in order: `heads_of(net)` names them.

A score of a head is the weight that it puts on the keys it is supposed to look at, averaged over the queries that have
any; which keys these are is a `Target`. A head that spreads its weight evenly has the score `chance(target)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.program import Probe
from vitrify.sandboxes.catalogue import Row

Target = Callable[[Any, Row], Array]  # net, rows -> bool [batch, query, key], over the net's positions, pads included


def heads_of(net: Any) -> tuple[str, ...]:
    """The names of all heads, in the order of their scores: `L0H0`, `L0H1`, …"""
    return tuple(f"L{turn}H{head}" for turn, (_, block) in enumerate(net.turns) for head in range(len(block.heads)))


def moments_of(net: Any) -> tuple[str, ...]:
    """The names of the residual stream after embedding and after each half layer, in the order of linear probes."""
    found: tuple[str, ...] = net.moments
    return found


def attention_on(target: Target) -> Probe:
    """How much of its weight each head puts on the target: [head]."""

    def probe(net: Any, arrays: Any, row: Row, seen: Any) -> Array:
        del arrays
        wanted = jnp.asarray(target(net, row))
        return _mean(_patterns(net, seen), wanted, lambda pattern: (pattern * wanted[:, None]).sum(axis=-1))

    return probe


def argmax_on(target: Target) -> Probe:
    """In which part of the queries the key that each head looks at most is in the target: [head]."""

    def probe(net: Any, arrays: Any, row: Row, seen: Any) -> Array:
        del arrays
        wanted = jnp.asarray(target(net, row))

        def hit(pattern: Array) -> Array:
            best = pattern.argmax(axis=-1)[..., None]
            return jnp.take_along_axis(jnp.broadcast_to(wanted[:, None], pattern.shape), best, axis=-1)[..., 0]

        return _mean(_patterns(net, seen), wanted, hit)

    return probe


def between_symbols(net: Any, arrays: Any, row: Row, seen: Any) -> Array:
    """What places with one symbol get of places with another, through all heads: [2, head, query symbol, key symbol].

    First the sum of the weights, times the number of places, so that a head which looks everywhere alike has 1 for
    every pair of places; then how many pairs there were. A place is not paired with itself.
    """
    del arrays
    patterns, symbols = _patterns(net, seen)[..., net.pads :, net.pads :], len(net.inputs) - 1
    count = patterns.shape[-1]
    one, apart = jax.nn.one_hot(row.tokens, symbols), 1.0 - jnp.eye(count)
    every = jnp.broadcast_to(apart, patterns.shape)
    return jnp.stack([jnp.einsum("bqv,bhqk,bkw->hvw", one, each, one) for each in (patterns * apart * count, every)])


def value_at_sink(net: Any, arrays: Any, row: Row, seen: Any) -> Array:
    """The norm of each head's value at the first place, over the mean norm of those at all later places: [head]."""
    del row
    found = []
    for turn, (index, block) in enumerate(net.turns):
        x, name = jnp.asarray(seen[f"blocks.{turn}.hook_resid_pre"]), f"blocks.{index}"
        if net.norm:
            x = seen[f"blocks.{turn}.ln1.hook_normalized"] * arrays[f"{name}.ln1.w"] + arrays[f"{name}.ln1.b"]
        if block.heads:
            v = jnp.einsum("bpd,hdv->bphv", x, arrays[f"{name}.attn.W_V"]) + arrays[f"{name}.attn.b_V"]
            size = jnp.linalg.norm(v, axis=-1)
            found.append(size[:, 0].mean(axis=0) / size[:, 1:].mean(axis=(0, 1)))
    return jnp.concatenate(found)


def chance(target: Target) -> Probe:
    """The score of a head that looks at all keys up to its own place alike: a number."""

    def probe(net: Any, arrays: Any, row: Row, seen: Any) -> Array:
        del arrays, seen
        wanted = jnp.asarray(target(net, row))
        even = jnp.tril(jnp.ones(wanted.shape[1:]))
        even = jnp.broadcast_to(even / even.sum(axis=-1, keepdims=True), wanted.shape)
        return _mean(even[:, None], wanted, lambda pattern: (pattern * wanted[:, None]).sum(axis=-1))[0]

    return probe


def _patterns(net: Any, seen: Any) -> Array:
    """The weights of all heads: [batch, head, query, key]."""
    names = [f"blocks.{turn}.attn.hook_pattern" for turn, (_, block) in enumerate(net.turns) if block.heads]
    if not names:
        raise InputError(f"attention is probed where there are heads: {net.name} has none")
    return jnp.concatenate([jnp.asarray(seen[name]) for name in names], axis=1)


def _mean(patterns: Array, wanted: Array, score: Callable[[Array], Array]) -> Array:
    """The mean score of every head over the queries that have a target."""
    asked = wanted.any(axis=-1)[:, None]
    return (score(patterns) * asked).sum(axis=(0, 2)) / jnp.maximum(asked.sum(), 1)


def back(lag: int) -> Target:
    """The token `lag` places before, for every token that has one."""

    def target(net: Any, row: Row) -> Array:
        count, length = row.tokens.shape
        return _over_tokens(net, jnp.broadcast_to(jnp.eye(length, k=-lag, dtype=bool), (count, length, length)))

    return target


def previous_token(net: Any, row: Row) -> Array:
    """The token before, for every token but the first."""
    return back(1)(net, row)


def induction(net: Any, row: Row) -> Array:
    """All places right after an earlier place with the present token."""
    tokens = row.tokens
    before = jnp.pad(tokens, ((0, 0), (1, 0)), constant_values=-1)[:, :-1]
    return _over_tokens(net, (tokens[:, :, None] == before[:, None, :]) & jnp.tri(tokens.shape[1], dtype=bool))


def sink(net: Any, row: Row) -> Array:
    """The beginning: the pads, or where there are none the first token; for every later place."""
    length, first = row.tokens.shape[1] + net.pads, max(net.pads, 1)
    places = jnp.arange(length)
    return jnp.broadcast_to((places[:, None] >= first) & (places < first), (len(row.tokens), length, length))


def parents(net: Any, row: Row) -> Array:
    """The parents of every token in the row's graph: `row.latent["parents"]`, [token] or [token, parent], -1 for none.

    The graph may be of the first so many tokens.
    """
    known = row.latent["parents"]
    known = known if known.ndim == 3 else known[..., None]
    count = row.tokens.shape[1]
    edges = (known[..., None] == jnp.arange(count)).any(axis=2)  # [batch, token, key]
    return _over_tokens(net, jnp.pad(edges, ((0, 0), (0, count - edges.shape[1]), (0, 0))))


def _over_tokens(net: Any, mask: Array) -> Array:
    """A mask over tokens as one over the net's positions."""
    return jnp.pad(mask, ((0, 0), (net.pads, 0), (net.pads, 0)))


def decodes(latent: Callable[[Row], Array] | str, classes: int | None = None, *, ridge: float = 1e-3) -> Probe:
    r"""How well a linear map reads something hidden off the residual stream, at each moment of the net: [moment].

    What is read is `row.latent[latent]` or a function of rows: one of `classes` values per row [batch], per token
    [batch, n] or per question [batch, n + 1]; without classes real numbers, with their components along one axis more.
    That of a row is read at the last place, that of a question at the place before its answer. The map
    $W = (X^\top X + \text{ridge}\,N\sigma^2 I)^{-1} X^\top Y$ is fitted to the $N$ centred activations $X$ of every
    second row, with the mean variance $\sigma^2$, and judged on the other rows: by its accuracy where there are
    classes, else by the explained part of the variance, $R^2$. (A class whose mean lies between those of others may be
    read badly: this is least squares.)
    """

    def probe(net: Any, arrays: Any, row: Row, seen: Any) -> Array:
        del arrays
        value = jnp.asarray(row.latent[latent] if isinstance(latent, str) else latent(row))
        wanted = value if classes is None else jax.nn.one_hot(value, classes)
        start, wanted = _placed(net, row.tokens.shape[1], wanted)
        moments = [jnp.asarray(seen[name])[:, start : start + wanted.shape[1]] for name in net.moments]
        if len({moment.shape for moment in moments}) == 1:
            return jax.vmap(lambda x: _held_out(x, wanted, ridge, classes))(jnp.stack(moments))
        return jnp.stack([_held_out(x, wanted, ridge, classes) for x in moments])

    return probe


def _placed(net: Any, tokens: int, wanted: Array) -> tuple[int, Array]:
    """The first of the net's positions at which something is read, and what: [batch, place, component]."""
    if wanted.ndim == 2:
        return net.pads + tokens - 1, wanted[:, None]
    if wanted.ndim == 3 and wanted.shape[1] == tokens:
        return net.pads, wanted
    if wanted.ndim == 3 and wanted.shape[1] == tokens + 1 and net.pads:
        return net.pads - 1, wanted
    raise InputError(
        f"a probe reads a value per row, per token ({tokens}) or, with pads, per question; real ones have an axis of "
        f"components; this has the axes {wanted.shape}"
    )


def _held_out(x: Array, wanted: Array, ridge: float, classes: int | None) -> Array:
    """The quality, on rows of odd number, of the linear map that fits those of even number best."""
    fit, test = ((x[at::2].reshape(-1, x.shape[-1]), wanted[at::2].reshape(-1, wanted.shape[-1])) for at in (0, 1))
    centre, mean = fit[0].mean(axis=0), fit[1].mean(axis=0)
    known, goal = fit[0] - centre, fit[1] - mean
    square = known.T @ known
    shrink = ridge * jnp.trace(square) / len(square) + 1e-12
    weights = jnp.linalg.solve(square + shrink * jnp.eye(len(square)), known.T @ goal)
    said = (test[0] - centre) @ weights + mean
    if classes is not None:
        return (said.argmax(axis=-1) == test[1].argmax(axis=-1)).mean()
    return 1 - ((said - test[1]) ** 2).sum() / ((test[1] - mean) ** 2).sum()
