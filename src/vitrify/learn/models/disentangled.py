r"""Disentangled transformers: heads append what they read, and only attention matrices and the readout are trained.

The stream begins with the token and its place, both one-hot, and a head with the matrix $A$ appends
$\sum_j \mathrm{softmax}_j(x_i A x_j^\top)\, x_j$, so that the width grows by the factor $1 + H$ with each layer of $H$
heads. Everything starts at zero. Source: Nichani, Damian and Lee 2024, arXiv 2402.14735. Where places are `relative`,
the stream is the token alone, and each head adds a trained number for the distance to its scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Family, Parameters, answers_of, inputs_of, normal, too_small
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.sandboxes._parameters import later
from vitrify.sandboxes.catalogue import Sandbox

WIDEST = 4096


@dataclass(frozen=True)
class DisentangledFamily(Family):
    """One layer for each number in `heads`: how many heads it has.

    Without pads nothing stands before the row, and the first question is left out. `scale` is the standard deviation of
    the first attention matrices; the readout and the numbers of distances start at zero.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("scale",)
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"heads": (1, 1)})

    heads: tuple[int, ...] = (1, 1)
    pads: int = 0
    scale: float = 0.0
    relative: bool = later(False)

    def problems(self) -> Iterator[str]:
        if not self.heads or min(self.heads) < 1:
            yield f"heads must be numbers from 1, one for each layer, not {', '.join(map(str, self.heads)) or 'none'}"
        yield from too_small(self, pads=0, scale=0)

    def architecture(self, sandbox: Sandbox) -> Transformer:
        symbols = inputs_of(sandbox)
        places = sandbox.tokens + self.pads
        widths = [len(symbols) + (0 if self.relative else places)]
        for count in self.heads:
            widths.append(widths[-1] * (1 + count))
        if widths[-1] > WIDEST:
            raise InputError(
                f"the stream would be {widths[-1]} wide, the most is {WIDEST}: fewer heads, or shorter rows"
            )
        mask: Literal["none", "causal"] = "none" if sandbox.bidirectional else "causal"
        head = Head(mask=mask, window=places if self.relative else None)
        return Transformer(
            inputs=symbols,
            output=answers_of(sandbox),
            max_length=sandbox.tokens,
            d_model=widths[0],
            blocks=tuple(
                Block((head,) * count, width, width, d_out=width)
                for count, width in zip(self.heads, widths, strict=False)
            ),
            pads=self.pads,
            residual="concatenate",
            name=f"disentangled transformer on {sandbox.name}",
        )

    def first(self, net: Transformer, key: Array) -> Parameters:
        trained = {name: shape for name, shape in net.shapes().items() if name.endswith(("W_Q", "W_U", "b_rel"))}
        return normal(key, trained, {name: self.scale if name.endswith("W_Q") else 0.0 for name in trained})

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        kind, symbols = parameters["unembed.W_U"].dtype, len(net.inputs)
        whole = jnp.eye(net.d_model, dtype=kind)
        fixed = {"embed.W_E": whole[:symbols]}
        if not self.relative:
            fixed["pos_embed.W_pos"] = whole[symbols:]
        for name, shape in net.shapes().items():
            if name.endswith(("W_K", "W_V", "W_O")):
                fixed[name] = jnp.broadcast_to(jnp.eye(shape[-1], dtype=kind), shape)
        return _start.filled(net, {**fixed, **parameters})


MODEL = DisentangledFamily
