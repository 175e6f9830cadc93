"""Runs of claims from the command line: check now, measure in parts, judge saved measurements, record, reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from vitrify.claims import evidence_folder
from vitrify.claims.catalogue import Claim, Outcome, Progress, Scale, claim_of, run_claim
from vitrify.claims.protocol import judging
from vitrify.claims.protocol.measurements import Measurements, file_of, load
from vitrify.claims.protocol.planning import committed
from vitrify.encoding import canonical
from vitrify.errors import InputError
from vitrify.registry import Headline
from vitrify.report.recorded import keep, place


@dataclass(frozen=True)
class ClaimRun:
    """One claim to be checked at a scale; its `trainings` are saved in a folder, if one is given."""

    headline: Headline
    scale: Scale
    progress: Progress
    trainings: Path | None = None

    @property
    def claim(self) -> Claim:
        """The claim itself."""
        return claim_of(self.headline)

    def measure(self, folder: Path | None, trials: Sequence[str] = ()) -> Path:
        """Measure some trials of the claim, or all, add that to its file in a folder, and return the path."""
        if folder is None:
            raise InputError("--trial measures a part of a claim: say with --measurements DIR where it is saved")
        path = file_of(self.headline.name, judging.plan_of(self.headline, self.claim).version, folder)
        self._measured(trials, load(path)).save(path)
        return path

    def _measured(self, trials: Sequence[str] = (), before: Measurements | None = None) -> Measurements:
        if self.claim.plan is None:
            raise InputError(f"{self.headline.name} measures nothing that could be saved: it has no plan")
        where = self.trainings
        measured = judging.measure(self.headline, self.claim, self.scale, self.progress, where, trials, before)
        *earlier, last = measured.parts
        return replace(measured, parts=(*earlier, {**last, "measured_on": place()}))

    def judged(self, save: Path | None, saved: Path | None, record: Path | None) -> Outcome:
        """Return the outcome of a check, of new or saved measurements; with `record`, write it to that folder."""
        claim, began = self.claim, datetime.now(UTC)
        if record and claim.plan is not None:  # refused before an hour of training, not after it
            self._planned(began)
        if claim.plan is None:
            if save or saved:
                raise InputError(f"{self.headline.name} measures nothing that could be saved: it has no plan")
            outcome = run_claim(self.headline, self.progress, self.scale, self.trainings)
            if record:
                keep(outcome, record, self.headline)
            return outcome
        version = judging.plan_of(self.headline, claim).version
        if saved:
            path = file_of(self.headline.name, version, saved)
            if not path.exists():
                again = f"'vitrify check {self.headline.argument} --measurements {saved}'"
                raise InputError(f"{path} is not there: {again} writes it")
            measured = load(path)
        else:
            measured = self._measured()
        if save:
            measured.save(file_of(self.headline.name, version, save))
        outcome = judging.judge(self.headline, claim, self.scale, measured)
        if not record:
            return outcome
        plan = self._planned(measured.began)
        others = sorted({str(part.get("plan")) for part in measured.parts} - {plan["digest"]})
        if others or {part.get("scale") for part in measured.parts} != {self.scale}:
            raise InputError(f"{self.headline.name}: these measurements were made by another plan or at another scale")
        outcome = replace(outcome, plan=plan, measured_on=dict(measured.parts[-1].get("measured_on", place())))
        measured.save(file_of(self.headline.name, version, record / "measurements"))
        keep(outcome, record, self.headline)
        return outcome

    def _planned(self, began: datetime) -> dict[str, object]:
        claim = self.claim
        if claim.large is not None and self.scale != "large":
            raise InputError(f"{self.headline.name} is recorded at large scale only: say --scale large")
        return committed(self.headline, judging.plan_of(self.headline, claim), began)


def reproduced(headline: Headline, folder: Path | None) -> str:
    """Judge a claim's stored measurements again; return what differs from the recorded evidence, empty if nothing.

    By the code that is there now: evidence stays reproducible while code is rewritten that computes the same numbers.
    """
    from vitrify.report.recorded import latest

    recorded, claim = latest(headline, folder), claim_of(headline)
    if recorded is None:
        return "not recorded"
    if not recorded.version:
        return "version 0 was recorded before measurements were stored"
    plan = judging.plan_of(headline, claim)
    if {**recorded.plan, **plan.to_json()} != recorded.plan:
        return f"recorded by another plan, of version {recorded.version}: the claim has version {plan.version} now"
    path = file_of(headline.name, plan.version, (folder or evidence_folder()) / "measurements")
    if not path.exists():
        return f"{path} is not there: measurements come with the repository, not with the package"
    again = judging.judge(headline, claim, recorded.scale, load(path))
    for what, one, two in (
        ("evidence", again.evidence, recorded.evidence),
        ("rejection of nulls", again.rejections, recorded.rejections),
    ):
        if canonical(one) != canonical(two):
            return f"the {what} differs"
    return ""
