r"""Transformers learn random n-gram models worse the larger the order, the alphabet and the rank are.

Statement: Random n-gram models have logits $E\sum_j V_j[y_{t-j}]$, where symbols have vectors of dimension $R$ (rank):
their contexts share parameters. Transformers of one size, trained alike, end with a KL divergence (from model to
transformer) that grows with $n$, $|\Sigma|$ and $R$: $\ln \mathrm{KL}$ has positive regression coefficients for $n$,
$\ln|\Sigma|$ and $R$. From few strings such a transformer beats add-$\lambda$ counts (*shared*); if every context has
an independent distribution, counts beat the transformer (*general*).
Why: $n$ and $|\Sigma|$ set the number of vectors to learn, $R$ their dimension. Every string tells something about
shared parameters; independent distributions can only be learned from strings in which their context occurs.
Checked: Eight models, one per seed, in each cell of a grid of $(n, |\Sigma|, R)$: 8 cells with $n$ up to 5 and
$|\Sigma|$ up to 12 at quick scale, 24 cells with $n$ up to 8 and $|\Sigma|$ up to 64 at large scale. The KL per symbol,
exact at each prefix of test strings, is regressed for each seed; the 95 % bootstrap interval over seeds of each
coefficient must lie above 0. Both families are also trained with $n = 4$ on 270 strings (600 at large scale). There the
winner's KL over the other's is at most 0.6 for *general* and 0.9 for *shared* (mean 0.7). Transformers count with their
smallest KL on the test strings along the curve, counts with a $\lambda$ chosen on other strings.
Not checked: The sizes of the source, other smoothers, log-linear and neural n-gram models, other numbers of heads and
layers, sparse attention.
Source: Svete, Borenstein, Zhou, Augenstein and Cotterell 2024, arXiv 2410.03001 [S]: the factors, and which method
wins; the thresholds are ours.
Saboteur: All models of the grid are bigram models, whatever $n$ is stated; the two families are exchanged.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials import ngrams
from vitrify.claims.trials.ngrams import EFFECTS, SEEDS, design
from vitrify.claims.trials.trial import Criterion, Evidence, Quantity, Recipe, evidence, trained
from vitrify.learn.figures import panel, reference_line, sheet

FAMILIES = {"general": "independent contexts", "shared": "shared parameters"}
MAX_GENERAL, MAX_SHARED, MAX_MEAN = 0.6, 0.9, 0.7  # ratios of the winner's KL to the other's
MIN_EFFECT = 1e-9  # the lower end of its interval
GRID = Recipe(schedule="cosine", lr=3e-3, evals_per_doubling=0, steps=250, batch=16, test_examples=128)
STRINGS = Recipe(
    train_examples=270, weight_decay=0.1, evals_per_doubling=2, steps=256, batch=16, lr=2e-2, test_examples=128
)


def subjects() -> Subjects:
    yield ngrams.grid_subject({"orders": (2, 5), "alphabets": (4, 12), "ranks": (1, 6)}, 20, GRID, d_model=32, layers=1)
    yield ngrams.counts_subject(12, 32, STRINGS, d_model=32, layers=1)


def large() -> Subjects:
    """24 cells in one program; strings over 16 symbols."""
    factors = {"orders": (2, 4, 6, 8), "alphabets": (8, 16, 64), "ranks": (2, 16)}
    recipe = replace(GRID, steps=1500, batch=32, test_examples=512)
    yield ngrams.grid_subject(factors, 64, recipe, d_model=64, layers=2)
    recipe = replace(STRINGS, train_examples=600, steps=1500, batch=32, lr=3e-3, test_examples=512)
    yield ngrams.counts_subject(16, 64, recipe, d_model=64, layers=2)


def sabotage(subject: Subject) -> Subject:
    """Bigram models only, at the corners of the grid; families exchanged."""
    if subject.name == "counts":
        return replace(subject, trials={"general": subject.trials["shared"], "shared": subject.trials["general"]})
    corners = [(each[0], each[-1]) for each in (subject.data[name] for name in ("orders", "alphabets", "ranks"))]
    cells = list(product(*corners))
    bigrams = [(2, used, rank) for _, used, rank in cells]
    flat = replace(subject.trials["grid"], axes=ngrams.models(bigrams))
    return replace(subject, data={**subject.data, "cells": cells, "models": bigrams}, trials={"grid": flat})


def check(subject: Subject) -> Evidence:
    return _check_grid(subject) if subject.name == "grid" else _check_counts(subject)


def _check_grid(subject: Subject) -> Evidence:
    nets, cells = trained(subject)["grid"], subject.data["cells"]
    distinct = list(nets.trial.axes["n,used,rank"])
    kl = nets.final("kl")[[distinct.index(model) for model in subject.data["models"]]]  # [cell, seed]
    each, explained = ngrams.fitted(cells, kl)
    mean, (low, high) = each.mean(axis=0), ngrams.bootstrapped(each)
    spans = dict(zip(EFFECTS, mean * np.ptp(design(cells)[:, 1:], axis=0), strict=True))
    effects = dict(zip(EFFECTS, zip(mean, low, high, strict=True), strict=True))
    criteria, quantities = [], [Quantity("explained share of the variance", explained)]
    for name, (effect, *ends) in effects.items():
        of = f"effect of {name} on ln KL"
        criteria.append(Criterion.judged(f"{of}, lower end of the 95 % interval", ends[:1], at_least=MIN_EFFECT))
        quantities.append(Quantity(of, effect, interval=(ends[0], ends[1])))
        quantities.append(Quantity(f"factor in KL over the range of {name}", np.exp(spans[name])))
    line = np.linalg.lstsq(design(cells), np.log(kl).mean(axis=1))[0]
    figure = {"cells": cells, "kl": kl, "effects": effects, "spans": spans, "line": line}
    return evidence(subject, criteria, figure, quantities)


def _check_counts(subject: Subject) -> Evidence:
    figure, ratios, judged = {}, {}, Criterion.judged
    for family, nets in trained(subject).items():
        curves, counts = nets.curves("kl"), ngrams.smoothed(nets.trial.sandbox, SEEDS, nets.trial.recipe)
        least, uniform = curves.min(axis=1), np.mean(nets.final("floor.uniform") - nets.final("floor"))
        ratios[family] = least / counts
        figure[family] = {"steps": nets.steps, "curves": curves, "transformer": least, "counts": counts}
        figure[family]["uniform"] = uniform
    general, shared = 1 / ratios["general"], ratios["shared"]
    criteria = [
        judged("independent contexts: KL of counts over that of the transformer", general, at_most=MAX_GENERAL),
        judged("shared parameters: KL of the transformer over that of counts", shared, at_most=MAX_SHARED),
        judged("shared parameters: mean of these ratios", [np.mean(shared)], at_most=MAX_MEAN),
    ]
    return evidence(subject, criteria, figure)


def draw(figures: Figures) -> Figure:
    """The KL over each factor with the fitted effects, and both families against counts."""
    figure, axes = sheet(2, 3, "Random n-gram models: what makes them hard to learn, and for whom", 4.4, 3.6)
    ngrams.draw_effects(axes[0], figures["grid"])
    contest = figures["counts"]
    for own, (family, title) in zip(axes[1], FAMILIES.items(), strict=False):
        data = contest[family]
        reference_line(own, float(np.mean(data["counts"])), "counts, add-λ", "C1")
        reference_line(own, data["uniform"], "uniform", at=0.01)
        own.set(xscale="log", yscale="log", xlabel="training step", ylabel="KL (nats per symbol)")
        panel(own, data["steps"][1:], {"transformer": np.array(data["curves"])[:, 1:]}, title=title)
    last, values = axes[1][2], []
    for family, color in (("general", "C3"), ("shared", "C2")):
        both = contest[family]["counts"], contest[family]["transformer"]
        last.plot(*both, "o", color=color, label=family)
        values += [*both[0], *both[1]]
    last.plot([min(values), max(values)], [min(values), max(values)], "k:", linewidth=1, label="equal")
    last.set(xlabel="KL of counts (nats per symbol)", ylabel="KL of transformer (nats per symbol)")
    panel(last, xscale="log", yscale="log")
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L12", standing="experiment", learned=True, budget_seconds=180)
