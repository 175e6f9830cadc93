r"""Linear routes: whether a linear function of the words of a query, by position, can determine its task.

A linear router gives every task $\tau$ a vote $R_{\tau f}$ for each feature $f$, a word at an offset from the end (the
beginning of the sequence counts as a word). It sends all queries to the right expert iff

$$\sum_{f \in q} (R_{\tau f} - R_{\sigma f}) \ge 1 \quad \text{for all queries } q \text{ of all tasks } \tau
\text{ and all } \sigma \ne \tau,$$

up to scale. That is a linear program; it has no solution where, for example, two tasks have the same features in total
(`ab#, cd#` against `ad#, cb#`). A query is a template and a key, and the sum splits likewise: for a template and a
rival $\sigma$ only the key with the least margin matters, and it is found for all templates with that slot at once. So
constraints are added when they are violated, worst keys first: if some of them have no solution all have none, and a
solution that violates none is one of all. Words that are only parts of keys get votes only if it can't be done without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.spec.memory.knowledge import Knowledge
from vitrify.spec.memory.knowledge_patterns import Group, Pattern, key_sets, patterns
from vitrify.spec.ngrams.model import BEGIN

Floats = NDArray[np.float64]
Feature = tuple[int, str]  # an offset from the end, and the word there
Constraint = tuple[int, int, tuple[int, ...]]  # a task must outvote a rival on a query with these features

SOLVER_TOLERANCE = 1e-6  # violations up to this are ignored
TARGET_MARGIN = 1 + 2**-20  # after scaling, so that at least 1 remains after rounding


@dataclass(frozen=True, eq=False)
class LinearRoute:
    """Votes [task, feature] that send every query to its task with a margin of at least 1."""

    features: tuple[Feature, ...]
    votes: Floats
    margin: float
    constraints: int


def linear_route(spec: Knowledge) -> LinearRoute | None:
    """Return votes that route every query, or None if the linear program has no solution."""
    world = _World(spec)
    return _search(world, world.around) or _search(world, frozenset(range(len(world.features))))


def _search(world: _World, voting: frozenset[int]) -> LinearRoute | None:
    """Return votes for some of the features, integers where possible."""
    votes = np.zeros((world.tasks, len(world.features)))
    constraints: dict[Constraint, None] = {}
    while True:
        violations, margin = world.violated(votes)
        if constraints.keys() >= set(violations):
            integral = np.round(votes)
            if world.violated(integral)[1] >= 1:
                return LinearRoute(world.features, integral, world.violated(integral)[1], len(constraints))
            return LinearRoute(world.features, votes * (TARGET_MARGIN / margin), TARGET_MARGIN, len(constraints))
        constraints |= dict.fromkeys(violations)
        solved = _solve(votes.shape, list(constraints), voting)
        if solved is None:
            return None
        votes = solved


class _World:
    """All queries as sums of the features around a slot and those of a key."""

    def __init__(self, spec: Knowledge) -> None:
        self.tasks = len(spec.tasks)
        self.templates: list[tuple[int, Pattern, tuple[int, ...]]] = []
        self.keys: dict[tuple[int, Group], NDArray[np.int64]] = {}
        indices: dict[Feature, int] = {}

        def number(offset: int, word: str) -> int:
            return indices.setdefault((offset, word), len(indices))

        lengths = sorted({pattern.length for task in spec.tasks for pattern in patterns(task)})
        for index, task in enumerate(spec.tasks):
            for pattern in patterns(task):
                around = [number(offset, *words) for offset, words in pattern.around.items()]
                around += [number(length, BEGIN) for length in lengths if length > pattern.length]
                self.templates.append((index, pattern, tuple(around)))
                if (index, pattern.group) not in self.keys:
                    held = [key_sets(task.facts[fact][0], pattern.group) for fact in pattern.keys]
                    rows = [[number(offset, *words) for offset, words in key.items()] for key in held]
                    self.keys[index, pattern.group] = np.array(rows)
        self.features = tuple(indices)
        self.around = frozenset(feature for _, _, around in self.templates for feature in around)

    def violated(self, votes: Floats) -> tuple[list[Constraint], float]:
        """Return the worst violated constraint of each template and rival, and the least margin of all."""
        rows, least = [], np.inf
        worst: dict[tuple[int, Group], tuple[NDArray[np.int64], Floats]] = {}
        for (task, group), keys in self.keys.items():
            sums = votes[:, keys].sum(axis=2)  # [task, key]
            margins = sums[task] - sums
            chosen = margins.argmin(axis=1)
            worst[task, group] = chosen, np.take_along_axis(margins, chosen[:, None], axis=1)[:, 0]
        for task, pattern, around in self.templates:
            sums = votes[:, around].sum(axis=1)
            chosen, margins = worst[task, pattern.group]
            margin = sums[task] - sums + margins
            margin[task] = np.inf
            least = min(least, float(margin.min()))
            for rival in np.flatnonzero(margin < 1 - SOLVER_TOLERANCE).tolist():
                key = self.keys[task, pattern.group][chosen[rival]]
                rows.append((task, rival, (*around, *key.tolist())))
        return rows, least


def _solve(shape: tuple[int, int], rows: list[Constraint], voting: frozenset[int]) -> Floats | None:
    """Return votes that satisfy some constraints; only votes that occur in one are variables."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    entries = [
        (row, (who, feature), sign)
        for row, (task, rival, features) in enumerate(rows)
        for feature in features
        if feature in voting
        for who, sign in ((task, 1.0), (rival, -1.0))
    ]
    used = {vote: column for column, vote in enumerate(dict.fromkeys(vote for _, vote, _ in entries))}
    at, columns = [row for row, _, _ in entries], [used[vote] for _, vote, _ in entries]
    matrix = csr_array(([sign for _, _, sign in entries], (at, columns)), shape=(len(rows), len(used)))
    negated: Any = -matrix  # SciPy's type stubs do not know sparse arrays
    solution = linprog(np.zeros(len(used)), negated, -np.ones(len(rows)), bounds=(None, None), method="highs-ipm")
    if solution.status == 2:
        return None
    if solution.status != 0:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    assert solution.x is not None
    votes = np.zeros(shape)
    for (task, feature), column in used.items():
        votes[task, feature] = solution.x[column]
    return votes
