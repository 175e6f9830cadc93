r"""A transformer that learns Markov chains in context passes through stages: uniform, unigram, bigram.

Statement: Each training sequence is drawn from a Markov chain of its own. An attention-only transformer with two layers
of one head and learned relative positions passes two plateaus on its way to the optimum. On the first it predicts the
uniform distribution, on the second the symbol frequencies of the sequence (unigram). Then, within a short interval, the
first head comes to attend to the previous token and the second layer counts what followed the current symbol (bigram),
which is optimal.
Why: Symbol frequencies need only uniform attention and a readout, which the first gradient steps learn. Bigram counts
need both layers, and the gradient of each is small as long as the other layer does not do its part.
Checked: Three states; sequences of 64 symbols, 600 steps and 8 seeds at quick scale, sequences of 100, 2,000 steps and
16 seeds at large scale. The plateaus of each seed's test loss are detected by slope and named after the predictor with
the least KL divergence; their order and their levels are judged. So are the KL divergences from the unigram and the
bigram predictor on the way and at the end, and the rise of the first head's attention to the previous token.
Not checked: Two states: there the first plateau is too short for the slope rule in most seeds (28 of 64 show it),
while all else is the same. Other depths, widths and priors, such as doubly stochastic chains. Relative position scores
are multiplied by a gain, as the authors' minimal model trains them at a higher rate; first symbols are uniform. That
the head keeps attending to the previous token is untested: in long training its weight may fall again while the loss
decreases.
Source: Edelman, Tsilivis, Edelman, Malach and Goel 2024, arXiv 2402.11004 [S]; in the spirit of their experiments.
Saboteur: Sequences of independent symbols, each with a distribution of its own: there are no bigrams to learn, so the
third stage is missing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.trial import Criterion, Evidence, Recipe, Trial, evidence, trained
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import attention_on, previous_token
from vitrify.learn.stages import gap, levels, order, stages
from vitrify.sandboxes.in_context_markov import InContextMarkov
from vitrify.sandboxes.kit.contexts import order_name

STAGES = ("uniform", "unigram", "bigram")
MIN_SEEDS = 7 / 8  # share of the seeds that must go through the stages in their order
WINDOW = 0.5  # in ln(1 + step), over which slopes are fitted: no more than the shortest plateau; curves have the points
MAX_GAP = 0.05  # relative distance of a plateau's level from the loss of the predictor that it is named after
CLOSE_KL = 0.04  # nats
MIN_RATIO_DURING, MIN_RATIO_END = 3.0, 2.0  # KL from the other predictor over KL from the near one
START_WEIGHT, PEAK_WEIGHT, MAX_RISE = 0.15, 0.9, 0.4  # attention to the previous token; share of steps of its rise
PROBES = {"previous": attention_on(previous_token)}
FAMILY = TransformerFamily(  # without norms, so that nets begin at the uniform predictor
    layers=2, heads=1, d_model=32, units=0, positions="relative", norm=False, biases=False, scale=0.7, gain=15.0
)


def subjects() -> Subjects:
    recipe = Recipe(steps=600, batch=32, lr=3e-3, test_examples=256, evals_per_doubling=8)
    yield _subject("3 states, rows of 64", InContextMarkov(states=3, length=64), recipe, seeds=8)


def large() -> Subjects:
    recipe = Recipe(steps=2000, batch=64, lr=3e-3, test_examples=1024, evals_per_doubling=8)
    yield _subject("3 states, rows of 100", InContextMarkov(states=3, length=100), recipe, seeds=16)


def _subject(name: str, sandbox: InContextMarkov, recipe: Recipe, seeds: int) -> Subject:
    data = {"states": sandbox.states, "length": sandbox.length}
    return Subject(name, data=data, trials={"chains": Trial(sandbox, FAMILY, recipe, range(seeds), probes=PROBES)})


def sabotage(subject: Subject) -> Subject:
    trial = subject.trials["chains"]
    independent = replace(trial, sandbox=replace(trial.sandbox, order=0))
    return replace(subject, name=f"{subject.name}, independent", trials={"chains": independent})


def check(subject: Subject) -> Evidence:
    nets = trained(subject)["chains"]
    sandbox, optimal = nets.trial.sandbox, order_name(nets.trial.sandbox.order)
    plateaus = [stages(run.curve, window=WINDOW, optimal=optimal) for run in nets.runs]
    losses = [levels(run.curve, optimal) for run in nets.runs]
    unigram, bigram = (nets.curves(f"kl.{name}" if name in sandbox.predictors() else "kl") for name in STAGES[1:])
    heads = np.moveaxis(nets.curves("previous"), -1, 0)  # [head, seed, step]
    weight = heads[0]
    ratio = np.where(unigram <= CLOSE_KL, bigram / unigram, 0.0).max(axis=1)
    judged, passed = Criterion.judged, [float(order(each) == STAGES) for each in plateaus]
    gaps = [gap(*both) for both in zip(plateaus, losses, strict=True)]
    rises = [_rise(nets.steps, each) for each in weight]
    criteria = [
        judged(f"plateaus in the order {', '.join(STAGES)}", passed, at_least=1, share=MIN_SEEDS),
        judged("distance of a plateau's level from its predictor's loss", gaps, at_most=MAX_GAP),
        judged("largest KL(bigram)/KL(unigram) where KL(unigram) ≤ 0.04", ratio, at_least=MIN_RATIO_DURING),
        judged("KL(bigram) at the end, nats", bigram[:, -1], at_most=CLOSE_KL),
        judged("KL(unigram)/KL(bigram) at the end", unigram[:, -1] / bigram[:, -1], at_least=MIN_RATIO_END),
        judged("attention to the previous token, at the start", weight[:, 0], at_most=START_WEIGHT),
        judged("attention to the previous token, largest", weight.max(axis=1), at_least=PEAK_WEIGHT, share=MIN_SEEDS),
        judged("attention to the previous token, at the end", weight[:, -1]),
        judged("share of the steps in which it rises", rises, at_most=MAX_RISE),
    ]
    figure = {
        "steps": nets.steps,
        "loss": nets.curves("loss"),
        "unigram": unigram,
        "bigram": bigram,
        "head 1": heads[0],
        "head 2": heads[1],
        "levels": losses[0],
        "stages": [[(s.name, s.plateau.start, s.plateau.end) for s in each] for each in plateaus],
    }
    return evidence(subject, criteria, figure)


def _rise(steps: list[int], weight: Array) -> float:
    """Return the share of the steps between a tenth and nine tenths of the way from the first to the highest value."""
    way = (weight - weight[0]) / (weight.max() - weight[0])
    return float((steps[np.argmax(way >= 0.9)] - steps[np.argmax(way >= 0.1)]) / steps[-1])


def draw(figures: Figures) -> Figure:
    figure, axes = sheet(len(figures), 3, "In-context chains are learned in stages")
    for (name, data), (losses, distances, weights) in zip(figures.items(), axes, strict=True):
        draw = partial(panel, x=data["steps"], steps=True)
        loss = {f"test loss ({len(data['loss'])} seeds)": data["loss"]}
        kl = {f"KL({each} ‖ net)": data[each] for each in STAGES[1:]}
        heads = {f"layer {layer}": data[f"head {layer}"] for layer in (1, 2)}
        near, title = {"threshold: 0.04": CLOSE_KL}, "distance from counting symbols, pairs"
        draw(losses, groups=loss, lines=data["levels"], ylabel="loss (nats per symbol)", title=name)
        draw(distances, groups=kl, lines=near, ylabel="nats per symbol", yscale="log", title=title, colors=("C1", "C2"))
        draw(weights, groups=heads, lines={"0.9": PEAK_WEIGHT}, colors=("C3", "C4"), ylim=(0, 1))
        weights.set(ylabel="attention to the previous token", title="attention of both heads")
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L5", standing="experiment", learned=True, budget_seconds=180)
