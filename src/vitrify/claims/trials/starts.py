"""Training from a built net, from a perturbed one and from random weights: what is kept, repaired and found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from vitrify.arrays import Array, Bools
from vitrify.claims.trials.problems import BuiltProblem
from vitrify.claims.trials.trial import Trained, Trial
from vitrify.encoding import JsonObject
from vitrify.learn import distance
from vitrify.learn.figures import by_step, reference_line
from vitrify.learn.models.built import BuiltFamily
from vitrify.learn.recipe import Recipe

MAX_EXCESS = 0.05  # excess loss over that of the uniform predictor: below it, a net solves the problem
MAX_DISTANCE = 0.5  # sine of the angle, and difference in kind over a random net's: closer to the construction
MIN_SEEDS = 7 / 8  # share of the seeds that must agree
MIN_LEFT = 0.5  # angle to the construction over the initial one: weights are recovered below it
SHADES = ("#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#08519c")  # of the noises in a figure
MIN_DRAWN = 1e-5  # smaller and negative excesses are drawn here
CORNERS = {  # of the bottom panels: position and alignment of each text
    "as built: kept, repaired, found": (0.02, 0.31, "left"),
    "learned another way": (0.02, 0.93, "left"),
    "not learned": (0.99, 0.93, "right"),
}

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

    def trial(self, problem: BuiltProblem) -> Trial:
        """Return the trial [start, seed] of one problem: all starts are members of one program."""
        family = BuiltFamily(start=problem.built)
        recipe = Recipe(steps=self.steps, batch=self.batch, schedule="linear", weight_decay=0.0)
        recipe = replace(recipe, test_examples=256, evals_per_doubling=1)
        kind = distance.mechanism_probe(problem.built, family, problem.sandbox)
        probes = {"turn": distance.probe(problem.built, turned=True), "kind": kind}
        axes = {"noise,scratch,lr": list(self.starts.values())}
        return Trial(problem.sandbox, family, recipe, range(8), axes, probes)


def curves(nets: Trained, settings: StartSettings) -> Curves:
    """Return excess over the uniform predictor's, angle, and difference in kind over that of random nets."""
    to_learn = nets.curves("floor.uniform") - nets.curves("floor")
    arrays = {"excess": nets.curves("excess") / to_learn, "turn": nets.curves("turn"), "kind": nets.curves("kind")}
    each = {start: {what: array[at] for what, array in arrays.items()} for at, start in enumerate(settings.starts)}
    chance = np.mean([each[start]["kind"][:, 0] for start in settings.from_scratch])
    return {start: {**own, "kind": own["kind"] / chance} for start, own in each.items()}


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
    percentiles = {what: np.nanpercentile(values, [10, 50, 90], axis=0) for what, values in curves.items()}
    return percentiles | {f"end {what}": values[:, -1] for what, values in curves.items()}


def draw_column(column: Array, name: str, data: JsonObject) -> None:
    """Draw one problem: excess, angle and difference in kind by step, and the last against the first at the end."""
    excess, turn, kind, ends = column
    column[0].set_title(f"{name}\n{_caption(data['summary'])}", fontsize=9)
    for start, (color, style) in _styles(data).items():
        own = data["starts"][start]
        for axes, what in ((excess, "excess"), (turn, "turn"), (kind, "kind")):
            least = MIN_DRAWN if what == "excess" else -np.inf
            low, middle, high = np.maximum(np.array(own[what], dtype=float), least)
            axes.plot(data["steps"], middle, color=color, linestyle=style, label=start)
            axes.fill_between(data["steps"], low, high, color=color, alpha=0.15, linewidth=0)
        across = np.maximum(np.array(own["end excess"], dtype=float), MIN_DRAWN)
        ends.scatter(across, own["end kind"], s=18, color=color, alpha=0.8)
    for axes in (excess, turn, kind):
        by_step(axes)
    excess.set(yscale="log", ylim=(MIN_DRAWN / 2, 30))
    reference_line(excess, 1.0, "uniform guess", at=0.01)
    reference_line(excess, MAX_EXCESS, "5 %: solved", at=0.01)
    for axes, random in ((turn, "right angle"), (kind, "random net")):
        axes.set_ylim(0, 1.3)
        reference_line(axes, MAX_DISTANCE, "threshold")
        reference_line(axes, 1.0, random)
    ends.set(xscale="log", xlim=(MIN_DRAWN / 2, 20), ylim=(-0.04, 1.3))
    ends.axvline(MAX_EXCESS, color="black", linestyle=":", linewidth=1)
    reference_line(ends, MAX_DISTANCE, "")
    for text, (x, y, side) in CORNERS.items():
        ends.text(x, y, text, transform=ends.transAxes, fontsize=8, ha=side, style="italic")
    ends.set_xlabel("excess at the end (over the uniform predictor's)", fontsize=9)


def _caption(summary: JsonObject) -> str:
    """Return the summary of a problem in words."""
    counts = {what: f"{value[0]} of {value[1]}" for what, value in summary.items() if isinstance(value, list)}
    rate, noise = (
        "none" if summary[what] is None else f"{summary[what]:g}"
        for what in ("largest rate kept", "largest noise repaired by half")
    )
    return (
        f"preserved {counts['preserved']}, to the rate {rate}\nhalf repaired to noise {noise}\n"
        f"from scratch: loss {counts['loss reached from scratch']}, "
        f"weights {summary['found in weights'][0]}, kind {summary['found in kind'][0]}"
    )


def _styles(data: JsonObject) -> dict[str, tuple[str, str]]:
    """Return color and line style by start: the built net at the judged and the largest rate, noises, scratch."""
    built = [start for start in data["starts"] if start.startswith("built")]
    noisy = [start for start in data["starts"] if start.startswith("noise")]
    styles = {f"built, rate {data['rate']:g}": ("black", "-"), built[-1]: ("grey", "--")}
    styles |= {start: (shade, "-") for start, shade in zip(noisy, SHADES[-len(noisy) :], strict=True)}
    return styles | {data["best"]: ("#d95f02", "-")}
