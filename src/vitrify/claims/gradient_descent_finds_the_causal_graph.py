r"""Gradient descent makes the first attention layer the causal graph, and the network generalises to other kernels.

Statement: Each token $s_i$ is drawn given its parent token in a fixed graph, $s_i \sim \pi(\cdot \mid s_{pa(i)})$, by a
kernel $\pi$ that is drawn anew for each sequence. The $\chi^2$ mutual information of $s_i$ and $s_j$ is largest at $j =
pa(i)$. (1) The first gradient step on the scores $A^1_{ij}$ of the first attention layer is largest at $j = pa(i)$. (2)
This gradient follows its first-order formula more closely than the information (our finding). (3) After training on
random trees and on chains, nearly every position that has a parent attends to it most. (4) On kernels from other
distributions the error (the largest difference of a probability, averaged over sequences) falls with the length, and
(5) on flatter kernels than in training it is at most about that of counting along the true graph.
Why: The information is largest at the parent by the data processing inequality: all paths to a position lead through
its parent. To first order in the second attention matrix $A^2$, and up to a factor of the softmax, the gradient is
$\mathrm{E}_\pi \sum_{ab} \pi(b \mid a) P(s_j = a, s_i = b)/\mu(b) - 1$ with $\mu$ stationary. At the parent this equals
the $\chi^2$ information. Once scores are large, the second layer averages over positions whose parent equals the query:
it counts, for any kernel, with the smoothing that was best in training.
Not checked: The rate $T^{-c\gamma}$, as $c$ is unknown. The authors train one layer after the other, here all
parameters are trained at once. Roots are uniform here, not stationary. Several parents are not included. On sharper
kernels counting has the smaller error.
Source: Nichani, Damian and Lee 2024, arXiv 2402.14735 [S]; in the spirit of their experiments.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import causal
from vitrify.claims.trials.causal import FULL_MODEL, mean_over_trees
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Recipe, evidence, trained
from vitrify.learn.figures import heat, panel, sheet
from vitrify.learn.models.disentangled import DisentangledFamily
from vitrify.sandboxes.causal_graph import CausalGraph

MIN_POSITIONS, MIN_WEIGHT, MIN_TREES = 0.95, 0.9, 0.8  # share of positions; attention; share of the trees
MIN_RANKS, MAX_POWER = 0.3, -0.25  # difference of rank correlations; power of the length: half that of counting
MAX_RATIO = 1.05  # error over that of counting along the true graph, on flatter kernels than in training
EXCHANGED = f"at {causal.RIVAL:.0%} of the positions the parent is exchanged with the best other position"
RELATED = "information", "gradient"
PLAN = Plan(
    version=1,
    question="Does gradient descent turn the first attention layer into the causal graph of the sequences?",
    statements={
        "gradient": Statement(
            "the first gradient of the attention scores is largest at the parent, as the information is",
            f"so at ≥ {MIN_POSITIONS:.0%} of the positions of ≥ {MIN_TREES:.0%} of the trees; information: everywhere",
            EXCHANGED,
        ),
        "formula": Statement(
            "the first gradient follows its first-order formula more closely than the χ² information",
            f"its rank correlation with the formula is larger by ≥ {MIN_RANKS:g} (mean over trees, interval)",
            "the two rank correlations of a tree are exchanged at random",
        ),
        "attention": Statement(
            "after training nearly every position that has a parent attends to it most",
            f"≥ {MIN_POSITIONS:.0%} of the positions, with a mean weight ≥ {MIN_WEIGHT:g}, of ≥ {MIN_TREES:.0%} of the "
            f"networks, at every length; the {FULL_MODEL} without the bound on the weight",
            EXCHANGED,
        ),
        "length": Statement(
            "on kernels of other distributions the error falls with the length",
            f"power of the length ≤ {MAX_POWER:g} (mean over trees, interval), on sharper and on flatter kernels",
            "the error does not depend on the length: lengths are permuted in each tree",
        ),
        "flatter": Statement(
            "on flatter kernels than in training the error is at most about that of counting along the true graph",
            f"error / error of counting ≤ {MAX_RATIO:g} for every tree and length",
            "the ratio is what it is on sharper kernels",
        ),
    },
    units="random tree, drawn by its number, with a network of its own; for chains a seed",
    judged=range(100, 120),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "steps": Axis(512, 1 << 14),
        f"steps of the {FULL_MODEL}": Axis(16_384, 1 << 17),
        "batch": Axis(512, 1024),
        "length": Axis(64, 20),
        "optimiser": Axis("Adam", "SGD"),
    },
    chosen="Of 10 explored trees all have all parents right; rank correlations of 0.77 and 0.26; powers −0.4 and −0.5.",
)
RECIPE = Recipe(warmup=0, clip=None, schedule="cosine", test_examples=256, evals_per_doubling=1)


def subjects() -> Subjects:
    sandbox, recipe = CausalGraph(states=3, length=16, trees=10), replace(RECIPE, steps=64, batch=64, lr=0.3)
    yield _subject(sandbox, recipe, (16, 24, 32, 48), (0.3, 3.0), 16384)


def large() -> Subjects:
    """Longer rows, and the whole disentangled transformer on ten symbols."""
    sandbox = CausalGraph(states=3, length=16, alpha=0.3, task=PLAN.judged[0], trees=len(PLAN.judged))
    recipe = replace(RECIPE, steps=512, batch=512, lr=0.1, test_examples=1024)
    box, longer = replace(sandbox, states=10, length=20, alpha=0.1, trees=10), replace(recipe, steps=16384, lr=0.02)
    subject = _subject(sandbox, recipe, (8, 16, 32, 64), (0.1, 3.0), 1 << 17)
    yield replace(subject, trials={**subject.trials, FULL_MODEL: causal.tree_trial(box, DisentangledFamily(), longer)})


def _subject(
    sandbox: CausalGraph, recipe: Recipe, lengths: tuple[int, ...], others: tuple[float, ...], rows: int
) -> Subject:
    """Return two-attention models at several lengths; `others` are Dirichlet parameters of other kernels."""
    trials = causal.trials_by_length(sandbox, recipe, lengths)
    line = replace(sandbox, graph="chain", trees=1)
    trials[f"{line.length} tokens, chains"] = causal.chain_trial(line, recipe, 8)
    data = {"symbols": sandbox.states, "lengths": lengths, "other kernels": others, "rows": rows}
    return Subject("trees and chains", data=data, trials=trials)


def measure(subject: Subject) -> Measured:
    """Return relations at the start, attention to parents, and errors on other kernels."""
    nets, trees = trained(subject), [f"{length} tokens, trees" for length in subject.data["lengths"]]
    arrays = causal.relations(subject.trials["16 tokens, trees"].sandbox, subject.data["rows"])
    for name, each in nets.items():
        arrays |= {f"{name}/{what}": own for what, own in causal.attended(each).items()}
    for alpha in subject.data["other kernels"]:  # [net or counts, tree, length]
        arrays[f"Dirichlet {alpha:g}"] = np.stack([causal.errors(nets[name], alpha) for name in trees], axis=-1)
    portrait = nets.get(FULL_MODEL, nets["16 tokens, trees"])
    arrays["portrait"] = portrait.final("first")[0, 0]
    return arrays | ({"full KL": nets[FULL_MODEL].final("kl").ravel()} if FULL_MODEL in nets else {})


def judge(subject: Subject, measured: Measured) -> Evidence:
    trees = {length: subject.trials[f"{length} tokens, trees"] for length in subject.data["lengths"]}
    others = subject.data["other kernels"]
    box, judged, most = trees[16].sandbox, Criterion.judged, partial(Criterion.judged, share=MIN_TREES)
    graphs = causal.graphs(box)
    largest = {key: causal.at_parents(measured[key], graphs, itself=key == "gradient") for key in RELATED}
    ranks = [causal.rank_correlations(measured["gradient"], measured[key], graphs) for key in causal.PREDICTIONS]
    name = "positions whose {} is largest at the parent"
    criteria = [
        judged(name.format("information"), largest["information"], at_least=1.0, premise=True, statement="gradient"),
        most(name.format("first gradient"), largest["gradient"], at_least=MIN_POSITIONS, statement="gradient"),
        mean_over_trees("rank correlation, formula − information", ranks[1] - ranks[0], "formula", at_least=MIN_RANKS),
    ]
    for key in subject.trials:
        share, weight = causal.shares_and_weights(measured, key)
        name, least = f"{key}: positions attending to their parent", MIN_WEIGHT * (key != FULL_MODEL)
        criteria.append(most(name, share, at_least=MIN_POSITIONS, statement="attention"))
        criteria.append(most(f"{key}: attention to the parent", weight, at_least=least, statement="attention"))
    kernels = [f"Dirichlet {alpha:g}" for alpha in others]
    elsewhere = {name: causal.powers(measured[name], list(trees)) for name in kernels}
    for (name, each), alpha in zip(elsewhere.items(), others, strict=True):
        powers = each["slopes"][0]
        criteria.append(mean_over_trees(f"{name}: power of the length", powers, "length", at_most=MAX_POWER))
        if alpha > box.alpha:
            ratio = (each["net"] / each["counts"]).ravel()
            criteria.append(judged(f"{name}: error over that of counts", ratio, at_most=MAX_RATIO, statement="flatter"))
    portrait = subject.trials.get(FULL_MODEL, trees[16]).sandbox
    figure = {
        "steps": trees[16].recipe.eval_steps(),
        "weight": {length: measured[f"{length} tokens, trees/mean"] for length in trees},
        "portrait": {"parents": causal.parents(portrait, 0), "pattern": measured["portrait"].round(3)},
        "scatter": causal.scatter(measured, graphs),
        "ranks": ranks,
        "lengths": list(trees),
        "other kernels": elsewhere,
    }
    return evidence(subject, criteria, figure, causal.told(measured, list(trees), elsewhere))


def draw(figures: Figures) -> Figure:
    """A graph beside what was learned, the first gradient against two predictions, and errors on other kernels."""
    (data,) = figures.values()
    title = "Gradient descent makes the first attention the causal graph"
    figure, ((graph, learned, training), (*scattered, errors)) = sheet(2, 3, title)
    pattern, parents = (np.array(data["portrait"][name]) for name in ("pattern", "parents"))
    exact = np.zeros_like(pattern)
    exact[np.flatnonzero(parents >= 0), parents[parents >= 0]] = 1
    titles = {"the graph": exact, "the first attention (roots are free)": pattern}
    for own, (title, matrix) in zip((graph, learned), titles.items(), strict=True):
        heat(own, matrix, "weight", vmin=0, vmax=1, cmap="Greys")
        own.set(title=title, xlabel="key position", ylabel="query position")
    groups = {f"{length} tokens ({len(each)} trees)": each for length, each in data["weight"].items()}
    panel(training, data["steps"], groups, {"threshold": MIN_WEIGHT}, at=0.01, steps=True, ylim=(0, 1))
    training.set(title="training", ylabel="mean attention to the parent")
    for own, name, ranks in zip(scattered, causal.PREDICTIONS, data["ranks"], strict=True):
        causal.draw_scatter(own, data["scatter"], name, ranks)
    causal.draw_errors(errors, data["lengths"], data["other kernels"])
    return figure


CLAIM = Claim.planned(PLAN, subjects, judge, causal.NULLS, large, draw, measure, id="L4", standing="experiment")
