"""A piece of a group on its way: one side trains and tells, the other side writes down what it is told.

The same two functions serve a sweep in this process and one whose pieces are trained by workers elsewhere, so what a
store holds in the end does not depend on who trained it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from vitrify.learn.groups import Checkpoint
from vitrify.learn.groups import Group as Held
from vitrify.learn.plan import Group
from vitrify.learn.program import Program
from vitrify.learn.train import Journey, Progress

EVERY = 20.0  # seconds between checkpoints


@dataclass(frozen=True, eq=False)
class Shard:
    """What a worker is given: members of one shape, and how far they had got; `threads` of them step at a time."""

    group: Group
    latest: Checkpoint | None = None
    lines: Sequence[Mapping[str, Any]] = ()
    every: float = EVERY
    threads: int = 1

    def train(self) -> Iterator[News]:
        """Train to the end, and tell."""
        yield from told(Program(self.group, threads=self.threads), self.latest, self.lines, self.every)


@dataclass(frozen=True, eq=False)
class News:
    """What is told of members that are being trained: a measurement, a checkpoint, or what became of them, by rows."""

    step: int
    rate: float = 0.0  # member-steps per second
    left: float = float("nan")  # seconds
    compiled: float = 0.0  # seconds that compiling took
    measured: Mapping[str, Any] = field(default_factory=dict)  # the last measurement
    point: Mapping[str, Any] | None = None  # the same, if it has not been told yet
    checkpoint: Mapping[str, Any] | None = None
    done: Mapping[int, tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=dict)  # last words and weights
    broken: Mapping[int, tuple[str, int]] = field(default_factory=dict)  # why, and at which step
    worked: float | None = None  # seconds from the first to the last, told at the end

    def progress(self, group: Group) -> Progress:
        """The same for those who only watch."""
        return Progress(group, self.step, self.measured, self.rate, self.left, self.compiled)


def told(
    program: Program, latest: Checkpoint | None, lines: Sequence[Mapping[str, Any]], every: float
) -> Iterator[News]:
    """Train the members of a program to the end, from a checkpoint if there is one, and tell all that is to be kept."""
    began = saved = time.monotonic()
    journey = resumed(program, latest, lines)
    logged, last = len(journey.points), News(journey.step)
    for progress in journey.go():
        point = journey.points[-1] if len(journey.points) > logged else None
        logged, due = len(journey.points), time.monotonic() - saved > every
        state = checkpoint(journey) if due else None
        saved = time.monotonic() if due else saved
        speed = (progress.rate, progress.left, progress.compiled)
        last = News(journey.step, *speed, progress.measured, point, state)
        yield last
    done, broken = {}, {}
    for row, run in enumerate(journey.runs()):
        if run.last["broken"] >= 0:
            step = int(run.last["broken"])
            broken[row] = (f"the loss was not a number at step {step} (seed {run.identity['seed']})", step)
        else:
            done[row] = (dict(run.last), {name: np.asarray(array) for name, array in run.weights.arrays.items()})
    speed = (last.rate, 0.0, program.compiled[3])
    yield News(journey.step, *speed, last.measured, None, None, done, broken, time.monotonic() - began)


def write_down(held: Held, news: News) -> None:
    """Keep what was told of the runs that a store has given out."""
    if news.point is not None:
        held.log(news.point)
    held.breathe()
    if news.checkpoint is not None:
        held.save(news.step, news.checkpoint, {})
    for row, (message, step) in news.broken.items():
        held.fail(row, message, step)
    if news.done:
        held.finish_all(news.done)


def checkpoint(journey: Journey) -> dict[str, Any]:
    """All that a step changes, as named arrays with members along the first axis."""
    whole = journey.program.joined(journey.lanes)
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(whole)}


def resumed(program: Program, latest: Checkpoint | None, lines: Sequence[Mapping[str, Any]]) -> Journey:
    """A journey from its beginning, or from a checkpoint and the measurements before it."""
    if latest is None:
        return Journey(program)
    return Journey(program, latest.step, lanes_of(program, latest.arrays), points_of(lines))


def lanes_of(program: Program, arrays: Mapping[str, Any]) -> list[Any]:
    """The members of a program as a checkpoint names them."""
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(program.shapes)]
    whole = jax.tree.unflatten(jax.tree.structure(program.shapes), [arrays[name] for name in names])
    return program.apart(whole)


def points_of(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Measurements as a journey holds them."""
    return [{name: value if name == "step" else np.asarray(value) for name, value in p.items()} for p in lines]
