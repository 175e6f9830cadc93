"""Assembly: the named spaces and operations of a network become arrays.

The passes, in order: schedule (layers), layout (dimensions), margins (inverse temperatures), then the arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from vitrify.arrays import Floats, Ints, Matrix
from vitrify.errors import BuildRefused
from vitrify.kit.layout import Erasure, Layout, lay_out, lay_out_loop
from vitrify.kit.margins import Arithmetic, Margins, margins
from vitrify.kit.network import Affine, Attend, Experts, Network, Recur, Space, Units, heads_of
from vitrify.kit.schedule import Schedule, schedule
from vitrify.net.cells import Cell
from vitrify.net.experts import Expert
from vitrify.net.labels import HeadLabel, Labels, SpaceLabel, UnitsLabel
from vitrify.net.positions import PositionFormula
from vitrify.net.sparse import dense, from_entries, is_sparse
from vitrify.net.transformer import Block, Groups, Head, Transformer
from vitrify.net.weights import Weights


def _margins(network: Network, arithmetic: Arithmetic) -> Margins:
    """Return the margins; a refusal begins with the line of the text that the space it is about comes from."""
    try:
        return margins(network, arithmetic)
    except BuildRefused as error:
        named = [name for name in network.lines if name in str(error)]
        line = f"line {network.lines[max(named, key=len)]}: " if named else ""
        raise BuildRefused(f"{line}{error}") from None


def assemble(network: Network, *, arithmetic: Arithmetic = "float64") -> Weights:
    """Return the weights of a network; the same network gives the same bytes."""
    plan = schedule(network)
    layout = lay_out_loop(plan, network.carries) if network.carries else lay_out(plan, reuse=network.reuse)
    groups = _groups(network, plan, layout)
    layout = replace(layout, dims={**layout.dims, **{space: layout.dims[held] for space, held in plan.seen.items()}})
    sharp = _margins(network, arithmetic)
    for old, new in network.carries:
        if sharp.errors[new] > sharp.errors[old]:
            raise BuildRefused(f"errors of {new.name!r} would grow from round to round: snap it")
    width, symbols = layout.width, len(network.output.symbols)
    arrays: dict[str, Matrix] = {}
    tabled = [("embed.W_E", network.embedded, len(network.inputs))]
    if not (network.formulas or network.rounding):
        tabled.append(("pos_embed.W_pos", network.positional, network.pads + network.max_length))
    for name, tables, rows in tabled:
        arrays[name] = _Entries(layout).write(tables, np.arange(rows)).matrix((rows, width))
    blocks, heads, units = [], [], []
    for index in range(plan.blocks):
        attends = [head for op in network.operations if plan.moments.get(op) == 2 * index + 1 for head in heads_of(op)]
        recurs = [op for op in network.operations if isinstance(op, Recur) and plan.moments[op] == 2 * index + 1]
        mlps = [op for op in network.operations if isinstance(op, Units) and plan.moments[op] == 2 * index + 2]
        mixes = [op for op in network.operations if isinstance(op, Experts) and plan.moments[op] == 2 * index + 2]
        erased = [erasure for erasure in layout.erasures if erasure.block == index]
        experts, router, mixed = _mixture(mixes, layout)
        cell, recurring = _recurrence(recurs, layout)
        blocks.append(replace(_block(attends, mlps, erased), experts=experts, router=router, cell=cell))
        arrays |= {f"blocks.{index}.rec.{k}": v for k, v in recurring.items()}
        arrays |= {f"blocks.{index}.moe.{k}": v for k, v in mixed.items()}
        arrays |= {f"blocks.{index}.attn.{k}": v for k, v in _attention(attends, layout, sharp, blocks[-1]).items()}
        arrays |= {f"blocks.{index}.mlp.{k}": v for k, v in _mlp(mlps, erased, layout).items()}
        heads += [_head_label(op, index, number, sharp) for number, op in enumerate(attends)]
        units += [*_units_labels(mlps, erased, index), *_expert_labels(mixes, index)]
    arrays |= _norms(groups)
    unembed = _Entries(layout).read(network.readout.parts, np.arange(symbols))
    arrays |= {"unembed.W_U": unembed.matrix((width, symbols)), "unembed.b_U": network.readout.bias}
    architecture = Transformer(
        inputs=network.inputs,
        output=network.output,
        max_length=network.max_length,
        min_length=network.min_length,
        d_model=width,
        blocks=tuple(blocks),
        pads=network.pads,
        norm=any(groups),
        groups=groups if any(groups) else (),
        reads=network.reads,
        loops=network.loops,
        formulas=_formulas(network, layout),
        rounding=network.rounding,
        rounding_power=network.rounding_power,
        name=network.name,
    )
    labels = Labels(_space_labels(network, plan, layout, sharp), tuple(heads), tuple(units))
    return Weights(architecture, arrays, labels, network.about)


def _formulas(network: Network, layout: Layout) -> tuple[PositionFormula, ...]:
    """Return the formulas of positions, one for each dimension."""
    return tuple(
        PositionFormula(dim, tuple(map(int, column)), function)
        for space, powers, function in network.formulas
        for dim, column in zip(layout.dims[space], powers.T.tolist(), strict=True)
    )


def _groups(network: Network, plan: Schedule, layout: Layout) -> tuple[Groups, ...]:
    """Return the dimensions that each attention, MLP and the unembedding read through norms, space by space."""
    readings = [set[Space]() for _ in range(2 * plan.blocks + 1)]
    for op, moment in plan.moments.items():
        readings[moment - 1] |= set(op.reads)
    readings[-1] |= {space for space, _ in network.readout.parts}
    for reads in readings:
        both = [space.name for space, held in plan.seen.items() if space in reads and held in reads]
        if both:
            raise ValueError(f"{', '.join(both)}: a space is read through its norm or as it is, not both at once")
    return tuple(tuple(layout.dims[held] for space, held in plan.seen.items() if space in r) for r in readings)


def _norms(groups: Sequence[Groups]) -> dict[str, Matrix]:
    """Return the arrays of the norms: scales of 1 and shifts of 0."""
    arrays: dict[str, Matrix] = {}
    for half, some in enumerate(groups):
        name = "ln_final" if half == len(groups) - 1 else f"blocks.{half // 2}.ln{half % 2 + 1}"
        size = sum(len(group) for group in some)
        if size:
            arrays |= {f"{name}.w": np.ones(size), f"{name}.b": np.zeros(size)}
    return arrays


def _block(attends: Sequence[Attend], mlps: Sequence[Units], erased: Sequence[Erasure]) -> Block:
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
        units=sum(op.count for op in mlps) + len(erased),
    )


def _attention(attends: Sequence[Attend], layout: Layout, sharp: Margins, block: Block) -> dict[str, Matrix]:
    if not attends:
        return {}
    count, width = len(attends), layout.width
    arrays: dict[str, Matrix] = {"beta": np.array([sharp.heads[op].beta for op in attends])}
    sizes = {"Q": block.d_head, "K": block.d_head, "V": block.d_value}
    for letter, size in sizes.items():
        entries, bias = _Entries(layout), np.zeros((count, size))
        for number, op in enumerate(attends):
            affine = {"Q": op.query, "K": op.key, "V": op.value}[letter]
            entries.read(affine.parts, np.arange(affine.size), first_row=number * width)
            bias[number, : affine.size] = affine.bias
        arrays |= {f"W_{letter}": entries.matrix((count, width, size)), f"b_{letter}": bias}
    written = _Entries(layout)
    for number, op in enumerate(attends):
        out = np.eye(op.writes.size) if op.out is None else op.out
        written.write([(op.writes, out)], number * block.d_value + np.arange(op.value.size))
    arrays["W_O"] = written.matrix((count, block.d_value, width))
    if block.window:
        arrays["b_rel"] = np.zeros((count, block.window))
        for number, op in enumerate(attends):
            if op.bias is not None:
                arrays["b_rel"][number, : len(op.bias)] = op.bias
    return arrays


def _recurrence(recurs: Sequence[Recur], layout: Layout) -> tuple[Cell | None, dict[str, Matrix]]:
    """Return one cell for all recurrences of a block, each with its own part of the state, and its arrays."""
    if not recurs:
        return None, {}
    state = sum(op.writes.size for op in recurs)
    if len(recurs) > 1 and any(op.full for op in recurs):
        raise BuildRefused("a layer has one recurrence with matrices, and no other")
    scaled, driven, written = _Entries(layout), _Entries(layout), _Entries(layout)
    at = 0
    for op in recurs:
        own = np.arange(at, at + op.writes.size)
        scaled.read(op.scale.parts, np.arange(op.scale.size) + at)
        driven.read(op.drives.parts, own)
        written.write([(op.writes, np.eye(op.writes.size))], own)
        at += op.writes.size
    if any(op.full for op in recurs):
        matrices = dense(scaled.matrix((layout.width, state * state))).reshape(layout.width, state, state)
        arrays = {"W_A": matrices, "W_B": driven.matrix((layout.width, state))}
        return Cell("full", state), arrays | {"W_C": written.matrix((state, layout.width))}
    arrays = {name: entries.matrix((layout.width, state)) for name, entries in (("W_A", scaled), ("W_B", driven))}
    return Cell("diagonal", state), arrays | {"W_C": written.matrix((state, layout.width))}


def _mlp(mlps: Sequence[Units], erased: Sequence[Erasure], layout: Layout) -> dict[str, Matrix]:
    total = sum(op.count for op in mlps) + len(erased)
    if not total:
        return {}
    inward, outward = _Entries(layout), _Entries(layout)
    bias, constant = np.zeros(total), np.zeros(layout.width)
    at = 0
    for op in mlps:
        units = np.arange(at, at + op.count)
        inward.read(op.reads_by, units)
        outward.write(op.writes_by, units)
        for space, vector in op.constants:
            constant[list(layout.dims[space])] += vector
        bias[units] = op.bias
        at += op.count
    dims, units = np.array([erasure.dim for erasure in erased], dtype=np.int64), np.arange(at, total)
    inward.put(np.ones(len(dims)), dims, units)
    outward.put(-np.ones(len(dims)), units, dims)
    lows = np.array([erasure.low for erasure in erased])
    bias[at:] = -lows
    constant[dims] -= lows
    w_in, w_out = inward.matrix((layout.width, total)), outward.matrix((total, layout.width))
    return {"W_in": w_in, "b_in": bias, "W_out": w_out, "b_out": constant}


def _mixture(mixes: Sequence[Experts], layout: Layout) -> tuple[tuple[Expert, ...], int, dict[str, Matrix]]:
    """Return the experts of a block, the number of hidden units of their router, and the arrays of both."""
    if not mixes:
        return (), 0, {}
    if len(mixes) > 1:
        raise BuildRefused(f"a block has one set of experts, not {' and '.join(repr(op.name) for op in mixes)}")
    (op,) = mixes
    built = [_expert(expert, layout) for expert in op.experts]
    arrays = {f"experts.{number}.{key}": array for number, (_, part) in enumerate(built) for key, array in part.items()}
    scores = _Entries(layout)
    if isinstance(op.router, Affine):
        hidden, bias = 0, op.router.bias
        scores.read(op.router.parts, np.arange(len(built)))
    else:
        hidden, bias = op.router.count, np.zeros(len(built))
        inward = _Entries(layout).read(op.router.reads_by, np.arange(hidden))
        for _, matrix in op.router.writes_by:
            scores.add(matrix, np.arange(hidden), np.arange(len(built)))
        arrays |= {"router.W_in": inward.matrix((layout.width, hidden)), "router.b_in": op.router.bias}
    arrays |= {"router.W_out": scores.matrix((hidden or layout.width, len(built))), "router.b_out": bias}
    return tuple(expert for expert, _ in built), hidden, arrays


def _expert(op: Units, layout: Layout) -> tuple[Expert, dict[str, Matrix]]:
    """Return an expert and its arrays, which depend on no other space of the residual stream."""
    inward, outward, units = _Entries(layout), _Entries(layout), np.arange(op.count)
    reads: list[int] = []
    for space, matrix in op.reads_by:
        used = np.flatnonzero(abs(matrix).sum(axis=1))
        rows = matrix.tocsr() if is_sparse(matrix) else matrix
        inward.add(rows[used], np.arange(len(used)) + len(reads), units)
        reads += [layout.dims[space][i] for i in used.tolist()]
    column: dict[int, int] = {}  # of each dimension that is written
    for space, matrix in op.writes_by:
        dims = np.array(layout.dims[space])
        used = np.flatnonzero(abs(matrix).sum(axis=0))
        columns = [column.setdefault(dim, len(column)) for dim in dims[used].tolist()]
        outward.add(matrix[:, used], units, np.array(columns, dtype=np.int64))
    constants = [(layout.dims[s][i], float(v[i])) for s, v in op.constants for i in np.flatnonzero(v).tolist()]
    for dim, _ in constants:
        column.setdefault(dim, len(column))
    constant = np.zeros(len(column))
    for dim, value in constants:
        constant[column[dim]] += value
    w_in, w_out = inward.matrix((len(reads), op.count)), outward.matrix((op.count, len(column)))
    arrays = {"W_in": w_in, "b_in": op.bias, "W_out": w_out, "b_out": constant}
    return Expert(tuple(reads), op.count, tuple(column)), arrays


class _Entries:
    """Non-zero entries of a matrix, collected before it is made dense or sparse."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.blocks: list[tuple[Ints, Ints, Floats]] = []  # rows, columns and values

    def put(self, values: Floats, rows: Ints, columns: Ints) -> None:
        """Add entries."""
        self.blocks.append((rows, columns, np.asarray(values, dtype=float)))

    def add(self, matrix: Matrix, rows: Ints, columns: Ints) -> None:
        """Add a block at the given rows and columns."""
        if hasattr(matrix, "tocoo"):
            block = matrix.tocoo()
            self.put(block.data, rows[block.row], columns[block.col])
        else:
            at, to = np.nonzero(matrix)
            self.put(matrix[at, to], rows[at], columns[to])

    def read(self, parts: Iterable[tuple[Space, Matrix]], columns: Ints, first_row: int = 0) -> _Entries:
        """Add the matrices of spaces, each from their dimensions to the given columns."""
        for space, matrix in parts:
            self.add(matrix, first_row + np.array(self.layout.dims[space]), columns)
        return self

    def write(self, parts: Iterable[tuple[Space, Matrix]], rows: Ints) -> _Entries:
        """Add the matrices of spaces, each from the given rows to their dimensions."""
        for space, matrix in parts:
            self.add(matrix, rows, np.array(self.layout.dims[space]))
        return self

    def matrix(self, shape: tuple[int, ...]) -> Matrix:
        """Return the sum of all blocks added, dense or sparse; with three axes, rows are indices into the first two."""
        none = np.zeros(0, dtype=np.int64)
        rows, columns, values = map(np.concatenate, zip((none, none, np.zeros(0)), *self.blocks, strict=True))
        return from_entries(rows, columns, values, shape)


def _head_label(op: Attend, block: int, number: int, sharp: Margins) -> HeadLabel:
    sharpness = sharp.heads[op]
    proved = (sharpness.gap, sharpness.kappa, sharpness.beta_min, sharpness.tolerance)
    return HeadLabel(op.name, block, number, op.writes.name, *proved, attends_to=op.attends_to)


def _units_labels(mlps: Sequence[Units], erased: Sequence[Erasure], block: int) -> list[UnitsLabel]:
    labels, at = [], 0
    for op in mlps:
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


def _space_labels(network: Network, plan: Schedule, layout: Layout, sharp: Margins) -> tuple[SpaceLabel, ...]:
    erased_at: Mapping[Space, int] = layout.erased_at
    return tuple(
        SpaceLabel(
            name=space.name,
            kind=space.kind,
            dims=layout.dims[space],
            born=plan.born[space],
            dies=erased_at.get(space, plan.end) - 1,
            error=sharp.errors[space],
        )
        for space in network.spaces
        if space not in plan.seen
    )
