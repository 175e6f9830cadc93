r"""Learning curves over training sets of many sizes, and the steps of a hierarchy in them.

The loss of a learner at $P$ rows is the least test loss on its way: that of somebody who stops in time. The exact
losses of readers of the last $s^l - 1$ leaves, `Hierarchy.plateaus()` of the very grammar, are the stairs; a learner
has taken step $l$ where its loss is half-way between stairs $l - 1$ and $l$.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from vitrify.learn.models.catalogue import Family
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import Run, train
from vitrify.sandboxes.hierarchy import Hierarchy

LADDER = 9  # losses between the middles of two steps at which an exponent is fitted


@dataclass(frozen=True)
class Learner:
    """A family of networks, how they are trained, and the sizes of the training sets, from small to large."""

    family: Family
    recipe: Recipe
    sizes: tuple[int, ...]

    def runs(self, box: Hierarchy, seeds: Sequence[int]) -> list[list[Run]]:
        """Runs [size][member] as one program; each member has a seed, and the grammar of that number."""
        pairs = [(number % box.grammars, seed) for number, seed in enumerate(seeds)]
        axes = {"train_rows": self.sizes, "grammar,seed": pairs}
        runs = train(self.family, box, axes=axes, recipe=self.recipe)
        return [runs[at : at + len(pairs)] for at in range(0, len(runs), len(pairs))]


@cache
def least_losses(learner: Learner, box: Hierarchy, seeds: tuple[int, ...]) -> Any:
    """The least test loss [member, size]: the exact optimum, and the least excess over it on the same rows."""
    excess = [[min(point["excess"] for point in run.curve) for run in runs] for runs in learner.runs(box, seeds)]
    return np.array(excess).T + stairs(box, len(seeds))[:, -1:]


def stairs(box: Hierarchy, members: int) -> Any:
    """The exact losses [member, level] of the grammar of every member."""
    return np.array([replace(box, grammar=number % box.grammars).plateaus() for number in range(members)])


def middles(stair: Any) -> Any:
    """The losses [step] half-way down each step: between stairs 0 and 1, 1 and 2, …"""
    return (stair[:-1] + stair[1:]) / 2


def reached(sizes: Sequence[float], losses: Any, level: float) -> float:
    """The size at which a loss first comes down to a level, on a line through ln size; infinite if it never does.

    >>> round(reached([100, 1000], [2.0, 1.0], 1.5))
    316
    >>> reached([100, 1000], [2.0, 1.0], 0.5)
    inf
    """
    if losses[0] <= level:
        return float(sizes[0])
    for at in range(1, len(sizes)):
        if losses[at] <= level:
            part = (losses[at - 1] - level) / (losses[at - 1] - losses[at])
            return float(np.exp(np.log(sizes[at - 1]) + part * np.log(sizes[at] / sizes[at - 1])))
    return math.inf


def flattest(sizes: Sequence[float], losses: Any, above: float, below: float) -> float:
    """The loss in the middle of the flattest piece of a curve between two losses; not a number if no piece is there."""
    found = [
        ((losses[at - 1] - losses[at]) / np.log(sizes[at] / sizes[at - 1]), (losses[at - 1] + losses[at]) / 2)
        for at in range(1, len(sizes))
        if above >= losses[at - 1] and losses[at] >= below
    ]
    return float(min(found)[1]) if found else math.nan


def exponent(sizes: Sequence[float], losses: Any, stair: Any) -> float:
    r"""The $\beta$ of loss $-$ optimum $\sim P^{-\beta}$ between the middles of the second and the third step."""
    middle, floor = middles(stair), stair[-1]
    rungs = np.geomspace(middle[1] - floor, middle[2] - floor, LADDER)
    at = np.log([reached(sizes, losses, floor + rung) for rung in rungs])
    return float(-np.polyfit(at, np.log(rungs), 1)[0]) if np.isfinite(at).all() else math.nan
