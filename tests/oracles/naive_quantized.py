"""A quantized layer straight from its definition: one place after the other, in whole numbers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

from vitrify.bounds.quantized import OneLayer


def nearest(number: Fraction) -> int:
    """The nearest integer, halves upwards."""
    return math.floor(number + Fraction(1, 2))


def mixed(model: OneLayer, word: list[int]) -> list[list[int]]:
    """The mixed values of every head at the place that asks."""
    top, half = 2**model.bits - 1, 2 ** (model.bits - 1)
    last = len(model.symbols) - 1
    word = [last] * model.pads + word
    found = []
    for head in range(model.heads):
        query = model.queries[head, word[model.ask]].tolist()

        def score(place: int, symbol: int, head: int = head, query: list[int] = query) -> float:
            product: int = sum(a * b for a, b in zip(query, model.keys[head, place, symbol].tolist(), strict=True))
            return float(model.scale[head]) * product + float(model.bias[head, place])

        stands = [
            (place, symbol)
            for place in range(len(word))
            for symbol in range(len(model.symbols))
            if not model.pads or (symbol == last) == (place < model.pads)
        ]
        best = max(score(*where) for where in stands)
        weights = [
            0 if math.isinf(score(place, symbol)) else round(top * math.exp(score(place, symbol) - best))
            for place, symbol in enumerate(word)
        ]
        row = []
        for coordinate in range(model.value_size):
            values = [int(model.values[head, place, symbol, coordinate]) for place, symbol in enumerate(word)]
            total = sum(nearest(Fraction(w * v, top)) for w, v in zip(weights, values, strict=True))
            quotient = nearest(Fraction(top * total, sum(weights))) if sum(weights) else 0
            row.append(min(max(quotient, -half), half - 1))
        found.append(row)
    return found
