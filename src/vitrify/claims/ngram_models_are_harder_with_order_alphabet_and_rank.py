r"""Transformers learn random n-gram models worse the larger the order, the alphabet and the rank are.

Statement: Random n-gram models have logits $E\sum_j V_j[y_{t-j}]$, where symbols have vectors of dimension $R$ (rank):
their contexts share parameters. Transformers of one size, trained alike, end with a KL divergence (from model to
transformer) that grows with $n$, $|\Sigma|$ and $R$: $\ln \mathrm{KL}$ has positive regression coefficients for $n$,
$\ln|\Sigma|$ and $R$. From few strings such a transformer beats add-$\lambda$ counts (*shared*); if every context has
an independent distribution, counts beat the transformer (*general*).
Why: $n$ and $|\Sigma|$ set the number of vectors to learn, $R$ their dimension. Every string tells something about
shared parameters; independent distributions can only be learned from strings in which their context occurs.
Not checked: The sizes of the source, other smoothers, log-linear and neural n-gram models, other numbers of heads and
layers, sparse attention. Harder is a larger KL: larger sizes also leave more to learn, so effects are given as well on
the KL over that of the uniform distribution.
Source: Svete, Borenstein, Zhou, Augenstein and Cotterell 2024, arXiv 2410.03001 [S]: the factors, and which method
wins; the thresholds are ours.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import ngrams
from vitrify.claims.trials.ngrams import EFFECTS, design, fitted
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, evidence, recalled
from vitrify.intervals import mean_interval
from vitrify.learn.figures import panel, reference_line, sheet

FAMILIES = {"general": "independent contexts", "shared": "shared parameters"}
MAX_GENERAL, MAX_SHARED, MAX_MEAN = 0.6, 0.9, 0.7  # ratios of the winner's KL to the other's
MIN_SEEDS = 7 / 8  # that were trained beyond their best step
MIN_EFFECT, CONFIDENCE = 1e-9, 1 - 0.05 / 3  # lower end of an interval; of each of three
MIN_PAST = 1.02  # KL of the transformer at the end over that at its stopping step: it was trained beyond
MAX_UNIFORM = 1.0  # KL of a network in the grid, over that of the uniform distribution
GRID = Recipe(schedule="cosine", lr=3e-3, evals_per_doubling=0, steps=250, batch=16, test_examples=128)
STRINGS = Recipe(
    train_examples=270, weight_decay=0.1, evals_per_doubling=2, steps=256, batch=16, lr=2e-2, test_examples=128
)
FACTORS = dict(zip(("order", "alphabet", "rank"), EFFECTS, strict=True))  # statement, and name of the regressor
PLAN = Plan(
    version=1,
    question="Which random n-gram models does a transformer learn worse, and where do counts of contexts beat it?",
    statements={
        key: Statement(
            f"the KL of trained transformers grows with the {key} {name}",
            f"coefficient of {name} in the regression of ln KL on n, ln |Σ| and R: {CONFIDENCE:.1%} interval above 0",
            f"the KL depends on the other two factors only: the coefficient of {name} is 0 in the mean over seeds",
        )
        for key, name in FACTORS.items()
    }
    | {
        "general": Statement(
            "from few strings of models with independent contexts, counts beat the transformer",
            f"KL of add-λ counts over that of the transformer ≤ {MAX_GENERAL} for every seed; premise: the transformer "
            f"was trained beyond its best step, its KL grows by a factor ≥ {MIN_PAST}",
            "both are equally good: the ratio is 1 in the geometric mean",
        ),
        "shared": Statement(
            "from few strings of models with shared parameters, the transformer beats counts",
            f"KL of the transformer over that of add-λ counts ≤ {MAX_SHARED} for every seed; the 95 % interval of its "
            f"geometric mean below {MAX_MEAN}",
            "both are equally good: the ratio is 1 in the geometric mean",
        ),
    },
    units="seed, each with its own model in every cell of the grid and in both families, and its own network",
    judged=range(100, 108),
    explored=range(32),
    stopping="grid: fixed number of steps; strings: the step that is best for the other seeds; counts: λ that is best "
    "for other strings",
    scale={
        "n": Axis(8, "?"),
        "alphabet": Axis(64, "?"),
        "rank": Axis(16, "?"),
        "heads, layers": Axis("n - 1 heads, 2 layers", "?"),
        "attention": Axis("softmax", "softmax and sparse"),
        "baselines": Axis("add-λ", "add-λ and others"),
    },
    chosen="In the run before the plan the stopping step was that of the least KL on the test strings of each seed.",
)


def subjects() -> Subjects:
    factors, seeds = {"orders": (2, 5), "alphabets": (4, 12), "ranks": (1, 6)}, PLAN.explored[:8]
    yield ngrams.grid_subject(factors, 20, GRID, seeds, d_model=32, layers=1)
    yield ngrams.counts_subject(12, 32, STRINGS, seeds, d_model=32, layers=1)


def large() -> Subjects:
    """24 cells in one program; strings over 16 symbols."""
    factors = {"orders": (2, 4, 6, 8), "alphabets": (8, 16, 64), "ranks": (2, 16)}
    recipe = replace(GRID, steps=1500, batch=32, test_examples=512)
    yield ngrams.grid_subject(factors, 64, recipe, PLAN.judged, d_model=64, layers=2)
    recipe = replace(STRINGS, train_examples=600, steps=1500, batch=32, lr=3e-3, test_examples=512)
    yield ngrams.counts_subject(16, 64, recipe, PLAN.judged, d_model=64, layers=2)


def judge(subject: Subject, arrays: Measured) -> Evidence:
    return _judge_grid(subject, arrays) if subject.name == "grid" else _judge_counts(subject, arrays)


def _judge_grid(subject: Subject, arrays: Measured) -> Evidence:
    nets, cells = recalled(subject, arrays)["grid"], subject.data["cells"]
    kl, uniform = nets.final("kl"), nets.final("floor.uniform") - nets.final("floor")  # [cell, seed]
    (each, explained), (relative, _) = fitted(cells, kl), fitted(cells, kl / uniform)  # [seed, factor]
    name = "KL over that of the uniform distribution"
    criteria = [Criterion.judged(name, (kl / uniform).ravel(), at_most=MAX_UNIFORM, premise=True)]
    quantities, effects = [Quantity("explained share of the variance", explained)], {}
    spans = dict(zip(EFFECTS, each.mean(axis=0) * np.ptp(design(cells)[:, 1:], axis=0), strict=True))
    for at, (key, name) in enumerate(FACTORS.items()):
        mean, interval, of = each[:, at].mean(), mean_interval(each[:, at], CONFIDENCE), f"effect of {name} on ln KL"
        judged = partial(Criterion.estimated, of, mean, interval, statement=key, values=each[:, at])
        criteria.append(judged(at_least=MIN_EFFECT, null=0.0))
        effects[name] = mean, *interval
        quantities.append(Quantity(f"factor in KL over the range of {name}", np.exp(spans[name])))
        ends, of = mean_interval(relative[:, at], CONFIDENCE), f"effect of {name} on ln of the KL over that of uniform"
        quantities.append(Quantity(of, relative[:, at].mean(), interval=ends))
    line = np.linalg.lstsq(design(cells), np.log(kl).mean(axis=1))[0]
    figure = {"cells": cells, "kl": kl, "effects": effects, "spans": spans, "line": line}
    return evidence(subject, criteria, figure, quantities)


def _judge_counts(subject: Subject, arrays: Measured) -> Evidence:
    figure, ratios, past = {}, {}, {}
    for family, nets in recalled(subject, arrays).items():
        curves, counts = nets.curves("kl"), arrays[f"{family}/counts"]
        transformer, uniform = ngrams.stopped(curves), np.mean(nets.final("floor.uniform") - nets.final("floor"))
        ratios[family], past[family] = transformer / counts, nets.final("kl") / transformer
        figure[family] = {"steps": nets.steps, "curves": curves, "transformer": transformer, "counts": counts}
        figure[family]["uniform"] = uniform
    general, shared = 1 / ratios["general"], ratios["shared"]
    mean, (low, high) = np.exp(np.log(shared).mean()), np.exp(mean_interval(np.log(shared)))
    of, over = "KL of the transformer over that of counts", "KL of counts over that of the transformer"
    judged, estimated = (partial(kind, statement="shared") for kind in (Criterion.judged, Criterion.estimated))
    counted, beyond = partial(Criterion.judged, statement="general"), "KL at the end over that at the stopping step"
    criteria = [
        counted(f"independent contexts: {beyond}", past["general"], at_least=MIN_PAST, share=MIN_SEEDS, premise=True),
        counted(f"independent contexts: {over}", general, at_most=MAX_GENERAL),
        judged(f"shared parameters: {of}", shared, at_most=MAX_SHARED),
        estimated(f"shared parameters: {of}, geometric mean", mean, (low, high), at_most=MAX_MEAN, null=1.0),
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


NULLS = {key: partial(ngrams.without_effect, name=name) for key, name in FACTORS.items()} | {
    family: partial(ngrams.equally_good, family=family) for family in FAMILIES
}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, ngrams.measure, id="L12", standing="experiment")
