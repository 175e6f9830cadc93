"""State space models: layers of a recurrence and ReLU units on a residual stream, without any attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from vitrify.learn.models import _start
from vitrify.learn.models._start import Recurrence
from vitrify.learn.models.transformer import OverTransformer
from vitrify.net.transformer import Block, Transformer
from vitrify.parameters import Count, Natural
from vitrify.sandboxes.catalogue import Sandbox


@dataclass(frozen=True)
class StateSpaceFamily(OverTransformer, small={"layers": 1, "d_model": 8, "state": 8, "units": 8}):
    """`layers` blocks of a cell of `state` numbers and `units` ReLU units (4 d_model, if not given).

    `kind` and `factors` are those of the family `recurrent`; a decay depends on what the block reads. No position code:
    a recurrence knows the order.
    """

    INSTEAD = MappingProxyType({"heads": 0, "positions": "none"})
    TRACED = ("scale",)

    layers: Count = 2
    d_model: Count = 32
    state: Count = 32
    kind: Recurrence = "positive"
    factors: Count = 1
    units: Natural | None = None
    norm: bool = True
    pads: Natural = 1
    scale: float = 1.0

    def architecture(self, sandbox: Sandbox) -> Transformer:
        net = self.plain.architecture(sandbox)
        cell = _start.cell_of(self.kind, self.state, self.factors)
        blocks = tuple(Block(units=block.units, cell=cell) for block in net.blocks)
        return replace(net, blocks=blocks, name=f"state space model on {sandbox.name}")


MODEL = StateSpaceFamily
