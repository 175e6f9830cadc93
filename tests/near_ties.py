"""Nets made by hand in which one score leads another by the square of a small number."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.net.architecture import Output
from vitrify.net.experts import Expert
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

SLIGHT = 2.0**-40  # its square is 2^-80, far below what float64 can add to 1
A, B = 1, 2


def chooser(head: Head, lead: float, *, soft: bool = False) -> Weights:
    """A net that says the letter that its hard head looks at; the score of b leads that of a by `lead` squared.

    With `soft` both scores are also multiplied by the share that a softmax head gives to the letters, which is no
    fraction.
    """
    first = Block((Head("softmax"),), d_head=1, d_value=1)
    net = Transformer(
        inputs=("<s>", "a", "b"),
        output=Output("transducer", ("a", "b")),
        max_length=4,
        d_model=7,
        blocks=(*[first] * soft, Block((head,), d_head=2, d_value=2)),
    )
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][:, :4] = [[-1, 0, 0, 0], [1, 0, 1, 0], [1, lead, 0, 1]]
    arrays["unembed.W_U"][4:6] = np.eye(2)
    if soft:
        arrays["blocks.0.attn.beta"][:] = 1.0
        arrays["blocks.0.attn.b_Q"][:] = 1.0
        arrays["blocks.0.attn.W_K"][0, 0] = 1.0
        arrays["blocks.0.attn.W_V"][0, 2:4] = 1.0
        arrays["blocks.0.attn.W_O"][0, 0, 6] = 1.0
    last = f"blocks.{int(soft)}.attn"
    arrays[f"{last}.beta"][:] = 1.0
    if soft:
        arrays[f"{last}.W_Q"][0, 6] = [1.0, lead]
    else:
        arrays[f"{last}.b_Q"][0] = [1.0, lead]
    arrays[f"{last}.W_K"][0, :2] = np.eye(2)
    arrays[f"{last}.W_V"][0, 2:4] = np.eye(2)
    arrays[f"{last}.W_O"][0, :, 4:6] = np.eye(2)
    return Weights(net, arrays)


def router(lead: float) -> Weights:
    """A net of two experts, of which the second leads by `lead` squared: it says b, the first says a."""
    block = Block(experts=(Expert((0,), 1, (0,)), Expert((0,), 1, (1,))), router=2)
    net = Transformer(("<s>", "a"), Output("transducer", ("a", "b")), 2, 2, (block,))
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["blocks.0.moe.router.b_in"][:] = [1.0, lead]
    arrays["blocks.0.moe.router.W_out"][:] = [[1.0, 1.0], [0.0, lead]]
    for expert in range(2):
        arrays[f"blocks.0.moe.experts.{expert}.b_out"][:] = 1.0
    arrays["unembed.W_U"][:] = np.eye(2)
    return Weights(net, arrays)
