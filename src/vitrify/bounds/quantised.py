r"""One layer of attention at $p$ bits: the one definition of finite precision under which bits are counted.

Queries, keys and values of a symbol at a place are signed integers of $p$ bits; how they come about is the input's own
business (tables here, any MLP elsewhere). A key weighs $w = \mathrm{round}((2^p - 1)\,e^{s - t})$, an unsigned integer
of $p$ bits, where $s$ is its score and $t$ the best score that any symbol at any place could reach under this query, so
that $t$ is known to whoever knows the query. What a key adds to a coordinate of the numerator is $\mathrm{round}(w v /
(2^p - 1))$, a signed integer of $p$ bits. Sums are exact, and there is one rounding at the end: the mixed value is
$\mathrm{round}((2^p - 1) \cdot \text{numerator} / \text{denominator})$, again of $p$ bits.

The charge: a sum of $N$ numbers of $p$ bits is a number of $p + \lceil\log_2 N\rceil$ bits (`sum_bits`), whoever adds
them in whatever order. A head of value size $m$ has $m + 1$ sums: its numerators and its denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.attention import allowed_keys
from vitrify.net.run import batch_logits
from vitrify.net.sparse import affine, dense, matmul_heads
from vitrify.net.transformer import Transformer
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Read = Callable[[int, Ints], Any]  # the symbol that asks and mixed values [batch, head, value] -> answers [batch, out]

REMEMBERED = 64  # tables of summands
MOST_BITS = 20  # products of two numbers, times the number of places, must fit 64 bits


def sum_bits(bits: int, count: int) -> int:
    """Bits of an exact sum of so many numbers of so many bits: the charge for every partial sum.

    >>> sum_bits(16, 64), sum_bits(16, 65)
    (22, 23)
    """
    return bits + ceil(log2(count)) if count > 1 else bits


def rounded(numerator: Ints, denominator: Ints) -> Ints:
    """The quotient, rounded to the nearest integer, halves upwards; 0 where the denominator is 0.

    >>> rounded(np.array([7, -7, 5, 3]), np.array([2, 2, 3, 0])).tolist()
    [4, -3, 2, 0]
    """
    safe = np.where(denominator == 0, 1, denominator)
    return np.where(denominator == 0, 0, (2 * numerator + safe) // (2 * safe))


def signed(numbers: Any, bits: int) -> Ints:
    """The nearest signed integers of so many bits."""
    half = 1 << (bits - 1)
    return np.asarray(np.clip(np.rint(numbers), -half, half - 1), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class OneLayer:
    """One layer of heads over `symbols` at `places`, asked at the place `ask`.

    `queries` [head, symbol, size] are those of the place that asks, `keys` [head, place, symbol, size] and `values`
    [head, place, symbol, value] those of all places. A score is `scale` [head] times query · key plus `bias`
    [head, place], which is -inf where a head does not look. `pads` places in front hold the last symbol and nothing
    else can stand there; words are given without them.
    """

    symbols: tuple[str, ...]
    bits: int
    ask: int
    queries: Ints
    keys: Ints
    values: Ints
    scale: Floats
    bias: Floats
    read: Read
    pads: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MOST_BITS:
            raise InputError(f"a quantised layer has from 1 to {MOST_BITS} bits, not {self.bits}")
        half = 1 << (self.bits - 1)
        for name in ("queries", "keys", "values"):
            numbers = getattr(self, name)
            if numbers.size and not (-half <= numbers.min() and numbers.max() < half):
                raise InputError(f"{name} must be signed integers of {self.bits} bits")

    @property
    def heads(self) -> int:
        """How many heads."""
        return int(self.queries.shape[0])

    @property
    def places(self) -> int:
        """Places of a word, with its pads."""
        return int(self.keys.shape[1])

    @property
    def query_size(self) -> int:
        """Numbers in a query of one head."""
        return int(self.queries.shape[2])

    @property
    def value_size(self) -> int:
        """Numbers in a value of one head."""
        return int(self.values.shape[3])

    @cached_property
    def _possible(self) -> NDArray[np.bool_]:
        """Which symbols can stand at which place."""
        possible = np.ones(self.keys.shape[1:3], dtype=bool)
        if self.pads:
            possible[:, -1] = False
            possible[: self.pads] = False
            possible[: self.pads, -1] = True
        return possible

    def padded(self, words: Any) -> Ints:
        """Words with what stands in front of them."""
        words = np.atleast_2d(np.asarray(words, dtype=np.int64))
        front = np.full((len(words), self.pads), len(self.symbols) - 1)
        return np.concatenate([front, words], axis=1)

    @cached_property
    def _known(self) -> dict[bytes, Ints]:
        """Summands under queries that were asked lately."""
        return {}

    def summands(self, query: Ints) -> Ints:
        """What each symbol at each place adds under a query [head, size]: [head, place, symbol, value + 1].

        The last one is the weight. No row depends on another place: that is what lets two parties add on their own.
        """
        asked = query.tobytes()
        if asked not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[asked] = self._summands(query)
        return self._known[asked]

    def _summands(self, query: Ints) -> Ints:
        top = (1 << self.bits) - 1
        scores = self.scale[:, None, None] * np.einsum("hk,hpsk->hps", query, self.keys) + self.bias[:, :, None]
        scores = np.where(self._possible, scores, -np.inf)
        best = scores.max(axis=(1, 2), keepdims=True, initial=-np.inf)
        shifted = np.where(np.isfinite(scores), scores - np.where(np.isfinite(best), best, 0.0), -np.inf)
        weights = np.rint(top * np.exp(shifted)).astype(np.int64)
        added = rounded(weights[..., None] * self.values, np.array(top))
        return np.concatenate([added, weights[..., None]], axis=-1)

    def sums(self, query: Ints, words: Any, places: Sequence[int] | None = None) -> Ints:
        """Exact sums [batch, head, value + 1] over some places (all unless said) of words; pads are places too."""
        words = self.padded(words)
        chosen = np.arange(self.places) if places is None else np.asarray(places, dtype=np.int64)
        added = self.summands(query)
        total = np.zeros((len(words), self.heads, self.value_size + 1), dtype=np.int64)
        for place in chosen:
            total += np.moveaxis(added[:, place, words[:, place]], 0, 1)
        return total

    def mix(self, sums: Ints) -> Ints:
        """The one rounding: mixed values [batch, head, value] from the sums over all places."""
        top, half = (1 << self.bits) - 1, 1 << (self.bits - 1)
        return np.clip(rounded(top * sums[..., :-1], sums[..., -1:]), -half, half - 1)

    def mixed(self, words: Any) -> Ints:
        """Mixed values [batch, head, value] at the place that asks."""
        words = self.padded(words)
        found = np.zeros((len(words), self.heads, self.value_size), dtype=np.int64)
        for symbol in np.unique(words[:, self.ask]):
            rows = words[:, self.ask] == symbol
            found[rows] = self.mix(self.sums(self.queries[:, symbol], words[rows, self.pads :]))
        return found

    def run(self, words: Any) -> Any:
        """Answers [batch, out] to words of symbol numbers, at the place that asks."""
        words = np.atleast_2d(np.asarray(words, dtype=np.int64))
        asked, mixed = words[:, self.ask - self.pads], self.mixed(words)
        parts = {int(symbol): np.flatnonzero(asked == symbol) for symbol in np.unique(asked)}
        found = np.concatenate([self.read(symbol, mixed[rows]) for symbol, rows in parts.items()])
        return found[np.argsort(np.concatenate(list(parts.values())))]


def random_layer(
    symbols: Sequence[str],
    places: int,
    *,
    bits: int,
    heads: int = 1,
    query_size: int = 1,
    value_size: int = 1,
    ask: int = -1,
    answers: int = 2,
    seed: int = 0,
) -> OneLayer:
    """A layer with random numbers of `bits` bits everywhere; its answers are random combinations of mixed values."""
    rng = np.random.default_rng(seed)
    half = 1 << (bits - 1)

    def draw(*shape: int) -> Ints:
        return rng.integers(-half, half, shape)

    queries, keys = draw(heads, len(symbols), query_size), draw(heads, places, len(symbols), query_size)
    readout = draw(heads * value_size, answers)
    return OneLayer(
        symbols=tuple(symbols),
        bits=bits,
        ask=ask % places,
        queries=queries,
        keys=keys,
        values=draw(heads, places, len(symbols), value_size),
        scale=np.full(heads, 4.0 / (query_size * half**2)),  # scores within ±4: every weight counts
        bias=np.zeros((heads, places)),
        read=lambda _, mixed: mixed.reshape(len(mixed), -1) @ readout,
    )


def attention_block(weights: Weights[Any]) -> int:
    """The block of the net's one attention layer; anything that is no such net is refused in a sentence."""
    net = weights.architecture
    if not isinstance(net, Transformer):
        raise InputError(f"this is about transformers with one attention layer; the net is {net.tag}")
    at = [index for index, block in enumerate(net.blocks) if block.heads]
    if len(at) != 1:
        raise InputError(f"this is about nets with one attention layer; the net has {len(at)}, and the bound is silent")
    kinds = {head.attention for head in net.blocks[at[0]].heads}
    if kinds != {"softmax"}:
        raise InputError(f"a quantised layer attends by softmax, not by {', '.join(sorted(kinds - {'softmax'}))}")
    if net.norm:
        raise InputError("a quantised layer has no layer norm: this net has")
    if net.reads != "tokens":
        raise InputError("a quantised layer reads symbols; this net reads numbers")
    return at[0]


def quantise(weights: Weights[Any], symbols: Sequence[str], length: int, bits: int) -> OneLayer:
    """The quantised layer of a net with one attention layer, for words of one length over some of its symbols.

    Blocks of units before and after the attention are computed at each place by itself, without rounding: they cost no
    message. The step of each table of numbers is its largest entry over $2^{p-1} - 1$.
    """
    index = attention_block(weights)
    net: Transformer = weights.architecture
    if length > net.max_length:
        raise InputError(f"the net reads {net.max_length} symbols at most, not {length}")
    unknown = [symbol for symbol in symbols if symbol not in net.input_ids]
    if unknown:
        raise InputError(f"the net does not read {', '.join(map(repr, unknown))}")
    places = net.pads + length
    ids = np.array([*(net.input_ids[symbol] for symbol in symbols), 0])
    seen: dict[str, Any] = {}
    forward(net, weights.prepared, np.repeat(ids[:, None], places, axis=1), record=seen.__setitem__)
    stream: Floats = np.asarray(seen[f"blocks.{index}.hook_resid_pre"])  # what a symbol is at a place, by itself
    name, block = f"blocks.{index}.attn", net.blocks[index]
    q, k, v = (
        np.moveaxis(affine(stream, weights.prepared[f"{name}.W_{x}"], weights.prepared[f"{name}.b_{x}"]), -2, 0)
        for x in "QKV"
    )
    q = (q * np.asarray(weights.arrays[f"{name}.beta"])[:, None, None, None])[:, :, -1]
    bias = np.array([_bias(weights, name, head, places) for head in range(len(block.heads))])
    queries, query_step = _on_grid(q, bits)
    keys, key_step = _on_grid(np.moveaxis(k, 1, 2), bits)
    values, value_step = _on_grid(np.moveaxis(v, 1, 2), bits)
    rest = _rest(weights, index)

    def read(symbol: int, mixed: Ints) -> Floats:
        here = stream[symbol, -1][None]  # one by one: a product of matrices may round otherwise in a larger batch
        return np.concatenate([rest(here, row[None] * value_step[:, None]) for row in mixed])

    return OneLayer(
        symbols=(*symbols, net.inputs[0]),
        bits=bits,
        ask=places - 1,
        queries=queries,
        keys=keys,
        values=values,
        scale=query_step * key_step,
        bias=bias,
        read=read,
        pads=net.pads,
    )


def _on_grid(numbers: Floats, bits: int) -> tuple[Ints, Floats]:
    """Numbers [head, …] as integers of so many bits, and the step of each head."""
    largest = np.abs(numbers).reshape(len(numbers), -1).max(axis=1, initial=0.0)
    step = np.where(largest > 0, largest, 1.0) / max((1 << (bits - 1)) - 1, 1)
    return signed(numbers / step.reshape(-1, *[1] * (numbers.ndim - 1)), bits), step


def _bias(weights: Weights[Any], name: str, number: int, places: int) -> Floats:
    """What the last place adds to its scores, by place; -inf where the head does not look."""
    head = next(block for block in weights.architecture.blocks if block.heads).heads[number]
    last = np.array([places - 1])
    allowed = allowed_keys(head, last, np.arange(places))[0]
    offset = places - 1 - np.arange(places)
    bias = np.zeros(places)
    if head.window is not None:
        table = dense(weights.arrays[f"{name}.b_rel"])[number]
        bias = np.asarray(table)[np.clip(offset, 0, len(table) - 1)]
    return np.where(allowed, bias, -np.inf)


def _rest(weights: Weights[Any], index: int) -> Callable[[Floats, Floats], Floats]:
    """What a net makes of the stream and the mixed values of its heads: itself without attention, read as numbers."""
    net: Transformer = weights.architecture
    block, width = net.blocks[index], net.widths[2 * index + 1]
    after = (replace(block, heads=(), d_head=0, d_value=0), *net.blocks[index + 1 :])
    rest = replace(
        net,
        inputs=tuple(f"x{number}" for number in range(width)),
        max_length=1,
        d_model=width,
        blocks=after,
        pads=0,
        reads="vector",
    )
    arrays = {"embed.W_E": np.eye(width), "pos_embed.W_pos": np.zeros((1, width))}
    for wanted in rest.shapes():
        if wanted not in arrays:
            head, _, tail = wanted.partition(".")
            number, _, inner = tail.partition(".")
            source = f"blocks.{int(number) + index}.{inner}" if head == "blocks" else wanted
            arrays[wanted] = weights.arrays[source]
    shallow = Weights(rest, arrays)
    out = weights.prepared[f"blocks.{index}.attn.W_O"]

    def finish(x: Floats, z: Floats) -> Floats:
        if net.residual == "add":
            x = x + matmul_heads(z[:, None], out)[:, 0]
        else:
            x = np.concatenate([x, *(z[:, head] @ dense(out[head]) for head in range(z.shape[1]))], axis=-1)
        return np.asarray(forward(rest, shallow.prepared, x))[:, -1]

    return finish


def answer(output: Output, logits: Floats) -> str:
    """The symbol (or the set of symbols) that logits say."""
    if output.kind == "next":
        return " ".join(symbol for symbol, logit in zip(output.symbols, logits, strict=True) if logit > 0)
    return output.symbols[int(np.argmax(logits))]


def unrounded(weights: Weights[Any], words: Sequence[Sequence[str]]) -> list[str]:
    """What the net itself says at the end of words of one length, in float64."""
    net = weights.architecture
    ids = np.array([[0] * net.pads + [net.input_ids[symbol] for symbol in word] for word in words])
    lengths = np.full(len(words), ids.shape[1])
    return [answer(net.output, row[-1]) for row in batch_logits(weights, ids, lengths)]
