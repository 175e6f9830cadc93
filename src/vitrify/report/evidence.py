"""Where the evidence of a claim comes from: a check that is made now, one made before, or one that is recorded.

A check of the same code gives the same evidence, so what was found is kept under a digest of the code: every file of
the package but those that only show things, and but other claims, unless this one imports them or looks at all.
Claims that train networks take what is recorded in a checkout, `docs/evidence`, unless they are quick or asked for.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal

import vitrify
from vitrify.claims._kept import place, written
from vitrify.claims.catalogue import Scale, claim_of, run_claim
from vitrify.registry import Headline, names
from vitrify.report.files import put, read_json

Origin = Literal["live", "recorded", "waiting", "absent", "broken"]
SOURCES = Path(vitrify.__file__).parent
SHOWING = ("report", "interop", "web", "cli")  # rooms that no check depends on
PARTS = {
    "R": ("Represent", "what networks can be: weights that are built and certified"),
    "B": ("Limits", "what no network of a size can do: protocols, refuters and circuits that run"),
    "L": ("Learn", "what gradient descent finds, measured against the exact optimum"),
    "G": ("Generalise", "what is right beyond what was trained on"),
}


@dataclass(frozen=True)
class Row:
    """A claim and what is known of it: `live` evidence was found by a check of this code, `recorded` comes along.

    `why` says why a claim has none.
    """

    headline: Headline
    origin: Origin
    data: Mapping[str, Any] | None = None
    why: str = ""

    @property
    def name(self) -> str:
        """The claim's name."""
        return self.headline.name

    @property
    def row(self) -> str:
        """The place in the atlas, like R14."""
        return str(self.headline.fields["row"])

    @property
    def verdict(self) -> str:
        """The verdict; of a claim without evidence, why it has none."""
        if self.data is None:
            missing = {"waiting": "being checked", "broken": "could not be checked"}
            return missing.get(self.origin, "not recorded here")
        return str(self.data["verdict"]) if self.data["saboteur_rejected"] else "undecided"


def in_order(headlines: Iterable[Headline]) -> list[Headline]:
    """Claims by their place in the atlas: R1, R2 …, then B, L and G; those of one row by name."""
    return sorted(headlines, key=_place)


def _place(headline: Headline) -> tuple[int, int, str]:
    row = str(headline.fields["row"])
    return list(PARTS).index(row[0]), int(row[1:]), headline.name


def recorded_in() -> Path | None:
    """The folder of recorded evidence: of the working directory, else of the checkout that this code is run from."""
    for root in (Path.cwd(), SOURCES.parents[1]):
        if (root / "docs" / "evidence").is_dir():
            return root / "docs" / "evidence"
    return None


def recorded(headline: Headline, folder: Path | None) -> dict[str, Any] | None:
    """What is recorded of a claim."""
    found = read_json(folder / f"{headline.name}.json") if folder else None
    return found if found and found.get("name") == headline.name else None


class Store:
    """Evidence of checks that were made, in a folder: a file for each claim, scale and state of the code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, headline: Headline, scale: Scale) -> Path:
        """Where the evidence of a check of this code is."""
        return self.folder / f"{headline.name}.{scale}.{digest(headline.name)}.json"

    def find(self, headline: Headline, scale: Scale) -> dict[str, Any] | None:
        """The evidence of a check of this code, if it was made."""
        return read_json(self.path(headline, scale))

    def seconds(self, headline: Headline, scale: Scale) -> float | None:
        """How long a check took, of this code or of any other."""
        earlier = (read_json(path) for path in sorted(self.folder.glob(f"{headline.name}.{scale}.*.json")))
        return next((float(found["seconds"]) for found in earlier if found), None)

    def check(self, headline: Headline, scale: Scale) -> dict[str, Any]:
        """Check a claim now, at that scale if it has it, and keep what was found; what is trained goes on, too."""
        fits: Scale = scale if claim_of(headline).paper else "quick"
        path = self.path(headline, scale)
        trainings = self.folder / "trainings" / path.stem
        found = run_claim(headline, scale=fits, trainings=trainings).to_json() | {"measured on": place()}
        put(path, written(found))
        rmtree(trainings, ignore_errors=True)
        return found


def digest(name: str) -> str:
    """A digest of all code and data that the evidence of a claim can depend on."""
    whole = hashlib.sha256(_machinery().encode())
    for claim in sorted(_needed(name)):
        whole.update((SOURCES / "claims" / f"{claim}.py").read_bytes())
    return whole.hexdigest()[:16]


@cache
def _machinery() -> str:
    """A digest of the package without the claims themselves and without what only shows things."""
    whole, claims = hashlib.sha256(), {f"{name}.py" for name in _claims()}
    for path in sorted(SOURCES.rglob("*")):
        inside = path.relative_to(SOURCES)
        if path.suffix == ".pyc" or not path.is_file() or inside.parts[0] in SHOWING:
            continue
        if inside.parts[0] != "claims" or path.name not in claims:
            whole.update(f"{inside.as_posix()} ".encode() + path.read_bytes())
    return whole.hexdigest()


@cache
def _claims() -> frozenset[str]:
    return frozenset(names("vitrify.claims"))


def _needed(name: str) -> set[str]:
    """A claim and those that it imports, and so on; all, if one of them looks at the whole catalogue."""
    found, new = set[str](), {name}
    while new:
        found |= new
        imported = {word for claim in new for word in _imported(claim)}
        if imported & {"listing", "find"}:
            return set(_claims())
        new = (imported & _claims()) - found
    return found


@cache
def _imported(claim: str) -> frozenset[str]:
    """The last parts of all names that a claim's file imports."""

    def walk() -> Iterator[str]:
        tree = ast.parse((SOURCES / "claims" / f"{claim}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                yield (node.module or "").rpartition(".")[2]
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from (alias.name.rpartition(".")[2] for alias in node.names)

    return frozenset(walk())
