"""Flip-flop language modeling: trials, and error rates on sparser and denser sequences than in training."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.trials.trial import Trained, Trial
from vitrify.learn.evaluation import evaluate
from vitrify.learn.models.catalogue import Family
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.flip_flop import DENSE, SPARSE, FlipFlop

P_IGNORE = 0.8  # in training
TRAINING, SPARSE_TAIL, DENSE_TAIL = (f"P(ignore) = {p:g}" for p in (P_IGNORE, SPARSE, DENSE))
TAILS = {TRAINING: P_IGNORE, SPARSE_TAIL: SPARSE, DENSE_TAIL: DENSE}
SEEDS, TAIL_SEEDS, TAIL_SHARE = range(20, 30), range(20, 25), 0.2  # share of tail sequences in training
Net: TypeAlias = tuple[Family, Recipe, tuple[int, int, int], int]  # test sequences by tail; sequences at once
Counts: TypeAlias = dict[str, dict[str, Array]]  # by test set: wrong reads and reads [member]


def flip_flop_subject(name: str, nets: dict[str, Net], tokens: int, thresholds: Mapping[str, object]) -> Subject:
    """Return every net on all seeds, and transformers trained with tail sequences on the first seeds."""
    plain, tailed = [(0.0, seed) for seed in SEEDS], [(TAIL_SHARE, seed) for seed in TAIL_SEEDS]
    sandbox, trials = FlipFlop.ffl(P_IGNORE, tokens), {}
    for net, (family, recipe, _, _) in nets.items():
        axes = {"tails,seed": plain + tailed * (net == "transformer")}
        trials[net] = Trial(sandbox, family, recipe, SEEDS, axes=axes)
    tests = {net: (rows, piece) for net, (_, _, rows, piece) in nets.items()}
    return Subject(name, data={"tokens": tokens, "tests": tests, "misnamed": False, **thresholds}, trials=trials)


@lru_cache(maxsize=4)
def counted(nets: Trained, rows: tuple[int, int, int], piece: int) -> Counts:
    """Return the numbers of wrong reads and of reads [member] on every test set, on fresh sequences for each."""
    family, length, counts = nets.trial.family, nets.trial.sandbox.length, {}
    for (name, ignore), count in zip(TAILS.items(), rows, strict=True):
        each = evaluate(family, nets.runs, [FlipFlop.ffl(ignore, length)], count, piece, apart=True)[0]
        counts[name] = {what: np.array([one[what] for one in each]) for what in ("wrong", "queries")}
    return counts
