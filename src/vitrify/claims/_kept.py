"""Evidence that is kept: one small file for each claim, with the scale and the device it comes from; its figure."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vitrify.claims.catalogue import Outcome, claim_of
from vitrify.errors import InputError
from vitrify.registry import Headline


def keep(outcome: Outcome, folder: Path) -> Path:
    """Write an outcome and where it was measured to NAME.json in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{outcome.name}.json"
    path.write_text(_written(outcome.to_json() | {"measured on": place()}) + "\n", encoding="utf-8")
    return path


def place() -> dict[str, str]:
    """The device and the versions that a measurement comes from."""
    found = {"python": platform.python_version(), "numpy": version("numpy")}
    jax = sys.modules.get("jax")
    if jax is None:
        return {"device": "CPU", **found}
    device = jax.devices()[0]
    kind = "CPU" if device.platform == "cpu" else f"one {device.device_kind}"
    return {"device": kind, **found, "jax": jax.__version__}


def kept(headline: Headline, folder: Path) -> dict[str, Any]:
    """What was kept of a claim."""
    path = folder / f"{headline.name}.json"
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


def _written(value: Any, indent: str = "") -> str:
    """JSON with a line for each key and every list on one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = indent + " "
    pairs = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_written(each, inner)}" for key, each in value.items()]
    return "{\n" + ",\n".join(pairs) + f"\n{indent}}}"
