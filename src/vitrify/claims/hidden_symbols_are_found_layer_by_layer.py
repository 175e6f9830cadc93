r"""A deep convolutional net classifies a random hierarchy from about $n_c m^L$ rows on, layer by hidden level.

Statement: the class of a Random Hierarchy Model ($n_c$ classes, $m$ productions per symbol, $L$ levels) is learned by a
hierarchical convolutional net of $L$ layers from a few times $P^* = n_c m^L$ training rows, whatever $m$ and $L$ are.
From there on the net stands for the hidden symbols: layer $h + 1$ no longer tells the productions of a symbol of height
$h$ apart (for $h = L$ it is the readout), while layer $h$ still does; and this comes about in all hidden layers with
nearly the same number of rows.
Why: with $P^*$ rows the correlations of pairs of leaves with the class exceed those of a sample; they are the same for
synonyms, so that a gradient brings the channels of synonyms together in the next layer, and what is left is the same
problem with one level less, which has stronger correlations.
Checked: at training sets of $P^*/2$ to $8P^*$ rows, the test error; and how far a layer moves when all productions of a
height are exchanged for synonyms, over how far it moves when the symbols are exchanged for other symbols. The error
must be at least 0.30 with $P^*$ rows and at most 0.12 with $4P^*$, and the number of rows with 10 % error, over $P^*$,
within a factor 2 for all models. Layer $h + 1$ must move at least 0.7 times as far with $P^*/2$ rows and at most half
as far with $8P^*$, layer $h$ at least half as far; the rows at which layer $h + 1$ moves half as far must be within a
factor 2 for all hidden layers (the readout follows with up to 2.2 times as many). The network that is built for the
grammar, one channel per rule, stands beside it: it moves by 0, and errs never. A few training rows may be tested on
too, one in ten at most.
Source: Cagnetta, Petrini, Tomasini, Favero and Wyart 2024, arXiv 2307.02129 [A] for $n_c m^L$ and the invariance to
synonyms; in the spirit of its experiments; the thresholds and the measure are ours.
Saboteur: the net reads the leaves in another order, so that no filter sees what belongs together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._hierarchies import Learner, reached
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.hierarchy import hierarchy_cnn
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.program import TEST_SEED
from vitrify.learn.recipe import Recipe
from vitrify.learn.resampling import Layers, moved
from vitrify.sandboxes.catalogue import Row, rows
from vitrify.sandboxes.hierarchy import Hierarchy
from vitrify.spec.grammars import random_hierarchy

TIMES = (0.5, 1.0, 2.0, 4.0, 8.0)  # training rows, in units of n_c m^L
BEFORE, AFTER = 0.30, 0.12  # test errors with P* and with 4 P* rows
TENTH = 0.10
APART, TOGETHER = 0.7, 0.5  # how far the layer above moves for synonyms: before, and after
ALIKE = 2.0  # the largest factor between models, and between hidden layers
MOST_SEEDS = 7 / 8
SHUFFLED = 1


@dataclass(frozen=True)
class Classes:
    """Models, each as v, m and L, and how the same family of nets is trained on all of them."""

    models: tuple[tuple[int, int, int], ...]
    family: HierarchicalFamily
    recipe: Recipe
    seeds: tuple[int, ...] = tuple(range(8))

    def boxes(self) -> list[Hierarchy]:
        """The sandbox of each model, with a grammar for every seed."""
        return [Hierarchy(v=v, m=m, L=L, mode="classify", grammars=len(self.seeds)) for v, m, L in self.models]


def subjects() -> Iterator[Subject]:
    """Eight symbols, three levels, three or four productions."""
    recipe = Recipe(steps=400, batch=64, lr=6e-3, weight_decay=0.3, test_rows=1024, marks=0)
    settings = Classes(((8, 3, 3), (8, 4, 3)), HierarchicalFamily(channels=64), recipe)
    yield Subject("v = 8, m = 3 and 4, L = 3", data={"settings": settings})


def paper() -> Iterator[Subject]:
    """Sixteen symbols: more productions, or one level more."""
    recipe = Recipe(steps=2000, batch=128, lr=3e-3, weight_decay=0.3, test_rows=4096, marks=0)
    settings = Classes(((16, 4, 3), (16, 8, 3), (16, 4, 4)), HierarchicalFamily(channels=256), recipe)
    yield Subject("v = 16, m = 4 and 8, L = 3 and 4", data={"settings": settings})


def check(subject: Subject) -> Evidence:
    """Errors, and how far layers move, over training sets of several sizes."""
    settings: Classes = subject.data["settings"]
    found = {_name(box): _trained(box, settings) for box in settings.boxes()}
    error = {name: np.array(one["error"]) for name, one in found.items()}  # [size, seed]
    above = {name: _above(np.array(one["moved"])) for name, one in found.items()}  # [size, seed, height]
    below = {name: _diagonal(np.array(one["moved"]), 0) for name, one in found.items()}
    tenth = [reached(TIMES, each.mean(axis=1), TENTH) for each in error.values()]
    half = {name: [reached(TIMES, each, TOGETHER) for each in own.mean(axis=1).T] for name, own in above.items()}
    one, four = TIMES.index(1.0), TIMES.index(4.0)
    asked = [
        Asked("test error with P* rows", _all(error, one), least=BEFORE, share=MOST_SEEDS),
        Asked("test error with 4 P* rows", _all(error, four), most=AFTER, share=MOST_SEEDS),
        Asked("rows with 10 % error over P*: most over least, of the models", [max(tenth) / min(tenth)], most=ALIKE),
        Asked("how far layer h + 1 moves for synonyms of height h, P*/2 rows", _all(above, 0), least=APART, share=0.9),
        Asked("the same, 8 P* rows", _all(above, -1), most=TOGETHER, share=0.9),
        Asked("how far layer h moves, 8 P* rows", _all(below, -1), least=TOGETHER, share=0.9),
        Asked(
            "rows where layer h + 1 moves half as far: most over least, of the hidden layers",
            [max(each[:-1]) / min(each[:-1]) for each in half.values()],
            most=ALIKE,
        ),
        Asked(
            "how far layer h + 1 of the built net moves", _all({n: o["built moved"] for n, o in found.items()}), most=0
        ),
        Asked("test error of the built net", [o["built error"] for o in found.values()], most=0),
    ]
    notes = [
        f"{name}: P* = {one['star']}, 10 % error with {at:.2f} P* rows; layer h + 1 moves half as far with "
        + ", ".join(f"{each:.2f}" for each in half[name])
        + " P* rows, h = 1, 2, …"
        for (name, one), at in zip(found.items(), tenth, strict=True)
    ]
    return decided(
        asked,
        domain=f"{', '.join(found)}; {len(settings.seeds)} grammars each, {TIMES[0]:g} to {TIMES[-1]:g} times P* rows",
        seed=settings.seeds[0],
        shown=found,
        notes=notes,
    )


def _name(box: Hierarchy) -> str:
    return f"v = {box.v}, m = {box.m}, L = {box.L}"


def _all(values: Mapping[str, Any], *at: int) -> list[float]:
    """The values of all models at a size, as one list."""
    return [float(each) for own in values.values() for each in np.asarray(own)[at].reshape(-1)]


def _diagonal(far: Any, shift: int) -> Any:
    """Of [..., height, layer] those of the layer `shift` above the height: [..., height]."""
    return np.diagonal(far[..., shift : far.shape[-2] + shift], axis1=-2, axis2=-1)


def _above(far: Any) -> Any:
    return _diagonal(far, 1)


@cache
def _trained(box: Hierarchy, settings: Classes) -> dict[str, Any]:
    """The test errors [size, seed] and how far layers move [size, seed, height, layer]; of the built net too."""
    star, family = box.roots * box.m**box.L, settings.family
    runs = Learner(family, settings.recipe, tuple(round(star * x) for x in TIMES)).runs(box, settings.seeds)
    net = family.architecture(box)

    def layers(arrays: Mapping[str, Array], row: Row) -> list[Array]:
        seen: dict[str, Array] = {}
        logits = family.logits(net, box, arrays, row, seen.__setitem__)
        return [*(seen[f"conv.{k}.hook_post"] for k in range(box.L)), logits]

    far = moved(box, layers)
    built, error = _built(box)
    return {
        "star": star,
        "error": [[1 - run.last["accuracy"] for run in own] for own in runs],
        "moved": np.round(
            [[far(dict(run.weights.arrays), seed) for seed, run in enumerate(own)] for own in runs], 3
        ).tolist(),
        "built moved": _above(built).tolist(),
        "built error": error,
    }


def _built(box: Hierarchy) -> tuple[Any, float]:
    """How far the layers of the net that is built for the first grammar move, and its test error."""
    weights = hierarchy_cnn(random_hierarchy(box.v, box.m, box.s, box.L, seed=box.task, classes=box.roots))
    net, arrays = weights.architecture, {name: jnp.asarray(array) for name, array in weights.arrays.items()}
    planes = np.array([box.symbols.index(symbol) for symbol in net.symbols])
    one = replace(box, grammars=1)

    def run(arrays: Mapping[str, Array], row: Row) -> tuple[Array, list[Array]]:
        seen: dict[str, Array] = {}
        inputs = jnp.swapaxes(jax.nn.one_hot(row.tokens, box.v)[..., planes], 1, 2)[:, :, None]
        logits = net.forward(arrays, inputs, record=seen.__setitem__)
        return logits, [*(seen[f"conv.{k}.hook_post"] for k in range(box.L)), logits]

    layers: Layers = lambda arrays, row: run(arrays, row)[1]  # noqa: E731
    row = rows(one, TEST_SEED, "test", 0, 512)
    names = np.array([box.answers.index(name) if name in box.answers else -1 for name in net.output.symbols])
    said = names[np.asarray(run(arrays, row)[0].argmax(axis=-1))]
    return moved(one, layers)(arrays, 0), float((said != np.asarray(row.targets[:, -1])).mean())


def sabotage(subject: Subject) -> Subject:
    """Filters over leaves that do not belong together."""
    settings: Classes = subject.data["settings"]
    broken = replace(settings, family=replace(settings.family, order=SHUFFLED))
    return Subject(f"{subject.name}, shuffled", data={"settings": broken})


def draw(shown: Mapping[str, Any]) -> Any:
    """Errors over rows in units of P*, for all models; how far layers move, for each of them."""
    from vitrify.learn.figures import band, level, sheet

    models = [(name, one) for found in shown.values() for name, one in found.items()]
    figure, planes = sheet(1, 1 + len(models), "Classes of a random hierarchy: rows, errors and hidden symbols")
    errors, *layers = planes[0]
    for number, (name, one) in enumerate(models):
        band(errors, TIMES, np.array(one["error"]).T, f"{name}, P* = {one['star']}", f"C{number}", marker="o")
    level(errors, TENTH, "10 %", at=0.01)
    errors.set(ylabel="test error", ylim=(0, 1), title="test error")
    for plane, (name, one) in zip(layers, models, strict=True):
        far = np.array(one["moved"])  # [size, seed, height, layer]
        for height in range(far.shape[2]):
            where = f"layer {height + 2}" if height + 1 < far.shape[2] else "readout"
            colour = f"C{height}"
            band(plane, TIMES, far[:, :, height, height + 1].T, f"height {height + 1}, {where}", colour, marker="o")
            band(plane, TIMES, far[:, :, height, height].T, f"height {height + 1}, layer {height + 1}", colour, ls=":")
        level(plane, 0.0, "built net, layer h + 1")
        plane.set(ylabel="moves for synonyms / for symbols", ylim=(-0.05, 1.7), title=name)
    for plane in planes[0]:
        plane.set_xscale("log", base=2)
        plane.set_xlabel("training rows / P*, P* = classes · m^L")
        plane.legend(fontsize=7, loc="upper right", ncols=1 if plane is errors else 2)
    return figure


CLAIM = Claim(
    row="L13",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
