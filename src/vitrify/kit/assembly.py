"""Assembly: a network of named parts becomes arrays.

The passes, in order: schedule (which layer), layout (which dimensions), margins (which temperatures), then the arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Matrix
from vitrify.errors import BuildRefused
from vitrify.kit.layout import Erasure, Layout, layout, looped
from vitrify.kit.margins import Arithmetic, Margins, margins
from vitrify.kit.network import Affine, Attend, Experts, Network, Space, Units, heads_of
from vitrify.kit.schedule import Schedule, schedule
from vitrify.net.experts import Expert
from vitrify.net.labels import HeadLabel, Labels, SpaceLabel, UnitsLabel
from vitrify.net.sparse import from_entries, is_sparse
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]


def assemble(network: Network, *, arithmetic: Arithmetic = "float64") -> Weights:
    """Weights of a network: same network, same bytes."""
    plan = schedule(network)
    place = looped(plan, network.carries) if network.carries else layout(plan, reuse=network.reuse)
    sharp = margins(network, arithmetic)
    for old, new in network.carries:
        if sharp.errors[new] > sharp.errors[old]:
            raise BuildRefused(f"errors of {new.name!r} would grow from round to round: snap it")
    arrays: dict[str, Matrix] = {
        "embed.W_E": _tables(network.embedded, place, len(network.inputs)),
        "pos_embed.W_pos": _tables(network.placed, place, network.pads + network.max_length),
    }
    blocks, heads, units = [], [], []
    for index in range(plan.blocks):
        attends = [head for op in network.operations if plan.moments[op] == 2 * index + 1 for head in heads_of(op)]
        works = [op for op in network.operations if isinstance(op, Units) and plan.moments[op] == 2 * index + 2]
        mixes = [op for op in network.operations if isinstance(op, Experts) and plan.moments[op] == 2 * index + 2]
        erased = [erasure for erasure in place.erasures if erasure.block == index]
        experts, router, mixed = _mixture(mixes, place)
        blocks.append(replace(_block(attends, works, erased), experts=experts, router=router))
        arrays |= {f"blocks.{index}.moe.{k}": v for k, v in mixed.items()}
        arrays |= {f"blocks.{index}.attn.{k}": v for k, v in _attention(attends, place, sharp, blocks[-1]).items()}
        arrays |= {f"blocks.{index}.mlp.{k}": v for k, v in _mlp(works, erased, place).items()}
        heads += [_head_label(op, index, number, sharp) for number, op in enumerate(attends)]
        units += [*_units_labels(works, erased, index), *_expert_labels(mixes, index)]
    arrays |= {"unembed.W_U": _unembed(network, place), "unembed.b_U": network.readout.bias}
    architecture = Transformer(
        inputs=network.inputs,
        output=network.output,
        max_length=network.max_length,
        min_length=network.min_length,
        d_model=place.width,
        blocks=tuple(blocks),
        pads=network.pads,
        reads=network.reads,
        loops=network.loops,
        name=network.name,
    )
    labels = Labels(_space_labels(network, plan, place, sharp), tuple(heads), tuple(units))
    return Weights(architecture, arrays, labels, network.about)


def _block(attends: Sequence[Attend], works: Sequence[Units], erased: Sequence[Erasure]) -> Block:
    return Block(
        heads=tuple(
            Head(
                attention=op.attention,
                mask=op.mask,
                window=op.window,
                ties=op.ties,
                resolution=op.gap / 2 if op.attention == "hard" and op.gap else 0.0,
            )
            for op in attends
        ),
        d_head=max((op.query.size for op in attends), default=0),
        d_value=max((op.value.size for op in attends), default=0),
        units=sum(op.count for op in works) + len(erased),
    )


def _attention(attends: Sequence[Attend], place: Layout, sharp: Margins, block: Block) -> dict[str, Matrix]:
    if not attends:
        return {}
    count, width = len(attends), place.width
    arrays: dict[str, Matrix] = {"beta": np.array([sharp.heads[op].beta for op in attends])}
    sizes = {"Q": block.d_head, "K": block.d_head, "V": block.d_value}
    for letter, size in sizes.items():
        entries, bias = _Entries(), np.zeros((count, size))
        for number, op in enumerate(attends):
            affine = {"Q": op.query, "K": op.key, "V": op.value}[letter]
            for space, part in affine.parts:
                entries.add(part, number * width + np.array(place.dims[space]), np.arange(affine.size))
            bias[number, : affine.size] = affine.bias
        arrays |= {f"W_{letter}": entries.matrix((count, width, size)), f"b_{letter}": bias}
    written = _Entries()
    for number, op in enumerate(attends):
        out = np.eye(op.writes.size) if op.out is None else op.out
        written.add(out, number * block.d_value + np.arange(op.value.size), np.array(place.dims[op.writes]))
    arrays["W_O"] = written.matrix((count, block.d_value, width))
    if block.window:
        arrays["b_rel"] = np.zeros((count, block.window))
        for number, op in enumerate(attends):
            if op.bias is not None:
                arrays["b_rel"][number, : len(op.bias)] = op.bias
    return arrays


def _mlp(works: Sequence[Units], erased: Sequence[Erasure], place: Layout) -> dict[str, Matrix]:
    total = sum(op.count for op in works) + len(erased)
    if not total:
        return {}
    inward, outward = _Entries(), _Entries()
    bias, constant = np.zeros(total), np.zeros(place.width)
    at = 0
    for op in works:
        units = np.arange(at, at + op.count)
        for space, matrix in op.reads_by:
            inward.add(matrix, np.array(place.dims[space]), units)
        for space, matrix in op.writes_by:
            outward.add(matrix, units, np.array(place.dims[space]))
        for space, vector in op.constants:
            constant[list(place.dims[space])] += vector
        bias[units] = op.bias
        at += op.count
    for erasure in erased:
        inward.put(erasure.dim, at, 1.0)
        outward.put(at, erasure.dim, -1.0)
        bias[at] = -erasure.low
        constant[erasure.dim] -= erasure.low
        at += 1
    return {
        "W_in": inward.matrix((place.width, total)),
        "b_in": bias,
        "W_out": outward.matrix((total, place.width)),
        "b_out": constant,
    }


def _mixture(mixes: Sequence[Experts], place: Layout) -> tuple[tuple[Expert, ...], int, dict[str, Matrix]]:
    """The experts of a block, how many hidden units their router has, and the arrays of both."""
    if not mixes:
        return (), 0, {}
    if len(mixes) > 1:
        raise BuildRefused(f"a block has one set of experts, not {' and '.join(repr(op.name) for op in mixes)}")
    (op,) = mixes
    made = [_expert(expert, place) for expert in op.experts]
    arrays = {f"experts.{number}.{key}": array for number, (_, part) in enumerate(made) for key, array in part.items()}
    scores = _Entries()
    if isinstance(op.router, Affine):
        hidden, bias = 0, op.router.bias
        for space, matrix in op.router.parts:
            scores.add(matrix, np.array(place.dims[space]), np.arange(len(made)))
    else:
        hidden, bias = op.router.count, np.zeros(len(made))
        inward = _Entries()
        for space, matrix in op.router.reads_by:
            inward.add(matrix, np.array(place.dims[space]), np.arange(hidden))
        for _, matrix in op.router.writes_by:
            scores.add(matrix, np.arange(hidden), np.arange(len(made)))
        arrays |= {"router.W_in": inward.matrix((place.width, hidden)), "router.b_in": op.router.bias}
    arrays |= {"router.W_out": scores.matrix((hidden or place.width, len(made))), "router.b_out": bias}
    return tuple(expert for expert, _ in made), hidden, arrays


def _expert(op: Units, place: Layout) -> tuple[Expert, dict[str, Matrix]]:
    """One expert and its arrays, in the order of its own spaces: whatever else is in the stream leaves no trace."""
    inward, outward, units = _Entries(), _Entries(), np.arange(op.count)
    reads: list[int] = []
    for space, matrix in op.reads_by:
        used = np.flatnonzero(abs(matrix).sum(axis=1))
        rows = matrix.tocsr() if is_sparse(matrix) else matrix
        inward.add(rows[used], np.arange(len(used)) + len(reads), units)
        reads += [place.dims[space][i] for i in used.tolist()]
    column: dict[int, int] = {}  # of each dimension that is written
    for space, matrix in op.writes_by:
        dims = np.array(place.dims[space])
        used = np.flatnonzero(abs(matrix).sum(axis=0))
        columns = [column.setdefault(dim, len(column)) for dim in dims[used].tolist()]
        outward.add(matrix[:, used], units, np.array(columns, dtype=np.int64))
    given = [(place.dims[s][i], float(v[i])) for s, v in op.constants for i in np.flatnonzero(v).tolist()]
    for dim, _ in given:
        column.setdefault(dim, len(column))
    constant = np.zeros(len(column))
    for dim, value in given:
        constant[column[dim]] += value
    arrays = {
        "W_in": inward.matrix((len(reads), op.count)),
        "b_in": op.bias,
        "W_out": outward.matrix((op.count, len(column))),
        "b_out": constant,
    }
    return Expert(tuple(reads), op.count, tuple(column)), arrays


class _Entries:
    """Non-zero entries of a matrix, collected before its form is chosen."""

    def __init__(self) -> None:
        self.rows: list[NDArray[np.int64]] = []
        self.columns: list[NDArray[np.int64]] = []
        self.values: list[Floats] = []

    def add(self, matrix: Matrix, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
        """Add a block at the given rows and columns."""
        if hasattr(matrix, "tocoo"):
            block = matrix.tocoo()
            at, to, values = block.row, block.col, block.data
        else:
            at, to = np.nonzero(matrix)
            values = matrix[at, to]
        self.rows.append(rows[at])
        self.columns.append(columns[to])
        self.values.append(np.asarray(values, dtype=float))

    def put(self, row: int, column: int, value: float) -> None:
        """Add one entry."""
        self.rows.append(np.array([row]))
        self.columns.append(np.array([column]))
        self.values.append(np.array([value]))

    def matrix(self, shape: tuple[int, ...]) -> Matrix:
        """The sum of all that was added, dense or sparse; with three axes, rows count through the first two."""
        rows = np.concatenate([*self.rows, np.zeros(0, dtype=np.int64)])
        columns = np.concatenate([*self.columns, np.zeros(0, dtype=np.int64)])
        values = np.concatenate([*self.values, np.zeros(0)])
        return from_entries(rows, columns, values, shape)


def _tables(tables: Iterable[tuple[Space, Matrix]], place: Layout, rows: int) -> Matrix:
    entries = _Entries()
    for space, table in tables:
        entries.add(table, np.arange(rows), np.array(place.dims[space]))
    return entries.matrix((rows, place.width))


def _unembed(network: Network, place: Layout) -> Matrix:
    entries = _Entries()
    symbols = np.arange(len(network.output.symbols))
    for space, matrix in network.readout.parts:
        entries.add(matrix, np.array(place.dims[space]), symbols)
    return entries.matrix((place.width, len(symbols)))


def _head_label(op: Attend, block: int, number: int, sharp: Margins) -> HeadLabel:
    found = sharp.heads[op]
    return HeadLabel(op.name, block, number, op.writes.name, found.gap, found.kappa, found.beta_min, found.tolerance)


def _units_labels(works: Sequence[Units], erased: Sequence[Erasure], block: int) -> list[UnitsLabel]:
    labels, at = [], 0
    for op in works:
        labels.append(UnitsLabel(op.name, block, at, at + op.count, tuple(s.name for s in op.writes), op.rows))
        at += op.count
    if erased:
        rows = tuple(f"dimension {erasure.dim}" for erasure in erased)
        labels.append(UnitsLabel("erase", block, at, at + len(erased), (), rows))
    return labels


def _expert_labels(mixes: Sequence[Experts], block: int) -> list[UnitsLabel]:
    labels = []
    for op in mixes:
        parts = [(f"moe.experts.{number}", expert) for number, expert in enumerate(op.experts)]
        if isinstance(op.router, Units):
            parts.insert(0, ("moe.router", op.router))
        for part, units in parts:
            writes = tuple(space.name for space in units.writes)
            labels.append(UnitsLabel(units.name, block, 0, units.count, writes, units.rows, part))
    return labels


def _space_labels(network: Network, plan: Schedule, place: Layout, sharp: Margins) -> tuple[SpaceLabel, ...]:
    gone: Mapping[Space, int] = place.gone
    return tuple(
        SpaceLabel(
            name=space.name,
            kind=space.kind,
            dims=place.dims[space],
            born=plan.born[space],
            dies=gone.get(space, plan.end) - 1,
            error=sharp.errors[space],
        )
        for space in network.spaces
    )
