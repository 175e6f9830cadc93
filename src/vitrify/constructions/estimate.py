r"""In-context estimation of an order-$k$ Markov chain: frequencies of what followed the last $k$ symbols.

The last layer is the same in all three constructions: one head looks at the places whose $k$ symbols before are the
query's last $k$ symbols, and brings the symbols there, all with the same weight: these are the shares. BOS is looked at
where there is no such place, and brings the same share for all. The layers before bring what is compared:

- `estimate-heads`: $k$ heads, each of which copies the symbol so many places back (in the spirit of Nichani et al.
  2024, arXiv 2402.14735);
- `estimate-digits`: one head, a window of $k+1$ places with the weights $3^{-i}$; every coordinate of the mixture is a
  number with digits 0 and 1, and units read them. Only $\beta$ depends on the length (in the spirit of Ekbote et al.
  2025, arXiv 2508.07208, but with symbols instead of a norm: the gap is 1/2 for any $k$);
- `estimate-norm`: one head with the weights $2^i$, a second layer that takes its result from one place back, and norms
  that make unit vectors of both; equal contexts have the cosine 1. Only $\beta$ depends on the length; the gap falls
  with $4^{-k}$ (in the spirit of Rajaraman et al. 2024, arXiv 2407.17686).

With $S$ symbols and the $2B - 1$ dimensions of a position code:

| | `estimate-heads` | `estimate-digits` | `estimate-norm` |
| --- | --- | --- | --- |
| attention layers | 2 | 2 | 3 |
| heads | $k$, 1 | 1, 1 | 1, 1, 1 |
| width | $(k+2)S + 2B$; softmax $+ kS$ | $(k+3)S + 1$ | $7(S+1) + S + 1$ |
| units | 0; softmax $2kS$ | $2(2^k - 1)S$ | $2(S+1)$ |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, construction
from vitrify.kit.gadgets.signs import unit
from vitrify.kit.gadgets.steps import digits, snap
from vitrify.kit.heads.average import window
from vitrify.kit.heads.match import cosine_match, cosine_sharpness
from vitrify.kit.heads.select import Test, select
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Affine, AttentionKind, Builder, Network, OneHot, Output, Readout, Reals, Space
from vitrify.kit.positions import dimensions, position_code
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.estimate import Estimate

MAX_EXACT_ERROR = 1e-9  # of soft attention where symbols are exact
NOISE, LEAK = 1e-11, 1e-9  # rounding error of a cosine, and weight of all mismatches
MAX_CONTEXTS = 2048  # whose cosines are compared when a net is built
BASE = 3.0


def heads_sizes(task: Estimate, *, attention: AttentionKind) -> DeclaredSizes:
    """Return all sizes: softmax attention takes two units, and a dimension, for each symbol that is made exact."""
    k, s, soft = task.order, task.symbols, attention == "softmax"
    width = (k + 2) * s + dimensions("dyadic", task.length, range(1, k + 1)) + 1 + soft * k * s
    return DeclaredSizes.of_layers((k, 1), (2 * k * s * soft, 0), width)


def digits_sizes(task: Estimate) -> DeclaredSizes:
    """Return all sizes: two units for each step of a digit."""
    k, s = task.order, task.symbols
    return DeclaredSizes.of_layers((1, 1), (2 * (2**k - 1) * s, 0), (k + 3) * s + 1)


def norm_sizes(task: Estimate) -> DeclaredSizes:
    """Return all sizes: they do not grow with the order."""
    s = task.symbols
    return DeclaredSizes.of_layers((1, 1, 1), (s + 1, s + 1, 0), 7 * (s + 1) + s + 1)


@construction(
    "estimate-heads",
    "one head for each of the last k symbols, and one that compares",
    heads_sizes,
    default=True,
    certified=("to T", "every length"),
)
def estimate_heads(task: Estimate, *, attention: Attention = "softmax") -> Network:
    """Return the estimator with one head for each of the last symbols."""
    net, symbol = _start(task, attention, "heads", pads=1, bos=False)
    code = position_code("dyadic", task.length, range(1, task.order + 1))
    position = net.embed_position("position", code.kind(), code.table())
    slots = [shift(net, symbol, j, code, position, name=f"symbol {j} back") for j in range(1, task.order + 1)]
    if attention == "softmax":
        slots = [snap(net, slot, name=f"{slot.name}, exact", void=True) for slot in slots]
    return _matched(net, task, symbol, slots)


@construction(
    "estimate-digits",
    "one head mixes the last k symbols, and units tell them apart",
    digits_sizes,
    unproved="too many to compare",
)
def estimate_digits(task: Estimate, *, attention: Attention = "softmax") -> Network:
    """Return the estimator in which one head mixes the last symbols, and units separate them."""
    net, symbol = _start(task, attention, "digits", pads=task.order + 1, bos=False)
    weights = [1.0, *(BASE**-i for i in range(task.order))]
    mixture = window(net, symbol, weights, name="mixture")
    before = Affine.copy(mixture) + Affine.copy(symbol, -1.0)
    names = [f"symbol {j} back" for j in range(1, task.order + 1)]
    return _matched(net, task, symbol, digits(net, before, BASE, names, OneHot(task.alphabet, void=True)))


def _matched(net: Builder, task: Estimate, symbol: Space, slots: Sequence[Space]) -> Network:
    """Return the network that averages the symbols whose preceding symbols are the query's last ones."""
    recent = [symbol, *slots]
    tests = [Test(Affine.copy(mine), Affine.copy(theirs), 1.0) for mine, theirs in zip(recent, slots, strict=False)]
    value = Affine.copy(symbol) + Affine.of({net.bos: np.full((1, task.symbols), 1 / task.symbols)})
    shares = select(net, tests, value, Space("shares", _kind(task)), sink="default")
    return _network(net, task, shares, MAX_EXACT_ERROR)


@construction("estimate-norm", "one head in each of three layers, and norms", norm_sizes)
def estimate_norm(task: Estimate, *, attention: Attention = "softmax") -> Network:
    """Return the estimator that compares mixtures of the last symbols, here and one position back, by direction."""
    gap, shortest = _separation(task)
    net, symbol = _start(task, attention, "norm", pads=max(task.order, 2), bos=True)
    recent = window(net, symbol, [2.0**i for i in range(task.order)], name="recent")
    both = window(net, recent, [1.0, 1.0], name="recent, here and one back")
    size = symbol.size
    query = unit(net, Affine.copy(recent), shortest, name="direction", positive=True)
    back = Affine.copy(both) + Affine.copy(recent, -1.0)
    key = unit(net, back, shortest, name="direction one back", positive=True)
    half = np.vstack([np.eye(size), np.zeros((size, size))]) / math.sqrt(size)
    value = Affine.of({symbol: np.vstack([np.full(task.symbols, 1 / task.symbols), np.eye(task.symbols)])})
    asked, held, written = Affine.of({query: half}), Affine.of({key: half}), Space("shares", _kind(task))
    shares = cosine_match(net, asked, held, value, written, gap=gap, noise=NOISE, leak=LEAK)
    _, error = cosine_sharpness(net, gap, NOISE, LEAK, float(value.bound.max()))
    return _network(net, task, shares, error + MAX_EXACT_ERROR)


def _separation(task: Estimate) -> tuple[float, float]:
    """Return the least distance of a cosine of two different contexts from 1, and the least norm of a context."""
    size = task.symbols + 1
    if size**task.order > MAX_CONTEXTS:
        raise BuildRefused(
            f"the directions of {size}^{task.order} contexts are too many to be compared: use a smaller order, or the "
            "construction estimate-digits or estimate-heads"
        )
    powers = 2.0 ** np.arange(task.order)
    vectors = np.array([powers @ np.eye(size)[list(word)] for word in product(range(size), repeat=task.order)])
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = (vectors @ vectors.T) / np.outer(lengths, lengths)
    np.fill_diagonal(cosines, -1.0)
    return float(1 - cosines.max()) * (1 - 1e-6), float(lengths.min()) * (1 - 1e-9)


def _kind(task: Estimate) -> Reals:
    return Reals(task.alphabet, 0.0, 1.0)


def _start(task: Estimate, attention: AttentionKind, variant: str, *, pads: int, bos: bool) -> tuple[Builder, Space]:
    """Return an empty net and its symbol space; BOS is a symbol of its own, or zero."""
    inputs = (BEGIN, *task.alphabet)
    name = f"order-{task.order} estimator of {task.symbols} symbols, {variant}, {attention}"
    net = Builder(name, inputs, task.length, attention, pads=pads)
    if bos:
        return net, net.embed("symbol", OneHot(inputs), np.eye(len(inputs)))
    table = np.vstack([np.zeros(task.symbols), np.eye(task.symbols)])
    return net, net.embed("symbol", OneHot(task.alphabet, void=True), table)


def _network(net: Builder, task: Estimate, shares: Space, error: float) -> Network:
    readout = Readout(((shares, np.eye(task.symbols)),), np.zeros(task.symbols), {shares: error})
    output = Output("values", task.outputs, error=error)
    source = "in the spirit of Rajaraman et al. 2024, arXiv 2407.17686"
    return net.network(output, readout, f"estimator of order {task.order}", {}, source=source, reuse=False)
