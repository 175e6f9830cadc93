"""Checks that claims about memories share: nets that recall everything, and draws beyond what can be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes
from vitrify.claims.catalogue import Subject
from vitrify.net.weights import Ledger

SEEDS = range(5)
WORK = 2e8  # multiplications for what an examination chooses by itself
PERFECT = f"draws of {len(SEEDS)} that recall everything"
SHARE = "mean share that is recalled"

Draw = Callable[[int, int], float]  # how much to store, a seed: the share that is recalled


def recalls_everything(subject: Subject, promised: Mapping[str, int], figures: Mapping[str, Any]) -> Evidence:
    """Every net of the subject against its spec, and the first one's sizes.

    The nets of `data["others"]`, with specs of their own, must be right as well: other draws of the codes. The first
    mistake ends it.
    """
    ledger, nets = Ledger.of(subject.weights), [(subject.spec, subject.weights), *subject.data["others"]]
    perfect, cases = 0, 0
    for spec, weights in nets:
        evidence = WordExamination(weights.architecture, spec, work=WORK).run(weights)
        cases += evidence.cases
        if evidence.verdict != "holds":
            break
        perfect += 1
    evidence = replace(evidence, cases=cases, measured={**evidence.measured, **figures})
    return with_sizes(
        evidence,
        {**promised, PERFECT: len(nets)},
        {**{name: getattr(ledger, name) for name in promised}, PERFECT: perfect},
    )


def recalls_too_little(subject: Subject, what: str) -> Evidence:
    """No draw recalls everything beyond what can be stored: `data` has the amount, and the draw."""
    draw: Draw = subject.data["draw"]
    shares = [draw(subject.data["stored"], seed) for seed in SEEDS]
    perfect = sum(share == 1.0 for share in shares)
    measured = {PERFECT: perfect, SHARE: round(float(np.mean(shares)), 4), "stored": subject.data["stored"]}
    return Evidence(
        verdict="fails" if perfect else "holds",
        method="sampled",
        domain=f"{what}, {len(shares)} draws",
        cases=len(shares),
        witness=measured if perfect else None,
        declared={PERFECT: 0},
        measured=measured,
    )


def answers_shifted(subject: Subject) -> Subject:
    """The net with the code of every answer at its neighbour's place: each recalls what another should."""
    codes = np.roll(np.asarray(subject.weights.arrays["unembed.W_U"]), 1, axis=1)
    return replace(subject, weights=subject.weights.with_array("unembed.W_U", codes))
