r"""Conversion between ordinary and disentangled transformers, both ways, with the same outputs.

In an ordinary transformer all parts (embedding, heads, MLPs) add to one stream $x = x_0 + \sum_p y_p$. In a
disentangled one (Nichani et al. 2024, arXiv 2402.14735) each appends its output, $(x_0, y_1, y_2, \dots)$.

- *Apart*: who read $xW$ reads $(x_0, y_1, \dots)$ through one copy of $W$ for each part. The width, at the end, is
  $d(1 + H + M)$ for $H$ heads and $M$ MLPs. A norm of a sum is no function of norms of its parts, and is refused.
- *Together*: every part has dimensions of its own in a stream as wide as the last one, and adds zeros elsewhere. A norm
  before a half layer is one over the dimensions that were there by then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.arrays import Matrix
from vitrify.errors import BuildRefused
from vitrify.net.labels import Labels
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights


def apart(weights: Weights) -> Weights:
    """Return the disentangled transformer with the outputs of an ordinary one; arrays become dense."""
    net = weights.architecture
    if net.residual == "concatenate":
        return weights
    if net.norm:
        raise BuildRefused(
            "a norm sees the sum of what was written, which a stream of parts does not hold: use a net without norms"
        )
    if net.loops > 1 or any(block.cell for block in net.blocks):
        raise BuildRefused("a stream that grows can't run the same blocks again, or feed a recurrence: leave such nets")
    blocks = tuple(replace(b, d_out=net.d_model if b.heads or b.halves else 0) for b in net.blocks)
    wide = replace(net, blocks=blocks, residual="concatenate")
    parts = [width // net.d_model for width in wide.widths]
    repeated = []
    for i, block in enumerate(wide.blocks):
        starts = [net.d_model * part for part in range(parts[2 * i + 1])]
        experts = [replace(e, reads=tuple(start + dim for start in starts for dim in e.reads)) for e in block.experts]
        repeated.append(replace(block, experts=tuple(experts)))
    wide = replace(wide, blocks=tuple(repeated))
    shapes = wide.shapes()
    arrays = {name: _repeated(array, shapes[name]) for name, array in weights.arrays.items()}
    labels = Labels(heads=weights.labels.heads, units=weights.labels.units)  # a space is spread over parts
    return Weights(wide, arrays, labels, weights.about)


def together(weights: Weights) -> Weights:
    """Return the ordinary transformer with the outputs of a disentangled one; arrays become dense."""
    net = weights.architecture
    if net.residual == "add":
        return weights
    moved = [_starts(net, index) for index in range(len(net.blocks))]
    blocks = tuple(
        replace(
            block,
            d_out=0,
            experts=tuple(replace(e, writes=tuple(start["moe"] + dim for dim in e.writes)) for e in block.experts),
        )
        for block, start in zip(net.blocks, moved, strict=True)
    )
    groups = tuple(net.normed(half) for half in range(len(net.widths))) if net.norm else ()
    plain = replace(net, d_model=net.width, residual="add", blocks=blocks, groups=groups)
    shapes = plain.shapes()
    arrays = {name: _placed(array, shapes[name]) for name, array in weights.arrays.items()}
    for index, start in enumerate(moved):
        for part in ("attn.W_O", "mlp.W_out", "mlp.b_out"):
            name = f"blocks.{index}.{part}"
            if name in arrays:
                arrays[name] = _placed(weights.arrays[name], shapes[name], start[part.split(".")[0]])
    return Weights(plain, arrays, weights.labels, weights.about)


def _starts(net: Transformer, index: int) -> dict[str, Any]:
    """Return the first dimension of each part of a block in the residual stream: one for each head."""
    block, (before, after, _) = net.blocks[index], net.widths[2 * index : 2 * index + 3]
    return {
        "attn": [before + block.d_out * head for head in range(len(block.heads))],
        "mlp": after,
        "moe": after + (block.d_out if block.units else 0),
    }


def _repeated(array: Matrix, shape: tuple[int, ...]) -> Matrix:
    """Return a matrix repeated for every part that it reads."""
    matrix = dense(array)
    return np.tile(matrix, [wanted // max(size, 1) for wanted, size in zip(shape, matrix.shape, strict=True)])


def _placed(array: Matrix, shape: tuple[int, ...], start: int | list[int] = 0) -> Matrix:
    """Return an array embedded in zeros, its last axis from a column on, or from one for each head."""
    matrix, padded = dense(array), np.zeros(shape)
    if isinstance(start, list):
        for head, column in enumerate(start):
            padded[head, :, column : column + matrix.shape[-1]] = matrix[head]
        return padded
    inside = tuple(slice(0, size) for size in matrix.shape[:-1])
    padded[(*inside, slice(start, start + matrix.shape[-1]))] = matrix
    return padded
