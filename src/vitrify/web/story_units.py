"""Hidden units that fired at one position and why, and how the answer is read from the stream.

A `turn` counts the runs of blocks from 0, as loops run them several times; a `moment` counts the half layers before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Floats, Matrix
from vitrify.encoding import JsonObject
from vitrify.net.architecture import Architecture
from vitrify.net.explain_terms import sources
from vitrify.net.labels import UnitsLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense, is_sparse
from vitrify.net.trace import Trace
from vitrify.net.transformer import Groups, Transformer
from vitrify.net.weights import Weights

FIRED = 1e-9  # a unit with less does not count as working
SHOWN = 24  # units of a layer, the strongest first
TERMS = 8  # of a sum
SYMBOLS = 6  # whose logits are taken apart


def units_at(trace: Trace, block: int, turn: int, position: int) -> JsonObject:
    """The units of a layer that work at a position: what drove each, and what it writes."""
    seen = _seen(trace, block, turn)[position]
    units: list[JsonObject] = []
    count = erased = fired = 0
    for part, reads, writes in _parts(trace, block, turn, position):
        name = f"blocks.{block}.{part}"
        arrays = trace.weights.arrays
        known = f"blocks.{turn}.{part}.hook_pre"
        if known in trace.activations:
            pre = trace[known][position]
        else:  # what experts do inside is not recorded
            pre = np.asarray(seen[reads] @ arrays[f"{name}.W_in"]).ravel() + np.asarray(arrays[f"{name}.b_in"])
        count += len(pre)
        working = pre > FIRED
        fired += int(working.sum())
        for label in unit_labels(trace.weights, block, part):
            if label.name == "erase":  # units that clear dimensions for later spaces are only counted
                erased += int(working[label.start : label.stop].sum())
                working[label.start : label.stop] = False
        units += _strongest(trace.weights, block, part, reads, writes, seen[reads], pre, np.flatnonzero(working))
    units.sort(key=lambda unit: -unit["strength"])
    return {
        "count": count,
        "fired": fired,
        "erased": erased,
        "expert": _expert(trace, block, turn, position),
        "shown": units[:SHOWN],
    }


def _seen(trace: Trace, block: int, turn: int) -> Floats:
    """Return the input of a block's units [pos, dimension]: the residual stream, normalized where there is a norm."""
    net = trace.weights.architecture
    if isinstance(net, Recurrent):
        return trace.residual(1)
    stream = trace[f"blocks.{turn}.hook_resid_mid"]
    return _normed(trace, stream, net.normed(2 * block + 1), f"blocks.{block}.ln2", f"blocks.{turn}.ln2")


def _normed(trace: Trace, stream: Floats, groups: Groups, name: str, recorded: str) -> Floats:
    """The stream [pos, dimension] with some groups of dimensions as a norm leaves them."""
    if not groups:
        return stream
    order, normed = [dim for group in groups for dim in group], stream.copy()
    scale, shift = (trace.weights.arrays[f"{name}.{part}"] for part in "wb")
    normed[:, order] = trace[f"{recorded}.hook_normalized"] * scale + shift
    return normed


def _parts(trace: Trace, block: int, turn: int, position: int) -> list[tuple[str, list[int], list[int]]]:
    """Runs of units that work at a position: the MLP, and the experts that were chosen, with what they read and write.

    Dimensions are those of the whole stream.
    """
    net = trace.weights.architecture
    if isinstance(net, Recurrent):
        return [("mlp", list(range(net.cell.state)), list(range(net.d_out)))]
    shape = net.blocks[block]
    before, after = net.widths[2 * block + 1], net.widths[2 * block + 2]
    everything, own = list(range(before)), list(range(before, after)) if net.residual == "concatenate" else None
    parts = [("mlp", everything, own or everything)] if shape.units else []
    if shape.experts:
        chosen = trace[f"blocks.{turn}.moe.hook_expert"][position]
        for number in np.atleast_1d(chosen).astype(int).tolist():
            expert = shape.experts[number]
            parts.append((f"moe.experts.{number}", list(expert.reads), list(expert.writes)))
    return parts


def _expert(trace: Trace, block: int, turn: int, position: int) -> str | None:
    """The name of the expert that was chosen."""
    name = f"blocks.{turn}.moe.hook_expert"
    if name not in trace.activations:
        return None
    number = int(np.atleast_1d(trace[name][position])[0])
    label = label_at(unit_labels(trace.weights, block, f"moe.experts.{number}"), 0)
    return label.name if label else str(number)


def _strongest(
    weights: Weights[Architecture],
    block: int,
    part: str,
    reads: list[int],
    writes: list[int],
    seen: Floats,
    pre: Floats,
    working: NDArray[np.int64],
) -> list[JsonObject]:
    """Return what the page shows of those units of a part that write the largest values."""
    name = f"blocks.{block}.{part}"
    w_out = weights.arrays[f"{name}.W_out"]
    written = dense(w_out[working]) * pre[working, None]
    strength = np.abs(written).max(axis=1, initial=0.0)
    best = np.argsort(-strength, kind="stable")[:SHOWN]
    units = working[best]
    w_in, bias = _columns(weights.arrays[f"{name}.W_in"], units), weights.arrays[f"{name}.b_in"]
    net = weights.architecture
    normed = net.normed(2 * block + 1) if isinstance(net, Transformer) else ()
    input_names = list(map(dimension_namer(weights, 2 * block + 1, normed), reads))
    made = list(map(dimension_namer(weights, 2 * block + 2), writes))
    return [
        {
            "unit": int(unit),
            "part": part,
            "name": _name(weights, block, part, int(unit)),
            "value": displayed(float(pre[unit])),
            "bias": displayed(float(bias[unit])),
            "because": _terms(w_in[:, at] * seen, input_names, seen),
            "writes": _terms(written[best[at]], made),
            "strength": float(strength[best[at]]),
        }
        for at, unit in enumerate(units)
    ]


def dimension_namer(weights: Weights[Architecture], moment: int, normed: Groups = ()) -> Callable[[int], str]:
    """Return the function that names the dimensions of the stream at a moment."""
    named = {
        dim: source.coordinate(at)
        for source in sources(weights.labels, 0, moment, normed)
        for at, dim in enumerate(source.dims)
    }
    return lambda dim: named.get(dim, f"dimension {dim}")


def _terms(products: Floats, names: Sequence[str], values: Floats | None = None) -> JsonObject:
    """The largest terms of a sum, by name, each with the value that it is a multiple of; how many are left out."""
    there = np.flatnonzero(np.abs(products) > 1e-12)
    order = there[np.argsort(-np.abs(products[there]), kind="stable")]
    some = order[:TERMS].tolist()
    terms = [
        [names[i], displayed(float(products[i])), *([displayed(float(values[i]))] if values is not None else [])]
        for i in some
    ]
    return {"terms": terms, "more": len(order) - len(terms)}


def unit_labels(weights: Weights[Architecture], block: int, part: str) -> list[UnitsLabel]:
    """Return the labels of the units of one part of a block."""
    return [label for label in weights.labels.units if (label.block, label.part) == (block, part)]


def label_at(labels: Sequence[UnitsLabel], unit: int) -> UnitsLabel | None:
    """Return the label of the run that a unit belongs to, if there is one."""
    return next((label for label in labels if label.start <= unit < label.stop), None)


def _name(weights: Weights[Architecture], block: int, part: str, unit: int) -> dict[str, str]:
    """Return the label of the group a unit is in, and the unit's index in it."""
    label = label_at(unit_labels(weights, block, part), unit)
    if label is None:
        return {"run": part, "row": f"unit {unit}"}
    row = label.unit_names[unit - label.start] if label.unit_names else f"unit {unit}"
    return {"run": label.name, "row": row}


def readout(trace: Trace, position: int) -> list[JsonObject]:
    """The largest logits at a position, taken apart into what the stream gives."""
    weights, net = trace.weights, trace.weights.architecture
    logits = trace["hook_logits"][position]
    last = len(net.moments) - 1
    normed: Groups = ()
    stream = trace.residual(last)
    if isinstance(net, Transformer):
        last = 2 * len(net.blocks)
        normed = net.normed(last)
        stream = _normed(trace, stream, normed, "ln_final", "ln_final")
    stream = stream[position]
    names = list(map(dimension_namer(weights, last, normed), range(len(stream))))
    matrix, bias = weights.arrays["unembed.W_U"], weights.arrays["unembed.b_U"]
    best = np.argsort(-np.nan_to_num(logits, nan=-np.inf), kind="stable")[:SYMBOLS]
    columns = _columns(matrix, best)
    return [
        {
            "symbol": net.output.symbols[int(symbol)],
            "logit": displayed(float(logits[symbol])),
            "bias": displayed(float(bias[symbol])),
            "because": _terms(columns[:, at] * stream, names, stream),
        }
        for at, symbol in enumerate(best)
    ]


def reads_any(matrix: Matrix, dims: Sequence[int]) -> bool:
    """Return whether a matrix reads any of some dimensions."""
    part = matrix[list(dims)]
    return bool(part.nnz if is_sparse(part) else np.any(part))


def _columns(matrix: Matrix, chosen: NDArray[np.int64]) -> Floats:
    return np.asarray(dense(matrix[:, chosen]))


def displayed(number: float, digits: int = 4) -> float | None:
    """Return a number as a page shows it, with so many significant digits; None where it is not finite."""
    return float(f"{number:.{digits}g}") if np.isfinite(number) else None
