r"""Hand-built nets that win the games, at little more than the size that the bounds require.

They show that the bounds are nearly tight: a refuter finds no refutation of them.

| net | game | size |
| --- | --- | --- |
| `gathering_layer` | any | one head, values of $\lceil T/s\rceil$ numbers with $s$ symbols in each |
| `averaging_layer` | sparse averaging | one head, queries of $2q$ numbers |
| `register` | copying, pointers | a state of exactly $n \log_2 D$ bits |
| | recall | one number more, for the last key |
"""

from __future__ import annotations

from math import ceil, log

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.bounds.games import Game
from vitrify.bounds.quantized import OneLayer
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

    return OneLayer(
        symbols=game.symbols,
        bits=bits,
        ask=game.ask,
        queries=np.zeros((1, count, 1), dtype=np.int64),
        keys=np.zeros((1, length, count, 1), dtype=np.int64),
        values=values,
        scale=np.ones(1),
        bias=np.zeros((1, length)),
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


def register(game: Game) -> QuantizedRecurrent:
    """Return a shift register: Alice's symbols are appended one by one; Bob's symbol, or copying, selects from them."""
    size, b = game.size, max(1, ceil(log(game.choices, 2) - 1e-12))
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
                row[:] = np.roll(row, -(symbol - last_data))
        slot = h[:, -1].astype(np.int64) - low if recall else np.zeros(len(h), dtype=np.int64)
        selected = h[np.arange(len(h)), slot].astype(np.int64) - low
        return h, np.eye(1 << b)[selected][:, : game.choices]

    return QuantizedRecurrent(
        symbols=game.symbols,
        answers=game.symbols[first_data:last_data],
        bits=b,
        first=np.full(width, float(low)),
        step=np.ones(width),
        follow=follow,
    )
