"""Explain a built net in words: the function of every space, head and hidden unit, read from its weights.

Sizes, gaps and inverse temperatures come from the labels. The keys that a head attends to, the values that it copies,
the condition of each unit and the readout come from the arrays, in the names of the spaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vitrify.arrays import Floats
from vitrify.net.architecture import Architecture
from vitrify.net.cells import Cell
from vitrify.net.conv import Convolutional
from vitrify.net.explain_cells import RULES, followed
from vitrify.net.explain_measured import Measured
from vitrify.net.explain_page import Explanation, HeadLines, SpaceLine, UnitsLines
from vitrify.net.explain_terms import Source, added, copied, listed, number, runs, signed, sources, terms_of, worked
from vitrify.net.labels import HeadLabel, SpaceLabel, UnitsLabel
from vitrify.net.positions import tabulated
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.net.transformer import Groups, Transformer
from vitrify.net.weights import Weights, has_architecture, has_positions

SHOWN_ROWS = 12  # default rows of a table
PARTS = 4  # spaces, heads and runs of units shown, as a multiple of `shown`
TRIED_POSITIONS = 64  # positions on which a position code is tried


def explain(weights: Weights[Architecture], *, shown: int | None = SHOWN_ROWS) -> Explanation:
    """Explain every part of a net; tables longer than `shown` rows are cut, None shows all."""
    net, labels = weights.architecture, weights.labels
    some = None if shown is None else PARTS * shown
    shown_parts = {"spaces": labels.spaces[:some], "heads": labels.heads[:some], "units": labels.units[:some]}
    readout, unread = _readout(weights, shown)
    last = max((space.dies for space in labels.spaces), default=0)
    unlabelled, heads = _unlabelled(weights), tuple[HeadLines, ...]()
    if unlabelled:
        heads = tuple(unlabelled.heads(some))
    elif has_architecture(weights, Transformer):
        heads = tuple(_head(weights, label, shown) for label in labels.heads[:some])
    return Explanation(
        name=net.name,
        tag=net.tag,
        what=_what(net),
        moments=1 + 2 * len(net.blocks) if isinstance(net, Transformer) else last + 1,
        spaces=tuple(
            SpaceLine(
                s.name,
                f"{s.kind.tag} {s.kind.size}" if s.kind.size > 1 else s.kind.tag,
                runs(s.dims),
                s.born,
                s.dies,
                _embedded(weights, s),
            )
            for s in labels.spaces[:some]
        ),
        heads=heads,
        cells=tuple(_cells(weights, shown)),
        units=tuple(_units(weights, label, shown) for label in labels.units[:some]),
        readout=tuple(readout),
        measured=tuple(unlabelled.lines()) if unlabelled else (),
        left_out={name: len(getattr(labels, name)) - len(parts) for name, parts in shown_parts.items()}
        | {"readout": unread}
        | ({"heads": unlabelled.count - len(heads)} if unlabelled else {}),
    )


def _unlabelled(weights: Weights[Architecture]) -> Measured | None:
    """Return a transformer without labels together with its activations on random words."""
    if weights.labels.spaces or not has_architecture(weights, Transformer) or weights.architecture.reads != "tokens":
        return None
    return Measured(weights)


def _embedded(weights: Weights[Architecture], space: SpaceLabel) -> str | None:
    """Return the content of an embedded space: the symbols at which a bit is 1, or else what it depends on."""
    if space.born or not has_positions(weights) or weights.architecture.reads != "tokens":
        return None
    table = dense(weights.arrays["embed.W_E"][:, list(space.dims)])
    if not table.any():
        return "by position"
    names = weights.architecture.inputs
    if table.shape[1] == 1 and np.isin(table, (0.0, 1.0)).all():
        return f"1 at {listed([name for name, held in zip(names, table[:, 0], strict=True) if held])}"
    return "by symbol"


def _what(net: Architecture) -> str:
    answers = f"answers with {len(net.output.symbols)} {'numbers' if net.output.kind == 'values' else 'symbols'}"
    if isinstance(net, Recurrent):
        read = f", and {net.units} hidden units read it" if net.units else ""
        return (
            f"a recurrent net: its state of {net.width} number{'s' * (net.width > 1)} follows {RULES[net.cell.kind]}, "
            f"from token to token{read}; {answers} ({net.output.kind})"
        )
    if isinstance(net, Convolutional):
        return (
            f"a convolutional net: {len(net.convolutions)} convolutions and {len(net.dense)} dense layers of ReLU "
            f"channels, the channels of one layer named below; {answers} ({net.output.kind})"
        )
    assert isinstance(net, Transformer)
    reads = f"{len(net.inputs) - 1} symbols, at most {net.longest} of them"
    if net.reads == "vector":
        reads = f"{len(net.inputs)} numbers at {net.max_length} positions"
    elif net.reads == "rows":
        reads = f"a vector of {len(net.inputs)} numbers at each of {net.max_length} positions"
    cells = sum(1 for block in net.blocks if block.cell)
    details = f", {cells} of them with a recurrent cell," if cells else ""
    details += f"{'' if details else ','} run {net.loops} times over," if net.loops > 1 else ""
    depth = f"{len(net.blocks)} layer{'' if len(net.blocks) == 1 else 's'}"
    return f"a transformer of {depth}{details} that reads {reads}; {answers} ({net.output.kind})"


def _head(weights: Weights[Transformer], label: HeadLabel, shown: int | None) -> HeadLines:
    net, name = weights.architecture, f"blocks.{label.block}.attn"
    head = net.blocks[label.block].heads[label.index]
    w_q, w_k, w_v, w_o = (dense(weights.arrays[f"{name}.W_{x}"][label.index]) for x in "QKVO")
    w_o = w_o @ _appended(net, 2 * label.block, label.index, w_o.shape[1])
    b_q, b_v = weights.arrays[f"{name}.b_Q"][label.index], weights.arrays[f"{name}.b_V"][label.index]
    inputs = sources(weights.labels, len(w_q), 2 * label.block, net.normed(2 * label.block))
    outputs = sources(weights.labels, w_o.shape[1], 2 * label.block + 1)
    key_scores = np.array(w_k @ b_q)  # the part of a score that depends on the key alone
    bos = [
        (f"query {term}", weight)
        for s in inputs
        if s.name == "bos"
        for term, weight in terms_of(w_q @ w_k[s.dims[0]], inputs)
    ]
    alone = sum(float(key_scores[s.dims[0]]) for s in inputs if s.name == "bos")
    keys = [s for s in inputs if s.name != "bos"]
    attends_to = _pairs(weights, w_q, w_k, key_scores, inputs, keys)  # sets explained entries of key_scores to 0
    plain = terms_of(key_scores, keys)
    if plain:
        attends_to.append(f"keys with the largest {added(plain)}")
    if head.window is not None:
        attends_to.append("itself alone" if head.window == 1 else f"only the last {head.window} positions, with itself")
    attends_to += [f"only BOS and the positions of its own segment of {head.segment}"] if head.segment else []
    copies = copied(w_v @ w_o, b_v @ w_o, inputs, [s for s in outputs if s.name == label.writes] or outputs)
    beta = float(weights.arrays[f"{name}.beta"][label.index])
    parts = [head.attention, f"ties {head.ties}" if head.attention == "hard" else ""]
    parts += [head.mask if head.mask != "none" else "sees all", f"β {number(beta)}"]
    selects = "the best key wins" if head.attention == "hard" and w_q.any() else "averages"
    parts += [f"gap {number(label.gap)}" if label.gap else selects]
    parts += [f"κ {number(label.kappa)}"] if label.kappa else []
    return HeadLines(
        location=f"{label.block}.{label.index}",
        name=label.name,
        attention=", ".join(part for part in parts if part),
        attends_to=tuple(attends_to) or ("all that it sees, equally",),
        sink=f"BOS scores {added(bos, alone)}" if bos or alone else None,
        copies=tuple(_cut(copies, shown)),
    )


def _pairs(
    weights: Weights[Transformer],
    w_q: Floats,
    w_k: Floats,
    key_scores: Floats,
    queries: Sequence[Source],
    keys: Sequence[Source],
) -> list[str]:
    """Return the products of query and key that make up a score, space by space."""
    lines = []
    for a in (source for source in queries if w_q[list(source.dims)].any()):
        for b in (source for source in keys if w_k[list(source.dims)].any()):
            table = w_q[list(a.dims)] @ w_k[list(b.dims)].T
            largest = float(np.abs(table).max(initial=0.0))
            if largest <= 1e-12:
                continue
            offset = _offset(weights, a, b, table, key_scores)
            square = table.shape[0] == table.shape[1]
            if offset is not None:
                where = "its own position" if offset == 0 else f"the position {offset} before its own"
                lines.append(f"{where} (by {a.name})")
                key_scores[list(b.dims)] = 0.0
            elif square and np.allclose(table, table[0, 0] * np.eye(len(table)), rtol=0, atol=1e-12):
                lines.append(f"keys whose {b.name} is the query's {a.name} (× {number(float(table[0, 0]))})")
            else:
                entries = [
                    (f"(query {a.coordinate(i)})(key {b.coordinate(j)})", float(table[i, j]))
                    for i, j in np.argwhere(np.abs(table) > 1e-12 * largest).tolist()
                ]
                lines.append(added(entries, limit=4))
    return lines


def _offset(weights: Weights[Transformer], a: Source, b: Source, table: Floats, key_scores: Floats) -> int | None:
    """Return the constant offset at which a head attends back by two position codes, or None if there is none."""
    net = weights.architecture
    if net.reads != "tokens" or len(a.dims) < 2 or len(b.dims) < 2:
        return None
    embedded = weights.arrays["embed.W_E"]
    codes = dense(tabulated(weights).arrays["pos_embed.W_pos"])[net.pads :][:TRIED_POSITIONS]
    if np.any(dense(embedded[:, list(a.dims + b.dims)])) or not codes[:, list(a.dims)].any():
        return None
    scores = (
        codes[:, list(a.dims)] @ table @ codes[:, list(b.dims)].T + codes[:, list(b.dims)] @ key_scores[list(b.dims)]
    )
    back = np.arange(len(scores)) - scores.argmax(axis=1)
    offset = int(back[-1])
    alone = (scores > scores.max(axis=1, keepdims=True) - 1e-9).sum(axis=1) == 1
    good = 0 <= offset < len(scores) and (back[offset:] == offset).all() and alone[offset:].all()
    return offset if good else None


def _cells(weights: Weights[Architecture], shown: int | None) -> Iterator[UnitsLines]:
    """Return the update rule of every recurrent cell."""
    net, labels = weights.architecture, weights.labels
    cells: list[tuple[int, Cell, list[Source], list[Source]]] = []
    if isinstance(net, Recurrent):
        cells.append((0, net.cell, sources(labels, net.d_embed, 0), sources(labels, net.cell.state, 1)))
    elif isinstance(net, Transformer):
        for block, cell in ((index, each.cell) for index, each in enumerate(net.blocks) if each.cell):
            inputs, stream = (sources(labels, net.widths[2 * block + half], 2 * block + half) for half in (0, 1))
            cells.append((block, cell, inputs, _carried(dense(weights.arrays[f"blocks.{block}.rec.W_C"]), stream)))
    for block, cell, inputs, outputs in cells:
        lines = followed(weights, block, cell, inputs, outputs)
        yield UnitsLines(
            f"recurrence {block}", cell.kind, tuple(lines[:shown]), None, len(lines[shown:]) if shown else 0
        )


def _carried(w_c: Floats, stream: Sequence[Source]) -> list[Source]:
    """Return the state of a cell, dimension by dimension, named after what it writes into the residual stream."""
    names = {dim: s.coordinate(at) for s in stream for at, dim in enumerate(s.dims)}
    return [Source(names[int(row.argmax())] if row.any() else f"state {n}", None, (n,)) for n, row in enumerate(w_c)]


def _units(weights: Weights[Architecture], label: UnitsLabel, shown: int | None) -> UnitsLines:
    layer = "layer" if weights.architecture.tag == "convolutional" else "MLP"
    location = f"{layer} {label.block}" + ("" if label.part == "mlp" else f" {label.part.removeprefix('moe.')}")
    location += f", units {label.start}–{label.stop - 1}"
    count = label.stop - label.start
    n_shown = count if shown is None else min(count, shown)
    arrow = f"{label.name}{' → ' + ', '.join(label.writes) if label.writes else ''}"
    name = f"blocks.{label.block}.{label.part}"
    if f"{name}.W_in" not in weights.arrays:  # channels of a convolution have only names
        return UnitsLines(location, arrow, label.unit_names[:n_shown], None, count - n_shown)
    if label.name == "erase":
        cleared = runs(_erased(weights, label))
        return UnitsLines(location, "erase", (f"clears dimensions {cleared} for new spaces",), None, 0)
    inputs, outputs = _ends(weights, label)
    w_in, bias, w_out, constant = _matrices(weights, label, n_shown)
    units = [(w_in[:, i], float(bias[i]), w_out[i]) for i in range(n_shown)]
    lines = _lines(units, inputs, outputs, label.unit_names, label.start)
    targets = [s for s in outputs if s.name in label.writes]
    return UnitsLines(location, arrow, tuple(lines), _changes(constant, targets) or None, count - n_shown)


def _ends(weights: Weights[Architecture], label: UnitsLabel) -> tuple[list[Source], list[Source]]:
    """Return the spaces that units read and write, in the order of the rows and columns of their arrays."""
    net, labels = weights.architecture, weights.labels
    half = 2 * label.block + 1
    if isinstance(net, Transformer):
        inputs, (_, width) = sources(labels, net.widths[half], half, net.normed(half)), net.widths[half:][:2]
    else:
        assert isinstance(net, Recurrent)
        inputs, width = sources(labels, net.cell.state, half), net.d_out
    outputs = sources(labels, width, 2 * label.block + 2)
    if label.part == "moe.router":
        tasks = [u.name for u in labels.units if u.block == label.block and u.part.startswith("moe.experts.")]
        return inputs, [Source(f"score of {task}", None, (i,)) for i, task in enumerate(tasks)]
    return inputs, outputs


def _matrices(weights: Weights[Architecture], label: UnitsLabel, n_shown: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the first units' weights [d_model, unit], biases, output weights [unit, d_model] and the constant."""
    name, chosen = f"blocks.{label.block}.{label.part}", slice(label.start, label.start + n_shown)
    w_in, w_out = dense(weights.arrays[f"{name}.W_in"][:, chosen]), dense(weights.arrays[f"{name}.W_out"][chosen])
    bias, constant = weights.arrays[f"{name}.b_in"][chosen], np.array(weights.arrays[f"{name}.b_out"])
    if label.part.startswith("moe.experts."):
        net = weights.architecture
        assert isinstance(net, Transformer)
        expert = net.blocks[label.block].experts[int(label.part.rsplit(".", 1)[1])]
        reads, writes = np.eye(net.width)[list(expert.reads)], np.eye(net.width)[list(expert.writes)]
        return reads.T @ w_in, bias, w_out @ writes, constant @ writes
    if has_architecture(weights, Transformer):
        places = _appended(weights.architecture, 2 * label.block + 1, 0, w_out.shape[1])
        w_out, constant = w_out @ places, constant @ places
    for other in weights.labels.units:  # minus the constants of the units that erase
        if (other.block, other.part, other.name) == (label.block, label.part, "erase"):
            constant[_erased(weights, other)] -= weights.arrays[f"{name}.b_in"][other.start : other.stop]
    return w_in, bias, w_out, constant


def _appended(net: Transformer, half: int, part: int, written: int) -> Floats:
    """Return the matrix from what a part of a half layer writes to the stream after it, which it may only append to."""
    if net.residual == "add":
        return np.eye(written)
    first = net.widths[half] + part * written
    return np.eye(net.widths[half + 1])[first : first + written]


def _erased(weights: Weights[Architecture], label: UnitsLabel) -> list[int]:
    """Return the dimension that each of some units clears: the only one that it writes."""
    w_out = dense(weights.arrays[f"blocks.{label.block}.{label.part}.W_out"][label.start : label.stop])
    dims: list[int] = np.abs(w_out).argmax(axis=1).tolist()
    return dims


def _lines(
    units: Sequence[tuple[Floats, float, Floats]],
    inputs: Sequence[Source],
    outputs: Sequence[Source],
    names: tuple[str, ...],
    start: int,
) -> list[str]:
    """Return a line for each unit: its condition and what it writes; unnamed units with one condition share a line."""
    groups: list[tuple[int, int, str, Floats, str]] = []  # first and last unit, when, what is written, the line
    for i, (column, bias, row) in enumerate(units):
        when, height = worked(column, bias, inputs)
        first, written = i, row if height is None else height * row
        if height is not None and groups and groups[-1][2] == when:
            first, written = groups[-1][0], written + groups.pop()[3]
        changes = _changes(written, outputs) or "nothing"
        groups.append((first, i, when, written, f"{when} × ({changes})" if height is None else f"if {when}: {changes}"))
    titles = [
        names[a] if names else f"unit{'s' * (a < b)} {runs(range(start + a, start + b + 1))}" for a, b, *_ in groups
    ]
    return [f"{name}: {line}" for name, (*_, line) in zip(titles, groups, strict=True)]


def _changes(row: Floats, outputs: Sequence[Source]) -> str:
    terms = terms_of(row, outputs)
    many = f" … and {len(terms) - 6} more" if len(terms) > 6 else ""
    return ", ".join(f"{name} {signed(weight)}" for name, weight in terms[:6]) + many


def _readout(weights: Weights[Architecture], shown: int | None) -> tuple[list[str], int]:
    """Return the readout, symbol by symbol, and the number of symbols that are left out."""
    matrix, bias = weights.arrays["unembed.W_U"], weights.arrays["unembed.b_U"]
    net, last = weights.architecture, 2
    normed: Groups = ()
    symbols = net.output.symbols
    if isinstance(net, Transformer):
        last = 2 * len(net.blocks)
        normed = net.normed(last)
    elif isinstance(net, Recurrent):
        last = len(net.moments) - 1
    inputs = sources(weights.labels, matrix.shape[0], last, normed)
    if not weights.labels.spaces and weights.labels.units:  # channels of a convolutional net
        rows = weights.labels.units[-1].unit_names
        inputs = [Source(row, None, (i,)) for i, row in enumerate(rows)] if len(rows) == matrix.shape[0] else inputs
    space = next((s for s in inputs if tuple(n.strip("=∋[]") for n in getattr(s.kind, "names", ())) == symbols), None)
    if space is not None and not np.any(bias):
        table = dense(matrix[list(space.dims)])
        other_dims = np.setdiff1d(np.arange(matrix.shape[0]), space.dims)
        if np.array_equal(table, np.eye(len(symbols))) and not np.any(dense(matrix[other_dims])):
            return [f"each symbol has the logit that {space.name} gives it"], 0
    lines = [
        f"{symbol} ← {added(terms_of(dense(matrix[:, [i]])[:, 0], inputs), float(bias[i]))}"
        for i, symbol in enumerate(symbols[:shown])
    ]
    return lines, len(symbols) - len(lines)


def _cut(lines: Sequence[str], shown: int | None) -> list[str]:
    if shown is None or len(lines) <= shown:
        return list(lines)
    return [*lines[:shown], f"… and {len(lines) - shown} more (--all)"]
