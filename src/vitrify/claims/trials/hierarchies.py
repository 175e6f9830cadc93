r"""Networks trained on finite sets of a random hierarchy, and its exact stairs.

Stair $l$ is the exact loss of the best predictor that sees the last $s^l - 1$ leaves (`HierarchySandbox.plateaus`). A
learner has taken step $l$ where its loss is half-way between stairs $l - 1$ and $l$.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from vitrify.arrays import Floats
from vitrify.claims.trials.trial import Trial
from vitrify.learn.models.catalogue import Family
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.hierarchy import HierarchySandbox

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


def stairs(box: HierarchySandbox, members: int) -> Floats:
    """Return the exact losses [member, level] of the grammar of every member."""
    return np.array([replace(box, grammar=number % box.grammars).plateaus() for number in range(members)])


def expected_rows(box: HierarchySandbox) -> dict[str, list[float]]:
    """Return the training sequences at which each architecture is expected to take step 1, 2, …, L."""
    scale, levels = box.v / (1 - box.m / box.v ** (box.s - 1)), range(1, box.L + 1)
    shared, apart = [level + (level > 1) for level in levels], [2 * level - 1 for level in levels]
    powers = {"convolution": shared, "transformer": apart}
    return {name: [scale * float(box.m) ** power for power in own] for name, own in powers.items()}
