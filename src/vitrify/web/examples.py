"""The example specs that come with vitrify."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from vitrify.files import bundled
from vitrify.spec.kinds import suffix_of, suffixes


@cache
def examples() -> dict[str, Path]:
    """Return the example files by name, in alphabetical order."""
    folder = bundled("examples")
    files = sorted(folder.iterdir()) if folder else []
    return {path.name: path for path in files if suffix_of(path.name)}


def kind_of(name: str) -> str:
    """Return a description of what such a file holds."""
    suffix = suffix_of(name)
    return suffixes()[suffix].description if suffix else "nothing that is known"
