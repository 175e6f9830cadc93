"""Published claims that run, one file each; here is what can be said about them without importing any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vitrify.registry import Headline

CHECKOUT = Path(__file__).parents[3]


def evidence_folder() -> Path | None:
    """Return `docs/evidence` of the working directory, or else of the checkout that this code runs from."""
    folders = (root / "docs" / "evidence" for root in (Path.cwd(), CHECKOUT))
    return next((folder for folder in folders if folder.is_dir()), None)


def matches(page: Headline, words: Sequence[str]) -> bool:
    """Return whether every word is the id of a claim, or occurs in its name or title; case does not matter."""
    text, claim_id = f"{page.name} {page.name.replace('_', ' ')} {page.title}".lower(), page.fields["id"].lower()
    return all(word.lower() == claim_id or word.lower() in text for word in words)
