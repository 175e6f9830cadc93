"""A recurrent net as its definition reads, one number at a time: no batches, scans or array calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitrify.net.recurrent import Recurrent

Vector = list[float]


def logits(net: Recurrent, arrays: Mapping[str, Any], tokens: Sequence[int]) -> list[Vector]:
    """Logits after each token of one sequence, whose first `pads` tokens are BOS."""
    numbers = {name.removeprefix("blocks.0."): array.tolist() for name, array in arrays.items()}
    state, answers = [0.0] * net.state, []
    for token in tokens:
        kept, written = _times(state, numbers["rec.W_A"]), _times(numbers["embed.W_E"][token], numbers["rec.W_B"])
        state = [a + b for a, b in zip(kept, written, strict=True)]
        if net.activation == "relu":
            state = [number if number > 0 else 0.0 for number in state]
        units = [u + b for u, b in zip(_times(state, numbers["mlp.W_in"]), numbers["mlp.b_in"], strict=True)]
        units = [unit if unit > 0 else 0.0 for unit in units]
        out = [y + b for y, b in zip(_times(units, numbers["mlp.W_out"]), numbers["mlp.b_out"], strict=True)]
        logit = _times(out, numbers["unembed.W_U"])
        answers.append([z + b for z, b in zip(logit, numbers["unembed.b_U"], strict=True)])
    return answers


def _times(row: Vector, matrix: list[Vector]) -> Vector:
    return [sum(x * line[column] for x, line in zip(row, matrix, strict=True)) for column in range(len(matrix[0]))]
