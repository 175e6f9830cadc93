"""Layout: which dimensions of the residual stream hold which space, and when; those of dead spaces are used again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vitrify.kit.network import Space
from vitrify.kit.schedule import Schedule


@dataclass(frozen=True)
class Erasure:
    """A dimension that the MLP of a block sets back to zero, because another space will be written there."""

    block: int
    dim: int
    low: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Dimensions by space, the moment from which each space is no longer whole, and what has to be erased for it."""

    width: int
    dims: Mapping[Space, tuple[int, ...]]
    gone: Mapping[Space, int]
    erasures: tuple[Erasure, ...]


def layout(schedule: Schedule, *, reuse: bool = True) -> Layout:
    r"""Colour the lifetimes: a space lives from its birth to the MLP of the block in which it is last read.

    That MLP can erase it with one unit per dimension, $-\mathrm{relu}(x - \ell)$ with $\ell$ below every value, and
    may write the next space into the same dimensions at once. Spaces take the lowest free dimensions in order of
    birth, which is optimal for lifetimes on a line: the width is the largest number of dimensions alive at one
    moment.
    """
    # what an MLP writes and nobody reads can only be erased by the next one
    expiry = {space: _mlp_after(max(read, schedule.born[space] + 1)) for space, read in schedule.last_read.items()}
    free: list[int] = []
    tenant: dict[int, Space] = {}
    dims: dict[Space, tuple[int, ...]] = {}
    gone: dict[Space, int] = {}
    erasures: list[Erasure] = []
    width = 0
    living: list[Space] = []
    for space in sorted(schedule.born, key=lambda s: schedule.born[s]):  # stable: ties in order of making
        moment = schedule.born[space]
        if reuse:
            dead = [old for old in living if expiry[old] <= moment and expiry[old] < schedule.end]
            living = [old for old in living if old not in dead]
            free = sorted([*free, *(dim for old in dead for dim in dims[old])])
        taken, free = free[: space.size], free[space.size :]
        fresh = range(width, width + space.size - len(taken))
        width += len(fresh)
        for dim in taken:
            old = tenant[dim]
            erasures.append(Erasure(block=expiry[old] // 2 - 1, dim=dim, low=min(old.kind.low, 0.0) - 1.0))
            gone[old] = expiry[old]
        dims[space] = (*taken, *fresh)
        tenant |= dict.fromkeys(dims[space], space)
        living.append(space)
    return Layout(width, dims, gone, tuple(erasures))


def looped(schedule: Schedule, carries: Sequence[tuple[Space, Space]]) -> Layout:
    """Every space has dimensions of its own, but the new one of a carried pair has those of the old one.

    The last MLP of a round erases the old ones and all that the round wrote on the way, so that the next round finds
    the stream as this one did, with the new ones in the place of the old. It can't erase what it writes itself: all of
    that must be carried.
    """
    taken = {new: old for old, new in carries}
    end = 2 * schedule.blocks
    late = [space.name for space, moment in schedule.born.items() if (moment == end) != (space in taken)]
    if late:
        raise ValueError(f"the last MLP of a round writes the carried spaces and no others: {', '.join(late)}")
    width, dims = 0, {}
    for space in sorted(schedule.born, key=lambda s: schedule.born[s]):
        if space not in taken:
            dims[space] = tuple(range(width, width + space.size))
            width += space.size
    gone = [space for space, moment in schedule.born.items() if 0 < moment < end or space in taken.values()]
    erasures = [
        Erasure(schedule.blocks - 1, dim, min(space.kind.low, 0.0) - 1.0) for space in gone for dim in dims[space]
    ]
    return Layout(width, dims | {new: dims[old] for old, new in carries}, dict.fromkeys(gone, end), tuple(erasures))


def _mlp_after(moment: int) -> int:
    """The moment of the MLP in the block that works at this moment; embeddings nobody reads go in block 0."""
    return max(2, moment + moment % 2)
