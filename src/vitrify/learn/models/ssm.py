"""State space models: layers of a recurrence and ReLU units on a residual stream, without any attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from vitrify.arrays import Array
from vitrify.learn.models import _start
from vitrify.learn.models._start import Recurrence
from vitrify.learn.models.catalogue import Family, Parameters, too_small
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.net.transformer import Block, Transformer
from vitrify.sandboxes.catalogue import Sandbox


@dataclass(frozen=True)
class StateSpaceFamily(Family):
    """`layers` blocks of a cell of `state` numbers and `units` ReLU units (4 d_model, if not given).

    `kind` and `factors` are those of the family `recurrent`; a decay depends on what the block reads. No position code:
    a recurrence knows the order.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("scale",)
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"layers": 1, "d_model": 8, "state": 8, "units": 8})

    layers: int = 2
    d_model: int = 32
    state: int = 32
    kind: Recurrence = "positive"
    factors: int = 1
    units: int | None = None
    norm: bool = True
    pads: int = 1
    scale: float = 1.0

    def problems(self) -> Iterator[str]:
        yield from _start.cell_problems(self.kind, self.state, self.factors)
        yield from too_small(self, layers=1, d_model=1, pads=0)

    @cached_property
    def plain(self) -> TransformerFamily:
        """The same layers without cells."""
        return TransformerFamily(
            layers=self.layers,
            heads=0,
            d_model=self.d_model,
            units=self.units,
            positions="none",
            norm=self.norm,
            pads=self.pads,
            scale=self.scale,
        )

    def architecture(self, sandbox: Sandbox) -> Transformer:
        net = self.plain.architecture(sandbox)
        cell = _start.cell_of(self.kind, self.state, self.factors)
        blocks = tuple(Block(units=block.units, cell=cell) for block in net.blocks)
        return replace(net, blocks=blocks, name=f"state space model on {sandbox.name}")

    def first(self, net: Transformer, key: Array) -> Parameters:
        return self.plain.first(net, key)

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        return self.plain.arrays(net, parameters)


MODEL = StateSpaceFamily
