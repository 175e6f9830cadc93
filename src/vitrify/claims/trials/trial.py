"""Trials: the trainings that a claim needs, their measurements as arrays, and the evidence made of them.

    subject.trials                         the trainings of one subject of a claim, by name
    trained(subject)                       their runs: curves [*axes, seed, step] and last values [*axes, seed]
    measured(subject)                      the same as arrays that can be stored; `recalled` reads them
    evidence(subject, criteria, figure)    the verdict, from criteria that hold their measured values

A sandbox is a task with an exact optimum, a family an architecture with its sizes. A saboteur is a negative control: a
changed subject on which the check must fail. Trials that it has in common with the subject are not trained again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from vitrify.arrays import Array
from vitrify.certification.evidence import Criterion, Domain, Evidence, Method, Quantity, judged
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.measurements import Measured
from vitrify.encoding import encoded
from vitrify.learn.models.catalogue import Family
from vitrify.learn.plan import together
from vitrify.learn.program import First, Probe
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Run
from vitrify.learn.store import RunStore
from vitrify.learn.train import train

# A file of a claim that trains imports these from here.
__all__ = ["Claim", "Criterion", "Domain", "Evidence", "Figure", "Figures", "Method", "Quantity", "Recipe", "Subject"]
__all__ += ["Measured", "Subjects", "Trained", "Trial", "domain", "evidence", "measured", "recalled", "run_trial"]
__all__ += ["trained"]

MAX_TRIALS = 16  # results in memory: saboteurs share trials with subjects
FIGURE_DIGITS = 5
MAX_LISTED = 12  # length of a list among a domain's settings


@dataclass(frozen=True, eq=False)
class Trial:
    """Networks of a family, trained on a sandbox: one run for each seed and each combination of the axes.

    An axis `{"p": [0.1, 0.2]}` varies a parameter that compiled programs take as an input; `{"p,q": [(0.1, 0.3), …]}`
    varies several together. An axis with `seed` in it replaces `seeds`. `probes` are measured beside the losses;
    `first` gives the initial weights. Axis values and probes must be hashable: equal trials are trained once.
    """

    sandbox: Any  # an instance of any `Sandbox` class
    family: Family
    recipe: Recipe
    seeds: Sequence[int] = range(8)
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    probes: Mapping[str, Probe] = field(default_factory=dict)
    first: First | None = None

    @property
    def all_axes(self) -> Mapping[str, Sequence[Any]]:
        """The axes with the seeds, which are the last one unless an axis has them already."""
        return self.axes if any("seed" in axis.split(",") for axis in self.axes) else {**self.axes, "seed": self.seeds}

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each axis, the seeds last unless they are part of an axis."""
        return tuple(map(len, self.all_axes.values()))

    @property
    def trained_seeds(self) -> tuple[int, ...]:
        """The different seeds, in order, also where they are part of an axis."""
        pairs = [pair for axis, values in self.all_axes.items() for value in values for pair in together(axis, value)]
        seeds: dict[Any, None] = dict.fromkeys(value for name, value in pairs if name == "seed")
        return tuple(seeds)

    def _key(self) -> tuple[object, ...]:
        axes = tuple((axis, tuple(values)) for axis, values in self.axes.items())
        same = self.sandbox, self.family, self.recipe, self.first
        return (*same, tuple(self.seeds), axes, tuple(self.probes.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, eq=False)
class Trained:
    """A trial's measurements: `curves` [*axes, seed, step] by name, and `runs` where they were trained in this process.

    What is read back from a file has no runs. `lengths` [*axes, seed] are the numbers of measurements of each run.
    """

    trial: Trial
    values: Mapping[str, Array]
    lengths: Array
    runs: Sequence[Run] = ()

    @classmethod
    def of(cls, trial: Trial, runs: Sequence[Run]) -> Trained:
        """Return the measurements of runs as arrays; NaN after a run stopped early or its loss became NaN.

        A probe that gives an array has its dimensions last.
        """
        values, steps = {}, len(trial.recipe.eval_steps())
        for name, first in runs[0].curve[0].items():
            array = np.full((len(runs), steps, *np.shape(first)), np.nan)
            for curve, run in zip(array, runs, strict=True):
                curve[: len(run.curve)] = [point[name] for point in run.curve]
            values[name] = array.reshape(*trial.shape, *array.shape[1:])
        return cls(trial, values, np.array([len(run.curve) for run in runs]).reshape(trial.shape), runs)

    @property
    def steps(self) -> list[int]:
        """The steps after which runs were measured."""
        return self.trial.recipe.eval_steps()

    @property
    def arrays(self) -> dict[str, Array]:
        """The trained weights of all runs by name, each [run, …]."""
        names = self.runs[0].weights.arrays
        return {name: np.stack([np.asarray(run.weights.arrays[name]) for run in self.runs]) for name in names}

    def curves(self, name: str) -> Array:
        """Return a measured quantity [*axes, seed, step]; NaN after a run ended early."""
        return self.values[name]

    def final(self, name: str) -> Array:
        """Return the last measurement of a quantity [*axes, seed], also of runs that ended early."""
        values, last = self.values[name], self.lengths - 1
        at = last.reshape(*last.shape, *[1] * (values.ndim - last.ndim))
        return np.take_along_axis(values, at, axis=last.ndim).squeeze(last.ndim)

    @property
    def points(self) -> list[list[dict[str, Any]]]:
        """The measurements of each run as a list of its points, as `Run.curve` has them."""
        flat = {name: array.reshape(-1, *array.shape[self.lengths.ndim :]) for name, array in self.values.items()}
        return [
            [{name: array[run, at].tolist() for name, array in flat.items()} for at in range(length)]
            for run, length in enumerate(self.lengths.ravel())
        ]


LENGTHS = "lengths"  # beside the curves of a trial in stored measurements


def measured(subject: Subject) -> Measured:
    """Train the trials of a subject and return all curves as arrays "trial/name": what a claim measures by default."""
    arrays: dict[str, Array] = {}
    for name, nets in trained(subject).items():
        arrays |= {f"{name}/{key}": array for key, array in nets.values.items()} | {f"{name}/{LENGTHS}": nets.lengths}
    return arrays


def recalled(subject: Subject, arrays: Measured) -> dict[str, Trained]:
    """Return the trials of a subject with the curves that `measured` returned, without their runs."""
    nets = {}
    for name, trial in subject.trials.items():
        own = {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}
        lengths = np.asarray(own.pop(LENGTHS))
        nets[name] = Trained(trial, own, lengths)
    return nets


def trained(subject: Subject) -> dict[str, Trained]:
    """Train the trials of a subject, resuming from its run store if it has one; equal trials are trained once."""
    return {name: run_trial(trial, subject.store) for name, trial in subject.trials.items()}


@lru_cache(maxsize=MAX_TRIALS)
def run_trial(trial: Trial, store: RunStore | None) -> Trained:
    """Train one trial; the results of the latest trials stay in memory."""
    axes, recipe, probes, first = trial.all_axes, trial.recipe, trial.probes, trial.first
    runs = train(trial.family, trial.sandbox, axes=axes, recipe=recipe, probes=probes, first=first, store=store)
    return Trained.of(trial, runs)


def domain(subject: Subject) -> Domain:
    """Return the domain of a verdict: the number of training runs, with seeds, steps, batches and the subject's data.

    A subject without trials has its domain in `data["domain"]`.
    """
    if "domain" in subject.data:
        stated: Domain = subject.data["domain"]
        return stated
    trials = list(subject.trials.values())
    listed = {
        "seeds": [len(trial.trained_seeds) for trial in trials],
        "steps": [trial.recipe.steps for trial in trials],
        "batch": [trial.recipe.batch for trial in trials],
    }
    distinct = {name: list(dict.fromkeys(values)) for name, values in listed.items()}
    numbers = {name: value for name, value in subject.data.items() if _plain(value)}
    settings = numbers | {name: values[0] if len(values) == 1 else values for name, values in distinct.items()}
    count = sum(prod(trial.shape) for trial in dict.fromkeys(trials))
    return Domain("training runs", Method.TRAINED, count, settings=settings)


def _plain(value: object) -> bool:
    """Return True for a number, a string, or a short list of these."""
    plain = (bool, int, float, str)
    return isinstance(value, plain) or (
        isinstance(value, (list, tuple)) and len(value) <= MAX_LISTED and all(isinstance(each, plain) for each in value)
    )


def evidence(
    subject: Subject, criteria: Sequence[Criterion], figure: Mapping[str, object], quantities: Sequence[Quantity] = ()
) -> Evidence:
    """Return evidence with the verdict of the criteria; `figure` is the data of the claim's figure.

    `quantities` are reported beside the criteria and not judged. Draws of a null hypothesis have no figure.
    """
    data = {} if subject.statements else encoded(figure, FIGURE_DIGITS)
    seed = next((int(trial.trained_seeds[0]) for trial in subject.trials.values()), 0)
    return judged(criteria, [domain(subject)], seed=seed, figure=data, quantities=tuple(quantities))
