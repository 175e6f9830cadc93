"""Hidden units that fired at one position and why, and how the answer is read from the stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.net.explain_terms import sources
from vitrify.net.labels import UnitsLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense, is_sparse
from vitrify.net.trace import Trace
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]
FIRED = 1e-9  # a unit with less does not count as working
SHOWN = 24  # units of a layer, the strongest first
TERMS = 8  # of a sum
SYMBOLS = 6  # whose logits are taken apart


def units_at(trace: Trace, block: int, turn: int, place: int) -> dict[str, Any]:
    """The units of a layer that work at a position: what drove each, and what it writes."""
    seen = _seen(trace, block, turn)[place]
    found: list[dict[str, Any]] = []
    count = erased = fired = 0
    for part, reads, writes in _parts(trace, block, turn, place):
        name = f"blocks.{block}.{part}"
        arrays = trace.weights.arrays
        known = f"blocks.{turn}.{part}.hook_pre"
        if known in trace.activations:
            pre = trace[known][place]
        else:  # what experts do inside is not recorded
            pre = _times(seen[reads], arrays[f"{name}.W_in"]) + np.asarray(arrays[f"{name}.b_in"])
        count += len(pre)
        working = pre > FIRED
        fired += int(working.sum())
        for label in _labels(trace.weights, block, part):
            if label.name == "erase":  # clearing dimensions for new spaces is no answer to anything
                erased += int(working[label.start : label.stop].sum())
                working[label.start : label.stop] = False
        found += _told(trace.weights, block, part, reads, writes, seen[reads], pre, np.flatnonzero(working))
    found.sort(key=lambda unit: -unit["strength"])
    return {
        "count": count,
        "fired": fired,
        "erased": erased,
        "expert": _expert(trace, block, turn, place),
        "shown": found[:SHOWN],
    }


def _seen(trace: Trace, block: int, turn: int) -> Floats:
    """What the units of a block read [pos, dimension]: the stream, through a norm where there is one."""
    net = trace.weights.architecture
    if isinstance(net, Recurrent):
        return trace.residual(1)
    stream = trace[f"blocks.{turn}.hook_resid_mid"]
    groups = net.normed(2 * block + 1)
    if not groups:
        return stream
    order, found = [dim for group in groups for dim in group], stream.copy()
    scale, shift = (trace.weights.arrays[f"blocks.{block}.ln2.{name}"] for name in "wb")
    found[:, order] = trace[f"blocks.{turn}.ln2.hook_normalized"] * scale + shift
    return found


def _parts(trace: Trace, block: int, turn: int, place: int) -> list[tuple[str, list[int], list[int]]]:
    """Runs of units that work at a position: the MLP, and the experts that were chosen, with what they read and write.

    Dimensions are those of the whole stream.
    """
    net = trace.weights.architecture
    if isinstance(net, Recurrent):
        return [("mlp", list(range(net.cell.state)), list(range(net.d_out)))]
    shape = net.blocks[block]
    before, after = net.widths[2 * block + 1], net.widths[2 * block + 2]
    whole, own = list(range(before)), list(range(before, after)) if net.residual == "concatenate" else None
    found = [("mlp", whole, own or whole)] if shape.units else []
    if shape.experts:
        chosen = trace[f"blocks.{turn}.moe.hook_expert"][place]
        for number in np.atleast_1d(chosen).astype(int).tolist():
            expert = shape.experts[number]
            found.append((f"moe.experts.{number}", list(expert.reads), list(expert.writes)))
    return found


def _expert(trace: Trace, block: int, turn: int, place: int) -> str | None:
    """The name of the expert that was chosen."""
    name = f"blocks.{turn}.moe.hook_expert"
    if name not in trace.activations:
        return None
    number = int(np.atleast_1d(trace[name][place])[0])
    label = _label(trace.weights, block, f"moe.experts.{number}", 0)
    return label.name if label else str(number)


def _told(
    weights: Weights[Any],
    block: int,
    part: str,
    reads: list[int],
    writes: list[int],
    seen: Floats,
    pre: Floats,
    working: NDArray[np.int64],
) -> list[dict[str, Any]]:
    """The strongest of some units."""
    name = f"blocks.{block}.{part}"
    w_out = weights.arrays[f"{name}.W_out"]
    written = dense(w_out[working]) * pre[working, None]
    strength = np.abs(written).max(axis=1, initial=0.0)
    best = np.argsort(-strength, kind="stable")[:SHOWN]
    units = working[best]
    w_in, bias = _columns(weights.arrays[f"{name}.W_in"], units), weights.arrays[f"{name}.b_in"]
    layered = isinstance(weights.architecture, Transformer)
    given = _at(weights, 2 * block + 1, reads, weights.architecture.normed(2 * block + 1) if layered else ())
    made = _at(weights, 2 * block + 2, writes)
    return [
        {
            "unit": int(unit),
            "part": part,
            "name": _name(weights, block, part, int(unit)),
            "value": _plain(float(pre[unit])),
            "bias": _plain(float(bias[unit])),
            "because": _terms(w_in[:, at] * seen, given, seen),
            "writes": _terms(written[best[at]], made),
            "strength": float(strength[best[at]]),
        }
        for at, unit in enumerate(units)
    ]


def _at(weights: Weights[Any], moment: int, dims: Sequence[int], normed: Any = ()) -> list[str]:
    """The names of some dimensions of the stream at a moment."""
    named = {
        dim: source.coordinate(at)
        for source in sources(weights.labels, max(dims, default=-1) + 1, moment, normed)
        for at, dim in enumerate(source.dims)
    }
    return [named.get(dim, f"dimension {dim}") for dim in dims]


def _terms(products: Floats, names: Sequence[str], values: Floats | None = None) -> dict[str, Any]:
    """The largest terms of a sum, by name, each with the value that it is a multiple of; how many are left out."""
    there = np.flatnonzero(np.abs(products) > 1e-12)
    order = there[np.argsort(-np.abs(products[there]), kind="stable")]
    some = order[:TERMS].tolist()
    terms = [
        [names[i], _plain(float(products[i])), *([_plain(float(values[i]))] if values is not None else [])]
        for i in some
    ]
    return {"terms": terms, "more": len(order) - len(terms)}


def _labels(weights: Weights[Any], block: int, part: str) -> list[UnitsLabel]:
    return [label for label in weights.labels.units if (label.block, label.part) == (block, part)]


def _label(weights: Weights[Any], block: int, part: str, unit: int) -> UnitsLabel | None:
    return next((label for label in _labels(weights, block, part) if label.start <= unit < label.stop), None)


def _name(weights: Weights[Any], block: int, part: str, unit: int) -> dict[str, str]:
    """What a unit's run is for, and its own row in it."""
    label = _label(weights, block, part, unit)
    if label is None:
        return {"run": part, "row": f"unit {unit}"}
    row = label.rows[unit - label.start] if label.rows else f"unit {unit}"
    return {"run": label.name, "row": row}


def readout(trace: Trace, place: int) -> list[dict[str, Any]]:
    """The largest logits at a position, taken apart into what the stream gives."""
    weights, net = trace.weights, trace.weights.architecture
    logits = trace["hook_logits"][place]
    last = len(net.moments) - 1
    stream = trace.residual(last)[place]
    normed: Any = ()
    if isinstance(net, Transformer):
        half = 2 * len(net.blocks)
        normed = net.normed(half)
        if normed:
            order = [dim for group in normed for dim in group]
            scale, shift = (weights.arrays[f"ln_final.{name}"] for name in "wb")
            stream = stream.copy()
            stream[order] = trace["ln_final.hook_normalized"][place] * scale + shift
        last = half
    names = _at(weights, last, range(len(stream)), normed)
    matrix, bias = weights.arrays["unembed.W_U"], weights.arrays["unembed.b_U"]
    best = np.argsort(-np.nan_to_num(logits, nan=-np.inf), kind="stable")[:SYMBOLS]
    columns = _columns(matrix, best)
    return [
        {
            "symbol": net.output.symbols[int(symbol)],
            "logit": _plain(float(logits[symbol])),
            "bias": _plain(float(bias[symbol])),
            "because": _terms(columns[:, at] * stream, names, stream),
        }
        for at, symbol in enumerate(best)
    ]


def drivers(matrix: Any, dims: Sequence[int]) -> bool:
    """Whether a matrix reads any of some dimensions."""
    part = matrix[list(dims)]
    return bool(part.nnz if is_sparse(part) else np.any(part))


def _times(row: Floats, matrix: Any) -> Floats:
    """A row times a matrix, sparse or not."""
    return np.asarray(row @ matrix).ravel()


def _columns(matrix: Any, chosen: NDArray[np.int64]) -> Floats:
    return np.asarray(dense(matrix[:, chosen]))


def _plain(number: float) -> float | None:
    return float(f"{number:.4g}") if np.isfinite(number) else None
