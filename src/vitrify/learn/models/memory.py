r"""Memories: random codes of words and answers that stay as drawn, and between them what is trained to join them.

Codes are unit vectors. That of a word is read, and the product with that of an answer is this answer's logit. Between
them stands a matrix ($d \times d$ numbers), or $m$ ReLU units ($2md$), or $H$ heads ($4 H d_h d$), with or without
units after them; no biases, places or norms. Source: Nichani, Lee, Bietti 2024, arXiv 2412.06538.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Family, Parameters, answers_of, inputs_of, normal, too_small
from vitrify.net.architecture import Record
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.sandboxes.catalogue import LEAST_LOG, Row, Sandbox

CODES = ("embed.W_E", "unembed.W_U")
ATTENTION, UNITS = "blocks.0.attn.", "blocks.0.mlp."


@dataclass(frozen=True)
class MemoryFamily(Family):
    """`heads` heads of `d_head` numbers and `units` units in `d_model` dimensions; without either, a matrix.

    Only a `part` of the dimensions, of the heads and of the units is used and the rest is zero: nets of many sizes
    are then members of one program.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("part",)
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"d_model": 8, "heads": 2, "units": 8})

    d_model: int = 16
    heads: int = 0
    d_head: int = 4
    units: int = 0
    part: float = 1.0

    def problems(self) -> Iterator[str]:
        yield from too_small(self, d_model=1, heads=0, d_head=1, units=0)
        if not 0 < self.part <= 1:
            yield f"part must lie in (0, 1], not {self.part:g}"

    def architecture(self, sandbox: Sandbox) -> Transformer:
        if self.heads:
            head = Head(mask="none" if sandbox.bidirectional else "causal")
            block = Block((head,) * self.heads, self.d_head, self.d_head, self.units)
        elif self.units:
            block = Block(units=self.units, d_out=self.d_model)
        else:
            block = Block((Head(window=1),), 1, self.d_model, d_out=self.d_model)
        return Transformer(
            inputs=inputs_of(sandbox),
            output=answers_of(sandbox),
            max_length=sandbox.tokens,
            d_model=self.d_model,
            blocks=(block,),
            pads=0,
            residual="add" if self.heads else "concatenate",
            name=f"memory of {sandbox.name}",
        )

    def used(self, count: int) -> Array:
        """Which of so many dimensions, heads or units are used: 1 or 0."""
        return (jnp.arange(count) < jnp.round(self.part * count)).astype(jnp.float32)

    def size(self) -> int:
        """How many trained numbers are used."""
        d, heads, units = (round(self.part * count) for count in (self.d_model, self.heads, self.units))
        return 4 * heads * self.d_head * d + 2 * units * d if heads or units else d * d

    def _kept(self, net: Transformer) -> dict[str, Array]:
        """The arrays that are drawn, trained or not, and which of their numbers are used."""
        dims, heads, units = self.used(self.d_model), self.used(self.heads), self.used(self.units)
        found = {"embed.W_E": dims}
        if self.heads:
            found |= {f"{ATTENTION}{name}": heads[:, None, None] * dims[:, None] for name in ("W_Q", "W_K", "W_V")}
            found[f"{ATTENTION}W_O"] = heads[:, None, None] * dims
        elif not self.units:
            found[f"{ATTENTION}W_V"] = dims[:, None] * dims
        if self.units:
            found |= {f"{UNITS}W_in": dims[:, None] * units, f"{UNITS}W_out": units[:, None] * dims}
        last = dims if self.heads else jnp.concatenate([jnp.zeros_like(dims), dims])
        return {**found, "unembed.W_U": jnp.broadcast_to(last[:, None], net.shapes()["unembed.W_U"])}

    def first(self, net: Transformer, key: Array) -> Parameters:
        kept, shapes = self._kept(net), net.shapes()
        drawn = normal(key, {name: shapes[name] for name in kept}, dict.fromkeys(kept, 1.0))
        dims, units = (jnp.maximum(self.used(count).sum(), 1) for count in (self.d_model, self.units))
        wide = jnp.maximum(self.used(self.heads).sum() * self.d_head, 1)
        fan = {"W_out": units, "W_O": wide}
        found = {name: array * kept[name] for name, array in drawn.items()}
        for name, array in found.items():
            along = {"embed.W_E": 1, "unembed.W_U": 0}.get(name)
            if along is not None:
                found[name] = array / jnp.linalg.norm(array, axis=along, keepdims=True)
            else:
                found[name] = array / jnp.sqrt(fan.get(name.split(".")[-1], dims))
        return found

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        kind = parameters["embed.W_E"].dtype
        found = {name: parameters[name] * kept.astype(kind) for name, kept in self._kept(net).items()}
        found |= {name: jax.lax.stop_gradient(found[name]) for name in CODES}
        if not self.heads and not self.units:
            found[f"{ATTENTION}W_O"] = jnp.eye(self.d_model, dtype=kind)[None]
        return _start.filled(net, found, self.d_head**-0.5)

    def logits(
        self, net: Any, sandbox: Sandbox, arrays: Mapping[str, Array], row: Row, record: Record | None = None
    ) -> Array:
        """Answers that a sandbox never asks for can't be given."""
        found = super().logits(net, sandbox, arrays, row, record)
        possible = sandbox.possible()
        return found if possible is None else jnp.where(possible, found, LEAST_LOG)


MODEL = MemoryFamily
