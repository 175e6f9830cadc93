"""Scheduling: every operation goes into the earliest layer that its inputs allow, so independent ones share a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vitrify.kit.network import Attend, Network, Space, Units, written_by

# Moments: 0 after embedding, 2i+1 after the attention of block i, 2i+2 after its MLP. An operation at moment m reads
# the residual stream of moment m-1.


@dataclass(frozen=True, eq=False)
class Schedule:
    """The moment of each operation, and of the birth and the last reading of each space."""

    moments: Mapping[Attend | Units, int]
    born: Mapping[Space, int]
    last_read: Mapping[Space, int]
    blocks: int

    @property
    def end(self) -> int:
        return 2 * self.blocks + 1


def schedule(network: Network) -> Schedule:
    """Longest path in the order of making: an operation comes right after the last of the spaces it reads.

    Heads work at odd moments, units at even ones. Linear in the size of the network.
    """
    born = {space: 0 for space, _ in (*network.embedded, *network.placed)}
    last_read: dict[Space, int] = {}
    moments: dict[Attend | Units, int] = {}
    for operation in network.operations:
        after = max((born[space] for space in operation.reads), default=0)
        parity = 1 if isinstance(operation, Attend) else 0
        moment = after + 1 if (after + 1) % 2 == parity else after + 2
        moments[operation] = moment
        for space in operation.reads:
            last_read[space] = max(last_read.get(space, 0), moment)
        for space in written_by(operation):
            if space in born:
                raise ValueError(f"the space {space.name!r} is written twice")
            born[space] = moment
    blocks = (max(moments.values(), default=0) + 1) // 2
    for space, _ in network.readout.parts:
        last_read[space] = 2 * blocks + 1
    for space in born:
        last_read.setdefault(space, born[space])
    return Schedule(moments, born, last_read, blocks)
