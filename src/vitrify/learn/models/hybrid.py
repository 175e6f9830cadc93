"""Hybrids: layers of a recurrence and layers of heads in turn, each with ReLU units, on one residual stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from vitrify.learn.models import _start
from vitrify.learn.models._start import Recurrence
from vitrify.learn.models.transformer import OverTransformer, Positions, head_conflicts
from vitrify.net.transformer import Block, Transformer
from vitrify.parameters import Count, Natural, Within
from vitrify.sandboxes.catalogue import Sandbox


@dataclass(frozen=True)
class HybridFamily(OverTransformer, small={"heads": 2, "d_model": 8, "state": 8, "units": 8}):
    """`layers` blocks, the first of a cell of `state` numbers, the next of `heads` heads, and so on.

    `kind` and `factors` are those of the family `recurrent`, `positions` those of the family `transformer`.
    """

    TRACED = ("scale",)

    layers: Annotated[int, Within(2)] = 2  # one of each kind
    heads: Count = 2
    d_model: Count = 32
    state: Count = 32
    kind: Recurrence = "positive"
    factors: Count = 1
    units: Natural | None = None
    positions: Positions = "none"
    norm: bool = True
    pads: Natural = 1
    scale: float = 1.0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from head_conflicts(self.d_model, self.heads, None, self.positions)

    def architecture(self, sandbox: Sandbox) -> Transformer:
        net = self.plain.architecture(sandbox)
        cell = _start.cell_of(self.kind, self.state, self.factors)
        blocks = tuple(
            block if index % 2 else Block(units=block.units, cell=cell) for index, block in enumerate(net.blocks)
        )
        return replace(net, blocks=blocks, name=f"hybrid on {sandbox.name}")


MODEL = HybridFamily
