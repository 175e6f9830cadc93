"""Rows of sandboxes with chains, trees and documents, drawn by plain NumPy from their definitions."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from oracles.rows_base import drawn, reference, written
from vitrify.sandboxes.back_copy import BackCopy
from vitrify.sandboxes.bigram_trigger import BigramTrigger
from vitrify.sandboxes.causal_graph import CausalGraph
from vitrify.sandboxes.chain import Chain
from vitrify.sandboxes.corpus import Corpus
from vitrify.sandboxes.flip_flop import DENSE, READ, SPARSE, WRITE, ZERO, FlipFlop
from vitrify.sandboxes.hierarchy import HierarchySandbox
from vitrify.sandboxes.in_context_markov import InContextMarkov
from vitrify.sandboxes.interleaved import Interleaved
from vitrify.sandboxes.kit.masking import Masked
from vitrify.sandboxes.lda import LDA
from vitrify.sandboxes.markov import Markov
from vitrify.sandboxes.ngram import NGram
from vitrify.sandboxes.ngram_family import NGramFamily
from vitrify.sandboxes.random_ngram import RandomNGram
from vitrify.sandboxes.topics import Topics
from vitrify.spec.ngrams.model import BEGIN, END


@reference.register
def _(sandbox: BackCopy, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    symbols = np.empty((count, sandbox.length), dtype=np.int32)
    symbols[:, 0] = rng.choice(sandbox.vocabulary, size=count, p=sandbox.first)
    for t in range(1, sandbox.length):
        last = symbols[:, t - 1]
        usual = drawn(rng, sandbox.table[last])
        symbols[:, t] = np.where(sandbox.trigger[last], symbols[:, t - 2], usual) if t > 1 else usual
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: BigramTrigger, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    k, each = sandbox.vocabulary, np.arange(count)
    trigger = rng.random((count, k)) < sandbox.prior
    output = rng.integers(k, size=(count, k))
    bounds = sandbox.table.cumsum(axis=1)[:, :-1]
    symbols = np.empty((count, sandbox.length), dtype=np.int32)
    symbols[:, 0] = rng.choice(k, size=count, p=sandbox.law)
    for t in range(1, sandbox.length):
        before = symbols[:, t - 1]
        usual = (rng.random((count, 1)) >= bounds[before]).sum(axis=1)
        symbols[:, t] = np.where(trigger[each, before], output[each, before], usual)
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: CausalGraph, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    k, ways, each = sandbox.states, sandbox.asking, np.arange(count)
    kernels = rng.dirichlet(np.full(k, sandbox.alpha), (count, *(k,) * ways)).cumsum(axis=-1)[..., :-1]
    tokens = rng.integers(k, size=(count, sandbox.length)).astype(np.int32)
    for i, above in enumerate(sandbox.parents.tolist()):
        if min(above) >= 0:
            bounds = kernels[(each, *(tokens[:, j] for j in above))]
            tokens[:, i] = (rng.random((count, 1)) >= bounds).sum(axis=-1)
    targets = np.zeros((count, sandbox.length + 1), dtype=np.int32)
    bounds = kernels[(each, *tokens[:, -ways:].T)]
    targets[:, -1] = (rng.random((count, 1)) >= bounds).sum(axis=-1)
    return tokens, targets


@reference.register
def _(sandbox: Chain, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    kernel = sandbox.table.reshape((sandbox.states,) * (sandbox.order + 1))
    law = np.full((sandbox.states,) * sandbox.order, float(sandbox.states) ** -sandbox.order)
    before = np.zeros_like(law)
    while np.abs(law - before).sum() > 1e-14:  # the law of m symbols, moved on; half a step damps periods
        law, before = (law + (law[..., None] * kernel).sum(axis=0)) / 2, law
    symbols = np.empty((count, sandbox.length), dtype=np.int32)
    first = rng.choice(law.size, size=count, p=law.ravel() / law.sum())
    symbols[:, : sandbox.order] = np.stack(np.unravel_index(first, law.shape), axis=1)
    for t in range(sandbox.order, sandbox.length):
        symbols[:, t] = drawn(rng, kernel[tuple(symbols[:, t - sandbox.order : t].T)])
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: FlipFlop, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    symbols, stored = np.empty((count, sandbox.length), dtype=np.int32), np.zeros(count, dtype=np.int32)
    rare = [[(1 - p) / 2, (1 - p) / 2, p] for p in (SPARSE, DENSE)]  # writes, reads, ignores
    laws = np.array([[sandbox.write, 1 - sandbox.write - sandbox.ignore, sandbox.ignore], *rare])
    kinds = rng.choice(3, p=[1 - sandbox.tails, sandbox.tails / 2, sandbox.tails / 2], size=count)
    for t in range(0, sandbox.length, 2):
        ends = t in (0, sandbox.length - 2)
        law = np.eye(3)[np.full(count, READ if t else WRITE)] if ends else laws[kinds]
        orders = (rng.random((count, 1)) >= np.cumsum(law, axis=1)[:, :-1]).sum(axis=1)
        bits = rng.integers(2, size=count)
        stored = np.where(orders == WRITE, bits, stored)
        symbols[:, t], symbols[:, t + 1] = orders, ZERO + np.where(orders == READ, stored, bits)
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: HierarchySandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    label = rng.integers(sandbox.roots, size=(count, 1))
    row = label
    for table in reversed(sandbox.rules):
        row = table[row, rng.integers(sandbox.m, size=row.shape)].reshape(count, -1)
    if sandbox.mode != "classify":
        tokens = row[:, -1 - sandbox.tokens : -1].astype(np.int32)
        tokens[:, : sandbox.tokens - (int(sandbox.window) or sandbox.tokens)] = sandbox.v
        return tokens, row[:, -1 - sandbox.tokens :].astype(np.int32)
    targets = np.zeros((count, sandbox.leaves + 1), dtype=np.int32)
    targets[:, -1:] = label
    return row.astype(np.int32), targets


@reference.register
def _(sandbox: InContextMarkov, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    k, order = sandbox.states, sandbox.order
    kernels = rng.dirichlet(np.full(k, sandbox.alpha), (count, *(k,) * order))
    bounds = np.cumsum(kernels, axis=-1)[..., :-1]
    symbols = np.empty((count, sandbox.length), dtype=np.int32)
    symbols[:, :order] = rng.integers(k, size=(count, order))
    for t in range(order, sandbox.length):
        now = bounds[(np.arange(count), *symbols[:, t - order : t].T)]
        symbols[:, t] = (rng.random((count, 1)) >= now).sum(axis=-1)
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: Interleaved, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    lag = rng.choice(sandbox.lags, size=count)
    law = np.linalg.matrix_power((sandbox.table[:-1] + np.eye(sandbox.states)) / 2, 1 << 40)[0]
    symbols = np.empty((count, sandbox.length), dtype=np.int32)
    for t in range(sandbox.length):
        above = symbols[np.arange(count), np.maximum(t - lag, 0)]
        p = np.where((t < lag)[:, None], law, sandbox.table[np.where(t < lag, 0, above)])
        symbols[:, t] = (rng.random((count, 1)) >= p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: Markov, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    leave = np.array([sandbox.p, sandbox.q])
    symbols = np.empty((count, sandbox.length), dtype=np.int32)
    symbols[:, 0] = rng.random(count) < sandbox.p / (sandbox.p + sandbox.q)
    for t in range(1, sandbox.length):
        before = symbols[:, t - 1]
        symbols[:, t] = np.where(rng.random(count) < leave[before], 1 - before, before)
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: NGram, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    model = sandbox.model
    ids, (begin, end) = model.ids(model.predicted), model.ids((BEGIN, END))
    history = np.full((count, sandbox.length + model.order), -1)
    history[:, 0] = begin
    size = np.ones(count, dtype=int)  # of the sentence so far, `<s>` counted
    symbols = np.empty((count, sandbox.length), dtype=np.int32)
    for t in range(sandbox.length):
        back = size[:, None] - np.arange(model.order - 1, 0, -1)
        contexts = np.where(back >= 0, np.take_along_axis(history, np.maximum(back, 0), axis=1), -1)
        p = np.exp(model.next_log_probs_of_contexts(contexts))
        symbols[:, t] = drawn(rng, p / p.sum(axis=1, keepdims=True))
        word = ids[symbols[:, t]]
        history[np.arange(count), size] = word
        size = np.where(word == end, 1, size + 1)
    if sandbox.apart:
        ended = np.cumsum(symbols == sandbox._end, axis=1) > 0
        symbols[ended] = sandbox._end
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: NGramFamily, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    symbols = np.empty((count, sandbox.length), dtype=np.int32)
    said = jax.jit(sandbox._law())
    past = np.full((count, sandbox.longest - 1), sandbox.states, dtype=np.int32)
    for t in range(sandbox.length):
        logits = np.asarray(said(past), dtype=np.float64)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        bounds = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        symbols[:, t] = (rng.random((count, 1)) >= bounds).sum(axis=1)
        past = np.concatenate([symbols[:, t : t + 1], past], axis=1)[:, :-1]
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: RandomNGram, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    symbols = np.empty((count, sandbox.length), dtype=np.int32)
    for t in range(sandbox.length):
        past = symbols[:, max(0, t - sandbox.n + 1) : t]
        table = sandbox.tables[past.shape[1]].reshape((sandbox.states,) * (past.shape[1] + 1))
        symbols[:, t] = drawn(rng, np.broadcast_to(table[tuple(past.T)], (count, sandbox.states)))
    return symbols[:, :-1], symbols


@reference.register
def _(sandbox: Masked, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    words = written(sandbox, rng, count)
    chosen = rng.random(words.shape) < sandbox.masked
    while not (some := chosen.any(axis=1)).all():
        chosen[~some] = rng.random((int((~some).sum()), sandbox.length)) < sandbox.masked
    fate = rng.choice(
        3, size=words.shape, p=[sandbox.unchanged, sandbox.replaced, 1 - sandbox.unchanged - sandbox.replaced]
    )
    other = rng.integers(len(sandbox.answers), size=words.shape)
    tokens = np.where(chosen, np.choose(fate, [words + 1, other + 1, 0]), words + 1)
    return tokens.astype(np.int32), np.concatenate([np.zeros((count, 1), int), words], axis=1).astype(np.int32)


@written.register
def _(sandbox: Corpus, rng: np.random.Generator, count: int) -> Any:
    _, laws = sandbox.laws
    which = np.repeat(rng.integers(len(laws), size=count), sandbox.length)
    return drawn(rng, laws[which]).reshape(count, sandbox.length)


@written.register
def _(sandbox: LDA, rng: np.random.Generator, count: int) -> Any:
    shares = rng.multinomial(sandbox.grid, rng.dirichlet(np.full(sandbox.topics, sandbox.alpha), count)) / sandbox.grid
    topic = drawn(rng, np.repeat(shares, sandbox.length, axis=0))
    return drawn(rng, sandbox.laws_of_topics[topic]).reshape(count, sandbox.length)


@written.register
def _(sandbox: Topics, rng: np.random.Generator, count: int) -> Any:
    about = rng.permuted(np.tile(np.arange(sandbox.topics), (count, 1)), axis=1)[:, : sandbox.tau]
    topic = np.take_along_axis(about, rng.integers(sandbox.tau, size=(count, sandbox.length)), axis=1)
    return topic * sandbox.words + rng.integers(sandbox.words, size=(count, sandbox.length))
