"""The trainer: it steps the members of one compiled program and yields events; others show or save them.

A trainer can be left between any two events and resumed from the last checkpoint that it yielded. It writes nothing,
so the same class trains in this process and on a worker elsewhere, and what a store holds in the end does not depend
on who trained (`train.py`, `spread.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from vitrify.arrays import Array, Arrays
from vitrify.encoding import JsonObject
from vitrify.learn.cost import Work, work
from vitrify.learn.groups import Checkpoint, net_record
from vitrify.learn.program import Member, TrainingProgram
from vitrify.learn.runs import Net, Run
from vitrify.net.weights import Weights

EVENT_SECONDS = 1.0  # of training between two events, about
CHECKPOINT_SECONDS = 20.0  # between two checkpoints
FIRST_SECONDS = 2.0  # until the first checkpoint
SCALARS = ("alive", "broken", "loss")  # of a member, beside its parameters, their average and its optimizer


@dataclass(frozen=True, eq=False)
class TrainEvent:
    """A report on members in training: how far they are and, where it has one, a new point, a checkpoint, the runs."""

    step: int
    steps: int  # of the recipe
    members: int
    rate: float = 0.0  # member-steps per second of the time in steps
    work: Work | None = None  # of a member-step
    stepping: float = math.nan  # share of the time after compiling that was spent in steps
    seconds_left: float = math.nan
    compile_seconds: float = 0.0
    measured: Arrays = field(default_factory=dict)  # the last measurement, with a value for each member
    point: Arrays | None = None  # the same, in the first event after it
    checkpoint: Arrays | None = None  # arrays [member, …]
    weights: Arrays | None = None  # of the members' nets [member, …], where the recipe keeps them
    net: JsonObject | None = None  # what these are: `net_record`
    runs: tuple[Run, ...] = ()  # of all members, in the last event
    seconds: float = 0.0  # since this trainer began
    seconds_before: float = 0.0  # of earlier processes, up to the checkpoint


Callback = Callable[[TrainEvent], None]


@dataclass(eq=False)
class Trainer:
    """Training of one group of members, from its first step or a checkpoint to its last.

    `points` are the measurements so far: a step, and a value for each member under every name.
    """

    program: TrainingProgram
    step: int = 0
    lanes: list[Member] = field(default_factory=list)
    points: list[dict[str, Array]] = field(default_factory=list)
    seconds_before: float = 0.0  # of training in earlier processes
    _spent: float = field(default=0.0, init=False)  # seconds in steps, of this process

    @classmethod
    def resume(cls, program: TrainingProgram, latest: Checkpoint | None, lines: Sequence[Arrays]) -> Trainer:
        """Return a trainer at a checkpoint, with the measurements before it; at the beginning if there is none."""
        if latest is None:
            return cls(program)
        names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(program.shapes)]
        leaves = [latest.arrays[name] for name in names]
        lanes = program.apart(jax.tree.unflatten(jax.tree.structure(program.shapes), leaves))
        points = [{name: value if name == "step" else np.asarray(value) for name, value in p.items()} for p in lines]
        return cls(program, latest.step, lanes, points, latest.meta.get("seconds", 0.0))

    def checkpoint(self) -> dict[str, Array]:
        """Return all that a step changes, as named arrays with members along the first axis."""
        state = self.program.joined(self.lanes)
        return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(state)}

    def events(self, checkpoint_seconds: float = math.inf) -> Iterator[TrainEvent]:
        """Train to the end; yield an event after every measurement and about every second, the runs in the last."""
        began = saved = time.monotonic()
        pause = min(checkpoint_seconds, FIRST_SECONDS) if math.isfinite(checkpoint_seconds) else math.inf
        reported, rate, steps = len(self.points), 0.0, self.program.group.recipe.checkpoint_steps()
        for rate in self._steps():
            now = time.monotonic()
            after_compiling = now - began - self.program.compile_seconds
            due, fresh = now - saved > pause, len(self.points) > reported
            saved, reported = now if due else saved, len(self.points)
            pause = checkpoint_seconds if due else pause
            left = (self.program.group.recipe.steps - self.step) / rate if rate else math.nan
            nets = self._nets() if fresh and self.step in steps else []
            yield self._event(
                rate=rate,
                stepping=min(1.0, self._spent / after_compiling) if after_compiling > 0 else math.nan,
                seconds_left=left,
                point=self.points[-1] if fresh else None,
                checkpoint=self.checkpoint() if due else None,
                weights=_stacked(nets) if nets else None,
                net=net_record(nets[0]) if nets else None,
                seconds=now - began,
            )
        runs = tuple(self.runs())
        yield self._event(rate=rate, seconds_left=0.0, runs=runs, seconds=time.monotonic() - began)

    @cached_property
    def _work(self) -> Work:
        return work(self.program)

    def _event(self, rate: float, **values: Any) -> TrainEvent:
        group = self.program.group
        members, measured = len(group.members), self.points[-1] if self.points else {}
        return TrainEvent(
            self.step,
            group.recipe.steps,
            members,
            rate=rate * members,
            work=self._work if rate else None,
            compile_seconds=self.program.compile_seconds,
            measured=measured,
            seconds_before=self.seconds_before,
            **values,
        )

    def _steps(self) -> Iterator[float]:
        """Step and measure; yield the steps per second so far after every measurement and about every second."""
        self.lanes = self.lanes or self.program.begin()
        if self.points and not self.program.joined([lane.alive for lane in self.lanes]).any():
            return  # all had ended at the checkpoint
        trained, piece = 0, 1
        for mark in self.program.group.recipe.eval_steps():
            if self.points and self.points[-1]["step"] >= mark:
                continue  # measured before the checkpoint
            while self.step < mark:
                now, began = min(piece, mark - self.step), time.perf_counter()
                self.lanes = self.program.advance(self.lanes, self.step, now)
                seconds = time.perf_counter() - began
                self.step, trained, self._spent = self.step + now, trained + now, self._spent + seconds
                piece = max(1, min(2 * piece, round(EVENT_SECONDS * now / max(seconds, 1e-6))))
                if self.step < mark:
                    yield trained / self._spent
            any_alive = self._measure()
            yield trained / self._spent if self._spent else 0.0
            if not any_alive:
                return

    def _measure(self) -> bool:
        """Measure every member, stop those that the recipe says are done, and return whether any continues."""
        measured = self.program.measure(self.lanes)
        joined = self.program.joined
        alive, broken, losses = (joined([getattr(lane, name) for lane in self.lanes]) for name in SCALARS)
        start: dict[str, Array] = {"step": 0, "stopped": np.full(len(alive), -1)}
        before = self.points[-1] if self.points else start
        recipe, trained = self.program.group.recipe, self.step - before["step"]
        train = losses / max(trained, 1)
        near = measured["excess"] <= recipe.stop if recipe.stop is not None else np.zeros_like(alive)
        if recipe.stop_training is not None and trained:
            near = near | (train <= recipe.stop_training)
        near &= alive
        point = {"step": self.step, **measured, "train": train}
        point |= {"broken": broken, "stopped": np.where(near, self.step, np.asarray(before["stopped"]))}
        self.points.append(point)
        fresh = self.program.apart({"alive": alive & ~near, "loss": np.zeros_like(losses)})
        self.lanes = [lane._replace(**new) for lane, new in zip(self.lanes, fresh, strict=True)]
        return bool((alive & ~near).any())

    def curve(self, member: int) -> list[dict[str, float]]:
        """Return the measurements of one member, up to the one at which it had ended."""
        curve: list[dict[str, float]] = []
        for point in self.points:
            own = {name: value if name == "step" else value[member] for name, value in point.items()}
            curve.append({name: np.asarray(value).tolist() for name, value in own.items()})
            if own["broken"] >= 0 or own["stopped"] >= 0:
                break
        return curve

    def runs(self) -> list[Run]:
        """Return the run of every member, as far as it is."""
        return [
            Run(weights.about["trained"], self.curve(member), weights) for member, weights in enumerate(self._nets())
        ]

    def _nets(self) -> list[Weights[Net]]:
        """Return the network of every member."""
        group, net = self.program.group, self.program.net
        parameters = self.program.joined([lane.measured for lane in self.lanes])
        nets = []
        for member, identity in enumerate(self.program.identities):
            arrays = {name: array[member] for name, array in parameters.items()}
            family = replace(group.family, **{name: group.members[member][name] for name in group.family.TRACED})
            nets.append(family.weights(net, arrays, {"trained": identity}))
        return nets


def _stacked(nets: Sequence[Weights[Net]]) -> dict[str, Array]:
    """Return the arrays of the members' networks, members along the first axis."""
    return {name: np.stack([np.asarray(net.arrays[name]) for net in nets]) for name in nets[0].arrays}
