r"""Softmax attention over short sequences as GPU kernels that keep the matrix of scores on the chip.

One kernel computes the output and one the gradients; each of their instances takes one head of one sequence. Queries
and keys are cut into tiles of equal length; only tiles in which the mask allows some pair are computed, and only those
in which it forbids some pair are masked. With scores $s_{ij} = q_i \cdot k_j + r_{ij}$ ($r$: biases of scores, if any;
the queries are scaled already):

$$\ell_i = \log_2 \sum_j 2^{s_{ij} / \ln 2}, \quad p_{ij} = 2^{s_{ij} / \ln 2 - \ell_i}, \quad o_i = \sum_j p_{ij} v_j$$

Backward, $p$ is computed again from $s$ and $\ell$. With $\delta_i = o_i \cdot \mathrm{d}o_i$ and
$\mathrm{d}s = p \odot (\mathrm{d}o\, v^\top - \delta)$: $\mathrm{d}v = p^\top \mathrm{d}o$,
$\mathrm{d}q = \mathrm{d}s\, k$, $\mathrm{d}k = \mathrm{d}s^\top q$. The biases of queries, keys and values are added as
these are read, and their gradients summed as those are written; as separate passes over memory they would add about
half of the attention's own time. The gradient of $r$ is a third kernel: each instance sums one tile of one head over
the sequences of the batch, in their order, so that results do not depend on timing. After FlashAttention-2 (Dao 2023,
arXiv 2307.08691), without its running maximum: the scores of a query are all there at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from vitrify.arrays import Array, Float
from vitrify.net.attention import allowed_keys
from vitrify.net.kernels.tiles import Axes, KernelOutput, Span, load, product, run, store, width
from vitrify.net.transformer import Head

Heads: TypeAlias = Float[Array, "batch pos head d"]

MAX_TILE = 64  # positions
MAX_HELD = 128  # (number of tiles) × (width of a head) up to which tiles are read once, and not for every pair
WARPS = 4  # of 32 threads, for an instance of a kernel
BITS_PER_NAT = 1.4426950408889634  # 1 / ln 2
FORBIDDEN = -1e30  # a score that is forbidden: finite, so that no difference of two is undefined


class Inputs(NamedTuple):
    """Queries, keys and values, in this order, before their biases are added; and the biases of scores, if any."""

    qkv: Float[Array, "batch pos 3 head d"]
    shifts: Float[Array, "3 head d"]
    relative: Float[Array, "head query key"] | None = None


@dataclass(frozen=True)
class Tiling:
    """Heads of one kind and the sequence length, and how their scores are cut into tiles."""

    head: Head
    length: int
    interpret: bool = False

    @property
    def size(self) -> int:
        return min(MAX_TILE, width(self.length))

    @property
    def count(self) -> int:
        return -(-self.length // self.size)

    def span(self, tile: Array | int) -> Span:
        return Span(tile * self.size, self.size, self.length)

    def share(self, query: int, key: int) -> str:
        """Which pairs of a tile may attend: `none`, `some` or `all` of them."""
        least = (query - key) * self.size - (self.size - 1)
        most = (query - key) * self.size + (self.size - 1)
        low, high = -self.length, self.length
        if self.head.mask == "after":
            high = -1
        elif self.head.mask != "none":
            low = 1 if self.head.mask == "strict" else 0
        if self.head.window is not None:
            low, high = max(low, 0), min(high, self.head.window - 1)
        if most < low or least > high:
            return "none"
        whole = (max(query, key) + 1) * self.size <= self.length
        return "all" if low <= least and most <= high and whole else "some"

    def pairs(self) -> list[tuple[int, int]]:
        """The tiles (query, key) that are computed."""
        every = [(query, key) for query in range(self.count) for key in range(self.count)]
        return [pair for pair in every if self.share(*pair) != "none"]

    def allowed(self, query: Array | int, key: Array | int) -> Array:
        """The pairs of a tile that may attend."""
        queries, keys = self.span(query).entries, self.span(key).entries
        inside = (queries < self.length)[:, None] & (keys < self.length)[None, :]
        return allowed_keys(self.head, queries, keys) & inside

    def masked(self, scores: Array, query: int, key: int) -> Array:
        """The scores of a tile with those of forbidden pairs replaced."""
        if self.share(query, key) == "all":
            return scores
        return jnp.where(self.allowed(query, key), scores, FORBIDDEN)

    @property
    def rows(self) -> int:
        """Positions of all tiles together."""
        return self.count * self.size

    def once(self, read: Callable[[int], Array], features: Span) -> Callable[[int], Array]:
        """The same reader of a tile; where all tiles of a head fit on the chip, it reads each of them once."""
        if self.count * features.size > MAX_HELD:
            return read
        held = [read(tile) for tile in range(self.count)]
        return held.__getitem__

    def inputs(self, inputs: Inputs, batch: str | int = "batch") -> list[tuple[Array, Axes]]:
        """The inputs of a kernel, and how the instances share them."""
        d = width(inputs.qkv.shape[-1])
        shared: list[tuple[Array, Axes]] = [
            (inputs.qkv, (batch, self.rows, 3, "head", d)),
            (inputs.shifts, (3, "head", d)),
        ]
        return shared if inputs.relative is None else [*shared, (inputs.relative, ("head", self.rows, self.rows))]

    def results(self, mixed: Heads, log: Array, d_mixed: Heads, batch: str | int = "batch") -> list[tuple[Array, Axes]]:
        """What a kernel of the backward pass reads besides the inputs, and how the instances share it."""
        vectors: Axes = (batch, self.rows, "head", width(mixed.shape[-1]))
        return [(mixed, vectors), (log, (batch, "head", self.rows)), (d_mixed, vectors)]


class Reader(NamedTuple):
    """The inputs of a kernel as an instance sees them: of one head, and of one sequence or of all."""

    tiling: Tiling
    features: Span  # the numbers of a vector
    qkv: Array
    shifts: Array
    relative: Array = None

    def vectors(self, which: int, tile: Array | int, *row: Array) -> Array:
        """Queries, keys or values (0, 1, 2) of a tile.

        Queries are divided by ln 2, so that the exponential of a score is a power of two.
        """
        raw = load(self.qkv, *row, self.tiling.span(tile), which, self.features)
        shifted = raw.astype(jnp.float32) + load(self.shifts, which, self.features).astype(jnp.float32)[None, :]
        return (shifted * BITS_PER_NAT if which == 0 else shifted).astype(raw.dtype)

    def scores(self, queries: Array, keys: Array, query: Array | int, key: Array | int) -> Array:
        """The scores of a tile divided by ln 2, without a mask."""
        scores = product(queries, keys, 1, 1)
        if self.relative is None:
            return scores
        relative = load(self.relative, self.tiling.span(query), self.tiling.span(key))
        return scores + relative.astype(jnp.float32) * BITS_PER_NAT


def _reader(tiling: Tiling, inputs: Inputs, refs: tuple[Array, ...]) -> tuple[Reader, tuple[Array, ...]]:
    """The inputs of a kernel, and the rest of its arguments."""
    count = 2 if inputs.relative is None else 3
    return Reader(tiling, _features(inputs), *refs[:count]), refs[count:]


def _features(inputs: Inputs) -> Span:
    return Span(0, width(inputs.qkv.shape[-1]), inputs.qkv.shape[-1])


def attend(inputs: Inputs, tiling: Tiling) -> Heads:
    """Return the output of softmax heads of one kind: one mask, one window."""
    return _attend(inputs, tiling)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _attend(inputs: Inputs, tiling: Tiling) -> Heads:
    return _forward(inputs, tiling)[0]


def _forward(inputs: Inputs, tiling: Tiling) -> tuple[Heads, tuple[Inputs, Array, Array]]:
    features = _features(inputs)

    def attention_forward(*refs: Array) -> None:
        read, (mixed_ref, log_ref) = _reader(tiling, inputs, refs)
        keys, values = (tiling.once(partial(read.vectors, which), features) for which in (1, 2))
        for query in range(tiling.count):
            queries, scores = read.vectors(0, query), {}
            for key in [key for at, key in tiling.pairs() if at == query]:
                scores[key] = tiling.masked(read.scores(queries, keys(key), query, key), query, key)
            best = jnp.full((tiling.size,), FORBIDDEN / 2, jnp.float32)  # so that no forbidden pair gets a weight
            for part in scores.values():
                best = jnp.maximum(best, part.max(axis=1))
            total = jnp.zeros((tiling.size,), jnp.float32)
            mixed = jnp.zeros((tiling.size, features.size), jnp.float32)
            for key, part in scores.items():
                weights = jnp.exp2(part - best[:, None])
                total += weights.sum(axis=1)
                mixed += product(weights.astype(mixed_ref.dtype), values(key), 1, 0)
            some = total > 0  # a query without any key gets the zero vector
            store(mixed_ref, mixed / jnp.where(some, total, 1.0)[:, None], tiling.span(query), features)
            log = jnp.where(some, best + jnp.log2(jnp.where(some, total, 1.0)), -FORBIDDEN)
            store(log_ref, log, tiling.span(query))

    batch, length, _, heads, d = inputs.qkv.shape
    outputs = [
        KernelOutput((batch, length, heads, d), inputs.qkv.dtype, ("batch", tiling.rows, "head", features.size)),
        KernelOutput((batch, heads, length), jnp.float32, ("batch", "head", tiling.rows)),
    ]
    grid = {"batch": batch, "head": heads}
    mixed, log = run(attention_forward, grid, tiling.inputs(inputs), outputs, WARPS, tiling.interpret)
    return mixed, (inputs, mixed, log)


def _backward(tiling: Tiling, saved: tuple[Inputs, Array, Array], d_mixed: Heads) -> tuple[Inputs]:
    inputs, mixed, log = saved
    features = _features(inputs)

    def attention_backward(*refs: Array) -> None:
        read, (mixed_ref, log_ref, d_ref, d_qkv, d_shifts) = _reader(tiling, inputs, refs)
        queries = tiling.once(partial(read.vectors, 0), features)
        d_out = tiling.once(lambda tile: load(d_ref, tiling.span(tile), features), features)
        zero = jnp.zeros((tiling.size, features.size), jnp.float32)
        dq, sums, deltas, logs = [zero] * tiling.count, [zero] * 3, [], []
        for query in range(tiling.count):
            mixed = load(mixed_ref, tiling.span(query), features).astype(jnp.float32)
            deltas.append((d_out(query).astype(jnp.float32) * mixed).sum(axis=1))
            logs.append(load(log_ref, tiling.span(query)))
        for key in range(tiling.count):
            keys, values, dk, dv = read.vectors(1, key), read.vectors(2, key), zero, zero
            for query in [query for query, at in tiling.pairs() if at == key]:
                scores = read.scores(queries(query), keys, query, key) - logs[query][:, None]
                weights = jnp.exp2(tiling.masked(scores, query, key))
                dv += product(weights.astype(keys.dtype), d_out(query), 0, 0)
                ds = (weights * (product(d_out(query), values, 1, 1) - deltas[query][:, None])).astype(keys.dtype)
                dk += product(ds, queries(query), 0, 0)
                dq[query] += product(ds, keys, 1, 0)
            dk = dk * (1 / BITS_PER_NAT)
            store(d_qkv, dk, tiling.span(key), 1, features)
            store(d_qkv, dv, tiling.span(key), 2, features)
            sums = [sums[0], sums[1] + dk, sums[2] + dv]
        for query in range(tiling.count):
            store(d_qkv, dq[query], tiling.span(query), 0, features)
            sums[0] += dq[query]
        for which, total in enumerate(sums):
            store(d_shifts, total.sum(axis=0), which, features)

    batch, _, _, heads, d = inputs.qkv.shape
    outputs = [
        KernelOutput(inputs.qkv.shape, inputs.qkv.dtype, tiling.inputs(inputs)[0][1]),
        KernelOutput((batch, 3, heads, d), jnp.float32, ("batch", 3, "head", features.size)),
    ]
    arrays = [*tiling.inputs(inputs), *tiling.results(mixed, log, d_mixed)]
    d_qkv, sums = run(attention_backward, {"batch": batch, "head": heads}, arrays, outputs, WARPS, tiling.interpret)
    relative = None if inputs.relative is None else _relative_gradient(tiling, inputs, mixed, log, d_mixed)
    return (Inputs(d_qkv, sums.sum(axis=0).astype(inputs.shifts.dtype), relative),)


def _relative_gradient(tiling: Tiling, inputs: Inputs, mixed: Heads, log: Array, d_mixed: Heads) -> Array:
    """Return the gradient of the biases of scores: an instance for each head and tile goes through the batch."""
    batch, length, _, heads, _ = inputs.qkv.shape
    features, dtype = _features(inputs), inputs.qkv.dtype if inputs.relative is None else inputs.relative.dtype

    def attention_bias_gradient(*refs: Array) -> None:
        read, (mixed_ref, log_ref, d_ref, to) = _reader(tiling, inputs, refs)
        query, key = pl.program_id(1), pl.program_id(2)
        at, allowed = tiling.span(query), tiling.allowed(query, key)

        def add(row: Array, total: Array) -> Array:
            d_out = load(d_ref, row, at, features)
            delta = (d_out.astype(jnp.float32) * load(mixed_ref, row, at, features).astype(jnp.float32)).sum(axis=1)
            scores = read.scores(read.vectors(0, query, row), read.vectors(1, key, row), query, key)
            weights = jnp.exp2(jnp.where(allowed, scores - load(log_ref, row, at)[:, None], FORBIDDEN))
            return total + weights * (product(d_out, read.vectors(2, key, row), 1, 1) - delta[:, None])

        total = jax.lax.fori_loop(0, batch, add, jnp.zeros((tiling.size, tiling.size), jnp.float32))
        store(to, total, at, tiling.span(key))

    grid = {"head": heads, "query": tiling.count, "key": tiling.count}
    outputs = [KernelOutput((heads, length, length), dtype, ("head", tiling.rows, tiling.rows))]
    arrays = [*tiling.inputs(inputs, batch), *tiling.results(mixed, log, d_mixed, batch)]
    return run(attention_bias_gradient, grid, arrays, outputs, WARPS, tiling.interpret)[0]


_attend.defvjp(_forward, _backward)
