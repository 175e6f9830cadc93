r"""Maxout networks on disk: `.maxout.json` (read and written) and `.maxout.safetensors` (read).

A JSON file lists the layers; `radius` bounds the inputs, 1 unless said:

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

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import Problem, SpecError
from vitrify.spec.files import Pairs, kind_of, parse_json, refuse_any, refuse_suffix, text_of

Floats = NDArray[np.float64]
Arrays = tuple[Floats, Floats]
Place = int | None  # the layer or point that a problem is about

KEYS = ("radius", "layers", "points")
LARGEST = 1e100  # products of weights must stay finite
TENSOR = re.compile(r"layers\.(\d+)\.(weights|biases)")


@dataclass(frozen=True, eq=False)
class Draft:
    """What a file gives, already checked: layers, or points."""

    layers: tuple[Arrays, ...]
    points: tuple[tuple[float, float], ...] | None
    radius: float | None


def read_maxout(path: Path) -> Draft:
    """The contents of a `.maxout.json` or `.maxout.safetensors` file."""
    if path.name.endswith(".maxout.json"):
        return _read_json(path)
    if path.name.endswith(".maxout.safetensors"):
        return _read_safetensors(path)
    raise refuse_suffix(path, ".maxout.json", ".maxout.safetensors")


def maxout_text(layers: Sequence[Arrays], radius: float) -> str:
    """The text of a `.maxout.json` file, one line for each layer."""
    lines = [json.dumps({"weights": weights.tolist(), "biases": biases.tolist()}) for weights, biases in layers]
    rows = ",\n".join(f"    {line}" for line in lines)
    return f'{{\n  "radius": {json.dumps(radius)},\n  "layers": [\n{rows}\n  ]\n}}\n'


def layer_problems(layers: Sequence[Arrays], radius: float | None) -> Iterator[tuple[Place, str]]:
    """Every broken rule, and the layer that breaks it."""
    if radius is not None and not 0 < radius <= LARGEST:
        yield None, f"radius must be a positive number, got {radius}"
    if not layers:
        yield None, "there must be at least one layer"
    width = None
    for place, (weights, biases) in enumerate(layers):
        found = list(_array_problems(weights, biases, width))
        yield from ((place, f"layer {place + 1}: {message}") for message in found)
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
        if not (np.abs(array) <= LARGEST).all():
            yield f"the {name} must be numbers of size at most {LARGEST:g}"


def point_problems(points: Sequence[tuple[float, float]]) -> Iterator[str]:
    """What is wrong with the points of a function."""
    if len(points) < 2:
        yield f"a function needs at least two points, got {len(points)}"
    if not all(abs(number) <= LARGEST for point in points for number in point):
        yield f"points must be pairs of numbers of size at most {LARGEST:g}"
        return
    for place, (before, after) in enumerate(pairwise(points), start=2):
        if before[0] >= after[0]:
            yield f"points must go from left to right, but point {place} is at {after[0]} after {before[0]}"


def _read_json(path: Path) -> Draft:
    file, text = str(path), text_of(path)
    given = parse_json(text, file)
    if not isinstance(given, Pairs):
        message = f"the file must hold one JSON object with layers or points, got {kind_of(given)}"
        raise SpecError([Problem(message, file)])
    problems: list[Problem] = [Problem(f"the key {key!r} is given twice; keep one", file) for key in given.repeated]
    problems += [
        Problem(f"the key {key!r} is unknown; the keys are {', '.join(KEYS)}", file) for key in given if key not in KEYS
    ]
    if ("layers" in given) == ("points" in given):
        problems.append(Problem("the file must give layers or points, one of the two", file))
    radius = given.get("radius")
    if radius is not None and not (_is_number(radius) and 0 < float(radius) <= LARGEST):  # type: ignore[arg-type]
        problems.append(Problem(f"radius must be a positive number, got {kind_of(radius)}", file))
        radius = None
    layers: tuple[Arrays, ...] = ()
    points = None
    if "layers" in given:
        layers, found = _layers(given["layers"])
        lines = _lines_of(text, "layers")
        problems += [Problem(message, file, lines.get(place)) for place, message in found]
    elif "points" in given:
        points, wrong = _points(given["points"])
        problems += [Problem(message, file, _lines_of(text, "points").get(place)) for place, message in wrong]
    refuse_any(problems)
    return Draft(layers, points, None if radius is None else float(radius))  # type: ignore[arg-type]


def _layers(given: object) -> tuple[tuple[Arrays, ...], list[tuple[Place, str]]]:
    if not isinstance(given, list):
        return (), [(None, f"layers must be a list of objects with weights and biases, got {kind_of(given)}")]
    problems: list[tuple[Place, str]] = []
    layers: list[Arrays] = []
    for place, item in enumerate(given):
        name = f"layer {place + 1}"
        if not isinstance(item, Pairs) or sorted(item) != ["biases", "weights"] or item.repeated:
            problems.append((place, f"{name}: must be an object with weights and biases, each once"))
            continue
        arrays = [_array(item[key]) for key in ("weights", "biases")]
        problems += [
            (place, f"{name}: {key} must be lists of numbers, those side by side equally long")
            for key, array in zip(("weights", "biases"), arrays, strict=True)
            if array is None
        ]
        if arrays[0] is not None and arrays[1] is not None:
            layers.append((arrays[0], arrays[1]))
    return tuple(layers), problems or list(layer_problems(layers, None))


def _points(given: object) -> tuple[tuple[tuple[float, float], ...] | None, list[tuple[Place, str]]]:
    if not isinstance(given, list):
        return None, [(None, f"points must be a list of pairs [x, y], got {kind_of(given)}")]
    wrong: list[tuple[Place, str]] = [
        (place, f"point {place + 1} must be a pair of numbers [x, y], got {kind_of(item)}")
        for place, item in enumerate(given)
        if not (isinstance(item, list) and len(item) == 2 and all(_is_number(number) for number in item))
    ]
    if wrong:
        return None, wrong
    points = tuple((float(x), float(y)) for x, y in given)
    return points, [(None, message) for message in point_problems(points)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _array(value: object) -> Floats | None:
    """Nested lists of numbers as an array, or nothing if they are not."""

    def flat(item: object) -> Iterator[object]:
        if isinstance(item, list):
            for part in item:
                yield from flat(part)
        else:
            yield item

    if not isinstance(value, list) or not all(_is_number(number) for number in flat(value)):
        return None
    try:
        return np.array(value, dtype=np.float64)
    except ValueError:  # lists of different lengths side by side
        return None


def _lines_of(text: str, key: str) -> dict[Place, int]:
    """The line on which each item of a top-level list begins; the text is known to be JSON."""
    found = re.search(rf'"{key}"\s*:\s*\[\s*', text)
    lines: dict[Place, int] = {}
    decode = json.JSONDecoder().raw_decode
    at = found.end() if found else len(text)
    while at < len(text) and text[at] != "]":
        lines[len(lines)] = text.count("\n", 0, at) + 1
        _, at = decode(text, at)
        rest = re.compile(r"\s*,?\s*").match(text, at)
        at = rest.end() if rest else at
    return lines


def _read_safetensors(path: Path) -> Draft:
    from safetensors import SafetensorError, safe_open

    file = str(path)
    try:
        with safe_open(path, framework="numpy") as opened:
            tensors: dict[str, Any] = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            said = (opened.metadata() or {}).get("radius")
    except (OSError, SafetensorError, TypeError, ValueError) as error:
        raise SpecError([Problem(f"the file can't be read as safetensors: {error}", file)]) from None
    problems = [
        Problem(f"the tensor {name!r} is unknown; they are called layers.0.weights, layers.0.biases, …", file)
        for name in sorted(tensors)
        if not TENSOR.fullmatch(name)
    ]
    count = len({match[1] for name in tensors if (match := TENSOR.fullmatch(name))})
    wanted = [f"layers.{place}.{part}" for place in range(count) for part in ("weights", "biases")]
    problems += [Problem(f"the tensor {name!r} is missing", file) for name in wanted if name not in tensors]
    radius = _number(said)
    if said is not None and radius is None:
        problems.append(Problem(f"radius must be a positive number, got {said!r}", file))
    if not problems:
        arrays = [tensors[name].astype(np.float64) for name in wanted]
        layers = tuple(zip(arrays[::2], arrays[1::2], strict=True))
        problems = [Problem(message, file) for _, message in layer_problems(layers, radius)]
    refuse_any(problems)
    return Draft(layers, None, radius)


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
