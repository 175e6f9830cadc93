"""Hybrids: layers of a recurrence and layers of heads in turn, each with ReLU units, on one residual stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated

from vitrify.learn.models.ssm import StateSpaceFamily
from vitrify.learn.models.transformer import Positions, head_conflicts
from vitrify.net.transformer import Transformer
from vitrify.parameters import Count, Within
from vitrify.sandboxes.catalogue import Sandbox


@dataclass(frozen=True)
class HybridFamily(StateSpaceFamily, small={"heads": 2, "d_model": 8, "state": 8, "units": 8}):
    """`layers` blocks, the first of a cell of `state` numbers, the next of `heads` heads, and so on.

    `kind` and `factors` are those of the family `recurrent`, `positions` those of the family `transformer`.
    """

    INSTEAD = MappingProxyType({})

    layers: Annotated[int, Within(2)] = 2  # one of each kind
    heads: Count = 2
    positions: Positions = "none"

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from head_conflicts(self.d_model, self.heads, None, self.positions)

    def architecture(self, sandbox: Sandbox) -> Transformer:
        net, recurrent = self.plain.architecture(sandbox), super().architecture(sandbox)
        blocks = tuple((net if layer % 2 else recurrent).blocks[layer] for layer in range(self.layers))
        return replace(net, blocks=blocks, name=f"hybrid on {sandbox.name}")


MODEL = HybridFamily
