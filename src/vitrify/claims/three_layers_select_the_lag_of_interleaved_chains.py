r"""Three attention layers learn to infer in context which lag a sequence follows; one layer does not.

Statement: The transition matrix $P$ is fixed, and each sequence follows it at a lag of its own, $x_t \sim P(\cdot \mid
x_{t-\ell})$, so that it interleaves $\ell$ chains. The Bayes predictor averages the predictions of all lags with their
posterior weights given the sequence so far. Attention-only transformers of three layers come close to it in KL
divergence. One layer stops improving far from it, though nearer than the average with equal weights.
Why: The prediction needs pairs of symbols, the sum of their log-probabilities for each lag, and a selection by these
sums: one layer for each. The scores of one layer compare the current symbol with single earlier ones, never two earlier
ones with each other.
Checked: KL divergence from the Bayes predictor in the second half of sequences, 8 seeds, one matrix with 3 states, lags
1 to 3. Quick scale has length 32, width 32 and 800 steps (4,000 for one layer); large scale has length 64, width 64 and
8,000 steps. In all seeds three layers must be below 0.13 nats and below 0.65 times the mean of one layer; one layer
must be above 0.15 nats and gain at most 0.01 in its last third.
Not checked: Other matrices, more lags, two layers, the authors' sizes, and that one layer beats the average with equal
weights (the figure shows it). The bound for three layers is well above the optimum. At quick scale one layer has five
times as many steps, since with three times as many only 6 of 8 seeds were flat.
Source: D'Angelo, Croce and Flammarion 2025, arXiv 2509.08184 [S]; sizes and bounds are ours.
Saboteur: Networks of one layer are presented as those of three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import jax
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.trial import Criterion, Evidence, Recipe, Trial, evidence, trained
from vitrify.learn.figures import band, panel, reference_line, sheet
from vitrify.learn.measure import divergence, log_probabilities
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Example, examples
from vitrify.sandboxes.interleaved import Interleaved

MAX_DEEP = 0.13  # nats of KL, of three layers
MAX_RATIO = 0.65  # KL of three layers over that of one
MIN_SHALLOW = 0.15  # nats of KL, of one layer
MAX_GAIN = 0.01  # nats by which the KL of one layer may decrease in its last third
LABELS = {"lags": "uniform average over lags", "unigram": "symbol frequencies"}


def subjects() -> Subjects:
    recipe = Recipe(steps=800, batch=32, lr=4e-3, test_examples=256, evals_per_doubling=8)
    yield _subject(32, 32, recipe, patience=5)


def large() -> Subjects:
    yield _subject(64, 64, Recipe(steps=8000, batch=64, lr=1e-3, test_examples=256, evals_per_doubling=8), patience=1)


def _subject(length: int, d_model: int, recipe: Recipe, patience: int) -> Subject:
    """Return the trials of one and three layers; one layer has `patience` times as many steps."""
    sandbox = Interleaved(states=3, lags=(1, 2, 3), length=length, alpha=0.3, task=1)
    family = TransformerFamily(layers=3, heads=1, d_model=d_model, units=0, positions="relative")
    three = Trial(sandbox, family, recipe, probes={"late": partial(_late, sandbox)})
    longer = replace(recipe, steps=patience * recipe.steps)
    one = replace(three, family=replace(family, layers=1), recipe=longer)
    return Subject("interleaved", data={"length": length, "d_model": d_model}, trials={"3": three, "1": one})


def sabotage(subject: Subject) -> Subject:
    return replace(subject, trials=dict.fromkeys(subject.trials, subject.trials["1"]))


def late(sandbox: Interleaved, row: Example, logp: Array) -> Array:
    """Return the mean KL from the Bayes predictor to log-probabilities [sequence, query, symbol], in second halves."""
    each = divergence(jax.vmap(sandbox.optimal)(row), logp)
    return each[:, each.shape[1] // 2 :].mean()


def _late(sandbox: Interleaved, net: Transformer, arrays: object, row: Example, seen: Mapping[str, Array]) -> Array:
    del arrays
    return late(sandbox, row, log_probabilities(seen["hook_logits"][:, net.pads - 1 :]))


def _known(sandbox: Interleaved, count: int) -> dict[str, float]:
    """Return that KL for known predictors: the uniform average over lags, and symbol frequencies."""
    row = examples(sandbox, 0, "probe", 0, count)
    known = {"lags": sandbox.mean, "unigram": sandbox.unigram}
    return {name: float(late(sandbox, row, jax.vmap(predictor)(row))) for name, predictor in known.items()}


def check(subject: Subject) -> Evidence:
    nets = trained(subject)
    curves = {layers: each.curves("late") for layers, each in nets.items()}
    three, one, trial = curves["3"][:, -1], curves["1"][:, -1], nets["1"].trial
    steps = {layers: each.steps for layers, each in nets.items()}
    # last mark before the last third
    third = int(np.searchsorted(steps["1"], 2 * steps["1"][-1] / 3, side="right")) - 1
    criteria = [
        Criterion.judged("KL of three layers", three, at_most=MAX_DEEP),
        Criterion.judged("KL of three layers over the mean KL of one layer", three / one.mean(), at_most=MAX_RATIO),
        Criterion.judged("KL of one layer", one, at_least=MIN_SHALLOW),
        Criterion.judged("decrease of one layer in its last third", curves["1"][:, third] - one, at_most=MAX_GAIN),
    ]
    known = _known(trial.sandbox, trial.recipe.test_examples)
    figure = {"steps": steps, "curves": curves, "known": known, "members": len(trial.seeds)}
    return evidence(subject, criteria, figure)


def draw(figures: Figures) -> Figure:
    (data,) = figures.values()
    figure, ((axes,),) = sheet(1, 1, "Which lag does this sequence follow?", width=6.4, height=4.2)
    for layers, color in (("1", "C3"), ("3", "C0")):
        label = f"{layers} layer{'s' * (layers != '1')} ({data['members']} seeds)"
        band(axes, data["steps"][layers], data["curves"][layers], label, color)
    reference_line(axes, MAX_DEEP, "threshold for three layers", color="C0", at=0.01)
    reference_line(axes, MIN_SHALLOW, "threshold for one layer", color="C3", at=0.99)
    lines = {LABELS[name]: value for name, value in data["known"].items()}
    label = "KL from the Bayes predictor (nats per symbol)"
    panel(axes, lines=lines, at=0.01, steps=True, ylabel=label, ylim=(0, None))
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L8", standing="experiment", learned=True, budget_seconds=180)
