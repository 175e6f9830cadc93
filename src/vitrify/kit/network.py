"""The intermediate form: named spaces of the residual stream, and the heads and units that read and write them.

No numbers are laid out yet: a space has no dimensions of its own, an operation has no layer. `assemble` gives them
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Matrix
from vitrify.kit.affine import Affine, Space
from vitrify.net.architecture import Output, Reads
from vitrify.net.spaces import Kind
from vitrify.net.transformer import AttentionKind, Mask, Ties

Floats = NDArray[np.float64]

__all__ = ["Affine", "Attend", "Bank", "Builder", "Experts", "Network", "Operation", "Readout", "Space", "Units"]


@dataclass(frozen=True, eq=False)
class Attend:
    r"""A head: where each position looks, and what it copies from there into one space.

    The score of key $j$ for query $i$ is `query`$_i \cdot$ `key`$_j$ plus `bias`$_{i-j}$. `gap` is the smallest lead
    of the right keys over all others, over every input up to the maximum length; None says that the head averages by
    design, and that its scores must be taken as they are. `bound` limits $\sum_c |q_c k_c|$; `error` is what rounding
    adds to an average (in float64). `shares` says that several right keys may have to share the weight equally. A head
    may bring its own temperature, `beta`, and the error that it makes there, `shortfall`.
    `leak` is what a soft head may be off where no reader says what it bears. `out`, a matrix [value, space], says what
    the value writes, where it is not the value itself.
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
    leak: float = 1e-9
    out: Matrix | None = None

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


Operation = Attend | Bank | Units | Experts


@dataclass(frozen=True, eq=False)
class Readout:
    """The unembedding: logits = sum of `space @ matrix` + bias; `needs` is the error each space may have at the end."""

    parts: tuple[tuple[Space, Matrix], ...]
    bias: Floats
    needs: Mapping[Space, float]


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """A construction's result: what is embedded, the operations in the order of their making, and the readout.

    `embedded` tables are [inputs, space]; row 0 is the beginning-of-sequence token. `placed` tables are [pads +
    max_length, space], its first `pads` rows being those of that token. `reuse` lets dimensions of dead spaces be
    used again, at the price of one unit per dimension to erase them; `gather` puts all heads of one nesting into one
    layer. A network that `reads` a vector has no tokens: its `inputs` name the numbers, and `embedded` tables are the
    linear maps from them; if it reads rows, every position has a vector of its own. With `loops` the whole net runs so
    many times over, and `carries` says which space takes the place of which, given, one for the next round.
    """

    name: str
    inputs: tuple[str, ...]
    output: Output
    max_length: int
    embedded: tuple[tuple[Space, Matrix], ...]
    placed: tuple[tuple[Space, Floats], ...]
    operations: tuple[Operation, ...]
    readout: Readout
    min_length: int = 0
    pads: int = 1
    reuse: bool = True
    gather: bool = False
    reads: Reads = "tokens"
    loops: int = 1
    carries: tuple[tuple[Space, Space], ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "\n".join(_lines(self))

    @property
    def spaces(self) -> tuple[Space, ...]:
        """All spaces, in the order of their making."""
        written = [space for operation in self.operations for space in written_by(operation)]
        return tuple([space for space, _ in self.embedded] + [space for space, _ in self.placed] + written)


def _lines(network: Network) -> Iterator[str]:
    yield f"Network {network.name!r}: {len(network.inputs)} inputs, at most {network.max_length} tokens"
    for source, tables in (("token", network.embedded), ("position", network.placed)):
        for space, _ in tables:
            yield f"  {space.name} ← {source}  [{space.kind.tag} {space.size}]"
    for operation in network.operations:
        reads = ", ".join(space.name for space in operation.reads) or "nothing"
        if isinstance(operation, Units):
            what = f"{operation.count} units"
        elif isinstance(operation, Experts):
            what = f"{len(operation.experts)} experts"
        else:
            what = "head" if isinstance(operation, Attend) else f"{len(operation.heads)} heads"
        for space in written_by(operation):
            yield f"  {space.name} ← {what} {operation.name!r} of {reads}  [{space.kind.tag} {space.size}]"
    yield f"  {network.output.kind} of {', '.join(space.name for space, _ in network.readout.parts) or 'a constant'}"


def written_by(operation: Operation) -> tuple[Space, ...]:
    """The spaces that an operation writes."""
    return operation.writes if isinstance(operation, Units | Experts) else (operation.writes,)


def heads_of(operation: Operation) -> tuple[Attend, ...]:
    """The heads that an operation needs."""
    if isinstance(operation, Units | Experts):
        return ()
    return operation.heads if isinstance(operation, Bank) else (operation,)


def _with_idle_unit(units: Units) -> Units:
    """The same constants, carried by one unit that is always 0: a block without units has no MLP to write them."""
    return replace(
        units,
        reads_by=tuple((space, np.zeros((space.size, 1))) for space in units.reads),
        bias=np.zeros(1),
        writes_by=tuple((space, np.zeros((1, space.size))) for space in units.writes),
    )


def _void_at_bos(units: Units, bos: Space) -> Units:
    """The same units, all off at BOS, where the constants are taken back as well."""
    reach = np.maximum(Affine(units.reads_by, units.bias).bound, 1.0)
    constants = dict(units.constants)
    extra = 1 if any(vector.any() for vector in constants.values()) else 0
    reads = tuple((space, _padded(matrix, columns=extra)) for space, matrix in units.reads_by)
    off = np.concatenate([-reach, np.ones(extra)])[None]
    written = tuple(
        (space, _padded(matrix, rows=-constants.get(space, np.zeros(space.size))[None] if extra else None))
        for space, matrix in units.writes_by
    )
    return replace(
        units,
        reads_by=(*reads, (bos, off)),
        bias=np.concatenate([units.bias, np.zeros(extra)]),
        writes_by=written,
        rows=(*units.rows, "bos") if units.rows and extra else units.rows,
    )


def _padded(matrix: Matrix, *, columns: int = 0, rows: Floats | None = None) -> Matrix:
    """A matrix, dense or sparse, with empty columns or given rows added."""
    from scipy.sparse import csr_array, hstack, vstack

    if columns:
        if hasattr(matrix, "tocsr"):
            return hstack([matrix, csr_array((matrix.shape[0], columns))], format="csc")
        return np.hstack([matrix, np.zeros((len(matrix), columns))])
    if rows is not None:
        return (
            vstack([matrix, csr_array(rows)], format="csr") if hasattr(matrix, "tocsr") else np.vstack([matrix, rows])
        )
    return matrix


class Builder:
    """Collects spaces and operations in order; `network` freezes them.

    The attention kind and the maximum length are settings of the whole net, read by the head primitives. With `void`,
    what units write and heads look at is zero at BOS: each unit is switched off there, and one more takes the constants
    back.
    """

    def __init__(
        self,
        name: str,
        inputs: Iterable[str],
        max_length: int,
        attention: AttentionKind = "softmax",
        pads: int = 1,
        reads: Reads = "tokens",
        void: bool = False,
        min_length: int = 0,
    ) -> None:
        self.void, self.min_length = void, min_length
        self.name, self.inputs, self.reads = name, tuple(inputs), reads
        self.pads = pads if reads == "tokens" else 0
        self.max_length, self.attention = max_length, attention
        self._embedded: list[tuple[Space, Matrix]] = []
        self._placed: list[tuple[Space, Floats]] = []
        self._operations: list[Operation] = []
        self._bos: Space | None = None
        self._index: Space | None = None
        self._square: Space | None = None

    def embed(self, name: str, kind: Kind, table: Matrix) -> Space:
        """A space that each token sets by itself: a row of the table per input symbol, the BOS token first."""
        if table.shape != (len(self.inputs), kind.size):
            raise ValueError(f"the table of {name!r} must be {(len(self.inputs), kind.size)}, is {table.shape}")
        space = Space(name, kind)
        self._embedded.append((space, table))
        return space

    def numbers(self, name: str, low: float, high: float) -> Space:
        """The input vector of a net that reads one, at every position."""
        from vitrify.net.spaces import Reals

        return self.embed(name, Reals(self.inputs, low, high), np.eye(len(self.inputs)))

    def place(self, name: str, kind: Kind, table: Floats, pads: Floats | None = None) -> Space:
        """A space that each position sets by itself: row t-1 of the table at token t; zeros at BOS, or `pads`."""
        if table.shape != (self.max_length, kind.size):
            raise ValueError(f"the table of {name!r} must be {(self.max_length, kind.size)}, is {table.shape}")
        space = Space(name, kind)
        rows = np.zeros((self.pads + self.max_length, kind.size))
        rows[self.pads :] = table
        if pads is not None:
            rows[: self.pads] = pads
        self._placed.append((space, rows))
        return space

    @property
    def bos(self) -> Space:
        """The flag that is 1 at the beginning-of-sequence token."""
        if self._bos is None:
            from vitrify.net.spaces import Flag

            self._bos = self.embed("bos", Flag(), np.eye(len(self.inputs), 1))
        return self._bos

    @property
    def index(self) -> Space:
        """The number of the token, 1 to the maximum length; 0 at BOS."""
        if self._index is None:
            from vitrify.net.spaces import Integers

            kind = Integers(("t",), 0.0, float(self.max_length))
            self._index = self.place("index", kind, np.arange(1.0, self.max_length + 1)[:, None])
        return self._index

    @property
    def square(self) -> Space:
        """The square of the number of the token; 0 at BOS."""
        if self._square is None:
            from vitrify.net.spaces import Integers

            kind = Integers(("t²",), 0.0, float(self.max_length**2))
            self._square = self.place("square", kind, np.arange(1.0, self.max_length + 1)[:, None] ** 2)
        return self._square

    def add(self, operation: Operation) -> Space:
        """Append an operation; returns the (first) space that it writes."""
        if isinstance(operation, Units) and not operation.count:
            operation = _with_idle_unit(operation)
        self._operations.append(operation)
        return written_by(operation)[0]

    def network(self, output: Output, readout: Readout, about: Mapping[str, Any], *, reuse: bool = True) -> Network:
        """The frozen network."""
        if self.void:
            heads = [head for op in self._operations for head in heads_of(op)]
            seen = {space for head in heads for space in (*head.key.spaces, *head.value.spaces)}
            self._operations = [
                _void_at_bos(op, self.bos) if isinstance(op, Units) and seen & set(op.writes) else op
                for op in self._operations
            ]
        return Network(
            name=self.name,
            inputs=self.inputs,
            output=output,
            max_length=self.max_length,
            min_length=self.min_length,
            embedded=tuple(self._embedded),
            placed=tuple(self._placed),
            operations=tuple(self._operations),
            readout=readout,
            pads=self.pads,
            reuse=reuse,
            reads=self.reads,
            about=dict(about),
        )
