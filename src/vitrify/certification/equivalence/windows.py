r"""Lemma "windows": an in-context estimate by one head, whose queries and keys depend on the last few tokens alone.

Head 1 has weights that depend on distances only, and sees the last $w$ tokens; no position is read. So the stream
before the last head is a function of a *window* of $w$ tokens: letters, behind BOS where the word begins. All windows
are enumerated. The stored arrays are evaluated on each, with a bound on the distance of every number from its exact
value, for any order of summation; twice that bounds the distance between two runs. No number is idealized: the proof is
`exact`.

Let $c$ be the context of a query: its last $k$ symbols. A key *matches* if its $k$ symbols before the last one are $c$,
and all are letters. A window with BOS stands at one position of the word, so that it sees no window with more letters.
For every query and the keys that it can see (instances: all pairs):

- BOS scores at least $g$ more than all letters that do not match, and $g$ less than all that do.
- Two matches differ by at most $\eta$, for one and the same query.

What a key adds to the output is the unit vector of its letter, $1/S$ everywhere for BOS; nothing else is added. Of at
most $n$ keys, those that should have no weight have at most $n e^{-g}$ together, and the weights of $m$ matches differ
from $1/m$ by at most $e^\eta - 1$ together. The sum of all errors must be at most the tolerance of the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import exp, expm1

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.margins.values import Undecided
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.net.attention import softmax
from vitrify.net.sparse import dense
from vitrify.net.transformer import Groups, Transformer
from vitrify.net.weights import has_architecture
from vitrify.spec.tasks.estimate import Estimate

MAX_WINDOWS = 1 << 14  # whose scores are compared in pairs
QUERIES_AT_ONCE = 1 << 8
ROUNDING = 1.01 * UNIT_ROUNDOFF  # relative, of one operation; the hundredth is for products of roundings
UNDERFLOW = 1e-300  # more than any weight that is too small for a number


@dataclass(frozen=True)
class Enclosed:
    """Numbers, and bounds on their distances from the exact ones."""

    value: Floats
    error: Floats

    def __add__(self, other: Enclosed) -> Enclosed:
        value = self.value + other.value
        return Enclosed(value, self.error + other.error + ROUNDING * np.abs(value))

    def mapped(self, matrix: Floats, bias: Floats) -> Enclosed:
        """Return these numbers times a matrix, plus a bias."""
        size = (np.abs(self.value) + self.error) @ np.abs(matrix) + np.abs(bias)
        error = self.error @ np.abs(matrix) + ((matrix != 0).sum(axis=0) + 4) * ROUNDING * size
        return Enclosed(self.value @ matrix + bias, error)

    def normalized(self, eps: float) -> Enclosed:
        r"""Return these numbers less their mean, divided by their root mean square $r$.

        With errors $e$ of the differences, $r$ is off by at most the root mean square of $e$.
        """
        n = self.value.shape[1]
        centered = self.value - self.value.mean(axis=1, keepdims=True)
        size = np.abs(self.value) + np.abs(self.value).mean(axis=1, keepdims=True)
        off = self.error + self.error.mean(axis=1, keepdims=True) + (n + 4) * ROUNDING * size
        root = np.sqrt((centered**2).mean(axis=1, keepdims=True) + eps)
        root_off = np.sqrt((off**2).mean(axis=1, keepdims=True)) + (n + 6) * ROUNDING * root
        if not (root > 2 * root_off).all():
            raise Undecided("a norm divides by a number that rounding may have made")
        unit = centered / root
        error = (off + np.abs(unit) * root_off) / (root - root_off) + 4 * UNIT_ROUNDOFF * np.abs(unit)
        return Enclosed(unit, error)

    def take(self, rows: slice) -> Enclosed:
        """Return some rows."""
        return Enclosed(self.value[rows], self.error[rows])


@lemma(Estimate)
def windows(case: SpecCase) -> SpecProof:
    """Prove that a network computes the frequencies of the symbols that followed a context, from all its windows."""
    net = case.net
    if not has_architecture(case.weights, Transformer) or net.heads_per_layer != (1, 1) or net.units_per_layer[1]:
        raise Undecided("windows are followed through two layers of one head, with units in the first")
    if net.only_learned or any(block.experts or block.cell for block in net.blocks):  # type: ignore[attr-defined]
        raise Undecided("windows are not followed through experts, recurrences, and heads for trained nets only")
    tokens = _windows(case)
    stream = _after_units(case, tokens)
    reads = _read_by_last(case, stream)
    level, spread = _scores(case, tokens, *_heads(case, reads))
    leak = 2 * (net.pads + net.max_length) * exp(-level)
    error = leak + expm1(spread) + _distance_from_means(case, tokens, stream, reads)
    if not error <= case.oracle.tolerance():
        raise Undecided(f"an error of {error:.3g} is all that is proved, {case.oracle.tolerance():.3g} is allowed")
    return SpecProof("windows", net.max_length, {"windows": len(tokens), "scores": len(tokens) ** 2}, exact=True)


def _windows(case: SpecCase) -> Ints:
    """Return all windows [window, distance] as token ids, 0 for BOS; the first is that of BOS itself."""
    net, arrays = case.net, case.weights.arrays
    first, last = (block.heads[0] for block in net.blocks)  # type: ignore[attr-defined]  # of a transformer
    by_content = any(np.any(dense(arrays[f"blocks.0.attn.{name}"])) for name in ("W_Q", "b_Q"))
    if first.window is None or first.attention != "softmax" or first.mask != "causal" or by_content:
        raise Undecided("head 1 is no softmax whose weights depend on distances alone")
    if last.window is not None or last.attention != "softmax" or last.mask != "causal":
        raise Undecided("the last head is no softmax over all earlier positions")
    if np.any(dense(arrays["pos_embed.W_pos"])):
        raise Undecided("positions are read")
    if net.pads < first.window or first.window <= case.spec.order:
        raise Undecided("a window is not full, or does not reach the whole context")
    size = case.spec.symbols
    if sum(size**letters for letters in range(first.window + 1)) > MAX_WINDOWS:
        raise Undecided(f"windows of {first.window} tokens out of {size} are too many to compare")
    rows = [
        (*word, *[0] * (first.window - letters))
        for letters in range(first.window + 1)
        for word in product(range(1, size + 1), repeat=letters)
    ]
    return np.array(rows, dtype=np.int64)


def _array(case: SpecCase, name: str) -> Floats:
    array = np.asarray(dense(case.weights.arrays[name]))
    return array[0] if ".attn." in name else array


def _written(case: SpecCase, block: int, reads: Enclosed) -> tuple[Enclosed, Floats]:
    """Return what a head writes for each key, from what it reads there, and the sizes that rounding is relative to."""
    value = reads.mapped(*(_array(case, f"blocks.{block}.attn.{name}") for name in ("W_V", "b_V")))
    out = _array(case, f"blocks.{block}.attn.W_O")
    return value.mapped(out, np.zeros(out.shape[1])), (np.abs(value.value) + value.error) @ np.abs(out)


def _after_units(case: SpecCase, tokens: Ints) -> Enclosed:
    """Return the stream [window, dim] before the last head."""
    net = case.net
    if any(net.normed(half) for half in (0, 1, 4)) or net.residual != "add":  # type: ignore[attr-defined]
        raise Undecided("a norm comes before the first head, the units or the output, or the stream is not a sum")
    embed = _array(case, "embed.W_E")
    relative = _array(case, "blocks.0.attn.b_rel")[: tokens.shape[1]]
    weights = softmax(relative[None].copy(), np.ones((1, len(relative)), dtype=bool))[0]
    there = weights > 0
    roundings = len(weights) + 16 + float(np.abs(relative[there]).max())
    off = roundings * ROUNDING * weights + UNDERFLOW
    written, sizes = _written(case, 0, Enclosed(embed, np.zeros_like(embed)))
    mixed = np.einsum("j,wjd->wd", weights, written.value[tokens])  # [window, distance, dim]
    error = np.einsum("j,wjd->wd", off + (len(weights) + 4) * ROUNDING * weights, sizes[tokens])
    error += np.einsum("j,wjd->wd", weights, written.error[tokens])
    x = Enclosed(embed[tokens[:, 0]], np.zeros_like(mixed)) + Enclosed(mixed, error)
    pre = x.mapped(_array(case, "blocks.0.mlp.W_in"), _array(case, "blocks.0.mlp.b_in"))
    post = Enclosed(np.maximum(pre.value, 0.0), pre.error)
    return x + post.mapped(_array(case, "blocks.0.mlp.W_out"), _array(case, "blocks.0.mlp.b_out"))


def _heads(case: SpecCase, stream: Enclosed) -> tuple[Enclosed, Enclosed]:
    """Return the queries of the last head, with the inverse temperature, and its keys."""
    names = ("W_Q", "b_Q"), ("W_K", "b_K")
    query, key = (stream.mapped(*(_array(case, f"blocks.1.attn.{name}") for name in pair)) for pair in names)
    beta = float(_array(case, "blocks.1.attn.beta"))
    return Enclosed(beta * query.value, beta * query.error + ROUNDING * np.abs(beta * query.value)), key


def _distance_from_means(case: SpecCase, tokens: Ints, stream: Enclosed, reads: Enclosed) -> float:
    """Return how far an output is at most from the mean of unit vectors, if the weights of the last head are right."""
    symbols, (w_u, b_u) = case.spec.symbols, (_array(case, f"unembed.{name}") for name in ("W_U", "b_U"))
    written, sizes = _written(case, 1, reads)
    added = written.mapped(w_u, np.zeros(len(b_u)))
    expected = np.vstack([np.full(symbols, 1 / symbols), np.eye(symbols)])[tokens[:, 0]]
    direct = stream.mapped(w_u, b_u)
    rounding = 8 * (case.net.pads + case.net.max_length + 16) * ROUNDING * sizes @ np.abs(w_u)
    off = (np.abs(direct.value) + direct.error).max() + (np.abs(added.value - expected) + added.error + rounding).max()
    return float(off)


def _read_by_last(case: SpecCase, stream: Enclosed) -> Enclosed:
    """Return what the last head reads: the stream, some groups of dimensions through their norm."""
    groups: Groups = case.net.normed(2)  # type: ignore[attr-defined]  # of a transformer
    value, error, start = stream.value.copy(), stream.error.copy(), 0
    for group in groups:
        dims = list(group)
        scale, shift = (_array(case, f"blocks.1.ln1.{name}")[start : start + len(dims)] for name in "wb")
        unit = Enclosed(value[:, dims], error[:, dims]).normalized(case.net.eps)  # type: ignore[attr-defined]
        unit = unit.mapped(np.diag(scale), shift)
        value[:, dims], error[:, dims] = unit.value, unit.error
        start += len(dims)
    return Enclosed(value, error)


def _scores(case: SpecCase, tokens: Ints, query: Enclosed, key: Enclosed) -> tuple[float, float]:
    r"""Return the least $g$ and the largest $\eta$ over all queries of letters."""
    order = case.spec.order
    letters = (tokens > 0).sum(axis=1)
    radix = (case.spec.symbols + 1) ** np.arange(order)
    wanted = np.where((tokens[:, :order] > 0).all(axis=1), tokens[:, :order] @ radix, -1)
    held = np.where((tokens[:, 1 : order + 1] > 0).all(axis=1), tokens[:, 1 : order + 1] @ radix, -2)
    level, spread, apart = np.inf, 0.0, _apart(held, key)
    for start in range(1, len(tokens), QUERIES_AT_ONCE):  # the first is BOS
        some = slice(start, start + QUERIES_AT_ONCE)
        seen = (letters[None] <= letters[some, None]) & (letters > 0)
        match = (wanted[some, None] == held) & seen
        score, slack, by_key = _products(query.take(some), key)
        uneven = by_key + (2 * query.error[some] @ apart)[:, None]
        low, other = (np.where(match, score - slack, np.inf), np.where(seen & ~match, score + slack, -np.inf))
        gaps = np.minimum(score[:, 0] - slack[:, 0] - other.max(axis=1), low.min(axis=1) - score[:, 0] - slack[:, 0])
        least = np.where(match, score - uneven, np.inf).min(axis=1)
        most = np.where(match, score + uneven, -np.inf).max(axis=1)
        level, spread = min(level, float(gaps.min())), max(spread, float((most - least).max()))
    if level <= 0:
        raise Undecided("BOS is not between the matches and all other keys")
    return level, max(spread, 0.0)


def _apart(held: Ints, key: Enclosed) -> Floats:
    """Return the largest distance of two keys with the same context, by coordinate."""
    order = np.argsort(held, kind="stable")
    first = np.flatnonzero(np.diff(held[order], prepend=-3))
    values = key.value[order]
    spans = np.maximum.reduceat(values, first) - np.minimum.reduceat(values, first)
    within: Floats = spans[held[order][first] >= 0].max(axis=0) + 4 * key.error.max(axis=0)
    return within


def _products(query: Enclosed, key: Enclosed) -> tuple[Floats, Floats, Floats]:
    """Return scores [query, key], bounds on how far those of a run are, and on how far by errors of keys alone."""
    q, k = np.abs(query.value) + 2 * query.error, np.abs(key.value)
    rounding = (q.shape[1] + 4) * ROUNDING * (q @ (k + 2 * key.error).T)
    by_key = 2 * (q @ key.error.T) + 2 * rounding
    return query.value @ key.value.T, 2 * (query.error @ k.T) + by_key, by_key
