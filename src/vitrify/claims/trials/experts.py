"""Mixtures of experts on queries of several tasks: trials by loss, and which expert serves which task.

Measurements of a cell, which is a size with a loss, are the arrays "CELL/counts" and, at the judged sizes, "CELL/lost",
"CELL/trained" and "CELL/held", as the fields of a `Routing`. The loss `BUILT` stands for the network built by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import jax
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import Trial, trained
from vitrify.constructions.knowledge import knowledge
from vitrify.kit import assemble
from vitrify.learn.models.built import BuiltFamily
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.experts import ExpertsFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.routing import agreement, information, load, purity, survey
from vitrify.net.architecture import Architecture
from vitrify.net.sparse import dense
from vitrify.sandboxes.knowledge import KnowledgeSandbox

AXES = "task_fraction,active_experts,balance_loss,z_loss,task_loss,shift_rate"
LOSSES: dict[str, tuple[float, ...]] = {  # values of the last four axes
    "cross-entropy": (0, 0, 0, 0),
    "balance 0.01": (0.01, 0, 0, 0),
    "balance 0.1": (0.1, 0, 0, 0),
    "balance 1": (1, 0, 0, 0),
    "z 0.001": (0, 1e-3, 0, 0),
    "shifts 0.01": (0, 0, 0, 0.01),
    "router": (0, 0, 1, 0),
}
ROUTER, CHOICE, BUILT = "router", "expert choice", "built"
COMPARED = ("cross-entropy", "balance 0.1", ROUTER)  # losses that are trained on the whole grid

Size: TypeAlias = tuple[int, int]  # tasks, experts
Cell: TypeAlias = tuple[Size, str]  # with a loss


@dataclass(frozen=True, eq=False)
class Routing:
    """Use of experts by task, and accuracies, of members of one size and loss."""

    counts: Array  # [seed, task, expert]
    trained: Array  # [seed]: accuracy on the queries in training
    held: Array  # [seed]: accuracy on held-out queries
    lost: Array  # [seed, expert, task]: accuracy lost without that expert

    def isolation(self) -> tuple[Array, Array]:
        """Return the mean accuracy lost [seed] without the task's main expert, and without the worst other one."""
        main = self.counts.argmax(axis=-1)[:, None]  # [seed, 1, task]
        others = np.where(np.arange(self.lost.shape[1])[:, None] == main, -np.inf, self.lost)
        own = np.take_along_axis(self.lost, main, axis=1)[:, 0]
        return own.mean(axis=-1), others.max(axis=1).mean(axis=-1)

    def apart(self) -> Array:
        """Return the share of tasks [seed] whose main expert is that of no other task."""
        main = self.counts.argmax(axis=-1)
        return ((main[:, :, None] == main[:, None]).sum(axis=-1) == 1).mean(axis=-1)

    def numbers(self) -> dict[str, Array]:
        """Return every scalar measure [seed], by name."""
        main, others = self.isolation()
        measures = {"information": information, "agreement": agreement, "purity": purity, "load": load}
        answered = {"trained": self.trained, "held": self.held, "own": main, "others": others, "apart": self.apart()}
        return {name: measure(self.counts) for name, measure in measures.items()} | answered


def subject(
    sandbox: KnowledgeSandbox,
    family: ExpertsFamily,
    recipe: Recipe,
    sizes: list[Size],
    grid: list[Size],
    seeds: Sequence[int],
) -> Subject:
    """Return the subject for the largest sandbox and family, with the judged sizes and those of the grid.

    All losses are trained at the judged sizes, those in `COMPARED` on the full grid. With expert choice, each size is a
    trial of its own.
    """
    every = [(size, loss) for size in grid for loss in LOSSES if size in sizes or loss in COMPARED]
    others, router = ([cell for cell in every if (cell[1] == ROUTER) == own] for own in (False, True))
    cells = {"others": others, ROUTER: router, **{f"{CHOICE} {size}": [(size, CHOICE)] for size in sizes}}
    trials = {}
    for name, own in cells.items():
        box, net, points = sandbox, family, []
        for (tasks, experts), loss in own:
            if loss == CHOICE:
                box, net = replace(sandbox, tasks=tasks), replace(family, experts=experts, by="expert")
            points.append((tasks / box.tasks, experts / net.experts, *LOSSES.get(loss, (0, 0, 0, 0))))
        trials[name] = Trial(box, net, recipe, seeds, axes={AXES: points})
    data = {"templates": sandbox.templates, "keys": sandbox.keys, "d_model": family.d_model, "units": family.units}
    return Subject("tasks", data={**data, "sizes": sizes, "grid": grid, "cells": cells}, trials=trials)


def measure(subject: Subject) -> Measured:
    """Return the routing of every cell over all queries and, with those of the router loss, that of built nets."""
    arrays: dict[str, Array] = {}
    sizes = subject.data["sizes"]
    for name, nets in trained(subject).items():
        sandbox, net = nets.trial.sandbox, nets.runs[0].weights.architecture
        seen = _surveyed(nets.trial.family, sandbox, net, nets.arrays)
        each = seen.reshape(*nets.trial.shape, *seen.shape[1:])  # [cell, seed, …]
        for cell, own in zip(subject.data["cells"][name], each, strict=True):
            arrays |= _named(cell, _routing(sandbox, own, cell[0]), cell[0] in sizes)
        for size in sizes if name == ROUTER else ():
            arrays |= _named((size, BUILT), _built(replace(sandbox, tasks=size[0])), True)
    return arrays


def _named(cell: Cell, routing: Routing, judged: bool) -> dict[str, Array]:
    """Return the measurements of a cell: all at a judged size, else counts alone."""
    names = [field.name for field in fields(Routing)] if judged else ["counts"]
    return {f"{key(*cell)}/{name}": getattr(routing, name) for name in names}


def key(size: Size, loss: str) -> str:
    """Return the name of a cell."""
    return f"{size[0]}x{size[1]} {loss}"


def routing(measured: Measured, size: Size, loss: str) -> Routing:
    """Return the routing of a cell of a judged size."""
    return Routing(*(measured[f"{key(size, loss)}/{field.name}"] for field in fields(Routing)))


def _built(sandbox: KnowledgeSandbox) -> Routing:
    """Return the routing of the net built for these tasks, as the only member."""
    weights = assemble(knowledge(sandbox.known), arithmetic="float32")
    arrays = {name: np.asarray(dense(array), np.float32)[None] for name, array in weights.arrays.items()}
    seen = _surveyed(BuiltFamily(start=weights), sandbox, weights.architecture, arrays)
    return _routing(sandbox, seen, (sandbox.tasks, sandbox.tasks))


def _surveyed(family: Family, sandbox: KnowledgeSandbox, net: Architecture, arrays: Mapping[str, Array]) -> Array:
    """Return the surveys [member, query, 2 expert + 1] of all members, one after the other; see `survey`."""
    queries = jax.tree.map(np.asarray, sandbox.every()[0])
    probe = survey(family, sandbox, queries)
    return np.asarray(jax.jit(lambda members: jax.lax.map(lambda one: probe(net, one, queries, {}), members))(arrays))


def _routing(sandbox: KnowledgeSandbox, seen: Array, size: Size) -> Routing:
    """Return the routing of the first tasks and experts, from surveys [seed, query, 2 expert + 1]; see `survey`."""
    queries, drawn = sandbox.every()
    task = np.asarray(queries.latent["task"])
    experts = (seen.shape[-1] - 1) // 2
    each = np.eye(sandbox.tasks)[task][:, : size[0]]  # [query, task]
    right = seen[..., experts]
    mean = each / each.sum(axis=0)
    counts = np.einsum("sqe,qt->ste", seen[..., : size[1]], each)
    missed = right[..., None] - seen[..., experts + 1 :][..., : size[1]]
    used = task < size[0]
    held, trained = (right[:, used & part].mean(axis=1) for part in (~drawn, drawn))
    return Routing(counts, trained, held, np.einsum("sqe,qt->set", missed, mean))


def chance(sandbox: KnowledgeSandbox, size: Size) -> float:
    r"""Return the expected information of random experts: $(K - 1)(E - 1) / 2N$ nats, over $\ln K$ nats of the task."""
    tasks, experts = size
    queries = tasks * sandbox.templates * sandbox.keys
    return float((tasks - 1) * (experts - 1) / (2 * queries) / np.log(tasks))


def draw_grid(axes: Array, data: Mapping[str, Array]) -> None:
    """Draw means and intervals over the grid, and the largest information that the number of experts allows."""
    every: list[Size] = sorted(map(tuple, data["cells"]))
    for number, loss in enumerate(COMPARED):
        rows = np.array([data["grid"][f"{tasks}x{experts} {loss}"] for tasks, experts in every])
        spread, at = np.abs(rows[:, 1:] - rows[:, :1]).T, np.arange(len(every)) + 0.12 * (number - 1)
        axes.errorbar(at, rows[:, 0], yerr=spread, fmt="o", ms=4, color=f"C{number + 2}", label=loss)
    most = [min(1.0, np.log(experts) / np.log(tasks)) for tasks, experts in every]
    axes.plot(range(len(every)), most, "_", color="black", markersize=16, label="upper bound")
    axes.set_xticks(range(len(every)), [f"{t} × {e}" for t, e in every], rotation=40, ha="right", fontsize=8)
    axes.set(xlabel="tasks × experts", ylabel="I(task; expert) / H(task)", title="95 % intervals of the mean")
    axes.set_ylim(-0.05, 1.1)
    axes.legend(fontsize=7, loc=(0.02, 0.28))
