r"""Transformers learn random n-gram models the worse the longer, the larger and the richer these are.

Statement: of n-gram models whose contexts share parameters, transformers of one size and training learn those with
larger $n$, larger alphabet $|\Sigma|$ and larger rank $R$ worse: $\ln \mathrm{KL}$ grows with $n$, with $\ln|\Sigma|$
and with $R$. From few strings, counts with add-$\lambda$ smoothing beat a transformer where every context has a law of
its own, and a transformer beats counts where contexts share parameters.
Why: $n$ and $|\Sigma|$ say how many vectors there are to learn, $R$ how many numbers each has. Counts need every
context to come up by itself, which a law of its own needs too; shared parameters are seen in every string.
Checked: a grid of $(n, |\Sigma|, R)$, a model of its own for every seed, all members one program; the exact KL per
symbol from the model to the transformer after as many steps, and for each seed a linear regression of its logarithm;
the intervals of its coefficients are bootstrapped over seeds, and must lie above 0. And both families from one finite
set of strings: least KL along the curve against add-$\lambda$ with the best $\lambda$ on other strings, with the ratios
asked for: below 0.6 (counts, laws of their own), below 0.9 and on average 0.7 (transformer, shared).
Source: Svete, Borenstein, Zhou, Augenstein & Cotterell 2024, arXiv 2410.03001 [S]: the factors, and who wins where; in
the spirit of their experiments, whose sizes were not read. The thresholds are ours.
Saboteur: all models of the grid are bigram models, whatever $n$ is said to be; the two families change places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, Literal

import jax
import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.program import TEST_SEED
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.catalogue import Split, rows
from vitrify.sandboxes.ngram_family import NGramFamily

EFFECTS = ("n", "ln |Σ|", "R")
LAMBDAS = tuple(float(x) for x in np.logspace(-3, 1, 25))
DRAWS = 2000
FAMILIES: tuple[Literal["general"], Literal["shared"]] = ("general", "shared")
SPLITS: tuple[Split, Split] = ("train", "probe")  # what is counted, and what the weight is chosen on
GENERAL, SHARED, MEAN = 0.6, 0.9, 0.7  # the largest ratios of the winner's KL to the other's


@dataclass(frozen=True)
class Grid:
    """Orders, alphabets and ranks; one that is `flat` has bigram models only."""

    orders: tuple[int, ...]
    alphabets: tuple[int, ...]
    ranks: tuple[int, ...]
    length: int
    family: TransformerFamily
    recipe: Recipe
    members: int = 8
    flat: bool = False

    @property
    def cells(self) -> list[tuple[int, int, int]]:
        """All combinations."""
        return list(product(self.orders, self.alphabets, self.ranks))

    def box(self) -> NGramFamily:
        """The sandbox of the largest cell."""
        n, states, rank = self.cells[-1]
        return NGramFamily(n, states, rank, length=self.length, n=n, used=states, rank=rank)


@dataclass(frozen=True)
class Rivals:
    """A finite set of strings of one order and alphabet, and the families of models that either side should win."""

    box: NGramFamily
    family: TransformerFamily
    recipe: Recipe
    members: int = 8
    turned: bool = False


def _grid(orders: Any, alphabets: Any, ranks: Any, length: int, size: int, layers: int, **training: Any) -> Grid:
    family = TransformerFamily(
        layers=layers, heads=max(orders) - 1, d_model=size, d_head=8, units=size, positions="relative"
    )
    recipe = Recipe(schedule="cosine", lr=3e-3, marks=0, **training)
    return Grid(orders, alphabets, ranks, length, family, recipe)


def _rivals(states: int, length: int, strings: int, size: int, layers: int, **training: Any) -> Rivals:
    box = NGramFamily(4, states, 4, length=length, n=4, used=states, rank=4)
    family = TransformerFamily(layers=layers, heads=4, d_model=size, d_head=8, units=size, positions="relative")
    recipe = Recipe(train_rows=strings, weight_decay=0.1, marks=2, **training)
    return Rivals(box, family, recipe)


def subjects() -> Iterator[Subject]:
    """Two values of each factor; strings over 12 symbols."""
    grid = _grid((2, 5), (4, 12), (1, 6), 20, 32, 1, steps=250, batch=16, test_rows=128)
    yield Subject("grid", data={"settings": grid})
    yield Subject("counts", data={"settings": _rivals(12, 32, 270, 32, 1, steps=256, batch=16, lr=2e-2, test_rows=128)})


def paper() -> Iterator[Subject]:
    """24 cells in one program; strings over 16 symbols."""
    grid = _grid((2, 4, 6, 8), (8, 16, 64), (2, 16), 64, 64, 2, steps=1500, batch=32, test_rows=512)
    yield Subject("grid", data={"settings": grid})
    yield Subject(
        "counts", data={"settings": _rivals(16, 64, 600, 64, 2, steps=1500, batch=32, lr=3e-3, test_rows=512)}
    )


def check(subject: Subject) -> Evidence:
    """Effects over the grid, or both families against counts."""
    settings = subject.data["settings"]
    return _effects(settings) if isinstance(settings, Grid) else _contest(settings)


# The grid


def _effects(grid: Grid) -> Evidence:
    cells = grid.cells
    points = [
        (2 if grid.flat else n, used, rank, seed, seed) for n, used, rank in cells for seed in range(grid.members)
    ]
    runs = train(grid.family, grid.box(), axes={"n,used,rank,task,seed": points}, recipe=grid.recipe)
    kl = np.array([run.last["kl"] for run in runs]).reshape(len(cells), grid.members)
    each, explained = fitted(cells, kl)
    low, high = bootstrapped(each)
    spans = np.ptp(design(cells)[:, 1:], axis=0)
    return decided(
        [
            Asked(f"least effect of {name} on ln KL, 95 %", [float(low[at])], least=1e-9)
            for at, name in enumerate(EFFECTS)
        ],
        domain=f"{len(cells)} cells: n {grid.orders}, |Σ| {grid.alphabets}, R {grid.ranks}; {grid.members} seeds each",
        seed=0,
        shown={
            "cells": cells,
            "kl": kl,
            "effects": {
                name: [float(each[:, at].mean()), float(low[at]), float(high[at])] for at, name in enumerate(EFFECTS)
            },
            "spans": {name: float(each[:, at].mean() * spans[at]) for at, name in enumerate(EFFECTS)},
            "line": _mean_line(cells, kl),
        },
        notes=[_told(each, low, high, spans), f"the regression explains {explained:.2f} of the variance"],
    )


def _told(each: Any, low: Any, high: Any, spans: Any) -> str:
    """The effects in words: per unit, and over the whole range."""
    mean = each.mean(axis=0)
    times = np.exp(mean * spans)
    return "; ".join(
        f"{name}: {mean[at]:.3f} [{low[at]:.3f}, {high[at]:.3f}], KL {times[at]:.2g} times over its range"
        for at, name in enumerate(EFFECTS)
    )


def design(cells: Sequence[tuple[int, int, int]]) -> Any:
    """The regressors [cell, 4]: a constant, n, ln |Σ|, R."""
    return np.array([(1.0, n, np.log(used), rank) for n, used, rank in cells])


def fitted(cells: Sequence[tuple[int, int, int]], kl: Any) -> tuple[Any, float]:
    """The effects [seed, factor] on ln KL [cell, seed], and the explained part of the variance, over all seeds."""
    table, height = design(cells), np.log(kl)
    found = np.linalg.lstsq(table, height)[0]
    rest = height - table @ found
    return found[1:].T, float(1 - rest.var() / height.var())


def _mean_line(cells: Sequence[tuple[int, int, int]], kl: Any) -> list[float]:
    return [float(x) for x in np.linalg.lstsq(design(cells), np.log(kl).mean(axis=1))[0]]


def bootstrapped(each: Any, draws: int = DRAWS, seed: int = 0) -> tuple[Any, Any]:
    """Intervals of 95 % for the means of [seed, factor] under drawing seeds again."""
    again = np.random.default_rng(seed).integers(len(each), size=(draws, len(each)))
    low, high = np.quantile(each[again].mean(axis=1), [0.025, 0.975], axis=0)
    return low, high


# Against counts


@cache
def _fought(settings: Rivals) -> dict[str, Any]:
    """Both families, learned and counted."""
    found: dict[str, Any] = {}
    for family in FAMILIES:
        box = replace(settings.box, family=family)
        axes = {"task,seed": [(seed, seed) for seed in range(settings.members)]}
        runs = train(settings.family, box, axes=axes, recipe=settings.recipe)
        curves = [[point["kl"] for point in run.curve] for run in runs]
        found[family] = {
            "steps": [point["step"] for point in runs[0].curve],
            "curves": curves,
            "transformer": [min(curve) for curve in curves],
            "counts": smoothed(box, range(settings.members), settings.recipe),
            "uniform": float(np.mean([run.last["floor.uniform"] - run.last["floor"] for run in runs])),
        }
    return found


def _contest(settings: Rivals) -> Evidence:
    found = _fought(replace(settings, turned=False))  # who is right does not change what they say
    if settings.turned:
        found = {"general": found["shared"], "shared": found["general"]}
    general = _ratios(found["general"], "counts", "transformer")
    shared = _ratios(found["shared"], "transformer", "counts")
    box = settings.box
    return decided(
        [
            Asked("laws of their own: KL of counts over that of the transformer", general, most=GENERAL),
            Asked("shared parameters: KL of the transformer over that of counts", shared, most=SHARED),
            Asked("shared parameters: the same, mean", [float(np.mean(shared))], most=MEAN),
        ],
        domain=f"{settings.recipe.train_rows} strings of {box.length} symbols, n = {box.n:g}, |Σ| = {box.states}, "
        f"{settings.members} seeds of each family",
        seed=0,
        shown=found,
    )


def _ratios(found: Mapping[str, Any], above: str, below: str) -> list[float]:
    return [float(one / two) for one, two in zip(found[above], found[below], strict=True)]


def smoothed(box: NGramFamily, seeds: Sequence[int], recipe: Recipe) -> list[float]:
    r"""The KL per symbol from the model of each seed to add-$\lambda$ counts of its training strings.

    The $\lambda$ is the one with the least loss on as many strings of the probe split.
    """
    strings = int(recipe.train_rows or 0)
    known, others = (_looked_up(box, seeds, seeds, split, strings) for split in SPLITS)
    asked = _looked_up(box, seeds, [TEST_SEED] * len(seeds), "test", recipe.test_rows)
    found = []
    for at in range(len(seeds)):
        said = Counts(known[0][at], known[1][at], box.states)
        contexts, right, _ = (part[at] for part in others)
        losses = [-np.take_along_axis(said(contexts, x), right[..., None], axis=-1).mean() for x in LAMBDAS]
        contexts, _, best = (part[at] for part in asked)
        theirs = said(contexts, LAMBDAS[int(np.argmin(losses))])
        found.append(float((np.exp(best) * (best - theirs)).sum(axis=-1).mean()))
    return found


class Counts:
    """How often each symbol came after each context of some strings."""

    def __init__(self, contexts: Any, symbols: Any, states: int) -> None:
        self.listed, at = np.unique(contexts.reshape(-1), return_inverse=True)
        self.counts = np.zeros((len(self.listed) + 1, states))  # the last row is of contexts that never came
        np.add.at(self.counts, (at, symbols.reshape(-1)), 1.0)

    def __call__(self, contexts: Any, weight: float) -> Any:
        """The log-probabilities after contexts, with so much added to every count."""
        place = np.minimum(np.searchsorted(self.listed, contexts), len(self.listed) - 1)
        own = self.counts[np.where(self.listed[place] == contexts, place, len(self.listed))] + weight
        return np.log(own / own.sum(axis=-1, keepdims=True))


def _looked_up(
    box: NGramFamily, tasks: Sequence[int], seeds: Sequence[int], split: Split, count: int
) -> tuple[Any, Any, Any]:
    """Contexts as numbers and the symbols after them, [model, row, question], and the true log-probabilities."""

    def strings(task: Any, seed: Any) -> tuple[Any, Any, Any]:
        model = replace(box, task=task)
        row = rows(model, seed, split, 0, count)
        return jax.vmap(model.contexts)(row.tokens), row.targets, jax.vmap(model.optimal)(row)

    drawn = jax.jit(jax.vmap(strings))(np.array(tasks, np.float32), np.array(seeds, np.uint32))
    contexts, symbols, best = (np.asarray(part) for part in drawn)
    place = (box.states + 1) ** np.arange(contexts.shape[-1], dtype=np.int64)
    return (contexts.astype(np.int64) * place).sum(axis=-1), symbols, best.astype(np.float64)


def sabotage(subject: Subject) -> Subject:
    """Bigram models only, at the corners of the grid; families exchanged."""
    settings = subject.data["settings"]
    if isinstance(settings, Grid):
        n, states, rank = ((each[0], each[-1]) for each in (settings.orders, settings.alphabets, settings.ranks))
        flat = replace(settings, orders=n, alphabets=states, ranks=rank, flat=True)
        return replace(subject, data={"settings": flat})
    return replace(subject, data={"settings": replace(settings, turned=True)})


def draw(shown: Mapping[str, Any]) -> Any:
    """The KL over each factor with the fitted effects, and both families against counts."""
    from vitrify.learn.figures import band, level, sheet

    figure, planes = sheet(2, 3, "Random n-gram models: what makes them hard to learn, and for whom", 4.4, 3.6)
    grid, contest = shown["grid"], shown["counts"]
    cells, kl, line = np.array(grid["cells"], dtype=float), np.array(grid["kl"]), np.array(grid["line"])
    for plane, at, name in zip(planes[0], range(3), EFFECTS, strict=True):
        others = [column for column in range(3) if column != at]
        for number, fixed in enumerate(np.unique(cells[:, others], axis=0)):
            own = (cells[:, others] == fixed).all(axis=1)
            band(plane, cells[own, at].tolist(), kl[own].T, "", f"C{number % 10}", linewidth=0.8, alpha=0.7)
        across = np.unique(cells[:, at])
        middle = design([tuple(row) for row in cells]).mean(axis=0)
        predicted = [middle @ line + line[at + 1] * (_scaled(x, at) - middle[at + 1]) for x in across]
        effect, low, high = grid["effects"][name]
        plane.plot(across, np.exp(predicted), "k--", linewidth=2, label=f"fit: {effect:.2f} [{low:.2f}, {high:.2f}]")
        plane.set_yscale("log")
        if at == 1:
            plane.set_xscale("log", base=2)
        plane.set_xlabel(("order n", "alphabet |Σ|", "rank R")[at])
        plane.set_ylabel("KL (nats per symbol)")
        plane.legend(fontsize=8, title=f"change of ln KL per unit of {name}", title_fontsize=8)
    for plane, (family, title) in zip(
        planes[1], (("general", "laws of their own"), ("shared", "shared parameters")), strict=False
    ):
        one = contest[family]
        band(plane, one["steps"][1:], np.array(one["curves"])[:, 1:], "transformer", "C0")
        level(plane, float(np.mean(one["counts"])), "counts, add-λ", "C1")
        level(plane, one["uniform"], "uniform", at=0.01)
        plane.set_xscale("log")
        plane.set_yscale("log")
        plane.set_title(title, fontsize=10)
        plane.set_xlabel("training step")
        plane.set_ylabel("KL (nats per symbol)")
        plane.legend(fontsize=8)
    plane = planes[1][2]
    for family, colour in (("general", "C3"), ("shared", "C2")):
        plane.plot(contest[family]["counts"], contest[family]["transformer"], "o", color=colour, label=family)
    ends = [value for family in contest.values() for key in ("counts", "transformer") for value in family[key]]
    plane.plot([min(ends), max(ends)], [min(ends), max(ends)], "k:", linewidth=1, label="equal")
    plane.set_xscale("log")
    plane.set_yscale("log")
    plane.set_xlabel("KL of counts (nats per symbol)")
    plane.set_ylabel("KL of transformer (nats per symbol)")
    plane.legend(fontsize=8)
    return figure


def _scaled(value: float, at: int) -> float:
    return float(np.log(value)) if at == 1 else float(value)


CLAIM = Claim(
    row="L12",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
