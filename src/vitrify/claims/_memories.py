"""Checks that claims about memories share: nets that recall everything, and draws beyond what can be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from vitrify.certification.evidence import Domain, Evidence, Method, quantities
from vitrify.claims._nets import check_net, sized
from vitrify.claims.catalogue import Subject
from vitrify.net.weights import Weights

SEEDS = range(5)
WORK = 2e8  # multiplications for what a check chooses by itself
PERFECT = f"draws of {len(SEEDS)} that recall everything"
SHARE = "mean share that is recalled"

Draw = Callable[..., float]  # how much to store, a `seed`: the share that is recalled


def memories(name: str, draw: Callable[[int], tuple[object, Weights]], **data: object) -> Subject:
    """Return the nets of all seeds, each with its spec: the first as spec and weights, the others in `data`."""
    first, *others = (draw(seed) for seed in SEEDS)
    return Subject(name, *first, {"others": others, **data})


def beyond(name: str, stored: int, draw: Draw) -> Subject:
    """Return draws of memories that are to store too much."""
    return Subject(name, data={"stored": stored, "draw": draw})


def storing(subject: Subject, times: float) -> Subject:
    """Return draws that store a multiple of what the subject's do."""
    return subject.with_data(stored=int(times * subject.data["stored"]))


def recalls_everything(subject: Subject, promised: Mapping[str, object], figures: Mapping[str, object]) -> Evidence:
    """Every net of the subject against its spec, and the first one's sizes. The first mistake ends it."""
    perfect, cases = 0, 0
    nets = [(subject.spec, subject.weights), *subject.data["others"]]
    for spec, weights in nets:
        evidence = check_net(Subject("", spec, weights), work=WORK)
        cases += evidence.cases
        if evidence.verdict != "holds":
            break
        perfect += 1
    declared = {**promised, PERFECT: len(nets)}
    return replace(evidence, cases=cases).adding(*sized(subject, declared, {PERFECT: perfect, **figures}))


def recalls_too_little(subject: Subject) -> Evidence:
    """No draw recalls everything beyond what can be stored: `data` has the amount, and the draw."""
    draw: Draw = subject.data["draw"]
    shares = [draw(subject.data["stored"], seed=seed) for seed in SEEDS]
    perfect = sum(share == 1.0 for share in shares)
    measured = {PERFECT: perfect, SHARE: round(float(np.mean(shares)), 4), "stored": subject.data["stored"]}
    draws = Domain("draws", Method.SAMPLED, len(shares), settings={"description": subject.name})
    return Evidence("holds", len(shares), (draws,)).adding(*quantities({PERFECT: 0}, measured))


def answers_shifted(subject: Subject) -> Subject:
    """Return the net with output codes shifted by one: each input recalls the answer of another."""
    codes = np.roll(np.asarray(subject.weights.arrays["unembed.W_U"]), 1, axis=1)
    return replace(subject, weights=subject.weights.with_array("unembed.W_U", codes))
