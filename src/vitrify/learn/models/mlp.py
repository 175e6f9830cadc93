r"""MLP language models: one hidden layer of ReLU units over the embeddings of the last few tokens.

In the spirit of Bengio et al. 2003, with their direct connections: logits $= (x_t, \dots, x_{t-c+1}, y) W_U + b_U$ with
$y = \mathrm{relu}((x_t, \dots, x_{t-c+1}) W_{in} + b_{in}) W_{out} + b_{out}$. The tokens come together by heads with
fixed weights, each of which copies the embedding a certain number of places back, side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Family, Parameters, answers_of, inputs_of, too_small
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.sandboxes.catalogue import Sandbox


@dataclass(frozen=True)
class MLPFamily(Family):
    """`units` ReLU units over the last `context` tokens; each has an embedding of `d_embed` numbers.

    The units write `d_out` numbers (as many as `d_embed`, if not given). Places before the row hold BOS.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("scale",)
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"d_embed": 4, "units": 8})

    context: int = 3
    d_embed: int = 32
    units: int = 128
    d_out: int | None = None
    scale: float = 1.0

    def problems(self) -> Iterator[str]:
        yield from too_small(self, context=1, d_embed=1, units=1)
        if self.d_out is not None and self.d_out < 1:
            yield f"d_out must be at least 1, not {self.d_out}"

    def architecture(self, sandbox: Sandbox) -> Transformer:
        copies = Block((Head("hard", window=self.context),) * (self.context - 1), 1, self.d_embed, d_out=self.d_embed)
        return Transformer(
            inputs=inputs_of(sandbox),
            output=answers_of(sandbox),
            max_length=sandbox.tokens,
            d_model=self.d_embed,
            blocks=(copies, Block(units=self.units, d_out=self.d_out or self.d_embed)),
            pads=self.context,
            residual="concatenate",
            name=f"mlp on {sandbox.name}",
        )

    def first(self, net: Transformer, key: Array) -> Parameters:
        names = [name for name in net.shapes() if ".attn." not in name and name != "pos_embed.W_pos"]
        found = _start.first({name: net.shapes()[name] for name in names}, key, self.scale, 1)
        return found | {"embed.W_E": found["embed.W_E"] * np.sqrt(self.d_embed)}

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        kind, copies = parameters["embed.W_E"].dtype, self.context - 1
        fixed = {}
        if copies:
            same = jnp.broadcast_to(jnp.eye(self.d_embed, dtype=kind), (copies, self.d_embed, self.d_embed))
            fixed = {"W_V": same, "W_O": same, "b_rel": jnp.eye(self.context, dtype=kind)[1:]}
        return _start.filled(net, {**parameters, **{f"blocks.0.attn.{name}": array for name, array in fixed.items()}})


MODEL = MLPFamily
