"""The layers of a convolutional net: a small picture of every channel, or a number for every unit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.net.conv import Convolutional
from vitrify.net.trace import Trace
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]
SHOWN = 48  # channels or units of a layer, those that say something first


def maps(trace: Trace, layer: int) -> dict[str, Any]:
    """The channels after a layer: the planes of the input, each convolution, the sum over places, each dense layer."""
    net = trace.weights.architecture
    assert isinstance(net, Convolutional)
    convolutions = len(net.convolutions)
    if layer <= convolutions:
        given = trace["hook_input"] if layer == 0 else trace[f"conv.{layer - 1}.hook_post"]
        names = _planes(net) if layer == 0 else _names(trace.weights, layer - 1, len(given))
        return {"maps": _pictures(given, names)}
    if layer == convolutions + 1:
        return {"numbers": _numbers(trace["hook_pooled"][0], _names(trace.weights, convolutions - 1, net.maps[-1][0]))}
    if layer <= convolutions + 1 + len(net.dense):
        place = layer - convolutions - 2
        numbers = trace[f"dense.{place}.hook_post"][0]
        return {"numbers": _numbers(numbers, _names(trace.weights, convolutions + place, len(numbers)))}
    return {"numbers": _numbers(trace["hook_logits"][0], net.output.symbols)}


def _planes(net: Convolutional) -> list[str]:
    return list(net.symbols) if net.pixels == "symbols" else ["the image"]


def _names(weights: Weights[Any], block: int, count: int) -> list[str]:
    """The channels of a layer by name, where they have one."""
    rows = [row for label in weights.labels.units if label.block == block for row in label.rows]
    return [rows[place] if place < len(rows) else f"channel {place}" for place in range(count)]


def _pictures(planes: Floats, names: list[str]) -> list[dict[str, Any]]:
    """Every plane in 255 steps of its largest number; those that are not all zero first."""
    order = sorted(range(len(planes)), key=lambda place: not np.any(planes[place]))
    found = []
    for place in order[:SHOWN]:
        plane = np.nan_to_num(planes[place])
        top = float(np.abs(plane).max(initial=0.0))
        steps = np.round(255 * np.clip(plane / top, 0, 1)).astype(np.uint8) if top else np.zeros(plane.shape, np.uint8)
        found.append({"name": names[place], "top": float(f"{top:.4g}"), "rows": [bytes(row).hex() for row in steps]})
    return found


def _numbers(values: Floats, names: Any) -> list[list[Any]]:
    """Units and their numbers; those that are not zero first."""
    order = sorted(range(len(values)), key=lambda place: not values[place])[:SHOWN]
    return [[names[i], float(f"{values[i]:.4g}") if np.isfinite(values[i]) else None] for i in order]
