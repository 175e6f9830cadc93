r"""One layer of attention in a recurrent net recalls every pair that it was told, where the recurrence alone does not.

Statement: a row tells pairs of a key and a value and then asks for the values by their keys. Two layers of a gated
linear recurrence, trained for as long, say little more than one of the values that were told. With attention in the
second layer instead, nearly every value is recalled, whatever the number of pairs, as by attention in both layers.

Why: a recurrence must carry all pairs at once in a state of some numbers, bound to their keys, before it knows which
will be asked for. A head need not: the first layer's state tells every value the key before it, and the query finds the
value that has its key. Two layers of attention can do so too, once the first has learned to look at the token before,
which takes them longer.

Checked: the share of right values for each seed on rows that were never trained on, for several numbers of pairs, each
of which is trained by itself at one width. Where there are most pairs the recurrence must be at 0.75 or below; the
hybrid must be at 0.99 or above at every number of pairs in all seeds, and the transformer in three seeds of four (at
quick scale four of five), as some have not begun to look at the token before when training ends. A step has as many
questions whatever the number of pairs: with as many rows instead, the hybrid's seeds reached 0.65 to 0.99 of 2 pairs in
500 steps, in a first run on the seeds 20 to 24. Sizes were then chosen on others, and judged on fresh ones. That no
recurrence could do it at this width is not shown.

Source: Wen, Dang and Lyu 2024, "RNNs are not Transformers (Yet)", arXiv 2402.18510 [S]: that one attention layer
suffices; the task and the comparison at one width: Arora et al. 2023, arXiv 2312.04927 [S].

Saboteur: the hybrid's layer of attention is replaced by a second recurrence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.hybrid import HybridFamily
from vitrify.learn.models.ssm import StateSpaceFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.recall import Recall

RECALLS = 0.99  # the share of values that a net with attention must recall
FORGETS = 0.75  # the most that a recurrence may recall of most pairs


@dataclass(frozen=True)
class Setting:
    """What is trained, for every number of pairs; `repaired` says whether the hybrid has its attention."""

    sandboxes: tuple[Recall, ...]
    width: int
    units: int
    recipe: Recipe
    questions: int  # in a step: the fewer pairs, the more rows
    steps: tuple[int, int, int]  # of the recurrence, the hybrid and the transformer
    seeds: tuple[int, ...]
    share: float  # of the transformer's seeds
    repaired: bool = True

    def nets(self) -> dict[str, tuple[Family, Recipe]]:
        """The families by name, each with its recipe."""
        width, units = self.width, self.units
        linear = StateSpaceFamily(layers=2, d_model=width, state=width, units=units)
        hybrid = HybridFamily(layers=2, heads=1, d_model=width, state=width, units=units)
        heads = TransformerFamily(layers=2, heads=2, d_model=width, units=units, positions="rotary")
        families: dict[str, Family] = {
            "recurrence": linear,
            "hybrid": hybrid if self.repaired else linear,
            "transformer": heads,
        }
        return {
            name: (family, replace(self.recipe, steps=steps))
            for (name, family), steps in zip(families.items(), self.steps, strict=True)
        }


def subjects() -> Iterator[Subject]:
    recipe = Recipe(lr=5e-3, schedule="linear", warmup=50, test_rows=256, marks=0)
    sandboxes = tuple(Recall(vocabulary=32, pairs=pairs, length=4 * pairs + 8) for pairs in (3, 6))
    setting = Setting(sandboxes, 32, 32, recipe, 192, (500, 500, 600), tuple(range(30, 35)), share=0.8)
    yield Subject("3 and 6 pairs", data={"setting": setting})


def paper() -> Iterator[Subject]:
    recipe = Recipe(lr=2e-3, schedule="linear", warmup=100, test_rows=1024, marks=0)
    sandboxes = tuple(Recall(vocabulary=512, pairs=pairs, length=4 * pairs + 16) for pairs in (4, 16, 32))
    setting = Setting(sandboxes, 64, 128, recipe, 1024, (4000, 4000, 6000), tuple(range(30, 38)), share=0.75)
    yield Subject("4 to 32 pairs", data={"setting": setting})


def sabotage(subject: Subject) -> Subject:
    return Subject(subject.name, data={"setting": replace(subject.data["setting"], repaired=False)})


@lru_cache(maxsize=32)
def recalled(family: Family, sandbox: Recall, recipe: Recipe, seeds: tuple[int, ...]) -> list[float]:
    """The share of values that each seed recalls; a saboteur need not train again what another net is already."""
    return [run.last["accuracy"] for run in train(family, sandbox, axes={"seed": seeds}, recipe=recipe)]


def check(subject: Subject) -> Evidence:
    setting: Setting = subject.data["setting"]
    found = {
        name: [
            recalled(family, sandbox, replace(recipe, batch=setting.questions // sandbox.pairs), setting.seeds)
            for sandbox in setting.sandboxes
        ]
        for name, (family, recipe) in setting.nets().items()
    }
    pairs = [sandbox.pairs for sandbox in setting.sandboxes]
    asked = [
        Asked(f"recurrence, {pairs[-1]} pairs", found["recurrence"][-1], most=FORGETS),
        *(Asked(f"recurrence, {count} pairs", found["recurrence"][at]) for at, count in enumerate(pairs[:-1])),
        *(
            Asked(f"hybrid, {count} pairs", values, RECALLS)
            for count, values in zip(pairs, found["hybrid"], strict=True)
        ),
        *(
            Asked(f"transformer, {count} pairs", values, RECALLS, share=setting.share)
            for count, values in zip(pairs, found["transformer"], strict=True)
        ),
    ]
    guess = [1 / pairs for pairs in pairs]
    shown = {"pairs": pairs, "recalled": found, "told": guess, "width": setting.width}
    domain = f"{len(setting.seeds)} seeds of each net of width {setting.width}, {subject.name}, each trained by itself"
    return decided(asked, domain=domain, seed=setting.seeds[0], shown=shown)


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import level, sheet

    figure, planes = sheet(1, len(shown), "Recall of pairs, with and without a layer of attention", 6.2, 4.2)
    for plane, (name, found) in zip(planes[0], shown.items(), strict=True):
        pairs = np.array(found["pairs"])
        for at, (net, values) in enumerate(found["recalled"].items()):
            numbers = np.array(values)
            beside = pairs * (1 + 0.05 * (at - 1))
            plane.plot(beside, numbers.mean(axis=1), color=f"C{at}", label=f"{net} ({numbers.shape[1]} seeds)")
            plane.scatter(np.repeat(beside, numbers.shape[1]), numbers.ravel(), s=14, color=f"C{at}", alpha=0.6)
        plane.plot(pairs, found["told"], color="black", linestyle="--", linewidth=1, label="one of the values told")
        level(plane, RECALLS, "asked of attention: 0.99", at=0.01)
        level(plane, FORGETS, f"most of a recurrence at {pairs[-1]} pairs: 0.75", at=0.01)
        plane.set(xscale="log", ylim=(0, 1.08), xlabel="pairs in a row", title=f"width {found['width']}, {name}")
        plane.set_ylabel("share of values that are recalled")
        plane.set_xticks(pairs, [str(count) for count in pairs], minor=False)
        plane.minorticks_off()
        plane.legend(fontsize=8, loc="center right")
    return figure


CLAIM = Claim(
    row="G5",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
