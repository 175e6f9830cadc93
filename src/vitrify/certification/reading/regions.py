r"""Exact linear regions of a built transformer that reads a vector, from its own weights, without rounding.

Every number of the residual stream is followed as an affine function of the input on a cell, in fractions: the weights
are binary ones. A hidden unit cuts the cell where it changes sign, a hard head where its best key changes. That is
possible for hard heads whose query does not depend on the input, so that scores are affine; a softmax head is no
piecewise linear function and has no regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from vitrify.arrays import Arrays, Floats
from vitrify.errors import InputError
from vitrify.net.sparse import dense
from vitrify.net.transformer import Block, Transformer
from vitrify.net.weights import Weights
from vitrify.spec.geometry import regions as geometry
from vitrify.spec.geometry.regions import AffinePiece, Form, Point, Regions, affine_of, box, combine, counted, leaders

Function = tuple[geometry.Row, Fraction]
Stream = list[list[Form]]  # the residual stream on a cell: an affine function for each position and dimension


def net_regions(weights: Weights[Transformer], radius: float) -> Regions:
    """The regions of a built net of one or two inputs, on the box of that radius."""
    return _followed(weights, box(len(weights.architecture.inputs), radius))


def net_regions_on_line(weights: Weights[Transformer], start: Sequence[float], end: Sequence[float]) -> Regions:
    """The regions that a built net has along a segment, from start to end; cells run from 0 to 1."""
    return _followed(weights, geometry.line(start, end))


def _followed(weights: Weights[Transformer], start: AffinePiece) -> Regions:
    net, arrays = weights.architecture, {name: dense(array) for name, array in weights.arrays.items()}
    _check(net, arrays)
    size = len(start.corners[0]) + 1
    embed = _columns(arrays["embed.W_E"])
    embedded = [combine(column, start.forms) for column in embed]
    places = arrays["pos_embed.W_pos"].tolist()
    first = [[_plus(form, _constant(place, size)) for form, place in zip(embedded, row, strict=True)] for row in places]
    cells: list[tuple[tuple[Point, ...], Stream]] = [(start.corners, first)]
    for index, block in net.turns:
        part = {k.removeprefix(f"blocks.{index}."): v for k, v in arrays.items() if k.startswith(f"blocks.{index}.")}
        if block.heads:
            cells = _attended(cells, block, part)
        if block.units:
            cells = _rectified(cells, part)
    readout = _columns(arrays["unembed.W_U"], arrays["unembed.b_U"])
    return counted([AffinePiece(corners, tuple(combine(f, stream[-1]) for f in readout)) for corners, stream in cells])


def _check(net: Transformer, arrays: Arrays) -> None:
    plain = net.reads == "vector" and not net.norm and net.residual == "add"
    plain = plain and not net.segmented
    heads = [(f"blocks.{i}.attn.W_Q", h) for i, block in enumerate(net.blocks) for h in block.heads]
    hard = all(h.attention == "hard" and h.ties == "left" and h.mask == "none" and not h.window for _, h in heads)
    if not plain or not hard or any(np.any(arrays[name]) for name, _ in heads):
        raise InputError(
            "regions are counted for nets that read a vector, with hard heads that see everything and ask the same of "
            "every input: build the net with --attention hard"
        )


def _attended(
    cells: list[tuple[tuple[Point, ...], Stream]], block: Block, part: Arrays
) -> list[tuple[tuple[Point, ...], Stream]]:
    """All heads of a block. They look at the stream as it was before, and all positions look at the same key."""
    heads = []
    for h in range(len(block.heads)):
        query = part["attn.beta"][h] * part["attn.b_Q"][h]
        keys = _columns((part["attn.W_K"][h] @ query)[:, None], [part["attn.b_K"][h] @ query])[0]
        values = _columns(part["attn.W_V"][h], part["attn.b_V"][h])
        heads.append((keys, values, _columns(part["attn.W_O"][h])))
    after = []
    for corners, stream in cells:
        open_ones: list[tuple[tuple[Point, ...], list[list[Form]]]] = [(corners, [])]
        for key, values, out in heads:
            scores = [combine(key, row) for row in stream]
            written = [[combine(f, [combine(v, row) for v in values]) for f in out] for row in stream]
            open_ones = [
                (cut, [*chosen, written[best]]) for held, chosen in open_ones for cut, best in leaders(held, scores)
            ]
        after += [(cut, _added(stream, chosen)) for cut, chosen in open_ones]
    return after


def _rectified(cells: list[tuple[tuple[Point, ...], Stream]], part: Arrays) -> list[tuple[tuple[Point, ...], Stream]]:
    """The MLP of a block, position by position, unit by unit."""
    inward = _columns(part["mlp.W_in"], part["mlp.b_in"])
    outward = _columns(part["mlp.W_out"], part["mlp.b_out"])
    after = []
    for corners, stream in cells:
        zero = _constant(0.0, len(corners[0]) + 1)
        open_ones: list[tuple[tuple[Point, ...], list[Form]]] = [(corners, [])]
        for row in stream:
            for function in inward:
                rivals = [combine(function, row), zero]
                open_ones = [
                    (cut, [*active, rivals[best]]) for held, active in open_ones for cut, best in leaders(held, rivals)
                ]
        for cut, active in open_ones:
            units = len(inward)
            rows = [active[at : at + units] for at in range(0, len(active), units)]
            moved = [[combine(f, row) for f in outward] for row in rows]
            after.append(
                (cut, [[_plus(a, b) for a, b in zip(x, y, strict=True)] for x, y in zip(stream, moved, strict=True)])
            )
    return after


def _added(stream: Stream, outputs: list[list[Form]]) -> Stream:
    """The stream with the outputs of all heads, the same at every position."""
    total = outputs[0]
    for output in outputs[1:]:
        total = [_plus(a, b) for a, b in zip(total, output, strict=True)]
    return [[_plus(a, b) for a, b in zip(row, total, strict=True)] for row in stream]


def _columns(matrix: Floats, bias: Sequence[float] | Floats | None = None) -> list[Function]:
    """The affine functions that a matrix [in, out] and a bias [out] are."""
    constants = np.zeros(matrix.shape[1]) if bias is None else np.asarray(bias)
    return [affine_of(column, b) for column, b in zip(matrix.T.tolist(), constants.tolist(), strict=True)]


def _constant(number: float, size: int) -> Form:
    return (*[Fraction(0)] * (size - 1), Fraction(number))


def _plus(a: Form, b: Form) -> Form:
    return tuple(x + y if y else x for x, y in zip(a, b, strict=True))
