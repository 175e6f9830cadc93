r"""A fixed-point net (`fixed_point.py`) with one attention layer, as a layer that two parties can run.

Its values have $b$ bits and its weights are powers of two up to $2^{2S}$, so a summand has $p = b + 2S$ bits, and a
partial sum of $N$ of them costs $p + \lceil\log_2 N\rceil$ like any other (`quantized.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Ints
from vitrify.bounds.fixed_point import FixedNet
from vitrify.bounds.quantized import rounded
from vitrify.errors import InputError
from vitrify.net.attention import allowed_keys


class FixedLayer:
    """The layer of a fixed-point net for words of one length over some of its symbols, asked at the last place."""

    def __init__(self, fixed: FixedNet, symbols: Sequence[str], length: int) -> None:
        net = fixed.net
        if len(net.blocks) != 1 or not net.blocks[0].heads:
            raise InputError(f"this is about nets of one block with heads; the net has {len(net.blocks)}")
        self.fixed, self.heads, self.pads = fixed, len(net.blocks[0].heads), net.pads
        self.bits = fixed.grid.bits + 2 * fixed.grid.score
        self.value_size = net.blocks[0].d_value
        self.places = net.pads + length
        self.ids = np.array([*(net.input_ids[symbol] for symbol in symbols), 0])

    def padded(self, words: ArrayLike) -> Ints:
        """Words with what stands in front of them."""
        words = np.atleast_2d(np.asarray(words, dtype=np.int64))
        return np.pad(words, ((0, 0), (self.pads, 0)), constant_values=len(self.ids) - 1)

    def _stream(self) -> Ints:
        """What symbols are at all places, [place, symbol, model]."""
        return self.fixed.embedded(self.ids[None, :], np.arange(self.places)[:, None])

    def added(self, symbol: int) -> Ints:
        """What symbols add when this one asks."""
        x, last = self._stream(), self.places - 1
        found = []
        for place, head in enumerate(self.fixed.net.blocks[0].heads):
            q, k, v = self.fixed.query_key_value(0, place, x)
            distance = (last - np.arange(self.places))[:, None, None]
            scores = self.fixed.scores(0, place, q[None, last, None, symbol], k, distance)[:, 0]
            allowed = allowed_keys(head, np.array([last]), np.arange(self.places))[0]
            weights = self.fixed.powers(scores) * allowed[:, None]
            found.append(np.concatenate([weights[..., None] * v, weights[..., None]], axis=-1))
        return np.array(found)

    def mix(self, sums: Ints) -> Ints:
        """The one rounding."""
        return rounded(sums[..., :-1], sums[..., -1:])

    def read(self, symbol: int, mixed: Ints) -> Ints:
        """Logits, in whole numbers."""
        x = np.repeat(self._stream()[-1, symbol][None], len(mixed), axis=0)
        return self.fixed.logits(self.fixed.after(0, x, list(np.moveaxis(mixed, 1, 0))))

    def run(self, words: ArrayLike) -> Ints:
        """The fixed-point net itself, at the last place."""
        words = np.atleast_2d(np.asarray(words, dtype=np.int64))
        return self.fixed.run(self.ids[words])[:, -1]
