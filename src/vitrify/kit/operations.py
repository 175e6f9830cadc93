"""Operations: what a network is made of, heads, banks of heads, units, experts, recurrences and norms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Matrix
from vitrify.kit.affine import Affine, Space
from vitrify.kit.norm import Norm
from vitrify.kit.recurrence import Recur
from vitrify.net.labels import Looks
from vitrify.net.transformer import AttentionKind, Mask, Ties

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Attend:
    r"""A head: where each position looks, and what it copies from there into one space.

    The score of key $j$ for query $i$ is `query`$_i \cdot$ `key`$_j$ plus `bias`$_{i-j}$. `gap` is the smallest lead
    of the right keys over all others, over every input up to the maximum length; None says that the head averages by
    design, and that its scores must be taken as they are. `bound` limits $\sum_c |q_c k_c|$; `error` is what rounding
    adds to an average (in float64). `shares` says that several right keys may have to share the weight equally. A head
    may bring its own temperature, `beta`, and the error that it makes there, `shortfall`; it holds as long as errors of
    queries and keys move no score by more than `noise`, where that is said.
    `leak` is what a soft head may be off where no reader says what it bears. `out`, a matrix [value, space], says what
    the value writes, where it is not the value itself. `looks` is which keys are the right ones, where that can be said
    in a word (see `HeadLabel`).
    """

    name: str
    query: Affine
    key: Affine
    value: Affine
    writes: Space
    attention: AttentionKind
    gap: float | None = None
    bound: float = 0.0
    mask: Mask = "causal"
    ties: Ties = "average"
    window: int | None = None
    bias: Floats | None = None
    error: float = 0.0
    shares: bool = False
    beta: float | None = None
    shortfall: float = 0.0
    noise: float | None = None
    leak: float = 1e-9
    out: Matrix | None = None
    looks: Looks | None = None

    @property
    def reads(self) -> tuple[Space, ...]:
        return tuple(dict.fromkeys(self.query.spaces + self.key.spaces + self.value.spaces))

    @cached_property
    def written(self) -> Affine:
        """What a key gives to the space, as a function of what stands at its position."""
        return self.value if self.out is None else self.value @ self.out


@dataclass(frozen=True, eq=False)
class Bank:
    """Heads whose outputs add up in one space.

    What they write is off by `truncation` (the method's own error), plus what those among them leak that select, plus
    `error` (rounding, in float64), plus what errors of the spaces read make of it: at most the worst coordinate of
    `passes`. `margin` is, by space, the largest error for which this holds.
    """

    name: str
    heads: tuple[Attend, ...]
    writes: Space
    passes: tuple[Affine, ...]
    truncation: float
    error: float
    margin: Mapping[Space, float] = field(default_factory=dict)

    @property
    def reads(self) -> tuple[Space, ...]:
        return tuple(dict.fromkeys(space for head in self.heads for space in head.reads))


@dataclass(frozen=True, eq=False)
class Units:
    r"""ReLU units: $\mathrm{relu}(\sum_s x_s R_s + b)$, read out linearly into some spaces.

    `margin` is, by space, the largest error of its coordinates that changes no decision of the units; `gain` is how
    much of an error below that margin reaches an output coordinate: 0 where the units restore exact values. `joint`,
    where it is known, is what an error of 1 in all coordinates of all spaces does, less than the sum of the gains.
    Units that pass on what they read say so more closely by `passes`, the map whose worst coordinate errors move as
    far. `error` is what rounding adds (in float64).
    """

    name: str
    reads_by: tuple[tuple[Space, Matrix], ...]
    bias: Floats
    writes_by: tuple[tuple[Space, Matrix], ...]
    constants: tuple[tuple[Space, Floats], ...] = ()
    margin: Mapping[Space, float] = field(default_factory=dict)
    gain: Mapping[Space, float] = field(default_factory=dict)
    joint: float | None = None
    rows: tuple[str, ...] = ()
    passes: tuple[Affine, ...] = ()
    error: float = 0.0

    @property
    def count(self) -> int:
        return len(self.bias)

    @property
    def reads(self) -> tuple[Space, ...]:
        return tuple(dict.fromkeys(space for space, _ in self.reads_by))

    @property
    def writes(self) -> tuple[Space, ...]:
        return tuple(dict.fromkeys([s for s, _ in self.writes_by] + [s for s, _ in self.constants]))


@dataclass(frozen=True, eq=False)
class Experts:
    """Experts of which one works at each position, and the router that chooses it: the one with the best score.

    The router is affine, one score for each expert, or hidden units that write them (into a space of their own, which
    is not in the residual stream). `lead` is the least lead of the right expert, where it matters which one works.
    """

    name: str
    router: Affine | Units
    experts: tuple[Units, ...]
    lead: float

    @property
    def reads(self) -> tuple[Space, ...]:
        router = self.router.spaces if isinstance(self.router, Affine) else self.router.reads
        return tuple(dict.fromkeys((*router, *(space for expert in self.experts for space in expert.reads))))

    @property
    def writes(self) -> tuple[Space, ...]:
        return tuple(dict.fromkeys(space for expert in self.experts for space in expert.writes))


Operation = Attend | Bank | Recur | Units | Experts | Norm


def written_by(operation: Operation) -> tuple[Space, ...]:
    """The spaces that an operation writes."""
    return operation.writes if isinstance(operation, Units | Experts) else (operation.writes,)


def heads_of(operation: Operation) -> tuple[Attend, ...]:
    """The heads that an operation needs."""
    if isinstance(operation, Recur | Units | Experts | Norm):
        return ()
    return operation.heads if isinstance(operation, Bank) else (operation,)
