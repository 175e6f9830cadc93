"""Every error a user can cause, in one tree.

    VitrifyError                 anything below; the command line prints it and exits with 2
    ├── SpecError                a spec (grammar, automaton, n-gram model …) breaks its own rules: all problems at once
    │   └── ClaimError           the same of a user's claim file: it breaks the contract of claims, or its code fails
    ├── BuildRefused             the spec is fine, but these settings can't carry it exactly: says what to change
    ├── InputError               tokens the network can't read: unknown symbols, too many of them
    ├── FolderError              a model folder is missing, damaged, or not ours
    ├── StoreError               a run store can't be written (full disk, no permission), or is not ours
    │   └── DamagedStore         a file of a run store is damaged: says which; `vitrify runs --repair` moves it aside
    ├── BudgetSpent              the time or the memory that a command may take is used up: says how to give it more
    └── WorkersLost              workers that were to train ended again and again; what they had reached is kept

    SpecWarning                  a spec is usable but slightly off; says by how much

The shape of a message: what must hold, where, what was given, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MAX_LINE = 4_000  # characters of a line of a message: what it quotes may be a whole file


class VitrifyError(Exception):
    """A mistake that the user can mend; of a line that quotes a file without line ends, the middle is left out."""

    def __init__(self, message: object = "") -> None:
        super().__init__("\n".join(map(_shortened, str(message).split("\n"))))


def _shortened(line: str) -> str:
    if len(line) <= MAX_LINE:
        return line
    shown = MAX_LINE // 2
    return f"{line[:shown]} … {len(line) - MAX_LINE:,} characters left out … {line[-shown:]}"


@dataclass(frozen=True)
class Problem:
    """One broken rule, and where it is broken.

    >>> print(Problem("expected 3 fields, got 2", file="lm.arpa", line=7))
    lm.arpa:7: expected 3 fields, got 2
    """

    message: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = [str(part) for part in (self.file, self.line) if part is not None]
        return ":".join([*place, " " + self.message]) if place else self.message


class SpecError(VitrifyError):
    """A spec breaks its own rules; carries every problem found, not only the first.

    >>> str(SpecError([Problem("no states"), Problem("no alphabet")]))
    'no states\\nno alphabet'
    """

    SHOWN = 20

    def __init__(self, problems: Iterable[Problem | str]) -> None:
        self.problems = tuple(p if isinstance(p, Problem) else Problem(p) for p in problems)
        shown = [str(problem) for problem in self.problems[: self.SHOWN]]
        if len(self.problems) > self.SHOWN:
            shown.append(f"… and {len(self.problems) - self.SHOWN} more problems")
        super().__init__("\n".join(shown))


class ClaimError(SpecError):
    """A file with a claim breaks the contract of claims, or its code raises an error."""


class BuildRefused(VitrifyError):
    """The arithmetic, the size limit or the construction can't carry this spec exactly."""


class InputError(VitrifyError):
    """Tokens that the network can't read."""


class FolderError(VitrifyError):
    """A model folder that is missing, damaged, or was not written by vitrify."""


class StoreError(VitrifyError):
    """A run store that can't be written or read, or was not made by vitrify; what it holds stays as it was."""


class DamagedStore(StoreError):
    """A file of a run store does not hold what was written; nothing is computed again until it is moved aside."""


class BudgetSpent(VitrifyError):
    """The time or the memory of a command is used up; the message says what it was doing, and how to give it more."""


class WorkersLost(VitrifyError):
    """Some of the runs of a sweep have lost one worker after the other; the others are done, and all is kept."""


class SpecWarning(UserWarning):
    """A spec is usable but slightly off; the message says by how much."""
