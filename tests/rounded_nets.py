"""Nets whose rounding is large where what they compute is small: one for each step of a forward pass.

Each adds up numbers of about `LARGE` that nearly cancel, or adds a small number to a large one. All other steps round
nothing, so a bound that forgets the rounding of that step is too small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from vitrify.arrays import Arrays
from vitrify.net.architecture import Output
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.spaces import Reals
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

LARGE = 1e12  # float64 rounds such numbers to multiples of 2**-13
TERMS = LARGE / 3 * np.array([0.1, 0.7, -0.3, -0.5])  # nearly add up to 0, and not to the same number in any order
WIDTH = 6  # dimensions: the terms are read from the first four, one is written, one is spare
WRITTEN, SPARE = 4, 5

Net = Weights[Transformer]


def _net(blocks: Sequence[Block], born: int, change: Callable[[Arrays], None], dies: int = 9) -> Net:
    """Return a net of two tokens whose answer is dimension `WRITTEN`, after `change` has set its arrays."""
    net = Transformer(("<s>", "a", "b"), Output("class", ("x", "y")), 3, WIDTH, tuple(blocks))
    arrays: Arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][1:, :4] = 1.0
    arrays["unembed.W_U"][WRITTEN, 0], arrays["unembed.W_U"][0, 1] = 1.0, -1.0
    for name in arrays:
        if name.endswith("beta"):
            arrays[name][:] = 1.0
    change(arrays)
    label = SpaceLabel("written", Reals(("x",), -LARGE, LARGE), (WRITTEN,), born, dies)
    return Weights(net, arrays, Labels((label,)))


ONE_KEY = Block((Head("hard", "causal", window=1),), 1, 2, 0)
TWO_UNITS = Block((), 0, 0, 2)


def embedding() -> Net:
    """Position embeddings are shifted by `LARGE`, and token embeddings added to them."""

    def change(arrays: Arrays) -> None:
        arrays["pos_embed.W_pos"][:, WRITTEN] = LARGE
        arrays["embed.W_E"][1:, WRITTEN] = 1 / 3, 2 / 3

    return _net((), 0, change)


def values() -> Net:
    """Two values of about `LARGE` cancel in W_O: the map from the residual stream to the output is nearly 0."""

    def change(arrays: Arrays) -> None:
        arrays["blocks.0.attn.W_V"][0, :4, 0] = LARGE / 7 + TERMS
        arrays["blocks.0.attn.W_V"][0, :4, 1] = LARGE / 7 + TERMS[::-1]
        arrays["blocks.0.attn.W_O"][0, :, WRITTEN] = 1.0, -1.0

    return _net([ONE_KEY], 1, change)


def shared_values() -> Net:
    """All keys have one value, far from 0, and share the weight: their mean has no spread."""

    def change(arrays: Arrays) -> None:
        arrays["blocks.0.attn.b_V"][0, 0] = LARGE / 9
        arrays["blocks.0.attn.W_O"][0, 0, WRITTEN] = 1.0

    return _net([Block((Head("softmax", "causal"),), 1, 1, 0)], 1, change)


def queries() -> Net:
    """A query is a sum of terms that cancel, so in float64 the wrong keys win."""
    terms = TERMS[[3, 1, 0, 2]]

    def change(arrays: Arrays) -> None:
        arrays["embed.W_E"][:, :4] = 1.0
        arrays["embed.W_E"][:, SPARE] = -2.0, 1.0, -1.0
        arrays["blocks.0.attn.W_Q"][0, :4, 0] = terms
        true, rounded = float(sum(map(Fraction, terms.tolist()))), float(np.ones(4) @ terms)
        arrays["blocks.0.attn.b_Q"][0, 0] = -(true + rounded) / 2  # between what it is and what is computed
        arrays["blocks.0.attn.W_K"][0, SPARE, 0] = arrays["blocks.0.attn.W_V"][0, SPARE, 0] = 1.0
        arrays["blocks.0.attn.W_O"][0, 0, WRITTEN] = 1.0
        arrays["unembed.W_U"][0, 1] = 0.0

    return _net([Block((Head("hard", "causal"),), 1, 1, 0)], 1, change)


def residual() -> Net:
    """A head adds 1/3 to a dimension that holds `LARGE`."""

    def change(arrays: Arrays) -> None:
        arrays["embed.W_E"][1:, WRITTEN], arrays["embed.W_E"][:, SPARE] = LARGE, 1 / 3
        arrays["blocks.0.attn.W_V"][0, SPARE, 0] = arrays["blocks.0.attn.W_O"][0, 0, WRITTEN] = 1.0

    return _net([ONE_KEY], 1, change)


def units() -> Net:
    """A unit reads four terms that cancel."""

    def change(arrays: Arrays) -> None:
        arrays["blocks.0.mlp.W_in"][:4, 0], arrays["blocks.0.mlp.b_in"][0] = TERMS, 1.0
        arrays["blocks.0.mlp.W_out"][0, WRITTEN] = 1.0

    return _net([TWO_UNITS], 2, change)


def written() -> Net:
    """Four units cancel in what they write."""

    def change(arrays: Arrays) -> None:
        arrays["blocks.0.mlp.W_in"][range(4), range(4)] = 1.0
        arrays["blocks.0.mlp.W_out"][:, WRITTEN] = TERMS

    return _net([Block((), 0, 0, 4)], 2, change)


def erased() -> Net:
    """A unit takes a number away whose difference from its least value float64 can't hold."""

    def change(arrays: Arrays) -> None:
        arrays["embed.W_E"][1:, WRITTEN] = 2.0**40 - 2.0**-13, 2.0**40 - 2.0**-12  # 1/3 more has one digit less
        arrays["blocks.0.mlp.W_in"][WRITTEN, 0], arrays["blocks.0.mlp.W_out"][0, WRITTEN] = 1.0, -1.0
        arrays["blocks.0.mlp.b_in"][0], arrays["blocks.0.mlp.b_out"][WRITTEN] = 1 / 3, 1 / 3

    return _net([TWO_UNITS], 0, change, dies=1)


def pads() -> Net:
    """Units write a sum of terms that cancel at the pad only, and all tokens read it there."""

    def change(arrays: Arrays) -> None:
        arrays["embed.W_E"][:, :4] = np.array([[1.0], [0.0], [0.0]])
        arrays["blocks.0.mlp.W_in"][:4, 0], arrays["blocks.0.mlp.b_in"][0] = TERMS, 1.0
        arrays["blocks.0.mlp.W_out"][0, SPARE] = 1.0
        arrays["blocks.1.attn.b_Q"][0, 0], arrays["blocks.1.attn.W_K"][0, 0, 0] = 100.0, 1.0
        arrays["blocks.1.attn.W_V"][0, SPARE, 0] = arrays["blocks.1.attn.W_O"][0, 0, WRITTEN] = 1.0

    weights = _net([TWO_UNITS, Block((Head("hard", "causal", resolution=1.0),), 1, 1, 0)], 3, change)
    label = SpaceLabel("made", Reals(("x",), -LARGE, LARGE), (SPARE,), 2, 9)
    return Weights(weights.architecture, weights.arrays, Labels((*weights.labels.spaces, label)))


def logits() -> Net:
    """The unembedding adds up terms that cancel."""

    def change(arrays: Arrays) -> None:
        arrays["unembed.W_U"][:4, 0], arrays["unembed.W_U"][:, 1] = TERMS, 0.0
        arrays["unembed.b_U"][1] = 5.0

    return _net((), 0, change)


ROUNDED_NETS: dict[str, Callable[[], Net]] = {
    make.__name__: make
    for make in (
        embedding,
        values,
        shared_values,
        queries,
        residual,
        units,
        written,
        erased,
        pads,
        logits,
    )
}
