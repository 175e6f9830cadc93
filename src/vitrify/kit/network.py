"""Intermediate representation: named spaces of the residual stream, and the operations that read and write them.

A space has a size but no place in the residual stream yet, and an operation no layer: `assemble` chooses both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from vitrify.arrays import Floats, Matrix
from vitrify.kit.affine import Affine, Space
from vitrify.kit.norm import Norm
from vitrify.kit.operations import Attend, Bank, Experts, Operation, Units, heads_of, written_by
from vitrify.kit.recurrence import Recur
from vitrify.net.architecture import Output, Reads
from vitrify.net.positions import FLOAT64_BITS, Function, largest_root
from vitrify.net.spaces import Bits, Circle, Flag, Integers, Kind, MultiHot, OneHot, Reals
from vitrify.net.sparse import is_sparse
from vitrify.net.transformer import AttentionKind

# What constructions are written in: operations, maps, kinds of spaces, outputs.
__all__ = ["Affine", "Attend", "AttentionKind", "Bank", "Bits", "Builder", "Circle", "Experts", "Flag", "Integers"]
__all__ += ["Kind", "MultiHot", "Network", "Norm", "OneHot", "Operation", "Output", "Readout", "Reals", "Recur"]
__all__ += ["Space", "Units", "heads_of", "written_by"]


@dataclass(frozen=True, eq=False)
class Readout:
    """The unembedding: logits = sum of `space @ matrix` + bias; `max_errors` are the allowed errors of spaces."""

    parts: tuple[tuple[Space, Matrix], ...]
    bias: Floats
    max_errors: Mapping[Space, float]


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """The result of a construction: embedding tables, the operations in order, and the readout.

    - `embedded` tables are [input, space]; row 0 is the beginning-of-sequence (BOS) token.
    - `positional` tables are [pads + max_length, space]; the first `pads` rows are those of BOS.
    - `formulas`: instead of tables, coefficients [power, space] of a function of the position (`net/positions.py`).
      `rounding` is then that of the architecture, which bounds the length on which the network is exact.
    - `reuse`: dimensions of spaces that are no longer read are used again, at the cost of one unit each to erase them.
    - `gather`: all heads whose input has passed the same number of heads are in one layer.
    - `reads`: a network that reads a vector has no tokens; `inputs` name its coordinates, and `embedded` tables are
      linear maps of it. If it reads rows, every position has a vector of its own.
    - `lines`: the lines of a text that spaces come from, by the names of the spaces; messages name them.
    - `loops`: how often the whole net runs; `carries` are pairs (old, new): the new space replaces the old one in the
      next round.
    """

    name: str
    inputs: tuple[str, ...]
    output: Output
    max_length: int
    embedded: tuple[tuple[Space, Matrix], ...]
    positional: tuple[tuple[Space, Floats], ...]
    operations: tuple[Operation, ...]
    readout: Readout
    min_length: int = 0
    pads: int = 1
    reuse: bool = True
    gather: bool = False
    reads: Reads = "tokens"
    loops: int = 1
    carries: tuple[tuple[Space, Space], ...] = ()
    formulas: tuple[tuple[Space, Floats, Function], ...] = ()
    rounding: int = 0
    rounding_power: int = 2
    about: Mapping[str, object] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return "\n".join(_lines(self))

    @property
    def spaces(self) -> tuple[Space, ...]:
        """Return all spaces, in the order in which they are written."""
        written = [space for operation in self.operations for space in written_by(operation)]
        return (*self.inputs_of_stream, *written)

    @property
    def inputs_of_stream(self) -> tuple[Space, ...]:
        """Return the spaces that the token or the position sets."""
        tabled = tuple(space for space, _ in (*self.embedded, *self.positional))
        return (*tabled, *(space for space, *_ in self.formulas))


def _lines(network: Network) -> Iterator[str]:
    yield f"Network {network.name!r}: {len(network.inputs)} inputs, at most {network.max_length} tokens"
    tokens = {space for space, _ in network.embedded}
    for space in network.inputs_of_stream:
        yield f"  {space.name} ← {'token' if space in tokens else 'position'}  [{space.kind.tag} {space.size}]"
    for operation in network.operations:
        reads = ", ".join(space.name for space in operation.reads) or "nothing"
        what = {Attend: "head", Recur: "recurrence", Norm: "norm"}.get(type(operation), "")
        if isinstance(operation, Units):
            what = f"{operation.count} units"
        elif isinstance(operation, Experts):
            what = f"{len(operation.experts)} experts"
        elif isinstance(operation, Bank):
            what = f"{len(operation.heads)} heads"
        for space in written_by(operation):
            yield f"  {space.name} ← {what} {operation.name!r} of {reads}  [{space.kind.tag} {space.size}]"
    yield f"  {network.output.kind} of {', '.join(space.name for space, _ in network.readout.parts) or 'a constant'}"


def _with_idle_unit(units: Units) -> Units:
    """Return units that only write constants with one more that is always 0: a block without units has no MLP."""
    return replace(
        units,
        reads_by=tuple((space, np.zeros((space.size, 1))) for space in units.reads),
        bias=np.zeros(1),
        writes_by=tuple((space, np.zeros((1, space.size))) for space in units.writes),
    )


def _void_at_bos(units: Units, bos: Space) -> Units:
    """Return the same units, all 0 at BOS, where one more unit subtracts the constants."""
    reach = np.maximum(Affine(units.reads_by, units.bias).bound, 1.0)
    constants = dict(units.constants)
    extra = 1 if any(vector.any() for vector in constants.values()) else 0
    reads = ((space, _joined(matrix, np.zeros((space.size, extra)), axis=1)) for space, matrix in units.reads_by)
    undone = {space: -constants.get(space, np.zeros(space.size))[None][:extra] for space in units.writes}
    return replace(
        units,
        reads_by=(*reads, (bos, np.concatenate([-reach, np.ones(extra)])[None])),
        bias=np.concatenate([units.bias, np.zeros(extra)]),
        writes_by=tuple((space, _joined(matrix, undone[space], axis=0)) for space, matrix in units.writes_by),
        rows=(*units.rows, "bos") if units.rows and extra else units.rows,
    )


def _joined(matrix: Matrix, more: Floats, axis: int) -> Matrix:
    """Return a matrix, dense or sparse, with more rows (axis 0) or columns (axis 1)."""
    if not is_sparse(matrix):
        return np.concatenate([matrix, more], axis=axis)
    from scipy.sparse import csr_array, hstack, vstack

    parts = [matrix, csr_array(more)]
    return hstack(parts, format="csc") if axis else vstack(parts, format="csr")


class Builder:
    """Collects spaces and operations in order; `network` returns them as a `Network`.

    The attention kind and the maximum length are settings of the whole net, read by the head primitives. With `void`,
    every space that units write and heads read as keys or values is zero at BOS: its units are switched off there, and
    one more unit subtracts the constants. With `rounding`, positions are given by formulas instead of tables, and
    no operation may depend on `max_length`.
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
        rounding: int = 0,
        rounding_power: int = 2,
    ) -> None:
        self.void, self.min_length, self.rounding, self.rounding_power = void, min_length, rounding, rounding_power
        self.name, self.inputs, self.reads = name, tuple(inputs), reads
        self.pads = pads if reads == "tokens" else 0
        self.max_length, self.attention = max_length, attention
        self._embedded: list[tuple[Space, Matrix]] = []
        self._positional: list[tuple[Space, Floats]] = []
        self._formulas: list[tuple[Space, Floats, Function]] = []
        self._operations: list[Operation] = []
        self.lines: dict[str, int] = {}  # of the text that spaces come from, by their names

    def embed(self, name: str, kind: Kind, table: Matrix) -> Space:
        """Return a space set by the token: a row of the table per input symbol, BOS first."""
        if table.shape != (len(self.inputs), kind.size):
            raise ValueError(f"the table of {name!r} must be {(len(self.inputs), kind.size)}, is {table.shape}")
        space = Space(name, kind)
        self._embedded.append((space, table))
        return space

    def numbers(self, name: str, low: float, high: float) -> Space:
        """Return the space that holds the input vector at every position, for a net that reads a vector."""
        return self.embed(name, Reals(self.inputs, low, high), np.eye(len(self.inputs)))

    def embed_position(self, name: str, kind: Kind, table: Floats, pads: Floats | None = None) -> Space:
        """Return a space set by the position: row t-1 of the table at token t; at BOS the rows `pads`, or zeros."""
        if table.shape != (self.max_length, kind.size):
            raise ValueError(f"the table of {name!r} must be {(self.max_length, kind.size)}, is {table.shape}")
        if self.rounding:
            raise ValueError(f"{name!r}: the positions of this network are given by formulas, not by tables")
        space = Space(name, kind)
        rows = np.zeros((self.pads + self.max_length, kind.size))
        rows[self.pads :] = table
        if pads is not None:
            rows[: self.pads] = pads
        self._positional.append((space, rows))
        return space

    def embed_formula(self, name: str, kind: Kind, coefficients: Floats, function: Function = "polynomial") -> Space:
        """Return a space set by a function of the position, of whole coefficients [power, space]."""
        space = Space(name, kind)
        self._formulas.append((space, coefficients, function))
        return space

    def is_positional(self, space: Space) -> bool:
        """Return whether a space is set by the position alone."""
        return any(space is positional for positional, *_ in (*self._positional, *self._formulas))

    @property
    def longest(self) -> int:
        """The number of tokens of the longest sequence that the network reads in float64."""
        if not self.rounding:
            return self.max_length
        return largest_root((1 << FLOAT64_BITS) // self.rounding, self.rounding_power) - self.pads

    @cached_property
    def bos(self) -> Space:
        """The flag that is 1 at the beginning-of-sequence token."""
        return self.embed("bos", Flag(), np.eye(len(self.inputs), 1))

    @cached_property
    def index(self) -> Space:
        """The position of the token, 1 to the maximum length; 0 at BOS."""
        return self._power("index", "t", 1)

    @cached_property
    def square(self) -> Space:
        """The square of the position of the token; 0 at BOS."""
        return self._power("square", "t²", 2)

    def _power(self, name: str, label: str, power: int) -> Space:
        """Return a power of the position, from a formula or a table."""
        kind = Integers((label,), 0.0, float(self.longest**power))
        if self.rounding:
            return self.embed_formula(name, kind, np.eye(power + 1)[:, [power]])
        return self.embed_position(name, kind, np.arange(1.0, self.max_length + 1)[:, None] ** power)

    def at_tokens(self, affine: Affine) -> Affine:
        """Return the same map with 0 at BOS, where it would be its bias."""
        return affine + Affine.of({self.bos: -affine.bias[None]}) if affine.bias.any() else affine

    def add(self, operation: Operation) -> Space:
        """Append an operation; returns the (first) space that it writes."""
        if isinstance(operation, Units) and not operation.count:
            operation = _with_idle_unit(operation)
        self._operations.append(operation)
        return written_by(operation)[0]

    def attend(self, name: str, query: Affine, key: Affine, value: Affine, writes: Space, **options: Any) -> Space:
        """Append a head with the net's kind of attention; returns the space that it writes. Options as for `Attend`."""
        return self.add(Attend(name, query, key, value, writes, self.attention, **options))

    def units(
        self, name: str, reads: Affine, writes: Space, out: Matrix, constant: Floats | None = None, **options: Any
    ) -> Space:
        """Append ReLU units of a map, read out [unit, space] into one space; returns it. Options as for `Units`."""
        constants = () if constant is None else ((writes, constant),)
        return self.add(Units(name, reads.parts, reads.bias, ((writes, out),), constants, **options))

    def network(
        self,
        output: Output,
        readout: Readout,
        construction: str = "",
        facts: Mapping[str, object] | None = None,
        *,
        source: str = "",
        reuse: bool = True,
    ) -> Network:
        """Return the network; its `about` has the facts, and construction with attention, and source, where given."""
        named = {"construction": construction, "attention": self.attention} if construction else {}
        about: dict[str, object] = {**named, **(facts or {})}
        operations = self._operations
        if self.void:
            heads = [head for op in operations for head in heads_of(op)]
            seen = {space for head in heads for space in (*head.key.spaces, *head.value.spaces)}
            operations = [
                _void_at_bos(op, self.bos) if isinstance(op, Units) and seen & set(op.writes) else op
                for op in operations
            ]
        return Network(
            name=self.name,
            inputs=self.inputs,
            output=output,
            max_length=self.max_length,
            min_length=self.min_length,
            embedded=tuple(self._embedded),
            positional=tuple(self._positional),
            formulas=tuple(self._formulas),
            rounding=self.rounding,
            rounding_power=self.rounding_power,
            operations=tuple(operations),
            readout=readout,
            pads=self.pads,
            reuse=reuse,
            reads=self.reads,
            about=about | {"source": source} if source else about,
            lines=self.lines,
        )
