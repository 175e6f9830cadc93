"""Evidence by subject: what was declared and measured of each, taken apart again from one list with long names.

Evidence of several subjects names its quantities `SUBJECT: QUANTITY`, and its domain is `SUBJECT: DOMAIN; …`. Names of
subjects may have colons in them: the domain says which part of a name is one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SEEDS = re.compile(r"(\d+) of \d+$")  # how a quantity of several seeds ends: of how many it is true


@dataclass(frozen=True)
class Quantity:
    """Something that was promised or found of a subject; what was not promised was only measured."""

    name: str
    declared: Any
    measured: Any
    promised: bool

    @property
    def kept(self) -> bool:
        """Whether the very thing that was declared was measured, or in as many seeds as were asked for."""
        return self.promised and (bool(self.declared == self.measured) or self._seeds() == "enough")

    @property
    def missed(self) -> bool:
        """Whether what was asked for was measured in too few seeds."""
        return self.promised and self._seeds() == "too few"

    def _seeds(self) -> str:
        asked, found = (
            SEEDS.search(side) if isinstance(side, str) else None for side in (self.declared, self.measured)
        )
        if not asked or not found:
            return ""
        return "enough" if int(found[1]) >= int(asked[1]) else "too few"


def by_subject(data: Mapping[str, Any]) -> dict[str, list[Quantity]]:
    """The quantities of each subject, what was promised first."""
    domain = f"; {data['domain']}"
    known = list(data.get("subjects") or data.get("shown") or ())
    found: dict[str, list[Quantity]] = {name: [] for name in known}
    declared, measured = data["declared"], data["measured"]
    for key in [*declared, *(key for key in measured if key not in declared)]:
        subject, name = _split(key, domain, known)
        quantity = Quantity(name, declared.get(key), measured.get(key), key in declared)
        found.setdefault(subject, []).append(quantity)
    return {subject: quantities for subject, quantities in found.items() if quantities}


def notes_of(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """What was noted of each subject."""
    found: dict[str, list[str]] = {}
    known = list(data.get("subjects") or data.get("shown") or ())
    for note in data["notes"]:
        subject, said = _split(note, f"; {data['domain']}", known)
        found.setdefault(subject, []).append(said)
    return found


def _split(key: str, domain: str, known: Sequence[str]) -> tuple[str, str]:
    """A long name as subject and quantity; the longest beginning that is a subject."""
    ends = [place for place in range(len(key)) if key.startswith(": ", place)]
    for end in reversed(ends):
        if key[:end] in known or f"; {key[:end]}: " in domain:
            return key[:end], key[end + 2 :]
    return "", key


def columns(found: Mapping[str, Sequence[Quantity]], most: int) -> list[str] | None:
    """The quantities that were promised, if they make a table with a line for each subject; None if they do not.

    They do if there are several subjects, few quantities, which most subjects have, and no sentences among them.
    """
    promised = [each for row in found.values() for each in row if each.promised]
    names = list(dict.fromkeys(each.name for each in promised))
    wordy = any(isinstance(side, str) for each in promised for side in (each.declared, each.measured))
    fits = len(found) > 1 and len(names) <= most and 2 * len(promised) >= len(names) * len(found)
    return names if fits and not wordy else None
