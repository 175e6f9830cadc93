"""Folders that exports write: in one step, with labels, spec, certificate and the report beside the weights."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import FolderError
from vitrify.net.architecture import to_json
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights

REPORT = "equality.json"
SOURCE = "vitrify.json"  # the config file of the folder that was exported
CARRIED = ("labels.json", "certificate.json")


@contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """A place to write to that becomes the folder in one step; one that an export wrote before, or an empty one, is
    replaced, anything else left alone."""
    folder = folder.resolve()
    if folder.is_file():
        raise FolderError(f"{folder} is a file: name a folder to write the export to")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / REPORT).is_file():
        raise FolderError(f"{folder} exists and is not an export of vitrify: name another one")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
    try:
        yield partial
        partial.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run in a store, and not a model folder."""
    return (folder / "weights.safetensors").is_file() and not (folder / "config.json").is_file()


def carry(source: Path, folder: Path) -> dict[str, Path]:
    """Copy what is known about a model beside its export: labels, spec, certificate, and its own config file."""
    config = read_json(source / "config.json")
    names = [name for name in (*CARRIED, config.get("spec")) if name and (source / name).is_file()]
    for name in names:
        shutil.copyfile(source / name, folder / name)
    shutil.copyfile(source / "config.json", folder / SOURCE)
    return {name: folder / name for name in (*names, SOURCE)}


def description(weights: Weights[Any]) -> dict[str, Any]:
    """What it takes to run a network elsewhere and to read it back, in a config file under `vitrify`."""
    net = weights.architecture
    return {
        "net": to_json(net),
        "kind": str(next(iter(weights.arrays.values())).dtype),
        "beta": betas(weights),
        "shapes": {name: list(shape) for name, shape in net.shapes().items()},
        "hooks": activations(weights),
    }


def activations(weights: Weights[Any]) -> list[str]:
    """The names of all activations of a run, in their order."""
    net, seen = weights.architecture, dict[str, Any]()
    least = max(1, net.pads + net.min_length) if net.reads == "tokens" else 0
    net.forward(weights.prepared, blank(net, least), record=seen.__setitem__)
    return list(seen)


def blank(net: Any, length: int) -> NDArray[Any]:
    """One input of zeros, of so many tokens if it reads tokens."""
    if net.reads == "tokens":
        return np.zeros((1, length), np.int64)
    if net.reads == "image":
        return np.zeros((1, net.planes, net.rows, net.columns))
    return np.zeros((1, *([net.max_length] if net.reads == "rows" else []), len(net.inputs)))


def betas(weights: Weights[Any]) -> dict[str, list[float]]:
    """The temperatures of every block."""
    return {
        name.removesuffix(".attn.beta"): [float(number) for number in dense(array)]
        for name, array in weights.arrays.items()
        if name.endswith(".attn.beta")
    }


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]], precision: str) -> None:
    """Write arrays in one precision; contiguous, because safetensors writes anything else wrongly."""
    from safetensors.numpy import save_file

    flat = {name: np.ascontiguousarray(arrays[name], dtype=precision) for name in sorted(arrays)}
    save_file(flat, path, metadata={"format": "pt"})


def tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (OSError, SafetensorError, ValueError) as error:
        raise FolderError(f"{path} can't be read as weights: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FolderError(f"{path} can't be read: {error}") from None
    if not isinstance(found, dict):
        raise FolderError(f"{path} does not hold a JSON object")
    return found


def write_json(path: Path, data: Any) -> None:
    """Write JSON data."""
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
