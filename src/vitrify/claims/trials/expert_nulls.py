"""Null hypotheses about routers: measurements of `experts.measure` in which a rival explanation is true."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.experts import BUILT, CHOICE, LOSSES, ROUTER, Routing, Size, key, routing
from vitrify.learn.routing import agreement


def _redrawn(measured: Measured, rng: np.random.Generator) -> dict[str, Array]:
    """Return the measurements of seeds that are drawn with replacement, those of built nets as they are."""
    count = next(len(array) for name, array in measured.items() if f" {BUILT}/" not in name)
    seeds = rng.integers(count, size=count)
    return {name: array if f" {BUILT}/" in name else array[seeds] for name, array in measured.items()}


def _rival(drawn: Measured, size: Size, measure: Callable[[Routing], Array]) -> str:
    """Return the loss other than the router loss that is best by a measure."""
    losses = [loss for loss in (*LOSSES, CHOICE) if loss != ROUTER]
    return max(losses, key=lambda loss: float(measure(routing(drawn, size, loss)).mean()))


def merged(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which with the router loss two tasks of each seed have the same expert."""
    drawn = _redrawn(measured, rng)
    for size in subject.data["sizes"]:
        name = f"{key(size, ROUTER)}/counts"
        seeds = np.arange(len(drawn[name]))
        one, two = rng.permuted(np.tile(np.arange(size[0]), (len(seeds), 1)), axis=1)[:, :2].T
        drawn[name][seeds, two] = drawn[name][seeds, one]
    return drawn


def as_often_as_not(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the best other loss separates tasks in half of the seeds as the router loss does."""
    drawn = _redrawn(measured, rng)
    for size in subject.data["sizes"]:
        rival = key(size, _rival(drawn, size, lambda each: agreement(each.counts)))
        counts, own = drawn[f"{rival}/counts"], drawn[f"{key(size, ROUTER)}/counts"]
        drawn[f"{rival}/counts"] = np.where(rng.random((len(own), 1, 1)) < 1 / 2, own, counts)
    return drawn


def halved(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which, with the router loss, half of each task is lost without the expert of another."""
    drawn = _redrawn(measured, rng)
    for size in subject.data["sizes"]:
        name = f"{key(size, ROUTER)}/lost"
        drawn[name] = (drawn[name] + np.roll(drawn[name], int(rng.integers(1, size[0])), axis=-1)) / 2
    return drawn


def as_well(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which a coin exchanges the held-out accuracy of the router loss and the best other."""
    drawn = _redrawn(measured, rng)
    for size in subject.data["sizes"]:
        names = [f"{key(size, loss)}/held" for loss in (ROUTER, _rival(drawn, size, lambda each: each.held))]
        one, two = (drawn[name] for name in names)
        coin = rng.random(len(one)) < 1 / 2
        drawn |= dict(zip(names, (np.where(coin, two, one), np.where(coin, one, two)), strict=True))
    return drawn
