r"""The deeper a transformer, the longer the words of permutations that it learns to follow.

Statement: a point of five goes where swaps take it, and the network is asked where it is after every letter. All depths
are right after two letters, and all get worse with every letter more; but the deeper a transformer is, the later: after
the same training, 4 layers are right more often than 2 and 2 more often than 1 in the second halves of words. One layer
that is run several times over gains too, without a number more to train.
Why: swaps of five points generate a group that is not solvable, so no depth serves all lengths unless TC0 = NC1 (row
B8); joining neighbouring stretches two by two takes a layer for every doubling of the length, and weights for it are
known (row R14, where the layers are counted). What is not said is that training finds these weights: it finds some of
them.
Checked: over seeds, the accuracy after each number of letters on rows of their own, at each depth; its mean over the
second half of the word must grow by a margin from depth to depth, and from one turn of one layer to several. The
learning rate was chosen on other seeds (100 to 102). Connectivity, of which the same is published, is not trained here.
Source: Merrill, Sabharwal 2025, arXiv 2503.03961 [A] (log depth suffices, and constant depth does not, for regular
languages and connectivity); Liu et al. 2023, arXiv 2210.10749 [S]; the task's form, the sizes and the margin are ours.
Saboteur: networks of one layer are put forward at every depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.catalogue import Row, rows
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata import swaps

MARGIN = 0.04  # of accuracy, from depth to depth
SHARE = 7 / 8  # of the seeds
SHORT = 2  # letters after which all depths are right
RIGHT = 0.95  # of the time

Depth = tuple[int, int]  # layers, and how many times over they are run
Step = tuple[int, int]  # which depth, by its number, is better than which


@dataclass(frozen=True)
class Setting:
    """What is trained at each of the depths, and which of them is put forward as better than which."""

    sandbox: Regular
    family: TransformerFamily
    recipe: Recipe
    depths: tuple[Depth, ...]
    better: tuple[Step, ...]
    seeds: tuple[int, ...] = tuple(range(8))
    rows: int = 512


def subjects() -> Iterator[Subject]:
    family = TransformerFamily(heads=2, d_model=32, units=64)
    recipe = Recipe(steps=1500, batch=16, lr=2e-3, test_rows=64, marks=0)
    sandbox = Regular(swaps(5), 8, "states")
    depths = (1, 1), (2, 1), (4, 1), (1, 4)
    setting = Setting(sandbox, family, recipe, depths, better=((1, 0), (2, 1), (3, 0)))
    yield Subject("swaps of five points", data={"setting": setting})


def paper() -> Iterator[Subject]:
    family = TransformerFamily(heads=4, d_model=64)
    recipe = Recipe(steps=8000, batch=64, lr=1e-3, warmup=200, test_rows=64, marks=0)
    sandbox = Regular(swaps(5), 16, "states")
    depths = (1, 1), (2, 1), (4, 1), (1, 4)
    setting = Setting(sandbox, family, recipe, depths, better=((1, 0), (2, 1), (3, 0)), rows=2048)
    yield Subject("swaps of five points", data={"setting": setting})


def sabotage(subject: Subject) -> Subject:
    setting: Setting = subject.data["setting"]
    shallow = tuple((1, 1) for _ in setting.depths)
    return Subject(subject.name, data={"setting": replace(setting, depths=shallow)})


@lru_cache(maxsize=8)
def _by_letters(
    sandbox: Regular, family: TransformerFamily, recipe: Recipe, seeds: tuple[int, ...], count: int
) -> Array:
    """How often each member is right after 1, 2, … letters: [seed, letters]."""

    def right(net: Any, arrays: Mapping[str, Array], row: Row, seen: Mapping[str, Array]) -> Array:
        del row, seen
        asked = rows(sandbox, 0, "probe", 0, count)
        logits = family.logits(net, sandbox, arrays, asked)
        return (logits.argmax(axis=-1) == asked.targets)[:, 1:].astype(jnp.float32).mean(axis=0)

    runs = train(family, sandbox, axes={"seed": seeds}, recipe=recipe, probes={"right": right})
    return np.array([run.last["right"] for run in runs])


def named(depth: Depth) -> str:
    """A depth in words."""
    layers = f"{depth[0]} layer{'s' if depth[0] > 1 else ''}"
    return layers if depth[1] == 1 else f"{layers} run {depth[1]} times"


def check(subject: Subject) -> Evidence:
    setting: Setting = subject.data["setting"]
    sandbox, family, recipe = setting.sandbox, setting.family, setting.recipe
    found = np.stack(
        [
            _by_letters(sandbox, replace(family, layers=layers, loops=loops), recipe, setting.seeds, setting.rows)
            for layers, loops in setting.depths
        ]
    )  # [depth, seed, letters]
    late = found[:, :, sandbox.length // 2 :].mean(axis=-1)
    names = [named(depth) for depth in setting.depths]
    asked = [
        Asked(f"after {SHORT} letters: {name}", each[:, SHORT - 1].tolist(), least=RIGHT, premise=True)
        for name, each in zip(names, found, strict=True)
    ]
    asked += [
        Asked(
            f"in second halves: {names[deep]} over {names[flat]}",
            (late[deep] - late[flat]).tolist(),
            least=MARGIN,
            share=SHARE,
        )
        for deep, flat in setting.better
    ]
    shown = {"names": names, "right": found.round(4), "late": late.round(4), "states": len(sandbox.automaton.states)}
    sizes = f"d_model {family.d_model}, {recipe.steps:,} steps of {recipe.batch} rows"
    where = f"words of {sandbox.length} swaps, {sizes}"
    return decided(asked, domain=f"{len(setting.seeds)} seeds of each depth on {where}", seed=0, shown=shown)


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import band, level, sheet

    (found,) = shown.values()
    right, late = np.array(found["right"]), np.array(found["late"])
    figure, planes = sheet(1, 2, "Where do swaps of five points take a point?", width=5.2, height=4.0)
    curve, ends = planes[0]
    letters = np.arange(1, right.shape[-1] + 1)
    for number, (name, each) in enumerate(zip(found["names"], right, strict=True)):
        band(curve, letters.tolist(), each, f"{name} ({len(each)} seeds)", f"C{number}")
        ends.plot(np.full(len(each), number), late[number], "o", color=f"C{number}", alpha=0.5)
        ends.plot(number, np.median(late[number]), "_", color=f"C{number}", markersize=28, markeredgewidth=2)
    for plane in (curve, ends):
        level(plane, 1 / found["states"], "guessing", at=0.01)
        plane.set(ylabel="share of right answers", ylim=(0, 1.03))
    curve.set(xlabel="letters read", title="by length, with 10th to 90th percentile")
    ends.set(title=f"mean over letters {right.shape[-1] // 2 + 1} to {right.shape[-1]}, every seed")
    labels = [name.replace(" run", "\nrun") for name in found["names"]]
    ends.set_xticks(range(len(labels)), labels, fontsize=9)
    ends.set_xlim(-0.5, len(labels) - 0.5)
    curve.legend(fontsize=8, loc="lower left")
    return figure


CLAIM = Claim(
    row="G6",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
