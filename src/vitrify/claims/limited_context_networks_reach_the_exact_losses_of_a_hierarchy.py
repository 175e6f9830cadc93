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
Checked: Exact stairs of 8 grammars. Quick scale has $v = 6$, $m = 3$, $L = 3$; large scale has $v = 16$, $m = 4$, $L =
4$ and $v = 12$, $m = 3$, $L = 3$. Convolutional nets are trained for all stairs, transformers for stairs 1 and 2 at
quick scale, and 2 and 3 at large scale. A loss is the exact loss plus the mean KL divergence from the exact conditional
distribution on test sequences, so the randomness of test answers does not enter. The built net is compared with exact
fractions on 16 sequences for each grammar, sequence by sequence and leaf by leaf.
Not checked: Finite training sets: a curve over their size has no flat part at a stair. Transformers for the last stair
at large scale. Single leaves in next-leaf training are reported and only their mean is judged, since late leaves have
small losses and are learned last. The authors' sizes.
Source: Cagnetta and Wyart 2024, arXiv 2406.00048 [S] for the stairs; Cagnetta, Favero, Sclocchi and Wyart 2025, arXiv
2505.07070 [A] for the two architectures; the limited views and the exact sums are ours.
Saboteur: Networks that see one leaf less are presented as those for the second stair.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials import hierarchies
from vitrify.claims.trials.hierarchies import last_leaf, next_leaf, reader
from vitrify.claims.trials.trial import Criterion, Evidence, Quantity, Recipe, evidence, trained
from vitrify.learn.figures import band, dots, panel, reference_line, sheet
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.models.transformer import TransformerFamily

MAX_ERROR, BUILT_ERROR = 0.03, 1e-6  # relative to a stair: trained nets, the built net
MIN_SEEDS, BUILT_ROWS = 7 / 8, 16  # share of the grammars; sequences on which the built net is compared
STYLES = {"convolution": ("C1", "o", -0.12), "transformer": ("C0", "s", 0.12)}


def subjects() -> Subjects:
    box, transformer = last_leaf(6, 3, 3), TransformerFamily(layers=2, heads=2, d_model=32, units=64)
    recipe = Recipe(steps=1200, batch=128, lr=1e-2, schedule="cosine", test_examples=1024, evals_per_doubling=0)
    slower = replace(recipe, steps=900, batch=64, lr=3e-3, warmup=100)
    trials = {
        "convolution": reader(box, HierarchicalFamily(channels=64), recipe, (1, 2, 3, 7)),
        "transformer": reader(box, transformer, slower, (1, 3)),
        "next": next_leaf(replace(box, L=2), transformer, slower),
    }
    yield Subject("v = 6, m = 3, L = 3", data={"v": 6, "m": 3, "L": 3, "missing": 0}, trials=trials)


def large() -> Subjects:
    """The size of the papers, 16 symbols and four levels; and a smaller one, with prediction of every leaf too."""
    common = Recipe(schedule="cosine", test_examples=4096, evals_per_doubling=0)
    recipe = replace(common, steps=4000, batch=512, lr=1e-2, warmup=200)
    slower = replace(recipe, batch=256, weight_decay=0.1, beta2=0.98, warmup=500, precision="bfloat16")
    convolution, transformer = HierarchicalFamily(channels=128), TransformerFamily(layers=3, heads=8, d_model=256)
    large, small = last_leaf(16, 4, 4), last_leaf(12, 3, 3)
    trials = {
        "convolution": reader(large, convolution, recipe, (1, 2, 3, 7, 15)),
        "transformer": reader(large, transformer, replace(slower, steps=8000, lr=7e-4), (3, 7)),
    }
    yield Subject("v = 16, m = 4, L = 4", data={"v": 16, "m": 4, "L": 4, "missing": 0}, trials=trials)
    trials = {
        "convolution": reader(small, convolution, replace(recipe, steps=2000), (1, 2, 3, 7)),
        "next": next_leaf(small, replace(transformer, d_model=128), replace(slower, steps=3000, lr=1e-3)),
    }
    yield Subject("v = 12, m = 3, L = 3", data={"v": 12, "m": 3, "L": 3, "missing": 0}, trials=trials)


def sabotage(subject: Subject) -> Subject:
    return replace(subject, name=f"{subject.name}, a leaf less", data={**subject.data, "missing": 1})


def check(subject: Subject) -> Evidence:
    nets = trained(subject)
    following = nets.pop("next", None)
    box = last_leaf(*(subject.data[name] for name in "vmL"))
    stair = hierarchies.stairs(box, box.grammars)  # [member, level]
    near = partial(Criterion.judged, at_least=1 - MAX_ERROR, at_most=1 + MAX_ERROR, share=MIN_SEEDS)
    criteria, quantities = [], []
    losses = {name: hierarchies.reader_losses(each) for name, each in nets.items()}
    figure = {"stairs": stair, "nets": losses}
    for name, own in losses.items():
        levels = hierarchies.stair_levels(box, own, subject.data["missing"])
        for window, (exact, learned) in own.items():
            number, of = levels.get(window), f"{name}, seeing {window} leaves"
            what, aim = (f"stair {number}", stair[:, number]) if number else ("the exact one", exact)
            criteria.append(near(f"{of}: loss over {what}", learned / aim))
            quantities.append(Quantity(f"{of}: mean distance from the exact loss", np.mean(learned / exact) - 1))
    if following:
        exact, learned = hierarchies.every_leaf(following)  # [member, leaf]
        name, figure["next"] = "transformer, every next leaf", {"exact": exact, "learned": learned}
        criteria.append(near(f"{name}: mean loss over the exact one", learned.mean(1) / exact.mean(1)))
        leaves = learned.mean(axis=0) / exact.mean(axis=0) - 1
        quantities.append(Quantity(f"{name}: mean distance from the exact loss, by leaf", leaves))
    far = hierarchies.built_distance(box, box.grammars, BUILT_ROWS)  # [member, leaf]
    last, worst = far[:, -1] / stair[:, -1], far.max(axis=1)
    criteria.append(Criterion.judged("built net: distance from the last stair", last, at_most=BUILT_ERROR))
    criteria.append(Criterion.judged("built net: distance from the exact loss, worst leaf", worst, at_most=BUILT_ERROR))
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
        percent = 100 * MAX_ERROR
        far.axhspan(-percent, percent, color="grey", alpha=0.15, linewidth=0, label=f"within {percent:g} %")
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
        leaves.set_title(f"every next leaf of {len(positions)}")
        panel(leaves, xlabel="leaf", ylabel="loss (nats)", xticks=positions, ylim=(0, None))
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L13", standing="experiment", learned=True, budget_seconds=180)
