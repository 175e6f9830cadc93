"""Null hypotheses about topics: measurements of `topics.measure` in which a rival explanation is true."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured


def _redrawn(measured: Measured, part: str, rng: np.random.Generator) -> dict[str, Array]:
    """Return the measurements of one part for seeds that are drawn with replacement, by name."""
    names = [name for name in ("gaps", "ranked", "attention", "norms") if f"{part}/{name}" in measured]
    count = len(measured[f"{part}/{names[0]}"])
    seeds = rng.integers(count, size=count)
    return {f"{part}/{name}": measured[f"{part}/{name}"][seeds] for name in names}


def unmasked(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which gaps are those without masks, 1/v, and the closed form predicts the same."""
    sandbox, null = subject.trials["values"].sandbox, dict(measured)
    for part in (part for part in subject.trials if f"{part}/gaps" in measured):
        null |= _redrawn(measured, part, rng)
        null[f"{part}/gaps"] = null[f"{part}/gaps"] * (1 - (1 - sandbox.unchanged) * sandbox.masked)
    if "optimum/words" in measured:
        null["optimum/c"] = 1 / measured["optimum/words"]
    return null


def copying(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which attention prefers the same word, and all other words alike but for the noise."""
    del subject
    null = {**measured, **_redrawn(measured, "attention", rng)}
    attention = null["attention/attention"]
    ratio = attention[..., 1] / attention[..., 2]
    attention[..., 1] = attention[..., 2] * ratio / ratio.mean(axis=0)
    return null


def together(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the log ratio of attention grows in proportion to the norm of the value matrix."""
    del subject
    null = {**measured, **_redrawn(measured, "all", rng)}
    attention, norm = null["all/attention"], null["all/norms"][..., 0]
    grown = (norm - norm[:, :1]) / (norm[:, -1:] - norm[:, :1])
    ratio = attention[:, -1:, 1] / attention[:, -1:, 2]
    attention[..., 1] = attention[..., 2] * ratio**grown
    return null
