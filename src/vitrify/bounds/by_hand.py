r"""Hand-built nets that win the games, at little more than the size that the bounds require.

They show that the bounds are nearly tight: a refuter finds no refutation of them. The layers for INDEX, equality and
disjointness also take fewer numbers: then they are the best contestants that we know.

| net | game | size |
| --- | --- | --- |
| `gathering_layer` | any | one head, values of $\lceil T/s\rceil$ numbers with $s$ symbols in each |
| `indexing_layer` | induction | one head that stores what fits |
| `fingerprint_layer` | equality, brackets | one head; right if the differences of inputs have different sums |
| `overlap_layer` | disjointness | one head, values of $n/s$ numbers with $s$ bits of each party in each |
| `averaging_layer` | sparse averaging | one head, queries of $2q$ numbers |
| `comparing_register` | equality, disjointness | a state of $n + 2$ numbers |
| `register` | copying, pointers | a state of exactly $n \log_2 D$ bits |
| | recall | one number more, for the last key |
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.bounds.games import Game
from vitrify.bounds.quantized import OneLayer, Read
from vitrify.bounds.quantized_recurrent import QuantizedRecurrent
from vitrify.errors import InputError


def gathering_layer(game: Game, bits: int) -> OneLayer:
    r"""Return one head with uniform attention that collects every symbol as a digit; the readout decodes them.

    As the head divides by the length $T$, digits are written $T$ times as large: with $V$ symbols a value of $p$ bits
    holds $s = \lfloor\log_V((2^{p-1}-1)/T)\rfloor$ of them.
    """
    length, count = game.length, len(game.symbols)
    digits = int(log(((1 << (bits - 1)) - 1) / length, count) + 1e-12)
    if digits < 1:
        raise InputError(f"{bits} bits hold no symbol of {count} at length {length}")
    size = ceil(length / digits)
    values = np.zeros((1, length, count, size), dtype=np.int64)
    for position in range(length):
        values[0, position, :, position // digits] = length * np.arange(count) * count ** (position % digits)
    positions = np.arange(length)
    corners = [[choice] * game.size for choice in range(game.choices)]  # inputs of Alice in which every answer occurs
    kinds = sorted({game.truth(game.words(a, b)[0].tolist()) for a in corners for b in game.questions})

    def read(_: int, mixed: Ints) -> Ints:
        words = mixed[:, 0, positions // digits] // count ** (positions % digits) % count
        return np.array([[int(game.truth(word) == kind) for kind in kinds] for word in words.tolist()])

    return _uniform(game, values, bits, read)


def indexing_layer(game: Game, value_size: int, bits: int) -> OneLayer:
    """Return one head for INDEX that stores as many values as fit; where another one is asked for, it answers 0.

    The first number of a value is the index, from Bob's symbol; the others hold Alice's values as digits.
    """
    base, stored = game.choices, digits(game, value_size - 1, bits)
    fits, scale = capacity(game, bits, base), game.length
    values = np.zeros((1, game.length, len(game.symbols), value_size), dtype=np.int64)
    for index in range(game.size):
        values[0, game.others[index], 1, 0] = scale * index  # the query symbol
    for choice in range(base):
        held = game.alice(np.full((1, game.size), choice))[0]
        for index in range(game.size):
            values[0, game.places[index], held[index], 1:] = scale * choice * stored[index]

    def read(_: int, mixed: Ints) -> Ints:
        index = mixed[:, 0, 0]
        slots = np.minimum(1 + index // fits, value_size - 1)
        digit = mixed[np.arange(len(mixed)), 0, slots] // base ** (index % fits) % base
        return np.eye(base, dtype=np.int64)[np.where(index < fits * (value_size - 1), digit, 0)]

    return _uniform(game, values, bits, read)


def fingerprint_layer(game: Game, numbers: Ints, bits: int) -> OneLayer:
    r"""Return one head that compares Alice's input with Bob's by $\sum_j \varphi_j (x_j - y_j)$.

    $\varphi$ are `numbers` [size, value]. The answer is 1 where all these sums are 0: always if $x = y$, else if
    $\varphi$ lets the two collide.
    """
    return _summing(game, numbers, -numbers, bits, lambda sums: (sums == 0).all(axis=1))


def overlap_layer(game: Game, value_size: int, bits: int) -> OneLayer:
    """Return one head that adds the bits of both parties as digits to base 3; 2 is a common element.

    The elements that do not fit the digits are not looked at.
    """
    stored = digits(game, value_size, bits, base=3)
    scale = 3 ** np.arange(capacity(game, bits, 3))

    def disjoint(sums: Ints) -> Bools:
        common: Bools = sums[:, :, None] // scale % 3 == 2
        return np.asarray(~common.any(axis=(1, 2)))

    return _summing(game, stored, stored, bits, disjoint)


def digits(game: Game, value_size: int, bits: int, base: int | None = None) -> Ints:
    """Return the numbers [size, value] of the layer that stores as many of Alice's symbols as fit, and no others."""
    base = base or game.choices
    fits = capacity(game, bits, base)
    numbers = np.zeros((game.size, value_size), dtype=np.int64)
    for index in range(min(game.size, value_size * fits)):
        numbers[index, index // fits] = base ** (index % fits)
    return numbers


def checked_digits(game: Game, value_size: int, bits: int) -> Ints:
    """Return `digits`, with two digits in different values for each symbol that did not fit."""
    base = game.choices
    numbers, fits = digits(game, value_size, bits), capacity(game, bits, base)
    for extra, index in enumerate(range(value_size * fits, game.size)):
        first, second = extra % value_size, (extra + 1 + extra // (value_size * fits)) % value_size
        numbers[index, first] += base ** (extra % fits)
        numbers[index, second] -= base ** ((3 * extra + 1) % fits)
    return numbers


def least_squares(game: Game, value_size: int, bits: int) -> Ints:
    """Return the numbers from whose sums random bits are estimated with the least squared error.

    For independent bits any orthogonal columns of one length have it; here these are cosines, as large as fits.
    """
    angles = np.outer(np.arange(game.size) + 0.5, np.arange(1, value_size + 1)) * np.pi / game.size
    return np.asarray(np.rint(_largest(game, bits) * np.cos(angles)), dtype=np.int64)


def _largest(game: Game, bits: int) -> int:
    """Return the largest number that a layer can add: a head divides by the length, so values are multiples of it."""
    return ((1 << (bits - 1)) - 1) // (game.length * (game.choices - 1))


def capacity(game: Game, bits: int, base: int) -> int:
    """Return the number of digits to a base that one value holds."""
    largest, fits = _largest(game, bits), 0
    while base**fits <= largest:
        fits += 1
    if not fits:
        raise InputError(f"{bits} bits hold no digit at length {game.length}")
    return fits


def _summing(game: Game, alice: Ints, bob: Ints, bits: int, decide: Callable[[Ints], Bools]) -> OneLayer:
    """Return one head with uniform attention that adds multiples of both parties' inputs; the readout decides."""
    length, count, size = game.length, len(game.symbols), alice.shape[1]
    values = np.zeros((1, length, count, size), dtype=np.int64)
    for choice in range(game.choices):
        mine, theirs = game.alice(np.full((1, game.size), choice))[0], game.bob((choice,) * game.size)
        for index in range(game.size):
            values[0, game.places[index], mine[index]] = length * choice * alice[index]
            values[0, game.others[index], theirs[index]] = length * choice * bob[index]

    def read(_: int, mixed: Ints) -> Ints:
        return np.eye(2, dtype=np.int64)[decide(mixed[:, 0]).astype(np.int64)]

    return _uniform(game, values, bits, read)


def _uniform(game: Game, values: Ints, bits: int, read: Read) -> OneLayer:
    """Return one head with uniform attention and these values [1, position, symbol, value]."""
    return OneLayer(
        symbols=game.symbols,
        bits=bits,
        ask=game.ask,
        queries=np.zeros((1, len(game.symbols), 1), dtype=np.int64),
        keys=np.zeros((*values.shape[:3], 1), dtype=np.int64),
        values=values,
        scale=np.ones(1),
        bias=np.zeros((1, game.length)),
        read=read,
    )


def averaging_layer(game: Game, pointers: int, bits: int) -> OneLayer:
    """Return one head whose query is the set of pointers; its mixed value is the mean, in units of $2^{p-1} - 1$."""
    positions, count, unit = 2 * pointers, len(game.symbols), (1 << (bits - 1)) - 1
    queries = np.zeros((1, count, positions), dtype=np.int64)
    for symbol in range(2, count):
        for pair in range(pointers):
            queries[0, symbol, 2 * pair + ((symbol - 2) >> pair & 1)] = 1
    keys = np.zeros((1, positions + 1, count, positions), dtype=np.int64)
    values = np.zeros((1, positions + 1, count, 1), dtype=np.int64)
    for position in range(positions):
        keys[0, position, :, position] = 1
        values[0, position, :2, 0] = [-unit, unit]
    return OneLayer(
        symbols=game.symbols,
        bits=bits,
        ask=positions,
        queries=queries,
        keys=keys,
        values=values,
        scale=np.array([2.0 * bits]),  # other keys weigh e^-2p of these, which rounds to 0
        bias=np.where(np.arange(positions + 1) == positions, -np.inf, 0.0)[None],
        read=lambda _, mixed: mixed[:, 0] / unit,
    )


def comparing_register(game: Game) -> QuantizedRecurrent:
    """Return a recurrence that stores Alice's word and compares Bob's with it, symbol by symbol.

    The state has her symbols, whether Bob's agree so far, and the number of symbols that were read.
    """
    size = game.size
    b = ceil(log(max(game.choices, 2 * size + 2), 2) - 1e-12)
    low = -(1 << (b - 1))  # the integer that stands for 0
    fine = [[game.label((a,) * size, (c,) * size) for c in range(game.choices)] for a in range(game.choices)]

    def follow(h: Floats, x: Ints) -> tuple[Floats, Floats]:
        h = h.copy()
        for row, symbol in zip(h, x, strict=True):
            at = int(row[-1]) - low
            if at < size:
                row[at] = symbol + low
            elif at < 2 * size and not fine[(int(row[at - size]) - low) % game.choices][symbol % game.choices]:
                row[-2] = low
            row[-1] += 1
        return h, np.eye(2)[(h[:, -2] > low).astype(np.int64)]

    first = np.array([*[low] * size, low + 1, low], dtype=float)
    return QuantizedRecurrent(game.symbols, ("0", "1"), b, first, np.ones(size + 2), follow)


def register(game: Game, stored: int | None = None) -> QuantizedRecurrent:
    """Return a shift register: Alice's symbols are appended one by one; Bob's symbol, or copying, selects from them.

    With `stored` it has the last symbols only, and answers a pointer to an earlier one with the first symbol.
    """
    size, b = game.size if stored is None else stored, max(1, ceil(log(game.choices, 2) - 1e-12))
    recall = game.name == "recall"
    b = max(b, ceil(log(size + 1, 2) - 1e-12)) if recall else b
    low = -(1 << (b - 1))  # the integer that stands for 0
    width = size + recall
    first_data = size if recall else 0
    last_data = first_data + game.choices

    def follow(h: Floats, x: Ints) -> tuple[Floats, Floats]:
        h = h.copy()
        for row, symbol in zip(h, x, strict=True):
            if first_data <= symbol < last_data:
                row[:size] = [*row[1:size], symbol - first_data + low]
            elif recall:
                row[-1] = symbol + low
            elif game.name == "sparse-averaging":
                slot = symbol - last_data - (game.size - size)
                row[:] = np.roll(row, -slot) if slot >= 0 else low
        slots = h[:, -1].astype(np.int64) - low if recall else np.zeros(len(h), dtype=np.int64)
        selected = h[np.arange(len(h)), slots].astype(np.int64) - low
        return h, np.eye(1 << b)[selected][:, : game.choices]

    return QuantizedRecurrent(
        symbols=game.symbols,
        answers=game.symbols[first_data:last_data],
        bits=b,
        first=np.full(width, float(low)),
        step=np.ones(width),
        follow=follow,
    )
