r"""From small weights, a tied one-layer transformer learns the binary chain's transitions only if p + q < 1.

Statement: A Markov chain of bits has $P(1 \mid 0) = p$ and $P(0 \mid 1) = q$. After 400 AdamW steps from small Gaussian
weights, one-layer transformers with tied embedding and readout have the loss $H(\pi)$ of a single bit if $p + q > 1$,
and are near the entropy rate if $p + q < 1$. Without tying they are near the entropy rate on both sides. If they start
near a low-rank point (the embedding is $e$ times a unit vector, the units add $2w|w|$ times what they read) with $w <
-1/\sqrt 2$, tied networks with $p + q > 1$ come near it too where $p < q$, but often not where $p > q$ (our finding).
Why: With tied weights, ignoring the input is a local minimum if $p + q > 1$ and a saddle if $p + q < 1$. Gradient flow
from $w < -1/\sqrt 2$ moves away from it. The embedding is $e$ times the bit, so that exchanging the two symbols, and
with them $p$ and $q$, is no symmetry of the start.
Not checked: The authors' sizes (see the scale), LayerNorms and depths 2 to 6. Longer training can escape: after 600
steps 1 of 24 tied networks with $p + q > 1$ had left $H(\pi)$, at $(0.9, 0.9)$. An embedding that treats both symbols
alike. Other starts near a low-rank point than $e = 1/2$, $w = -1$; the authors' differ in size.
Source: Makkuva et al. 2024, arXiv 2402.04161 and arXiv 2406.03072 [S]; optimiser and model from their public code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Null, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import chain_grid
from vitrify.claims.trials.chain_grid import BETTER, MIN_GAP, SHOWN, TIED, UNTIED, left_of_the_way
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, Trial, evidence, trained
from vitrify.intervals import rate_interval
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.scalar import ScalarFamily
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.markov import Markov

GRID = 14  # cells of the judged grid along each side
STUCK, LEARNED, MAX_APART = 0.75, 0.25, 0.02  # of the way from H(π) left; probabilities of a 1 after 0 and after 1
MIN_CHAINS, MIN_FIRST, RIVAL_SHIFT = 0.9, 0.75, 0.25  # share of chains, of pairs; of the border in a null hypothesis
KINDS = {"tied": (1.0, 0.0, 0.0), "untied": (0.0, 0.0, 0.0), "tied, start w = −1": (1.0, 0.5, -1.0)}  # tied, e, w
PLAN = Plan(
    version=1,
    question="For which chains does a one-layer transformer learn the transitions, with tied weights and without?",
    statements={
        "stuck": Statement(
            "tied networks end at the loss H(π) if p + q > 1",
            f"≥ {MIN_CHAINS:.0%} of the chains with H(π) ≥ {MIN_GAP:g} nats above the entropy rate have ≥ {STUCK:.0%} "
            f"of the way to it left, and as many have P(1 | 0) and P(1 | 1) ≤ {MAX_APART:g} apart",
            f"the border is p + q = {1 + RIVAL_SHIFT:g}",
        ),
        "learned": Statement(
            "tied networks come near the entropy rate if p + q < 1",
            f"≥ {MIN_CHAINS:.0%} of the chains have ≤ {LEARNED:.0%} of the way left",
            f"the border is p + q = {1 - RIVAL_SHIFT:g}",
        ),
        "untied": Statement(
            "untied networks come near the entropy rate on both sides of p + q = 1",
            f"≥ {MIN_CHAINS:.0%} of the chains have ≤ {LEARNED:.0%} of the way left",
            "untying does what a start near w = −1 does",
        ),
        "start": Statement(
            "from a start near w = −1 tied networks come near the entropy rate if p + q > 1 and p < q",
            f"≥ {MIN_CHAINS:.0%} of the chains have ≤ {LEARNED:.0%} of the way left",
            "whether a chain is learned does not depend on which of p and q is the larger",
        ),
        "mirror": Statement(
            "from that start chains with p < q are learned rather than their mirror images with p > q, if p + q > 1",
            f"of pairs of which one is learned, it is that with p < q in ≥ {MIN_FIRST:.0%} (interval; odds 3)",
            "whether a chain is learned does not depend on which of p and q is the larger",
        ),
    },
    units="pair of mirrored chains (p, q), (q, p), drawn within a cell of a grid; networks of a chain are averaged",
    judged=range(100, 100 + GRID * (GRID + 1) // 2),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "steps": Axis(400, 8000),
        "length": Axis(128, 1024),
        "batch": Axis(16, 50),
        "d_model": Axis(8, 64),
        "chains": Axis(GRID**2, 25),
        "networks of a chain": Axis(4, 3),
        "norms": Axis("none", "LayerNorm"),
    },
    chosen="On 119 explored chains tied networks with p + q > 1 had ≥ 95 % of the way left. More than 25 % was left "
    "for 3 untied chains, and from w = −1 for none of 25 with p < q and 16 of 25 with p > q.",
)
OPTIMIZER = Recipe(steps=400, batch=16, lr=2e-3, weight_decay=1e-3, beta2=0.95, schedule="cosine", warmup=8)
RECIPE = replace(OPTIMIZER, test_examples=128, evals_per_doubling=1)


def subjects() -> Subjects:
    yield _subject(64, RECIPE, 5, PLAN.explored[:15], PLAN.explored[:2])


def large() -> Subjects:
    yield _subject(128, replace(RECIPE, test_examples=256), GRID, PLAN.judged, PLAN.judged[:4])


def _subject(length: int, recipe: Recipe, grid: int, numbers: Sequence[int], seeds: Sequence[int]) -> Subject:
    """Every kind of network at every chain, the shown one first."""
    chains = (SHOWN, *chain_grid.drawn(grid, numbers))
    members = [(*chain, *kind) for kind in KINDS.values() for chain in chains]
    trial = Trial(Markov(length=length), ScalarFamily(), recipe, seeds, {"p,q,tied,e,w": members}, {"after": after})
    return Subject("chains", data={"length": length, "chains": chains}, trials={"chains": trial})


def after(net: object, arrays: object, row: Example, seen: Mapping[str, Array]) -> Array:
    """Return the mean probability of a 1 after 0 and after 1."""
    del net, arrays
    says = jax.nn.softmax(seen["hook_logits"])[..., 1]
    return jnp.stack([jnp.where(row.tokens == bit, says, 0).sum() / (row.tokens == bit).sum() for bit in (0, 1)])


def measure(subject: Subject) -> Measured:
    """Return last values [kind, chain, seed], and the curves of the shown chain [kind, seed, step]."""
    nets = trained(subject)["chains"]
    shape = len(KINDS), len(subject.data["chains"]), -1
    last = {name: nets.final(name) for name in ("loss", "floor", "floor.unigram", "after")}
    arrays = {name: each.reshape(*shape, *each.shape[2:]) for name, each in last.items()}
    curves = nets.curves("loss")
    return arrays | {"curves": curves.reshape(*shape[:2], *curves.shape[1:])[:, 0]}


def judge(subject: Subject, measured: Measured) -> Evidence:
    left, most = left_of_the_way(measured).mean(axis=-1), partial(Criterion.judged, share=MIN_CHAINS)  # [kind, chain]
    apart = abs(np.diff(measured["after"][TIED], axis=-1)[..., 0]).mean(axis=-1)
    below, above = chain_grid.sides(subject, measured)
    chains, way = subject.data["chains"], "left of the way from H(π)"
    first, second = chain_grid.pairs(chains, above)
    criteria = [
        most(f"tied, p + q > 1: {way}", left[TIED][above], at_least=STUCK, statement="stuck"),
        most("tied, p + q > 1: P(1 | 0) and P(1 | 1) apart", apart[above], at_most=MAX_APART, statement="stuck"),
        most(f"tied, p + q < 1: {way}", left[TIED][below], at_most=LEARNED, statement="learned"),
        most(f"untied, p + q > 1: {way}", left[UNTIED][above], at_most=LEARNED, statement="untied"),
        most(f"untied, p + q < 1: {way}", left[UNTIED][below], at_most=LEARNED, statement="untied"),
        most(f"start w = −1, p + q > 1, p < q: {way}", left[BETTER][first], at_most=LEARNED, statement="start"),
        _mirror(left[BETTER][first] <= LEARNED, left[BETTER][second] <= LEARNED),
    ]
    told = [Quantity(f"start w = −1, p + q < 1: mean {way}", left[BETTER][below].mean())]
    floors = (measured[name][TIED, 0].mean() for name in ("floor.unigram", "floor"))
    cells = [[[*chain, part] for chain, part in zip(chains, own, strict=True)] for own in left]
    figure = {
        "cells": dict(zip(KINDS, cells, strict=True)),
        "curves": dict(zip(KINDS, measured["curves"], strict=True)),
        "steps": subject.trials["chains"].recipe.eval_steps(),
        "floors": dict(zip(("H(π)", "entropy rate"), floors, strict=True)),
        "chain": SHOWN,
    }
    return evidence(subject, criteria, figure, told)


def _mirror(first: Array, second: Array) -> Criterion:
    """Return the criterion that of pairs of which one is learned it is the first, with the exact interval."""
    ahead, different = int((first & ~second).sum()), int((first != second).sum())
    share, interval = (ahead / different, rate_interval(ahead, different)) if different else (0.5, (0.0, 1.0))
    name = "start w = −1, p + q > 1, one of two mirror images is learned: that with p < q"
    return Criterion.estimated(name, share, interval, at_least=MIN_FIRST, null=0.5, statement="mirror")


def draw(figures: Figures) -> Figure:
    data = figures["chains"]
    figure, axes = sheet(2, 2, "Where does training get stuck? One-layer transformers on chains of bits", 4.8, 4.2)
    for own, (kind, cells) in zip(axes.flat, data["cells"].items(), strict=False):
        p, q, left = np.array(cells).T
        size = 250 if 20 < len(p) <= 144 else 160
        drawn = own.scatter(p, q, s=size, c=left, marker="s", cmap="coolwarm", vmin=0, vmax=1, edgecolors="white")
        own.plot([0, 1], [1, 0], "k--", linewidth=1)
        own.text(0.5, 0.5, "p + q = 1", fontsize=8, rotation=-45, ha="center", va="center", backgroundcolor="white")
        own.set(xlim=(0, 1), ylim=(0, 1), xlabel="p = P(1 after 0)", ylabel="q = P(0 after 1)", aspect="equal")
        own.set_title(f"{kind}: theory says stuck {'above the line' if kind == 'tied' else 'nowhere'}", fontsize=9)
    figure.colorbar(drawn, ax=axes, label="left of the way from H(π) (1) to the entropy rate (0)", shrink=0.6)
    own, (low, high) = axes[1][1], sorted(data["floors"].values())
    groups = {f"{kind} ({len(each)} seeds)": each for kind, each in data["curves"].items()}
    limits = low - 0.2 * (high - low), high + (high - low)
    panel(own, data["steps"], groups, data["floors"], colors=("C3", "C0", "C2"), steps=True, size=7, ylim=limits)
    own.set(ylabel="loss (nats per bit)", title="p = {:g}, q = {:g}".format(*data["chain"]))
    return figure


NULLS: Mapping[str, Null] = {
    "stuck": partial(chain_grid.border_elsewhere, shift=RIVAL_SHIFT),
    "learned": partial(chain_grid.border_elsewhere, shift=-RIVAL_SHIFT),
    "untied": chain_grid.as_from_the_start,
    **dict.fromkeys(("start", "mirror"), chain_grid.either_mirror_image),
}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, measure, id="L2", standing="experiment")
