r"""Stages of learning: the plateaus of a loss curve, the known predictor that each is near to, and when they end.

A curve is looked at on a logarithmic scale of steps, $\tau = \ln(1 + \text{step})$; slopes are those of lines that
fit it best over a window around $\tau$. It is still where one of two things holds:

- the logarithm of its excess over the optimum, cut off at a resolution below which it counts as arrived, has a slope
  of at most `FLAT`: it stays where it is;
- the loss falls at most `CALM` times as fast as it will at some later $\tau$: members that are on a plateau may well
  get better, slowly, before they get better fast.

A plateau is where it is still for at least `LEAST` in $\tau$. A power law has none however far it goes, as its excess
has a slope, its exponent, and its loss falls ever more slowly; unless the exponent is at most `FLAT`. The window blurs
the ends of a plateau by half its width, so that short ones are overlooked: a curve with many points can do with a
smaller one. A plateau before a drop that is many times smaller than a later one is overlooked too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import InputError

OPTIMAL = "optimal"
FLAT = 0.05  # the size of a slope of ln(excess) against ln(1 + step) that is flat in any case
CALM = 0.3  # the part of the steepest fall to come that is slow beside it
LEAST = 0.5  # of a plateau, in ln(1 + step)
POINTS = 3  # of a plateau, at least
WINDOW = 1.0  # in ln(1 + step), over which slopes are fitted
RESOLUTION = 0.003  # nats of excess below which a curve has arrived
PART = 0.25  # the same, of the gap between the optimum and the best of the other predictors
TOLERANCE = 0.05  # nats of KL within which a plateau has a predictor's name
DRAWS, INTERVAL = 2000, ((1 - 0.95) / 2, (1 + 0.95) / 2)  # of members, for the interval of their median
MOMENTS = 20_001  # evenly spaced, at which a plateau and the transition after it are measured

Numbers = Sequence[float] | Floats
Curve = Sequence[Mapping[str, float]]  # as in `Run.curve`: a step and measurements at each point


@dataclass(frozen=True)
class Plateau:
    """A part of a curve that is flat: its first and last point and their steps, and the median of the curve on it."""

    first: int
    last: int
    start: float
    end: float
    level: float


@dataclass(frozen=True)
class Stage:
    """A plateau and the predictor it is nearest to: its name, or None if none is near, and the distance in nats."""

    name: str | None
    plateau: Plateau
    distance: float


def plateaus(
    steps: Numbers, losses: Numbers, floor: float = 0.0, resolution: float = RESOLUTION, window: float = WINDOW
) -> list[Plateau]:
    """The plateaus of a curve of losses whose optimum is `floor`, in order."""
    step, loss = np.asarray(steps, dtype=float), np.asarray(losses, dtype=float)
    if step.ndim != 1 or step.shape != loss.shape or (np.diff(step) <= 0).any():
        raise InputError("a curve has as many losses as steps, and its steps go up")
    if not np.isfinite(loss).all():
        raise InputError("a curve of losses that are not numbers has no plateaus: leave its end away")
    at, height = np.log1p(step), np.log(np.maximum(loss - floor, resolution))
    falls = -_slopes(at, loss, window)
    to_come = np.maximum.accumulate(falls[::-1])[::-1]
    still = (np.abs(_slopes(at, height, window)) <= FLAT) | (np.abs(falls) <= CALM * to_come)
    plateaus_so_far = []
    for is_still, run in groupby(range(len(at)), key=still.__getitem__):
        places = list(run)
        first, last = places[0], places[-1]
        if is_still and len(places) >= POINTS and at[last] - at[first] >= LEAST:
            level = float(np.median(loss[first : last + 1]))
            plateaus_so_far.append(Plateau(first, last, float(step[first]), float(step[last]), level))
    return plateaus_so_far


def _slopes(at: Floats, height: Floats, window: float) -> Floats:
    """At each point the slope of the line that fits best around it; near an end the window is moved inwards."""
    slopes = []
    for middle in range(len(at)):
        left = np.clip(at[middle] - window / 2, at[0], max(at[-1] - window, at[0]))
        inside = (at >= left - 1e-9) & (at <= left + window + 1e-9)
        inside[max(middle - 1, 0) : middle + 2] = True  # at least the neighbours
        x, y = at[inside] - at[inside].mean(), height[inside] - height[inside].mean()
        slopes.append(float(x @ y / (x @ x)) if len(x) > 1 else 0.0)
    return np.array(slopes)


def stages(curve: Curve, *, window: float = WINDOW, optimal: str = OPTIMAL) -> list[Stage]:
    """The plateaus of a trained member's curve, named by the predictor with the least KL to the member.

    `curve` has `step`, `loss`, `floor`, `kl` (to the optimal predictor), and `floor.NAME` and `kl.NAME` (of others) at
    every point. A predictor further than `TOLERANCE` away gives no name; `optimal` is that of the optimal one. A member
    has arrived when its excess is a quarter of that of the best predictor but that one.
    """
    gaps = [value - curve[-1]["floor"] for key, value in curve[-1].items() if key.startswith("floor.")]
    resolution = max(PART * min(gaps, default=0.0), RESOLUTION)
    steps, excess = [point["step"] for point in curve], [point["loss"] - point["floor"] for point in curve]
    names = distances(curve, optimal)
    flat_parts = plateaus(steps, excess, resolution=resolution, window=window)
    return [_named(curve, plateau, names) for plateau in flat_parts]


def distances(curve: Curve, optimal: str = OPTIMAL) -> dict[str, str]:
    """Return the key of a curve's points under which the KL to each known predictor stands, by predictor."""
    return {optimal: "kl"} | {key[3:]: key for key in curve[0] if key.startswith("kl.")}


def levels(curve: Curve, optimal: str = OPTIMAL) -> dict[str, float]:
    """Return the losses of the known predictors on the sequences that a member is measured on, the worst first."""
    known = {key[6:]: value for key, value in curve[-1].items() if key.startswith("floor.")}
    return dict(sorted((known | {optimal: curve[-1]["floor"]}).items(), key=lambda item: -item[1]))


def gap(stages_of_run: Sequence[Stage], losses: Mapping[str, float]) -> float:
    """Return the largest relative distance of a stage's level from the loss of the predictor that it is named after."""
    far = [abs(stage.plateau.level / losses[stage.name] - 1) for stage in stages_of_run if stage.name is not None]
    return max(far, default=float("nan"))


def nearest(curve: Curve, least: float, optimal: str = OPTIMAL) -> list[Stage]:
    """Return the predictors that are the nearest in KL for at least `least` in ln(1 + step), one after the other.

    The level of such a stage is the loss where the member is nearest. It needs no plateau: a member that soon improves
    again is told from one that never came near.
    """
    keys = distances(curve, optimal)
    names = [min(keys, key=lambda name: point[keys[name]]) for point in curve]
    runs: list[Stage] = []
    for name, run in groupby(range(len(curve)), key=names.__getitem__):
        indices = list(run)
        first, last = indices[0], indices[-1]
        ends = float(curve[first]["step"]), float(curve[last]["step"])
        if np.log1p(ends[1]) - np.log1p(ends[0]) < least or (runs and runs[-1].name == name):
            continue
        best = min((curve[index] for index in indices), key=lambda point: point[keys[name]])
        runs.append(Stage(name, Plateau(first, last, *ends, best["loss"]), best[keys[name]]))
    return runs


def _named(curve: Curve, plateau: Plateau, names: Mapping[str, str]) -> Stage:
    part = curve[plateau.first : plateau.last + 1]
    far = {name: float(np.median([point[key] for point in part])) for name, key in names.items()}
    name = min(far, key=far.__getitem__)
    level = float(np.median([point["loss"] for point in part]))
    return Stage(name if far[name] <= TOLERANCE else None, replace(plateau, level=level), far[name])


def order(stages_of_run: Sequence[Stage]) -> tuple[str, ...]:
    """The names of the stages in the order in which a member goes through them; plateaus without a name left out."""
    return tuple(name for name, _ in groupby(stage.name for stage in stages_of_run if stage.name is not None))


def breakpoint_of(curve: Curve, stages_of_run: Sequence[Stage], before: str, after: str) -> float | None:
    """The step at which a member leaves one stage for another: where its loss is half way between their levels.

    None if it does not have both, in this order. Between two points it is interpolated on the logarithmic scale.
    """
    last = max((at for at, stage in enumerate(stages_of_run) if stage.name == before), default=None)
    later = [stage for stage in stages_of_run[last + 1 :] if stage.name == after] if last is not None else []
    if last is None or not later:
        return None
    old, new = stages_of_run[last].plateau, later[0].plateau
    part = curve[old.last : new.first + 1]
    at = np.log1p([point["step"] for point in part])
    loss, half = np.array([point["loss"] for point in part]), (old.level + new.level) / 2
    crossed = int(np.argmax((loss <= half) == (new.level < old.level)))
    if not crossed:
        return float(np.expm1(at[0]))
    ahead = (half - loss[crossed - 1]) / (loss[crossed] - loss[crossed - 1])
    return float(np.expm1(at[crossed - 1] + ahead * (at[crossed] - at[crossed - 1])))


@dataclass(frozen=True)
class Spread:
    """The median of some numbers and an interval for it, by bootstrap; `missing` of the members had no number."""

    median: float
    low: float
    high: float
    members: int
    missing: int


def breakpoints(curves: Sequence[Curve], before: str, after: str) -> Spread:
    """When members leave one stage for another: the median step, and its 95% interval by drawing members again."""
    each = [breakpoint_of(curve, stages(curve), before, after) for curve in curves]
    known = np.array([step for step in each if step is not None])
    missing = len(each) - len(known)
    if not len(known):
        return Spread(np.nan, np.nan, np.nan, len(each), missing)
    again = np.random.default_rng(0).integers(len(known), size=(DRAWS, len(known)))
    low, high = np.quantile(np.median(known[again], axis=1), INTERVAL)
    return Spread(float(np.median(known)), float(low), float(high), len(each), missing)


def plateau_share(steps: Numbers, losses: Numbers, level: float, near: float, below: float) -> float:
    """Return the share of the steps at which a loss is `near` a level, before it is `below` by more than that."""
    every = np.arange(steps[-1] + 1)
    loss = np.interp(np.log1p(every), np.log1p(steps), losses)
    left = loss < level - below
    end = int(np.argmax(left)) if left.any() else len(every)
    return float((np.abs(loss[:end] - level) <= near).sum() / steps[-1])


def stays_above(steps: Numbers, curve: Numbers, level: float) -> float:
    """Return the step from which on a curve stays at a level or above it, straight between measurements; NaN if never.

    >>> stays_above([0, 10, 20, 30], [0.0, 0.5, 1.0, 1.0], 0.75), stays_above([0, 10], [0.0, 0.5], 0.75)
    (15.0, nan)
    """
    below = [at for at, value in enumerate(curve) if value < level]
    if not below:
        return float(steps[0])
    last = below[-1]
    if last == len(curve) - 1:
        return float("nan")
    ahead = (level - curve[last]) / (curve[last + 1] - curve[last])
    return float(steps[last] + ahead * (steps[last + 1] - steps[last]))


def risen(steps: Numbers, curves: Sequence[Numbers], part: float) -> Floats:
    """Return the step from which on each curve has risen by a part of the way from its first to its last value."""
    return np.array([stays_above(steps, each, each[0] + part * (each[-1] - each[0])) for each in curves])


def plateau_and_transition(
    steps: Numbers, losses: Numbers, scores: Numbers, *, level: float, near: float, low: float, high: float
) -> tuple[float, float]:
    """Return how many steps a loss is within `near` of a level before a score is `high`, and how many its rise takes.

    The rise goes from the last step at which the score is at most `low` to the first at which it is `high`; where that
    never comes it takes infinitely many, and the plateau lasts to the end. Between measurements both go straight.
    """
    even = np.linspace(0, steps[-1], MOMENTS)
    loss, score = np.interp(even, steps, losses), np.interp(even, steps, scores)
    reached = np.flatnonzero(score >= high)
    until = int(reached[0]) if len(reached) else MOMENTS
    plateau = (np.abs(loss[:until] - level) <= near).mean() * even[until - 1]
    before = np.flatnonzero(score[:until] <= low)
    rise = even[until] - even[before[-1]] if len(reached) and len(before) else np.inf
    return float(plateau), float(rise)
