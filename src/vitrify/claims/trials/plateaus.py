"""Plateaus of stored loss curves at known predictors, when a score rises, and curves without plateaus as a null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.learn.stages import Stage, levels, stages

TRIAL, HEADS = "chains", "chains/previous"  # the trial that is looked at; attention [seed, step, head]
READ = "step", "loss", "floor", "kl"  # curves that stages are found by, also those of known predictors
SMOOTHED, ARRIVED = 5, 0.1  # points of a moving mean; part of the whole fall that is left at arrival
NORMAL = 1.4826  # standard deviation over median size, of a normal distribution

Points = list[dict[str, float]]


def points(measured: Measured, names: Sequence[str] = READ) -> list[Points]:
    """Return the curves that stages are found by as a list of points for every run."""
    keys = [key.removeprefix(f"{TRIAL}/") for key in measured]
    keys = sorted(key for key in keys if key.split(".")[0] in names)
    rows = np.stack([measured[f"{TRIAL}/{key}"] for key in keys], axis=-1)
    lengths = measured[f"{TRIAL}/lengths"]
    return [
        [dict(zip(keys, point, strict=True)) for point in run[:n].tolist()]
        for run, n in zip(rows, lengths, strict=True)
    ]


def stages_of(curve: Points, window: float, optimal: str) -> tuple[list[Stage], dict[str, float]]:
    """Return the plateaus of a run with their predictors, and the losses of the predictors; the same run is kept."""
    keys = tuple(curve[0])
    found, losses = _stages(keys, tuple(tuple(point.values()) for point in curve), window, optimal)
    return list(found), dict(losses)


@lru_cache(maxsize=1 << 12)
def _stages(
    keys: tuple[str, ...], rows: tuple[tuple[float, ...], ...], window: float, optimal: str
) -> tuple[tuple[Stage, ...], tuple[tuple[str, float], ...]]:
    curve = [dict(zip(keys, row, strict=True)) for row in rows]
    return tuple(stages(curve, window=window, optimal=optimal)), tuple(levels(curve, optimal).items())


def reached(steps: Sequence[int], scores: Array, part: float) -> Array:
    """Return the step at which each score [seed, step] first has this part of the way to its highest value."""
    first, highest = scores[:, :1], scores.max(axis=1, keepdims=True)
    return np.asarray(steps)[((scores - first) / (highest - first) >= part).argmax(axis=1)]


def middle_of_rise(steps: Sequence[int], scores: Array) -> Array:
    """Return ln(1 + step) at half of the way of each score [seed, step] to its highest value, between measurements."""
    first, highest = scores[:, :1], scores.max(axis=1, keepdims=True)
    way = np.maximum.accumulate((scores - first) / (highest - first), axis=1)
    return np.array([np.interp(0.5, each, np.log1p(steps)) for each in way])


def middle_of_fall(
    steps: Sequence[int], losses: Array, predictors: Sequence[Mapping[str, float]], *names: str
) -> Array:
    """Return ln(1 + step) at which each loss [seed, step] is half way between those of two predictors."""
    fallen = np.maximum.accumulate(-losses, axis=1)
    half = [-np.mean([known[name] for name in names]) for known in predictors]
    return np.array([np.interp(at, each, np.log1p(steps)) for at, each in zip(half, fallen, strict=True)])


# Null hypotheses


def smooth(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return losses that fall from their first to their last value as a cubic in ln(1 + step), with measured noise.

    They arrive when the measured ones did. The noise is normal, with the median size of differences from a moving mean.
    """
    loss = measured[f"{TRIAL}/loss"]
    at = np.log1p(subject.trials[TRIAL].recipe.eval_steps())
    padded = np.pad(loss, ((0, 0), (SMOOTHED // 2, SMOOTHED // 2)), mode="edge")
    mean = np.stack([padded[:, i : i + loss.shape[1]] for i in range(SMOOTHED)]).mean(axis=0)
    first, last = loss[:, :1], mean[:, -1:]
    arrival = at[(loss - last <= ARRIVED * (first - last)).argmax(axis=1)]
    x = np.clip(at / arrival[:, None], 0, 1)
    noise = rng.normal(0, NORMAL * np.median(abs(loss - mean), axis=1, keepdims=True), loss.shape)
    return {**measured, f"{TRIAL}/loss": first + (last - first) * (3 * x**2 - 2 * x**3) + noise}


def half_way(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return runs that end with the distances from predictors that drawn runs had half way between the last two."""
    del subject
    loss, keys = measured[f"{TRIAL}/loss"], [key for key in measured if key.startswith(f"{TRIAL}/kl")]
    ends = [list(levels(run).values())[-2:] for run in points(measured)]
    at = (loss <= np.mean(ends, axis=1)[:, None]).argmax(axis=1)
    drawn = rng.integers(len(loss), size=len(loss))
    changed = {key: measured[key].copy() for key in keys}
    for key in keys:
        changed[key][:, -1] = measured[key][drawn, at[drawn]]
    return {**measured, **changed}


def even_rise(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return attention that rises evenly in ln(1 + step) between the lowest and the highest value of drawn runs."""
    heads = measured[HEADS].copy()
    at = np.log1p(subject.trials[TRIAL].recipe.eval_steps())
    drawn = heads[rng.integers(len(heads), size=len(heads)), :, 0]
    low, high = drawn[:, :1], drawn.max(axis=1, keepdims=True)
    heads[..., 0] = low + (high - low) * at / at[-1]
    return {**measured, HEADS: heads}
