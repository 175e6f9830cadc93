"""The glass box for a person: what every space, head and hidden unit of a built net is, read from its weights.

Sizes, gaps and temperatures come from the labels; what a head looks for, what it brings, when a unit works and how the
answer is read come from the arrays themselves, in the names of the spaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.net.cells import Cell
from vitrify.net.explain_cells import RULES, followed
from vitrify.net.explain_page import page
from vitrify.net.explain_terms import Source, added, copied, listed, number, signed, sources, terms_of, worked
from vitrify.net.labels import HeadLabel, SpaceLabel, UnitsLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]
SHOWN = 12  # rows of a table, unless all are asked for
PARTS = 4  # times as many spaces, heads and runs of units
TRIED = 64  # positions on which a position code is tried


@dataclass(frozen=True)
class SpaceLine:
    """A space: its dimensions, and the moments (0 after embedding, then after each half layer) it is there."""

    name: str
    kind: str
    dims: str
    born: int
    dies: int
    given: str | None  # what an embedded space says


@dataclass(frozen=True)
class HeadLines:
    """A head: where it stands, how it weighs, what it looks for and what it brings."""

    place: str
    name: str
    how: str
    looks: tuple[str, ...]
    sink: str | None
    brings: tuple[str, ...]


@dataclass(frozen=True)
class UnitsLines:
    """A run of hidden units: what they are for, a line for each unit, what is always added."""

    place: str
    name: str
    rows: tuple[str, ...]
    always: str | None
    left_out: int


@dataclass(frozen=True)
class Explanation:
    """A net, part by part."""

    name: str
    tag: str
    what: str
    moments: int
    spaces: tuple[SpaceLine, ...]
    heads: tuple[HeadLines, ...]
    cells: tuple[UnitsLines, ...]
    units: tuple[UnitsLines, ...]
    readout: tuple[str, ...]
    left_out: dict[str, int]  # how many spaces, heads, units (runs of them) and symbols of the readout are not shown

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(page(self))


def explain(weights: Weights[Any], *, shown: int | None = SHOWN) -> Explanation:
    """What every part of a net does; tables longer than `shown` are cut, None shows all."""
    net, labels = weights.architecture, weights.labels
    some = None if shown is None else PARTS * shown
    kept = {"spaces": labels.spaces[:some], "heads": labels.heads[:some], "units": labels.units[:some]}
    readout, unread = _readout(weights, shown)
    last = max((space.dies for space in labels.spaces), default=0)
    return Explanation(
        name=net.name,
        tag=net.tag,
        what=_what(net),
        moments=1 + 2 * len(net.blocks) if isinstance(net, Transformer) else last + 1,
        spaces=tuple(
            SpaceLine(s.name, _kind(s), runs(s.dims), s.born, s.dies, _given(weights, s)) for s in labels.spaces[:some]
        ),
        heads=tuple(_head(weights, label, shown) for label in labels.heads[:some]),
        cells=tuple(_cells(weights, shown)),
        units=tuple(_units(weights, label, shown) for label in labels.units[:some]),
        readout=tuple(readout),
        left_out={name: len(getattr(labels, name)) - len(parts) for name, parts in kept.items()} | {"readout": unread},
    )


def _kind(space: SpaceLabel) -> str:
    return f"{space.kind.tag} {space.kind.size}" if space.kind.size > 1 else space.kind.tag


def _given(weights: Weights[Any], space: SpaceLabel) -> str | None:
    """What an embedded space tells: the symbols at which a bit is 1, else what it depends on."""
    if space.born or "embed.W_E" not in weights.arrays or weights.architecture.reads != "tokens":
        return None
    table = dense(weights.arrays["embed.W_E"][:, list(space.dims)])
    if not table.any():
        return "by position"
    names = weights.architecture.inputs
    if table.shape[1] == 1 and np.isin(table, (0.0, 1.0)).all():
        return f"1 at {listed([name for name, held in zip(names, table[:, 0], strict=True) if held])}"
    return "by symbol"


def _what(net: Any) -> str:
    answers = f"answers with {len(net.output.symbols)} {'numbers' if net.output.kind == 'values' else 'symbols'}"
    if isinstance(net, Recurrent):
        read = f", and {net.units} hidden units read it" if net.units else ""
        return (
            f"a recurrent net: its state of {net.width} number{'s' * (net.width > 1)} follows {RULES[net.cell.kind]}, "
            f"from token to token{read}; {answers} ({net.output.kind})"
        )
    if net.tag == "convolutional":
        return (
            f"a convolutional net: {len(net.convolutions)} convolutions and {len(net.dense)} dense layers of ReLU "
            f"channels, the channels of one layer named below; {answers} ({net.output.kind})"
        )
    reads = f"{len(net.inputs) - 1} symbols, at most {net.max_length} of them"
    if net.reads == "vector":
        reads = f"{len(net.inputs)} numbers at {net.max_length} positions"
    elif net.reads == "rows":
        reads = f"a row of {len(net.inputs)} numbers at each of {net.max_length} positions"
    cells = sum(1 for block in net.blocks if block.cell)
    how = f", {cells} of them with a recurrent cell," if cells else ""
    how += f"{'' if how else ','} run {net.loops} times over," if net.loops > 1 else ""
    return f"a transformer of {len(net.blocks)} layers{how} that reads {reads}; {answers} ({net.output.kind})"


def _head(weights: Weights[Transformer], label: HeadLabel, shown: int | None) -> HeadLines:
    net, name = weights.architecture, f"blocks.{label.block}.attn"
    head = net.blocks[label.block].heads[label.place]
    w_q, w_k, w_v, w_o = (dense(weights.arrays[f"{name}.W_{x}"][label.place]) for x in "QKVO")
    b_q, b_v = weights.arrays[f"{name}.b_Q"][label.place], weights.arrays[f"{name}.b_V"][label.place]
    given = sources(weights.labels, len(w_q), 2 * label.block, net.normed(2 * label.block))
    made = sources(weights.labels, w_o.shape[1], 2 * label.block + 1)
    own = np.array(w_k @ b_q)  # what keys score whoever asks
    bos = [
        (f"query {term}", weight)
        for s in given
        if s.name == "bos"
        for term, weight in terms_of(w_q @ w_k[s.dims[0]], given)
    ]
    alone = sum(float(own[s.dims[0]]) for s in given if s.name == "bos")
    keys = [s for s in given if s.name != "bos"]
    looks = _pairs(weights, w_q, w_k, own, given, keys)  # takes from `own` what it has explained
    plain = terms_of(own, keys)
    if plain:
        looks.append(f"keys with the largest {added(plain)}")
    if head.window is not None:
        looks.append("itself alone" if head.window == 1 else f"only the last {head.window} positions, with itself")
    brings = copied(w_v @ w_o, b_v @ w_o, given, [s for s in made if s.name == label.writes] or made)
    parts = [
        head.attention,
        f"ties {head.ties}" if head.attention == "hard" else "",
        head.mask if head.mask != "none" else "sees all",
    ]
    beta = float(weights.arrays[f"{name}.beta"][label.place])
    parts += [f"β {number(beta)}", f"gap {number(label.gap)}" if label.gap else "averages"]
    parts += [f"κ {number(label.kappa)}"] if label.kappa else []
    return HeadLines(
        place=f"{label.block}.{label.place}",
        name=label.name,
        how=", ".join(part for part in parts if part),
        looks=tuple(looks) or ("all that it sees, equally",),
        sink=f"BOS scores {added(bos, alone)}" if bos or alone else None,
        brings=tuple(_cut(brings, shown)),
    )


def _pairs(
    weights: Weights[Transformer],
    w_q: Floats,
    w_k: Floats,
    own: Floats,
    queries: Sequence[Source],
    keys: Sequence[Source],
) -> list[str]:
    """What a query and a key say to each other, space by space."""
    found = []
    for a in (source for source in queries if w_q[list(source.dims)].any()):
        for b in (source for source in keys if w_k[list(source.dims)].any()):
            table = w_q[list(a.dims)] @ w_k[list(b.dims)].T
            largest = float(np.abs(table).max(initial=0.0))
            if largest <= 1e-12:
                continue
            offset = _offset(weights, a, b, table, own)
            square = table.shape[0] == table.shape[1]
            if offset is not None:
                where = "its own position" if offset == 0 else f"the position {offset} before its own"
                found.append(f"{where} (by {a.name})")
                own[list(b.dims)] = 0.0
            elif square and np.allclose(table, table[0, 0] * np.eye(len(table)), rtol=0, atol=1e-12):
                found.append(f"keys whose {b.name} is the query's {a.name} (× {number(float(table[0, 0]))})")
            else:
                entries = [
                    (f"(query {a.coordinate(i)})(key {b.coordinate(j)})", float(table[i, j]))
                    for i, j in np.argwhere(np.abs(table) > 1e-12 * largest).tolist()
                ]
                found.append(added(entries, limit=4))
    return found


def _offset(weights: Weights[Transformer], a: Source, b: Source, table: Floats, own: Floats) -> int | None:
    """How far back two position codes look, if they always look as far back."""
    net = weights.architecture
    if net.reads != "tokens" or len(a.dims) < 2 or len(b.dims) < 2:
        return None
    embedded, rows = weights.arrays["embed.W_E"], dense(weights.arrays["pos_embed.W_pos"])[net.pads :][:TRIED]
    if np.any(dense(embedded[:, list(a.dims + b.dims)])) or not rows[:, list(a.dims)].any():
        return None
    scores = rows[:, list(a.dims)] @ table @ rows[:, list(b.dims)].T + rows[:, list(b.dims)] @ own[list(b.dims)]
    back = np.arange(len(scores)) - scores.argmax(axis=1)
    offset = int(back[-1])
    alone = (scores > scores.max(axis=1, keepdims=True) - 1e-9).sum(axis=1) == 1
    good = 0 <= offset < len(scores) and (back[offset:] == offset).all() and alone[offset:].all()
    return offset if good else None


def _cells(weights: Weights[Any], shown: int | None) -> Iterator[UnitsLines]:
    """How the state goes on."""
    net, labels = weights.architecture, weights.labels
    cells: list[tuple[int, Cell, list[Source], list[Source]]] = []
    if isinstance(net, Recurrent):
        cells.append((0, net.cell, sources(labels, net.d_embed, 0), sources(labels, net.cell.state, 1)))
    for block in range(len(net.blocks)) if isinstance(net, Transformer) else ():
        cell = net.blocks[block].cell
        if cell:
            given, stream = (sources(labels, net.widths[2 * block + half], 2 * block + half) for half in (0, 1))
            cells.append((block, cell, given, _carried(dense(weights.arrays[f"blocks.{block}.rec.W_C"]), stream)))
    for block, cell, given, made in cells:
        lines = followed(weights, block, cell, given, made)
        yield UnitsLines(
            f"recurrence {block}", cell.kind, tuple(lines[:shown]), None, len(lines[shown:]) if shown else 0
        )


def _carried(w_c: Floats, stream: Sequence[Source]) -> list[Source]:
    """The state of a cell, number by number, under the names of what it writes into the stream."""
    names = {dim: s.coordinate(at) for s in stream for at, dim in enumerate(s.dims)}
    return [Source(names[int(row.argmax())] if row.any() else f"state {n}", None, (n,)) for n, row in enumerate(w_c)]


def _units(weights: Weights[Any], label: UnitsLabel, shown: int | None) -> UnitsLines:
    layer = "layer" if weights.architecture.tag == "convolutional" else "MLP"
    place = f"{layer} {label.block}" + ("" if label.part == "mlp" else f" {label.part.removeprefix('moe.')}")
    place += f", units {label.start}–{label.stop - 1}"
    count = label.stop - label.start
    if label.name == "erase":
        return UnitsLines(place, "erase", (f"dimensions {runs(_erased(label))} are cleared for new spaces",), None, 0)
    kept = count if shown is None else min(count, shown)
    arrow = f"{label.name}{' → ' + ', '.join(label.writes) if label.writes else ''}"
    name = f"blocks.{label.block}.{label.part}"
    if f"{name}.W_in" not in weights.arrays:  # channels of a convolution are told by their names
        return UnitsLines(place, arrow, label.rows[:kept], None, count - kept)
    given, made = _ends(weights, label)
    w_in, bias, w_out, constant = _matrices(weights, label, kept)
    units = [(w_in[:, i], float(bias[i]), w_out[i]) for i in range(kept)]
    lines = _lines(units, given, made, label.rows, label.start)
    own = [s for s in made if s.name in label.writes]
    return UnitsLines(place, arrow, tuple(lines), _changes(constant, own) or None, count - kept)


def _ends(weights: Weights[Any], label: UnitsLabel) -> tuple[list[Source], list[Source]]:
    """What some units read and write, by the columns of their own arrays."""
    net, labels = weights.architecture, weights.labels
    half, layered = 2 * label.block + 1, isinstance(net, Transformer)
    widths = net.widths[half:][:2] if layered else (net.cell.state, net.d_out)
    given = sources(labels, widths[0], half, net.normed(half) if layered else ())
    made = sources(labels, widths[1], 2 * label.block + 2)
    if label.part == "moe.router":
        tasks = [u.name for u in labels.units if u.block == label.block and u.part.startswith("moe.experts.")]
        return given, [Source(f"score of {task}", None, (i,)) for i, task in enumerate(tasks)]
    return given, made


def _matrices(weights: Weights[Any], label: UnitsLabel, kept: int) -> tuple[Floats, Floats, Floats, Floats]:
    """The first units' weights [stream, unit], biases, outputs [unit, stream] and the constant, in whole streams."""
    name, chosen = f"blocks.{label.block}.{label.part}", slice(label.start, label.start + kept)
    w_in, w_out = dense(weights.arrays[f"{name}.W_in"][:, chosen]), dense(weights.arrays[f"{name}.W_out"][chosen])
    bias, constant = weights.arrays[f"{name}.b_in"][chosen], np.array(weights.arrays[f"{name}.b_out"])
    if label.part.startswith("moe.experts."):
        net = weights.architecture
        expert = net.blocks[label.block].experts[int(label.part.rsplit(".", 1)[1])]
        reads, writes = np.eye(net.width)[list(expert.reads)], np.eye(net.width)[list(expert.writes)]
        return reads.T @ w_in, bias, w_out @ writes, constant @ writes
    for other in weights.labels.units:  # what erasing adds is not theirs
        if (other.block, other.part, other.name) == (label.block, label.part, "erase"):
            constant[_erased(other)] -= weights.arrays[f"{name}.b_in"][other.start : other.stop]
    return w_in, bias, w_out, constant


def _erased(label: UnitsLabel) -> list[int]:
    return [int(row.rsplit(" ", 1)[1]) for row in label.rows]


def _lines(
    units: Sequence[tuple[Floats, float, Floats]],
    given: Sequence[Source],
    made: Sequence[Source],
    rows: tuple[str, ...],
    start: int,
) -> list[str]:
    """A line for each unit: when it works, and what it then writes; nameless units that work together share one."""
    found: list[tuple[int, int, str, Floats, str]] = []  # first and last unit, when, what is written, the line
    for i, (column, bias, row) in enumerate(units):
        when, height = worked(column, bias, given)
        first, written = i, row if height is None else height * row
        if height is not None and found and found[-1][2] == when:
            first, written = found[-1][0], written + found.pop()[3]
        changes = _changes(written, made) or "nothing"
        found.append((first, i, when, written, f"{when} × ({changes})" if height is None else f"if {when}: {changes}"))
    names = [
        rows[a] if rows else f"unit {start + a}" if a == b else f"units {start + a}–{start + b}" for a, b, *_ in found
    ]
    return [f"{name}: {line}" for name, (*_, line) in zip(names, found, strict=True)]


def _changes(row: Floats, made: Sequence[Source]) -> str:
    terms = terms_of(row, made)
    many = f" … and {len(terms) - 6} more" if len(terms) > 6 else ""
    return ", ".join(f"{name} {signed(weight)}" for name, weight in terms[:6]) + many


def _readout(weights: Weights[Any], shown: int | None) -> tuple[list[str], int]:
    """The answer, symbol by symbol, and how many symbols are left out."""
    matrix, bias = weights.arrays["unembed.W_U"], weights.arrays["unembed.b_U"]
    net, layered = weights.architecture, isinstance(weights.architecture, Transformer)
    symbols = net.output.symbols
    last = 2 * len(net.blocks) if layered else 2
    if isinstance(net, Recurrent):
        last = len(net.moments) - 1
    given = sources(weights.labels, matrix.shape[0], last, net.normed(last) if layered else ())
    if not weights.labels.spaces and weights.labels.units:  # channels of a convolutional net
        rows = weights.labels.units[-1].rows
        given = [Source(row, None, (i,)) for i, row in enumerate(rows)] if len(rows) == matrix.shape[0] else given
    whole = next((s for s in given if tuple(n.strip("=∋[]") for n in getattr(s.kind, "names", ())) == symbols), None)
    if whole is not None and not np.any(bias):
        table = dense(matrix[list(whole.dims)])
        rest = np.setdiff1d(np.arange(matrix.shape[0]), whole.dims)
        if np.array_equal(table, np.eye(len(symbols))) and not np.any(dense(matrix[rest])):
            return [f"each symbol has the logit that {whole.name} gives it"], 0
    lines = [
        f"{symbol} ← {added(terms_of(dense(matrix[:, [i]])[:, 0], given), float(bias[i]))}"
        for i, symbol in enumerate(symbols[:shown])
    ]
    return lines, len(symbols) - len(lines)


def _cut(lines: Sequence[str], shown: int | None) -> list[str]:
    if shown is None or len(lines) <= shown:
        return list(lines)
    return [*lines[:shown], f"… and {len(lines) - shown} more (--all)"]


def runs(dims: Sequence[int]) -> str:
    """Runs of consecutive numbers: 0–3, 7."""
    found: list[list[int]] = []
    for dim in sorted(dims):
        if found and dim == found[-1][1] + 1:
            found[-1][1] = dim
        else:
            found.append([dim, dim])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in found)
