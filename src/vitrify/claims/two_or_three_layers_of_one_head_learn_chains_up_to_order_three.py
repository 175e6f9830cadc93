r"""Two or three layers of one head learn in-context chains of any order up to three, and one layer does not.

Statement: transformers of one head per layer are trained on rows that are each drawn from a chain of their own, whose
next symbol depends on the last k. With two layers and with three the loss comes to within 0.02 nats of that of counting
what followed the last k symbols, which is optimal; with one layer it stays further away than that.

Why: in the first layer one head can weigh the last k tokens differently, so that its output tells them all apart; a
second layer finds the earlier places with the same output, by a norm or by ReLU units, and reads what came next there.
One layer sees only single tokens beside the present one, and no pair of a context and what followed it.

Checked: the excess of the test loss over the optimum at the end of training, for every depth; with one layer it must
be at least 0.03 nats in all seeds, with two and three at most 0.02 nats in 7 of 8. At quick scale the order is one, and
attention alone will do; at paper scale it is two and three, with norms and ReLU units; 3,000 steps were too few for
order two with two layers (6 of 8 seeds). The published orders, up to four with two layers and eight with three, on rows
of 512 symbols, are not asked for here.

Source: Rajaraman, Bondaschi, Ramchandran, Gastpar and Makkuva 2024, "Transformers on Markov Data: Constant Depth
Suffices", arXiv 2407.17686 [T]; Ekbote et al. 2025, "What One Cannot, Two Can", arXiv 2508.07208 [S].

Saboteur: nets of one layer stand in for those of two and three.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims._stages import MOST_SEEDS
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import Run, train
from vitrify.sandboxes._contexts import order_name
from vitrify.sandboxes.in_context_markov import InContextMarkov

REACHED, FAR = 0.02, 0.03  # nats above the optimum


@dataclass(frozen=True)
class Depths:
    """What is trained: seeds of every depth on chains of some order; `layers` are those that each depth really has."""

    sandbox: InContextMarkov
    family: TransformerFamily
    recipe: Recipe
    members: int
    layers: tuple[tuple[int, int], ...] = ((1, 1), (2, 2), (3, 3))

    def runs(self, layers: int) -> list[Run]:
        """The trained nets of so many layers."""
        return _trained(self.sandbox, replace(self.family, layers=layers), self.recipe, self.members)


@cache
def _trained(sandbox: InContextMarkov, family: TransformerFamily, recipe: Recipe, members: int) -> list[Run]:
    """Kept: a saboteur presents the same nets as something else."""
    return train(family, sandbox, members=members, recipe=recipe)


def subjects() -> Iterator[Subject]:
    """Pairs need no units and no norm."""
    family = TransformerFamily(
        heads=1, d_model=16, units=0, positions="relative", norm=False, biases=False, scale=0.75, gain=10.0
    )
    recipe = Recipe(steps=400, batch=16, lr=3e-3, test_rows=256, marks=6)
    yield _subject(InContextMarkov(states=2, length=48), family, recipe, members=8)


def paper() -> Iterator[Subject]:
    family = TransformerFamily(heads=1, d_model=32, units=128, positions="relative", gain=10.0)
    recipe = Recipe(steps=6000, batch=32, lr=2e-3, weight_decay=1e-3, schedule="cosine", test_rows=512, marks=4)
    for order in (2, 3):
        yield _subject(InContextMarkov(states=2, length=256, order=order), family, recipe, members=8)


def _subject(sandbox: InContextMarkov, family: TransformerFamily, recipe: Recipe, members: int) -> Subject:
    name = f"order {sandbox.order}, rows of {sandbox.length}"
    return Subject(name, data={"depths": Depths(sandbox, family, recipe, members)})


def check(subject: Subject) -> Evidence:
    depths: Depths = subject.data["depths"]
    asked: list[Asked] = []
    shown: dict[str, Any] = {"excess": {}, "losses": {}}
    for depth, layers in depths.layers:
        curves = [run.curve for run in depths.runs(layers)]
        last = [curve[-1]["excess"] for curve in curves]
        name = f"{depth} layer{'s' if depth > 1 else ''}: nats above the optimum"
        asked.append(Asked(name, last, least=FAR) if depth == 1 else Asked(name, last, most=REACHED, share=MOST_SEEDS))
        shown["steps"] = [point["step"] for point in curves[0]]
        shown["excess"][str(depth)] = [[point["excess"] for point in curve] for curve in curves]
        known = {key[6:]: value - curves[0][-1]["floor"] for key, value in curves[0][-1].items() if key[:6] == "floor."}
        shown["levels"] = dict(sorted(known.items(), key=lambda item: -item[1]))
    shown["optimum"] = order_name(depths.sandbox.order)
    recipe = depths.recipe
    domain = f"{depths.members} seeds of each depth, {recipe.steps} steps of {recipe.batch} rows, {subject.name}"
    return decided(asked, domain=domain, seed=0, shown=shown)


def sabotage(subject: Subject) -> Subject:
    depths: Depths = subject.data["depths"]
    return replace(subject, data={"depths": replace(depths, layers=tuple((depth, 1) for depth, _ in depths.layers))})


def draw(shown: Any) -> Any:
    from vitrify.learn.figures import band, by_step, level, sheet

    figure, planes = sheet(len(shown), 2, "One head per layer: how deep a net learns chains of an order")
    for (name, found), (curves, ends) in zip(shown.items(), planes, strict=True):
        for number, (depth, excess) in enumerate(found["excess"].items()):
            band(curves, found["steps"], np.maximum(excess, 1e-4), f"depth {depth} ({len(excess)} seeds)", f"C{number}")
            last = np.array(excess)[:, -1]
            ends.plot(np.full(len(last), int(depth)), np.maximum(last, 1e-4), "o", color=f"C{number}", alpha=0.5)
        for plane in (curves, ends):
            for number, (predictor, value) in enumerate(found["levels"].items()):
                level(plane, value, predictor, at=0.99 - 0.15 * (number % 2))
            level(plane, REACHED, f"{found['optimum']} counts + 0.02", "C3", "--", at=0.01)
            plane.set(yscale="log", ylabel="excess over the optimum (nats per symbol)")
        curves.set_title(name)
        by_step(curves)
        curves.legend(fontsize=8)
        ends.set(xlabel="layers of one head", xticks=[int(depth) for depth in found["excess"]], title="after training")
        ends.set_xlim(0.5, len(found["excess"]) + 0.5)
    return figure


CLAIM = Claim(
    row="L7",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
