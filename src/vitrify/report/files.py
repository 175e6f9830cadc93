"""Files of a site: whole or absent, and left alone where nothing in them changes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def put(path: Path, content: str | bytes) -> bool:
    """Write a file in one step, unless it says just that already; whether it was written."""
    data = content.encode() if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(data)
    partial.replace(path)
    return True


def read_json(path: Path) -> dict[str, Any] | None:
    """What a JSON file says; None where there is none, or something else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def keep_only(folder: Path, names: Iterable[str]) -> None:
    """Remove the files of a folder that a site does not have, and what was left half written."""
    wanted = set(names)
    for path in folder.glob("*"):
        if path.is_file() and path.name not in wanted:
            path.unlink()
