"""Hybrids: layers of a recurrence and layers of heads in turn, each with ReLU units, on one residual stream."""

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
from vitrify.learn.models.transformer import Positions, TransformerFamily, head_problems
from vitrify.net.transformer import Block, Transformer
from vitrify.sandboxes.catalogue import Sandbox


@dataclass(frozen=True)
class HybridFamily(Family):
    """`layers` blocks, the first of a cell of `state` numbers, the next of `heads` heads, and so on.

    `kind` and `factors` are those of the family `recurrent`, `positions` those of the family `transformer`.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("scale",)
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"heads": 2, "d_model": 8, "state": 8, "units": 8})

    layers: int = 2
    heads: int = 2
    d_model: int = 32
    state: int = 32
    kind: Recurrence = "positive"
    factors: int = 1
    units: int | None = None
    positions: Positions = "none"
    norm: bool = True
    pads: int = 1
    scale: float = 1.0

    def problems(self) -> Iterator[str]:
        yield from _start.cell_problems(self.kind, self.state, self.factors)
        yield from too_small(self, layers=2, heads=1, d_model=1, pads=0)  # a layer of each kind
        yield from head_problems(self.d_model, self.heads, None, self.positions)

    @cached_property
    def plain(self) -> TransformerFamily:
        """The same layers with heads in each."""
        return TransformerFamily(
            layers=self.layers,
            heads=self.heads,
            d_model=self.d_model,
            units=self.units,
            positions=self.positions,
            norm=self.norm,
            pads=self.pads,
            scale=self.scale,
        )

    def architecture(self, sandbox: Sandbox) -> Transformer:
        net = self.plain.architecture(sandbox)
        cell = _start.cell_of(self.kind, self.state, self.factors)
        blocks = tuple(
            block if index % 2 else Block(units=block.units, cell=cell) for index, block in enumerate(net.blocks)
        )
        return replace(net, blocks=blocks, name=f"hybrid on {sandbox.name}")

    def first(self, net: Transformer, key: Array) -> Parameters:
        return self.plain.first(net, key)

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        return self.plain.arrays(net, parameters)


MODEL = HybridFamily
