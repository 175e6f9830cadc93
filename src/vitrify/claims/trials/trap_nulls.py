"""Null hypotheses of the claim about tied weights that ignore a chain: rival formulas, criteria, basins and rates."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import traps
from vitrify.claims.trials.traps import DRAWN, MIN_SAVED, SHALLOW, TIMED_FROM


def other_formula(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return errors of a Hessian by another formula, beside those of rounding, drawn anew."""
    del subject
    return {**measured, "Hessian": rng.choice(measured["Hessian of rivals"]) + rng.permuted(measured["Hessian"])}


def other_criterion(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return what small starts save where another criterion decides, with savings drawn anew."""
    del subject
    stays, names = rng.choice(measured["rivals"]), ("no MLP/saved", "MLP/saved")
    return {**measured, **{name: _left(measured[name], ~stays, rng) for name in names}}


def other_basins(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return what large starts save where only shallow traps are left: with MLP, or without."""
    del subject
    mlp, none = "MLP, large start/saved", "no MLP, large start/saved"
    if rng.random() < 0.5:
        return {**measured, mlp: np.where(measured["λ"] < SHALLOW, 0.0, measured[mlp])}
    return {**measured, none: _left(measured[none], measured["λ"] > SHALLOW, rng)}


def trapped_untied(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return what untied nets save if they stay in traps that are not shallow, with savings drawn anew."""
    del subject
    return {**measured, "untied/saved": _left(measured["untied/saved"], measured["λ"] > SHALLOW, rng)}


def _left(saved: Array, leaves: Array, rng: np.random.Generator) -> Array:
    """Return savings, drawn from those of nets that have left, of the kernels that are left; others have none."""
    return np.where(leaves, rng.choice(saved[saved > MIN_SAVED], size=saved.shape), 0.0)


def square_root(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return times that go as λ to the power -1/2, with the deviations from 1/λ of other kernels."""
    del subject
    timed, lambdas = measured["λ"] > TIMED_FROM, measured["λ"]
    others, changed = rng.permutation(int(timed.sum())), dict(measured)
    for name in (f"{each}/time" for each in traps.TIMED):
        changed[name] = measured[name].copy()
        changed[name][timed] = (measured[name] * lambdas)[timed][others] / np.sqrt(lambdas[timed] * TIMED_FROM)
    return changed


def independent_signs(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return counts of traps where every eigenvalue is negative with probability 1/2."""
    numbers = subject.data["numbers"]
    counts = [rng.binomial(DRAWN // len(numbers), 2.0 ** (1 - states), len(numbers)) for states in traps.COUNTED]
    return {**measured, "counts": np.array(counts)}
