"""Mixtures of experts on queries of several tasks: trials by loss, and which expert serves which task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import jax
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.trials.trial import Trained, Trial
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
ROUTER, CHOICE = "router", "expert choice"
COMPARED = ("cross-entropy", "balance 0.1", ROUTER)  # losses that are trained on the whole grid
SEEDS = range(200, 208)

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
        """Return the mean accuracy lost [seed] without the task's main expert, and without any other."""
        main = np.take_along_axis(self.lost, self.counts.argmax(axis=-1)[:, None], axis=1)[:, 0]
        others = (self.lost.sum(axis=1) - main) / max(self.counts.shape[-1] - 1, 1)
        return main.mean(axis=-1), others.mean(axis=-1)

    def numbers(self) -> dict[str, Array]:
        """Return every scalar measure [seed], by name."""
        main, others = self.isolation()
        measures = {"information": information, "agreement": agreement, "purity": purity, "load": load}
        answered = {"trained": self.trained, "held": self.held, "own": main, "others": others}
        return {name: measure(self.counts) for name, measure in measures.items()} | answered


def subject(
    sandbox: KnowledgeSandbox, family: ExpertsFamily, recipe: Recipe, sizes: list[Size], grid: list[Size]
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
        trials[name] = Trial(box, net, recipe, SEEDS, axes={AXES: points})
    data = {"templates": sandbox.templates, "keys": sandbox.keys, "d_model": family.d_model, "units": family.units}
    return Subject("tasks", data={**data, "sizes": sizes, "grid": grid, "cells": cells}, trials=trials)


def routings(subject: Subject, nets: Mapping[str, Trained]) -> dict[Cell, Routing]:
    """Return the routing of the members of every size and loss, over all queries."""
    by_cell: dict[Cell, Routing] = {}
    for name, cells in subject.data["cells"].items():
        trial, net = nets[name].trial, nets[name].runs[0].weights.architecture
        seen = _surveyed(trial.family, trial.sandbox, net, nets[name].arrays)
        each = seen.reshape(*trial.shape, *seen.shape[1:])  # [cell, seed, …]
        by_cell |= {cell: _routing(trial.sandbox, own, cell[0]) for cell, own in zip(cells, each, strict=True)}
    return by_cell


def built(sandbox: KnowledgeSandbox) -> Routing:
    """Return the routing of the net built for these tasks, as the only member."""
    weights = assemble(knowledge(sandbox.known), arithmetic="float32")
    arrays = {name: np.asarray(dense(array), np.float32)[None] for name, array in weights.arrays.items()}
    seen = _surveyed(BuiltFamily(start=weights), sandbox, weights.architecture, arrays)
    return _routing(sandbox, seen, (sandbox.tasks, sandbox.tasks))


def _surveyed(family: Family, sandbox: KnowledgeSandbox, net: Architecture, arrays: Mapping[str, Array]) -> Array:
    """Return the survey [member, query, …] of all members, one after the other."""
    queries = jax.tree.map(np.asarray, sandbox.every()[0])
    probe = survey(family, sandbox, queries)
    return np.asarray(jax.jit(lambda members: jax.lax.map(lambda one: probe(net, one, queries, {}), members))(arrays))


def _routing(sandbox: KnowledgeSandbox, seen: Array, size: Size) -> Routing:
    """Return the routing of the first tasks and experts, from a survey [seed, query, …]."""
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
    r"""Return the expected information of random experts about the task: $(K - 1)(E - 1) / 2N$ nats for $N$ queries."""
    tasks, experts = size
    queries = tasks * sandbox.templates * sandbox.keys
    return float((tasks - 1) * (experts - 1) / (2 * queries) / np.log(tasks))


def draw_grid(axes: Array, data: Mapping[str, Array]) -> None:
    """Draw means and intervals over the grid, and the largest information that the number of experts allows."""
    every = sorted(map(tuple, data["cells"]))
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
