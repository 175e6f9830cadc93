"""Folders that exports write: in one step, with labels, spec, certificate and the report beside the weights."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from vitrify.arrays import Array
from vitrify.encoding import JsonObject
from vitrify.errors import FolderError
from vitrify.files import whole_folder
from vitrify.net.architecture import SequenceArchitecture, to_json
from vitrify.net.conv import Convolutional
from vitrify.net.folder import file_of
from vitrify.net.folder import write_tensors as write_safetensors
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights

REPORT = "equality.json"
SOURCE = "vitrify.json"  # the config file of the folder that was exported
CARRIED = ("labels.json", "certificate.json")


def writing(folder: Path) -> AbstractContextManager[Path]:
    """Return a place to write to that becomes the folder in one step; only an earlier export is replaced."""
    return whole_folder(folder, "an export", lambda path: (path / REPORT).is_file())


def carry(source: Path, folder: Path) -> dict[str, Path]:
    """Copy what is known about a model beside its export: labels, spec, certificate, and its own config file."""
    spec = read_json(source / "config.json").get("spec")
    named = [name for name in CARRIED if os.path.lexists(source / name)] + ([] if spec is None else [spec])
    files = {name: file_of(source, name) for name in named} | {SOURCE: source / "config.json"}
    return {name: Path(shutil.copyfile(path, folder / name)) for name, path in files.items()}


def description(weights: Weights[SequenceArchitecture]) -> JsonObject:
    """Return the entry `vitrify` of a config file: all that is needed to run a network elsewhere and read it back."""
    net = weights.architecture
    return {
        "net": to_json(net),
        "kind": str(next(iter(weights.arrays.values())).dtype),
        "beta": {
            name.removesuffix(".attn.beta"): [float(number) for number in dense(array)]
            for name, array in weights.arrays.items()
            if name.endswith(".attn.beta")
        },
        "shapes": {name: list(shape) for name, shape in net.shapes().items()},
        "hooks": activations(weights),
    }


def activations(weights: Weights[SequenceArchitecture]) -> list[str]:
    """The names of all activations of a run, in their order."""
    net, seen = weights.architecture, JsonObject()
    least = max(1, net.pads + net.min_length) if net.reads == "tokens" else 0
    net.forward(weights.prepared, blank(net, least), record=seen.__setitem__)
    return list(seen)


def blank(net: SequenceArchitecture, length: int = 0) -> Array:
    """One input of zeros; `length` counts only if the net reads tokens."""
    if net.reads == "tokens":
        return np.zeros((1, length), np.int64)
    if isinstance(net, Convolutional):
        return np.zeros((1, net.planes, net.rows, net.columns))
    return np.zeros((1, *([net.max_length] if net.reads == "rows" else []), len(net.inputs)))


def write_tensors(path: Path, arrays: Mapping[str, Array], precision: str) -> None:
    """Write arrays in one precision."""
    flat = {name: np.ascontiguousarray(arrays[name], dtype=precision) for name in sorted(arrays)}
    write_safetensors(flat, path, {"format": "pt"})


def tensors(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (OSError, SafetensorError, ValueError) as error:
        raise FolderError(f"{path} can't be read as weights: {error}") from None


def read_json(path: Path) -> JsonObject:
    """Return the object that a JSON file holds; it may be a link, as in the caches of other libraries."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} can't be read: {error}") from None
    if not isinstance(data, dict):
        raise FolderError(f"{path} does not hold a JSON object")
    return data
