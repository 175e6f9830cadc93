r"""One linear head over one-hot tokens: every token has a score and says something of its own, and these are summed up.

The answer after $z_1 \dots z_t$ is $\sum_i w(z_i)\, W(z_i, \cdot)$, with a number $w(z)$, the product of key and query,
and a row $W(z, \cdot)$, the product of value and output, for every token $z$: no place, no bias. Everything starts at
the same small number. The flow down the gradient keeps $\sum_a W(z, a)^2 - w(z)^2$ for each $z$. Source: Nichani, Lee,
Bietti 2024, arXiv 2412.06538 (in the spirit of their model of how facts are learned).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from vitrify.arrays import Arrays
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Example, Family, Parameters, Sandbox, inputs_of, normal
from vitrify.net.architecture import Record
from vitrify.net.transformer import Block, Transformer
from vitrify.parameters import NonNegative, Positive

SCORES, SAID = "blocks.0.attn.W_K", "blocks.0.attn.W_V"


@dataclass(frozen=True)
class LinearHeadFamily(Family, small={"start": 0.3, "spread": 0.5}):
    """All numbers start at `start`, give or take `spread` of it.

    `last` answers the last question only, by counting tokens, which is quicker and the same: their order is nothing to
    such a head.
    """

    TRACED = ("start", "spread")

    start: Positive = 1e-5
    spread: NonNegative = 0.0
    last: bool = False

    def architecture(self, sandbox: Sandbox) -> Transformer:
        answers = len(sandbox.answers)
        block = Block((_start.head_of(sandbox, attention="linear"),), 1, answers, d_out=answers)
        return _start.transformer(sandbox, "linear head on", len(inputs_of(sandbox)), block, residual="concatenate")

    def first(self, net: Transformer, key: Array) -> Parameters:
        shapes = {name: net.shapes()[name] for name in (SCORES, SAID)}
        drawn = normal(key, shapes, dict.fromkeys(shapes, self.spread))
        return {name: self.start * (1 + array) for name, array in drawn.items()}

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        kind, answers = parameters[SAID].dtype, len(net.output.symbols)
        readout = jnp.eye(answers, dtype=kind)
        fixed = {
            "embed.W_E": jnp.eye(net.d_model, dtype=kind),
            "blocks.0.attn.b_Q": jnp.ones((1, 1), kind),
            "blocks.0.attn.W_O": readout[None],
            "unembed.W_U": jnp.concatenate([jnp.zeros((net.d_model, answers), kind), readout]),
        }
        return _start.filled(net, {**fixed, **parameters})

    def logits(
        self, net: Transformer, sandbox: Sandbox, arrays: Arrays, batch: Example, record: Record | None = None
    ) -> Array:
        if not self.last or record:
            return super().logits(net, sandbox, arrays, batch, record)
        counts = jax.nn.one_hot(batch.tokens + 1, net.d_model, dtype=arrays[SAID].dtype).sum(axis=1)
        return (counts @ (arrays[SCORES][0] * arrays[SAID][0]))[:, None]


MODEL = LinearHeadFamily
