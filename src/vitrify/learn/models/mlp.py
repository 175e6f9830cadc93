r"""MLP language models: one hidden layer of ReLU units over the embeddings of the last few tokens.

In the spirit of Bengio et al. 2003, with their direct connections: logits $= (x_t, \dots, x_{t-c+1}, y) W_U + b_U$ with
$y = \mathrm{relu}((x_t, \dots, x_{t-c+1}) W_{in} + b_{in}) W_{out} + b_{out}$. The tokens come together by heads with
fixed weights, each of which copies the embedding a certain number of places back, side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Count, Family, Parameters, Sandbox
from vitrify.net.transformer import Block, Head, Transformer


@dataclass(frozen=True)
class MLPFamily(Family, small={"d_embed": 4, "units": 8}):
    """`units` ReLU units over the last `context` tokens; each has an embedding of `d_embed` numbers.

    The units write `d_out` numbers (as many as `d_embed`, if not given). Places before the sequence hold BOS.
    """

    TRACED = ("scale",)

    context: Count = 3
    d_embed: Count = 32
    units: Count = 128
    d_out: Count | None = None
    scale: float = 1.0

    def architecture(self, sandbox: Sandbox) -> Transformer:
        copies = Block((Head("hard", window=self.context),) * (self.context - 1), 1, self.d_embed, d_out=self.d_embed)
        units = Block(units=self.units, d_out=self.d_out or self.d_embed)
        more = {"pads": self.context, "residual": "concatenate"}
        return _start.transformer(sandbox, "mlp on", self.d_embed, copies, units, **more)

    def first(self, net: Transformer, key: Array) -> Parameters:
        names = [name for name in net.shapes() if ".attn." not in name and name != "pos_embed.W_pos"]
        arrays = _start.first({name: net.shapes()[name] for name in names}, key, self.scale, 1)
        return arrays | {"embed.W_E": arrays["embed.W_E"] * np.sqrt(self.d_embed)}

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        kind, copies = parameters["embed.W_E"].dtype, self.context - 1
        fixed = {}
        if copies:
            same = jnp.broadcast_to(jnp.eye(self.d_embed, dtype=kind), (copies, self.d_embed, self.d_embed))
            fixed = {"W_V": same, "W_O": same, "b_rel": jnp.eye(self.context, dtype=kind)[1:]}
        return _start.filled(net, {**parameters, **{f"blocks.0.attn.{name}": array for name, array in fixed.items()}})


MODEL = MLPFamily
