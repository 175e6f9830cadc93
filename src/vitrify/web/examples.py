"""The specs that come with vitrify: those in `examples/` of a checkout, which a wheel carries in the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import vitrify
from vitrify.spec import SUFFIXES

PACKAGE = Path(vitrify.__file__).parent
FOLDERS = (PACKAGE / "examples", PACKAGE.parents[1] / "examples")


@cache
def examples() -> dict[str, Path]:
    """Example files by name, simple ones first within a kind; an install without them has none."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    files = sorted(folder.iterdir()) if folder else []
    return {path.name: path for path in files if suffix_of(path.name)}


def suffix_of(name: str) -> str | None:
    """The end of a spec's name that says what it is."""
    return next((suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(suffix)), None)


def kind_of(name: str) -> str:
    """What such a file holds, in words."""
    suffix = suffix_of(name)
    return SUFFIXES[suffix][0] if suffix else "nothing that is known"
