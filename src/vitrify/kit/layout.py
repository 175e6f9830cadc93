"""Layout: which dimensions of the residual stream hold which space, and when; dimensions of dead spaces are reused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vitrify.kit.network import Space
from vitrify.kit.schedule import Schedule


@dataclass(frozen=True)
class Erasure:
    """A dimension that the MLP of a block resets to zero, because another space will be written there."""

    block: int
    dim: int
    low: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Dimensions by space, the moment from which an erased space can't be read any more, and the erasures."""

    width: int
    dims: Mapping[Space, tuple[int, ...]]
    erased_at: Mapping[Space, int]
    erasures: tuple[Erasure, ...]


def lay_out(schedule: Schedule, *, reuse: bool = True) -> Layout:
    r"""Return the layout by interval coloring: a space lives until the MLP of the block in which it is last read.

    That MLP can erase it with one unit per dimension, $-\mathrm{relu}(x - \ell)$ with $\ell$ below every value, and
    may write the next space into the same dimensions at once. Spaces take the lowest free dimensions in order of
    birth, which is optimal for intervals: the width is the largest number of dimensions alive at one moment.
    """
    # a space that an MLP writes and nothing reads can only be erased by the next MLP
    last = {space: max(read, schedule.born[space] + 1) for space, read in schedule.last_read.items()}
    expiry = {space: max(2, moment + moment % 2) for space, moment in last.items()}  # the MLP of the moment's block
    free: list[int] = []
    tenant: dict[int, Space] = {}
    dims: dict[Space, tuple[int, ...]] = {}
    erased_at: dict[Space, int] = {}
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
            erased_at[old] = expiry[old]
        dims[space] = (*taken, *fresh)
        tenant |= dict.fromkeys(dims[space], space)
        living.append(space)
    return Layout(width, dims, erased_at, tuple(erasures))


def lay_out_loop(schedule: Schedule, carries: Sequence[tuple[Space, Space]]) -> Layout:
    """Return the layout of a looped net: `carries` are pairs (old, new) of spaces that share dimensions.

    All other spaces have dimensions of their own. The last MLP of a round erases the old spaces and everything that the
    round wrote before, so that the next round starts from the same residual stream, with the new spaces replacing the
    old ones. That MLP can't erase what it writes itself: all of it must be carried.
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
    erased_at = [space for space, moment in schedule.born.items() if 0 < moment < end or space in taken.values()]
    erasures = [
        Erasure(schedule.blocks - 1, dim, min(space.kind.low, 0.0) - 1.0) for space in erased_at for dim in dims[space]
    ]
    return Layout(
        width, dims | {new: dims[old] for old, new in carries}, dict.fromkeys(erased_at, end), tuple(erasures)
    )
