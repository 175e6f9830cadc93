r"""In-context estimation of an order-$k$ Markov chain: frequencies of what followed the last $k$ symbols.

The last layer is the same in all three constructions: one head attends to the positions whose $k$ previous symbols are
the query's last $k$ symbols, all with the same weight, and reads the symbols there: these are the frequencies. Where
there is no such position, it attends to BOS, which has the same value for all symbols. The layers before compute what
is compared:

- `estimate-heads`: $k$ heads, each of which copies the symbol at one distance (in the spirit of Nichani et al. 2024,
  arXiv 2402.14735);
- `estimate-digits`: one head, a window of $k+1$ positions with the weights $3^{-i}$; every coordinate of the mixture is
  a number with digits 0 and 1, and units read them. Only $\beta$ depends on the length;
- `estimate-norm`: one head, a window of the $k$ positions before with the weights $2^{i-1}$; units turn its result into
  that of the next position, and norms make unit vectors of both; equal contexts have the cosine 1. Only $\beta$ depends
  on the length (in the spirit of Ekbote et al. 2025, arXiv 2508.07208).

With $S$ symbols and the $2B - 1$ dimensions of a position code:

| | `estimate-heads` | `estimate-digits` | `estimate-norm` |
| --- | --- | --- | --- |
| attention layers | 2 | 2 | 2 |
| heads | $k$, 1 | 1, 1 | 1, 1 |
| width | $(k+2)S + 2B$; softmax $+ kS$ | $(k+3)S + 1$ | $4S + 2$ |
| units | 0; softmax $2kS$ | $2(2^k - 1)S$ | $3(S-1)$, at least 1 |
| gap of the last head | 1/2 | 1/2 | $1 / 8(2^k-1)^2$ |
| declared error | $10^{-9}$ | $10^{-9}$ | softmax $\approx 2 \cdot 10^{-9} + 6 \cdot 10^{-11} k\,4^k S$ |
| every word is proved | for all $k$ | for $k \le 2$ | for at most 16,384 words of $k + 1$ symbols |

**Contexts as directions** (`estimate-norm`). Let $M = 2^k - 1$ and $v_s = \sum_{i=1}^{k} 2^{i-1} [x_{t-i} = s]$, whose
sum is $M$. The weights grow into the past, so that the oldest symbol is the highest binary digit. The query of position
$t$ needs the same for $i = 0 \dots k-1$: $u_s = y_s - 2^k [y_s \ge 2^k]$ with $y_s = [x_t = s] + 2v_s$, one unit for
$y_s$ and two for the step. One symbol needs none, as $\sum u_s = M$.

With $-M$ as one more coordinate, $a = (v, -M)$ has mean 0, so that a norm over these $S + 1$ dimensions divides by $|a|
\sqrt{1/(S+1)}$. Two contexts with $v \ne v'$ have

$$1 - \cos(a, a') \ge \frac{|a|^2 |a'|^2 - (a \cdot a')^2}{2 |a|^2 |a'|^2} \ge \frac{M^2 |v - v'|^2}{2 (2M^2)^2} \ge
\frac1{4M^2},$$

as $|a|^2 \le 2M^2$, and as the terms of Lagrange's identity with the last coordinate are $M^2 (v_s - v'_s)^2$. BOS adds
2 to the last coordinate in the place of -1. The norm takes the mean away; a context with BOS, which has the oldest
symbols and so the weight $b > M/2$, then has the product $2M(M - 2b) < 0$ with every query.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, construction
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.gadgets.steps import digits, snap
from vitrify.kit.heads.average import window
from vitrify.kit.heads.match import CosineSharpness, cosine_match, cosine_sharpness
from vitrify.kit.heads.select import Test, select
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Affine, AttentionKind, Builder, Network, Norm, OneHot, Output, Readout, Reals, Space
from vitrify.kit.positions import dimensions, position_code
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.estimate import Estimate

MAX_EXACT_ERROR = 1e-9  # of soft attention where symbols are exact
LEAK = 1e-9  # weight of all mismatches
MAX_DIGITS = 8  # in base 3, of a mean that is rounded
MAX_ROUNDED = 7e10  # 8^k S (S + 1)^1.5: beyond, rounding of queries (2^k) may exceed a sixteenth of the gap (4^-k)
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
    return DeclaredSizes.of_layers((1, 1), (max(3 * (s - 1), 1), 0), 4 * s + 2)


def context_gap(order: int) -> float:
    """Return a lower bound on the distance of the cosine of two different contexts from 1."""
    return 1 / (2.0 ** (order + 1) - 2) ** 2


@construction(
    "estimate-heads",
    "one head for each of the last k symbols, and one that compares",
    heads_sizes,
    default=True,
    certified=("to T", "every length"),
)
def estimate_heads(task: Estimate, *, attention: Attention = "softmax") -> Network:
    """Return the estimator with one head for each of the last symbols."""
    net, symbol = _start(task, attention, "heads", pads=1)
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
    certified=("to T", "to T"),
    unproved="too many to",
)
def estimate_digits(task: Estimate, *, attention: Attention = "softmax") -> Network:
    """Return the estimator in which one head mixes the last symbols, and units separate them."""
    if task.order > MAX_DIGITS:
        raise BuildRefused(f"digits of more than {MAX_DIGITS} symbols are lost in rounding: use estimate-norm")
    net, symbol = _start(task, attention, "digits", pads=task.order + 1)
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


@construction(
    "estimate-norm",
    "one head mixes the last k symbols, and norms make its results comparable",
    norm_sizes,
    certified=("to T", "to T"),
    unproved="not worked out for norms",
)
def estimate_norm(task: Estimate, *, attention: Attention = "softmax") -> Network:
    """Return the estimator that compares mixtures of the last symbols by direction."""
    if 8.0**task.order * task.symbols * (task.symbols + 1) ** 1.5 > MAX_ROUNDED:
        raise BuildRefused(
            f"the directions of contexts of {task.order} symbols out of {task.symbols} are too near to each other for "
            "float64: use a smaller order or estimate-heads"
        )
    net, symbol = _start(task, attention, "norm", pads=task.order + 1)
    at_bos = Affine.of({symbol: -np.ones((task.symbols, 1))}, [1.0])
    lifted = Affine.copy(symbol).beside(at_bos * 3.0 + Affine.constant(-1.0))
    weights = [0.0, *(2.0**i for i in range(task.order))]
    before = window(net, lifted, weights, name="before", kind=_lifted(task, -1.0, 2.0))
    recent = _next_mixture(net, task, symbol, before)
    key, query = _direction(net, task, before), _direction(net, task, recent)
    direction_of_bos = np.append(-np.ones(task.symbols), task.symbols) / math.sqrt(task.symbols * before.size)
    value = Affine.copy(symbol) + at_bos @ np.full((1, task.symbols), 1 / task.symbols)
    sharp = _sharpness(net, task, float(value.bound.max()))
    held, writes = key + at_bos @ -direction_of_bos[None], Space("shares", _kind(task))
    shares = cosine_match(net, query, held, value, writes, sink=at_bos, sharp=sharp)
    return _network(net, task, shares, sharp.error + MAX_EXACT_ERROR)


def _next_mixture(net: Builder, task: Estimate, symbol: Space, before: Space) -> Space:
    """Return the mixture that the next position finds before it: one digit more, without the highest one."""
    others, highest = task.symbols - 1, 2.0**task.order
    some = np.eye(task.symbols, others)
    shifted = Affine.of({symbol: some, before: 2 * np.eye(before.size, others)})
    ramps = (shifted * 2.0 + Affine.constant(np.full(others, end - 2 * highest)) for end in (1.5, 0.5))
    reads = reduce(Affine.beside, ramps, shifted)
    out = np.zeros((3 * others, before.size))
    out[:, :-1] = np.vstack([some.T, -highest * some.T, highest * some.T])
    out[:, -2] = -out[:, :-2].sum(axis=1)  # the last symbol has what the others leave of the total
    constant = np.append(np.zeros(others), [highest - 1, 1 - highest])
    bound = float(reads.bound.max(initial=1.0))
    return net.units(
        "next mixture",
        reads,
        Space("recent", _lifted(task, -highest, 2 * highest)),
        out,
        constant,
        margin={before: 1 / 16},
        passes=(Affine.of({before: np.full((before.size, 1), 2.0)}),),
        error=8 * UNIT_ROUNDOFF * task.symbols * highest * bound,
    )


def _direction(net: Builder, task: Estimate, mixture: Space) -> Affine:
    """Return the unit vector of a mixture, whose norm is least where all symbols are equally frequent."""
    root = math.sqrt(mixture.size)
    shortest = (2.0**task.order - 1) * math.sqrt(1 + 1 / task.symbols) / root
    unit = Space(f"direction of {mixture.name}", _lifted(task, -root, root))
    return Affine.copy(net.add(Norm(unit.name, mixture, unit, shortest)), 1 / root)


def _lifted(task: Estimate, low: float, high: float) -> Reals:
    return Reals((*task.alphabet, "balance"), low, high)


def _sharpness(net: Builder, task: Estimate, largest: float) -> CosineSharpness:
    """Return the sharpness of the last head; the noise of keys is that of a window, of a norm and of a product."""
    n, gap = task.symbols + 1, context_gap(task.order)
    roundings = 8 * (n + 1) * (8 * math.sqrt(n) * (task.order + 1) + n + 4)
    return cosine_sharpness(net, gap, largest, noise=gap / 16, key_noise=roundings * UNIT_ROUNDOFF, leak=LEAK)


def _kind(task: Estimate) -> Reals:
    return Reals(task.alphabet, 0.0, 1.0)


def _start(task: Estimate, attention: AttentionKind, variant: str, *, pads: int) -> tuple[Builder, Space]:
    """Return an empty net and its symbol space, which is zero at BOS."""
    inputs = (BEGIN, *task.alphabet)
    name = f"order-{task.order} estimator of {task.symbols} symbols, {variant}, {attention}"
    net = Builder(name, inputs, task.length, attention, pads=pads)
    table = np.vstack([np.zeros(task.symbols), np.eye(task.symbols)])
    return net, net.embed("symbol", OneHot(task.alphabet, void=True), table)


def _network(net: Builder, task: Estimate, shares: Space, error: float) -> Network:
    readout = Readout(((shares, np.eye(task.symbols)),), np.zeros(task.symbols), {shares: error})
    output = Output("values", task.outputs, error=error)
    source = "in the spirit of Rajaraman et al. 2024, arXiv 2407.17686"
    return net.network(output, readout, f"estimator of order {task.order}", {}, source=source, reuse=False)
