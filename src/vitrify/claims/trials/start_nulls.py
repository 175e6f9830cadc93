"""Null hypotheses about starts of training: measurements of `starts.measure` in which a rival explanation is true."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.starts import MAX_EXCESS, StartSettings

NAMES = ("excess", "turn", "kind")


def _redrawn(subject: Subject, measured: Measured, rng: np.random.Generator) -> dict[str, Array]:
    """Return the measurements of seeds that are drawn with replacement, the same ones for all starts of a problem."""
    drawn: dict[str, Array] = {}
    for problem in subject.trials:
        count = measured[f"{problem}/turn"].shape[1]
        seeds = rng.integers(count, size=count)
        drawn |= {f"{problem}/{name}": measured[f"{problem}/{name}"][:, seeds] for name in NAMES}
    return drawn


def _places(subject: Subject) -> tuple[int, slice, slice]:
    """Return where among the starts are the judged one at the built net, those with noise, and those from scratch."""
    settings: StartSettings = subject.data["settings"]
    rates, noises = len(settings.rates), len(settings.noises)
    return settings.rates.index(settings.rate), slice(rates, rates + noises), slice(rates + noises, None)


def left(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which half of the seeds end as training from scratch does, also from the built net."""
    drawn, (built, _, scratch) = _redrawn(subject, measured, rng), _places(subject)
    for problem in subject.trials:
        coin = rng.random(drawn[f"{problem}/turn"].shape[1]) < 1 / 2
        for name in NAMES:
            ends = drawn[f"{problem}/{name}"][..., -1]  # a view
            ends[built] = np.where(coin, ends[scratch][-1], ends[built])
    return drawn


def found(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which half of the seeds from scratch end as those from the built net do."""
    drawn, (built, _, scratch) = _redrawn(subject, measured, rng), _places(subject)
    for problem in subject.trials:
        coin = rng.random(drawn[f"{problem}/turn"].shape[1]) < 1 / 2
        for name in NAMES:
            ends = drawn[f"{problem}/{name}"][..., -1]
            ends[scratch] = np.where(coin, ends[built], ends[scratch])
    return drawn


def isolated(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the excess is quadratic in the angle, as around an isolated optimum."""
    drawn, (_, noisy, _) = _redrawn(subject, measured, rng), _places(subject)
    for problem in subject.trials:
        excess, turn = (drawn[f"{problem}/{name}"][noisy] for name in ("excess", "turn"))
        part = np.maximum(excess[..., -1], 0) / np.maximum(excess[..., 0], 1e-12)
        turn[..., -1] = turn[..., 0] * np.sqrt(np.minimum(part, 1))
    return drawn


def alike(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which nets from scratch that reach the loss work as those from the built net do."""
    drawn, (built, _, scratch) = _redrawn(subject, measured, rng), _places(subject)
    for problem in subject.trials:
        excess, kind = (drawn[f"{problem}/{name}"][..., -1] for name in ("excess", "kind"))
        kind[scratch] = np.where(excess[scratch] <= MAX_EXCESS, kind[built], kind[scratch])
    return drawn


def other(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which nets for induction work as differently as those for another problem do."""
    drawn, (*_, scratch) = _redrawn(subject, measured, rng), _places(subject)
    relative = []
    for problem in subject.trials:
        kind = drawn[f"{problem}/kind"][scratch]
        relative.append(kind[..., -1] / kind[..., 0].mean())
    kind = drawn["induction/kind"][scratch]
    others = [each for each, problem in zip(relative, subject.trials, strict=True) if problem != "induction"]
    kind[..., -1] = rng.choice(np.concatenate(others, axis=None), size=kind.shape[:2]) * kind[..., 0].mean()
    return drawn
