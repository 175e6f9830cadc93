"""Evidence that is kept: one small file for each claim, with where and when it was measured, and of what; its figure.

A digest of the settings ties evidence to the subjects that it is of: what is changed later is told from what was run.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import vitrify
from vitrify.claims.catalogue import Outcome, Scale, Subject, claim_of, find
from vitrify.errors import InputError
from vitrify.registry import Headline


def keep(outcome: Outcome, folder: Path) -> Path:
    """Write an outcome and where it was measured to NAME.json in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{outcome.name}.json"
    known = {"settings": settings(find(outcome.name), outcome.scale), "measured on": place()}
    path.write_text(written(outcome.to_json() | known), encoding="utf-8")
    return path


def settings(headline: Headline, scale: Scale) -> str:
    """A digest of a claim's subjects at a scale: another one where any number or name in them is another."""
    claim = claim_of(headline)
    subjects: Iterable[Subject] = claim.paper() if claim.paper and scale == "paper" else claim.subjects()
    told = json.dumps([described(subject) for subject in subjects], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def described(value: Any) -> Any:
    """A value as plain data, the same in every process: fields by name, functions by name and what they hold."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        own = {each.name: getattr(value, each.name) for each in fields(value) if not _later(value, each)}
        return [type(value).__name__, {name: described(part) for name, part in own.items()}]
    if isinstance(value, Mapping):
        return [[described(key), described(value[key])] for key in value]
    if isinstance(value, (set, frozenset)):
        return sorted((described(each) for each in value), key=repr)
    if isinstance(value, Sequence):
        return [described(each) for each in value]
    if isinstance(value, partial):
        return [described(value.func), described(value.args), described(value.keywords)]
    if callable(value):
        held = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        return [getattr(value, "__qualname__", type(value).__name__), described(held)]
    if hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
        return [array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    return type(value).__name__


def _later(value: Any, each: Field[Any]) -> bool:
    """Whether a field was added later and has its default: evidence that is older is of the same settings."""
    return bool(each.metadata.get("later")) and getattr(value, each.name) == each.default


def code() -> str:
    """A digest of this package's source files."""
    whole, root = hashlib.sha256(), Path(vitrify.__file__).parent
    for path in sorted(root.rglob("*.py")):
        whole.update(f"{path.relative_to(root).as_posix()} ".encode() + path.read_bytes())
    return whole.hexdigest()[:16]


def place() -> dict[str, str]:
    """The device, the day, the code and the versions that a measurement comes from."""
    found = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "code": code(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
    }
    jax = sys.modules.get("jax")
    if jax is None:
        return {"device": "CPU", **found}
    device = jax.devices()[0]
    kind = "CPU" if device.platform == "cpu" else f"one {device.device_kind}"
    return {"device": kind, **found, "jax": jax.__version__}


def kept(headline: Headline, folder: Path | str) -> dict[str, Any]:
    """What was kept of a claim."""
    path = Path(folder) / f"{headline.name}.json"
    if not path.exists():
        raise InputError(f"{path} is not there: 'vitrify check {headline.name} --keep {folder}' makes it")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} must be JSON that 'vitrify check --keep' wrote: {error}") from None
    if not isinstance(found, dict) or found.get("name") != headline.name:
        raise InputError(f"{path} must be the evidence of {headline.name}: 'vitrify check --keep' writes it")
    return found


def kept_names(folder: Path) -> list[str]:
    """The claims of which evidence is kept in a folder."""
    found = sorted(path.stem for path in folder.glob("*.json"))
    if not found:
        raise InputError(f"there is no evidence in {folder}: 'vitrify check NAME --keep {folder}' writes some")
    return found


def figure(headline: Headline, evidence: Mapping[str, Any], out: Path) -> None:
    """Draw a claim's figure from its kept evidence."""
    from vitrify.learn.figures import saved

    draw = claim_of(headline).draw
    if draw is None:
        raise InputError(f"{headline.name} has no figure")
    if not evidence.get("shown"):
        raise InputError(f"the evidence of {headline.name} has nothing to draw: check it again with --keep")
    saved(lambda: draw(evidence["shown"]), out)


def written(value: Mapping[str, Any]) -> str:
    """JSON with a line for each key and every list on one line, and an end of line."""
    return _written(value) + "\n"


def _written(value: Any, indent: str = "") -> str:
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = indent + " "
    pairs = [
        f"{inner}{json.dumps(str(key), ensure_ascii=False)}: {_written(each, inner)}" for key, each in value.items()
    ]
    return "{\n" + ",\n".join(pairs) + f"\n{indent}}}"
