"""Where the evidence of a claim comes from: a check that is made now, one made before, or one that is recorded.

A check of the same code gives the same evidence, so what was found is kept under a digest of the code: every file of
the package but those that only show things, and but other claims, unless this one imports them or looks at all.
Claims that train networks take recorded evidence, unless they are quick or asked for.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Literal

import vitrify
from vitrify.claims.catalogue import Outcome, Scale, claim_of, read_outcome, run_claim
from vitrify.errors import InputError
from vitrify.files import put
from vitrify.registry import Headline, names
from vitrify.report.recorded import place, written

Origin = Literal["live", "recorded", "waiting", "absent", "broken"]
SOURCES = Path(vitrify.__file__).parent
SHOWING = ("report", "interop", "web", "cli", "examples", "docs")  # folders that no check depends on
PARTS = {
    "R": ("Represent", "what networks can be: weights that are built and certified"),
    "B": ("Limits", "what no network of a size can do: protocols, refuters and circuits that run"),
    "L": ("Learn", "what gradient descent finds, measured against the exact optimum"),
    "G": ("Generalise", "what is right beyond what was trained on"),
}


@dataclass(frozen=True)
class AtlasEntry:
    """A claim and what is known of it: `live` evidence was found by a check of this code, `recorded` comes along.

    `why` says why a claim has none.
    """

    headline: Headline
    origin: Origin
    outcome: Outcome | None = None
    why: str = ""

    @property
    def name(self) -> str:
        """The claim's name."""
        return self.headline.name

    @property
    def id(self) -> str:
        """The claim's id in the atlas, like R14."""
        return str(self.headline.fields["id"])

    @property
    def verdict(self) -> str:
        """The verdict; of a claim without evidence, why it has none."""
        if self.outcome is None:
            missing = {"waiting": "being checked", "broken": "could not be checked"}
            return missing.get(self.origin, "not recorded here")
        return self.outcome.verdict


def recorded(headline: Headline, folder: Path | None) -> Outcome | None:
    """Return the recorded outcome of a claim; None where there is none, or one of an earlier version."""
    return _read(folder / f"{headline.name}.json", headline) if folder else None


def _read(path: Path, headline: Headline) -> Outcome | None:
    try:
        return read_outcome(headline, path)
    except (OSError, InputError):
        return None


class EvidenceStore:
    """Evidence of checks that were made, in a folder: a file for each claim, scale and state of the code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, headline: Headline, scale: Scale) -> Path:
        """Where the evidence of a check of this code is."""
        return self.folder / f"{headline.name}.{scale}.{digest(headline.name)}.json"

    def find(self, headline: Headline, scale: Scale) -> Outcome | None:
        """Return the outcome of a check of this code, if it was made."""
        return _read(self.path(headline, scale), headline)

    def seconds(self, headline: Headline, scale: Scale) -> float | None:
        """Return the seconds of an earlier check, of this code or of any other."""
        earlier = (_read(path, headline) for path in sorted(self.folder.glob(f"{headline.name}.{scale}.*.json")))
        return next((outcome.evidence.seconds for outcome in earlier if outcome), None)

    def check(self, headline: Headline, scale: Scale) -> Outcome:
        """Check a claim now, at that scale if it has it, and keep what was found; what is trained goes on, too."""
        fits: Scale = scale if claim_of(headline).large else "quick"
        path = self.path(headline, scale)
        trainings = self.folder / "runs" / path.stem
        outcome = replace(run_claim(headline, scale=fits, trainings=trainings), measured_on=place())
        put(path, written(outcome.to_json()))
        rmtree(trainings, ignore_errors=True)
        return outcome


def digest(name: str) -> str:
    """A digest of all code and data that the evidence of a claim can depend on."""
    hasher = hashlib.sha256(_machinery().encode())
    for claim in sorted(_needed(name)):
        hasher.update((SOURCES / "claims" / f"{claim}.py").read_bytes())
    return hasher.hexdigest()[:16]


@cache
def _machinery() -> str:
    """A digest of the package without the claims themselves and without what only shows things."""
    hasher, claims = hashlib.sha256(), {f"{name}.py" for name in _claims()}
    for path in sorted(SOURCES.rglob("*")):
        inside = path.relative_to(SOURCES)
        if path.suffix == ".pyc" or not path.is_file() or inside.parts[0] in SHOWING:
            continue
        if inside.parts[0] != "claims" or path.name not in claims:
            hasher.update(f"{inside.as_posix()} ".encode() + path.read_bytes())
    return hasher.hexdigest()


@cache
def _claims() -> frozenset[str]:
    return frozenset(names("vitrify.claims"))


def _needed(name: str) -> set[str]:
    """A claim and those that it imports, and so on; all, if one of them looks at the whole catalogue."""
    modules, new = set[str](), {name}
    while new:
        modules |= new
        imported = {word for claim in new for word in _imported(claim)}
        if imported & {"listing", "find"}:
            return set(_claims())
        new = (imported & _claims()) - modules
    return modules


@cache
def _imported(claim: str) -> frozenset[str]:
    """All names in the imports of a claim's file."""
    tree = ast.parse((SOURCES / "claims" / f"{claim}.py").read_text(encoding="utf-8"))
    imports = (ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return frozenset(re.findall(r"\w+", " ".join(imports)))
