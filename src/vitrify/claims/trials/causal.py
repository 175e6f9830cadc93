r"""Causal graphs: how attention and its first gradient reveal the parents, and errors on other kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import rankdata

from vitrify.arrays import Array
from vitrify.certification.evidence import Criterion, Quantity
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import Trained, Trial
from vitrify.intervals import mean_interval
from vitrify.learn.figures import band
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.two_attentions import PLACES, TwoAttentionsFamily
from vitrify.learn.program import Probe
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.catalogue import Example, examples
from vitrify.sandboxes.causal_graph import CausalGraph, parents_of

RIVAL = 0.2  # share of the positions that are exchanged in a null hypothesis
FAMILY = TwoAttentionsFamily(alike=1.0)  # large enough that noise does not turn the sign of A2
KERNELS, BATCH, MAX_SHOWN = 2000, 1024, 3  # for the information; sequences at once; trees in the figure
MIN_EARLIER, FLAT = 4, 1e-7  # earlier positions that a rank correlation needs; relations that differ by less are equal
FULL_MODEL = "full transformer"
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
    """Return the trial [tree, seed] of one net for each tree; its seed is the number of the first tree."""
    return Trial(sandbox, family, recipe, (sandbox.task,), {"tree": range(sandbox.trees)}, PROBES)


def chain_trial(sandbox: CausalGraph, recipe: Recipe, count: int) -> Trial:
    """Return the trial [seed] of two attentions on the chain."""
    return Trial(sandbox, FAMILY, recipe, range(sandbox.task, sandbox.task + count), probes=PROBES)


def trials_by_length(sandbox: CausalGraph, recipe: Recipe, lengths: Sequence[int]) -> dict[str, Trial]:
    """Return the trials of two attentions at several lengths, by name."""
    boxes = {f"{length} tokens, trees": replace(sandbox, length=length) for length in lengths}
    return {name: tree_trial(box, FAMILY, recipe) for name, box in boxes.items()}


def parents(sandbox: CausalGraph, tree: int) -> Array:
    """Return the parents of the positions of a tree, or of another graph; -1 stands for none."""
    return parents_of(sandbox.graph, sandbox.length - 1, sandbox.task + tree)[:, 0]


def graphs(sandbox: CausalGraph) -> Array:
    """Return the parents of all trees: [tree, position]."""
    return np.stack([parents(sandbox, tree) for tree in range(sandbox.trees)])


def attended(nets: Trained) -> dict[str, Array]:
    """Return the attention to parents: at the end `parent` and the largest one to another position, `other`.

    Both are [member, position], and NaN where a position has no parent; `mean` [member, step] is that over positions.
    """
    patterns, trees = nets.curves("first"), nets.trial.axes.get("tree", [0])
    each = []
    for tree, seeds in zip(trees, patterns.reshape(len(trees), -1, *patterns.shape[-3:]), strict=True):
        graph = parents(nets.trial.sandbox, tree)
        at, none = np.arange(len(graph)), np.where(graph >= 0, 0.0, np.nan)
        for pattern in seeds[:, :, : len(graph)]:  # [step, position, key]
            to_parent, others = pattern[:, at, graph] + none, pattern[-1].copy()
            others[at, graph] = 0
            each.append((to_parent[-1], others.max(axis=-1) + none, np.nanmean(to_parent, axis=-1)))
    return {name: np.stack(own) for name, own in zip(("parent", "other", "mean"), zip(*each, strict=True), strict=True)}


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


def relations(sandbox: CausalGraph, count: int) -> dict[str, Array]:
    """Return how a position is related to itself and to each earlier one: [tree, position, other position].

    `information` is the χ² information, `passed on` the first-order formula of the gradient, and `gradient` the
    negative gradient, from `count` sequences.
    """
    kernels = np.random.default_rng(0).dirichlet(np.full(sandbox.states, sandbox.alpha), (KERNELS, sandbox.states))
    boxes = [replace(sandbox, tree=tree) for tree in range(sandbox.trees)]
    related = {
        "information": np.stack([box.information(kernels).T for box in boxes]),
        "passed on": np.stack([box.passed_on(kernels).T for box in boxes]),
        "gradient": gradient(sandbox, count)[:, : sandbox.length - 1, : sandbox.length - 1],
    }
    return {name: np.tril(each).astype(np.float32) for name, each in related.items()}


def at_parents(matrices: Array, graphs: Array, *, itself: bool) -> Array:
    """Return the share of positions for which a matrix is largest at the parent: [tree].

    Compared are all earlier positions, and the position `itself` if so chosen.
    """
    compared = np.tril(np.ones(matrices.shape[-2:], bool), 0 if itself else -1)
    right = np.where(compared, matrices, -np.inf).argmax(axis=-1) == graphs
    return np.asarray(np.nanmean(np.where(graphs >= 0, right, np.nan), axis=1))


def exchanged(matrices: Array, graphs: Array, chosen: Array) -> Array:
    """Return matrices in which the parent and the best other position are exchanged for chosen positions."""
    changed = matrices.copy()
    for tree, at in zip(*np.nonzero(chosen & (graphs >= 0) & (np.arange(graphs.shape[1]) > 1)), strict=True):
        row, parent = changed[tree, at], graphs[tree, at]
        other = max((j for j in range(at) if j != parent), key=row.__getitem__)
        row[[parent, other]] = row[[other, parent]]
    return changed


def rank_correlations(one: Array, other: Array, graphs: Array) -> Array:
    """Return the rank correlations of two matrices over earlier positions, as means over positions: [tree].

    Positions without a parent or with few earlier ones are left out, and those where a matrix is constant.
    """
    each = np.full(graphs.shape, np.nan)
    for at in range(MIN_EARLIER, graphs.shape[1]):
        ranks = [
            rankdata(np.where(np.ptp(x[:, at, :at], axis=1, keepdims=True) > FLAT, x[:, at, :at], 0), axis=1)
            for x in (one, other)
        ]
        a, b = (x - x.mean(axis=1, keepdims=True) for x in ranks)
        size = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
        each[:, at] = np.where(
            (graphs[:, at] >= 0) & (size > 0), (a * b).sum(axis=1) / np.where(size > 0, size, 1), np.nan
        )
    return np.asarray(np.nanmean(each, axis=1))


def scatter(related: Mapping[str, Array], graphs: Array) -> dict[str, Array]:
    """Return points for every two positions of some trees: relations, scaled gradient, whether it is the parent."""
    points = []
    for tree, graph in enumerate(graphs[:MAX_SHOWN]):
        chi, passed, down = (related[name][tree] for name in ("information", "passed on", "gradient"))
        for i in np.flatnonzero(graph >= 0):
            points += [(chi[i, j], passed[i, j], down[i, j] * (i + 1), graph[i] == j) for j in range(i)]
    columns = np.array(points, dtype=float).T
    columns[2] /= abs(columns[2]).max()
    return dict(zip(("information", "passed on", "gradient", "parent"), columns.round(4), strict=True))


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


def shares_and_weights(measured: Measured, trial: str) -> tuple[Array, Array]:
    """Return the share of positions that attend most to their parent, and the mean attention to it: [member] each."""
    parent, other = measured[f"{trial}/parent"], measured[f"{trial}/other"]
    right = np.where(np.isnan(parent), np.nan, parent > other)
    return np.nanmean(right, axis=1), np.nanmean(parent, axis=1)


def power(values: Array, lengths: Sequence[int]) -> Array:
    """Return the exponent of the length that fits values [tree, length] best: [tree]."""
    return np.asarray(np.polyfit(np.log(lengths), np.log(values).T, 1)[0])


def powers(errors: Array, lengths: Sequence[int]) -> dict[str, Array]:
    """Return errors of nets and of counts [tree, length] and their exponents, from both in one array."""
    return {"net": errors[0], "counts": errors[1], "slopes": np.stack([power(each, lengths) for each in errors])}


def mean_over_trees(name: str, values: Array, statement: str, **most: float) -> Criterion:
    """Return the criterion that the interval of a mean over trees lies in a range, against the null value 0."""
    interval = mean_interval(values)
    return Criterion.estimated(name, values.mean(), interval, statement=statement, null=0.0, values=values, **most)


def told(measured: Measured, lengths: list[int], elsewhere: Mapping[str, Mapping[str, Array]]) -> list[Quantity]:
    """Return what is reported beside the criteria."""
    missing = np.array([1 - shares_and_weights(measured, f"{length} tokens, trees")[1] for length in lengths])
    rows = {"power of the length in the attention that is not on the parent": power(missing.T, lengths)}
    rows |= {f"{name}: power of the length for counts": each["slopes"][1] for name, each in elsewhere.items()}
    rows |= {
        f"{name}: error over that of counts": (each["net"] / each["counts"]).mean(axis=1)
        for name, each in elsewhere.items()
    }
    rows |= {f"{FULL_MODEL}: KL from the optimum, nats": measured["full KL"]} if "full KL" in measured else {}
    return [Quantity(name, values.mean(), interval=mean_interval(values)) for name, values in rows.items()]


# Null hypotheses


def gradient_elsewhere(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return first gradients that are exchanged between the parent and the best other position, at random positions."""
    known = graphs(subject.trials["16 tokens, trees"].sandbox)
    return {**measured, "gradient": exchanged(measured["gradient"], known, rng.random(known.shape) < RIVAL)}


def either_relation(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return relations in which information and formula are exchanged, or not, for each tree."""
    del subject
    one, other = measured["information"], measured["passed on"]
    swap = (rng.random(len(one)) < 0.5)[:, None, None]
    return {**measured, "information": np.where(swap, other, one), "passed on": np.where(swap, one, other)}


def attention_elsewhere(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return attention that is exchanged between the parent and the best other position, at random positions."""
    changed = dict(measured)
    for trial in subject.trials:
        one, other = measured[f"{trial}/parent"], measured[f"{trial}/other"]
        swap = rng.random(one.shape) < RIVAL
        changed |= {f"{trial}/parent": np.where(swap, other, one), f"{trial}/other": np.where(swap, one, other)}
    return changed


def any_length(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return errors of nets on other kernels with the lengths permuted in each tree."""
    changed = dict(measured)
    for name in (f"Dirichlet {alpha:g}" for alpha in subject.data["other kernels"]):
        changed[name] = np.stack([rng.permuted(measured[name][0], axis=1), measured[name][1]])
    return changed


def as_on_sharper(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return errors on flatter kernels that are, over those of counts, as on sharper ones of trees drawn anew."""
    sharper, flatter = (f"Dirichlet {alpha:g}" for alpha in sorted(subject.data["other kernels"]))
    net, counts = measured[sharper][:, rng.integers(measured[sharper].shape[1], size=measured[sharper].shape[1])]
    own = measured[flatter][1]
    return {**measured, flatter: np.stack([own * net / counts, own])}


NULLS = {
    "gradient": gradient_elsewhere,
    "formula": either_relation,
    "attention": attention_elsewhere,
    "length": any_length,
    "flatter": as_on_sharper,
}


# Figures


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
