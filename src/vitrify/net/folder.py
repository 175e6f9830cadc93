"""A saved model is a folder: `config.json`, `model.safetensors`, `labels.json`, the spec, and a README card.

It is replaced in one step (`files.py`): a reader finds the complete old or the complete new folder. The same net
gives the same bytes. Nothing in it is executable: no pickle. A folder may come from anywhere: `load` reads plain files
of the folder only, never through a link, and refuses whatever is not a network with one message.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vitrify import __version__
from vitrify.arrays import Array, Arrays, Matrix
from vitrify.encoding import JsonObject
from vitrify.errors import FolderError
from vitrify.files import recover, remedy, whole_folder, write_text
from vitrify.net.architecture import Architecture, from_json, to_json
from vitrify.net.labels import labels_of, labels_to_json
from vitrify.net.sparse import Stack, is_sparse
from vitrify.net.weights import Weights, has_bounded_length, has_positions
from vitrify.parameters import SHOWN_CHARACTERS
from vitrify.spec.kinds import Spec

FORMAT = 2
INDEX_TYPES = [{np.dtype(kind)} for kind in ("int32", "int64")]  # of sparse arrays
MAX_JSON_BYTES = 1 << 28  # of config.json or labels.json; the largest that were built take 50 MB
MAX_MEMORY_SHARE = 0.5  # of this machine, that a file of weights or a spec may take
MAX_LEVELS = 32  # of lists and tables within each other, in what config.json records about a network
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # a character that no text can hold alone, as JSON may write it


def save(weights: Weights[Architecture], folder: Path | str, spec: Spec | None = None) -> None:
    """Write a model folder; one that vitrify wrote before, or an empty one, is replaced, anything else left alone."""
    with whole_folder(Path(folder), "a model folder", _is_ours) as partial:
        _write(weights, partial, spec)


def load(folder: Path | str, *, verify: bool = True) -> Weights[Any]:
    """Read a model folder.

    With `verify`, a file that changed since it was written is refused; without, the numbers are taken as they are now.
    """
    folder = Path(folder)
    config = _read_config(folder)
    if verify:
        changed = [name for name, digest in config["sha256"].items() if _sha256(file_of(folder, name)) != digest]
        if changed:
            raise FolderError(
                f"{folder}: {', '.join(changed)} changed since the model was built: build it again, or ask "
                f"'vitrify certify {folder}' whether what is there now is still right"
            )
    try:
        net = from_json(config["net"])
        shapes = net.shapes()
    except (ArithmeticError, ValueError, MemoryError) as error:
        raise FolderError(f"config.json describes a network that can't exist: {error!r}") from None
    may_be_sparse = {} if net.tag == "convolutional" else shapes
    weights = Weights(net, _read_arrays(file_of(folder, "model.safetensors"), may_be_sparse), about=config["about"])
    return replace(weights, labels=labels_of(read_json(folder / "labels.json"), net))


def file_of(folder: Path, name: object, max_bytes: float | None = None) -> Path:
    """Return the path of a file of a folder; refuses other paths, all but regular files, and too large ones.

    `max_bytes` is by default a share of the memory of this machine.
    """
    if not _is_file_name(name):
        raise FolderError(
            f"{folder}: a file of a model folder is named without folders, not {str(name)[:SHOWN_CHARACTERS]!r}"
        )
    path = folder / str(name)
    try:
        status = path.lstat()
    except FileNotFoundError:
        raise FolderError(f"{folder} is not a complete model folder: {name} is missing") from None
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} can't be read: {error}") from None
    if not stat.S_ISREG(status.st_mode):
        raise FolderError(f"{path} is not a regular file")
    most = max_bytes or MAX_MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if status.st_size > most:
        raise FolderError(f"{path} has {status.st_size:,} bytes; at most {most:,.0f} are read")
    return path


def _is_file_name(name: object) -> bool:
    return isinstance(name, str) and "/" not in name and name not in ("", ".", "..") and name.isprintable()


def has_spec(folder: Path) -> bool:
    """Return whether a model folder holds the spec that the network was built from."""
    return _read_config(folder).get("spec") is not None


def spec_path(folder: Path, *, accept_changed: bool = False) -> Path:
    """Return the file that holds the spec of a model folder; refuses one that changed since the model was built.

    With `accept_changed` the spec is the file as it is now.
    """
    config = _read_config(folder)
    if config.get("spec") is None:
        raise FolderError(f"{folder} holds no spec to check the network against")
    path = file_of(folder, config["spec"])
    if not accept_changed and _sha256(path) != config["sha256"][path.name]:
        raise FolderError(
            f"{folder}: {path.name} is not the spec that the model was built from: restore it, or judge the network "
            f"by what the file says now: 'vitrify certify --accept-spec {folder}'"
        )
    return path


def _is_ours(folder: Path) -> bool:
    """Return true if vitrify wrote this folder, in any version of the format."""
    try:
        config = read_json(folder / "config.json")
    except FolderError:
        return False
    return isinstance(config, dict) and config.get("format") == "vitrify"


def _write(weights: Weights[Architecture], folder: Path, spec: Spec | None) -> None:
    sparse = {name: list(array.shape) for name, array in sorted(weights.arrays.items()) if is_sparse(array)}
    # One metadata entry: safetensors does not keep the order of several.
    write_tensors(_flat(weights.arrays), folder / "model.safetensors", {"vitrify": json.dumps({"sparse": sparse})})
    write_json(folder / "labels.json", labels_to_json(weights.labels))
    write_text(folder / "README.md", card(weights))
    files = ["model.safetensors", "labels.json"]
    if spec is not None:
        files.append(f"spec{spec.suffix}")
        spec.write(folder / files[-1])
    config = {
        "format": "vitrify",
        "format_version": FORMAT,
        "vitrify_version": __version__,
        "model_type": f"vitrify-{weights.architecture.tag}",
        "spec": files[2] if spec is not None else None,
        "about": dict(weights.about),
        "net": to_json(weights.architecture),
        "sha256": {name: _sha256(folder / name) for name in files},
    }
    write_json(folder / "config.json", config)


def write_tensors(arrays: dict[str, Array], path: Path, metadata: dict[str, str]) -> None:
    """Write arrays as safetensors, contiguous ones: it writes anything else wrongly."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(arrays, path, metadata=metadata)
    except SafetensorError as error:  # as it calls what the system refuses
        raise FolderError(f"{path.name} can't be written: {remedy(error)}") from None


def _flat(arrays: Arrays) -> dict[str, Array]:
    """Return the arrays by name, a sparse one as its three parts; contiguous, as safetensors requires."""
    flat: dict[str, Array] = {}
    for name in sorted(arrays):
        array = arrays[name]
        if is_sparse(array):
            flat |= {
                f"{name}.{part}": np.ascontiguousarray(getattr(array, part)) for part in ("data", "indices", "indptr")
            }
        else:
            flat[name] = np.ascontiguousarray(array)
    return flat


def _read_arrays(path: Path, may_be_sparse: Mapping[str, tuple[int, ...]]) -> dict[str, Matrix]:
    """Return the arrays of an architecture, by name: finite, sparse ones in canonical form, all in float64.

    Networks that were trained hold float32 throughout. `may_be_sparse` has the shapes of those that may be sparse.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            sparse = dict(json.loads((file.metadata() or {})["vitrify"])["sparse"])
            flat = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise FolderError(f"{path} can't be read as weights of vitrify: {error}") from None
    arrays: dict[str, Matrix] = {}
    for name, shape in sparse.items():
        try:
            if name not in may_be_sparse or not name.split(".")[-1].startswith("W_"):
                raise ValueError("only matrices of networks that read sequences may be sparse")
            if tuple(shape) != may_be_sparse[name] or len(shape) not in (2, 3):
                raise ValueError(f"it must have shape {may_be_sparse[name]}, has {shape}")
            data, indices, indptr = (flat.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
            arrays[name] = _csr(data, indices, indptr, tuple(shape))
        except (KeyError, TypeError, ValueError) as error:
            raise FolderError(f"{path}: the sparse array {name} is damaged: {error}") from None
    arrays |= flat
    trained = all(array.dtype == np.float32 for array in arrays.values())
    for name, array in arrays.items():
        if array.dtype != (np.float32 if trained else np.float64):
            raise FolderError(f"{path}: {name} holds numbers of type {array.dtype}, not float64")
        if not np.isfinite(array.data if is_sparse(array) else array).all():
            raise FolderError(f"{path}: {name} holds a number that is not finite")
    return arrays


def _csr(data: Array, indices: Array, indptr: Array, shape: tuple[int, ...]) -> Matrix:
    """Return a sparse array of its three parts; ValueError unless they are in canonical form."""
    from scipy.sparse import csr_array

    rows, columns = math.prod(shape[:-1]), shape[-1]
    kinds = {indices.dtype, indptr.dtype}
    if any(part.ndim != 1 for part in (data, indices, indptr)) or kinds not in INDEX_TYPES:
        raise ValueError("its parts must be lists, one of numbers and two of whole numbers in int32 or int64")
    if len(indptr) != rows + 1 or len(data) != len(indices) or indptr[0] != 0 or indptr[-1] != len(indices):
        raise ValueError("its parts do not fit each other")
    if (np.diff(indptr) < 0).any() or (len(indices) and not 0 <= indices.min() <= indices.max() < columns):
        raise ValueError("its indices are out of range")
    first = np.zeros(len(indices) + 1, dtype=bool)
    first[indptr] = True  # of a row: only here may an index be no larger than the one before
    if (~first[1:-1] & (np.diff(indices) <= 0)).any():
        raise ValueError("its indices are not sorted, or some entry stands there twice")
    csr = csr_array((data, indices, indptr), shape=(rows, columns))
    return csr if len(shape) == 2 else Stack(shape[0], csr)


def _read_config(folder: Path) -> JsonObject:
    recover(folder.absolute())
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder: give the folder that 'vitrify build … -o' wrote")
    config, path = read_json(folder / "config.json"), folder / "config.json"
    if not isinstance(config, dict) or config.get("format") != "vitrify":
        raise FolderError(f"{folder} was not written by vitrify: its config.json does not say so")
    if config.get("format_version") != FORMAT:
        version = str(config.get("format_version"))[:SHOWN_CHARACTERS]
        raise FolderError(f"{folder} has format version {version}, this vitrify reads {FORMAT}: build it again")
    missing = [key for key in ("net", "about", "sha256") if not isinstance(config.get(key), dict)]
    if missing:
        raise FolderError(f"{path} lacks {', '.join(missing)}")
    if not _is_flat(config["about"], MAX_LEVELS):
        raise FolderError(f"{path}: what it records about the network is nested more than {MAX_LEVELS} deep")
    files = ["model.safetensors", "labels.json", *([] if config.get("spec") is None else [config["spec"]])]
    if not all(map(_is_file_name, files)) or sorted(config["sha256"]) != sorted(files):
        raise FolderError(
            f"{path} must have the digests of all files of the model folder: {', '.join(map(str, files))}"
        )
    return config


def _is_flat(data: object, levels: int) -> bool:
    """Return whether JSON data have at most this many levels of lists and tables."""
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return levels >= 0 and all(_is_flat(part, levels - 1) for part in parts)


def read_json(path: Path) -> Any:
    """Return the data of a JSON file of a folder; one that is not JSON, a link or too large is refused."""
    file = file_of(path.parent, path.name, MAX_JSON_BYTES)
    try:
        text = file.read_text(encoding="utf-8")
        data = json.loads(text)
        if SURROGATE.search(text):
            json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise FolderError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except (OSError, ValueError, RecursionError) as error:  # integers of thousands of digits; nesting thousands deep
        raise FolderError(f"{path} can't be read: {error}") from None
    return data


def write_json(path: Path, data: object) -> None:
    """Write JSON data, indented by one blank."""
    write_text(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FolderError(f"{path} can't be read: {error}") from None


def card(weights: Weights[Architecture]) -> str:
    """Return the README card of a model: what it is, how large, and how to use it."""
    net, size, about = weights.architecture, weights.sizes, weights.about
    facts = "\n".join(f"| {key} | {value} |" for key, value in about.items())
    rows = "".join(
        f"| {head.block}.{head.index} | {head.name} | {head.writes} | {_number(head.gap)} | {_number(head.kappa)} | "
        f"{_number(float(weights.arrays[f'blocks.{head.block}.attn.beta'][head.index]))} |\n"
        for head in weights.labels.heads
    )
    title = "| head | does | writes | gap | kappa | beta |\n| --- | --- | --- | --- | --- | --- |\n"
    heads = f"{title}{rows}\n" if rows else ""
    words = {"tokens": "TOKEN…", "vector": "NUMBER…", "rows": "EDGE…", "image": "--input IMAGE.npy"}
    example = words[net.reads]
    origin = "Weights written down from a specification, not learned. Every part is named in `labels.json`."
    origin = "Weights learned in a training run of vitrify." if about.get("source") == "trained" else origin
    return f"""---
library_name: vitrify
tags: [vitrify, {net.output.kind}]
---
# {net.name}

{origin}

| about | |
| --- | --- |
{facts}
| reads | {_reads(weights)} |
| writes | {len(net.output.symbols)} symbols ({net.output.kind}) |

| layers | heads | width | MLP units | non-zero | dense | largest weight |
| --- | --- | --- | --- | --- | --- | --- |
| {size.layers} | {size.heads} | {size.d_model} | {size.units} | {size.nonzero} | {size.dense} | {size.max_abs:.6g} |

{heads}Run it with `vitrify run DIR {example}`, check it against its spec with `vitrify certify DIR`.
"""


def _reads(weights: Weights[Architecture]) -> str:
    if not has_positions(weights):
        return "an image"
    net = weights.architecture
    if net.reads == "tokens":
        depends = "depend on T" if has_bounded_length(weights) else "are the same for every T"
        return f"{len(net.inputs) - 1} symbols, up to T = {net.longest} of them; the weights {depends}"
    return f"{len(net.inputs)} numbers" + (f" at each of {net.max_length} positions" if net.reads == "rows" else "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"
