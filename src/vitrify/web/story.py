"""A run told stop by stop: what the named spaces hold at every position, and what the step before did to them.

Everything is read from a `Trace` and the labels; nothing is computed a second way. A story is plain JSON data, of one
stop and a window of positions, so that a keystroke moves kilobytes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vitrify.net.conv import Convolutional
from vitrify.net.explain_terms import Source, sources
from vitrify.net.spaces import decode
from vitrify.net.trace import Trace
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.web.story_maps import maps
from vitrify.web.story_units import drivers, readout, units_at

Floats = NDArray[np.float64]
WINDOW = 64  # positions that are shown at once
BARS = 12  # dimensions of a space that are drawn one by one
HEADS = 32  # of a layer
UNNAMED = 40  # dimensions without a name
MOVED = 1e-9  # smaller differences are rounding

Kind = Literal["embedding", "attention", "recurrence", "units", "maps", "answer"]


@dataclass(frozen=True)
class Stop:
    """A moment of a run at which one may look: `moment` is the net's own number of it."""

    name: str
    kind: Kind
    moment: int
    block: int


def stops(weights: Weights[Any]) -> list[Stop]:
    """Where a run may be looked at, in order; half layers without heads or units are left out."""
    net = weights.architecture
    if isinstance(net, Convolutional):
        layers = [f"convolution {i}" for i in range(len(net.convolutions))]
        layers += ["sum over places", *(f"dense layer {i}" for i in range(len(net.dense)))]
        found = [Stop(name, "maps", place, place) for place, name in enumerate(["input", *layers])]
        return [*found, Stop("answer", "answer", len(found), 0)]
    if not isinstance(net, Transformer):
        found = [Stop("embedding", "embedding", 0, 0), Stop("recurrence", "recurrence", 1, 0)]
        found += [Stop("MLP", "units", 2, 0)] if net.units else []
        return [*found, Stop("answer", "answer", len(found) - 1, 0)]
    found = [Stop("embedding", "embedding", 0, 0)]
    for turn, (index, block) in enumerate(net.turns):
        first = f"round {turn // len(net.blocks) + 1}, " if net.loops > 1 else ""
        if block.heads or block.cell:
            kind: Kind = "attention" if block.heads else "recurrence"
            found.append(Stop(f"{first}{kind} {index}", kind, 2 * turn + 1, index))
        if block.halves:
            found.append(Stop(f"{first}{'experts' if block.experts else 'MLP'} {index}", "units", 2 * turn + 2, index))
    return [*found, Stop("answer", "answer", len(net.moments) - 1, len(net.blocks))]


def told(trace: Trace, number: int, place: int) -> dict[str, Any]:
    """One stop of a run; `place` is the position that is looked at closely."""
    weights = trace.weights
    stop = stops(weights)[number]
    if isinstance(weights.architecture, Convolutional):
        return {"stop": asdict(stop), "tokens": list(trace.tokens)} | maps(trace, stop.moment)
    count = len(trace.tokens)
    place = min(max(place, 0), count - 1)
    start = max(0, min(place - WINDOW * 3 // 4, count - WINDOW))
    shown = slice(start, start + WINDOW)
    found: dict[str, Any] = {
        "stop": asdict(stop),
        "tokens": list(trace.tokens[shown]),
        "start": start,
        "place": place,
        "count": count,
        "spaces": _spaces(trace, stop, shown),
    }
    if stop.kind == "attention":
        found["heads"] = _heads(trace, stop, shown)
    elif stop.kind == "units":
        found["units"] = units_at(trace, stop.block, _turn(stop), place)
    elif stop.kind == "answer":
        found["readout"] = readout(trace, place)
    return found


def _turn(stop: Stop) -> int:
    """The number under which a block's activations are recorded: blocks of a loop have one for each round."""
    return max(0, (stop.moment - 1) // 2)


def label_moment(weights: Weights[Any], moment: int) -> int:
    """The moment that labels speak about: in a loop all rounds are as the first."""
    net = weights.architecture
    if moment == 0 or not isinstance(net, Transformer) or net.loops == 1:
        return moment
    return 1 + (moment - 1) % (2 * len(net.blocks))


def _spaces(trace: Trace, stop: Stop, shown: slice) -> list[dict[str, Any]]:
    """Every space that is alive, the fresh ones first, then those that have changed."""
    weights, now = trace.weights, trace.residual(stop.moment)
    moment = label_moment(weights, stop.moment)
    before = None
    if stop.kind != "answer" and stop.moment and isinstance(weights.architecture, Transformer):
        before = trace.residual(_earlier(weights, stop.moment))
    rows = [
        _space(weights, source, now, before, shown, moment)
        for source in _alive(weights, now, moment)
        if stop.kind != "answer" or _read_out(weights, source)
    ]
    return sorted(rows, key=lambda row: (not row["new"], not any(row["changed"])))


def _earlier(weights: Weights[Any], moment: int) -> int:
    """The stop before a moment."""
    return max((stop.moment for stop in stops(weights) if stop.moment < moment), default=0)


def _alive(weights: Weights[Any], now: Floats, moment: int) -> list[Source]:
    found = sources(weights.labels, now.shape[1], moment)
    unnamed = [s for s in found if s.kind is None and np.abs(now[:, s.dims[0]]).max(initial=0.0) > MOVED]
    return [s for s in found if s.kind is not None] + unnamed[:UNNAMED]


def _read_out(weights: Weights[Any], source: Source) -> bool:
    """Whether the answer is read from a space."""
    return drivers(weights.arrays["unembed.W_U"], source.dims)


def _space(
    weights: Weights[Any], source: Source, now: Floats, before: Floats | None, shown: slice, moment: int
) -> dict[str, Any]:
    dims = list(source.dims)
    label = next((s for s in weights.labels.spaces if s.name == source.name), None)
    values, born = now[shown][:, dims], label.born if label else 0
    new = label is not None and moment > 0 and (born == moment or before is None)
    changed = np.zeros(len(values), dtype=bool)
    if before is not None and max(dims) < before.shape[1]:
        changed = np.abs(values - before[shown][:, dims]).max(axis=1) > MOVED
    row: dict[str, Any] = {
        "name": source.name,
        "kind": source.kind.tag if source.kind else "number",
        "size": len(dims),
        "new": new,
        "last": label is not None and label.dies == moment,
        "changed": changed.astype(int).tolist(),
        "said": [said(source, vector) for vector in values],
        "off": [],
    }
    if source.kind is not None and label is not None:
        allowed = max(2 * label.error, 1e-6)
        off = ~(source.kind.deviation(values) <= allowed)  # what is not a number is off
        row["off"] = np.flatnonzero(off).tolist()
    if len(dims) <= BARS:
        row["bars"] = [[plain(number) for number in vector] for vector in values]
        row["names"] = [source.coordinate(at).removeprefix(source.name).strip("=∋[]") for at in range(len(dims))]
    return row


def said(source: Source, vector: Floats) -> str:
    """What a space says at one position, in a few characters; nothing where it says too many numbers."""
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
    """A few numbers; of many only those that are not 0, by name, if these are few and no bars are drawn."""
    if len(vector) <= 4:
        return " ".join(f"{number:.3g}" for number in vector)
    there = np.flatnonzero(np.abs(vector) > MOVED)
    if len(there) > 3 or len(vector) <= BARS:
        return ""
    names = [source.coordinate(int(at)).removeprefix(source.name).strip("=∋[]") for at in there]
    return " ".join(f"{name} {vector[at]:.3g}" for name, at in zip(names, there, strict=True))


def plain(number: float) -> float | None:
    """A number of four digits, as JSON has it; rounding is no number."""
    return float(f"{number:.4g}") * (abs(number) > MOVED) if np.isfinite(number) else None


def _heads(trace: Trace, stop: Stop, shown: slice) -> list[dict[str, Any]]:
    """The attention of every head of a layer, in 255 steps."""
    pattern = trace[f"blocks.{_turn(stop)}.attn.hook_pattern"]
    labels = {label.place: label for label in trace.weights.labels.heads if label.block == stop.block}
    found = []
    for place in range(min(len(pattern), HEADS)):
        weights = np.clip(np.nan_to_num(pattern[place][shown, shown]), 0.0, 1.0)
        label = labels.get(place)
        found.append(
            {
                "place": place,
                "name": label.name if label else f"head {place}",
                "writes": label.writes if label else "",
                "pattern": [bytes(row).hex() for row in np.round(255 * weights).astype(np.uint8)],
            }
        )
    return found
