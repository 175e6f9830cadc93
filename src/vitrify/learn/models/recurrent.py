"""Recurrent nets: one state that goes from token to token, read by a hidden layer or directly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.learn.models import _start
from vitrify.learn.models._start import Recurrence
from vitrify.learn.models.catalogue import Family, Parameters, answers_of, inputs_of, too_small
from vitrify.net.recurrent import Recurrent
from vitrify.sandboxes.catalogue import Sandbox


@dataclass(frozen=True)
class RecurrentFamily(Family):
    """A state of `state` numbers, driven by embeddings of `d_embed` numbers; `units` ReLU units read it, if any.

    `kind`: a simple recurrent net with ReLU (`elman`), an `lstm`, or linear in its state: one matrix (`linear`), a
    decay between 0 and 1 (`positive`) or -1 and 1 (`signed`) for each number, which depends on the token, or a product
    of `factors` Householder factors. Embeddings begin with norm √d_embed.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("scale",)
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"state": 8, "d_embed": 4})

    kind: Recurrence = "lstm"
    state: int = 64
    d_embed: int = 32
    units: int = 0
    factors: int = 1
    pads: int = 1
    scale: float = 1.0

    def problems(self) -> Iterator[str]:
        yield from _start.cell_problems(self.kind, self.state, self.factors)
        yield from too_small(self, d_embed=1, units=0, pads=0)

    def architecture(self, sandbox: Sandbox) -> Recurrent:
        return Recurrent(
            inputs=inputs_of(sandbox),
            output=answers_of(sandbox),
            max_length=sandbox.tokens,
            d_embed=self.d_embed,
            cell=_start.cell_of(self.kind, self.state, self.factors),
            units=self.units,
            d_out=self.state if self.units else 0,
            pads=self.pads,
            name=f"{self.kind} on {sandbox.name}",
        )

    def first(self, net: Recurrent, key: Array) -> Parameters:
        found = _start.first(net.shapes(), key, self.scale, 1, net)
        embedded = found["embed.W_E"]
        size = jnp.sqrt((embedded**2).mean(axis=-1, keepdims=True))
        return found | {"embed.W_E": embedded / size}


MODEL = RecurrentFamily
