"""`certificate.json`: what was found about a model folder, and the hashes of the files that it was found about.

The text is canonical JSON, so the same folder and evidence give the same bytes, and it holds a digest of itself: any
changed byte is noticed. `vitrify recheck` reads it, with code of its own (`recheck.py`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vitrify import __version__
from vitrify.certify.evidence import Evidence
from vitrify.certify.mutate import Campaign
from vitrify.errors import FolderError
from vitrify.net.folder import load, spec_path
from vitrify.net.weights import Ledger

SCHEMA = 2
NAME = "certificate.json"


def certificate(folder: Path, evidence: Evidence, broken: Campaign | None = None) -> dict[str, Any]:
    """The certificate of a folder as JSON data; how long things took is left out, so that it is the same every time."""
    files = ("config.json", "labels.json", "model.safetensors", spec_path(folder).name)
    size = Ledger.of(load(folder, verify=False))
    found = {key: value for key, value in evidence.to_json().items() if key != "seconds"}
    if evidence.proof is not None:
        found["proof"] = {key: value for key, value in evidence.proof.items() if key != "seconds"}
    data = {
        "schema": SCHEMA,
        "tool": f"vitrify {__version__}",
        "sha256": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files},
        "evidence": found,
        "mutations": None if broken is None else asdict(broken),
        "ledger": {"nonzero": size.nonzero, "dense": size.dense, "max_abs": size.max_abs},
    }
    return data | {"digest": hashlib.sha256(canonical(data).encode()).hexdigest()}


def canonical(data: dict[str, Any]) -> str:
    """The one text of JSON data."""
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write_certificate(folder: Path, evidence: Evidence, broken: Campaign | None = None) -> None:
    """Write the certificate into the folder, in one step, in the place of an earlier one."""
    text = canonical(certificate(folder, evidence, broken))
    partial = folder / f".{NAME}.partial"
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(folder / NAME)
    except OSError as error:
        raise FolderError(
            f"{folder / NAME} can't be written ({error.strerror}): make the folder writable, or say --no-write"
        ) from None
