r"""Three attention layers learn to infer in context which lag a sequence follows; one layer does not.

Statement: The transition matrix $P$ is fixed, and each sequence follows it at a lag of its own, $x_t \sim P(\cdot \mid
x_{t-\ell})$, so that it interleaves $\ell$ chains. The Bayes predictor averages the predictions of all lags with their
posterior weights given the sequence so far. Attention-only transformers of three layers come close to it in KL
divergence. One layer stops improving far from it, though nearer than the average with equal weights.
Why: The prediction needs pairs of symbols, the sum of their log-probabilities for each lag, and a selection by these
sums: one layer for each. The scores of one layer compare the current symbol with single earlier ones, never two earlier
ones with each other.
Not checked: More states and lags, two layers, the authors' sizes. Only four matrices are judged, with four seeds each;
matrices differ more than seeds, so distances are given as parts of what averaging over the lags costs. The bound for
three layers is well above the optimum. At quick scale one layer has five times as many steps, since with three times as
many only 6 of 8 seeds were flat.
Source: D'Angelo, Croce and Flammarion 2025, arXiv 2509.08184 [S]; sizes and bounds are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials.lags import NULLS, late, measure
from vitrify.claims.trials.trial import (
    Criterion,
    Evidence,
    Measured,
    Quantity,
    Recipe,
    Trial,
    evidence,
    recalled,
)
from vitrify.learn.figures import band, panel, reference_line, sheet
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.sandboxes.interleaved import Interleaved

# KL from the Bayes predictor, in parts of the KL of the average over lags with equal weights
MAX_DEEP = 1 / 3  # of three layers
MIN_SHALLOW = 3 / 8  # of one layer
MAX_GAIN = 1 / 40  # by which that of one layer may decrease in its last third
MAX_RATIO = 0.65  # KL of three layers over that of one
LABELS = {"lags": "uniform average over lags", "unigram": "symbol frequencies"}
PLAN = Plan(
    version=1,
    question="How many attention layers does it take to infer in context which lag a sequence follows?",
    statements={
        "three": Statement(
            "three layers come close to the Bayes predictor",
            f"KL ≤ {MAX_DEEP:.3f} of that of the average over lags, and ≤ {MAX_RATIO} times the mean of one layer",
            "three layers select the lag of half of the sequences, and do on the others what one layer does",
        ),
        "one": Statement(
            "one layer stops improving far from it",
            f"KL ≥ {MIN_SHALLOW} of that of the average over lags, and in the last third it decreases by ≤ {MAX_GAIN}",
            "one layer learns as three do, and has come as far after all its steps as they after half of theirs",
        ),
        "average": Statement(
            "one layer is nearer to it than the average over lags with equal weights",
            "KL ≤ that of the average over lags",
            "one layer is that average, up to the differences between seeds",
        ),
    },
    units="transition matrix, with seeds of the same numbers",
    judged=(102, 103, 107, 111),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "layers": Axis(3, 3),
        "matrices": Axis(4, "?"),
        "lags": Axis(3, "?"),
        "length": Axis(64, "?"),
        "d_model": Axis(64, "?"),
        "steps": Axis(8000, "?"),
    },
    chosen="Bounds were 0.13, 0.15 and 0.01 nats on matrix 1, where the average over lags has 0.40. Judged are the "
    "first 4 matrices from 100 on where it has at least 0.2 nats: an exact number, known without training.",
)


def subjects() -> Subjects:
    recipe = Recipe(steps=800, batch=32, lr=4e-3, test_examples=256, evals_per_doubling=8)
    yield _subject(32, 32, recipe, (1,), PLAN.explored[:8], patience=5)


def large() -> Subjects:
    recipe = Recipe(steps=8000, batch=64, lr=1e-3, test_examples=256, evals_per_doubling=8)
    yield _subject(64, 64, recipe, PLAN.judged, PLAN.judged, patience=1)


def _subject(
    length: int, d_model: int, recipe: Recipe, matrices: Sequence[int], seeds: Sequence[int], patience: int
) -> Subject:
    """Return the trials of one and three layers on each matrix; one layer has `patience` times as many steps."""
    three = TransformerFamily(layers=3, heads=1, d_model=d_model, units=0, positions="relative")
    nets = {"3": (three, recipe), "1": (replace(three, layers=1), replace(recipe, steps=patience * recipe.steps))}
    trials = {}
    for matrix in matrices:
        sandbox = Interleaved(states=3, lags=(1, 2, 3), length=length, alpha=0.3, task=matrix)
        for layers, (family, own) in nets.items():
            probes = {"late": partial(late, sandbox)}
            trials[f"{layers}, matrix {matrix}"] = Trial(sandbox, family, own, seeds, probes=probes)
    return Subject("interleaved", data={"length": length, "d_model": d_model, "matrices": matrices}, trials=trials)


def judge(subject: Subject, measured: Measured) -> Evidence:
    matrices = subject.data["matrices"]
    nets = recalled(subject, measured)
    names = {layers: [f"{layers}, matrix {matrix}" for matrix in matrices] for layers in ("3", "1")}
    known = np.array([nets[name].values["known"] for name in names["1"]])  # [matrix, predictor]
    # in parts of the average over lags: [matrix, seed, step]
    curves = {
        layers: np.array([nets[name].curves("late") / level for name, level in zip(own, known[:, 0], strict=True)])
        for layers, own in names.items()
    }
    steps = {layers: nets[own[0]].steps for layers, own in names.items()}
    three, one = curves["3"][..., -1], curves["1"][..., -1]
    # last mark before the last third
    third = int(np.searchsorted(steps["1"], 2 * steps["1"][-1] / 3, side="right")) - 1
    deep, shallow, average = (partial(Criterion.judged, statement=key) for key in PLAN.statements)
    ratio, gain = three / one.mean(axis=1, keepdims=True), curves["1"][..., third] - one
    criteria = [
        deep("KL of three layers, in parts of the average over lags", three.ravel(), at_most=MAX_DEEP),
        deep("KL of three layers over the mean KL of one layer", ratio.ravel(), at_most=MAX_RATIO),
        shallow("KL of one layer, in parts of the average over lags", one.ravel(), at_least=MIN_SHALLOW),
        shallow("decrease of one layer in its last third, in these parts", gain.ravel(), at_most=MAX_GAIN),
        average("KL of one layer, in parts of the average over lags", one.ravel(), at_most=1.0),
    ]
    figure = {
        "steps": steps,
        "curves": {layers: own.reshape(-1, own.shape[-1]) for layers, own in curves.items()},
        "known": {"lags": 1.0, "unigram": float((known[:, 1] / known[:, 0]).mean())},
        "members": f"{len(matrices)} matrices × {three.shape[1]}" if len(matrices) > 1 else three.size,
        "bounds": [MAX_DEEP, MIN_SHALLOW],
        "label": "KL from the Bayes predictor / that of the average",
    }
    levels = [
        Quantity(f"matrix {matrix}: nats of KL of the average over lags", level)
        for matrix, level in zip(matrices, known[:, 0], strict=True)
    ]
    return evidence(subject, criteria, figure, levels)


def draw(figures: Figures) -> Figure:
    (data,) = figures.values()
    figure, ((axes,),) = sheet(1, 1, "Which lag does this sequence follow?", width=6.4, height=4.2)
    for layers, color in (("1", "C3"), ("3", "C0")):
        label = f"{layers} layer{'s' * (layers != '1')} ({data['members']} seeds)"
        band(axes, data["steps"][layers], data["curves"][layers], label, color)
    most, least = data.get("bounds", (0.13, 0.15))  # in nats, before version 1
    reference_line(axes, most, "threshold for three layers", color="C0", at=0.01)
    reference_line(axes, least, "threshold for one layer", color="C3", at=0.99)
    lines = {LABELS[name]: value for name, value in data["known"].items()}
    label = data.get("label", "KL from the Bayes predictor (nats per symbol)")
    panel(axes, lines=lines, at=0.01, steps=True, ylabel=label, ylim=(0, None))
    return figure


CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, measure, id="L8", standing="experiment")
