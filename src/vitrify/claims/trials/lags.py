"""Interleaved chains: the distance from the Bayes predictor, and rival explanations of what one and three layers learn.

Trials are named after their layers and matrix: "3, matrix 1".
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import Trial, measured, recalled
from vitrify.learn.measure import divergence, log_probabilities
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Example, examples
from vitrify.sandboxes.interleaved import Interleaved


def divergence_late(sandbox: Interleaved, row: Example, logp: Array) -> Array:
    """Return the mean KL from the Bayes predictor to log-probabilities [sequence, query, symbol], in second halves."""
    each = divergence(jax.vmap(sandbox.optimal)(row), logp)
    return each[:, each.shape[1] // 2 :].mean()


def late(sandbox: Interleaved, net: Transformer, arrays: object, row: Example, seen: Mapping[str, Array]) -> Array:
    del arrays
    return divergence_late(sandbox, row, log_probabilities(seen["hook_logits"][:, net.pads - 1 :]))


def measure(subject: Subject) -> Measured:
    """Return all curves, and for each matrix the KL of the average over lags and of symbol frequencies."""
    return {**measured(subject), **{f"{name}/known": _known(trial) for name, trial in subject.trials.items()}}


def _known(trial: Trial) -> Array:
    row = examples(trial.sandbox, 0, "probe", 0, trial.recipe.test_examples)
    predictors = trial.sandbox.mean, trial.sandbox.unigram
    return np.array([divergence_late(trial.sandbox, row, jax.vmap(predictor)(row)) for predictor in predictors])


def half_selected(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which three layers have half the KL of one layer, of another seed."""
    null = dict(measured)
    for matrix in subject.data["matrices"]:
        deep, shallow = null[f"3, matrix {matrix}/late"].copy(), null[f"1, matrix {matrix}/late"]
        deep[:, -1] = rng.choice(shallow[:, -1], size=len(deep)) / 2
        null[f"3, matrix {matrix}/late"] = deep
    return null


def half_as_fast(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which one layer goes through the first half of what three layers do, at its own pace."""
    null, nets = dict(measured), recalled(subject, measured)
    for matrix in subject.data["matrices"]:
        deep, shallow = nets[f"3, matrix {matrix}"], nets[f"1, matrix {matrix}"]
        at = np.array(shallow.steps) / shallow.steps[-1] * deep.steps[-1] / 2
        drawn = rng.choice(deep.curves("late"), size=len(shallow.curves("late")))
        null[f"1, matrix {matrix}/late"] = np.array([np.interp(at, deep.steps, each) for each in drawn])
    return null


def averaging(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which one layer has the KL of the average over lags, plus what differs between seeds."""
    null = dict(measured)
    for matrix in subject.data["matrices"]:
        curves, level = null[f"1, matrix {matrix}/late"].copy(), null[f"1, matrix {matrix}/known"][0]
        curves[:, -1] = level + rng.choice(curves[:, -1] - curves[:, -1].mean(), size=len(curves))
        null[f"1, matrix {matrix}/late"] = curves
    return null


NULLS = {"three": half_selected, "one": half_as_fast, "average": averaging}
