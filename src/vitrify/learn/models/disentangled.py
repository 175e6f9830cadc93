r"""Disentangled transformers: heads append what they read, and only attention matrices and the readout are trained.

The stream begins with the token and its place, both one-hot, and a head with the matrix $A$ appends
$\sum_j \mathrm{softmax}_j(x_i A x_j^\top)\, x_j$, so that the width grows by the factor $1 + H$ with each layer of $H$
heads. Everything starts at zero. Source: Nichani, Damian and Lee 2024, arXiv 2402.14735. Where places are `relative`,
the stream is the token alone, and each head adds a trained number for the distance to its scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import jax.numpy as jnp

from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Family, Parameters, Sandbox, inputs_of, normal
from vitrify.net.transformer import Block, Transformer
from vitrify.parameters import Count, Natural, NonNegative, later

WIDEST = 4096


@dataclass(frozen=True)
class DisentangledFamily(Family, small={"heads": (1, 1)}):
    """One layer for each number in `heads`: how many heads it has.

    Without pads nothing stands before the sequence, and the first question is left out. `scale` is the standard
    deviation of the first attention matrices; the readout and the numbers of distances start at zero.
    """

    TRACED = ("scale",)

    heads: tuple[Count, ...] = (1, 1)
    pads: Natural = 0
    scale: NonNegative = 0.0
    relative: bool = later(False)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if not self.heads:
            yield "heads", "must be a number for each layer, not none"

    def architecture(self, sandbox: Sandbox) -> Transformer:
        symbols = inputs_of(sandbox)
        places = sandbox.tokens + self.pads
        widths = [len(symbols) + (0 if self.relative else places)]
        for count in self.heads:
            widths.append(widths[-1] * (1 + count))
        if widths[-1] > WIDEST:
            raise InputError(
                f"the stream would be {widths[-1]} wide, the most is {WIDEST}: fewer heads, or shorter sequences"
            )
        head = _start.head_of(sandbox, window=places if self.relative else None)
        blocks = [Block((head,) * count, d, d, d_out=d) for count, d in zip(self.heads, widths, strict=False)]
        more = {"pads": self.pads, "residual": "concatenate"}
        return _start.transformer(sandbox, "disentangled transformer on", widths[0], *blocks, **more)

    def first(self, net: Transformer, key: Array) -> Parameters:
        trained = {name: shape for name, shape in net.shapes().items() if name.endswith(("W_Q", "W_U", "b_rel"))}
        return normal(key, trained, {name: self.scale if name.endswith("W_Q") else 0.0 for name in trained})

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        kind, symbols = parameters["unembed.W_U"].dtype, len(net.inputs)
        identity = jnp.eye(net.d_model, dtype=kind)
        fixed = {"embed.W_E": identity[:symbols]}
        if not self.relative:
            fixed["pos_embed.W_pos"] = identity[symbols:]
        for name, shape in net.shapes().items():
            if name.endswith(("W_K", "W_V", "W_O")):
                fixed[name] = jnp.broadcast_to(jnp.eye(shape[-1], dtype=kind), shape)
        return _start.filled(net, {**fixed, **parameters})


MODEL = DisentangledFamily
