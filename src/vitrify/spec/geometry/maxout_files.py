r"""Maxout networks on disk: `.maxout.json` (read and written) and `.maxout.safetensors` (read).

A JSON file lists the layers; `radius` bounds the inputs, by default 1:

    {
      "radius": 2,
      "layers": [
        {"weights": [[[1.0], [-1.0]]], "biases": [[0.0, 0.0]]},
        {"weights": [[3.0]], "biases": [0.5]}
      ]
    }

Weights are [unit][piece][input] and biases [unit][piece]. Weights that are [unit][input], with biases [unit], are the
matrix of an ordinary layer: followed by a ReLU, or by nothing if it is the last layer. So this file is $3|x| + 0.5$,
and a ReLU network is a list of matrices. A continuous piecewise linear function of one variable may be given by points
instead:

    {"points": [[-1, 0], [0, 1], [1, 0]]}

A safetensors file holds the same as `layers.0.weights`, `layers.0.biases`, `layers.1.weights` … and, in its metadata,
`radius`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np

from vitrify.arrays import Array, Floats
from vitrify.parameters import Fault, Help, Within
from vitrify.spec.formats.data import read_data
from vitrify.spec.formats.text import Problem, SpecError, refuse_any, refuse_suffix

Arrays = tuple[Floats, Floats]
Location = int | None  # the layer or point of a problem

MAX_WEIGHT = 1e100  # products of weights must stay finite
Parts = tuple[tuple[Arrays, ...], tuple[tuple[float, float], ...] | None, float | None]
"""Checked contents of a file: layers, or points, and the radius."""
TENSOR = re.compile(r"layers\.(\d+)\.(weights|biases)")


@dataclass(frozen=True)
class LayerFile:
    """Fields of a layer in a `.maxout.json` file; its numbers are checked as arrays."""

    weights: list[object]
    biases: list[object]


@dataclass(frozen=True)
class MaxoutFile:
    """Fields of a `.maxout.json` file."""

    radius: Annotated[float | None, Within(0, MAX_WEIGHT, "(]")] = None
    layers: tuple[LayerFile, ...] | None = None
    points: Annotated[tuple[tuple[float, float], ...] | None, Help("pairs [x, y]")] = None


def read_maxout(path: Path) -> Parts:
    """Return the contents of a `.maxout.json` or `.maxout.safetensors` file."""
    if path.name.endswith(".maxout.json"):
        return _read_json(path)
    if path.name.endswith(".maxout.safetensors"):
        return _read_safetensors(path)
    raise refuse_suffix(path, ".maxout.json", ".maxout.safetensors")


def layer_problems(layers: Sequence[Arrays], radius: float | None) -> Iterator[tuple[Location, str]]:
    """Yield every problem, with its layer."""
    if radius is not None and not 0 < radius <= MAX_WEIGHT:
        yield None, f"radius must be a positive number, got {radius}"
    if not layers:
        yield None, "there must be at least one layer"
    width = None
    for index, (weights, biases) in enumerate(layers):
        messages = list(_array_problems(weights, biases, width))
        yield from ((index, f"layer {index + 1}: {message}") for message in messages)
        width = len(weights) if weights.ndim in (2, 3) else None


def _array_problems(weights: Floats, biases: Floats, width: int | None) -> Iterator[str]:
    if weights.ndim not in (2, 3) or 0 in weights.shape:
        yield f"weights must be [unit][piece][input] or [unit][input], none of them empty, got shape {weights.shape}"
        return
    if biases.shape != weights.shape[:-1]:
        yield f"weights of shape {weights.shape} need biases of shape {weights.shape[:-1]}, got {biases.shape}"
    if width is not None and weights.shape[-1] != width:
        yield f"the layer reads {weights.shape[-1]} numbers, but the layer before it has {width} units"
    for name, array in (("weights", weights), ("biases", biases)):
        if not (np.abs(array) <= MAX_WEIGHT).all():
            yield f"the {name} must be numbers of size at most {MAX_WEIGHT:g}"


def point_problems(points: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Yield the problems of the points of a function."""
    if len(points) < 2:
        yield f"a function needs at least two points, got {len(points)}"
    if not all(abs(number) <= MAX_WEIGHT for point in points for number in point):
        yield f"points must be pairs of numbers of size at most {MAX_WEIGHT:g}"
        return
    for index, (before, after) in enumerate(pairwise(points), start=2):
        if before[0] >= after[0]:
            yield f"points must go from left to right, but point {index} is at {after[0]} after {before[0]}"


def _read_json(path: Path) -> Parts:
    file = read_data(path)
    parts, problems = file.parts(MaxoutFile)
    if ("layers" in file.data) == ("points" in file.data):
        problems.append(Problem("the file must give layers or points, one of the two", str(path)))
    layers: list[Arrays] = []
    faults: list[Fault] = []
    for index, layer in enumerate(parts.get("layers") or ()):
        arrays = {key: _array(getattr(layer, key)) for key in ("weights", "biases")}
        message = f"layer {index + 1}: {{}} must be lists of numbers, those side by side equally long"
        faults += [(("layers", f"{index}", key), message.format(key)) for key, each in arrays.items() if each is None]
        weights, biases = arrays.values()
        if weights is not None and biases is not None:
            layers.append((weights, biases))
    if "layers" in parts and not faults:
        faults = [(("layers", f"{index}"), message) for index, message in layer_problems(layers, None)]
    points = parts.get("points")
    faults += [(("points",), message) for message in point_problems(points)] if points is not None else []
    refuse_any([*problems, *(file.problem(*fault) for fault in faults)])
    return tuple(layers), points, parts.get("radius")


def _array(value: list[object]) -> Floats | None:
    """Return nested lists of numbers as an array, or None if they are not."""
    entries = np.array(value, dtype=object)  # of lists, where those side by side are not equally long
    numbers = all(type(entry) in (int, float) and abs(entry) <= MAX_WEIGHT for entry in entries.flat)
    return entries.astype(np.float64) if numbers else None


def _read_safetensors(path: Path) -> Parts:
    from safetensors import SafetensorError, safe_open

    file = str(path)
    try:
        with safe_open(path, framework="numpy") as opened:
            tensors: dict[str, Array] = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            radius_text = (opened.metadata() or {}).get("radius")
    except (OSError, SafetensorError, TypeError, ValueError) as error:
        raise SpecError([Problem(f"the file can't be read as safetensors: {error}", file)]) from None
    problems = [
        Problem(f"the tensor {name!r} is unknown; they are called layers.0.weights, layers.0.biases, …", file)
        for name in sorted(tensors)
        if not TENSOR.fullmatch(name)
    ]
    count = len({match[1] for name in tensors if (match := TENSOR.fullmatch(name))})
    wanted = [f"layers.{index}.{part}" for index in range(count) for part in ("weights", "biases")]
    problems += [Problem(f"the tensor {name!r} is missing", file) for name in wanted if name not in tensors]
    radius = _number(radius_text)
    if radius_text is not None and radius is None:
        problems.append(Problem(f"radius must be a positive number, got {radius_text!r}", file))
    if not problems:
        arrays = [tensors[name].astype(np.float64) for name in wanted]
        layers = tuple(zip(arrays[::2], arrays[1::2], strict=True))
        problems = [Problem(message, file) for _, message in layer_problems(layers, radius)]
    refuse_any(problems)
    return layers, None, radius


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
