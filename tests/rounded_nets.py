"""Nets whose rounding is large where the spread of their values is small: one for each step of a forward pass.

Each adds up numbers of about `LARGE` that cancel, so the true result is small and what is rounded on the way is not.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from vitrify.arrays import Arrays
from vitrify.net.architecture import Output
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.spaces import Reals
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

LARGE = 1e12  # float64 rounds such numbers to multiples of 2**-13
WIDTH = 6  # dimensions: four are read, one is written, one is spare
TERMS = LARGE / 3 * np.array([0.1, 0.7, -0.3, -0.5])  # nearly add up to 0, and not to the same number in any order


def _net(block: Block | None, born: int, change: Callable[[Arrays], None]) -> Weights[Transformer]:
    """Return a net of two tokens in which `change` has set the arrays; dimension 4 holds the space that it writes."""
    blocks = () if block is None else (block,)
    net = Transformer(("<s>", "a", "b"), Output("class", ("x", "y")), 3, WIDTH, blocks)
    arrays: Arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][1, :4], arrays["embed.W_E"][2, :4] = 1.0, 1.0
    arrays["unembed.W_U"][4, 0], arrays["unembed.b_U"][1] = 1.0, 1.0
    if "blocks.0.attn.beta" in arrays:
        arrays["blocks.0.attn.beta"][:] = 1.0
    change(arrays)
    label = SpaceLabel("written", Reals(("x",), -LARGE, LARGE), (4,), born, 2)
    return Weights(net, arrays, Labels((label,)))


def values() -> Weights[Transformer]:
    """Two values of about `LARGE` cancel in W_O: the map from the residual stream to the output is nearly 0."""

    def change(arrays: Arrays) -> None:
        arrays["blocks.0.attn.W_V"][0, :4, 0] = LARGE / 7 + TERMS
        arrays["blocks.0.attn.W_V"][0, :4, 1] = LARGE / 7 + TERMS[::-1]
        arrays["blocks.0.attn.W_O"][0, :, 4] = 1.0, -1.0

    return _net(Block((Head("hard", "causal", window=1),), 1, 2, 0), 1, change)


def shared_values() -> Weights[Transformer]:
    """All keys have one value, far from 0, and share the weight: their mean has no spread."""

    def change(arrays: Arrays) -> None:
        arrays["blocks.0.attn.b_V"][0, 0] = LARGE / 7
        arrays["blocks.0.attn.W_O"][0, 0, 4] = 1 / 3

    return _net(Block((Head("softmax", "causal"),), 1, 1, 0), 1, change)


def erased() -> Weights[Transformer]:
    """A unit takes a number of about `LARGE` away whose difference from its least value float64 can't hold."""

    def change(arrays: Arrays) -> None:
        arrays["embed.W_E"][1:, 4] = 2.0**40 - 2.0**-13, 2.0**40 - 2.0**-12  # with 1/3 more, digits are half as fine
        arrays["blocks.0.mlp.W_in"][4, 0] = 1.0
        arrays["blocks.0.mlp.W_out"][0, 4] = -1.0
        arrays["blocks.0.mlp.b_in"][0], arrays["blocks.0.mlp.b_out"][4] = 1 / 3, 1 / 3

    weights = _net(Block((), 0, 0, 1), 0, change)
    label = weights.labels.spaces[0]
    return Weights(weights.architecture, weights.arrays, Labels((SpaceLabel(label.name, label.kind, (4,), 0, 1),)))


def positions() -> Weights[Transformer]:
    """Position codes shifted by `LARGE`: token and position embedding are added."""

    def change(arrays: Arrays) -> None:
        arrays["pos_embed.W_pos"][:, 4] = LARGE
        arrays["embed.W_E"][1:, 4] = 1 / 3, 2 / 3
        arrays["unembed.b_U"][:] = -LARGE, 1e6

    return _net(None, 0, change)


def pads() -> Weights[Transformer]:
    """What a pad holds is off by the rounding of four large terms; tokens read it from there."""

    def change(arrays: Arrays) -> None:
        arrays["embed.W_E"][0, :4] = 1.0
        arrays["blocks.0.mlp.W_in"][:4, 0] = TERMS
        arrays["blocks.0.mlp.b_in"][0] = 1.0
        arrays["blocks.0.mlp.W_out"][0, 4] = 1.0
        arrays["embed.W_E"][1:, :4] = 0.0
        arrays["blocks.1.attn.W_V"][0, 4, 0] = arrays["blocks.1.attn.W_O"][0, 0, 5] = 1.0
        arrays["blocks.1.attn.b_Q"][0, 0] = 100.0
        arrays["embed.W_E"][0, 5] = 1.0
        arrays["blocks.1.attn.W_K"][0, 5, 0] = 1.0
        arrays["blocks.1.attn.beta"][:] = 1.0
        arrays["unembed.W_U"][5, 0], arrays["unembed.W_U"][4, 0] = 1.0, 0.0
        arrays["unembed.b_U"][1] = -5.0

    blocks = (Block((), 0, 0, 1), Block((Head("hard", "causal", resolution=1.0),), 1, 1, 0))
    net = Transformer(("<s>", "a", "b"), Output("class", ("x", "y")), 3, WIDTH, blocks)
    arrays: Arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    change(arrays)
    kind = Reals(("x",), -LARGE, LARGE)
    return Weights(net, arrays, Labels((SpaceLabel("made", kind, (4,), 2, 4), SpaceLabel("read", kind, (5,), 3, 4))))


def scores() -> Weights[Transformer]:
    """A query is the sum of four large numbers that cancel, so its scores may order the keys either way."""

    def change(arrays: Arrays) -> None:
        arrays["embed.W_E"][:, :4] = 1.0
        arrays["embed.W_E"][:, 5] = -2.0, 1.0, -1.0
        arrays["blocks.0.attn.W_Q"][0, :4, 0] = TERMS
        true, rounded = float(sum(map(Fraction, TERMS.tolist()))), float(np.ones(4) @ TERMS)
        arrays["blocks.0.attn.b_Q"][0, 0] = -(true + rounded) / 2  # between what it is and what is computed
        arrays["blocks.0.attn.W_K"][0, 5, 0] = 1.0
        arrays["blocks.0.attn.W_V"][0, 5, 0] = arrays["blocks.0.attn.W_O"][0, 0, 4] = 1.0
        arrays["unembed.b_U"][1] = 0.0

    return _net(Block((Head("hard", "causal"),), 1, 1, 0), 1, change)


NETS: dict[str, Callable[[], Weights[Transformer]]] = {
    "values": values,
    "shared values": shared_values,
    "erased": erased,
    "positions": positions,
    "pads": pads,
    "scores": scores,
}
