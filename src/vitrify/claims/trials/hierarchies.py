r"""Networks trained on a random hierarchy: losses by training set, and the exact stairs.

A learner is trained on $P$ sequences; its loss is the least test loss of the run (early stopping). Stair $l$ is the
exact loss of the best predictor that sees the last $s^l - 1$ leaves, from `Hierarchy.plateaus()` of the same grammar. A
learner has taken step $l$ where its loss is half-way between stairs $l - 1$ and $l$.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from vitrify.arrays import Array, Floats
from vitrify.claims.trials.ladders import reached
from vitrify.claims.trials.trial import Trained, Trial
from vitrify.learn.models.catalogue import Family
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.hierarchy import HierarchySandbox

RUNGS = 9  # loss levels between two steps at which an exponent is fitted
SEEDS = range(8)

Learner: TypeAlias = tuple[Family, Recipe]


def last_leaf(v: int, m: int, L: int) -> HierarchySandbox:
    """Return the sandbox of eight grammars in which the last leaf is predicted."""
    return HierarchySandbox(v=v, m=m, L=L, mode="last", grammars=8, levels=False)


def learner(
    box: HierarchySandbox, family: Family, recipe: Recipe, sizes: Sequence[int], seeds: Sequence[int] = SEEDS
) -> Trial:
    """Return the trial [size, member] over training sets of several sizes; each member has its seed and grammar."""
    members = [(number % box.grammars, seed) for number, seed in enumerate(seeds)]
    return Trial(box, family, recipe, seeds, axes={"train_examples": sizes, "grammar,seed": members})


def least_losses(nets: Trained) -> Array:
    """Return the least test loss [member, size]: the exact optimum plus the least excess on the same sequences."""
    excess = np.nanmin(nets.curves("excess"), axis=-1).T
    return excess + stairs(nets.trial.sandbox, len(excess))[:, -1:]


def stairs(box: HierarchySandbox, members: int) -> Floats:
    """Return the exact losses [member, level] of the grammar of every member."""
    return np.array([replace(box, grammar=number % box.grammars).plateaus() for number in range(members)])


def middles(stair: Array) -> Array:
    """Return the losses [step] half-way between stairs 0 and 1, 1 and 2, …"""
    return (stair[:-1] + stair[1:]) / 2


def steps_taken(sizes: Sequence[float], losses: Array, stair: Array) -> list[float]:
    """Return the sizes at which a loss is half-way down each step; infinite where it never is."""
    return [reached(sizes, losses, level) for level in middles(stair)]


def flattest(sizes: Sequence[float], losses: Array, stair: Array) -> float:
    """Return the loss at the flattest segment of a curve between its second and third step, or NaN."""
    above, below = middles(stair)[1:3]
    segments = [
        ((losses[at - 1] - losses[at]) / np.log(sizes[at] / sizes[at - 1]), (losses[at - 1] + losses[at]) / 2)
        for at in range(1, len(sizes))
        if above >= losses[at - 1] and losses[at] >= below
    ]
    return float(min(segments)[1]) if segments else math.nan


def expected_rows(box: HierarchySandbox) -> dict[str, list[float]]:
    """Return the training sequences at which each architecture is expected to take step 1, 2, …, L."""
    scale, levels = box.v / (1 - box.m / box.v ** (box.s - 1)), range(1, box.L + 1)
    shared, apart = [level + (level > 1) for level in levels], [2 * level - 1 for level in levels]
    powers = {"convolution": shared, "transformer": apart}
    return {name: [scale * float(box.m) ** power for power in own] for name, own in powers.items()}


def exponent(sizes: Sequence[float], losses: Array, stair: Array) -> float:
    r"""Return $\beta$ of loss $-$ optimum $\sim P^{-\beta}$ between the middles of the second and the third step."""
    middle, floor = middles(stair), stair[-1]
    rungs = np.geomspace(middle[1] - floor, middle[2] - floor, RUNGS)
    at = np.log([reached(sizes, losses, floor + rung) for rung in rungs])
    return float(-np.polyfit(at, np.log(rungs), 1)[0]) if np.isfinite(at).all() else math.nan
