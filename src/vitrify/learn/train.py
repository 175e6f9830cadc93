"""Train: members of a sandbox and a model, from the plan to curves and weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import Group, plan
from vitrify.learn.program import First, Member, Probe, Program
from vitrify.learn.recipe import Recipe
from vitrify.learn.store import run_id
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Sandbox
from vitrify.sandboxes.catalogue import make as make_sandbox

PAUSE = 1.0  # seconds of training after which progress is shown
KEPT = ("alive", "broken", "loss")  # of a member, beside its parameters and its optimiser


@dataclass(frozen=True, eq=False)
class Run:
    """One member's result: what determined it, its curve, and its weights.

    The last point of the curve tells whether it went on to the end: `broken` is the step whose loss was not a number,
    `stopped` the one at which it was near enough to the optimum, and both are -1 otherwise.
    """

    identity: Mapping[str, Any]
    curve: Sequence[Mapping[str, float]]
    weights: Weights[Any]

    @property
    def id(self) -> str:
        """The run's name in a store: a digest of what determined it."""
        return run_id(self.identity)

    @property
    def last(self) -> Mapping[str, float]:
        """The last measurement."""
        return self.curve[-1]


@dataclass(frozen=True)
class Progress:
    """How far a group is: the step, the last measurement of every member, and how fast it goes."""

    group: Group
    step: int
    measured: Mapping[str, Any]
    rate: float  # member-steps per second
    left: float  # seconds, by the rate so far
    compiled: float  # seconds that compiling took


Watch = Callable[[Progress], None]


def train(
    model: Family | str,
    sandbox: Sandbox | str,
    *,
    members: int = 1,
    axes: Mapping[str, Sequence[Any]] | None = None,
    recipe: Recipe | None = None,
    probes: Mapping[str, Probe] | None = None,
    first: First | None = None,
    watch: Watch | None = None,
    devices: int = 1,
) -> list[Run]:
    """Train `members` seeds of every combination of the axes; members that share shapes are one compiled program.

    Several `devices` share every batch, for models that keep one busy; the numbers are then those of one device but for
    the order of their sums.
    """
    family = make_model(model) if isinstance(model, str) else model
    source = make_sandbox(sandbox) if isinstance(sandbox, str) else sandbox
    found: list[Run] = []
    for group in plan(source, family, recipe or Recipe(), axes or {}, members):
        program = Program(group, probes or {}, first, devices=devices)
        ended = set_out.get()(program)
        for progress in ended.go():
            if watch:
                watch(progress)
        found += ended.runs()
    return found


@dataclass(eq=False)
class Journey:
    """The way of one group from its first step to its last; it can be left and resumed between any two steps.

    `points` are the measurements so far: a step, and a value for each member under every name. `broken` and `stopped`
    are steps, or -1 for members that go on.
    """

    program: Program
    step: int = 0
    lanes: list[Member] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many members there are."""
        return len(self.program.group.members)

    def go(self, pause: float = PAUSE) -> Iterator[Progress]:
        """Train to the end, with a pause after every measurement and about every second between."""
        recipe = self.program.group.recipe
        self.lanes = self.lanes or self.program.begin()
        if self.points and not self.program.joined([lane.alive for lane in self.lanes]).any():
            return  # all had ended before the journey was resumed
        trained, spent, piece = 0, 0.0, 1
        for mark in recipe.marked():
            if self.points and self.points[-1]["step"] >= mark:
                continue  # measured before the journey was resumed
            while self.step < mark:
                now, began = min(piece, mark - self.step), time.perf_counter()
                self.lanes = self.program.advance(self.lanes, self.step, now)
                seconds = time.perf_counter() - began
                self.step, trained, spent = self.step + now, trained + now, spent + seconds
                piece = max(1, min(2 * piece, round(pause * now / max(seconds, 1e-6))))
                if self.step < mark:
                    yield self._progress(trained / spent)
            going = self._measure()
            yield self._progress(trained / spent if spent else 0.0)
            if not going:
                return

    def _progress(self, rate: float) -> Progress:
        group = self.program.group
        left = (group.recipe.steps - self.step) / rate if rate else float("nan")
        last = self.points[-1] if self.points else {}
        return Progress(group, self.step, last, rate * self.count, left, self.program.compiled[3])

    def _measure(self) -> bool:
        """Measure every member, stop those near enough to the optimum, and tell whether any goes on."""
        measured = self.program.measure(self.lanes)
        joined = self.program.joined
        alive, broken, losses = (joined([getattr(lane, name) for lane in self.lanes]) for name in KEPT)
        before: dict[str, Any] = {"step": 0, "stopped": np.full(self.count, -1)}
        before = self.points[-1] if self.points else before
        stop = self.program.group.recipe.stop
        near = alive & (measured["excess"] <= stop) if stop is not None else np.zeros_like(alive)
        point = {"step": self.step, **measured, "train": losses / max(self.step - before["step"], 1)}
        point |= {"broken": broken, "stopped": np.where(near, self.step, np.asarray(before["stopped"]))}
        self.points.append(point)
        fresh = self.program.apart({"alive": alive & ~near, "loss": np.zeros_like(losses)})
        self.lanes = [lane._replace(**new) for lane, new in zip(self.lanes, fresh, strict=True)]
        return bool((alive & ~near).any())

    def curve(self, member: int) -> list[dict[str, float]]:
        """The measurements of one member, up to the one at which it had ended."""
        found: list[dict[str, float]] = []
        for point in self.points:
            own = {name: value if name == "step" else value[member] for name, value in point.items()}
            found.append({name: np.asarray(value).tolist() for name, value in own.items()})
            if own["broken"] >= 0 or own["stopped"] >= 0:
                break
        return found

    def runs(self) -> list[Run]:
        """What became of every member."""
        group, net = self.program.group, self.program.net
        whole = self.program.joined([lane.parameters for lane in self.lanes])
        found = []
        for member, identity in enumerate(group.identities()):
            own = {name: array[member] for name, array in whole.items()}
            family = replace(group.family, **{name: group.members[member][name] for name in group.family.TRACED})
            found.append(Run(identity, self.curve(member), family.weights(net, own, {"trained": identity})))
        return found


set_out: ContextVar[Callable[[Program], Journey]] = ContextVar("set_out", default=Journey)  # how `train` begins
