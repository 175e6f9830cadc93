r"""Recurrent networks: a state that goes from token to token, a hidden layer of ReLU units, a linear readout.

The state follows $h_t = f(h_{t-1} A + x_t B)$ from $h = 0$, where $x_t$ is the vector of the token. With $f$ the
identity it is a linear state space model, with $f = \mathrm{relu}$ a simple recurrent network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from vitrify.arrays import Array, namespace
from vitrify.net.architecture import Output, Reads, Record
from vitrify.net.sparse import affine, matmul, rows
from vitrify.net.transformer_forward import Part, mlp

Activation = Literal["linear", "relu"]


@dataclass(frozen=True)
class Recurrent:
    """A recurrent network over `inputs`, the first of which is the beginning-of-sequence token, put first `pads` times.

    `max_length` counts the tokens of a sequence without the pads. `d_embed` numbers stand for a token, the state has
    `state`, and the hidden units write `d_out`, from which the logits are read.
    """

    tag: ClassVar[str] = "recurrent"

    inputs: tuple[str, ...]
    output: Output
    max_length: int
    d_embed: int
    state: int
    units: int
    d_out: int
    activation: Activation = "linear"
    pads: int = 1
    name: str = field(default="recurrent", compare=False)

    @property
    def min_length(self) -> int:
        """Any word, the empty one too."""
        return 0

    @property
    def reads(self) -> Reads:
        """One token after the other."""
        return "tokens"

    @cached_property
    def input_ids(self) -> dict[str, int]:
        """The number of every symbol that may be given, BOS left out."""
        return {symbol: number for number, symbol in enumerate(self.inputs) if number > 0}

    @property
    def moments(self) -> tuple[str, ...]:
        """The token's vector, the state, and what the hidden units write."""
        return ("hook_embed", "blocks.0.hook_state", "blocks.0.hook_mlp_out")

    @property
    def width(self) -> int:
        """Numbers in the state: all that goes from one position to the next."""
        return self.state

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """No heads."""
        return (0,)

    @property
    def units_per_layer(self) -> tuple[int, ...]:
        """Hidden units of the one layer."""
        return (self.units,)

    @property
    def d_head(self) -> int:
        """No heads."""
        return 0

    @property
    def looks_ahead(self) -> bool:
        """A state knows nothing of what comes after it."""
        return False

    @property
    def soft(self) -> bool:
        """Nothing is approached: there is no softmax."""
        return False

    @property
    def cost(self) -> float:
        """Multiplications for one position, roughly."""
        seen = min(self.state, 64)
        return float(self.state * (seen + 1) + self.units * (seen + 16) + self.d_embed + len(self.output.symbols))

    def activations(self, positions: int) -> int:
        """Numbers that a run holds at once for one sequence."""
        stream = self.d_embed + 2 * self.state + 2 * self.units + self.d_out + 4 * len(self.output.symbols)
        return positions * stream

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array; a matrix multiplies a row from the right."""
        out = len(self.output.symbols)
        return {
            "embed.W_E": (len(self.inputs), self.d_embed),
            "blocks.0.rec.W_A": (self.state, self.state),
            "blocks.0.rec.W_B": (self.d_embed, self.state),
            "blocks.0.mlp.W_in": (self.state, self.units),
            "blocks.0.mlp.b_in": (self.units,),
            "blocks.0.mlp.W_out": (self.units, self.d_out),
            "blocks.0.mlp.b_out": (self.d_out,),
            "unembed.W_U": (self.d_out, out),
            "unembed.b_U": (out,),
        }

    def forward(
        self,
        arrays: Mapping[str, Any],
        inputs: Array,
        *,
        lengths: Array | None = None,
        record: Record | None = None,
        query_chunk: int | None = None,
    ) -> Array:
        r"""Logits [batch, pos, out] of token ids whose first `pads` columns are BOS, for NumPy and JAX arrays alike.

        $x_t = W_E[\text{token}_t]$, $h_t = f(h_{t-1} W_A + x_t W_B)$, $y_t = \mathrm{relu}(h_t W_{in} + b_{in}) W_{out}
        + b_{out}$, logits $= y_t W_U + b_U$. `record(name, value)` sees every activation.
        """
        del lengths, query_chunk  # for heads that look ahead, and on long sequences
        whole, block = Part(arrays, "", record), Part(arrays, "blocks.0.", record)
        x = rows(whole["embed.W_E"], inputs)
        whole.record("hook_embed", x)
        h = self._states(matmul(x, block["rec.W_B"]), block["rec.W_A"])
        block.record("hook_state", h)
        logits = affine(mlp(block, h), whole["unembed.W_U"], whole["unembed.b_U"])
        whole.record("hook_logits", logits)
        return logits

    def _states(self, driven: Array, transition: Any) -> Array:
        """The states [batch, pos, state] under what is driven in at each position."""
        xp = namespace(driven)

        def step(h: Array, now: Array) -> Array:
            h = matmul(h, transition) + now
            return h if self.activation == "linear" else xp.maximum(h, 0)

        h = xp.zeros_like(driven[:, 0])
        if isinstance(driven, np.ndarray):
            states = np.empty_like(driven)
            for position in range(driven.shape[1]):
                states[:, position] = h = step(h, driven[:, position])
            return states
        from jax import lax  # driven by a JAX array, so JAX is there

        _, states = lax.scan(lambda h, now: (step(h, now),) * 2, h, xp.moveaxis(driven, 1, 0))
        return xp.moveaxis(states, 0, 1)
