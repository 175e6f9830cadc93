"""Random nets with hard attention, on a grid where floating-point arithmetic is exact."""

from __future__ import annotations

from hypothesis import strategies as st

from nets import random_arrays
from vitrify.net.architecture import Output
from vitrify.net.transformer import Block, Head, Ties, Transformer
from vitrify.net.weights import Weights


@st.composite
def hard_nets(draw: st.DrawFn, max_length: int = 5, ties: tuple[Ties, ...] = ("left", "right")) -> Weights:
    """Small nets over two or three letters, with any masks, windows and ties."""
    letters = draw(st.integers(2, 3))
    net = Transformer(
        inputs=("<s>", "a", "b", "c")[: letters + 1],
        output=Output(draw(st.sampled_from(["class", "next", "values"])), ("x", "y")),
        max_length=max_length,
        d_model=3,
        blocks=tuple(draw(st.lists(_blocks(ties), min_size=1, max_size=2))),
        pads=draw(st.integers(1, 2)),
    )
    arrays = random_arrays(net, draw(st.integers(0, 2**32 - 1)), grid=True)
    if draw(st.booleans()):
        arrays["pos_embed.W_pos"][:] = 0.0
    return Weights(net, arrays)


@st.composite
def _blocks(draw: st.DrawFn, ties: tuple[Ties, ...]) -> Block:
    return Block(
        heads=tuple(draw(st.lists(_heads(ties), max_size=2))),
        d_head=draw(st.integers(0, 2)),
        d_value=draw(st.integers(1, 2)),
        units=draw(st.sampled_from([0, 3])),
    )


@st.composite
def _heads(draw: st.DrawFn, ties: tuple[Ties, ...]) -> Head:
    return Head(
        attention="hard",
        mask=draw(st.sampled_from(["none", "causal", "strict", "after"])),
        window=draw(st.sampled_from([None, None, 2])),
        ties=draw(st.sampled_from(ties)),
        resolution=draw(st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.3])),
    )
