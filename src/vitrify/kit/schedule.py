"""Scheduling: every operation goes into the earliest layer that its inputs allow; independent ones share a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vitrify.kit.network import Experts, Network, Norm, Operation, Space, Units, written_by

# Moments: 0 after embedding, 2i+1 after the attention of block i, 2i+2 after its MLP. An operation at moment m reads
# the residual stream of moment m-1.


@dataclass(frozen=True, eq=False)
class Schedule:
    """The moment of each operation, and the moments at which each space is written and last read.

    Norms have no moment of their own: `seen` maps each normalized space to the space that holds its dimensions.
    """

    moments: Mapping[Operation, int]
    born: Mapping[Space, int]
    last_read: Mapping[Space, int]
    blocks: int
    seen: Mapping[Space, Space]

    @property
    def end(self) -> int:
        return 2 * self.blocks + 1


def schedule(network: Network) -> Schedule:
    """Return the earliest schedule: an operation comes right after the last of the spaces it reads is written.

    Heads and recurrences run at odd moments, units and experts at even ones. Linear in the size of the network. With
    `gather`, all heads of one nesting (the number of heads their input has passed in sequence) run in the same layer,
    as soon as the last of them can.
    """
    _check(network)
    floors: dict[int, int] = {}  # the moment before which no head of a nesting runs
    while True:
        plan, latest = _earliest(network, floors)
        if not network.gather or latest == floors:
            return plan
        floors = latest


def _earliest(network: Network, floors: Mapping[int, int]) -> tuple[Schedule, dict[int, int]]:
    """Return the schedule, and the last moment at which heads of each nesting run."""
    born = dict.fromkeys(network.inputs_of_stream, 0)
    last_read: dict[Space, int] = {}
    moments: dict[Operation, int] = {}
    nesting = dict.fromkeys(born, 0)
    latest: dict[int, int] = {}
    seen = {op.writes: op.source for op in network.operations if isinstance(op, Norm)}
    for operation in network.operations:
        if isinstance(operation, Norm):
            continue
        reads = [(space, seen.get(space, space)) for space in operation.reads]
        after = max((born[held] for _, held in reads), default=0)
        parity = 0 if isinstance(operation, Units | Experts) else 1
        moment = after + 1 if (after + 1) % 2 == parity else after + 2
        level = max((nesting[held] for _, held in reads), default=0) + parity
        if parity:
            moment = max(moment, floors.get(level, 0))
            latest[level] = max(latest.get(level, 0), moment)
        moments[operation] = moment
        for space, held in reads:  # an MLP that sees a space through a norm can't erase it; the next one can
            last_read[held] = max(last_read.get(held, 0), moment + (space != held and not parity))
        for space in written_by(operation):
            born[space], nesting[space] = moment, level
    blocks = (max(moments.values(), default=0) + 1) // 2
    for space, _ in network.readout.parts:
        last_read[seen.get(space, space)] = 2 * blocks + 1
    for space in born:
        last_read.setdefault(space, born[space])
    return Schedule(moments, born, last_read, blocks, seen), latest


def _check(network: Network) -> None:
    """Raise ValueError unless every space has a unique name and is written once, before it is read."""
    set_by_input = network.inputs_of_stream
    readout_reads = tuple(space for space, _ in network.readout.parts)
    passes = [(op.name, op.reads, written_by(op)) for op in network.operations]
    known: dict[str, Space] = {}
    for name, reads, writes in [("the embedding", (), set_by_input), *passes, ("the readout", readout_reads, ())]:
        for space in reads:
            if known.get(space.name) != space:
                raise ValueError(f"{name!r} reads the space {space.name!r}, which nothing has written before")
        for space in writes:
            if space.name in known:
                raise ValueError(f"the space {space.name!r} is written twice")
            known[space.name] = space
