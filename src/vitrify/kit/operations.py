"""Operations, the parts of a network: heads, banks of heads, units, experts, recurrences and norms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from vitrify.arrays import Floats, Matrix
from vitrify.kit.affine import Affine, Space
from vitrify.kit.norm import Norm
from vitrify.kit.recurrence import Recur
from vitrify.net.labels import AttendsTo
from vitrify.net.transformer import AttentionKind, Mask, Ties


@dataclass(frozen=True, eq=False)
class Attend:
    r"""An attention head: which keys each position attends to, and the value it copies from there into one space.

    The score of key $j$ for query $i$ is `query`$_i \cdot$ `key`$_j$ plus `bias`$_{i-j}$.

    - `gap`: the smallest difference between the scores of the right keys and all others, over every input up to the
      maximum length. None: the head averages by design, and its scores must not be scaled.
    - `bound`: an upper bound on $\sum_c |q_c k_c|$. `error`: the rounding error of an average (in float64).
    - `shares`: several right keys may have to share the weight equally.
    - `beta`: an inverse temperature of the head's own choice, with the error `shortfall` that it makes there. This
      holds if errors of queries and keys move no score by more than `noise`, and those of keys alone by no more than
      `key_noise` (None: no condition).
    - `leak`: the error allowed to a soft head if no reader limits it.
    - `out`: the output matrix [value, space], by default the identity.
    - `attends_to`: a name for the right keys, if there is one (see `HeadLabel`).
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
    key_noise: float | None = None
    leak: float = 1e-9
    out: Matrix | None = None
    attends_to: AttendsTo | None = None

    @property
    def reads(self) -> tuple[Space, ...]:
        return tuple(dict.fromkeys(self.query.spaces + self.key.spaces + self.value.spaces))

    @cached_property
    def written(self) -> Affine:
        """Return what a key adds to the space, as a map of the spaces at its position."""
        return self.value if self.out is None else self.value @ self.out


@dataclass(frozen=True, eq=False)
class Bank:
    """Heads whose outputs add up in one space.

    Their error is the sum of `truncation` (of the method), the leaks of the selecting heads, `error` (rounding, in
    float64), and the errors of what they read, passed through the worst coordinate of `passes`. `margin` is, by space,
    the largest error for which this holds.
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

    `margin` is, by space, the largest error of its coordinates that changes no decision of the units. `gain` is how
    much of an error below that margin reaches an output coordinate: 0 where the units restore exact values. `joint`,
    if known, is the effect of an error of 1 in all coordinates of all spaces: a tighter bound than the sum of the
    gains. For units that pass on what they read, the worst coordinate of the map `passes` bounds it more tightly still.
    `error` is what rounding adds (in float64).
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
    """A mixture of experts: at each position only the expert with the highest router score is active.

    The router is affine, one score per expert, or hidden units that write the scores (into a space of their own, which
    is not in the residual stream). `router_margin` is the least difference between the right expert's score and any
    other, wherever the choice matters.
    """

    name: str
    router: Affine | Units
    experts: tuple[Units, ...]
    router_margin: float

    @property
    def reads(self) -> tuple[Space, ...]:
        router = self.router.spaces if isinstance(self.router, Affine) else self.router.reads
        return tuple(dict.fromkeys((*router, *(space for expert in self.experts for space in expert.reads))))

    @property
    def writes(self) -> tuple[Space, ...]:
        return tuple(dict.fromkeys(space for expert in self.experts for space in expert.writes))


Operation = Attend | Bank | Recur | Units | Experts | Norm


def written_by(operation: Operation) -> tuple[Space, ...]:
    """Return the spaces that an operation writes."""
    return operation.writes if isinstance(operation, Units | Experts) else (operation.writes,)


def heads_of(operation: Operation) -> tuple[Attend, ...]:
    """Return the heads that an operation needs."""
    if isinstance(operation, Recur | Units | Experts | Norm):
        return ()
    return operation.heads if isinstance(operation, Bank) else (operation,)
