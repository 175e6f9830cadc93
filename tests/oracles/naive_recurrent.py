"""A recurrent net as its definition reads, one number at a time: no batches, scans or array calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, tanh
from typing import Any

from vitrify.net.recurrent import Recurrent

Vector = list[float]


def logits(net: Recurrent, arrays: Mapping[str, Any], tokens: Sequence[int]) -> list[Vector]:
    """Logits after each token of one sequence, whose first `pads` tokens are BOS."""
    numbers = {name.removeprefix("blocks.0."): array.tolist() for name, array in arrays.items()}
    state, cell, answers = [0.0] * net.cell.state, [0.0] * net.cell.state, []
    for token in tokens:
        x = numbers["embed.W_E"][token]
        if net.cell.kind == "lstm":
            state, cell = _lstm(state, cell, x, numbers)
        else:
            moved = _decayed if net.cell.kind in ("positive", "signed") else _moved
            state = _plus(moved(net, state, x, numbers), _times(x, numbers["rec.W_B"]))
        if net.cell.kind == "relu":
            state = [number if number > 0 else 0.0 for number in state]
        out = state
        if net.units:
            units = _plus(_times(state, numbers["mlp.W_in"]), numbers["mlp.b_in"])
            units = [unit if unit > 0 else 0.0 for unit in units]
            out = _plus(_times(units, numbers["mlp.W_out"]), numbers["mlp.b_out"])
        answers.append(_plus(_times(out, numbers["unembed.W_U"]), numbers["unembed.b_U"]))
    return answers


def _decayed(net: Recurrent, state: Vector, x: Vector, numbers: Mapping[str, Any]) -> Vector:
    """The state before, every number times a decay between 0, or -1, and 1."""
    asked = _plus(_times(x, numbers["rec.W_A"]), numbers["rec.b"])
    return [h * (_sigmoid(a) if net.cell.kind == "positive" else tanh(a)) for h, a in zip(state, asked, strict=True)]


def _moved(net: Recurrent, state: Vector, x: Vector, numbers: Mapping[str, Any]) -> Vector:
    """The state before, after the transition that x asks for."""
    w_a = numbers["rec.W_A"]
    if net.cell.kind == "diagonal":
        return [h * a for h, a in zip(state, _times(x, w_a), strict=True)]
    if net.cell.kind == "full":
        mixed = [
            [sum(x[i] * w_a[i][r][c] for i in range(len(x))) for c in range(len(state))] for r in range(len(state))
        ]
        return _times(state, mixed)
    if net.cell.kind == "householder":
        for factor in w_a:
            v = _times(x, factor)
            mirror = [[float(r == c) - v[r] * v[c] for c in range(len(v))] for r in range(len(v))]
            state = _times(state, mirror)
        return state
    return _times(state, w_a)


def _lstm(state: Vector, cell: Vector, x: Vector, numbers: Mapping[str, Any]) -> tuple[Vector, Vector]:
    size = len(state)
    gates = _plus(_plus(_times(state, numbers["rec.W_A"]), _times(x, numbers["rec.W_B"])), numbers["rec.b"])
    i, f, g, o = gates[:size], gates[size : 2 * size], gates[2 * size : 3 * size], gates[3 * size :]
    cell = [_sigmoid(f[k]) * cell[k] + _sigmoid(i[k]) * tanh(g[k]) for k in range(size)]
    return [_sigmoid(o[k]) * tanh(cell[k]) for k in range(size)], cell


def _sigmoid(number: float) -> float:
    return 1 / (1 + exp(-number))


def _plus(one: Vector, two: Vector) -> Vector:
    return [a + b for a, b in zip(one, two, strict=True)]


def _times(row: Vector, matrix: list[Vector]) -> Vector:
    return [sum(x * line[column] for x, line in zip(row, matrix, strict=True)) for column in range(len(matrix[0]))]
