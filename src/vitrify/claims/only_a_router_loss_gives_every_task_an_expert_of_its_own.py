r"""Of the losses and routers for mixtures of experts, only a loss that tells the router the task gives each its expert.

Statement: queries of several tasks, each with templates and a dictionary of its own over shared keys and values, are
learned by one layer of attention and experts, of which one works at a time. With the cross-entropy alone, with load
balancing, with a z-loss, with shifts that balance without a loss, and where experts choose their queries, routing
stays diffuse: the expert tells little of the task. With $-\log p_{\text{expert of the task}}$ added, each task has an
expert of its own, as in the built net: without it that task is lost and no other; and pairs of template and key that
were never trained on are answered, which the others fail at.
Why: any split of the queries that experts can store lowers the cross-entropy, and a split by keys is as good as one by
tasks; balance asks for equal loads, whoever they are made of. Experts who see whole tasks must learn that templates of
a task ask for the same, as nothing else is left for them to tell apart.
Checked: $I(\text{task}; \text{expert}) / H(\text{task})$, and the same over the mean of both entropies, over all
queries: in 7 seeds of 8 and at two sizes the router loss leads every other, by either. Purity, load, accuracy on
queries trained on and held out, accuracy by task without each expert, and a grid of tasks times experts are beside it.
Settings, and what counts as having learned the queries at all, were chosen on seeds below 200, and others are judged.
Where experts choose, rows compete at one position, so that no later token is seen.
Source: Nandakumar, Xiang, Yao, Li, Liu 2026, arXiv 2606.14398 [A], on other data; losses of Fedus et al. 2022, arXiv
2101.03961, Zoph et al. 2022, arXiv 2202.08906, Zhou et al. 2022, arXiv 2202.09368, Wang et al. 2024, arXiv 2408.15664
[S]. Held-out accuracy was reported to be comparable there; here it is not.
Saboteur: the router is told the key of a query in place of its task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided, interval
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.knowledge import knowledge
from vitrify.kit import assemble
from vitrify.learn.models.built import BuiltFamily
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.experts import ExpertsFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.routing import agreement, information, load, purity, survey
from vitrify.learn.train import Run, train
from vitrify.net.sparse import dense
from vitrify.sandboxes.knowledge import Knowledge

AXES = "share,working,balance_loss,z_loss,task_loss,shift_rate"
LOSSES: dict[str, tuple[float, ...]] = {  # the last four of these
    "cross-entropy": (0, 0, 0, 0),
    "balance 0.01": (0.01, 0, 0, 0),
    "balance 0.1": (0.1, 0, 0, 0),
    "balance 1": (1, 0, 0, 0),
    "z 0.001": (0, 1e-3, 0, 0),
    "shifts 0.01": (0, 0, 0, 0.01),
    "router": (0, 0, 1, 0),
}
ROUTER, CHOICE = "router", "expert choice"
COMPARED = ("cross-entropy", "balance 0.1", ROUTER)  # all over the grid
SHARE = 7 / 8  # of the seeds
LEAD = 0.05  # of the router loss before any other
OWN = 0.95  # what an expert tells of the task, and the accuracy on queries trained on, under the router loss
LEARNED = 0.8  # of the queries trained on, by the seeds of every loss: else there is nothing to compare
EXACT = 1 - 1e-6
LOST, KEPT = 0.4, 0.05  # of the accuracy without an expert: on its task at least, on others at most

Size = tuple[int, int]  # tasks, experts


@dataclass(frozen=True)
class Setting:
    """What is trained: the largest sandbox and family, the sizes that are judged, and those of the grid."""

    sandbox: Knowledge
    family: ExpertsFamily
    recipe: Recipe
    sizes: tuple[Size, ...]
    grid: tuple[Size, ...]
    seeds: tuple[int, ...] = tuple(range(200, 208))

    def losses(self, size: Size) -> list[str]:
        """The losses that are tried at a size; where experts choose is trained by itself."""
        return [name for name in LOSSES if size in self.sizes or name in COMPARED]


@dataclass(frozen=True, eq=False)
class Found:
    """What members of one size and loss do, seed by seed: who works on what, and what is answered rightly."""

    counts: Any  # [seed, task, expert]
    trained: Any  # [seed]: the part of the queries trained on that is answered
    held: Any  # [seed]: the same of the others
    lost: Any  # [seed, expert, task]: of the accuracy on a task, without that expert

    def isolation(self) -> tuple[Any, Any]:
        """The mean loss of tasks without the expert that works on them most, and without any other [seed]."""
        own = np.take_along_axis(self.lost, self.counts.argmax(axis=-1)[:, None], axis=1)[:, 0]
        others = (self.lost.sum(axis=1) - own) / max(self.counts.shape[-1] - 1, 1)
        return own.mean(axis=-1), others.mean(axis=-1)

    def numbers(self) -> dict[str, Any]:
        """All that is told of them in one number for each seed."""
        own, others = self.isolation()
        told = {"information": information, "agreement": agreement, "purity": purity, "load": load}
        answered = {"trained": self.trained, "held": self.held, "own": own, "others": others}
        return {name: measure(self.counts) for name, measure in told.items()} | answered


def subjects() -> Iterator[Subject]:
    sandbox = Knowledge(tasks=8, templates=3, keys=8, pooled=True, fraction=2 / 3)
    family = ExpertsFamily(layers=1, heads=1, d_model=32, experts=8, units=16, pads=0)
    recipe = Recipe(steps=600, batch=64, lr=4e-3, schedule="cosine", marks=0, test_rows=32)
    sizes = ((4, 4), (8, 8))
    yield Subject("tasks", data={"setting": Setting(sandbox, family, recipe, sizes, (*sizes, (4, 8), (8, 4)))})


def paper() -> Iterator[Subject]:
    sandbox = Knowledge(tasks=16, templates=4, keys=32, pooled=True, fraction=0.5)
    family = ExpertsFamily(layers=1, heads=2, d_model=64, experts=16, units=32, pads=0)
    recipe = Recipe(steps=4000, batch=256, lr=3e-3, schedule="cosine", marks=0, test_rows=32)
    grid = tuple((tasks, experts) for tasks in (4, 8, 16) for experts in (4, 8, 16))
    yield Subject("tasks", data={"setting": Setting(sandbox, family, recipe, ((8, 8), (16, 16)), grid)})


def sabotage(subject: Subject) -> Subject:
    setting: Setting = subject.data["setting"]
    told = replace(setting.family, told="key")
    return Subject(subject.name, data={"setting": replace(setting, family=told)})


@lru_cache(maxsize=8)
def _trained(
    sandbox: Knowledge, family: ExpertsFamily, recipe: Recipe, points: tuple[Any, ...], seeds: tuple[int, ...]
) -> list[Run]:
    """Members of every point, seeds fastest; a saboteur need not train again what knows nothing of the router loss."""
    return train(family, sandbox, axes={AXES: points, "seed": seeds}, recipe=recipe)


def found(setting: Setting) -> dict[tuple[Size, str], Found]:
    """What was learned, by size and loss."""
    told = [(size, name) for size in setting.grid for name in setting.losses(size)]
    result: dict[tuple[Size, str], Found] = {}
    for family, own in (
        (replace(setting.family, told="task"), [one for one in told if one[1] != ROUTER]),
        (setting.family, [one for one in told if one[1] == ROUTER]),
    ):
        points = tuple((size[0] / setting.sandbox.tasks, size[1] / family.experts, *LOSSES[name]) for size, name in own)
        runs = _trained(setting.sandbox, family, setting.recipe, points, setting.seeds)
        result |= zip(own, _surveyed(setting, family, setting.sandbox, runs, [size for size, _ in own]), strict=True)
    for size in setting.sizes:
        sandbox = replace(setting.sandbox, tasks=size[0])
        family = replace(setting.family, experts=size[1], by="expert", told="task")
        runs = _trained(sandbox, family, setting.recipe, ((1.0, 1.0, 0, 0, 0, 0),), setting.seeds)
        result[size, CHOICE] = _surveyed(setting, family, sandbox, runs, [size])[0]
    return result


def _surveyed(
    setting: Setting, family: Family, sandbox: Knowledge, runs: Sequence[Run], sizes: Sequence[Size]
) -> list[Found]:
    """What all members do on all queries, in groups of as many as there are seeds, one for each size."""
    arrays = {name: np.stack([np.asarray(run.weights.arrays[name]) for run in runs]) for name in runs[0].weights.arrays}
    seen = _asked(family, sandbox, runs[0].weights.architecture, arrays)
    return [
        _told(sandbox, seen[number * len(setting.seeds) :][: len(setting.seeds)], size)
        for number, size in enumerate(sizes)
    ]


def _asked(family: Family, sandbox: Knowledge, net: Any, arrays: Mapping[str, Any]) -> Any:
    """The survey of each of some members [member, query, …], one after the other."""
    queries = jax.tree.map(np.asarray, sandbox.every()[0])
    probe = survey(family, sandbox, queries)
    return np.asarray(jax.jit(lambda given: jax.lax.map(lambda own: probe(net, own, queries, {}), given))(arrays))


def _told(sandbox: Knowledge, seen: Any, size: Size) -> Found:
    """What a survey [seed, query, …] says of the first tasks and experts."""
    queries, drawn = sandbox.every()
    task = np.asarray(queries.latent["task"])
    experts = (seen.shape[-1] - 1) // 2
    each = np.eye(sandbox.tasks)[task][:, : size[0]]  # [query, task]
    right = seen[..., experts]
    mean = each / each.sum(axis=0)
    counts = np.einsum("sqe,qt->ste", seen[..., : size[1]], each)
    missed = right[..., None] - seen[..., experts + 1 :][..., : size[1]]
    used = task < size[0]
    return Found(
        counts,
        right[:, used & drawn].mean(axis=1),
        right[:, used & ~drawn].mean(axis=1),
        np.einsum("sqe,qt->set", missed, mean),
    )


def built(sandbox: Knowledge) -> Found:
    """The net that was built for these tasks, as the only member."""
    weights = assemble(knowledge(sandbox.known), arithmetic="float32")
    arrays = {name: np.asarray(dense(array), np.float32)[None] for name, array in weights.arrays.items()}
    family = BuiltFamily(start=weights)
    seen = _asked(family, sandbox, weights.architecture, arrays)
    return _told(sandbox, seen, (sandbox.tasks, sandbox.tasks))


def check(subject: Subject) -> Evidence:
    setting: Setting = subject.data["setting"]
    learned = found(setting)
    numbers = {key: one.numbers() for key, one in learned.items()}
    models = {size: built(replace(setting.sandbox, tasks=size[0])) for size in setting.sizes}
    asked: list[Asked] = []
    for size in setting.sizes:
        name = f"{size[0]} tasks, {size[1]} experts: "
        own, model = numbers[size, ROUTER], models[size].numbers()
        rest = {loss: numbers[size, loss] for loss in (*LOSSES, CHOICE) if loss != ROUTER}
        learnt = [float(one["trained"].mean()) for one in rest.values()]
        asked.append(Asked(f"{name}queries trained on, mean of each other loss", learnt, LEARNED, premise=True))
        for loss, one in rest.items():
            lead = np.minimum(own["information"] - one["information"], own["agreement"] - one["agreement"])
            asked.append(Asked(f"{name}NMI, router loss less {loss}", lead.tolist(), LEAD, share=SHARE))
        asked.append(Asked(f"{name}NMI, router loss", own["agreement"].tolist(), OWN, share=SHARE))
        asked.append(Asked(f"{name}queries trained on, router loss", own["trained"].tolist(), OWN, share=SHARE))
        further = own["held"] - np.max([one["held"] for one in rest.values()], axis=0)
        asked.append(Asked(f"{name}held-out accuracy, router loss less any other", further.tolist(), 0.0, share=SHARE))
        asked.append(Asked(f"{name}lost without its expert", own["own"].tolist(), LOST, share=SHARE))
        asked.append(Asked(f"{name}lost without another", own["others"].tolist(), most=KEPT, share=SHARE))
        exact = [*model["agreement"], *model["purity"], *model["trained"], *model["held"], *(1 - model["others"])]
        asked.append(Asked(f"{name}built net: NMI, purity, accuracies, kept without another", exact, EXACT))
        same = 1 / setting.sandbox.keys  # who always says the same is right about one key
        asked.append(Asked(f"{name}built net: lost without its expert", model["own"].tolist(), EXACT - same))
    shown = {
        "sizes": setting.sizes,
        "seeds": len(setting.seeds),
        "chance": [_chance(setting.sandbox, size) for size in setting.sizes],
        "numbers": {_key(size, loss): one for (size, loss), one in numbers.items() if size in setting.sizes},
        "grid": {
            _key(size, loss): [float(one["information"].mean()), *interval(one["information"])]
            for (size, loss), one in numbers.items()
            if loss in COMPARED
        },
        "cells": setting.grid,
        "lost": {loss: learned[setting.sizes[0], loss].lost[0] for loss in (*COMPARED, CHOICE)}
        | {"built": models[setting.sizes[0]].lost[0]},
    }
    sandbox, family = setting.sandbox, setting.family
    where = f"{sandbox.templates} templates a task, {sandbox.keys} keys, d_model {family.d_model}, {family.units} units"
    notes = [f"means: {_line(size, loss, one)}" for (size, loss), one in numbers.items() if size in setting.sizes]
    domain = f"{len(setting.seeds)} seeds of {len(learned)} losses and sizes; {where} an expert"
    return decided(asked, domain=domain, seed=setting.seeds[0], shown=shown, notes=notes)


def _key(size: Size, loss: str) -> str:
    return f"{size[0]}x{size[1]} {loss}"


def _line(size: Size, loss: str, one: Mapping[str, Any]) -> str:
    names = ("information", "agreement", "purity", "load", "trained", "held")
    return f"{_key(size, loss)}: " + ", ".join(f"{name} {one[name].mean():.3f}" for name in names)


def _chance(sandbox: Knowledge, size: Size) -> float:
    r"""What an expert by lot would tell of the task, about: $(K - 1)(E - 1) / 2N$ nats for $N$ queries."""
    tasks, experts = size
    queries = tasks * sandbox.templates * sandbox.keys
    return float((tasks - 1) * (experts - 1) / (2 * queries) / np.log(tasks))


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import level, sheet

    (one,) = shown.values()
    figure, planes = sheet(2, 4, "One expert per task? Losses and routers of mixtures of experts", 4.3, 3.7)
    losses = [*LOSSES, CHOICE]
    for at, (tasks, experts) in enumerate(one["sizes"]):
        found = {loss: one["numbers"][f"{tasks}x{experts} {loss}"] for loss in losses}
        colour, side = f"C{at}", 0.16 * (2 * at - 1)
        label = f"{tasks} tasks, {experts} experts"
        for place, loss in enumerate(losses):
            own = found[loss]
            for plane, name in ((planes[0, 0], "information"), (planes[0, 1], "held")):
                shift = side + np.linspace(-0.08, 0.08, len(own[name]))
                plane.plot(place + shift, own[name], ".", color=colour, label=None if place else label)
            planes[0, 1].plot(place + side, np.mean(own["trained"]), "_", color=colour, markersize=9)
            mark = dict(zip(losses, "osv^Dx*P", strict=True))[loss]
            planes[0, 2].plot(own["load"], own["information"], mark, color=colour, label=None if at else loss, ms=5)
        level(planes[0, 0], one["chance"][at], "" if at else "experts by lot", colour, at=0.01)
    level(planes[0, 0], 1.0, "built net")
    level(planes[0, 1], 1.0, "built net")
    for plane, title in ((planes[0, 0], "what the expert tells of the task"), (planes[0, 1], "pairs never trained on")):
        plane.set_xticks(range(len(losses)), losses, rotation=40, ha="right", fontsize=8)
        plane.set(title=title, ylim=(-0.03, 1.1))
        plane.legend(fontsize=7, loc=(0.02, 0.66))
    planes[0, 0].set_ylabel("I(task; expert) / H(task)")
    planes[0, 1].set_ylabel("accuracy held out (bar: trained on, mean)")
    planes[0, 2].set(xlabel="load of the busiest expert / fair share", ylabel="I(task; expert) / H(task)")
    planes[0, 2].set(title="balance is not specialisation")
    planes[0, 2].legend(fontsize=7)
    _grid(planes[0, 3], one)
    for plane, (loss, lost) in zip(planes[1], _four(one["lost"]), strict=True):
        table = np.array(lost)
        drawn = plane.imshow(table, vmin=0, vmax=1, cmap="magma_r", aspect="auto")
        plane.set(title=f"{loss}, one net", xlabel="task", ylabel="expert that is removed")
        plane.set(xticks=range(table.shape[1]), yticks=range(table.shape[0]))
        figure.colorbar(drawn, ax=plane, label="accuracy lost")
    return figure


def _four(lost: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, lost[name]) for name in ("cross-entropy", CHOICE, ROUTER, "built")]


def _grid(plane: Any, one: Mapping[str, Any]) -> None:
    """Means and intervals over the grid, and how much of the task so few experts can tell at most."""
    cells = sorted(map(tuple, one["cells"]))
    for number, loss in enumerate(COMPARED):
        rows = np.array([one["grid"][f"{tasks}x{experts} {loss}"] for tasks, experts in cells])
        places = np.arange(len(cells)) + 0.12 * (number - 1)
        spread = np.abs(rows[:, 1:] - rows[:, :1]).T
        plane.errorbar(places, rows[:, 0], yerr=spread, fmt="o", ms=4, color=f"C{number + 2}", label=loss)
    most = [min(1.0, np.log(experts) / np.log(tasks)) for tasks, experts in cells]
    plane.plot(range(len(cells)), most, "_", color="black", markersize=16, label="the most there can be")
    plane.set_xticks(range(len(cells)), [f"{t} × {e}" for t, e in cells], rotation=40, ha="right", fontsize=8)
    plane.set(xlabel="tasks × experts", ylabel="I(task; expert) / H(task)", title="95 % intervals of the mean")
    plane.set_ylim(-0.05, 1.1)
    plane.legend(fontsize=7, loc=(0.02, 0.28))


CLAIM = Claim(
    row="L14",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
