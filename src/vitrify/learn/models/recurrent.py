"""Recurrent nets: one state that goes from token to token, read by a hidden layer or directly."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from vitrify.learn.models import _start
from vitrify.learn.models._start import Recurrence
from vitrify.learn.models.catalogue import Array, Count, Family, Natural, Parameters, Sandbox, answers_of, inputs_of
from vitrify.net.recurrent import Recurrent


@dataclass(frozen=True)
class RecurrentFamily(Family, small={"state": 8, "d_embed": 4}):
    """A state of `state` numbers, driven by embeddings of `d_embed` numbers; `units` ReLU units read it, if any.

    `kind`: a simple recurrent net with ReLU (`elman`), an `lstm`, or linear in its state: one matrix (`linear`), a
    decay between 0 and 1 (`positive`) or -1 and 1 (`signed`) for each number, which depends on the token, or a product
    of `factors` Householder factors. Embeddings begin with norm √d_embed.
    """

    TRACED = ("scale",)

    kind: Recurrence = "lstm"
    state: Count = 64
    d_embed: Count = 32
    units: Natural = 0
    factors: Count = 1
    pads: Natural = 1
    scale: float = 1.0

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
        arrays = _start.first(net.shapes(), key, self.scale, 1, net)
        embedded = arrays["embed.W_E"]
        size = jnp.sqrt((embedded**2).mean(axis=-1, keepdims=True))
        return arrays | {"embed.W_E": embedded / size}


MODEL = RecurrentFamily
