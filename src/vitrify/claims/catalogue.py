"""What a claim is and how one is run; the files beside this one are the claims, one each."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from vitrify.certify.evidence import Evidence, combine
from vitrify.claims._certificates import certificate, summary
from vitrify.constructions.catalogue import Method
from vitrify.errors import InputError
from vitrify.registry import Headline, headlines, load, names

PACKAGE = "vitrify.claims"
Status = Literal["proved", "cited", "empirical", "conjectured"]
Scale = Literal["quick", "paper"]  # two CPU cores, a minute or so; one GPU, some minutes
Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Subject:
    """One thing that a claim speaks about: usually a spec and the net built from it; `data` holds anything else.

    A net with a spec is certified beside the check, unless it is not `exact`: not meant to answer as its spec does.
    """

    name: str
    spec: Any = None
    weights: Any = None
    data: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True


@dataclass(frozen=True, eq=False)
class Claim:
    """A published statement that can be run.

    `row` is its place in the atlas. `check` measures what the statement declares, on one subject; `sabotage` breaks a
    subject in a way that `check` must notice. `certified` is how its exact nets are certified at least, if it has any.
    A claim that trains networks is `learned`. `paper` gives subjects at the size of the papers, where `subjects` are
    smaller; `draw` makes the claim's figure, a matplotlib one, of what its evidence shows, by subject.
    """

    row: str
    status: Status
    subjects: Callable[[], Iterable[Subject]]
    check: Callable[[Subject], Evidence]
    sabotage: Callable[[Subject], Subject]
    certified: Method | None = None
    learned: bool = False
    paper: Callable[[], Iterable[Subject]] | None = None
    draw: Callable[[Mapping[str, Any]], Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """A claim's evidence, whether its saboteur was caught on every subject, and the certificates of its exact nets.

    `subjects` has of each what was examined, and how the check rejected what the saboteur made of it.
    """

    name: str
    row: str
    status: str
    title: str
    evidence: Evidence
    saboteur_rejected: bool
    certificates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scale: Scale = "quick"
    subjects: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def methods(self) -> Counter[Method]:
        """How many nets are certified by each method, the strongest of its certificate."""
        used = [shown["method"].split("+") for shown in self.certificates.values()]
        return Counter(next(method for method in get_args(Method) if method in methods) for methods in used)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        head = {"name": self.name, "row": self.row, "status": self.status, "title": self.title, "scale": self.scale}
        return (
            head
            | self.evidence.to_json()
            | {
                "saboteur_rejected": self.saboteur_rejected,
                "certificates": {name: dict(shown) for name, shown in self.certificates.items()},
                "subjects": {name: dict(shown) for name, shown in self.subjects.items()},
            }
        )


def listing() -> list[Headline]:
    """All claims, by name, without importing them."""
    return list(headlines(PACKAGE, "CLAIM"))


def find(name: str) -> Headline:
    """The claim of that name; a unique beginning is enough."""
    known = names(PACKAGE)
    found = [name] if name in known else [one for one in known if one.startswith(name)]
    if len(found) != 1:
        what = "no claim is called" if not found else "several claims begin with"
        raise InputError(f"{what} {name!r}; there are: {', '.join(found or known)}")
    (headline,) = headlines(PACKAGE, "CLAIM", found[0])
    return headline


def claim_of(headline: Headline) -> Claim:
    """The claim itself, imported."""
    claim: Claim = load(PACKAGE, headline.name).CLAIM
    return claim


def run_claim(
    claimed: Headline | str,
    progress: Progress | None = None,
    scale: Scale = "quick",
    trainings: Path | None = None,
) -> Outcome:
    """Check every subject of a claim, and its saboteur on each; certify its exact nets.

    A claim whose saboteur passes is undecided: its check proves nothing. One with an exact net that is not fails. With
    a folder for its `trainings`, a check that was interrupted goes on from there; its time is that of both.
    """
    headline = find(claimed) if isinstance(claimed, str) else claimed
    claim = claim_of(headline)
    if scale == "paper" and claim.paper is None:
        raise InputError(f"{headline.name} has one scale only: leave --scale away")
    start = time.perf_counter()
    if trainings is None or not claim.learned:
        outcome, before = _examined(headline, claim, progress, scale), 0.0
    else:
        from vitrify.learn.keep import resuming

        with resuming(trainings) as earlier:
            outcome = _examined(headline, claim, progress, scale)
        before = earlier.seconds
    seconds = before + time.perf_counter() - start
    return replace(outcome, evidence=replace(outcome.evidence, seconds=seconds))


def _examined(headline: Headline, claim: Claim, progress: Progress | None, scale: Scale) -> Outcome:
    parts: dict[str, Evidence] = {}
    unnoticed, certificates, subjects = [], {}, {}
    for subject in claim.paper() if claim.paper and scale == "paper" else claim.subjects():
        if progress:
            progress(f"{headline.name}: {subject.name}")
        found = claim.check(subject)
        if found.verdict == "holds" and subject.exact and subject.spec is not None and subject.weights is not None:
            shown = certificate(subject.weights, subject.spec, found)
            certificates[subject.name] = summary(shown)
            found = found if shown.verdict == "holds" else shown
        parts[subject.name] = replace(found, of=None)  # the net may go
        broken = claim.check(claim.sabotage(subject))
        if broken.verdict == "holds":
            unnoticed.append(subject.name)
        subjects[subject.name] = summary_of(found, broken)
    evidence = combine(parts)
    if unnoticed and evidence.verdict == "holds":
        evidence = replace(
            evidence, verdict="undecided", notes=(*evidence.notes, f"the saboteur passed on {unnoticed}")
        )
    said = headline.name, claim.row, claim.status, headline.title
    return Outcome(*said, evidence, not unnoticed, certificates, scale, subjects)


def summary_of(found: Evidence, broken: Evidence) -> dict[str, Any]:
    """What was examined of one subject, and what the check said when the saboteur had been there, as plain data."""
    declared, measured = plain(broken.declared), plain(broken.measured)
    differs = {
        name: {"declared": value, "measured": measured.get(name)}
        for name, value in declared.items()
        if value != measured.get(name) and broken.witness is None
    }
    rejected = {"verdict": broken.verdict, "witness": broken.witness, "differs": differs, "notes": broken.notes}
    examined = {"verdict": found.verdict, "method": found.method, "domain": found.domain, "cases": found.cases}
    return {**examined, "saboteur": plain(rejected)}


def plain(value: Any) -> Any:
    """A value as JSON can say it: numbers that JSON does not have, and what it does not know, in words.

    >>> plain({"lead": float("nan"), "places": (1, 2)})
    {'lead': 'nan', 'places': [1, 2]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return str(value)
