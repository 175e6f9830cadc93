r"""Memories: random codes of words and answers that stay as drawn, and between them what is trained to join them.

Codes are unit vectors. That of a word is read, and the product with that of an answer is this answer's logit. Between
them stands a matrix ($d \times d$ numbers), or $m$ ReLU units ($2md$), or $H$ heads ($4 H d_h d$), with or without
units after them; no biases, places or norms. Source: Nichani, Lee, Bietti 2024, arXiv 2412.06538.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import LEAST_LOG, Array, Count, Family, Natural, Parameters, Sandbox, Share, normal
from vitrify.net.transformer import Block, Head, Transformer

CODES = ("embed.W_E", "unembed.W_U")
ATTENTION, UNITS = "blocks.0.attn.", "blocks.0.mlp."


@dataclass(frozen=True)
class MemoryFamily(Family, small={"d_model": 8, "heads": 2, "units": 8}):
    """`heads` heads of `d_head` numbers and `units` units in `d_model` dimensions; without either, a matrix.

    Only a `part` of the dimensions, of the heads and of the units is used and the rest is zero: nets of many sizes
    are then members of one program.
    """

    TRACED = ("part",)

    d_model: Count = 16
    heads: Natural = 0
    d_head: Count = 4
    units: Natural = 0
    part: Share = 1.0

    def architecture(self, sandbox: Sandbox) -> Transformer:
        if self.heads:
            block = Block((_start.head_of(sandbox),) * self.heads, self.d_head, self.d_head, self.units)
        elif self.units:
            block = Block(units=self.units, d_out=self.d_model)
        else:
            block = Block((Head(window=1),), 1, self.d_model, d_out=self.d_model)
        residual = "add" if self.heads else "concatenate"
        return _start.transformer(sandbox, "memory of", self.d_model, block, residual=residual)

    def used(self, count: int) -> Array:
        """Return 1 for the first `part` of `count` dimensions, heads or units, else 0."""
        return (jnp.arange(count) < jnp.round(self.part * count)).astype(jnp.float32)

    def size(self) -> int:
        """Return the number of trained parameters that are used."""
        d, heads, units = (round(self.part * count) for count in (self.d_model, self.heads, self.units))
        return 4 * heads * self.d_head * d + 2 * units * d if heads or units else d * d

    def _kept(self, net: Transformer) -> dict[str, Array]:
        """The arrays that are drawn, trained or not, and which of their numbers are used."""
        dims, heads, units = self.used(self.d_model), self.used(self.heads), self.used(self.units)
        masks = {"embed.W_E": dims}
        if self.heads:
            masks |= {f"{ATTENTION}{name}": heads[:, None, None] * dims[:, None] for name in ("W_Q", "W_K", "W_V")}
            masks[f"{ATTENTION}W_O"] = heads[:, None, None] * dims
        elif not self.units:
            masks[f"{ATTENTION}W_V"] = dims[:, None] * dims
        if self.units:
            masks |= {f"{UNITS}W_in": dims[:, None] * units, f"{UNITS}W_out": units[:, None] * dims}
        last = dims if self.heads else jnp.concatenate([jnp.zeros_like(dims), dims])
        return {**masks, "unembed.W_U": jnp.broadcast_to(last[:, None], net.shapes()["unembed.W_U"])}

    def first(self, net: Transformer, key: Array) -> Parameters:
        masks, shapes = self._kept(net), net.shapes()
        drawn = normal(key, {name: shapes[name] for name in masks}, dict.fromkeys(masks, 1.0))
        dims, units = (jnp.maximum(self.used(count).sum(), 1) for count in (self.d_model, self.units))
        wide = jnp.maximum(self.used(self.heads).sum() * self.d_head, 1)
        fan = {"W_out": units, "W_O": wide}
        arrays = {name: array * masks[name] for name, array in drawn.items()}
        for name, array in arrays.items():
            along = {"embed.W_E": 1, "unembed.W_U": 0}.get(name)
            if along is not None:
                arrays[name] = array / jnp.linalg.norm(array, axis=along, keepdims=True)
            else:
                arrays[name] = array / jnp.sqrt(fan.get(name.split(".")[-1], dims))
        return arrays

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        kind = parameters["embed.W_E"].dtype
        arrays = {name: parameters[name] * mask.astype(kind) for name, mask in self._kept(net).items()}
        arrays |= {name: jax.lax.stop_gradient(arrays[name]) for name in CODES}
        if not self.heads and not self.units:
            arrays[f"{ATTENTION}W_O"] = jnp.eye(self.d_model, dtype=kind)[None]
        return _start.filled(net, arrays, self.d_head**-0.5)

    @property
    def outside(self) -> str:
        return "answers that the sandbox never asks for are masked"

    def answered(self, sandbox: Sandbox, logits: Array) -> Array:
        """Answers that a sandbox never asks for can't be given."""
        possible = sandbox.possible()
        return logits if possible is None else jnp.where(possible, logits, LEAST_LOG)


MODEL = MemoryFamily
