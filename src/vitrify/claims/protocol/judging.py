"""Run of a claim with a plan: measure its subjects, judge the measurements, and judge draws of each null as well.

    measure(subject)                  trains, and returns unrounded arrays by name; by default, all curves of its trials
    judge(subject, measured)          the evidence: criteria of statements, quantities, the data of the figure
    nulls[statement](subject, measured, rng)
                                      measurements in which the nearest rival explanation of the statement is exactly
                                      true, and everything else is as it was measured

A statement counts as *holds* only where its check rejects its null in at least 95 % of the draws.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from vitrify.certification.evidence import Evidence, combine
from vitrify.claims.catalogue import Claim, Outcome, Progress, Scale, Subject, distinct
from vitrify.claims.protocol.measurements import Measured, Measurements
from vitrify.claims.protocol.planning import NULL_DRAWS, Plan, digest
from vitrify.errors import InputError
from vitrify.registry import Headline

QUICK_DRAWS = 40


def subjects_of(headline: Headline, claim: Claim, scale: Scale) -> list[Subject]:
    """Return the subjects of a claim at a scale; a claim of one scale has the same at both."""
    return list(distinct(headline, claim.large() if claim.large and scale == "large" else claim.subjects()))


def plan_of(headline: Headline, claim: Claim) -> Plan:
    """Return the plan of a claim; one without a plan is refused."""
    if claim.plan is None:
        raise InputError(f"{headline.name} has no plan: only a claim that trains networks by a plan can do this")
    return claim.plan


def measure(
    headline: Headline,
    claim: Claim,
    scale: Scale,
    progress: Progress | None = None,
    trainings: Path | None = None,
    trials: Sequence[str] = (),
    before: Measurements | None = None,
) -> Measurements:
    """Train and measure the subjects of a claim, or only some trials of them, and add that to earlier measurements.

    A folder for its `trainings`, a run store, resumes them.
    """
    arrays: dict[str, Measured] = {}
    known = [name for subject in subjects_of(headline, claim, scale) for name in subject.trials]
    unknown = [name for name in trials if name not in known]
    if unknown:
        raise InputError(f"{headline.name} has no trial {unknown[0]!r}; there are {', '.join(dict.fromkeys(known))}")
    store = None
    if trainings is not None:
        from vitrify.learn.store import RunStore

        store = RunStore(trainings)
    began, start, spent = datetime.now(UTC), time.perf_counter(), store.seconds() if store else 0.0
    for subject in subjects_of(headline, claim, scale):
        chosen = {name: trial for name, trial in subject.trials.items() if not trials or name in trials}
        if trials and not chosen:
            continue
        if progress:
            progress(f"{headline.name}: {subject.name}")
        arrays[subject.name] = (claim.measure or _curves)(replace(subject, trials=chosen, store=store))
    return (before or Measurements()).adding(
        arrays,
        plan=digest(headline, plan_of(headline, claim)),
        scale=scale,
        trials=list(trials),
        began=f"{began:%Y-%m-%dT%H:%M:%S+00:00}",
        seconds=round(spent + time.perf_counter() - start, 1),
    )


def _curves(subject: Subject) -> Measured:
    """Train the trials of a subject and return all their curves; training needs JAX, judging does not."""
    from vitrify.claims.trials.trial import measured

    return measured(subject)


def judge(headline: Headline, claim: Claim, scale: Scale, measured: Measurements, draws: int | None = None) -> Outcome:
    """Return the outcome of a claim from measurements: evidence by subject, and how often each null is rejected."""
    assert claim.judge is not None
    plan = plan_of(headline, claim)
    if set(plan.statements) != set(claim.nulls):
        raise InputError(f"{headline.name}: each statement of the plan needs a null hypothesis, and nothing else")
    parts: dict[str, Evidence] = {}
    rejections: dict[str, dict[str, float]] = {}
    count = draws or (NULL_DRAWS if scale == "large" else QUICK_DRAWS)
    for subject in subjects_of(headline, claim, scale):
        arrays = measured.subjects.get(subject.name)
        if arrays is None:
            raise InputError(f"{headline.name}: {subject.name} is not measured yet")
        try:
            parts[subject.name] = claim.judge(subject, arrays)
        except KeyError as error:
            raise InputError(f"{headline.name}: {subject.name}: {error} is not measured yet") from None
        stated = parts[subject.name].statements
        rejections[subject.name] = {}
        for null in dict.fromkeys(claim.nulls[key] for key in stated):
            keys = [key for key in stated if claim.nulls[key] is null]
            rng = np.random.default_rng(0)
            part = replace(subject, statements=keys)
            verdicts = [claim.judge(part, null(subject, arrays, rng)).statements for _ in range(count)]
            rejections[subject.name] |= {key: float(np.mean([v[key] != "holds" for v in verdicts])) for key in keys}
    missing = sorted(set(plan.statements) - {key for part in parts.values() for key in part.statements})
    if missing and (scale == "large" or claim.large is None):
        raise InputError(f"{headline.name}: statement {missing[0]} of the plan is judged on no subject")
    identity = headline.name, claim.id, claim.standing, headline.title
    evidence = replace(combine(parts), seconds=measured.seconds)
    rejected = all(share >= plan.min_rejection for own in rejections.values() for share in own.values())
    outcome = Outcome(*identity, scale, evidence, rejected, rejections=rejections, plan={"version": plan.version})
    return replace(outcome, evidence=replace(evidence, verdict=outcome.verdict))
