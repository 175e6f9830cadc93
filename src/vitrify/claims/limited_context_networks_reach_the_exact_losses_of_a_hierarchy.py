r"""Networks that see $s^l - 1$ leaves of a random hierarchy reach the exact loss of level $l$, the built net the last.

Statement: A Random Hierarchy Model has $v$ symbols, $m$ productions of $s$ symbols for each, and $L$ levels; the task
is to predict its last leaf. Stair $l$ is the loss of the best predictor that sees the last $s^l - 1$ leaves.
Convolutional nets and transformers that see only these leaves, trained on fresh sequences, end within 3 % of the stair.
With one leaf less, convolutional nets end at the exact loss for that view. A transformer trained on every next leaf
ends within 3 % of the exact losses, averaged over leaves. The transformer built for the grammar as its Bayes predictor
has the loss of the last stair.
Why: No network with a limited view can beat the best predictor for that view. The leaves below a node carry its symbol
and nothing else about the last leaf, so the best predictor needs only the symbols of the left siblings, which a network
finds level by level.
Not checked: Finite training sets: a curve over their size has no flat part at a stair. Transformers for the last stair
at large scale. Single leaves in next-leaf training are reported and only their mean is judged, since late leaves have
small losses and are learned last. A loss is the exact loss plus the mean KL divergence on test sequences, so it has no
noise of sampled answers. The built net is compared with exact fractions on 16 sequences for each grammar.
Source: Cagnetta and Wyart 2024, arXiv 2406.00048 [S] for the stairs; Cagnetta, Favero, Sclocchi and Wyart 2025, arXiv
2505.07070 [A] for the two architectures; the limited views and the exact sums are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Null, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import views
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, evidence
from vitrify.claims.trials.views import hierarchy, leaf_less, next_leaf, reader
from vitrify.learn.figures import band, dots, panel, reference_line, sheet
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.models.transformer import TransformerFamily

MAX_ERROR, BUILT_ERROR = 0.03, 1e-6  # relative to a stair: trained nets, the built net
MAX_NEAR = 0.5  # distance from the exact loss, over that of who sees a leaf less
MIN_GRAMMARS, PARTIAL = 13 / 16, 2  # share of the grammars; visible leaves of which one has no sibling
STYLES = {"convolution": ("C1", "o", -0.12), "transformer": ("C0", "s", 0.12)}
WITHIN = f"loss within {MAX_ERROR:.0%} of the stair, and nearer to it than to the exact loss with one leaf less, "
REACHED = f"{WITHIN}for each l in 13 of 16 grammars", "the net with the widest view makes nothing of the farthest leaf"
PLAN = Plan(
    version=1,
    question="Do networks that see the last leaves of a random hierarchy reach the exact loss for what they see?",
    statements={
        "convolution": Statement(
            "convolutional nets that see the last s^l - 1 leaves reach stair l, for every l",
            *REACHED,
        ),
        "transformer": Statement(
            "transformers that see the last s^l - 1 leaves reach stair l",
            *REACHED,
        ),
        "partial": Statement(
            "convolutional nets that see one leaf less than stair 2 needs reach the exact loss for that view",
            f"{WITHIN}in 13 of 16 grammars; here the stair is the exact loss for {PARTIAL} leaves",
            "a pair of leaves of which one is hidden is worth nothing: the loss is that of stair 1",
        ),
        "next": Statement(
            "a transformer trained on every next leaf reaches the exact loss, averaged over leaves",
            f"mean loss over leaves within {MAX_ERROR:.0%} of the exact one, in 13 of 16 grammars",
            "the highest level is not learned: each leaf is predicted from the s^(L-1) - 1 leaves before it",
        ),
        "built": Statement(
            "the transformer built for the grammar as its Bayes predictor has the exact losses",
            f"largest distance in a sequence over the last stair ≤ {BUILT_ERROR:g} at each leaf, for all grammars",
            "the highest level is missing: at the last leaf the built net has the loss of stair L - 1",
        ),
    },
    units="grammar (task seeds 100 to 115), each with its own seed of the net",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps on fresh sequences",
    scale={
        "v": Axis(16, 32),
        "m": Axis(4, 8),
        "L": Axis(4, 4),
        "views": Axis("limited", None),
        "d_model, channels": Axis("256, 128", "?"),
    },
    chosen="Sizes, rates and steps are those of the run before the plan, in which all explored nets were within 1 %.",
)


def subjects() -> Subjects:
    seeds, transformer = PLAN.explored[:8], TransformerFamily(layers=2, heads=2, d_model=32, units=64)
    recipe = Recipe(steps=1200, batch=128, lr=1e-2, schedule="cosine", test_examples=1024, evals_per_doubling=0)
    slower, box = replace(recipe, steps=900, batch=64, lr=3e-3, warmup=100), hierarchy(6, 3, 3, seeds)
    trials = {
        "convolution": reader(box, HierarchicalFamily(channels=64), recipe, (1, 2, 3, 7), seeds),
        "transformer": reader(box, transformer, slower, (1, 3), seeds),
        "next": next_leaf(replace(box, L=2), transformer, slower, seeds),
    }
    yield Subject("v = 6, m = 3, L = 3", data={"v": 6, "m": 3, "L": 3}, trials=trials)


def large() -> Subjects:
    """The number of levels of the papers, with 16 symbols; and a smaller size, with prediction of every leaf too."""
    common, seeds = Recipe(schedule="cosine", test_examples=4096, evals_per_doubling=0), PLAN.judged
    recipe = replace(common, steps=4000, batch=512, lr=1e-2, warmup=200)
    slower = replace(recipe, batch=256, weight_decay=0.1, beta2=0.98, warmup=500, precision="bfloat16")
    convolution, transformer = HierarchicalFamily(channels=128), TransformerFamily(layers=3, heads=8, d_model=256)
    large, small = hierarchy(16, 4, 4, seeds), hierarchy(12, 3, 3, seeds)
    trials = {
        "convolution": reader(large, convolution, recipe, (1, 2, 3, 7, 15), seeds),
        "transformer": reader(large, transformer, replace(slower, steps=8000, lr=7e-4), (3, 7), seeds),
    }
    yield Subject("v = 16, m = 4, L = 4", data={"v": 16, "m": 4, "L": 4}, trials=trials)
    trials = {
        "convolution": reader(small, convolution, replace(recipe, steps=2000), (1, 2, 3, 7), seeds),
        "next": next_leaf(small, replace(transformer, d_model=128), replace(slower, steps=3000, lr=1e-3), seeds),
    }
    yield Subject("v = 12, m = 3, L = 3", data={"v": 12, "m": 3, "L": 3}, trials=trials)


def judge(subject: Subject, arrays: Measured) -> Evidence:
    """Judge the losses of nets; a loss is the exact one plus the mean divergence from it."""
    stair, built = arrays["stairs"], arrays["built"]
    losses: dict[str, dict[int, tuple[Array, Array]]] = {name: {} for name in subject.trials if name != "next"}
    criteria, quantities = [], []
    for name, own in losses.items():
        exact, less, above = (arrays[f"{name}/{key}"] for key in ("exact", "less", "kl"))
        for at, window in enumerate(subject.trials[name].axes["window"]):
            far, of = above[at, :, -1], f"{name}, seeing {window} leaves"
            near = partial(Criterion.judged, share=MIN_GRAMMARS, statement="partial" if window == PARTIAL else name)
            criteria.append(near(f"{of}: distance over the exact loss", far / exact[at], at_most=MAX_ERROR))
            beside = far / (less[at] - exact[at])
            criteria.append(near(f"{of}: distance over that of a leaf less", beside, at_most=MAX_NEAR))
            quantities.append(Quantity(f"{of}: mean distance over the exact loss", np.mean(far / exact[at])))
            own[window] = exact[at], exact[at] + far
    figure = {"stairs": stair, "nets": losses}
    if "next" in subject.trials:
        exact, learned = arrays["next/exact"], arrays["next/learned"]
        mean, leaves = learned.mean(axis=1) / exact.mean(axis=1) - 1, learned.mean(axis=0) / exact.mean(axis=0) - 1
        name, figure["next"] = "transformer, every next leaf", {"exact": exact, "learned": learned}
        of = f"{name}: mean distance over the exact loss"
        criteria.append(Criterion.judged(of, mean, at_most=MAX_ERROR, share=MIN_GRAMMARS, statement="next"))
        quantities.append(Quantity(f"{of}, by leaf", leaves))
    of, worst = "built net: largest distance from the exact loss, over the last stair", built.max(axis=1) / stair[:, -1]
    criteria.append(Criterion.judged(of, worst, at_most=BUILT_ERROR, statement="built"))
    return evidence(subject, criteria, figure, quantities)


def draw(figures: Figures) -> Figure:
    """Draw losses with the stairs, their distance from the exact ones, and the loss at every next leaf."""
    figure, axes = sheet(len(figures), 3, "Limited views of a random hierarchy: exact and learned losses", 5.2, 4.0)
    for (subject, data), (losses, far, leaves) in zip(figures.items(), axes, strict=True):
        windows = sorted({int(window) for each in data["nets"].values() for window in each})
        mean = np.mean(data["stairs"], axis=0)
        for number, value in enumerate(mean):
            name = f"stair {number}{', built net' * (number + 1 == len(mean))}: {value:.3f} in the mean"
            reference_line(losses, value, name, at=0.99 if number == 1 else 0.01)
        for name, each in data["nets"].items():
            color, marker, shift = STYLES[name]
            mark = partial(dots, color=color, marker=marker, markersize=4, alpha=0.7)
            for window, (exact, learned) in each.items():
                at, label = windows.index(int(window)) + shift, f"{name}, each grammar" if window == min(each) else None
                dots(losses, at, exact, None, "black", marker="_", markersize=7)
                mark(losses, at, learned, label)
                mark(far, at, 100 * (np.array(learned) / np.array(exact) - 1), label)
        losses.plot([], [], "_", color="black", label="exact, for the same leaves")
        far.axhspan(-100 * MAX_ERROR, 100 * MAX_ERROR, color="grey", alpha=0.15, lw=0, label=f"within {MAX_ERROR:.0%}")
        draw = partial(panel, xlabel="visible leaves", xticks=range(len(windows)), xticklabels=windows)
        draw(losses, ylabel="loss at the last leaf (nats)", yscale="log", title=subject, legend="upper right")
        draw(far, ylabel="over the exact loss (%)", ylim=(-4, None), legend="lower left")
        far.set_title("distance from the exact loss")
        if "next" not in data:
            leaves.set_axis_off()
            continue
        exact, learned = (np.array(data["next"][which]).mean(axis=0) for which in ("exact", "learned"))
        positions = list(range(1, len(exact) + 1))
        band(leaves, positions, data["next"]["learned"], "transformer, 10 to 90 % of grammars", "C0", marker="s", ms=4)
        leaves.plot(positions, exact, "_", color="black", markersize=12, label="exact, mean of grammars")
        for at, height, each in zip(positions, learned, 100 * (learned / exact - 1), strict=True):
            leaves.annotate(f"{each:+.1f} %", (at, height), (0, 8), textcoords="offset points", fontsize=7, ha="center")
        title = f"every next leaf of {len(positions)}"
        panel(leaves, xlabel="leaf", ylabel="loss (nats)", xticks=positions, ylim=(0, None), title=title)
    return figure


NULLS: Mapping[str, Null] = {
    "convolution": partial(leaf_less, name="convolution"),
    "transformer": partial(leaf_less, name="transformer"),
    "partial": partial(leaf_less, name="convolution", window=PARTIAL),
    "next": views.no_top,
    "built": views.shallow,
}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, views.measure, id="L13", standing="experiment")
