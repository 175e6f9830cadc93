r"""Three layers learn to select in context which lag a row follows, and one layer does not.

Statement: one kernel is known, and each row follows it at a lag of its own, $x_t \sim P(\cdot \mid x_{t-\ell})$.
Attention-only transformers of three layers come near the Bayes mean over lags, which weighs each lag by how probable it
makes the row so far; one layer stays far above it, though below a mean that ignores the row, and stops improving.
Why: to weigh a lag one must look at pairs of symbols, sum their logarithms over the row, and choose by the sums: a
layer each. The scores of one layer compare the present symbol with single earlier ones, never two earlier ones.
Checked: over seeds, the KL from the Bayes predictor in the second halves of rows, for three layers and for one: the
first below a bound and a part of the second, the second above a bound and flat over its last third. The rate is
constant; at quick scale one layer gets five times as many steps as three (with three times as many, 6 seeds of 8 were
flat).
Source: D'Angelo, Croce, Flammarion 2025, arXiv 2509.08184 [S]; the sizes and bounds are ours.
Saboteur: a single layer is put forward in the place of three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.measure import divergence, log_probabilities
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.catalogue import Row, rows
from vitrify.sandboxes.interleaved import Interleaved

DEEP = 0.13  # nats: the KL of three layers, at most
PART = 0.65  # of the KL of one layer, at most
SHALLOW = 0.15  # nats: the KL of one layer, at least
FLAT = 0.01  # nats that one layer may still gain in its last third
LAYERS = (3, 1)


@dataclass(frozen=True)
class Setting:
    """What is trained, at each depth."""

    sandbox: Interleaved
    family: TransformerFamily
    recipe: Recipe
    patience: int = 1  # how many times as many steps one layer gets
    members: int = 8
    layers: tuple[int, int] = LAYERS


def subjects() -> Iterator[Subject]:
    family = TransformerFamily(heads=1, d_model=32, units=0, positions="relative")
    recipe = Recipe(steps=800, batch=32, lr=4e-3, test_rows=256, marks=8)
    sandbox = Interleaved(states=3, lags=(1, 2, 3), length=32, alpha=0.3, task=1)
    yield Subject("interleaved", data={"setting": Setting(sandbox, family, recipe, patience=5)})


def paper() -> Iterator[Subject]:
    family = TransformerFamily(heads=1, d_model=64, units=0, positions="relative")
    recipe = Recipe(steps=8000, batch=64, lr=1e-3, test_rows=256, marks=8)
    sandbox = Interleaved(states=3, lags=(1, 2, 3), length=64, alpha=0.3, task=1)
    yield Subject("interleaved", data={"setting": Setting(sandbox, family, recipe)})


def sabotage(subject: Subject) -> Subject:
    return Subject(subject.name, data={"setting": replace(subject.data["setting"], layers=(1, 1))})


def late(sandbox: Interleaved, row: Row, said: Array) -> Array:
    """The mean KL from the Bayes predictor to log-probabilities [row, question, symbol], in second halves of rows."""
    each = divergence(jax.vmap(sandbox.optimal)(row), said)
    return each[:, each.shape[1] // 2 :].mean()


def _known(sandbox: Interleaved, count: int) -> dict[str, float]:
    """The same for known predictors: all lags alike, and how often symbols come."""
    row = rows(sandbox, 0, "probe", 0, count)
    known = {"lags": sandbox.mean, "unigram": sandbox.unigram}
    return {name: float(late(sandbox, row, jax.vmap(predictor)(row))) for name, predictor in known.items()}


@lru_cache(maxsize=4)
def _curves(sandbox: Interleaved, family: TransformerFamily, recipe: Recipe, members: int) -> tuple[list[float], Array]:
    """The marked steps, and the KL of every member there [member, mark]."""

    def probe(net: Any, arrays: Any, row: Row, seen: Any) -> Array:
        del arrays
        return late(sandbox, row, log_probabilities(seen["hook_logits"][:, net.pads - 1 :]))

    runs = train(family, sandbox, members=members, recipe=recipe, probes={"late": probe})
    return [point["step"] for point in runs[0].curve], np.array([[p["late"] for p in run.curve] for run in runs])


def check(subject: Subject) -> Evidence:
    setting: Setting = subject.data["setting"]
    sandbox, recipe, family = setting.sandbox, setting.recipe, setting.family
    longer = replace(recipe, steps=setting.patience * recipe.steps)
    (few, deep), (steps, shallow) = (
        _curves(sandbox, replace(family, layers=layers), longer if layers == 1 else recipe, setting.members)
        for layers in setting.layers
    )
    three, one = deep[:, -1], shallow[:, -1]
    third = int(np.searchsorted(steps, 2 * steps[-1] / 3, side="right")) - 1  # the last mark before its last third
    asked = [
        Asked("KL of three layers", three.tolist(), most=DEEP),
        Asked("that, over the mean KL of one layer", (three / one.mean()).tolist(), most=PART),
        Asked("KL of one layer", one.tolist(), least=SHALLOW),
        Asked("what one layer gained in its last third", (shallow[:, third] - one).tolist(), most=FLAT),
    ]
    shown = {
        "steps": {"3": few, "1": steps},
        "curves": {"3": deep, "1": shallow},
        "known": _known(sandbox, recipe.test_rows),
        "members": setting.members,
    }
    where = f"{sandbox.identity()}, attention only, d_model {family.d_model}"
    return decided(asked, domain=f"{setting.members} seeds of each depth on {where}", seed=0, shown=shown)


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import band, by_step, level, sheet

    (found,) = shown.values()
    figure, planes = sheet(1, 1, "Which lag does this row follow?", width=6.4, height=4.2)
    plane = planes[0, 0]
    for layers, colour in ((1, "C3"), (3, "C0")):
        label = f"{layers} layer{'s' if layers > 1 else ''} ({found['members']} seeds)"
        band(plane, found["steps"][str(layers)], found["curves"][str(layers)], label, colour)
    names = {"lags": "all lags alike, whatever the row", "unigram": "how often symbols come"}
    for name, value in found["known"].items():
        level(plane, value, names[name], at=0.01)
    level(plane, DEEP, "asked of three layers", colour="C0", at=0.01)
    level(plane, SHALLOW, "one layer stays above", colour="C3", at=0.99)
    by_step(plane)
    plane.set(ylabel="KL from the Bayes predictor (nats per symbol)", ylim=(0, None))
    plane.legend(fontsize=8)
    return figure


CLAIM = Claim(
    row="L8",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
