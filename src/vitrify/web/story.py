"""A run shown stop by stop: what the named spaces hold at every position, and what the last step changed in them.

A convolutional net has feature maps instead of spaces. Everything is read from a `Trace` and the labels; the forward
pass is not repeated. A story is JSON data of one stop and a window of positions: a few kilobytes for each keystroke.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from vitrify.arrays import Floats
from vitrify.encoding import JsonObject
from vitrify.net.architecture import Architecture
from vitrify.net.conv import Convolutional
from vitrify.net.explain_terms import Source, sources
from vitrify.net.spaces import decode
from vitrify.net.trace import Trace
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.report.live import Stop, stops
from vitrify.web.story_units import displayed, readout, reads_any, units_at

MAX_CHANNELS = 48  # channels or units shown for a layer of a convolutional net, those that are not 0 first
WINDOW = 64  # positions that are shown at once
BARS = 12  # dimensions of a space that are drawn one by one
HEADS = 32  # of a layer
UNNAMED = 40  # dimensions without a name
MOVED = 1e-9  # smaller differences are rounding


def story_at(trace: Trace, number: int, position: int) -> JsonObject:
    """Return one stop of a run as JSON data; `position` is shown in detail."""
    weights = trace.weights
    stop = stops(weights)[number]
    if isinstance(weights.architecture, Convolutional):
        return {"stop": asdict(stop), "tokens": list(trace.tokens)} | maps(trace, stop.moment)
    count = len(trace.tokens)
    position = min(max(position, 0), count - 1)
    start = max(0, min(position - WINDOW * 3 // 4, count - WINDOW))
    shown = slice(start, start + WINDOW)
    story: JsonObject = {
        "stop": asdict(stop),
        "tokens": list(trace.tokens[shown]),
        "start": start,
        "position": position,
        "count": count,
        "spaces": _spaces(trace, stop, shown),
    }
    if stop.kind == "attention":
        story["heads"] = _heads(trace, stop, shown)
    elif stop.kind == "units":
        story["units"] = units_at(trace, stop.block, _turn(stop), position)
    elif stop.kind == "answer":
        story["readout"] = readout(trace, position)
    return story


def _turn(stop: Stop) -> int:
    """Return the index under which a block's activations are recorded; a block in a loop has one for each round."""
    return max(0, (stop.moment - 1) // 2)


def label_moment(weights: Weights[Architecture], moment: int) -> int:
    """Return the moment whose labels apply: labels are of the first round of a loop, and hold for all rounds."""
    net = weights.architecture
    if moment == 0 or not isinstance(net, Transformer) or net.loops == 1:
        return moment
    return 1 + (moment - 1) % (2 * len(net.blocks))


def _spaces(trace: Trace, stop: Stop, shown: slice) -> list[JsonObject]:
    """Return every space that is alive, new ones first, then changed ones; all are new at the answer or in an RNN."""
    weights, now = trace.weights, trace.residual(stop.moment)
    moment = label_moment(weights, stop.moment)
    before = None
    if stop.kind != "answer" and stop.moment and isinstance(weights.architecture, Transformer):
        earlier = (other.moment for other in stops(weights) if other.moment < stop.moment)
        before = trace.residual(max(earlier, default=0))
    rows = [
        _space(weights, source, now, before, shown, moment)
        for source in _alive(weights, now, moment)
        if stop.kind != "answer" or reads_any(weights.arrays["unembed.W_U"], source.dims)
    ]
    return sorted(rows, key=lambda row: (not row["new"], not any(row["changed"])))


def _alive(weights: Weights[Architecture], now: Floats, moment: int) -> list[Source]:
    names = sources(weights.labels, now.shape[1], moment)
    unnamed = [s for s in names if s.kind is None and np.abs(now[:, s.dims[0]]).max(initial=0.0) > MOVED]
    return [s for s in names if s.kind is not None] + unnamed[:UNNAMED]


def _space(
    weights: Weights[Architecture], source: Source, now: Floats, before: Floats | None, shown: slice, moment: int
) -> JsonObject:
    dims = list(source.dims)
    label = next((s for s in weights.labels.spaces if s.name == source.name), None)
    values, born = now[shown][:, dims], label.born if label else 0
    new = label is not None and moment > 0 and (born == moment or before is None)
    changed = np.zeros(len(values), dtype=bool)
    if before is not None and max(dims) < before.shape[1]:
        changed = np.abs(values - before[shown][:, dims]).max(axis=1) > MOVED
    row: JsonObject = {
        "name": source.name,
        "kind": source.kind.tag if source.kind else "number",
        "size": len(dims),
        "new": new,
        "last": label is not None and label.dies == moment,
        "changed": changed.astype(int).tolist(),
        "texts": [space_text(source, vector) for vector in values],
        "off": [],
    }
    if source.kind is not None and label is not None:
        allowed = max(2 * label.error, 1e-6)
        off = ~(source.kind.deviation(values) <= allowed)  # NaN is off
        row["off"] = np.flatnonzero(off).tolist()
    if len(dims) <= BARS:
        row["bars"] = [[displayed(0.0 if abs(x) <= MOVED else x) for x in vector] for vector in values]
        row["names"] = [source.coordinate(at).removeprefix(source.name).strip("=∋[]") for at in range(len(dims))]
    return row


def space_text(source: Source, vector: Floats) -> str:
    """Return the content of a space at one position in a few characters, shortened or empty if it has many values."""
    if source.kind is None or source.kind.tag == "reals":
        return _numbers(source, vector)
    value = decode(source.kind, vector)
    if value is None:
        return "–"
    if not isinstance(value, list):
        return str(value)
    if source.kind.tag == "multihot":
        return " ".join(value) if len(value) <= 4 else f"{' '.join(value[:3])} … {len(value)}"
    return " ".join(map(str, value)) if len(value) <= 4 else ""


def _numbers(source: Source, vector: Floats) -> str:
    """Return up to 4 numbers; of more, if no bars are drawn, up to 3 that are not 0, with names; else nothing."""
    if len(vector) <= 4:
        return " ".join(f"{number:.3g}" for number in vector)
    there = np.flatnonzero(np.abs(vector) > MOVED)
    if len(there) > 3 or len(vector) <= BARS:
        return ""
    names = [source.coordinate(int(at)).removeprefix(source.name).strip("=∋[]") for at in there]
    return " ".join(f"{name} {vector[at]:.3g}" for name, at in zip(names, there, strict=True))


def _heads(trace: Trace, stop: Stop, shown: slice) -> list[JsonObject]:
    """Return the attention between shown positions of up to `HEADS` heads of a layer, in 255 steps."""
    pattern = trace[f"blocks.{_turn(stop)}.attn.hook_pattern"]
    labels = {label.index: label for label in trace.weights.labels.heads if label.block == stop.block}
    heads = []
    for head in range(min(len(pattern), HEADS)):
        weights = pattern[head][shown, shown]
        label = labels.get(head)
        heads.append(
            {
                "index": head,
                "name": label.name if label else f"head {head}",
                "writes": label.writes if label else "",
                "pattern": shades(weights),
            }
        )
    return heads


def shades(weights: Floats) -> list[str]:
    """Return weights [query, key] in 255 steps, a text with two hexadecimal digits per key for each query."""
    steps = np.round(255 * np.clip(np.nan_to_num(weights), 0.0, 1.0)).astype(np.uint8)
    return [bytes(row).hex() for row in steps]


def maps(trace: Trace, layer: int) -> JsonObject:
    """Return the channels after a layer: input planes, each convolution, the sum over locations, each dense layer."""
    net = trace.weights.architecture
    assert isinstance(net, Convolutional)
    convolutions = len(net.convolutions)
    if layer <= convolutions:
        inputs = trace["hook_input"] if layer == 0 else trace[f"conv.{layer - 1}.hook_post"]
        planes = list(net.symbols) if net.pixels == "symbols" else ["the image"]
        names = planes if layer == 0 else _names(trace.weights, layer - 1, len(inputs))
        return {"maps": _pictures(inputs, names)}
    if layer <= convolutions + 1 + len(net.dense):
        dense = layer - convolutions - 2  # -1: the sum over locations, which has the names of the last convolution
        numbers = trace["hook_pooled" if dense < 0 else f"dense.{dense}.hook_post"][0]
        return {"numbers": _unit_values(numbers, _names(trace.weights, convolutions + dense, len(numbers)))}
    return {"numbers": _unit_values(trace["hook_logits"][0], net.output.symbols)}


def _names(weights: Weights[Architecture], block: int, count: int) -> list[str]:
    """Return the names of a layer's channels; those without one are numbered."""
    rows = [row for label in weights.labels.units if label.block == block for row in label.unit_names]
    return [rows[place] if place < len(rows) else f"channel {place}" for place in range(count)]


def _pictures(planes: Floats, names: list[str]) -> list[JsonObject]:
    """Return planes in 255 steps of their largest absolute value, negative values as 0; nonzero planes first."""
    order = sorted(range(len(planes)), key=lambda place: not np.any(planes[place]))
    pictures = []
    for place in order[:MAX_CHANNELS]:
        plane = np.nan_to_num(planes[place])
        top = float(np.abs(plane).max(initial=0.0))
        steps = np.round(255 * np.clip(plane / top, 0, 1)).astype(np.uint8) if top else np.zeros(plane.shape, np.uint8)
        pictures.append({"name": names[place], "top": float(f"{top:.4g}"), "rows": [bytes(row).hex() for row in steps]})
    return pictures


def _unit_values(values: Floats, names: Sequence[str]) -> list[list[object]]:
    """Return units and their values; those that are not zero first."""
    order = sorted(range(len(values)), key=lambda place: not values[place])[:MAX_CHANNELS]
    return [[names[i], float(f"{values[i]:.4g}") if np.isfinite(values[i]) else None] for i in order]
