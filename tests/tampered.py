"""Model folders that somebody changed: values of JSON files, bytes, arrays and labels, with digests made to fit."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from vitrify.encoding import canonical

VALUES: list[Any] = [
    None, True, -1, 0, 1, 7, 2**31, 2**64, 10**400, 0.5, -1e308, float("nan"), float("inf"), "", "0", "NaN", "\x00",
    "../spec.txt", "/etc/hostname", "config.json", "README.md/..", "a" * 5000, "\ud800",
    [], [[]], {}, {"kind": "flag"}, [0] * 9, ["a", "a"],
]  # fmt: skip
JSON_FILES = ("config.json", "labels.json", "certificate.json")
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e15, 1e300, -1e308, np.nan, np.inf]


def tampered(folder: Path, target: Path, rng: np.random.Generator) -> str:
    """Write a changed copy of a folder with a certificate to `target` and return what was changed."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    ways = (_json, _json, _json, _labels, _array, _array, _sparse, _bytes, _file)
    changes = [_pick(rng, ways)(target, rng)]
    if rng.random() < 0.5:
        try:
            changes.append(_pick(rng, ways)(target, rng))
        except Exception as error:  # the first change left nothing to change
            changes.append(f"no second change ({type(error).__name__})")
    if rng.random() < 0.8:
        changes.append(resealed(target))
    return "; ".join(changes)


def resealed(folder: Path) -> str:
    """Make the digests in config.json and certificate.json those of the present files, as a forger would."""
    try:
        config = json.loads((folder / "config.json").read_text())
        config["sha256"] = {name: _sha256(folder / name) for name in config["sha256"]}
        (folder / "config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n")
        certificate = json.loads((folder / "certificate.json").read_text())
        certificate["sha256"] = {name: _sha256(folder / name) for name in certificate["sha256"]}
        certificate.pop("digest", None)
        digest = hashlib.sha256(canonical(certificate).encode()).hexdigest()
        (folder / "certificate.json").write_text(canonical(certificate | {"digest": digest}))
    except Exception as error:  # what was changed can't be sealed
        return f"not resealed ({type(error).__name__})"
    return "resealed"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _pick(rng: np.random.Generator, of: Any) -> Any:
    return of[int(rng.integers(len(of)))]


def _json(folder: Path, rng: np.random.Generator) -> str:
    """Replace, remove, double or swap a random value of a JSON file."""
    name = _pick(rng, JSON_FILES)
    data = json.loads((folder / name).read_text())
    where = list(_paths(data))
    *path, last = _pick(rng, where)
    parent = data
    for key in path:
        parent = parent[key]
    way = int(rng.integers(4))
    if way == 0 and isinstance(parent, dict):
        del parent[last]
    elif way == 1 and isinstance(parent, list):
        parent.insert(0, parent[last])
    elif way == 2 and isinstance(parent, list):
        parent[last], parent[0] = parent[0], parent[last]
    else:
        parent[last] = _pick(rng, VALUES)
    text = json.dumps(data, indent=1)
    (folder / name).write_text(text)
    return f"{name} {[*path, last]} way {way} {json.dumps(parent)[:60]}"


def _paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _labels(folder: Path, rng: np.random.Generator) -> str:
    """Give a space, a head or a run of units other numbers, of the right types."""
    data = json.loads((folder / "labels.json").read_text())
    kind = _pick(rng, [key for key in ("spaces", "heads", "units") if data[key]] or ["spaces"])
    if not data[kind]:
        return "no labels"
    label = _pick(rng, data[kind])
    key = _pick(rng, [key for key, value in label.items() if not isinstance(value, str)])
    value = label[key]
    if isinstance(value, list):
        label[key] = _pick(rng, [value[::-1], value[:-1], value * 2, [-1] * len(value), [10**6] * len(value)])
    elif isinstance(value, dict):
        label[key] = {"kind": _pick(rng, ["flag", "onehot", "bits", "integers", "reals"])} | value
    else:
        label[key] = _pick(rng, [-5, 0, 1, 3, 10**9, 2.5, None])
    (folder / "labels.json").write_text(json.dumps(data))
    return f"labels.json {kind} {label.get('name')!r} {key} = {str(label[key])[:60]}"


def _array(folder: Path, rng: np.random.Generator) -> str:
    """Change entries, the type, the shape or the name of an array."""
    arrays, metadata = _load(folder)
    name = _pick(rng, sorted(arrays))
    array = arrays[name]
    ways: list[Callable[[], Any]] = [
        lambda: _with_entry(array, _pick(rng, NUMBERS), rng),
        lambda: _with_entry(array, _pick(rng, NUMBERS), rng),
        lambda: array.astype(_pick(rng, ["float32", "float16", "int64", "bool", "uint8"])),
        lambda: array.reshape(-1),
        lambda: array[..., :-1] if array.ndim else array,
        lambda: np.zeros((*array.shape, 1)),
        lambda: np.zeros(0),
        lambda: array.T.copy(),
    ]
    way = int(rng.integers(len(ways)))
    arrays[name] = np.ascontiguousarray(ways[way]())
    if way == 7 and rng.random() < 0.3:
        arrays[f"{name}.other"] = arrays.pop(name)
    save_file(arrays, folder / "model.safetensors", metadata=metadata)
    return f"array {name} way {way}"


def _with_entry(array: Any, number: float, rng: np.random.Generator) -> Any:
    changed = array.copy()
    if changed.size:
        with np.errstate(all="ignore"):
            changed.reshape(-1)[int(rng.integers(changed.size))] = number if changed.dtype.kind == "f" else 10**6
    return changed


def _sparse(folder: Path, rng: np.random.Generator) -> str:
    """Store a matrix as a sparse one, canonical or with doubled, unsorted, far or promised entries."""
    arrays, metadata = _load(folder)
    matrices = [name for name in sorted(arrays) if arrays[name].ndim >= 2 and arrays[name].size]
    if not matrices:
        return "no matrix"
    name = _pick(rng, matrices)
    shape = list(arrays[name].shape)
    flat = arrays.pop(name).reshape(-1, shape[-1])
    rows, columns = np.nonzero(flat)
    data, indices = flat[rows, columns], columns.astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(flat)))]).astype(np.int32)
    way = int(rng.integers(8))
    if way == 1:
        data, indices = np.repeat(data, 2) / 2, np.repeat(indices, 2)
        indptr = indptr * 2
    elif way == 2:
        data, indices = data[::-1].copy(), indices[::-1].copy()
    elif way == 3:
        indices = indices + np.int32(10**6)
    elif way == 4:
        indptr = indptr[::-1].copy()
    elif way == 5:
        shape = [2**40, 2**40]
    elif way == 6:
        indices = -indices - 1
    elif way == 7:
        data = data.astype(np.float32)
    sparse = json.loads(metadata["vitrify"])
    sparse["sparse"][name] = shape
    arrays |= {f"{name}.data": data, f"{name}.indices": indices, f"{name}.indptr": indptr}
    save_file(arrays, folder / "model.safetensors", metadata={"vitrify": json.dumps(sparse)})
    return f"sparse {name} way {way}"


def _load(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    content = (folder / "model.safetensors").read_bytes()
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return load_file(folder / "model.safetensors"), header["__metadata__"]
    except Exception:  # changed before
        return {"embed.W_E": np.zeros((2, 2))}, {"vitrify": json.dumps({"sparse": {}})}


def _bytes(folder: Path, rng: np.random.Generator) -> str:
    """Change, cut or repeat bytes of any file."""
    path = _pick(rng, sorted(path for path in folder.iterdir() if path.is_file()))
    data = bytearray(path.read_bytes())
    at = int(rng.integers(len(data) + 1))
    way = int(rng.integers(4))
    if way == 0:
        data = data[:at]
    elif way == 1:
        data[at : at + 8] = rng.integers(256, size=8).astype(np.uint8).tobytes()
    elif way == 2:
        data[at:at] = data[:at]
    else:
        data[:8] = (2**62).to_bytes(8, "little")
    path.write_bytes(bytes(data))
    return f"bytes of {path.name} way {way} at {at}"


def _file(folder: Path, rng: np.random.Generator) -> str:
    """Put a link, a folder or nothing in the place of a file."""
    path = _pick(rng, sorted(path for path in folder.iterdir() if path.is_file()))
    path.unlink()
    way = int(rng.integers(3))
    if way == 0:
        path.symlink_to("/dev/zero")
    elif way == 1:
        path.mkdir()
    return f"file {path.name} way {way}"
