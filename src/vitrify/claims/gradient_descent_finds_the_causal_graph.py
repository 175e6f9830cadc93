r"""Gradient descent makes the first attention the causal graph, and what it then says holds for other kernels.

Statement: where every token is drawn given its parent in a fixed graph, by a kernel that each row has anew, (1) the
$\chi^2$ information between tokens is largest between child and parent, (2) the first gradient step on the scores
$A^1_{ij}$ of the first attention raises the parent's most, (3) after training each position looks at its parent, in at
least 95 % of the positions that have one, for random trees and for chains, and (4) on kernels of other distributions
the error falls as a power of the length, and on flatter ones than those of training it is at most 1.05 times that of
counting along the true graph. A whole disentangled transformer ends within 0.03 nats of the best answer, in the mean.
Why: all paths from a position lead through its parent, so the data processing inequality gives (1). To first order in
$A^2$ the gradient is $\mathrm{E}_\pi \sum_{ab} \pi(b \mid a) P(s_j = a, s_i = b)/\mu(b) - 1$, but for the softmax's
factor; at the parent this is the $\chi^2$ information and elsewhere at most a geometric mean of two: it has the same
largest entry, but need not order the others alike, and rank correlations with both say so. Once scores are large, the
second attention averages over the positions whose parent is like the question: these are counts, for any kernel,
smoothed as much as was best in training (so that on sharper kernels plain counts are better by a factor).
Checked: ten random trees and chains, trained as one ensemble for each length; information exact for each kernel;
gradients over fresh rows; errors are largest differences of probabilities, means over rows, with the slope of their
logarithm over that of the length fitted tree by tree. The published rate is $T^{-c\gamma}$ with an unknown $c$, so only
its sign is asked for.
Source: in the spirit of Nichani, Damian and Lee 2024, arXiv 2402.14735 [S]; roots are uniform here.
Saboteur: the heads, the gradient and the information are judged by another random tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.disentangled import DisentangledFamily
from vitrify.learn.models.two_attentions import PLACES, TwoAttentionsFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import Run, train
from vitrify.sandboxes.catalogue import Row, rows
from vitrify.sandboxes.causal_graph import CausalGraph, parents_of

RECOVERED, WEIGHT, TREES = 0.95, 0.9, 0.8  # of positions; of a head's weight; of the trees
NEAR = 1.05  # times the error of counting along the true graph
KERNELS, BATCH, SHOWN = 2000, 1024, 3  # for information; rows at once; trees in the figure
LEAST = 4  # earlier positions, for ranks to mean something
START = TwoAttentionsFamily(alike=1.0)  # large enough that noise does not turn the sign of A2


@dataclass(frozen=True)
class Setting:
    """What is trained: two attentions at several lengths, and at will a whole disentangled transformer.

    `others` are the parameters of the Dirichlet distributions that no member was trained on; `judged` is how many trees
    further the one is that a member is judged by. `gap` is how far above the best loss the whole transformer may stay.
    """

    sandbox: CausalGraph
    recipe: Recipe
    lengths: tuple[int, ...]
    others: tuple[float, ...]
    chains: int
    rows: int
    whole: tuple[CausalGraph, Family, Recipe, int] | None = None  # and how many seeds of each tree
    gap: float = 0.03
    judged: int = 0


def subjects() -> Iterator[Subject]:
    """Two attentions on three symbols."""
    sandbox = CausalGraph(states=3, length=16, trees=10)
    recipe = Recipe(steps=64, batch=64, lr=0.3, warmup=0, clip=None, schedule="cosine", test_rows=256, marks=1)
    yield Subject(
        "trees and chains", data={"setting": Setting(sandbox, recipe, (16, 24, 32, 48), (0.3, 3.0), 8, 16384)}
    )


def paper() -> Iterator[Subject]:
    """Longer rows, and the whole disentangled transformer on ten symbols."""
    sandbox = CausalGraph(states=3, length=16, alpha=0.3, trees=10)
    recipe = Recipe(steps=512, batch=512, lr=0.1, warmup=0, clip=None, schedule="cosine", test_rows=1024, marks=1)
    whole = replace(sandbox, states=10, length=20, alpha=0.1)
    longer = replace(recipe, steps=16384, lr=0.02)
    setting = Setting(
        sandbox,
        recipe,
        (8, 16, 32, 64),
        (0.1, 3.0),
        8,
        1 << 17,
        whole=(whole, DisentangledFamily(), longer, 1),
    )
    yield Subject("trees and chains", data={"setting": setting})


def check(subject: Subject) -> Evidence:
    """Train, look where the first heads look, and ask for kernels that were never trained on."""
    setting: Setting = subject.data["setting"]
    asked: list[Asked] = []
    found: dict[int, list[Run]] = {}
    for length in setting.lengths:
        sandbox = replace(setting.sandbox, length=length)
        found[length] = train(START, sandbox, axes=_trees(sandbox), recipe=setting.recipe, probes={"first": _first})
        asked += _recovered(f"{length} tokens, trees", found[length], sandbox, setting.judged)
    if setting.chains:
        line = replace(setting.sandbox, graph="chain", trees=1)
        chained = train(START, line, members=setting.chains, recipe=setting.recipe, probes={"first": _first})
        asked += _recovered(f"{line.length} tokens, chains", chained, line, setting.judged)
    shown: dict[str, Any] = {"steps": [point["step"] for point in found[setting.lengths[0]][0].curve]}
    shown["weight"] = {
        length: [_weights(run, setting.sandbox, length, setting.judged) for run in runs]
        for length, runs in found.items()
    }
    portrait, length = found[setting.sandbox.length][0], setting.sandbox.length
    if setting.whole:
        whole, family, recipe, seeds = setting.whole
        runs = train(family, whole, axes=_trees(whole), members=seeds, recipe=recipe, probes={"first": _first})
        asked += _recovered("whole transformer", runs, whole, setting.judged, weight=0.0)
        above = [run.last["kl"] for run in runs]
        asked.append(Asked("whole transformer: KL to the best answer, mean", [float(np.mean(above))], most=setting.gap))
        asked.append(Asked("whole transformer: KL to the best answer, each", above))
        portrait, length = runs[0], whole.length
    graph = _judged(replace(setting.sandbox, length=length), 0, setting.judged)
    shown["portrait"] = {"parents": graph, "pattern": np.asarray(portrait.last["first"]).round(3)}
    start, slopes = _start(setting)
    errors, rates = _abroad(setting, found)
    return decided(
        [*start, *asked, *errors],
        domain=f"{setting.sandbox.trees} random trees and {setting.chains} members on a chain, "
        f"{setting.sandbox.states} symbols, {', '.join(map(str, setting.lengths))} tokens",
        seed=0,
        shown=shown | slopes | rates,
    )


def _trees(sandbox: CausalGraph) -> dict[str, range]:
    return {"tree": range(sandbox.trees)}


def _first(net: Any, arrays: Any, row: Row, seen: Mapping[str, Array]) -> Array:
    """Where the first head looks, as a mean over rows: [query, key]."""
    del net, arrays, row
    return seen["blocks.0.attn.hook_pattern"].mean(axis=0)[0]


def _judged(sandbox: CausalGraph, tree: int, further: int) -> Array:
    """The parents by which a tree is judged: its own, or those of another."""
    graph = "tree" if further else sandbox.graph
    return parents_of(graph, sandbox.length - 1, sandbox.task + tree + further)[:, 0]


def _on_parents(pattern: Array, parents: Array) -> tuple[float, float]:
    """In which part of the positions that have a parent it is looked at most, and with what weight on average."""
    below = np.flatnonzero(parents >= 0)
    pattern = np.asarray(pattern)
    most = pattern[below].argmax(axis=1) == parents[below]
    return float(most.mean()), float(pattern[below, parents[below]].mean())


def _weights(run: Run, sandbox: CausalGraph, length: int, judged: int) -> list[float]:
    """The mean weight on the parents at every measurement."""
    parents = _judged(replace(sandbox, length=length), _tree(run), judged)
    return [_on_parents(np.asarray(point["first"]), parents)[1] for point in run.curve]


def _tree(run: Run) -> int:
    return int(run.identity["sandbox"]["tree"])


def _recovered(name: str, runs: list[Run], sandbox: CausalGraph, judged: int, weight: float = WEIGHT) -> list[Asked]:
    """What is asked of the heads of some runs at the end."""
    ends = [_on_parents(run.last["first"], _judged(sandbox, _tree(run), judged)) for run in runs]
    return [
        Asked(f"{name}: positions that look at their parent", [most for most, _ in ends], RECOVERED, share=TREES),
        Asked(f"{name}: weight on the parent", [on for _, on in ends], weight, share=TREES),
    ]


def gradient(sandbox: CausalGraph, count: int) -> Array:
    """The way down from the start for the scores of the first attention: [tree, query, key], over `count` rows each."""
    net = START.architecture(sandbox)
    start = START.first(net, jax.random.key(0))

    def of(tree: Array) -> Array:
        own = sandbox.at({"tree": tree})

        def part(number: Array) -> Array:
            row = rows(own, 0, "probe", number * BATCH, BATCH)

            def loss(scores: Array) -> Array:
                return mean_loss(START.logits(net, own, START.arrays(net, {**start, PLACES: scores}), row), row)

            found: Array = jax.grad(loss)(start[PLACES])
            return found

        return -jax.lax.map(part, jnp.arange(count // BATCH)).mean(axis=0)[0, sandbox.states :]

    return np.asarray(jax.jit(lambda trees: jax.lax.map(of, trees))(jnp.arange(sandbox.trees, dtype=jnp.float32)))


def _start(setting: Setting) -> tuple[list[Asked], dict[str, Any]]:
    """What the first gradient and the information say of each tree."""
    from scipy.stats import spearmanr

    sandbox = setting.sandbox
    kernels = np.random.default_rng(0).dirichlet(np.full(sandbox.states, sandbox.alpha), (KERNELS, sandbox.states))
    told, pulled, points = [], [], []
    ranked: list[float] = []
    explained: list[float] = []
    for tree, down in enumerate(gradient(sandbox, setting.rows)):
        own, parents = replace(sandbox, tree=tree), _judged(sandbox, tree, setting.judged)
        chi, passed = own.information(kernels).T, own.passed_on(kernels).T
        below = np.flatnonzero(parents >= 0)
        told.append(float(np.mean([chi[i, :i].argmax() == parents[i] for i in below])))
        pulled.append(float(np.mean([down[i, : i + 1].argmax() == parents[i] for i in below])))
        told_apart = [i for i in below if i >= LEAST and np.ptp(chi[i, :i]) > 1e-9]  # ranks need differences
        for by, into in ((chi, ranked), (passed, explained)):
            into.append(float(np.mean([spearmanr(down[i, :i], by[i, :i]).statistic for i in told_apart])))
        if tree < SHOWN:
            points += [
                (chi[i, j], passed[i, j], (i + 1) * down[i, j], parents[i] == j) for i in below for j in range(i)
            ]
    size = max(abs(point[2]) for point in points)
    names = ("information", "passed on", "gradient", "parent")
    columns = [np.array(column, dtype=float).round(4) for column in zip(*points, strict=True)]
    columns[2] = (columns[2] / size).round(4)
    asked = [
        Asked("information is largest at the parent: positions", told, least=1.0),
        Asked("the first gradient is largest at the parent: positions", pulled, least=RECOVERED, share=TREES),
        Asked("rank correlation of gradient and information", ranked, least=0.0),
        Asked("rank correlation of gradient and what is passed on", explained, least=0.0),
    ]
    return asked, {"scatter": dict(zip(names, columns, strict=True)), "ranks": [ranked, explained]}


def abroad(sandbox: CausalGraph, runs: list[Run], alpha: float) -> Array:
    """The largest error of a probability, as a mean over rows with other kernels: [member, of the net or of counts]."""
    other, net = replace(sandbox, alpha=alpha), runs[0].weights.architecture
    arrays = {name: jnp.stack([run.weights.arrays[name] for run in runs]) for name in runs[0].weights.arrays}

    def of(given: tuple[Array, dict[str, Array]]) -> Array:
        own = other.at({"tree": given[0]})
        row = rows(own, 0, "test", 0, 2 * BATCH)
        assert row.soft is not None
        said = jax.nn.softmax(START.logits(net, own, given[1], row)[:, -1])
        counted = jnp.exp(jax.vmap(replace(own, alpha=START.least).optimal)(row)[:, -1])
        return jnp.stack([jnp.abs(p - row.soft[:, -1]).max(axis=-1).mean() for p in (said, counted)])

    trees = jnp.asarray([float(_tree(run)) for run in runs])
    return np.asarray(jax.jit(lambda given: jax.lax.map(of, given))((trees, arrays)))


def _abroad(setting: Setting, found: Mapping[int, list[Run]]) -> tuple[list[Asked], dict[str, Any]]:
    """Errors on other kernels, by length, and how they fall."""
    asked, shown = [], {}
    across = np.log(setting.lengths)
    for alpha in setting.others:
        errors = np.stack(
            [abroad(replace(setting.sandbox, length=length), runs, alpha) for length, runs in found.items()], axis=2
        )  # [tree, net or counts, length]
        slopes, counted = (np.polyfit(across, np.log(errors[:, who]).T, 1)[0] for who in (0, 1))
        ratio = (errors[:, 0] / errors[:, 1]).ravel()
        name = f"Dirichlet {alpha:g}"
        most = NEAR if alpha > setting.sandbox.alpha else np.inf
        asked.append(Asked(f"{name}: error over that of counts", ratio.tolist(), most=most))
        asked.append(Asked(f"{name}: power of the length in the error", slopes.tolist(), most=0.0))
        asked.append(Asked(f"{name}: power for counts", counted.tolist()))
        shown[name] = {"net": errors[:, 0], "counts": errors[:, 1], "slopes": [slopes, counted]}
    return asked, {"lengths": setting.lengths, "abroad": shown}


def sabotage(subject: Subject) -> Subject:
    """Judge by another tree: trees of two lengths only, as it is noticed on the first."""
    setting: Setting = subject.data["setting"]
    short = replace(setting, judged=1, lengths=(16, 24), others=setting.others[:1], chains=0, rows=BATCH, whole=None)
    return replace(subject, data={"setting": short})


def draw(shown: Mapping[str, Any]) -> Any:
    """A graph beside what was learnt, the first gradient against two predictions, and errors on other kernels."""
    from vitrify.learn.figures import band, by_step, level, sheet

    (found,) = shown.values()
    figure, planes = sheet(2, 3, "Gradient descent makes the first attention the causal graph")
    pattern = np.array(found["portrait"]["pattern"])
    parents = np.array(found["portrait"]["parents"])
    graph = np.zeros_like(pattern)
    graph[np.flatnonzero(parents >= 0), parents[parents >= 0]] = 1
    for plane, matrix, title in zip(
        planes[0], (graph, pattern), ("the graph", "the first attention (roots are free)"), strict=False
    ):
        drawn = plane.imshow(matrix, vmin=0, vmax=1, cmap="Greys")
        plane.set(title=title, xlabel="position looked at", ylabel="position")
    figure.colorbar(drawn, ax=planes[0, 1], label="weight")
    for number, (length, weights) in enumerate(found["weight"].items()):
        band(planes[0, 2], found["steps"], weights, f"{length} tokens ({len(weights)} trees)", f"C{number}")
    by_step(planes[0, 2])
    level(planes[0, 2], WEIGHT, "asked for", at=0.01)
    planes[0, 2].set(title="training", ylabel="mean weight on the parent", ylim=(0, 1))
    planes[0, 2].legend(fontsize=8)
    _scatter(planes[1, 0], found, "information", r"$\chi^2$ information with position $j$", 0)
    _scatter(planes[1, 1], found, "passed on", "what is passed on as from parent to child", 1)
    plane, lengths = planes[1, 2], [float(length) for length in found["lengths"]]
    for number, (name, errors) in enumerate(found["abroad"].items()):
        band(plane, lengths, errors["net"], name, f"C{number}", marker="o")
        plane.plot(lengths, np.mean(errors["counts"], axis=0), f"C{number}x", label=f"{name}: counts on the true graph")
        slope = float(np.mean(errors["slopes"][0]))
        middle = np.exp(np.log(errors["net"]).mean() + slope * (np.log(lengths) - np.log(lengths).mean()))
        plane.plot(lengths, middle, f"C{number}:", label=f"fitted: $T^{{{slope:.2f}}}$")
    plane.set(xscale="log", yscale="log", xlabel="length $T$ (tokens)", ylabel="largest error of a probability")
    plane.set(title="kernels that were never trained on")
    plane.set_xticks(lengths, [f"{length:g}" for length in lengths], minor=False)
    plane.set_xticks([], minor=True)
    plane.set_ylim(bottom=plane.get_ylim()[0] / 2)
    plane.legend(fontsize=7, loc="lower left")
    return figure


def _scatter(plane: Any, found: Mapping[str, Any], name: str, label: str, number: int) -> None:
    points = {key: np.array(column) for key, column in found["scatter"].items()}
    for parent, colour, said in ((0, "0.6", "another position"), (1, "C3", "the parent")):
        here = points["parent"] == parent
        plane.plot(points[name][here], points["gradient"][here], ".", color=colour, label=said)
    mean = float(np.mean(found["ranks"][number]))
    plane.set(
        xlabel=label, ylabel=r"first gradient at $(i, j)$, scaled", title=f"rank correlation in a row: {mean:.2f}"
    )
    plane.legend(fontsize=8)


CLAIM = Claim(
    row="L4",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
