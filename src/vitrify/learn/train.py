"""Train: members of a sandbox and a model, from the plan to curves and weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import Group, plan, run_id
from vitrify.learn.program import First, Member, Probe, Program
from vitrify.learn.recipe import Recipe
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Sandbox
from vitrify.sandboxes.catalogue import make as make_sandbox

PAUSE = 1.0  # seconds of training after which progress is shown


@dataclass(frozen=True, eq=False)
class Run:
    """One member's result: what determined it, its curve, and its weights.

    The last point of the curve has `broken`, the step whose loss was not a number, or `stopped`, the one at which the
    member was near enough to the optimum, if it did not go on to the end.
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
) -> list[Run]:
    """Train `members` seeds of every combination of the axes; members that share shapes are one compiled program."""
    family = make_model(model) if isinstance(model, str) else model
    source = make_sandbox(sandbox) if isinstance(sandbox, str) else sandbox
    found: list[Run] = []
    for group in plan(source, family, recipe or Recipe(), axes or {}, members):
        program = Program(group, probes or {}, first)
        ended = Journey(program)
        for progress in ended.go():
            if watch:
                watch(progress)
        found += ended.runs()
    return found


@dataclass(eq=False)
class Journey:
    """The way of one group from its first step to its last; it can be left and resumed between any two steps."""

    program: Program
    step: int = 0
    lanes: list[Member] = field(default_factory=list)
    curves: list[list[dict[str, float]]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many members there are."""
        return len(self.program.group.members)

    def go(self, pause: float = PAUSE) -> Iterator[Progress]:
        """Train to the end, with a pause after every measurement and about every second between."""
        recipe = self.program.group.recipe
        if not self.lanes:
            self.lanes = self.program.begin()
            self.curves = [[] for _ in range(self.count)]
        trained, spent, piece = 0, 0.0, 1
        measured: dict[str, Any] = {}
        for mark in recipe.marked():
            if mark < self.step or any(curve and curve[-1]["step"] >= mark for curve in self.curves):
                continue  # before the step at which the journey was resumed
            while self.step < mark:
                now, began = min(piece, mark - self.step), time.perf_counter()
                self.lanes = self.program.advance(self.lanes, self.step, now)
                seconds = time.perf_counter() - began
                self.step, trained, spent = self.step + now, trained + now, spent + seconds
                piece = max(1, min(2 * piece, round(pause * now / max(seconds, 1e-6))))
                if self.step < mark:
                    yield self._progress(measured, trained / spent)
            measured = self._measure()
            yield self._progress(measured, trained / spent if spent else 0.0)
            if not self.program.joined([lane.alive for lane in self.lanes]).any():
                return

    def _progress(self, measured: Mapping[str, Any], rate: float) -> Progress:
        group = self.program.group
        left = (group.recipe.steps - self.step) / rate if rate else float("nan")
        return Progress(group, self.step, measured, rate * self.count, left, self.program.compiled[3])

    def _measure(self) -> dict[str, Any]:
        """Measure every member that is still trained (a broken one for the last time), and stop those near enough."""
        measured = self.program.measure(self.lanes)
        alive, broken, losses = (
            self.program.joined([getattr(lane, name) for lane in self.lanes]) for name in ("alive", "broken", "loss")
        )
        stop = self.program.group.recipe.stop
        near = alive & (measured["excess"] <= stop) if stop is not None else np.zeros_like(alive)
        for member, curve in enumerate(self.curves):
            since = self.step - int(curve[-1]["step"]) if curve else self.step
            ended = bool(curve) and ("broken" in curve[-1] or "stopped" in curve[-1])
            if ended:
                continue
            point = {"step": self.step} | {name: value[member].tolist() for name, value in measured.items()}
            point |= {"train": float(losses[member]) / since} if since else {}
            point |= {"broken": int(broken[member])} if broken[member] >= 0 else {}
            curve.append(point | ({"stopped": self.step} if near[member] else {}))
        restart = {"alive": alive & ~near, "loss": np.zeros_like(losses)}
        fresh = self.program.apart(restart)
        self.lanes = [lane._replace(**new) for lane, new in zip(self.lanes, fresh, strict=True)]
        return measured

    def runs(self) -> list[Run]:
        """What became of every member."""
        family, net = self.program.group.family, self.program.net
        whole = self.program.joined([lane.parameters for lane in self.lanes])
        return [
            Run(
                identity,
                curve,
                family.weights(net, {name: array[member] for name, array in whole.items()}, {"trained": identity}),
            )
            for member, (identity, curve) in enumerate(zip(self.program.group.identities(), self.curves, strict=True))
        ]
