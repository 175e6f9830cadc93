r"""Causal graphs: how attention and its first gradient reveal the parents, and errors on other kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr

from vitrify.arrays import Array
from vitrify.claims.trials.trial import Trained, Trial
from vitrify.learn.figures import band
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.two_attentions import PLACES, TwoAttentionsFamily
from vitrify.learn.program import Probe
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.catalogue import Example, examples
from vitrify.sandboxes.causal_graph import CausalGraph, parents_of

FAMILY = TwoAttentionsFamily(alike=1.0)  # large enough that noise does not turn the sign of A2
KERNELS, BATCH, MAX_SHOWN = 2000, 1024, 3  # for the information; sequences at once; trees in the figure
MIN_EARLIER = 4  # earlier positions that a rank correlation needs
PREDICTIONS = {  # of the first gradient, with axis labels
    "information": r"$\chi^2$ information with position $j$",
    "passed on": "first-order formula of the gradient",
}


def first_attention(net: object, arrays: object, row: Example, seen: Mapping[str, Array]) -> Array:
    """Return the attention of the first head, averaged over sequences: [query, key]."""
    del net, arrays, row
    return seen["blocks.0.attn.hook_pattern"].mean(axis=0)[0]


PROBES: Mapping[str, Probe] = MappingProxyType({"first": first_attention})


def tree_trial(sandbox: CausalGraph, family: Family, recipe: Recipe) -> Trial:
    """Return the trial [tree, seed] of one net for each tree."""
    return Trial(sandbox, family, recipe, range(1), {"tree": range(sandbox.trees)}, PROBES)


def trials_by_length(sandbox: CausalGraph, recipe: Recipe, lengths: Sequence[int]) -> dict[str, Trial]:
    """Return the trials of two attentions at several lengths, by name."""
    boxes = {f"{length} tokens, trees": replace(sandbox, length=length) for length in lengths}
    return {name: tree_trial(box, FAMILY, recipe) for name, box in boxes.items()}


def parents(sandbox: CausalGraph, tree: int, shift: int) -> Array:
    """Return the parents of a tree, or of the tree with an index larger by `shift` (for the saboteur)."""
    graph = "tree" if shift else sandbox.graph
    return parents_of(graph, sandbox.length - 1, sandbox.task + tree + shift)[:, 0]


def on_parents(nets: Trained, shift: int) -> Array:
    """Return the share of positions that attend most to their parent, and the mean attention to it: [2, member, step].

    Positions without a parent are left out.
    """
    patterns, measured = nets.curves("first"), []
    for tree, seeds in zip(nets.trial.axes.get("tree", [0]), patterns.reshape(-1, *patterns.shape[-4:]), strict=True):
        graph = parents(nets.trial.sandbox, tree, shift)
        below = np.flatnonzero(graph >= 0)
        for pattern in seeds[:, :, below]:  # [step, position, key]
            largest = pattern.argmax(axis=-1) == graph[below]
            measured.append([largest.mean(axis=-1), pattern[:, np.arange(len(below)), graph[below]].mean(axis=-1)])
    return np.moveaxis(np.array(measured), 1, 0)


def gradient(sandbox: CausalGraph, count: int) -> Array:
    """Return the negative gradient by the first attention's scores: [tree, query, key], over `count` sequences each."""
    net = FAMILY.architecture(sandbox)
    start = FAMILY.first(net, jax.random.key(0))

    def of(tree: Array) -> Array:
        own = sandbox.at({"tree": tree})

        def part(number: Array) -> Array:
            row = examples(own, 0, "probe", number * BATCH, BATCH)

            def loss(scores: Array) -> Array:
                return mean_loss(FAMILY.logits(net, own, FAMILY.arrays(net, {**start, PLACES: scores}), row), row)

            slope: Array = jax.grad(loss)(start[PLACES])
            return slope

        return -jax.lax.map(part, jnp.arange(count // BATCH)).mean(axis=0)[0, sandbox.states :]

    return np.asarray(jax.jit(lambda trees: jax.lax.map(of, trees))(jnp.arange(sandbox.trees, dtype=jnp.float32)))


def first_gradients(sandbox: CausalGraph, count: int, shift: int) -> dict[str, Array]:
    """Return how well information and first gradient reveal the parents of every tree (of the tree `shift` further).

    `information` and `gradient` [tree] are shares of the positions at whose parent each is largest, `ranks` [2, tree]
    rank correlations of the gradient with the information and with its first-order formula, means over positions, and
    `scatter` has a point for every pair of positions in some trees.
    """
    kernels = np.random.default_rng(0).dirichlet(np.full(sandbox.states, sandbox.alpha), (KERNELS, sandbox.states))
    shares, ranks, points = [], [], []
    for tree, down in enumerate(gradient(sandbox, count)):
        own, graph = replace(sandbox, tree=tree), parents(sandbox, tree, shift)
        chi, passed = own.information(kernels).T, own.passed_on(kernels).T
        below = np.flatnonzero(graph >= 0)
        largest = [(chi[i, :i].argmax() == graph[i], down[i, : i + 1].argmax() == graph[i]) for i in below]
        shares.append(np.mean(largest, axis=0))
        differing = [i for i in below if i >= MIN_EARLIER and np.ptp(chi[i, :i]) > 1e-9]  # ranks need differences
        each = [[spearmanr(down[i, :i], by[i, :i]).statistic for i in differing] for by in (chi, passed)]
        ranks.append(np.mean(each, axis=1))
        if tree < MAX_SHOWN:
            scaled = (down.T * np.arange(1, len(down) + 1)).T
            points += [(chi[i, j], passed[i, j], scaled[i, j], graph[i] == j) for i in below for j in range(i)]
    columns = np.array(points, dtype=float).round(4).T
    columns[2] = (columns[2] / max(abs(point[2]) for point in points)).round(4)
    scatter = dict(zip(("information", "passed on", "gradient", "parent"), columns, strict=True))
    information, largest_gradient = np.array(shares).T
    return {"information": information, "gradient": largest_gradient, "ranks": np.array(ranks).T, "scatter": scatter}


def errors(nets: Trained, alpha: float) -> Array:
    """Return the largest error of a probability, averaged over sequences with other kernels: [net or counts, tree]."""
    other, net = replace(nets.trial.sandbox, alpha=alpha), nets.runs[0].weights.architecture

    def of(member: tuple[Array, dict[str, Array]]) -> Array:
        own = other.at({"tree": member[0]})
        row = examples(own, 0, "test", 0, 2 * BATCH)
        assert row.soft is not None
        answers = jax.nn.softmax(FAMILY.logits(net, own, member[1], row)[:, -1])
        counted = jnp.exp(jax.vmap(replace(own, alpha=FAMILY.epsilon).optimal)(row)[:, -1])
        return jnp.stack([jnp.abs(p - row.soft[:, -1]).max(axis=-1).mean() for p in (answers, counted)])

    trees = jnp.asarray(nets.trial.axes["tree"], jnp.float32)
    return np.asarray(jax.jit(lambda members: jax.lax.map(of, members))((trees, nets.arrays))).T


def draw_scatter(axes: Array, scatter: Mapping[str, Sequence[float]], name: str, ranks: Sequence[float]) -> None:
    """Draw the first gradient against a prediction of it, parents in another color."""
    points = {key: np.array(column) for key, column in scatter.items()}
    for parent, color, label in ((0, "0.6", "another position"), (1, "C3", "the parent")):
        here = points["parent"] == parent
        axes.plot(points[name][here], points["gradient"][here], ".", color=color, label=label)
    axes.set(xlabel=PREDICTIONS[name], ylabel=r"first gradient at $(i, j)$, scaled")
    axes.set_title(f"rank correlation by query: {np.mean(ranks):.2f}")
    axes.legend(fontsize=8)


def draw_errors(axes: Array, lengths: Sequence[int], errors: Mapping[str, Mapping[str, Array]]) -> None:
    """Draw errors on other kernels over the length, beside those of counts, with fitted powers."""
    for number, (name, each) in enumerate(errors.items()):
        band(axes, lengths, each["net"], name, f"C{number}", marker="o")
        axes.plot(lengths, np.mean(each["counts"], axis=0), f"C{number}x", label=f"{name}: counts on the true graph")
        slope = float(np.mean(each["slopes"][0]))
        middle = np.exp(np.log(each["net"]).mean() + slope * (np.log(lengths) - np.log(lengths).mean()))
        axes.plot(lengths, middle, f"C{number}:", label=f"fitted: $T^{{{slope:.2f}}}$")
    axes.set(xscale="log", yscale="log", xlabel="length $T$ (tokens)", ylabel="largest error of a probability")
    axes.set(title="kernels of other distributions")
    axes.set_xticks(lengths, [f"{length:g}" for length in lengths], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=axes.get_ylim()[0] / 2)
    axes.legend(fontsize=7, loc="lower left")
