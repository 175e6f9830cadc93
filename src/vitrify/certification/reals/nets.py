r"""Networks in real arithmetic: the stored weights are exact numbers, and every result is a ball around the true one.

This is a second implementation of what `net/` computes in floating point, and shares no code with its forward pass.
Matrices are exact fractions plus balls (`reals.py`). What only adds, multiplies, compares or averages stays exact, so
hard attention over exact scores sees true ties; a softmax, a root or a $\tanh$ makes balls. A comparison that decides
something and that the balls leave open (the tied keys of a hard head, a router's choice, whether a group of a layer
norm varies at all) raises `OpenComparison`, and the caller asks again with more bits. Two steps need no decision, as
they are continuous: a ReLU of an open sign is a ball from 0 on; and the threshold of a sparsemax moves by at most
$\delta$ when scores do, so a weight moves by at most $2\delta$ and is exactly 0 where it is that far below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import ArrayLike

from vitrify.arrays import Float
from vitrify.certification.reals import matrices
from vitrify.certification.reals.cells import states, times
from vitrify.certification.reals.matrices import NOTHING, Entry, Linear, RealMatrix, below, exact, ones, relu, together
from vitrify.certification.reals.steps import first_best, pattern, unit
from vitrify.errors import InputError
from vitrify.net.architecture import Architecture
from vitrify.net.conv import Convolution, Convolutional
from vitrify.net.positions import tabulated
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import is_sparse
from vitrify.net.transformer import Block, Transformer
from vitrify.net.weights import Weights

BITS = 53  # of the first try: what balls are computed with, not how wide they are


@dataclass(frozen=True, eq=False)
class Balls:
    """Numbers that lie within `rad` of `mid`, for certain."""

    mid: Float[np.ndarray, "position coordinate"]
    rad: Float[np.ndarray, "position coordinate"]

    def holds(self, numbers: ArrayLike) -> bool:
        """Return whether numbers lie in the balls, as far as float64 can tell."""
        return bool((np.abs(np.asarray(numbers) - self.mid) <= self.rad * (1 + 2.0**-50) + 2.0**-1070).all())


def ball_logits(weights: Weights[Architecture], word: ArrayLike, *, precision: int = BITS) -> Balls:
    """Logits [position, symbol] of a word of input ids, or of a vector, rows or planes of numbers, as balls.

    Row t is read after t tokens. `OpenComparison` is raised where the bits do not decide what a head or router does.
    """
    return RealNet(weights).logits(word, precision=precision)


class RealNet:
    """A network whose weights are turned into exact numbers once, to be run on any number of words."""

    def __init__(self, weights: Weights[Architecture]) -> None:
        weights = tabulated(weights)
        self.net, self.arrays = weights.architecture, weights.arrays
        self._linear: dict[tuple[str, int | None], Linear] = {}
        self._rows: dict[tuple[str, int | None], RealMatrix] = {}

    def logits(self, word: ArrayLike, *, precision: int = BITS) -> Balls:
        """Return the logits after each token; see `ball_logits`."""
        logits = self.run(word, precision=precision)["hook_logits"]
        with ctx.workprec(precision):
            return shown(logits, self.unread)

    @property
    def unread(self) -> int:
        """Return the number of leading positions without an answer: all pads but one, or all but one for a vector."""
        net = self.net
        if not isinstance(net, Transformer | Recurrent) or net.reads == "rows":
            return 0
        return (net.pads if net.reads == "tokens" else net.max_length) - 1

    def run(self, word: ArrayLike, *, precision: int = BITS) -> dict[str, RealMatrix]:
        """The logits of one run, and the residual stream of a transformer at every moment, at every position."""
        with ctx.workprec(precision):
            return _RealRun(self).run(word)

    def linear(self, name: str, place: int | None = None) -> Linear:
        """A stored matrix, or that of one head."""
        key = name, place
        if key not in self._linear:
            matrix = self.arrays[name] if place is None else self.arrays[name][place]
            if isinstance(self.net, Convolutional) and matrix.ndim == 4:  # a kernel meets windows as a matrix does rows
                matrix = matrix.reshape(len(matrix), -1).T
            self._linear[key] = Linear(matrix)
        return self._linear[key]

    def row(self, name: str, place: int | None = None) -> RealMatrix:
        """A stored row, or that of one head or token."""
        key = name, place
        if key not in self._rows:
            array = self.arrays[name] if place is None else self.arrays[name][[place]]
            self._rows[key] = exact(array.toarray() if is_sparse(array) else np.asarray(array))
        return self._rows[key]


class _RealRun:
    """One run over one word."""

    def __init__(self, source: RealNet) -> None:
        self.source, self.net = source, source.net
        self.seen: dict[str, RealMatrix] = {}

    def run(self, word: ArrayLike) -> dict[str, RealMatrix]:
        net = self.net
        if isinstance(net, Convolutional):
            y = self.convolved(net, word)
        elif isinstance(net, Recurrent):
            y = self.recurrent(net, self.embedded(net, word))
        else:
            assert isinstance(net, Transformer)
            y = self.normed("ln_final", self.stack(net, self.embedded(net, word)), 2 * len(net.blocks))
        self.seen["hook_logits"] = self.affine(y, "unembed.W_U", "unembed.b_U")
        return self.seen

    @property
    def transformer(self) -> Transformer:
        assert isinstance(self.net, Transformer)
        return self.net

    def embedded(self, net: Transformer | Recurrent, word: ArrayLike) -> RealMatrix:
        source = self.source
        if net.reads == "tokens":
            ids = [int(i) for i in np.asarray(word, dtype=np.int64).tolist()]
            if not net.min_length <= len(ids) <= net.max_length or not all(0 < i < len(net.inputs) for i in ids):
                raise InputError(f"the net reads {net.min_length} to {net.max_length} of its own tokens, not {ids}")
            x = below([source.row("embed.W_E", i) for i in [0] * net.pads + ids])
        else:
            vector = exact(np.asarray(word, dtype=np.float64))
            x = self.affine(vector, "embed.W_E")
            x = ones(net.max_length) @ x if net.reads == "vector" else x
        if isinstance(net, Recurrent):
            return x
        return x + below([source.row("pos_embed.W_pos", p) for p in range(x.shape[0])])

    def convolved(self, net: Convolutional, planes: ArrayLike) -> RealMatrix:
        if not net.shared:
            raise InputError("convolutions with weights of their own at each position are not run in real arithmetic")
        pixels = np.asarray(planes, dtype=np.float64)
        if pixels.shape != net.maps[0]:
            raise InputError(f"the net reads planes of shape {net.maps[0]}, not {pixels.shape}")
        x, height, width = exact(pixels.reshape(len(pixels), -1)), net.rows, net.columns  # planes [plane, row * column]
        for index, layer in enumerate(net.convolutions):  # windows are rows that meet kernels
            x = relu(self.affine(_windows(layer, x, height, width), f"conv.{index}.W", f"conv.{index}.b")).T
            height, width = layer.places(height, width)
        x = ones(x.shape[1]).T @ x.T  # the sums [1, channel] of the last maps
        for index in range(len(net.dense)):
            x = relu(self.affine(x, f"dense.{index}.W_in", f"dense.{index}.b_in"))
        return x

    def recurrent(self, net: Recurrent, x: RealMatrix) -> RealMatrix:
        y = states(net.cell, self.cell_part("blocks.0"), x)
        return self.mlp("blocks.0", y) if net.units else y

    def stack(self, net: Transformer, x: RealMatrix) -> RealMatrix:
        for turn, (index, block) in enumerate(net.turns):
            name = f"blocks.{index}"
            self.seen[f"blocks.{turn}.hook_resid_pre"] = x
            if block.heads or block.cell:
                y = self.normed(f"{name}.ln1", x, 2 * index)
                out = [self.head(block, index, turn, place, y) for place in range(len(block.heads))]
                if block.cell:
                    h = states(block.cell, self.cell_part(name), y)
                    out.append(self.affine(h, f"{name}.rec.W_C"))
                x = self.joined(x, out)
            self.seen[f"blocks.{turn}.hook_resid_mid"] = x
            if block.units or block.experts:
                y = self.normed(f"{name}.ln2", x, 2 * index + 1)
                out = [self.mlp(name, y)] if block.units else []
                out += [self.experts(block, name, turn, y)] if block.experts else []
                x = self.joined(x, out)
            self.seen[f"blocks.{turn}.hook_resid_post"] = x
        self.seen["hook_resid_post"] = x
        return x

    def joined(self, x: RealMatrix, outputs: list[RealMatrix]) -> RealMatrix:
        if self.transformer.residual == "concatenate":
            return matrices.beside([x, *outputs])
        return reduce(add, outputs, x)

    def affine(self, x: RealMatrix, matrix: str, bias: str | None = None, place: int | None = None) -> RealMatrix:
        """A row times a stored matrix, plus a stored row."""
        y = self.source.linear(matrix, place).of(x)
        return y if bias is None else y + ones(x.shape[0]) @ self.source.row(bias, place)

    def cell_part(self, name: str) -> Callable[..., RealMatrix]:
        """The arrays of a cell: as functions of rows, or one matrix of a stack, or a stored row."""

        def part(array: str, x: RealMatrix | None = None, place: int | None = None) -> RealMatrix:
            if x is None:
                return self.source.row(f"{name}.rec.{array}", place)
            return self.affine(x, f"{name}.rec.{array}", None, place)

        return part

    def head(self, block: Block, index: int, turn: int, place: int, x: RealMatrix) -> RealMatrix:
        name, head = f"blocks.{index}.attn", block.heads[place]
        if head.rotary or head.segment or head.attention == "linear":
            raise InputError("heads with segments, rotary and linear ones are not run in real arithmetic")
        q, k, v = (self.affine(x, f"{name}.W_{letter}", f"{name}.b_{letter}", place) for letter in "QKV")
        q = q.times(float(self.source.arrays[f"{name}.beta"][place]))
        bias = self.source.arrays[f"{name}.b_rel"][place].tolist() if head.window is not None else None
        weights = pattern(head, q, k, bias, f"head {place} of block {turn}")
        return self.affine(weights @ v, f"{name}.W_O", None, place)

    def mlp(self, name: str, x: RealMatrix) -> RealMatrix:
        hidden = relu(self.affine(x, f"{name}.mlp.W_in", f"{name}.mlp.b_in"))
        return self.affine(hidden, f"{name}.mlp.W_out", f"{name}.mlp.b_out")

    def experts(self, block: Block, name: str, turn: int, x: RealMatrix) -> RealMatrix:
        """Return the output of the best expert at each position; of equal scores the first wins."""
        if block.gate:
            raise InputError("the numbers of experts with gates are not bounded: only of those that work alone")
        seen = relu(self.affine(x, f"{name}.moe.router.W_in", f"{name}.moe.router.b_in")) if block.router else x
        scores = self.affine(seen, f"{name}.moe.router.W_out", f"{name}.moe.router.b_out").entries()
        count = len(block.experts)
        width = block.d_out if self.transformer.residual == "concatenate" else self.transformer.d_model
        inputs, outputs = x.entries(), []
        for position in range(x.shape[0]):
            row = scores[position * count : (position + 1) * count]
            number = first_best(row, f"router of block {turn} at position {position}")
            expert, own = block.experts[number], f"{name}.moe.experts.{number}"
            read = [inputs[position * x.shape[1] + dim] for dim in expert.reads]
            hidden = relu(self.affine(together(1, len(read), read), f"{own}.W_in", f"{own}.b_in"))
            written = self.affine(hidden, f"{own}.W_out", f"{own}.b_out").entries()
            line = [(fmpq(0), NOTHING)] * width
            for dim, entry in zip(expert.writes, written, strict=True):
                line[dim] = entry
            outputs += line
        return together(x.shape[0], width, outputs)

    def normed(self, name: str, x: RealMatrix, half: int) -> RealMatrix:
        """Each group with mean 0 and variance 1, then scaled and shifted; all other dimensions as they are."""
        groups = self.transformer.normed(half)
        if not groups:
            return x
        wide, entries, rows = x.shape[1], x.entries(), x.shape[0]
        order = [dim for group in groups for dim in group]
        units = []
        for row in range(rows):
            place = f"layer norm {name} at position {row}"
            for group in groups:
                units += unit([entries[row * wide + dim] for dim in group], self.transformer.eps, place)
        scale, shift = (ones(rows) @ self.source.row(f"{name}.{letter}") for letter in "wb")
        normed = (times(together(rows, len(order), units), scale) + shift).entries()
        for row in range(rows):
            for at, dim in enumerate(order):
                entries[row * wide + dim] = normed[row * len(order) + at]
        return together(rows, wide, entries)


def _windows(layer: Convolution, x: RealMatrix, height: int, width: int) -> RealMatrix:
    """One row per place of the new maps: what its window shows of each plane, with zeros around the planes."""
    entries, outside = x.entries(), (fmpq(0), NOTHING)
    high, wide = layer.places(height, width)

    def seen(plane: int, row: int, column: int) -> Entry:
        inside = 0 <= row < height and 0 <= column < width
        return entries[(plane * height + row) * width + column] if inside else outside

    found = [
        seen(plane, i * layer.stride[0] - layer.pad[0] + down, j * layer.stride[1] - layer.pad[1] + right)
        for i in range(high)
        for j in range(wide)
        for plane in range(x.shape[0])
        for down in range(layer.kernel[0])
        for right in range(layer.kernel[1])
    ]
    return together(high * wide, x.shape[0] * layer.kernel[0] * layer.kernel[1], found)


def shown(x: RealMatrix, skip: int = 0) -> Balls:
    """Midpoints and radii in float64, rounded outwards, of all rows but the first few."""
    values = x.as_balls().entries()
    mid = np.array([float(value.mid()) for value in values]).reshape(x.shape)
    far = [abs(value - arb(float(value.mid()))).upper() for value in values]
    rad = np.array([float(distance) for distance in far]).reshape(x.shape)
    rad = np.where(rad > 0, np.nextafter(rad, np.inf), 0.0)
    return Balls(mid[skip:], rad[skip:])
