"""Random n-gram models: regression of the KL on their sizes, add-λ counts to compare networks with, and nulls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import jax
import numpy as np

from vitrify.arrays import Array, Floats, Ints
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import Trial, measured
from vitrify.learn.figures import band
from vitrify.learn.measure import TEST_SEED
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.catalogue import Split, examples
from vitrify.sandboxes.ngram_family import NGramFamily

EFFECTS = {"n": "order n", "ln |Σ|": "alphabet |Σ|", "R": "rank R"}  # regressor, and axis label
LAMBDAS = tuple(float(x) for x in np.logspace(-3, 1, 25))
SPLITS: tuple[Split, Split] = ("train", "probe")  # for the counts, and for choosing λ

Cell: TypeAlias = tuple[int, int, int]  # order, alphabet, rank


def _net(heads: int, d_model: int, layers: int) -> TransformerFamily:
    return TransformerFamily(layers=layers, heads=heads, d_model=d_model, d_head=8, units=d_model, positions="relative")


def grid_subject(
    factors: Mapping[str, tuple[int, ...]],
    length: int,
    recipe: Recipe,
    seeds: Sequence[int],
    *,
    d_model: int,
    layers: int,
) -> Subject:
    """Return the subject of all combinations of orders, alphabets and ranks, with one model per seed."""
    cells: list[Cell] = list(product(*factors.values()))  # type: ignore[arg-type]
    n, states, rank = cells[-1]
    box = NGramFamily(n, states, rank, length=length, n=n, used=states, rank=rank)
    axes: Mapping[str, Sequence[tuple[int, ...]]] = {"n,used,rank": cells, "task,seed": _models(seeds)}
    trial = Trial(box, _net(n - 1, d_model, layers), recipe, seeds, axes)
    return Subject("grid", data={**factors, "length": length, "cells": cells}, trials={"grid": trial})


def counts_subject(
    states: int, length: int, recipe: Recipe, seeds: Sequence[int], *, d_model: int, layers: int
) -> Subject:
    """Return the subject of networks trained on a finite set of strings, for both families of models."""
    box, axes = NGramFamily(4, states, 4, length=length, n=4, used=states, rank=4), {"task,seed": _models(seeds)}
    boxes = {"general": replace(box, family="general"), "shared": replace(box, family="shared")}
    net = _net(4, d_model, layers)
    trials = {name: Trial(own, net, recipe, seeds, axes) for name, own in boxes.items()}
    data = {"strings": recipe.train_examples, "length": length, "n": 4, "states": states}
    return Subject("counts", data=data, trials=trials)


def _models(seeds: Sequence[int]) -> list[tuple[int, int]]:
    """Return a model, by its task, and a network for each seed."""
    return [(seed, seed) for seed in seeds]


def measure(subject: Subject) -> Measured:
    """Return the curves, and beside networks that were trained on a set of strings the KL of counts of these."""
    arrays = dict(measured(subject))
    for name, trial in subject.trials.items():
        if trial.recipe.train_examples:
            arrays[f"{name}/counts"] = smoothed(trial.sandbox, tuple(trial.seeds), trial.recipe)
    return arrays


def design(cells: Sequence[Cell]) -> Floats:
    """Return the regressors [cell, 4]: a constant, n, ln |Σ|, R."""
    return np.array([(1.0, n, np.log(used), rank) for n, used, rank in cells])


def fitted(cells: Sequence[Cell], kl: Array) -> tuple[Array, float]:
    """Return the effects [seed, factor] on ln KL [cell, seed], and the explained share of the variance."""
    table, height = design(cells), np.log(kl)
    effects = np.linalg.lstsq(table, height)[0]
    residual = height - table @ effects
    return effects[1:].T, float(1 - residual.var() / height.var())


def stopped(curves: Array) -> Floats:
    """Return the KL [seed] of curves [seed, step] at the step that is best for the other seeds."""
    logs = np.log(curves)
    others = logs.sum(axis=0) - logs
    return np.take_along_axis(curves, others.argmin(axis=1)[:, None], axis=1)[:, 0]


def smoothed(box: NGramFamily, seeds: tuple[int, ...], recipe: Recipe) -> Floats:
    r"""Return the KL per symbol from the model of each seed to add-$\lambda$ counts of its training strings.

    The $\lambda$ is the one with the least loss on as many strings of the probe split.
    """
    strings = int(recipe.train_examples or 0)
    known, others = (_contexts(box, seeds, seeds, split, strings) for split in SPLITS)
    queries = _contexts(box, seeds, [TEST_SEED] * len(seeds), "test", recipe.test_examples)
    kl = []
    for at in range(len(seeds)):
        counts = ContextCounts(known[0][at], known[1][at], box.states)
        contexts, right, _ = (part[at] for part in others)
        losses = [-np.take_along_axis(counts(contexts, x), right[..., None], axis=-1).mean() for x in LAMBDAS]
        contexts, _, best = (part[at] for part in queries)
        kl.append((np.exp(best) * (best - counts(contexts, LAMBDAS[int(np.argmin(losses))]))).sum(axis=-1).mean())
    return np.array(kl)


class ContextCounts:
    """Counts of each symbol after each context in some strings."""

    def __init__(self, contexts: Ints, symbols: Ints, states: int) -> None:
        self.listed, at = np.unique(contexts.reshape(-1), return_inverse=True)
        self.counts = np.zeros((len(self.listed) + 1, states))  # the last entry is for unseen contexts
        np.add.at(self.counts, (at, symbols.reshape(-1)), 1.0)

    def __call__(self, contexts: Ints, weight: float) -> Array:
        """Return the log-probabilities after contexts, with `weight` added to every count."""
        index = np.minimum(np.searchsorted(self.listed, contexts), len(self.listed) - 1)
        own = self.counts[np.where(self.listed[index] == contexts, index, len(self.listed))] + weight
        return np.log(own / own.sum(axis=-1, keepdims=True))


def _contexts(
    box: NGramFamily, tasks: Sequence[int], seeds: Sequence[int], split: Split, count: int
) -> tuple[Ints, Ints, Floats]:
    """Return contexts as integers and symbols after them, [model, string, query], and the true log-probabilities."""

    def strings(task: Array, seed: Array) -> tuple[Array, Array, Array]:
        model = replace(box, task=task)
        row = examples(model, seed, split, 0, count)
        return jax.vmap(model.contexts)(row.tokens), row.targets, jax.vmap(model.optimal)(row)

    drawn = jax.jit(jax.vmap(strings))(np.array(tasks, np.float32), np.array(seeds, np.uint32))
    contexts, symbols, best = (np.asarray(part) for part in drawn)
    base = (box.states + 1) ** np.arange(contexts.shape[-1], dtype=np.int64)
    return (contexts.astype(np.int64) * base).sum(axis=-1), symbols, best.astype(np.float64)


# Null hypotheses


def without_effect(subject: Subject, arrays: Measured, rng: np.random.Generator, *, name: str) -> Measured:
    """Return measurements in which a factor has no effect in the mean; seeds differ as measured, with random signs."""
    kl, regressors = arrays["grid/kl"], design(subject.data["cells"])
    at = list(EFFECTS).index(name)
    own = fitted(subject.data["cells"], kl[..., -1])[0][:, at]  # [seed]
    sign = rng.choice([-1.0, 1.0], size=len(own))
    changed = np.multiply.outer(regressors[:, at + 1] - regressors[:, at + 1].mean(), sign * (own - own.mean()) - own)
    return {**arrays, "grid/kl": kl * np.exp(changed)[..., None]}


def equally_good(subject: Subject, arrays: Measured, rng: np.random.Generator, *, family: str) -> Measured:
    """Return measurements in which networks are as good as counts in the geometric mean over redrawn seeds."""
    del subject
    curves, counts = arrays[f"{family}/kl"], arrays[f"{family}/counts"]
    factor = np.exp(np.mean(np.log(counts / stopped(curves))))
    drawn = rng.integers(len(counts), size=len(counts))
    return {**arrays, f"{family}/kl": factor * curves[drawn], f"{family}/counts": counts[drawn]}


def draw_effects(row: Sequence[Array], data: Mapping[str, Array]) -> None:
    """Draw the KL over each factor, one band for each combination of the others, and the fitted effect."""
    cells, kl, line = (np.array(data[name], dtype=float) for name in ("cells", "kl", "line"))
    middle = design([(n, used, rank) for n, used, rank in cells]).mean(axis=0)
    for axes, at, (name, factor) in zip(row, range(3), EFFECTS.items(), strict=True):
        others = [column for column in range(3) if column != at]
        for number, fixed in enumerate(np.unique(cells[:, others], axis=0)):
            chosen = (cells[:, others] == fixed).all(axis=1)
            band(axes, cells[chosen, at].tolist(), kl[chosen].T, "", f"C{number % 10}", linewidth=0.8, alpha=0.7)
        across = np.unique(cells[:, at])
        scaled = np.log(across) if at == 1 else across
        fit = np.exp(middle @ line + line[at + 1] * (scaled - middle[at + 1]))
        effect, low, high = data["effects"][name]
        axes.plot(across, fit, "k--", linewidth=2, label=f"fit: {effect:.2f} [{low:.2f}, {high:.2f}]")
        axes.set(yscale="log", xlabel=factor, ylabel="KL (nats per symbol)")
        axes.legend(fontsize=8, title=f"change of ln KL per unit of {name}", title_fontsize=8)
    row[1].set_xscale("log", base=2)
