r"""One layer of attention at $p$ bits: the one definition of finite precision under which bits are counted.

Queries, keys and values of a symbol at a place are signed integers of $p$ bits; how they come about is the input's own
business (tables here, any MLP elsewhere). A key weighs $w = \mathrm{round}((2^p - 1)\,e^{s - t})$, an unsigned integer
of $p$ bits, where $s$ is its score and $t$ the best score that any symbol at any place could reach under this query, so
that $t$ is known to whoever knows the query. What a key adds to a coordinate of the numerator is $\mathrm{round}(w v /
(2^p - 1))$, a signed integer of $p$ bits. Sums are exact, and there is one rounding at the end: the mixed value is
$\mathrm{round}((2^p - 1) \cdot \text{numerator} / \text{denominator})$, again of $p$ bits.

The charge: a sum of $N$ numbers of $p$ bits is a number of $p + \lceil\log_2 N\rceil$ bits (`sum_bits`), whoever adds
them in whatever order. A head of value size $m$ has $m + 1$ sums: its numerators and its denominator. Fixed-point nets,
which become circuits (`fixed_point.py`), have weights that are powers of two and summands that are not rounded; they
pay the same charge for summands of more bits (`fixed_layer.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import InputError

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


class Layer(Protocol):
    """What a protocol has to know of a layer: what every symbol at every place adds to its sums, and what follows."""

    @property
    def bits(self) -> int:
        """The size of a summand."""
        ...

    @property
    def pads(self) -> int:
        """Places in front of every word, which `padded` fills."""
        ...

    @property
    def heads(self) -> int: ...

    @property
    def value_size(self) -> int: ...

    def padded(self, words: Any) -> Ints: ...

    def added(self, symbol: int) -> Ints:
        """What symbols add, [head, place, symbol, value + 1], when this one asks; the last is the weight."""
        ...

    def mix(self, sums: Ints) -> Ints:
        """Mixed values from the sums over all places."""
        ...

    @property
    def read(self) -> Read:
        """How answers are read from the symbol that asks and mixed values."""
        ...

    def run(self, words: Any) -> Any: ...


def total(added: Ints, words: Ints, places: Iterable[int]) -> Ints:
    """Exact sums [batch, head, value + 1] over some places of words that have their pads."""
    found = np.zeros((len(words), added.shape[0], added.shape[-1]), dtype=np.int64)
    for place in places:
        found += np.moveaxis(added[:, place, words[:, place]], 0, 1)
    return found


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

    def sums(self, query: Ints, words: Any, places: Iterable[int] | None = None) -> Ints:
        """Exact sums [batch, head, value + 1] over some places (all unless said) of words; pads are places too."""
        return total(self.summands(query), self.padded(words), range(self.places) if places is None else places)

    def added(self, symbol: int) -> Ints:
        """What symbols add when this one asks."""
        return self.summands(self.queries[:, symbol])

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
