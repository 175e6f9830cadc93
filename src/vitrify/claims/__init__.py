"""Published claims that run, one file each; here is what can be said about them without importing any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.files import bundled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vitrify.registry import Headline


def evidence_folder() -> Path:
    """Return `docs/evidence` of the working directory, or else the evidence that comes with vitrify."""
    here = Path.cwd() / "docs" / "evidence"
    return here if here.is_dir() else bundled("docs/evidence") or here


def position(page: Headline) -> tuple[int, int, str]:
    """Return the position of a claim in the atlas: R1, R2 …, then B, L and G; those of one id are sorted by name."""
    claim_id = str(page.fields["id"])
    return "RBLG".index(claim_id[0]), int(claim_id[1:]), page.name


def matches(page: Headline, words: Sequence[str]) -> bool:
    """Return whether every word is the id of a claim, or occurs in its name or title; case does not matter."""
    text, claim_id = f"{page.name} {page.name.replace('_', ' ')} {page.title}".lower(), page.fields["id"].lower()
    return all(word.lower() == claim_id or word.lower() in text for word in words)
