"""HTML for notebooks: the sizes, arrays and labels of a net; the spaces and attention of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from vitrify.arrays import Floats, Matrix
from vitrify.errors import InputError
from vitrify.markup import Html, card, facts, folded, shade, table, tag
from vitrify.net.architecture import Architecture
from vitrify.net.explain_terms import runs
from vitrify.net.sparse import is_sparse, nonzeros
from vitrify.net.trace import SHOWN_REALS, Trace, short
from vitrify.net.weights import Weights
from vitrify.optional import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOKENS = 32  # first positions of a trace that are shown
HEADS = 12  # first heads whose attention is shown


def weights_card(weights: Weights[Architecture]) -> str:
    """Return a net as HTML: its sizes, arrays, heads, units and named spaces."""
    net, size, labels = weights.architecture, weights.sizes, weights.labels
    read = f"{len(getattr(net, 'inputs', ()))} tokens" if net.reads == "tokens" else f"a {net.reads}"
    what = f"{net.tag}; reads {read}; answers with {len(net.output.symbols)} symbols ({net.output.kind})"
    sizes = table(
        ["layers", "heads", "width", "MLP units", "non-zero", "dense", "largest weight"],
        [[size.layers, size.heads, size.d_model, size.units, size.nonzero, size.dense, size.max_abs]],
    )
    in_order = [(name, weights.arrays[name]) for name in net.shapes()]  # that of the forward pass
    arrays = [
        [name, _shape(array), nonzeros(array), "sparse" if is_sparse(array) else str(array.dtype)]
        for name, array in in_order
    ]
    parts = [tag("div", what, class_="said"), sizes]
    parts.append(folded(f"{len(arrays)} arrays", table(["array", "shape", "non-zero", "kept"], arrays, "arrays")))
    if labels.spaces:
        rows = [[s.name, s.kind.tag, runs(s.dims), _moment(net, s.born), s.error] for s in labels.spaces]
        columns = ["space", "kind", "dimensions", "written", "proved error"]
        parts.append(folded(f"{len(rows)} named spaces", table(columns, rows, "spaces")))
    if labels.heads:
        rows = [[f"{h.block}.{h.index}", h.name, h.writes, h.gap, h.kappa] for h in labels.heads]
        parts.append(folded(f"{len(rows)} heads", table(["head", "does", "writes", "gap", "kappa"], rows, "heads")))
    if labels.units:
        rows = [[f"{u.block}.{u.part}", u.stop - u.start, u.name, ", ".join(u.writes)] for u in labels.units]
        parts.append(folded(f"{len(rows)} banks of units", table(["place", "units", "do", "write"], rows, "banks")))
    if weights.about:
        parts.append(folded("where it comes from", facts(weights.about)))
    return card(net.name or "a net", *parts)


def trace_card(trace: Trace) -> str:
    """Return a trace as HTML: the named spaces at every token, layer by layer, and the attention of the heads.

    Large spaces of reals are left out.
    """
    net, tokens = trace.weights.architecture, trace.tokens[:TOKENS]
    cut = f", the first {len(tokens)} shown" if len(tokens) < len(trace.tokens) else ""
    places = f"{len(trace.tokens)} positions{cut}" if trace.tokens else f"reads a whole {net.reads}"
    parts = [tag("div", places, class_="said")]
    shown = [s for s in trace.weights.labels.spaces if s.kind.tag != "reals" or s.kind.size <= SHOWN_REALS]
    for moment in sorted({space.born for space in shown}):
        spaces = [space for space in shown if space.born == moment]
        rows = [[space.name, *map(short, trace.read(space.name)[:TOKENS])] for space in spaces]
        parts.append(folded(_moment(net, moment), table(["space", *tokens], rows, "spaces"), unfolded=moment == 0))
    heads = list(_heads(trace))
    for title, drawing in heads[:HEADS]:
        parts.append(folded(title, drawing))
    if len(heads) > HEADS:
        parts.append(tag("div", f"… and {len(heads) - HEADS} more heads", class_="said"))
    if len(parts) == 1:
        rows = [[name, _shape(value)] for name, value in trace.activations.items()]
        parts.append(folded("activations", table(["name", "shape"], rows, "activations"), unfolded=True))
    return card(f"a run of {net.name or 'a net'}", *parts)


def _patterns(trace: Trace) -> Iterator[tuple[str, Floats]]:
    """Return every head with its attention between the first positions."""
    named = {(head.block, head.index): head.name for head in trace.weights.labels.heads}
    for block, count in enumerate(trace.weights.architecture.heads_per_layer):
        for head in range(count):
            name = named.get((block, head))
            title = f"head {block}.{head}" + (f": {name}" if name else "")
            yield title, trace[f"blocks.{block}.attn.hook_pattern"][head][:TOKENS, :TOKENS]


def _heads(trace: Trace) -> Iterator[tuple[str, Html]]:
    """Return the attention of every head, a row for each query and a column for each key."""
    tokens = trace.tokens[:TOKENS]
    for title, pattern in _patterns(trace):
        rows = []
        for token, row in zip(tokens, pattern.tolist(), strict=True):
            looks = zip(tokens, row, strict=True)
            rows.append([token, *(shade(weight, f"{token} → {key}: {weight:.4g}") for key, weight in looks)])
        yield title, table(["attends to", *tokens], rows)


def attention_figure(trace: Trace) -> Figure:
    """Return a matplotlib figure of the attention of the heads of a run."""
    heads = [(name, pattern) for name, pattern in _patterns(trace)][:HEADS]
    if not heads:
        raise InputError(f"{trace.weights.architecture.name} has no attention to draw")
    columns = min(len(heads), 4)
    rows = -(-len(heads) // columns)
    size = (3.2 * columns, 3.4 * rows)
    figure = need("matplotlib.figure", "report").Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    tokens, places = trace.tokens[:TOKENS], range(len(trace.tokens[:TOKENS]))
    for axes in grid.flat[len(heads) :]:
        axes.set_axis_off()
    for axes, (name, pattern) in zip(grid.flat, heads, strict=False):
        axes.imshow(pattern, cmap="Blues", vmin=0, vmax=1)
        axes.set_title(name, fontsize=9)
        axes.set_xticks(places, tokens, rotation=90, fontsize=8)
        axes.set_yticks(places, tokens, fontsize=8)
    drawn: Figure = figure
    return drawn


def _moment(net: Architecture, moment: int) -> str:
    """Return the moment at which something is written, in words."""
    if moment == 0:
        return "after embedding"
    block, half = divmod(moment - 1, 2)
    mixes = "attention" if any(net.heads_per_layer[block : block + 1]) else "its recurrence"
    return f"block {block}, after {'its units' if half else mixes}"


def _shape(array: Matrix) -> str:
    return " × ".join(map(str, np.shape(array)))
