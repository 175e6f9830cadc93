r"""One layer of attention at $p$ bits: the definition of finite precision under which message bits are counted.

Queries, keys and values of a symbol at a position are signed integers of $p$ bits; they may be any function of the
input (tables here, any MLP elsewhere). A key has the weight $w = \mathrm{round}((2^p - 1)\,e^{s - t})$, an unsigned
integer of $p$ bits, where $s$ is its score and $t$ the best score that any symbol at any position could reach under
this query, so that $t$ depends on the query only. A key adds to a coordinate of the numerator $\mathrm{round}(w v /
(2^p - 1))$, a signed integer of $p$ bits. Sums are exact, and there is one rounding at the end: the mixed value is
$\mathrm{round}((2^p - 1) \cdot \text{numerator} / \text{denominator})$, again of $p$ bits.

The cost: a sum of $N$ numbers of $p$ bits has $p + \lceil\log_2 N\rceil$ bits (`sum_bits`), in any order of summation.
A head of value size $m$ has $m + 1$ sums: its numerators and its denominator. Fixed-point nets, which become circuits
(`fixed_point.py`), have weights that are powers of two and summands that are not rounded; they have the same cost for
summands of more bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Array, Bools, Floats, Ints
from vitrify.errors import InputError

Read = Callable[[int, Ints], Array]  # the querying symbol and mixed values [batch, head, value] -> answers [batch, out]

CACHED_TABLES = 64  # of summands, one per query
MAX_BITS = 20  # products of two numbers, times the number of positions, must fit 64 bits


def sum_bits(bits: int, count: int) -> int:
    """Return the bits of an exact sum of `count` numbers of `bits` bits: the cost of every partial sum.

    >>> sum_bits(16, 64), sum_bits(16, 65)
    (22, 23)
    """
    return bits + ceil(log2(count)) if count > 1 else bits


def rounded(numerator: Ints, denominator: Ints) -> Ints:
    """Return the quotient, rounded to the nearest integer, halves upwards; 0 where the denominator is 0.

    >>> rounded(np.array([7, -7, 5, 3]), np.array([2, 2, 3, 0])).tolist()
    [4, -3, 2, 0]
    """
    safe = np.where(denominator == 0, 1, denominator)
    return np.where(denominator == 0, 0, (2 * numerator + safe) // (2 * safe))


def signed(numbers: ArrayLike, bits: int) -> Ints:
    """Return the nearest signed integers of `bits` bits."""
    half = 1 << (bits - 1)
    return np.asarray(np.clip(np.rint(numbers), -half, half - 1), dtype=np.int64)


def total(added: Ints, words: Ints, positions: Iterable[int]) -> Ints:
    """Return exact sums [batch, head, value + 1] over some positions of padded words."""
    sums = np.zeros((len(words), added.shape[0], added.shape[-1]), dtype=np.int64)
    for position in positions:
        sums += np.moveaxis(added[:, position, words[:, position]], 0, 1)
    return sums


@dataclass(frozen=True, eq=False)
class OneLayer:
    """One layer of heads over `symbols` at `places` positions; it answers at the position `ask`.

    `queries` [head, symbol, size] are those of the position `ask`, `keys` [head, position, symbol, size] and `values`
    [head, position, symbol, value] those of all positions. A score is `scale` [head] times query · key plus `bias`
    [head, position], which is -inf where a head does not attend. The first `pads` positions always hold the last
    symbol; words are given without them.
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
        if not 1 <= self.bits <= MAX_BITS:
            raise InputError(f"a quantized layer has from 1 to {MAX_BITS} bits, not {self.bits}")
        half = 1 << (self.bits - 1)
        for name in ("queries", "keys", "values"):
            numbers = getattr(self, name)
            if numbers.size and not (-half <= numbers.min() and numbers.max() < half):
                raise InputError(f"{name} must be signed integers of {self.bits} bits")

    @property
    def heads(self) -> int:
        """Number of heads."""
        return int(self.queries.shape[0])

    @property
    def places(self) -> int:
        """Number of positions of a word, pads included."""
        return int(self.keys.shape[1])

    @property
    def query_size(self) -> int:
        """Size of a query of one head."""
        return int(self.queries.shape[2])

    @property
    def value_size(self) -> int:
        """Size of a value of one head."""
        return int(self.values.shape[3])

    @cached_property
    def _possible(self) -> Bools:
        """Mask [position, symbol] of the symbols that can occur at each position."""
        possible = np.ones(self.keys.shape[1:3], dtype=bool)
        if self.pads:
            possible[:, -1] = False
            possible[: self.pads] = False
            possible[: self.pads, -1] = True
        return possible

    def padded(self, words: ArrayLike) -> Ints:
        """Return words with their pads in front."""
        words = np.atleast_2d(np.asarray(words, dtype=np.int64))
        front = np.full((len(words), self.pads), len(self.symbols) - 1)
        return np.concatenate([front, words], axis=1)

    @cached_property
    def _known(self) -> dict[bytes, Ints]:
        """Cache of the summands of recent queries."""
        return {}

    def summands(self, query: Ints) -> Ints:
        """Return the summands of each symbol at each position under a query [head, size].

        Shape [head, position, symbol, value + 1]; the last entry is the weight. No entry depends on another position,
        so two parties can each add their own.
        """
        key = query.tobytes()
        if key not in self._known:
            if len(self._known) >= CACHED_TABLES:
                self._known.clear()
            self._known[key] = self._summands(query)
        return self._known[key]

    def _summands(self, query: Ints) -> Ints:
        top = (1 << self.bits) - 1
        scores = self.scale[:, None, None] * np.einsum("hk,hpsk->hps", query, self.keys) + self.bias[:, :, None]
        scores = np.where(self._possible, scores, -np.inf)
        best = scores.max(axis=(1, 2), keepdims=True, initial=-np.inf)
        shifted = np.where(np.isfinite(scores), scores - np.where(np.isfinite(best), best, 0.0), -np.inf)
        weights = np.rint(top * np.exp(shifted)).astype(np.int64)
        added = rounded(weights[..., None] * self.values, np.array(top))
        return np.concatenate([added, weights[..., None]], axis=-1)

    def sums(self, query: Ints, words: ArrayLike, places: Iterable[int] | None = None) -> Ints:
        """Return exact sums [batch, head, value + 1] over some positions of words, by default all, pads included."""
        return total(self.summands(query), self.padded(words), range(self.places) if places is None else places)

    def added(self, symbol: int) -> Ints:
        """Return what symbols add under the query of this symbol."""
        return self.summands(self.queries[:, symbol])

    def mix(self, sums: Ints) -> Ints:
        """Return mixed values [batch, head, value] from the sums over all positions; this is the one rounding."""
        top, half = (1 << self.bits) - 1, 1 << (self.bits - 1)
        return np.clip(rounded(top * sums[..., :-1], sums[..., -1:]), -half, half - 1)

    def mixed(self, words: ArrayLike) -> Ints:
        """Return mixed values [batch, head, value] at the position `ask`."""
        words = self.padded(words)
        mixed = np.zeros((len(words), self.heads, self.value_size), dtype=np.int64)
        for symbol in np.unique(words[:, self.ask]):
            matching = words[:, self.ask] == symbol
            mixed[matching] = self.mix(self.sums(self.queries[:, symbol], words[matching, self.pads :]))
        return mixed

    def run(self, words: ArrayLike) -> Array:
        """Return answers [batch, out] to words of symbol indices, at the position `ask`."""
        words = np.atleast_2d(np.asarray(words, dtype=np.int64))
        querying, mixed = words[:, self.ask - self.pads], self.mixed(words)
        parts = {int(symbol): np.flatnonzero(querying == symbol) for symbol in np.unique(querying)}
        answers = np.concatenate([self.read(symbol, mixed[indices]) for symbol, indices in parts.items()])
        return answers[np.argsort(np.concatenate(list(parts.values())))]


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
    """Return a layer with random numbers of `bits` bits; its answers are random combinations of mixed values."""
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
