r"""Networks in real arithmetic: the stored weights are exact numbers, and every result is a ball around the true one.

This is a second implementation of what `net/` computes in floating point, and shares no code with its forward pass.
Matrices are exact fractions plus balls (`reals.py`). What only adds, multiplies, compares or averages stays exact, so
hard attention over exact scores sees true ties; a softmax, a root or a $\tanh$ makes balls. A comparison that decides
something and that the balls leave open (the tied keys of a hard head, a router's choice, whether a group of a layer
norm varies at all) raises `Open`, and the caller asks again with more bits. Two steps need no decision, as they are
continuous: a ReLU of an open sign is a ball from 0 on; and the threshold of a sparsemax moves by at most $\delta$ when
scores do, so a weight moves by at most $2\delta$ and is exactly 0 where it is that far below.

With a `roundoff` $u$ the balls also hold whatever a run in floating point with unit roundoff $u$ may compute, in any
order of summation (Higham, *Accuracy and Stability of Numerical Algorithms*, chapter 3): a sum of $k$ products is
widened by $\gamma_{k+2} \sum |x||w|$ with $\gamma_k = ku/(1-ku)$, and each further step by its own rounding.
Exponentials and $\tanh$ are taken to be right within 4 units in the last place. Parallel cells are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import ArrayLike, NDArray

from vitrify.certify.ball_cells import states, times
from vitrify.certify.ball_conv import pooled
from vitrify.certify.ball_steps import Rounded, first_best, pattern, sizes, unit
from vitrify.certify.reals import NOTHING, Linear, Reals, below, beside, exact, ones, relu, together
from vitrify.errors import InputError
from vitrify.net.conv import Convolutional
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import is_sparse
from vitrify.net.transformer import Block, Groups, Transformer
from vitrify.net.weights import Weights

BITS = 53  # of the first try: what balls are computed with, not how wide they are


@dataclass(frozen=True, eq=False)
class Balls:
    """Numbers that lie within `rad` of `mid`, for certain; both [position, coordinate]."""

    mid: NDArray[np.float64]
    rad: NDArray[np.float64]

    def holds(self, numbers: ArrayLike) -> bool:
        """Whether numbers lie in the balls, as far as float64 can tell."""
        return bool((np.abs(np.asarray(numbers) - self.mid) <= self.rad * (1 + 2.0**-50) + 2.0**-1070).all())


def ball_logits(weights: Weights[Any], word: ArrayLike, *, precision: int = BITS, roundoff: float = 0.0) -> Balls:
    """Logits [position, symbol] of a word of input ids, or of a vector, rows or planes of numbers, as balls.

    Row t is read after t tokens. `Open` is raised where so many bits do not decide what a head or a router does.
    """
    return RealNet(weights).logits(word, precision=precision, roundoff=roundoff)


class RealNet:
    """A network whose weights are turned into exact numbers once, to be run on any number of words."""

    def __init__(self, weights: Weights[Any]) -> None:
        self.net, self.arrays = weights.architecture, weights.arrays
        self._linear: dict[tuple[str, int | None], Linear] = {}
        self._rows: dict[tuple[str, int | None], Reals] = {}

    def logits(self, word: ArrayLike, *, precision: int = BITS, roundoff: float = 0.0) -> Balls:
        """What is said after each token; see `ball_logits`."""
        found = self.run(word, precision=precision, roundoff=roundoff)["hook_logits"]
        with ctx.workprec(precision):
            return shown(found, self.unread)

    def residuals(self, word: ArrayLike, *, precision: int = BITS, roundoff: float = 0.0) -> dict[str, Balls]:
        """What goes from layer to layer at every moment (by its name) and at every position, pads included."""
        found = self.run(word, precision=precision, roundoff=roundoff)
        with ctx.workprec(precision):
            return {moment: shown(value) for moment, value in found.items() if moment != "hook_logits"}

    @property
    def unread(self) -> int:
        """Positions in front at which nothing is asked: all pads but the last; all but the last for a vector."""
        if self.net.reads == "tokens":
            return int(self.net.pads) - 1
        return int(self.net.max_length) - 1 if self.net.reads == "vector" else 0

    def run(self, word: ArrayLike, *, precision: int = BITS, roundoff: float = 0.0) -> dict[str, Reals]:
        """The logits and the moments of one run, at every position."""
        with ctx.workprec(precision):
            return _Run(self, roundoff).run(word)

    def linear(self, name: str, place: int | None = None) -> Linear:
        """A stored matrix, or that of one head."""
        key = name, place
        if key not in self._linear:
            matrix = self.arrays[name] if place is None else self.arrays[name][place]
            if isinstance(self.net, Convolutional) and matrix.ndim == 4:  # a kernel meets windows as a matrix does rows
                matrix = matrix.reshape(len(matrix), -1).T
            self._linear[key] = Linear(matrix)
        return self._linear[key]

    def row(self, name: str, place: int | None = None) -> Reals:
        """A stored row, or that of one head or token."""
        key = name, place
        if key not in self._rows:
            array = self.arrays[name] if place is None else self.arrays[name][[place]]
            self._rows[key] = exact(array.toarray() if is_sparse(array) else np.asarray(array))
        return self._rows[key]


class _Run:
    """One run over one word."""

    def __init__(self, source: RealNet, roundoff: float) -> None:
        self.source, self.net = source, source.net
        self.rounded = Rounded(roundoff)
        self.seen: dict[str, Reals] = {}

    def run(self, word: ArrayLike) -> dict[str, Reals]:
        if isinstance(self.net, Convolutional):
            y = self.convolved(word)
            self.seen["hook_logits"] = self.affine(y, "unembed.W_U", "unembed.b_U")
            return self.seen
        x = self.embedded(word)
        if isinstance(self.net, Recurrent):
            y = self.recurrent(x)
        else:
            y = self.normed("ln_final", self.stack(self.net, x), 2 * len(self.net.blocks))
        self.seen["hook_logits"] = self.affine(y, "unembed.W_U", "unembed.b_U")
        return self.seen

    def embedded(self, word: ArrayLike) -> Reals:
        net, source = self.net, self.source
        if net.reads == "tokens":
            ids = [int(i) for i in np.asarray(word, dtype=np.int64).tolist()]
            if not net.min_length <= len(ids) <= net.max_length or not all(0 < i < len(net.inputs) for i in ids):
                raise InputError(f"the net reads {net.min_length} to {net.max_length} of its own tokens, not {ids}")
            x = below([source.row("embed.W_E", i) for i in [0] * net.pads + ids])
        else:
            given = exact(np.asarray(word, dtype=np.float64))
            x = self.affine(given, "embed.W_E")
            x = ones(net.max_length) @ x if net.reads == "vector" else x
        if isinstance(net, Recurrent):
            return x
        return self.rounded.sum([x, below([source.row("pos_embed.W_pos", p) for p in range(x.shape[0])])])

    def convolved(self, planes: ArrayLike) -> Reals:
        given = np.asarray(planes, dtype=np.float64)
        if given.shape != self.net.maps[0]:
            raise InputError(f"the net reads planes of shape {self.net.maps[0]}, not {given.shape}")
        x = pooled(self.net, self.affine, exact(given.reshape(len(given), -1)), self.rounded)
        for index in range(len(self.net.dense)):
            x = relu(self.affine(x, f"dense.{index}.W_in", f"dense.{index}.b_in"))
        return x

    def recurrent(self, x: Reals) -> Reals:
        self.seen["hook_embed"] = x
        y = states(self.net.cell, self.cell_part("blocks.0"), x, self.rounded)
        self.seen["blocks.0.hook_state"] = y
        if self.net.units:
            y = self.mlp("blocks.0", y)
            self.seen["blocks.0.hook_mlp_out"] = y
        return y

    def stack(self, net: Transformer, x: Reals) -> Reals:
        for turn, (index, block) in enumerate(net.turns):
            name = f"blocks.{index}"
            self.seen[f"blocks.{turn}.hook_resid_pre"] = x
            if block.heads or block.cell:
                y = self.normed(f"{name}.ln1", x, 2 * index)
                out = [self.head(block, index, turn, place, y) for place in range(len(block.heads))]
                if block.cell:
                    h = states(block.cell, self.cell_part(name), y, self.rounded)
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

    def joined(self, x: Reals, outputs: list[Reals]) -> Reals:
        if self.net.residual == "concatenate":
            return beside([x, *outputs])
        return self.rounded.sum([x, *outputs])

    def affine(self, x: Reals, matrix: str, bias: str | None = None, place: int | None = None) -> Reals:
        """A row times a stored matrix, plus a stored row."""
        w = self.source.linear(matrix, place)
        y = w.of(x)
        b = None if bias is None else ones(x.shape[0]) @ self.source.row(bias, place)
        y = y if b is None else y + b
        if not self.rounded.u:
            return y
        size = w.size_of(x.whole())
        return self.rounded.widened(y, size if b is None else size + sizes(b.whole()), w.shape[0] + 2)

    def cell_part(self, name: str) -> Callable[..., Any]:
        """The arrays of a cell: as functions of rows, or one matrix of a stack, or a stored row."""

        def part(array: str, x: Reals | None = None, place: int | None = None) -> Reals:
            if x is None:
                return self.source.row(f"{name}.rec.{array}", place)
            return self.affine(x, f"{name}.rec.{array}", None, place)

        return part

    def head(self, block: Block, index: int, turn: int, place: int, x: Reals) -> Reals:
        name, head = f"blocks.{index}.attn", block.heads[place]
        if head.rotary or head.attention == "linear":
            raise InputError("the numbers of rotary and linear heads are not bounded: only training makes them")
        q, k, v = (self.affine(x, f"{name}.W_{letter}", f"{name}.b_{letter}", place) for letter in "QKV")
        q = q.times(float(self.source.arrays[f"{name}.beta"][place]))
        bias = self.source.arrays[f"{name}.b_rel"][place].tolist() if head.window is not None else None
        where = f"head {place} of block {turn}"
        weights = pattern(head, q, k, bias, self.rounded, where)
        z = weights @ v
        if self.rounded.u:
            z = self.rounded.widened(z, sizes(weights.whole()) * sizes(v.whole()), x.shape[0] + 2)
        written = self.affine(z, f"{name}.W_O", None, place)
        if self.rounded.u and len(block.heads) > 1:  # heads may be added up in one long sum
            size = self.source.linear(f"{name}.W_O", place).size_of(z.whole())
            written = self.rounded.widened(written, size, len(block.heads) * (block.d_value + 1) + 2)
        return written

    def mlp(self, name: str, x: Reals) -> Reals:
        hidden = relu(self.affine(x, f"{name}.mlp.W_in", f"{name}.mlp.b_in"))
        return self.affine(hidden, f"{name}.mlp.W_out", f"{name}.mlp.b_out")

    def experts(self, block: Block, name: str, turn: int, x: Reals) -> Reals:
        """What the best expert at each position writes; of equal scores the first wins."""
        if block.gate:
            raise InputError("the numbers of experts with gates are not bounded: only of those that work alone")
        seen = relu(self.affine(x, f"{name}.moe.router.W_in", f"{name}.moe.router.b_in")) if block.router else x
        scores = self.affine(seen, f"{name}.moe.router.W_out", f"{name}.moe.router.b_out").entries()
        count = len(block.experts)
        width = block.d_out if self.net.residual == "concatenate" else self.net.d_model
        given, found = x.entries(), []
        for position in range(x.shape[0]):
            row = scores[position * count : (position + 1) * count]
            number = first_best(row, f"router of block {turn} at position {position}")
            expert, own = block.experts[number], f"{name}.moe.experts.{number}"
            read = [given[position * x.shape[1] + dim] for dim in expert.reads]
            hidden = relu(self.affine(together(1, len(read), read), f"{own}.W_in", f"{own}.b_in"))
            written = self.affine(hidden, f"{own}.W_out", f"{own}.b_out").entries()
            line = [(fmpq(0), NOTHING)] * width
            for dim, entry in zip(expert.writes, written, strict=True):
                line[dim] = entry
            found += line
        return together(x.shape[0], width, found)

    def normed(self, name: str, x: Reals, half: int) -> Reals:
        """Each group with mean 0 and variance 1, then scaled and shifted; all other dimensions as they are."""
        groups: Groups = self.net.normed(half)
        if not groups:
            return x
        wide, entries, rows = x.shape[1], x.entries(), x.shape[0]
        order = [dim for group in groups for dim in group]
        found = []
        for row in range(rows):
            place = f"layer norm {name} at position {row}"
            for group in groups:
                found += unit([entries[row * wide + dim] for dim in group], self.net.eps, self.rounded, place)
        scale, shift = (ones(rows) @ self.source.row(f"{name}.{letter}") for letter in "wb")
        scaled = times(together(rows, len(order), found), scale, self.rounded)
        normed = self.rounded.sum([scaled, shift]).entries()
        for row in range(rows):
            for at, dim in enumerate(order):
                entries[row * wide + dim] = normed[row * len(order) + at]
        return together(rows, wide, entries)


def shown(x: Reals, skip: int = 0) -> Balls:
    """Midpoints and radii in float64, rounded outwards, of all rows but the first few."""
    values = x.whole().entries()
    mid = np.array([float(value.mid()) for value in values]).reshape(x.shape)
    far = [abs(value - arb(float(value.mid()))).upper() for value in values]
    rad = np.array([float(distance) for distance in far]).reshape(x.shape)
    rad = np.where(rad > 0, np.nextafter(rad, np.inf), 0.0)
    return Balls(mid[skip:], rad[skip:])
