r"""In a mixture of experts, only a router loss that is given the task makes each task use one expert of its own.

Statement: Queries belong to several tasks; each task has templates and a dictionary of its own over shared keys and
values. One layer of attention and experts learns them. With cross-entropy alone, with load balancing, z-loss or
loss-free bias balancing, and with expert-choice routing, the expert carries less information about the task. With the
router loss $-\log p_{\text{expert of the task}}$ added, each task has its own expert, as in a network built by hand:
removing that expert destroys its task and no other. Held-out pairs of template and key are then answered best.
Why: Any split of the queries that the experts can store lowers the cross-entropy, and a split by keys is as good as one
by tasks; balancing constrains loads, not their content. An expert that sees a whole task can share one dictionary
between its templates.
Not checked: Expert choice compares sequences at one position only, so that no later token is seen. The authors' data
(derived from WikiData5M), on which they report comparable accuracy with and without the router loss; here held-out
accuracy differs. Top-2 routing, several layers, and tasks with keys of their own.
Source: Nandakumar, Xiang, Yao, Li and Liu 2026, arXiv 2606.14398 [A]; alternatives of Fedus et al. 2022, arXiv
2101.03961, Zoph et al. 2022, arXiv 2202.08906, Zhou et al. 2022, arXiv 2202.09368, Wang et al. 2024, arXiv 2408.15664
[S].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import expert_nulls, experts
from vitrify.claims.trials.experts import BUILT, CHOICE, COMPARED, LOSSES, ROUTER, key, routing
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, evidence
from vitrify.intervals import mean_interval
from vitrify.learn.figures import dots, heat, panel, reference_line, sheet
from vitrify.learn.models.experts import ExpertsFamily
from vitrify.learn.routing import information
from vitrify.sandboxes.knowledge import KnowledgeSandbox

MIN_SEEDS, MIN_MARGIN = 7 / 8, 0.05  # share of the seeds; by which the router loss exceeds any other
MIN_ROUTER = 0.95  # NMI and accuracy on trained queries, with the router loss
MIN_TRAINED = 0.8  # mean accuracy on trained queries for every loss: else there is nothing to compare
MIN_EXACT = 1 - 1e-6
MIN_LOST, MAX_LOST = 0.4, 0.05  # of the accuracy without an expert: on its task, on others
ALL_LOSSES = [*LOSSES, CHOICE]
MEANS = ("information", "agreement", "purity", "load", "trained", "held")
SIZES = [(8, 8), (16, 16)]  # tasks and experts
PLAN = Plan(
    version=1,
    question="Which losses make each task of a mixture of experts use one expert of its own?",
    statements={
        "own expert": Statement(
            "with the router loss each task has an expert of its own",
            f"in {MIN_SEEDS:.1%} of the seeds the normalized mutual information (NMI) of task and expert is at least "
            f"{MIN_ROUTER}, and no two tasks have the same main expert",
            "two tasks of each seed share an expert",
        ),
        "only": Statement(
            "with every other loss the expert tells less about the task",
            f"I(task; expert) / H(task) and the NMI are ≥ {MIN_MARGIN} lower than with the router loss, in "
            f"{MIN_SEEDS:.1%} of the seeds for each other loss",
            "the best other loss separates tasks in half of the seeds as the router loss does",
        ),
        "isolated": Statement(
            "removing the expert of a task destroys this task and no other",
            f"in {MIN_SEEDS:.1%} of the seeds tasks lose an accuracy ≥ {MIN_LOST} without their main expert, and ≤ "
            f"{MAX_LOST} without the worst other one, in the mean over tasks",
            "each task is served by the experts of two tasks in equal parts",
        ),
        "held out": Statement(
            "held-out pairs of template and key are answered best with the router loss",
            f"accuracy with the router loss ≥ that with any other, in {MIN_SEEDS:.1%} of the seeds",
            "the best other loss answers them as well: a coin decides in each seed which of the two is better",
        ),
    },
    units="seed of weights and batches; dictionaries and held-out pairs are drawn once for the run",
    judged=range(300, 308),
    explored=range(208),
    stopping="fixed number of steps",
    scale={
        "layers": Axis(1, 1),
        "data": Axis("templates and dictionaries drawn at random", "derived from WikiData5M"),
        "tasks": Axis(SIZES[-1][0], "?"),
        "experts": Axis(SIZES[-1][1], "?"),
    },
    chosen="Steps, rate and width, on seeds below 200, so that all losses learn the queries; seeds 200 to 207 were "
    "judged before there were plans.",
)


def subjects() -> Subjects:
    sandbox = KnowledgeSandbox(tasks=8, templates=3, keys=8, pooled=True, fraction=2 / 3)
    family = ExpertsFamily(layers=1, heads=1, d_model=32, experts=8, units=16, pads=0)
    recipe = Recipe(steps=600, batch=64, lr=4e-3, schedule="cosine", evals_per_doubling=0, test_examples=32)
    grid = [(4, 4), (8, 8), (4, 8), (8, 4)]
    yield experts.subject(sandbox, family, recipe, grid[:2], grid, PLAN.explored[-8:])


def large() -> Subjects:
    grid, seed = [(tasks, count) for tasks in (4, 8, 16) for count in (4, 8, 16)], PLAN.judged[0]
    sandbox = KnowledgeSandbox(tasks=16, templates=4, keys=32, pooled=True, fraction=0.5, seed=seed)
    family = ExpertsFamily(layers=1, heads=2, d_model=64, experts=16, units=32, pads=0)
    recipe = Recipe(steps=4000, batch=256, lr=3e-3, schedule="cosine", evals_per_doubling=0, test_examples=32)
    yield experts.subject(sandbox, family, recipe, SIZES, grid, PLAN.judged)


def judge(subject: Subject, measured: Measured) -> Evidence:
    sizes, sandbox = subject.data["sizes"], subject.trials[ROUTER].sandbox
    seen = {(size, loss): routing(measured, size, loss) for size in sizes for loss in (*ALL_LOSSES, BUILT)}
    numbers = {cell: one.numbers() for cell, one in seen.items()}
    criteria = [each for size in sizes for each in _criteria(size, numbers, sandbox.keys)]
    grid = {
        key(*cell): information(measured[f"{key(*cell)}/counts"]) for cell in product(subject.data["grid"], COMPARED)
    }
    figure = {
        "sizes": sizes,
        "seeds": len(subject.trials[ROUTER].seeds),
        "chance": [experts.chance(sandbox, size) for size in sizes],
        "numbers": {key(*cell): one for cell, one in numbers.items() if cell[1] != BUILT},
        "grid": {name: [each.mean(), *mean_interval(each)] for name, each in grid.items()},
        "cells": subject.data["grid"],
        "lost": {loss: seen[sizes[0], loss].lost[0] for loss in (*COMPARED, CHOICE, BUILT)},
    }
    means = [(f"{cell}: mean {name}", one[name].mean()) for cell, one in figure["numbers"].items() for name in MEANS]
    return evidence(subject, criteria, figure, [Quantity(*each) for each in means])


def _criteria(
    size: experts.Size, numbers: Mapping[experts.Cell, Mapping[str, Array]], keys: int
) -> Iterator[Criterion]:
    """Yield the criteria at one size; keys are shared, so a constant answer is right for one of them."""
    name, own, built = f"{size[0]} tasks, {size[1]} experts: ", numbers[size, ROUTER], numbers[size, BUILT]
    other = {loss: numbers[size, loss] for loss in ALL_LOSSES if loss != ROUTER}
    learnt = [float(one["trained"].mean()) for one in other.values()]
    exact = [*built["agreement"], *built["purity"], *built["trained"], *built["held"], *(1 - built["others"])]
    premise, most = partial(Criterion.judged, premise=True), partial(Criterion.judged, share=MIN_SEEDS)
    yield premise(f"{name}queries trained on, mean of each other loss", learnt, at_least=MIN_TRAINED)
    yield most(f"{name}queries trained on, router loss", own["trained"], at_least=MIN_ROUTER, premise=True)
    yield premise(f"{name}built net: NMI, purity, accuracies, unchanged without another", exact, at_least=MIN_EXACT)
    yield premise(f"{name}built net: accuracy lost without its expert", built["own"], at_least=MIN_EXACT - 1 / keys)
    alone, only, isolated, held = (partial(most, statement=key) for key in PLAN.statements)
    yield alone(f"{name}NMI, router loss", own["agreement"], at_least=MIN_ROUTER)
    yield alone(f"{name}tasks whose main expert is that of no other, router loss", own["apart"], at_least=1.0)
    for loss, one in other.items():
        margin = np.min([own[each] - one[each] for each in MEANS[:2]], axis=0)
        yield only(f"{name}NMI, router loss minus {loss}", margin, at_least=MIN_MARGIN)
    yield isolated(f"{name}accuracy lost without its expert", own["own"], at_least=MIN_LOST)
    yield isolated(f"{name}accuracy lost without the worst other expert", own["others"], at_most=MAX_LOST)
    further = own["held"] - np.max([one["held"] for one in other.values()], axis=0)
    yield held(f"{name}held-out accuracy, router loss minus any other", further, at_least=0.0)


def draw(figures: Figures) -> Figure:
    (data,) = figures.values()
    figure, axes = sheet(2, 4, "One expert per task? Losses and routers of mixtures of experts", 4.3, 3.7)
    tells, held, balance, grid = axes[0]
    marks = dict(zip(ALL_LOSSES, "osv^Dx*P", strict=True))
    for at, (tasks, count) in enumerate(data["sizes"]):
        color, side, label = f"C{at}", 0.16 * (2 * at - 1), f"{tasks} tasks, {count} experts"
        for index, loss in enumerate(ALL_LOSSES):
            own = data["numbers"][f"{tasks}x{count} {loss}"]
            for panel_axes, name in ((tells, "information"), (held, "held")):
                dots(panel_axes, index + side, own[name], None if index else label, color, marker=".")
            held.plot(index + side, np.mean(own["trained"]), "_", color=color, markersize=9)
            balance.plot(own["load"], own["information"], marks[loss], color=color, label=None if at else loss, ms=5)
        reference_line(tells, data["chance"][at], "" if at else "random experts", color, at=0.01)
    tells.set(title="information of the expert about the task", ylabel="I(task; expert) / H(task)")
    held.set(title="pairs never trained on", ylabel="accuracy held out (bar: trained on, mean)")
    for panel_axes in (tells, held):
        reference_line(panel_axes, 1.0, "built net")
        panel_axes.set_xticks(range(len(ALL_LOSSES)), ALL_LOSSES, rotation=40, ha="right", fontsize=8)
        panel_axes.set_ylim(-0.03, 1.1)
        panel_axes.legend(fontsize=7, loc=(0.02, 0.66))
    panel(balance, xlabel="load of the busiest expert / fair share", ylabel="I(task; expert) / H(task)", size=7)
    balance.set_title("balance is not specialisation")
    experts.draw_grid(grid, data)
    for panel_axes, loss in zip(axes[1], ("cross-entropy", CHOICE, ROUTER, "built"), strict=True):
        heat(panel_axes, data["lost"][loss], "accuracy lost", vmin=0, vmax=1, cmap="magma_r", aspect="auto")
        panel_axes.set(title=f"{loss}, one net", xlabel="task", ylabel="expert that is removed")
        panel_axes.set(xticks=range(len(data["lost"][loss][0])), yticks=range(len(data["lost"][loss])))
    return figure


NULLS = {
    "own expert": expert_nulls.merged,
    "only": expert_nulls.as_often_as_not,
    "isolated": expert_nulls.halved,
    "held out": expert_nulls.as_well,
}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, experts.measure, id="L14", standing="experiment")
