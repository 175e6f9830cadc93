"""Definition of a claim and how to run one; every other file of this folder is one claim."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from vitrify.certification.evidence import Evidence, JsonData, Method, Verdict, combine, worst_of
from vitrify.claims import evidence_folder, matches
from vitrify.claims.protocol.certificates import certificate, compact
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.protocol.mutants import CertifiedNet, with_mutants
from vitrify.claims.protocol.planning import MIN_REJECTION, Plan
from vitrify.encoding import Json
from vitrify.errors import InputError
from vitrify.registry import Headline, headlines, load

if TYPE_CHECKING:
    from matplotlib import figure as matplotlib_figure

    from vitrify.claims.trials.trial import Trial
    from vitrify.learn.store import RunStore

PACKAGE = "vitrify.claims"
Standing = Literal["theorem", "experiment", "conjecture"]  # of the statement in its source, not of the check here
Scale = Literal["quick", "large"]  # two CPU cores, a minute or so; some minutes, of one GPU where a claim trains
Progress = Callable[[str], None]
Subjects: TypeAlias = Iterator["Subject"]
Figures: TypeAlias = Mapping[str, Mapping[str, Any]]  # the data that a claim's figure is drawn from, by subject
Figure: TypeAlias = "matplotlib_figure.Figure"
Null: TypeAlias = Callable[["Subject", Measured, np.random.Generator], Measured]
Judge: TypeAlias = Callable[["Subject", Measured], Evidence]
SECTIONS = {  # of a claim's docstring, with their titles on pages
    "Statement": "Statement",
    "Why": "Why",
    "Checked": "What is checked here",
    "Not checked": "What is not checked",
    "Source": "Source",
    "Saboteur": "Saboteur: what the check must reject",
}
STRENGTH = (Method.PROVED, Method.EXHAUSTIVE, Method.SAMPLED)  # of certificates, the strongest first
TRAINING_SECONDS = 180.0  # of one core, for a quick check of a claim about training
MAX_CANDIDATES = 10  # claims listed where words match several
PROVES_NOTHING = "the check does not notice the error that it must notice, so that it proves nothing"


@dataclass(frozen=True, eq=False)
class Subject:
    """One thing that a claim speaks about: usually a spec and the net built from it; `data` holds anything else.

    A net with a spec is certified beside the check, unless it is not `exact`: not meant to answer as its spec does.
    Claims about training have `trials` instead, by name.
    `store` is where they are saved and resumed, if anywhere; `run_claim` sets it. On draws of a null hypothesis
    `statements` are those that count, and a judging function may leave out the others; empty means all.
    """

    name: str
    spec: Any = None
    weights: Any = None
    data: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
    trials: Mapping[str, Trial] = field(default_factory=dict, metadata={"later": True})
    store: RunStore | None = field(default=None, metadata={"later": True})  # no part of the settings' digest
    statements: Sequence[str] = field(default=(), metadata={"later": True})

    def with_data(self, **data: object) -> Subject:
        """Return the subject with other data under some names; a saboteur often changes no more."""
        return replace(self, data={**self.data, **data})


@dataclass(frozen=True, eq=False)
class Claim:
    """A published statement that can be run.

    `id` is its number in the atlas, like R14; claims about one theorem share it. `standing` is what the source gives
    for the statement: a theorem, an experiment or a conjecture. `check` measures on one subject what is stated;
    `sabotage` breaks a subject so that `check` must fail. `figure` makes a matplotlib figure of the evidence
    (`claims._figures`). `certified` is the weakest method that certifies its exact
    nets; `uncertified` says why there is none. Checking all `subjects` takes at most `budget_seconds` of one core;
    `large` gives more of them, checked at large scale in some minutes.

    A claim about training or generalization, made by `Claim.planned`, has a `plan`, and instead of `check` and
    `sabotage` a function `measure` that trains (by default, its trials), a function `judge` of what was measured, and
    `nulls`: for each statement the nearest rival explanation, as measurements in which it is exactly true
    (`protocol.judging`). Its `subjects` are small; `large` gives those of the recorded run, on one GPU. `draw` makes a
    matplotlib figure from the figure data of the evidence, by subject.
    """

    subjects: Callable[[], Iterable[Subject]]
    check: Callable[[Subject], Evidence] | None = None
    sabotage: Callable[[Subject], Subject] | None = None
    _: KW_ONLY
    id: str
    standing: Standing
    certified: Literal["proved", "exhaustive", "sampled"] | None = None
    uncertified: str | None = None
    budget_seconds: float = 10.0
    plan: Plan | None = None
    judge: Judge | None = None
    nulls: Mapping[str, Null] = field(default_factory=dict)
    large: Callable[[], Iterable[Subject]] | None = None
    draw: Callable[[Figures], Figure] | None = None
    measure: Callable[[Subject], Measured] | None = None
    figure: Callable[[Evidence], Figure] | None = None

    @classmethod
    def planned(
        cls,
        plan: Plan,
        subjects: Callable[[], Iterable[Subject]],
        judge: Judge,
        nulls: Mapping[str, Null],
        large: Callable[[], Iterable[Subject]] | None = None,
        draw: Callable[[Figures], Figure] | None = None,
        measure: Callable[[Subject], Measured] | None = None,
        *,
        id: str,
        standing: Standing,
        budget_seconds: float = TRAINING_SECONDS,
    ) -> Claim:
        """Return a claim about training or generalization."""
        about: dict[str, Any] = {"id": id, "standing": standing, "budget_seconds": budget_seconds}
        return cls(subjects, plan=plan, judge=judge, nulls=nulls, large=large, draw=draw, measure=measure, **about)

    def drawing(self, evidence: Evidence) -> Callable[[], Figure] | None:
        """Return what makes the figure of some evidence; None where there is none, or nothing to draw."""
        draw, figure, data = self.draw, self.figure, evidence.figures
        if draw is not None and data:
            return lambda: draw(data)
        return None if figure is None else lambda: figure(evidence)

    def subjects_at(self, scale: Scale) -> Iterable[Subject]:
        """Return the subjects at a scale; a claim without large ones has the same at both."""
        return self.large() if self.large and scale == "large" else self.subjects()


@dataclass(frozen=True)
class Outcome(JsonData):
    """The evidence of a claim, with a part for every subject, and what stands beside it.

    `certificates` are of its exact nets and `saboteurs` of what its saboteur made, both by subject. An outcome that was
    recorded has a digest of the claim's `settings`, and says where and when it was `measured_on`. A learned claim has a
    `plan` (that of the run, with its commit) and, by subject and statement, the share of the null's draws that its
    check rejects (`rejections`).
    """

    name: str
    id: str
    standing: str
    title: str
    scale: Scale
    evidence: Evidence
    saboteur_rejected: bool
    certificates: Mapping[str, Evidence] = field(default_factory=dict)
    saboteurs: Mapping[str, Evidence] = field(default_factory=dict)
    settings: str | None = None
    measured_on: Mapping[str, str] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    rejections: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The version of the plan that was judged; 0 for a run before there were plans."""
        return int(self.plan.get("version", 0))

    @property
    def criterion_older(self) -> bool:
        """Return whether the criteria were committed before the run."""
        return "commit" in self.plan

    @property
    def plan_of_run(self) -> Plan:
        """The plan that a recorded run was judged by."""
        return Plan.from_json({name: value for name, value in self.plan.items() if name not in ("digest", "commit")})

    @property
    def statements(self) -> dict[str, Verdict]:
        """The verdict on each statement: where too few draws of its null are rejected, undecided instead of holds."""
        least = self.plan.get("min_rejection", MIN_REJECTION)
        passed = {key for own in self.rejections.values() for key, share in own.items() if share < least}
        verdicts = self.evidence.statements
        return {key: "undecided" if key in passed and v == "holds" else v for key, v in verdicts.items()}

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim: undecided where its saboteur passes, as its check then proves nothing."""
        if self.statements:
            return worst_of(self.statements.values())
        return self.evidence.verdict if self.saboteur_rejected else "undecided"

    @property
    def methods(self) -> Counter[Method]:
        """The number of nets that are certified by each method, the strongest of its certificate."""
        return Counter(
            next(method for method in STRENGTH if method in certificate.methods)
            for certificate in self.certificates.values()
        )

    def to_json(self) -> dict[str, Json]:
        """Return the outcome as JSON data, with a `summary` of what follows from the rest."""
        data = super().to_json()
        if self.plan:
            scale = self.plan_of_run.label if self.criterion_older else self.scale
            data["summary"] = {"verdict": self.verdict, "statements": dict(self.statements), "scale": scale}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the outcome that `to_json` was called on."""
        data = {name: value for name, value in data.items() if name != "summary"}
        trees = {
            name: {subject: Evidence.from_json(each) for subject, each in data.get(name, {}).items()}
            for name in ("certificates", "saboteurs")
        }
        return super().from_json({**data, "evidence": Evidence.from_json(data.get("evidence", {})), **trees})


@dataclass(frozen=True)
class ClaimPage(Headline):
    """The name, docstring and literal fields of a claim, read without importing it; `claim_of` imports it."""

    def recorded(self, folder: Path | str | None = None) -> Outcome:
        """Return the outcome that `vitrify check --record` wrote to a folder, by default `evidence_folder()`."""
        return read_outcome(self, Path(folder or evidence_folder()) / f"{self.name}.json")


def read_outcome(page: Headline, path: Path) -> Outcome:
    """Return the outcome of a claim that a file holds."""
    again = f"'vitrify check {page.argument} --record {path.parent}'"
    if not path.exists():
        raise InputError(f"{path} is not there: {again} makes it")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} must be JSON that 'vitrify check --record' wrote: {error}") from None
    if not isinstance(data, dict) or data.get("name") != page.name:
        raise InputError(f"{path} must be the evidence of {page.name}: 'vitrify check --record' writes it")
    if not isinstance(data.get("evidence"), dict):
        raise InputError(f"{path} is of an earlier version: {again} renews it")
    try:
        return Outcome.from_json(data)
    except (TypeError, LookupError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}: {error}): {again} renews it") from None


def listing() -> list[ClaimPage]:
    """Return all claims, by name, without importing them."""
    return [ClaimPage(each.name, each.doc, each.fields) for each in headlines(PACKAGE, "CLAIM")]


def matching(name: str) -> list[ClaimPage]:
    """Return the claims of a name, an id such as R14, a beginning of a name, or words of names and titles."""
    pages = listing()
    return (
        [page for page in pages if page.name == name]
        or [page for page in pages if page.fields["id"] == name.upper()]
        or [page for page in pages if name and page.name.startswith(name)]
        or [page for page in pages if name.strip() and matches(page, name.split())]
    )


def find(name: str) -> ClaimPage:
    """Return the one claim that matches, or that of a file, `./mine.py`; otherwise an InputError lists candidates."""
    if name.endswith(".py"):
        from vitrify.claims.protocol.files import read_claim

        return read_claim(Path(name))
    pages = matching(name)
    if len(pages) != 1:
        what = "no claim has the name, id or words" if not pages else f"{len(pages)} claims match"
        lines = [f"  {page.fields['id']:<4} {page.name}" for page in pages[:MAX_CANDIDATES]]
        more = [f"  and {len(pages) - MAX_CANDIDATES} more: add words"] if len(pages) > MAX_CANDIDATES else []
        hint = ": 'vitrify list' shows all" if not pages else ", name one of them:"
        raise InputError("\n".join([f"{what} {name!r}{hint}", *lines, *more]))
    return pages[0]


def named(names: Sequence[str]) -> list[ClaimPage]:
    """Return the one claim that all words together describe, or else one claim for each word."""
    together = " ".join(names)
    pages = [find(together)] if len(names) == 1 or matching(together) else [find(name) for name in names]
    paths = {page.name: page.argument for page in pages}
    twice = [page for page in pages if page.argument != paths[page.name]]
    if twice:  # evidence and trainings are saved by name
        raise InputError(f"{twice[0].argument} and {paths[twice[0].name]} have one name: rename one of the files")
    return pages


def claim_of(headline: Headline) -> Claim:
    """The claim itself, imported."""
    if headline.path is not None:
        from vitrify.claims.protocol.files import guarded

        return guarded(headline)
    claim: Claim = module_of(headline).CLAIM
    return claim


def module_of(headline: Headline) -> ModuleType:
    """The module of a claim, imported."""
    if headline.path is not None:
        from vitrify.claims.protocol.files import file_module

        return file_module(headline).module
    return load(PACKAGE, headline.name)


def run_claim(
    claimed: Headline | str, progress: Progress | None = None, scale: Scale = "quick", trainings: Path | None = None
) -> Outcome:
    """Check every subject of a claim, and its saboteur on each; certify its exact nets.

    A claim whose saboteur passes is undecided: its check proves nothing. One with an exact net that is not fails. With
    a folder for its `trainings`, a run store, a check that was interrupted resumes them; its time is that of both.
    """
    headline = find(claimed) if isinstance(claimed, str) else claimed
    claim = claim_of(headline)
    if scale == "large" and claim.large is None:
        raise InputError(f"{headline.name} has one scale only: leave --scale away")
    if claim.plan is not None:
        from vitrify.claims.protocol import judging

        return judging.judge(headline, claim, scale, judging.measure(headline, claim, scale, progress, trainings))
    start = time.perf_counter()
    outcome = _examined(headline, claim, progress, scale)
    if headline.path is not None:
        from vitrify.claims.protocol.contract import hold_to_contract

        hold_to_contract(headline, claim, outcome)
    return replace(outcome, evidence=replace(outcome.evidence, seconds=time.perf_counter() - start))


def _examined(headline: Headline, claim: Claim, progress: Progress | None, scale: Scale) -> Outcome:
    parts: dict[str, Evidence] = {}
    certificates: dict[str, Evidence] = {}
    saboteurs: dict[str, Evidence] = {}
    nets: list[CertifiedNet] = []
    assert claim.check is not None
    assert claim.sabotage is not None
    for subject in distinct(headline, claim.subjects_at(scale)):
        if progress:
            progress(f"{headline.name}: {subject.name}")
        start = time.perf_counter()
        evidence = claim.check(subject)
        evidence = replace(evidence, seconds=evidence.seconds or time.perf_counter() - start)
        if evidence.verdict == "holds" and subject.exact and subject.spec is not None and subject.weights is not None:
            certified = certificate(subject.weights, subject.spec, evidence)
            certificates[subject.name] = compact(certified)
            net = CertifiedNet(subject.name, subject.weights, subject.spec, certificates[subject.name])
            nets += [net] if net.cheap and certified.verdict == "holds" else []
            evidence = evidence if certified.verdict == "holds" else certified
        parts[subject.name] = replace(evidence, checked=None)  # the net may go
        saboteurs[subject.name] = rejection(claim.check(claim.sabotage(subject)))
    evidence = with_mutants(combine(parts), nets, len(certificates))
    unnoticed = [name for name, broken in saboteurs.items() if broken.verdict == "holds"]
    if unnoticed and evidence.verdict == "holds":
        passed = f"the saboteur passed on {', '.join(map(repr, unnoticed))}: {PROVES_NOTHING}"
        evidence = replace(evidence, verdict="undecided", notes=(*evidence.notes, passed))
    identity = headline.name, claim.id, claim.standing, headline.title
    return Outcome(*identity, scale, evidence, not unnoticed, certificates, saboteurs)


def distinct(headline: Headline, subjects: Iterable[Subject]) -> Iterator[Subject]:
    """Yield the subjects of a claim; refuse a claim without any, and two of one name, as evidence is by name."""
    names: set[str] = set()
    for subject in subjects:
        if subject.name in names:
            raise InputError(f"{headline.argument}: two subjects have the name {subject.name!r}: rename one")
        names.add(subject.name)
        yield subject
    if not names:
        raise InputError(f"{headline.argument} has no subjects: there is nothing to check")


def rejection(broken: Evidence) -> Evidence:
    """Return how a check judged what the saboteur made: the verdict, the witness, and what is not as declared."""
    return Evidence(
        broken.verdict,
        broken.cases,
        quantities=tuple(each for each in broken.quantities if each.met is False),
        criteria=tuple(each for each in broken.criteria if not each.met),
        witness=broken.witness,
        notes=broken.notes,
    )
