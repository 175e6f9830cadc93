"""Recurrent networks: a state that goes from token to token, a hidden layer of ReLU units, a linear readout.

How the state goes on is the business of a cell (`cells.py`): a state space model, a simple recurrent net, an LSTM.
Without hidden units the logits are read from the state itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar

from vitrify.arrays import Array, Arrays, Int, Logits, Tokens
from vitrify.net.architecture import Output, Reads, Record, Size, layer_shapes
from vitrify.net.cells import Cell, states
from vitrify.net.sparse import affine, rows
from vitrify.net.transformer_forward import Cache, Part, mlp
from vitrify.parameters import Within

MAX_PADS = 64  # each is a step of the recurrence, in front of every sequence


@dataclass(frozen=True)
class Recurrent:
    """A recurrent network over `inputs`, the first of which is the beginning-of-sequence token, put first `pads` times.

    `max_length` counts the tokens of a sequence without the pads. `d_embed` numbers stand for a token and drive the
    `cell`; the hidden units, if there are any, write `d_out` numbers, from which the logits are read.
    """

    tag: ClassVar[str] = "recurrent"
    reads: ClassVar[Reads] = "tokens"
    min_length: ClassVar[int] = 0
    heads_per_layer: ClassVar[tuple[int, ...]] = (0,)
    d_head: ClassVar[int] = 0
    looks_ahead: ClassVar[bool] = False  # a state depends on earlier tokens only
    soft: ClassVar[bool] = False  # there is no softmax

    inputs: tuple[str, ...]
    output: Output
    max_length: Size
    d_embed: Size
    cell: Cell
    units: Size = 0
    d_out: Size = 0
    pads: Annotated[int, Within(0, MAX_PADS)] = 1
    name: str = field(default="recurrent", compare=False)

    @cached_property
    def input_ids(self) -> dict[str, int]:
        """The token id of every input symbol but BOS."""
        return {symbol: number for number, symbol in enumerate(self.inputs) if number > 0}

    @property
    def moments(self) -> tuple[str, ...]:
        """The activations that pass from layer to layer: embedding, state, output of the hidden units."""
        return ("hook_embed", "blocks.0.hook_state", *(["blocks.0.hook_mlp_out"] if self.units else []))

    @property
    def widths(self) -> tuple[int, ...]:
        """The width of each of the `moments`."""
        return (self.d_embed, self.cell.memory, *([self.d_out] if self.units else []))

    @property
    def width(self) -> int:
        """The dimension of the state."""
        return self.cell.memory

    @property
    def longest(self) -> int:
        """The number of tokens of the longest sequence that it reads."""
        return self.max_length

    @property
    def units_per_layer(self) -> tuple[int, ...]:
        """Hidden units of the one layer."""
        return (self.units,)

    @property
    def cost(self) -> float:
        """The approximate number of multiplications for one position."""
        seen, turned = min(self.cell.state, 64), self.cell.held(self.d_embed)
        return float(turned * (seen + 1) + self.units * (seen + 16) + self.d_embed + len(self.output.symbols))

    def activations(self, positions: int) -> int:
        """Return the number of activations held at once for one sequence."""
        stream = self.d_embed + self.cell.held(self.d_embed) + 2 * self.units + self.d_out
        return positions * (stream + 4 * len(self.output.symbols))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of every array; a matrix multiplies a row vector from the right."""
        out, state = len(self.output.symbols), self.cell.state
        shapes: dict[str, tuple[int, ...]] = {"embed.W_E": (len(self.inputs), self.d_embed)}
        shapes |= {f"blocks.0.rec.{name}": shape for name, shape in self.cell.shapes(self.d_embed).items()}
        if self.units:
            shapes |= layer_shapes("blocks.0.mlp", state, self.units, self.d_out)
        return shapes | {"unembed.W_U": (self.d_out if self.units else state, out), "unembed.b_U": (out,)}

    def forward(
        self,
        arrays: Arrays,
        inputs: Tokens,
        *,
        lengths: Int[Array, " batch"] | None = None,
        record: Record | None = None,
        query_chunk: int | None = None,
        cache: Cache | None = None,
    ) -> Logits:
        r"""Logits [batch, pos, out] of token ids whose first `pads` columns are BOS, for NumPy and JAX arrays alike.

        $x_t = W_E[\text{token}_t]$, $h_t$ the state of the cell driven by $x_1 \dots x_t$, $y_t = \mathrm{relu}(h_t
        W_{in} + b_{in}) W_{out} + b_{out}$ (or $h_t$), logits $= y_t W_U + b_U$. `record(name, value)` sees every
        activation; with a `cache` the inputs continue those of the calls before with the same cache.
        """
        del lengths, query_chunk  # for heads that look ahead, and on long sequences
        root, block = Part(arrays, "", record), Part(arrays, "blocks.0.", record, cache=cache)
        x = rows(root["embed.W_E"], inputs)
        root.record("hook_embed", x)
        y = states(self.cell, block, x)
        block.record("hook_state", y)
        if self.units:
            y = mlp(block, y)
        logits = affine(y, root["unembed.W_U"], root["unembed.b_U"])
        root.record("hook_logits", logits)
        return logits
