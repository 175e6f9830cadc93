"""Training from a built net, from a perturbed one and from random weights: what is kept, repaired and found.

Measurements of a problem are the arrays "PROBLEM/excess", its loss above the optimum over that of the uniform
predictor, "PROBLEM/turn", the sine of the angle to the construction, and "PROBLEM/kind", the difference in kind from
it, each [start, seed, step].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from vitrify.arrays import Array, Bools
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.problems import BuiltProblem
from vitrify.claims.trials.trial import Trial, trained
from vitrify.learn import distance
from vitrify.learn.models.built import BuiltFamily
from vitrify.learn.recipe import Recipe

MAX_EXCESS = 0.05  # excess loss over that of the uniform predictor: below it, a net solves the problem
MAX_DISTANCE = 0.5  # sine of the angle, and difference in kind over a random net's: closer to the construction
MIN_SEEDS = 7 / 8  # share of the seeds that must agree
MIN_LEFT = 0.5  # angle to the construction over the initial one: weights are recovered below it

Curves: TypeAlias = Mapping[str, Mapping[str, Array]]  # by start: excess, turn and kind as [seed, step]


@dataclass(frozen=True)
class StartSettings:
    """Training of every problem, and its starts: rates from the built net, noises at `rate`, and from scratch."""

    steps: int
    batch: int
    rate: float
    rates: tuple[float, ...]
    noises: tuple[float, ...]
    scratch: tuple[float, ...]

    @property
    def judged(self) -> str:
        """The name of the start at the built net that is judged."""
        return f"built, rate {self.rate:g}"

    @property
    def from_scratch(self) -> list[str]:
        """The names of the starts at random weights."""
        return [f"scratch, rate {rate:g}" for rate in self.scratch]

    @property
    def starts(self) -> dict[str, tuple[float, bool, float]]:
        """Noise, scratch and learning rate of every start, by name."""
        starts = {f"built, rate {rate:g}": (0.0, False, rate) for rate in self.rates}
        starts |= {f"noise {noise:g}": (noise, False, self.rate) for noise in self.noises}
        return starts | {name: (0.0, True, rate) for name, rate in zip(self.from_scratch, self.scratch, strict=True)}

    @property
    def recipe(self) -> Recipe:
        """The recipe, without the rates."""
        recipe = Recipe(steps=self.steps, batch=self.batch, schedule="linear", weight_decay=0.0)
        return replace(recipe, test_examples=256, evals_per_doubling=1)

    def trial(self, problem: BuiltProblem, seeds: Sequence[int]) -> Trial:
        """Return the trial [start, seed] of one problem: all starts are members of one program."""
        family = BuiltFamily(start=problem.built)
        kind = distance.mechanism_probe(problem.built, family, problem.sandbox)
        probes = {"turn": distance.probe(problem.built, turned=True), "kind": kind}
        axes = {"noise,scratch,lr": list(self.starts.values())}
        return Trial(problem.sandbox, family, self.recipe, seeds, axes, probes)


def measure(subject: Subject) -> Measured:
    """Train all starts of all problems, and return their curves."""
    arrays: dict[str, Array] = {}
    for name, nets in trained(subject).items():
        to_learn = nets.curves("floor.uniform") - nets.curves("floor")
        own = {"excess": nets.curves("excess") / to_learn, "turn": nets.curves("turn"), "kind": nets.curves("kind")}
        arrays |= {f"{name}/{what}": array for what, array in own.items()}
    return arrays


def curves(measured: Measured, problem: str, settings: StartSettings) -> Curves:
    """Return excess, angle, and difference in kind over that of random nets, by start."""
    arrays = {what: measured[f"{problem}/{what}"] for what in ("excess", "turn", "kind")}
    each = {start: {what: array[at] for what, array in arrays.items()} for at, start in enumerate(settings.starts)}
    chance = np.mean([each[start]["kind"][:, 0] for start in settings.from_scratch])
    return {start: {**own, "kind": own["kind"] / chance} for start, own in each.items()}


def repaired(curves: Curves, settings: StartSettings) -> Array:
    """Return the angle at the end over the initial one, of starts with noise that lost the function and regained it."""
    left: list[Array] = []
    for start in (curves[f"noise {noise:g}"] for noise in settings.noises):
        excess, turn = start["excess"], start["turn"]
        back = (excess[:, 0] > MAX_EXCESS) & (excess[:, -1] <= MAX_EXCESS)
        left.append(turn[back, -1] / turn[back, 0])
    return np.concatenate(left)


def best_from_scratch(curves: Curves, settings: StartSettings) -> str:
    """Return the start from scratch whose seeds end with the least excess."""

    def end(start: str) -> float:
        return float(np.median(np.nan_to_num(curves[start]["excess"][:, -1], nan=np.inf)))

    return min(settings.from_scratch, key=end)


def summary(curves: Curves, settings: StartSettings, best: str) -> dict[str, float | list[int] | None]:
    """Return what is kept, repaired and found: counts of seeds as [successes, all], largest rates and noises."""
    excess, turn, kind = ({start: each[what][:, -1] for start, each in curves.items()} for what in curves[best])
    solved = {start: ends <= MAX_EXCESS for start, ends in excess.items()}
    in_weights = {start: solved[start] & (turn[start] <= MAX_DISTANCE) for start in curves}
    unchanged = {rate: in_weights[f"built, rate {rate:g}"] for rate in settings.rates}
    noisy = {noise: f"noise {noise:g}" for noise in settings.noises}
    recovered = {noise: turn[start] <= MIN_LEFT * curves[start]["turn"][:, 0] for noise, start in noisy.items()}
    return {
        "preserved": _count(unchanged[settings.rate]),
        "largest rate kept": _largest(unchanged, MIN_SEEDS),
        "largest noise repaired by half": _largest({noise: solved[start] for noise, start in noisy.items()}, 0.5),
        "weights back by half": _largest(recovered, 0.5),
        "loss reached from scratch": _count(solved[best]),
        "found in weights": _count(in_weights[best]),
        "found in kind": _count(solved[best] & (kind[best] <= MAX_DISTANCE)),
    }


def _count(seeds: Bools) -> list[int]:
    return [int(seeds.sum()), len(seeds)]


def _largest(seeds: Mapping[float, Bools], share: float) -> float | None:
    """Return the largest value at which at least a share of the seeds succeeds."""
    return max((value for value, each in seeds.items() if each.mean() >= share), default=None)


def quantiles(curves: Mapping[str, Array]) -> dict[str, Array]:
    """Return the 10th, 50th and 90th percentile at each step, and all values at the end."""
    percentiles = {what: _percentile(values) for what, values in curves.items()}
    return percentiles | {f"end {what}": values[:, -1] for what, values in curves.items()}


def _percentile(values: Array) -> Array:
    """Return the 10th, 50th and 90th percentile over seeds; the loss of a diverged run is no number."""
    percentile = np.percentile if np.isfinite(values).all() else np.nanpercentile
    result: Array = percentile(values, [10, 50, 90], axis=0)
    return result
