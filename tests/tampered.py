"""Model folders that somebody changed: values of JSON files, names, bytes, arrays, labels, the spec, files themselves.

Digests are made to fit in most of them, as a forger would. What lies outside the folder is in `OUTSIDE`, beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from malformed import changed
from vitrify.encoding import canonical

OUTSIDE = "outside.txt"  # the name of a file that no command may read or write
VALUES: list[Any] = [
    None, True, -1, 0, 1, 2, 7, 1000, 2**31, 2**40, 2**64, 10**400, 0.5, -0.0, 1e-300, 1e300, -1e308, float("nan"),
    float("inf"), "", "0", "a", "NaN", "\x00", "\x1b[31m", "[/bold]", "\ud800", "a" * 5000, f"../{OUTSIDE}",
    "/etc/hostname", "config.json", "README.md/..", "spec.", "softmax", "hard", "none", "class", "values", "lm", "next",
    "recognizer", "transducer", "tokens", "vector", "rows", "concatenate", "linear", "log", "bits", "symbols",
    [], [[]], {}, {"kind": "flag"}, [0] * 9, ["a", "a"], [[[[[[[[]]]]]]]],
]  # fmt: skip
JSON_FILES = ("config.json", "config.json", "labels.json", "certificate.json")
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e15, 1e300, -1e308, np.nan, np.inf]
HOLE_BYTES = 1 << 42  # of a file that takes no place on the disk
MAX_BYTES = 1 << 24  # of a file that is read to change it


def tampered(folder: Path, target: Path, rng: np.random.Generator) -> str:
    """Write a changed copy of a folder with a certificate to `target` and return what was changed."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    (target.parent / OUTSIDE).write_text("secret\n")
    changes = [_pick(rng, WAYS)(target, rng)]
    if rng.random() < 0.5:
        try:
            changes.append(_pick(rng, WAYS)(target, rng))
        except Exception as error:  # the first change left nothing to change
            changes.append(f"no second change ({type(error).__name__})")
    if rng.random() < 0.8:
        changes.append(resealed(target))
    return "; ".join(changes)


def resealed(folder: Path) -> str:
    """Make the digests in config.json and certificate.json those of the present files, as a forger would."""
    try:
        config = json.loads(_content(folder / "config.json"))
        config["sha256"] = {name: _sha256(folder / name, digest) for name, digest in config["sha256"].items()}
        (folder / "config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n")
        certificate = json.loads(_content(folder / "certificate.json"))
        certificate["sha256"] = {name: _sha256(folder / name, "") for name in certificate["sha256"]}
        certificate.pop("digest", None)
        digest = hashlib.sha256(canonical(certificate).encode()).hexdigest()
        (folder / "certificate.json").write_text(canonical(certificate | {"digest": digest}))
    except Exception as error:  # what was changed can't be sealed
        return f"not resealed ({type(error).__name__})"
    return "resealed"


def _sha256(path: Path, other: str) -> str:
    """Return the digest of a plain file, and another one for anything else."""
    try:
        return hashlib.sha256(_content(path)).hexdigest()
    except OSError:
        return other


def _content(path: Path) -> bytes:
    """Return the content of a plain file of a usual size; an earlier change may have put something else there."""
    if not _is_plain(path) or path.stat().st_size > MAX_BYTES:
        raise OSError(f"{path} is not a plain file")
    return path.read_bytes()


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _pick(rng: np.random.Generator, of: Any) -> Any:
    return of[int(rng.integers(len(of)))]


def _json(folder: Path, rng: np.random.Generator) -> str:
    """Replace, remove, double, swap or rename a random value of a JSON file."""
    name = _pick(rng, JSON_FILES)
    data = json.loads(_content(folder / name))
    alike: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}  # long lists count as one entry
    for path in _paths(data):
        alike.setdefault(tuple("*" if isinstance(key, int) else key for key in path), []).append(path)
    *path, last = _pick(rng, _pick(rng, list(alike.values())))
    parent = data
    for key in path:
        parent = parent[key]
    way, value = int(rng.integers(7)), parent[last]
    if way == 0 and isinstance(parent, dict):
        del parent[last]
    elif way == 1 and isinstance(parent, list):
        parent.insert(0, parent[last])
    elif way == 2 and isinstance(parent, list):
        parent[last], parent[0] = parent[0], parent[last]
    elif way == 3 and isinstance(parent, dict):
        parent[_pick(rng, ["other", f"../{OUTSIDE}", "name"])] = parent.pop(last)
    elif way == 4 and isinstance(value, int | float):
        parent[last] = _pick(rng, [value + 1, value - 1, value * 2, -value, str(value), [value]])
    elif way == 5 and isinstance(value, list):
        parent[last] = _pick(rng, [value[::-1], value[:-1], value[1:], value * 2, dict(enumerate(value))])
    else:
        parent[last] = _pick(rng, VALUES)
    (folder / name).write_text(json.dumps(data, indent=1))
    return (
        f"{name} {[*path, last]} way {way} {json.dumps(parent.get(last) if isinstance(parent, dict) else parent)[:60]}"
    )


def _paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _names(folder: Path, rng: np.random.Generator) -> str:
    """Give inputs, outputs or accepting states of the network each other's names."""
    config = json.loads(_content(folder / "config.json"))
    net = config["net"]
    lists = {"inputs": net, "symbols": net["output"], "accepting": net["output"]}
    key = _pick(rng, [key for key, parent in lists.items() if parent.get(key)])
    names = lists[key][key]
    lists[key][key] = [names[i] for i in rng.permutation(len(names))]
    (folder / "config.json").write_text(json.dumps(config))
    return f"names {key} = {str(lists[key][key])[:60]}"


def _labels(folder: Path, rng: np.random.Generator) -> str:
    """Give a space, a head or a run of units other numbers, of the right types."""
    data = json.loads(_content(folder / "labels.json"))
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
    """Change entries, the order, the type, the shape or the name of an array."""
    arrays, metadata = _load(folder)
    name = _pick(rng, sorted(arrays))
    array = arrays[name]
    axis = int(rng.integers(max(array.ndim, 1)))
    ways: list[Callable[[], Any]] = [
        lambda: _with_entry(array, _pick(rng, NUMBERS), rng),
        lambda: _with_entry(array, _pick(rng, NUMBERS), rng),
        lambda: array.astype(_pick(rng, ["float32", "float16", "int64", "bool", "uint8"])),
        lambda: array.reshape(-1),
        lambda: array[..., :-1] if array.ndim else array,
        lambda: np.zeros((*array.shape, 1)),
        lambda: np.zeros(0),
        lambda: np.take(array, rng.permutation(array.shape[axis]), axis=axis) if array.ndim else array,
        lambda: np.zeros_like(array),
        lambda: array.T.copy(),
    ]
    way = int(rng.integers(len(ways)))
    with np.errstate(all="ignore"):
        arrays[name] = np.ascontiguousarray(ways[way]())
    if way == 9 and rng.random() < 0.3:
        arrays[f"{name}.other"] = arrays.pop(name)
    save_file(arrays, folder / "model.safetensors", metadata=metadata)
    return f"array {name} way {way}"


def _with_entry(array: Any, number: float, rng: np.random.Generator) -> Any:
    copy = array.copy()
    if copy.size:
        copy.reshape(-1)[int(rng.integers(copy.size))] = number if copy.dtype.kind == "f" else 10**6
    return copy


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
    way = int(rng.integers(10))
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
        shape = _pick(rng, [[2**40, 2**40], [-1, -1], [], shape[::-1], [2**32, 2**32], "ab", None])
    elif way == 6:
        indices = -indices - 1
    elif way == 7:
        data = data.astype(np.float32)
    elif way == 8:
        kind = _pick(rng, ["int64", "int16", "uint32", "float64"])
        indices, indptr = indices.astype(kind), indptr.astype(kind)
    elif way == 9:
        indptr = _with_entry(indptr, 0, rng)
    sparse = json.loads(metadata["vitrify"])
    sparse["sparse"][name] = shape
    arrays |= {f"{name}.data": data, f"{name}.indices": indices, f"{name}.indptr": indptr}
    save_file(arrays, folder / "model.safetensors", metadata={"vitrify": json.dumps(sparse)})
    return f"sparse {name} way {way}"


def _load(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    content = _content(folder / "model.safetensors")
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return load_file(folder / "model.safetensors"), header["__metadata__"]
    except Exception:  # changed before
        return {"embed.W_E": np.zeros((2, 2))}, {"vitrify": json.dumps({"sparse": {}})}


def _header(folder: Path, rng: np.random.Generator) -> str:
    """Change the header of the weights: types, shapes, offsets or the metadata; or promise a longer one."""
    path = folder / "model.safetensors"
    content = _content(path)
    size = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    way = int(rng.integers(4))
    if way == 0:
        path.write_bytes(_pick(rng, [2**62, 2**31, len(content), size - 1]).to_bytes(8, "little") + content[8:])
        return "header of another length"
    *parents, last = _pick(rng, list(_paths(header)))
    parent = header
    for key in parents:
        parent = parent[key]
    parent[last] = _pick(rng, [*VALUES, "F32", "BF16", "I8", [0, 2**50], [2**40, 2**40], '{"sparse": ' + "[" * 9999])
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return f"header {[*parents, last]} = {str(parent[last])[:60]}"


def _bytes(folder: Path, rng: np.random.Generator) -> str:
    """Change, cut, repeat or nest bytes of any file, or write a number of thousands of digits."""
    path = _pick(rng, _files(folder))
    data = bytearray(_content(path))
    at = int(rng.integers(len(data) + 1))
    way = int(rng.integers(6))
    if way == 0:
        data = data[:at]
    elif way == 1:
        data[at : at + 8] = rng.integers(256, size=8).astype(np.uint8).tobytes()
    elif way == 2:
        data[at:at] = data[:at]
    elif way == 3:
        data[:8] = (2**62).to_bytes(8, "little")
    elif way == 4:
        data = bytearray(_pick(rng, [b"[", b'{"a":', b"((", b"not "]) * 50_000)
    else:
        found = [i for i in range(at, len(data)) if data[i : i + 1].isdigit()]
        data[found[0] if found else at : at] = b"9" * 6000
    path.write_bytes(bytes(data))
    return f"bytes of {path.name} way {way} at {at}"


def _spec(folder: Path, rng: np.random.Generator) -> str:
    """Change the spec as a careless editor would."""
    path = folder / json.loads(_content(folder / "config.json"))["spec"]
    path.write_bytes(changed(_content(path), rng))
    return f"spec {path.name}"


def _file(folder: Path, rng: np.random.Generator) -> str:
    """Put a link, a folder, a pipe, an enormous file or nothing in the place of a file, or a link beside it."""
    path = _pick(rng, _files(folder))
    way = int(rng.integers(7))
    if way == 0:
        (folder / f".{path.name}.partial").symlink_to(folder.parent / OUTSIDE)
        return f"file .{path.name}.partial is a link"
    path.unlink()
    if way in (1, 2):
        path.symlink_to(folder.parent / OUTSIDE if way == 1 else "/dev/zero")
    elif way == 3:
        path.mkdir()
    elif way == 4:
        os.mkfifo(path)
    elif way == 5:
        path.touch()
        os.truncate(path, HOLE_BYTES)
    return f"file {path.name} way {way}"


def _files(folder: Path) -> list[Path]:
    return sorted(filter(_is_plain, folder.iterdir()))


WAYS = (_json, _json, _json, _names, _labels, _array, _array, _sparse, _header, _bytes, _spec, _file)
