"""Recorded evidence: one small file for each claim, with device, date and code; its figure is drawn from it.

Each file has a digest of the settings that were run, so that a claim whose settings have changed since is recognized.

    docs/evidence/NAME.json                   the latest version
    docs/evidence/versions/NAME.vK.json       every version before it, with its verdict
    docs/evidence/measurements/NAME.vK.npz    what a version was judged by (`claims/measurements.py`)
"""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import vitrify
from vitrify.claims import evidence_folder
from vitrify.claims.catalogue import Outcome, Scale, claim_of, find, module_of, read_outcome
from vitrify.encoding import JsonMapping, recorded_name
from vitrify.errors import InputError
from vitrify.files import write_text
from vitrify.registry import Headline


def keep(outcome: Outcome, folder: Path, headline: Headline | None = None) -> Path:
    """Write an outcome and where it was measured to NAME.json in a folder; move an older version aside.

    The claim is the one of the catalogue with that name, unless its `headline` is given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page, path = headline or find(outcome.name), folder / f"{outcome.name}.json"
    before = latest(page, folder)
    if before is not None and before.version < outcome.version:
        older = folder / "versions" / f"{outcome.name}.v{before.version}.json"
        older.parent.mkdir(exist_ok=True)
        write_text(older, path.read_text(encoding="utf-8"))
    digest, where = settings(page, outcome.scale), outcome.measured_on or place()
    write_text(path, written(replace(outcome, settings=digest, measured_on=where).to_json()))
    return path


def latest(headline: Headline, folder: Path | None = None) -> Outcome | None:
    """Return the latest recorded outcome of a claim; None where there is none."""
    path = (folder or evidence_folder()) / f"{headline.name}.json"
    return read_outcome(headline, path) if path.exists() else None


def all_versions(headline: Headline, folder: Path | None = None) -> list[Outcome]:
    """Return every recorded version of a claim, the oldest first."""
    where = folder or evidence_folder()
    older = sorted(
        (where / "versions").glob(f"{headline.name}.v*.json"), key=lambda path: int(path.stem.rpartition(".v")[2])
    )
    newest = where / f"{headline.name}.json"
    return [read_outcome(headline, path) for path in [*older, newest] if path.exists()]


def settings(headline: Headline, scale: Scale) -> str:
    """Return a digest of a claim's subjects at a scale, and of the numbers that a claim about training judges them by.

    The digest changes with every parameter of a trial (one training setting of the claim), not with names of functions.
    """
    claim = claim_of(headline)
    parts = [described(subject) for subject in claim.subjects_at(scale)]
    if claim.plan is not None:
        parts.append(sorted(constants(vars(module_of(headline)))))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def constants(value: object) -> Iterator[float]:
    """Return all numbers in the upper-case names of a module, also those in tuples and mappings."""
    if isinstance(value, dict) and "__name__" in value:
        value = [each for name, each in value.items() if name.isupper()]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from constants(each)


def described(value: object) -> Any:
    """Return a value as plain data, the same in every process: fields by name, functions by what they hold."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        own = {each.name: getattr(value, each.name) for each in fields(value) if not _later(value, each)}
        return [recorded_name(value), {name: described(part) for name, part in own.items()}]
    if isinstance(value, Mapping):
        return [[described(key), described(value[key])] for key in value]
    if isinstance(value, (set, frozenset)):
        return sorted((described(each) for each in value), key=repr)
    if isinstance(value, Sequence):
        return [described(each) for each in value]
    if isinstance(value, partial):
        return [described(value.func), described(value.args), described(value.keywords)]
    if callable(value):
        plain = inspect.unwrap(value)  # checks of types around it are no settings
        return ["function", described([cell.cell_contents for cell in getattr(plain, "__closure__", None) or ()])]
    if hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
        return [array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    return recorded_name(value)


def _later(value: object, each: Field[object]) -> bool:
    """Return whether a field was added later and has its default: older evidence then has the same settings."""
    default = each.default if each.default_factory is MISSING else each.default_factory()
    return bool(each.metadata.get("later")) and getattr(value, each.name) == default


def code() -> str:
    """A digest of this package's source files."""
    hasher, root = hashlib.sha256(), Path(vitrify.__file__).parent
    for path in sorted(root.rglob("*.py")):
        hasher.update(f"{path.relative_to(root).as_posix()} ".encode() + path.read_bytes())
    return hasher.hexdigest()[:16]


def place() -> dict[str, str]:
    """The device, the day, the code and the versions that a measurement comes from."""
    machine = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "code": code(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
    }
    jax = sys.modules.get("jax")
    if jax is None:
        return {"device": "CPU", **machine}
    device = jax.devices()[0]
    kind = "CPU" if device.platform == "cpu" else f"one {device.device_kind}"
    return {"device": kind, **machine, "jax": jax.__version__}


def recorded_names(folder: Path) -> list[str]:
    """Return the claims of which a folder has evidence."""
    names = sorted(path.stem for path in folder.glob("*.json"))
    if not names:
        raise InputError(f"there is no evidence in {folder}: 'vitrify check NAME --record {folder}' writes some")
    return names


def figure(headline: Headline, outcome: Outcome, out: Path) -> None:
    """Draw a claim's figure from its recorded evidence."""
    from vitrify.learn.figures import saved

    claim = claim_of(headline)
    if claim.draw is None and claim.figure is None:
        raise InputError(f"{headline.name} has no figure")
    make = claim.drawing(outcome.evidence)
    if make is None:
        raise InputError(f"the evidence of {headline.name} has nothing to draw: check it again with --record")
    saved(make, out)


def written(value: JsonMapping) -> str:
    """Return JSON with a line for each key, each object in a list, and each other list; and an end of line."""
    return _written(value) + "\n"


def _written(value: object, indent: str = "") -> str:
    inner = indent + " "
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return "[\n" + ",\n".join(inner + json.dumps(each, ensure_ascii=False) for each in value) + f"\n{indent}]"
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    pairs = [
        f"{inner}{json.dumps(str(key), ensure_ascii=False)}: {_written(each, inner)}" for key, each in value.items()
    ]
    return "{\n" + ",\n".join(pairs) + f"\n{indent}}}"
