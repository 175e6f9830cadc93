"""Small networks for tests: random ones of any architecture, one with every kind of head, and one made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from vitrify.net.architecture import Output
from vitrify.net.labels import HeadLabel, Labels, SpaceLabel
from vitrify.net.spaces import OneHot
from vitrify.net.sparse import dense
from vitrify.net.transformer import Block, Groups, Head, Residual, Transformer
from vitrify.net.weights import Weights

LETTERS = ("<s>", "a", "b", "c")

EVERY_HEAD = (
    Head("softmax", "none"),
    Head("softmax", "causal"),
    Head("softmax", "strict"),
    Head("softmax", "causal", window=3),
    Head("sparsemax", "causal"),
    Head("sparsemax", "strict", window=2),
    Head("hard", "causal", ties="left", resolution=1e-9),
    Head("hard", "strict", ties="right", resolution=1e-9),
    Head("hard", "none", ties="average", resolution=0.3),
    Head("softmax", "causal"),  # the same kind as another one, away from it: the two are computed together
)


def altered(weights: Weights[Any], name: str, change: Callable[[Any, Weights[Any]], object]) -> Weights[Any]:
    """Return the network with one array changed in place."""
    values = np.array(dense(weights.arrays[name]))
    change(values, weights)
    return weights.with_array(name, values)


def random_arrays(net: Transformer, seed: int, grid: bool = False) -> dict[str, Any]:
    """Normal numbers for every array of an architecture, or multiples of 1/2 between -1 and 1, which make ties."""
    rng = np.random.default_rng(seed)
    if grid:
        return {name: rng.integers(-2, 3, shape) / 2 for name, shape in net.shapes().items()}
    return {name: rng.normal(scale=0.7, size=shape) for name, shape in net.shapes().items()}


def random_net(net: Transformer, seed: int = 0, labels: Labels | None = None) -> Weights:
    """Weights with random arrays."""
    return Weights(net, random_arrays(net, seed), labels or Labels(), {"seed": seed})


def mixed(**changes: Any) -> Transformer:
    """Three blocks: one with every kind of head, one without MLP, one without heads."""
    fields: dict[str, Any] = {
        "inputs": LETTERS,
        "output": Output("lm", ("a", "b", "</s>")),
        "max_length": 7,
        "d_model": 5,
        "blocks": (
            Block(EVERY_HEAD, d_head=2, d_value=3, units=4, d_out=2),
            Block((Head("softmax", "causal", window=4), Head("sparsemax", "none")), d_head=3, d_value=1, d_out=1),
            Block(units=6, d_out=3),
        ),
        "pads": 2,
        "name": "mixed",
    }
    return Transformer(**{**fields, **changes})


def copycat(sparse: bool = False) -> Weights:
    """A net made by hand: its one head looks one step back and copies the letter that stands there to the output."""
    letter = OneHot(("a", "b"), void=True)
    head = Head("hard", "strict", window=2)
    net = Transformer(
        inputs=("<s>", "a", "b"),
        output=Output("transducer", ("a", "b")),
        max_length=5,
        d_model=4,
        blocks=(Block((head,), d_head=1, d_value=2),),
        name="copycat",
    )
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][1:, :2] = np.eye(2)
    arrays["blocks.0.attn.W_V"][0, :2] = np.eye(2)
    arrays["blocks.0.attn.W_O"][0, :, 2:] = np.eye(2)
    arrays["unembed.W_U"][2:] = np.eye(2)
    if sparse:
        arrays |= {name: csr_array(arrays[name]) for name in ("embed.W_E", "pos_embed.W_pos", "unembed.W_U")}
    labels = Labels(
        spaces=(SpaceLabel("letter", letter, (0, 1), 0, 2), SpaceLabel("previous", letter, (2, 3), 1, 2)),
        heads=(HeadLabel("one step back", 0, 0, writes="previous", gap=1.0, kappa=2.5),),
    )
    return Weights(net, arrays, labels, {"construction": "by hand", "beta": 0.5, "letters": ["a", "b"]})


@st.composite
def heads(draw: st.DrawFn) -> Head:
    """Any head; its resolution is no multiple of a power of two, so that rounding never decides a tie on the grid."""
    return Head(
        attention=draw(st.sampled_from(["softmax", "sparsemax", "hard"])),
        mask=draw(st.sampled_from(["none", "causal", "strict"])),
        window=draw(st.none() | st.integers(1, 4)),
        ties=draw(st.sampled_from(["left", "right", "average"])),
        resolution=draw(st.sampled_from([1e-9, 0.3, 0.7])),
    )


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    """Any small block, also one without heads, without MLP or without either, and heads that score by position only."""
    return Block(
        heads=tuple(draw(st.lists(heads(), max_size=3))),
        d_head=draw(st.integers(0, 3)),
        d_value=draw(st.integers(1, 3)),
        units=draw(st.sampled_from([0, 1, 4])),
        d_out=draw(st.integers(1, 3)),
    )


@st.composite
def transformers(draw: st.DrawFn) -> Transformer:
    """Any small transformer; only one whose residual adds may run its blocks again."""
    residual: Residual = draw(st.sampled_from(["add", "concatenate"]))
    plain = Transformer(
        inputs=LETTERS[: draw(st.integers(2, 4))],
        output=Output("transducer", ("x", "y", "z")[: draw(st.integers(1, 3))]),
        max_length=draw(st.integers(0, 6)),
        d_model=draw(st.integers(1, 4)),
        blocks=tuple(draw(st.lists(blocks(), max_size=3))),
        pads=draw(st.integers(1, 3)),
        residual=residual,
        loops=draw(st.integers(1, 3)) if residual == "add" else 1,
        norm=draw(st.booleans()),
        eps=draw(st.sampled_from([1e-3, 0.5])),
    )
    if not plain.norm or draw(st.booleans()):
        return plain
    return replace(plain, groups=tuple(draw(groups(width)) for width in plain.widths))


@st.composite
def groups(draw: st.DrawFn, width: int) -> Groups:
    """Any groups of some dimensions."""
    dims = draw(st.permutations(range(width)))[: draw(st.integers(0, width))]
    cuts = sorted(draw(st.sets(st.integers(1, max(len(dims) - 1, 1)))))
    parts = [tuple(dims[a:b]) for a, b in pairwise([0, *cuts, len(dims)])]
    return tuple(part for part in parts if part)


@st.composite
def networks(draw: st.DrawFn) -> Weights:
    """Any small network."""
    net = draw(transformers())
    return Weights(net, random_arrays(net, draw(st.integers(0, 2**32 - 1)), grid=draw(st.booleans())))


@st.composite
def words(draw: st.DrawFn, net: Transformer) -> list[int]:
    """Any sequence of ids that a network reads, without the pads."""
    return draw(st.lists(st.integers(1, len(net.inputs) - 1), max_size=net.max_length))
