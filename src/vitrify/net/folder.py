"""A saved model is a folder: `config.json`, `model.safetensors`, `labels.json`, the spec, and a README card.

It is written beside its place and moved there in one step, so a half-written folder never stands under the asked-for
name. The same net gives the same bytes. Nothing in it is executable: no pickle.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from vitrify import __version__
from vitrify.arrays import Matrix
from vitrify.errors import FolderError
from vitrify.net.architecture import from_json, to_json
from vitrify.net.card import card
from vitrify.net.labels import labels_from_json, labels_to_json
from vitrify.net.sparse import Stack, is_sparse
from vitrify.net.weights import Weights

FORMAT = 1


class SpecFile(Protocol):
    """A spec that can write itself down as `spec` + `suffix`."""

    @property
    def suffix(self) -> str: ...

    def write(self, path: Path) -> None: ...


def save(weights: Weights[Any], folder: Path | str, spec: SpecFile | None = None) -> None:
    """Write a model folder; one that vitrify wrote before, or an empty one, is replaced, anything else left alone."""
    folder = Path(folder).resolve()  # a link is followed, and '.' gets a name
    _check_target(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
    try:
        _write(weights, partial, spec)
        partial.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def load(folder: Path | str, *, verify: bool = True) -> Weights[Any]:
    """Read a model folder.

    With `verify`, a file that changed since it was written is refused; without, the numbers are taken as they are now.
    """
    folder = Path(folder)
    config = _read_config(folder)
    if verify:
        changed = [name for name, digest in config["sha256"].items() if _sha256(folder / name) != digest]
        if changed:
            raise FolderError(
                f"{folder}: {', '.join(changed)} changed since the model was built: build it again, or ask "
                f"'vitrify certify {folder}' whether what is there now is still right"
            )
    net = from_json(config["net"])
    labels = labels_from_json(_read_json(folder / "labels.json"))
    return Weights(net, _read_arrays(folder / "model.safetensors"), labels, config["about"])


def spec_path(folder: Path) -> Path:
    """The file that holds the spec of a model folder."""
    name = _read_config(folder).get("spec")
    if name is None or not (folder / name).is_file():
        raise FolderError(f"{folder} holds no spec to check the network against")
    return folder / str(name)


def _check_target(folder: Path) -> None:
    if folder.is_file():
        raise FolderError(f"{folder} is a file: name a folder to write the model to")
    if folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder):
        raise FolderError(f"{folder} exists and is not a model folder of vitrify: name another one")


def _is_ours(folder: Path) -> bool:
    """Whether vitrify wrote this folder, in whatever version of the format."""
    try:
        config = _read_json(folder / "config.json")
    except FolderError:
        return False
    return isinstance(config, dict) and config.get("format") == "vitrify"


def _write(weights: Weights, folder: Path, spec: SpecFile | None) -> None:
    from safetensors.numpy import save_file

    sparse = {name: list(array.shape) for name, array in sorted(weights.arrays.items()) if is_sparse(array)}
    # One metadata entry: safetensors does not keep the order of several.
    save_file(_flat(weights.arrays), folder / "model.safetensors", metadata={"vitrify": json.dumps({"sparse": sparse})})
    _write_json(folder / "labels.json", labels_to_json(weights.labels))
    (folder / "README.md").write_text(card(weights), encoding="utf-8")
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
    _write_json(folder / "config.json", config)


def _flat(arrays: Mapping[str, Matrix]) -> dict[str, Any]:
    """Arrays by name; a sparse one as its three parts. Contiguous, because safetensors writes anything else wrongly."""
    flat: dict[str, Any] = {}
    for name in sorted(arrays):
        array = arrays[name]
        if is_sparse(array):
            flat |= {
                f"{name}.{part}": np.ascontiguousarray(getattr(array, part)) for part in ("data", "indices", "indptr")
            }
        else:
            flat[name] = np.ascontiguousarray(array)
    return flat


def _read_arrays(path: Path) -> dict[str, Matrix]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            shapes = dict(json.loads((file.metadata() or {})["vitrify"])["sparse"])
            flat = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FolderError(f"{path} can't be read as weights of vitrify: {error}") from None
    arrays: dict[str, Matrix] = {}
    if shapes:
        from scipy.sparse import csr_array

        for name, shape in shapes.items():
            try:
                parts = [flat.pop(f"{name}.{part}") for part in ("data", "indices", "indptr")]
                csr = csr_array(tuple(parts), shape=(int(np.prod(shape[:-1])), shape[-1]))
                csr.check_format(full_check=True)
                arrays[name] = csr if len(shape) == 2 else Stack(shape[0], csr)
            except (KeyError, TypeError, ValueError) as error:
                raise FolderError(f"{path}: the sparse array {name} is damaged: {error}") from None
    arrays |= flat
    for name, array in arrays.items():
        values = array.data if is_sparse(array) else array
        if not np.isfinite(values).all():
            raise FolderError(f"{path}: {name} holds a number that is not finite")
    return arrays


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder: give the folder that 'vitrify build … -o' wrote")
    config = _read_json(folder / "config.json")
    if not isinstance(config, dict) or config.get("format") != "vitrify":
        raise FolderError(f"{folder} was not written by vitrify: its config.json does not say so")
    if config.get("format_version") != FORMAT:
        raise FolderError(
            f"{folder} has format version {config.get('format_version')}, this vitrify reads {FORMAT}: build it again"
        )
    missing = [key for key in ("net", "about", "sha256") if not isinstance(config.get(key), dict)]
    if missing:
        raise FolderError(f"{folder / 'config.json'} lacks {', '.join(missing)}")
    return config


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FolderError(f"{path.parent} is not a model folder: {path.name} is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FolderError(f"{path} can't be read: {error}") from None
    except json.JSONDecodeError as error:
        raise FolderError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise FolderError(f"{path.parent} is not a whole model folder: {path.name} is missing") from None
    except OSError as error:
        raise FolderError(f"{path} can't be read: {error}") from None
