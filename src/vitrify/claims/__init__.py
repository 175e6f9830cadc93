"""Published claims that run, one file each; here is what can be said about them without importing any of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.errors import InputError
from vitrify.files import bundled, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vitrify.registry import Headline


LEARNED = ("L", "G")  # first letters of the ids of claims about training and generalization
TEMPLATE = Path(__file__).with_name("_template.py")


def write_template(name: str, folder: Path) -> Path:
    """Write a claim that holds as it is to NAME.py in a folder, and return the path; no file is overwritten."""
    name = name.removesuffix(".py")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise InputError(f"the name of a claim has small letters, digits and underscores, unlike {name!r}")
    path = folder / f"{name}.py"
    if path.exists():
        raise InputError(f"{path} exists: choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, TEMPLATE.read_text(encoding="utf-8"))
    return path


def evidence_folder() -> Path:
    """Return `docs/evidence` of the working directory, or else the evidence that comes with vitrify."""
    here = Path.cwd() / "docs" / "evidence"
    return here if here.is_dir() else bundled("docs/evidence") or here


def position(page: Headline) -> tuple[int, int, str]:
    """Return the position of a claim in the atlas: R1, R2 …, then B, L and G; those of one id are sorted by name."""
    claim_id = str(page.fields["id"])
    return "RBLG".index(claim_id[0]), int(claim_id[1:]), page.name


def is_learned(page: Headline) -> bool:
    """Return whether a claim is about training or generalization (ids L and G), so that it has a plan."""
    return str(page.fields["id"])[0] in LEARNED


def matches(page: Headline, words: Sequence[str]) -> bool:
    """Return whether every word is the id of a claim, or occurs in its name or title; case does not matter."""
    text, claim_id = f"{page.name} {page.name.replace('_', ' ')} {page.title}".lower(), page.fields["id"].lower()
    return all(word.lower() == claim_id or word.lower() in text for word in words)
