"""The specs that come with vitrify: those in `examples/` of a checkout, which a wheel carries in the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import vitrify
from vitrify.spec.kinds import suffix_of, suffixes

PACKAGE = Path(vitrify.__file__).parent
FOLDERS = (PACKAGE / "examples", PACKAGE.parents[1] / "examples")


@cache
def examples() -> dict[str, Path]:
    """Example files by name, simple ones first within a kind; an install without them has none."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    files = sorted(folder.iterdir()) if folder else []
    return {path.name: path for path in files if suffix_of(path.name)}


def kind_of(name: str) -> str:
    """Return a description of what such a file holds."""
    suffix = suffix_of(name)
    return suffixes()[suffix].description if suffix else "nothing that is known"
