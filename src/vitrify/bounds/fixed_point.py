r"""Softmax attention in finite precision: the one place that says what that means.

Numbers of the stream are whole multiples of $2^{-f}$ between $-R$ and $R$; all rounding is to the nearest multiple,
halves upwards, and is followed by cutting to that range. Weights are rounded to multiples of $2^{-f}$ once.

- $x = W_E[\text{token}] + W_{pos}$, cut to the range. Queries, keys and values are $xW + b$, rounded.
- A score is $\log_2(e)\,(\beta\,q \cdot k + r)$, rounded to a whole number and cut to $-S \dots S$; so the weight of a
  key, $2^s$, is dyadic. $\log_2(e)\,\beta$ and $\log_2(e)\,r$ are rounded to multiples of $2^{-f}$ like weights.
- What a head brings is $\sum_j 2^{s_j} v_j / \sum_j 2^{s_j}$: both sums exact, *one* rounding for each coordinate.
- The stream after the heads, the hidden units and the stream after the units are rounded once each; logits are exact.

So everything is arithmetic of whole numbers, the order of summation does not matter, and any run can be repeated to the
last bit. A net with $p$ bits for each number has at most $2^{pd}$ vectors of width $d$, its *types*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.bounds.plain import plain_arrays
from vitrify.errors import BuildRefused, InputError
from vitrify.net.attention import allowed_keys
from vitrify.net.weights import Weights

Ints = NDArray[np.int64]

LOG2_E = 1.4426950408889634
MOST_BITS = 52  # of products and of weighted values; a few more are left for sums


@dataclass(frozen=True)
class Grid:
    """Numbers of `fraction` binary digits after the point, up to `top`; scores up to `score`."""

    fraction: int
    top: int
    score: int

    def __post_init__(self) -> None:
        if min(self.fraction, self.top - 1, self.score) < 0:
            raise InputError(f"a grid has 0 digits or more, a top of 1 or more and scores of 0 or more, not {self}")
        if 2 * self.bits + self.fraction > MOST_BITS or 2 * self.score + self.bits > MOST_BITS:
            raise BuildRefused(f"scores or sums on {self} would not fit 64 bits: take fewer digits or smaller scores")

    @property
    def bits(self) -> int:
        """Bits of a number of the stream."""
        return (2 * self.top << self.fraction).bit_length()

    def weight(self, array: Any) -> Ints:
        """Weights as whole multiples."""
        return np.floor(np.asarray(array) * 2.0**self.fraction + 0.5).astype(np.int64)

    def cut(self, numbers: Ints) -> Ints:
        """Numbers cut to the range."""
        most = self.top << self.fraction
        return np.clip(numbers, -most, most)

    def rounded(self, products: Ints) -> Ints:
        """Multiples of $2^{-2f}$ rounded to multiples of $2^{-f}$ and cut to the range."""
        return self.cut(_shifted(products, self.fraction))


def _shifted(numbers: Ints, digits: int) -> Ints:
    """Numbers divided by a power of two and rounded, halves upwards."""
    return (2 * numbers + (1 << digits)) >> (digits + 1)


class FixedNet:
    """A softmax transformer in finite precision, step by step; rows of every array are independent."""

    def __init__(self, weights: Weights[Any], grid: Grid) -> None:
        net = self.net = weights.architecture
        self.grid = grid
        arrays = plain_arrays(weights, "softmax", "is run in finite precision")
        sharp = {name: LOG2_E * arrays[name] for name in arrays if name.endswith(("beta", "b_rel"))}
        self._arrays = {name: grid.weight(array) for name, array in (arrays | sharp).items()}
        most = grid.top << grid.fraction
        for name, array in self._arrays.items():
            terms = most * net.d_head if name.endswith("beta") else max(array.shape, default=1)
            if int(np.abs(array).max(initial=0)) * most * terms >= 1 << 60:
                raise BuildRefused(f"sums with {name} would not fit 64 bits on {grid}: take fewer digits")

    def _affine(self, x: Ints, name: str) -> Ints:
        """$xW + b$ in multiples of $2^{-2f}$; `name` has the letters W and b left out."""
        matrix, bias = (self._arrays[name.replace("*", letter)] for letter in ("W", "b"))
        return x @ matrix + (bias << self.grid.fraction)

    def embedded(self, tokens: Ints, positions: Ints) -> Ints:
        """The stream at the beginning."""
        return self.grid.cut(self._arrays["embed.W_E"][tokens] + self._arrays["pos_embed.W_pos"][positions])

    def asked(self, block: int, place: int, x: Ints) -> tuple[Ints, Ints, Ints]:
        """Queries, keys and values of a head."""
        parts = []
        for letter in "QKV":
            matrix, bias = (self._arrays[f"blocks.{block}.attn.{kind}_{letter}"][place] for kind in ("W", "b"))
            parts.append(self.grid.rounded(x @ matrix + (bias << self.grid.fraction)))
        return parts[0], parts[1], parts[2]

    def scores(self, block: int, place: int, q: Ints, k: Ints, distance: Ints) -> Ints:
        """The whole numbers whose powers of two are the weights of keys, [..., query, key]."""
        name, digits = f"blocks.{block}.attn", self.grid.fraction
        products = (q @ np.swapaxes(k, -1, -2)) * self._arrays[f"{name}.beta"][place]
        if self.net.blocks[block].heads[place].window:
            bias = self._arrays[f"{name}.b_rel"][place]
            products = products + (bias[np.clip(distance, 0, len(bias) - 1)] << 2 * digits)
        return np.clip(_shifted(products, 3 * digits), -self.grid.score, self.grid.score)

    def powers(self, scores: Ints) -> Ints:
        """The weights of keys as whole numbers: $2^{s + S}$."""
        return np.int64(1) << (scores + self.grid.score)

    def after(self, block: int, x: Ints, brought: list[Ints]) -> Ints:
        """The stream after a block whose heads bring these values."""
        total = x << self.grid.fraction
        for place, value in enumerate(brought):
            total = total + value @ self._arrays[f"blocks.{block}.attn.W_O"][place]
        x = self.grid.rounded(total)
        if self.net.blocks[block].units:
            hidden = np.maximum(self.grid.rounded(self._affine(x, f"blocks.{block}.mlp.*_in")), 0)
            x = self.grid.rounded((x << self.grid.fraction) + self._affine(hidden, f"blocks.{block}.mlp.*_out"))
        return x

    def logits(self, x: Ints) -> Ints:
        """The logits, in multiples of $2^{-2f}$."""
        return self._affine(x, "unembed.*_U")

    def run(self, words: Ints) -> Ints:
        """Logits [word, position, out] of words [word, place] of tokens from 1, the pads put in front."""
        net = self.net
        tokens = np.pad(words, ((0, 0), (net.pads, 0)))
        positions = np.arange(tokens.shape[1])
        x = self.embedded(tokens, positions)
        for index, block in enumerate(net.blocks):
            brought = []
            for place, head in enumerate(block.heads):
                q, k, v = self.asked(index, place, x)
                scores = self.scores(index, place, q, k, positions[:, None] - positions)
                weights = self.powers(scores) * allowed_keys(head, positions, positions)
                brought.append(mean(weights @ v, weights.sum(axis=-1, keepdims=True)))
            x = self.after(index, x, brought)
        return self.logits(x)


def mean(sums: Ints, totals: Ints) -> Ints:
    """The quotients rounded to whole numbers, halves upwards; 0 where there is nothing to divide by."""
    return np.where(totals > 0, (2 * sums + totals) // np.maximum(2 * totals, 1), 0)
