r"""A transformer that learns Markov chains in context passes through stages: uniform, unigram, bigram.

Statement: Each training sequence is drawn from a Markov chain of its own. An attention-only transformer with two layers
of one head and learned relative positions passes two plateaus on its way to the optimum. On the first it predicts the
uniform distribution, on the second the symbol frequencies of the sequence (unigram). Then, within a short interval, the
first head comes to attend to the previous token and the second layer counts what followed the current symbol (bigram),
which is optimal.
Why: Symbol frequencies need only uniform attention and a readout, which the first gradient steps learn. Bigram counts
need both layers, and the gradient of each is small as long as the other layer does not do its part.
Not checked: Two states: there the first plateau is too short for the slope rule in most seeds (28 of 64 show it),
while all else is the same. Other depths, widths and priors, such as doubly stochastic chains. Relative position scores
are multiplied by a gain, as the authors' minimal model trains them at a higher rate; first symbols are uniform. That
the head keeps attending to the previous token is untested: in long training its weight may fall again while the loss
decreases.
Source: Edelman, Tsilivis, Edelman, Malach and Goel 2024, arXiv 2402.11004 [S]; in the spirit of their experiments.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import plateaus
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, Trial, evidence, recalled
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import attention_on, previous_token
from vitrify.learn.stages import gap, order
from vitrify.sandboxes.in_context_markov import InContextMarkov

STAGES = ("uniform", "unigram", "bigram")
MIN_SEEDS = 13 / 16  # share of the seeds
WINDOW = 0.5  # in ln(1 + step), over which slopes are fitted: no more than the shortest plateau; curves have the points
MAX_GAP = 0.05  # relative distance of a plateau's level from the loss of the predictor that it is named after
CLOSE_KL = 0.04  # nats
MIN_RATIO_DURING, MIN_RATIO_END = 3.0, 2.0  # KL from the other predictor over KL from the near one
START_WEIGHT, PEAK_WEIGHT, MAX_RISE = 0.15, 0.9, 0.4  # attention to the previous token; share of steps of its rise
MAX_APART = 0.2  # in ln(1 + step), between the middle of the head's rise and that of the fall of the loss
PROBES = {"previous": attention_on(previous_token)}
FAMILY = TransformerFamily(  # without norms, so that nets begin at the uniform predictor
    layers=2, heads=1, d_model=32, units=0, positions="relative", norm=False, biases=False, scale=0.7, gain=15.0
)
PLAN = Plan(
    version=1,
    question="Does a transformer learn Markov chains in context by way of symbol frequencies, and then of a sudden?",
    statements={
        "stages": Statement(
            "the loss has plateaus at the uniform, the unigram and the bigram predictor, in this order",
            f"so, with levels within {MAX_GAP:.0%} of their losses; where KL(unigram) ≤ {CLOSE_KL:g} nats, KL(bigram) "
            f"is once ≥ {MIN_RATIO_DURING:g} times as large",
            "the loss falls smoothly from its first to its last value, with the measured noise",
        ),
        "end": Statement(
            "at the end the network predicts as bigram counts do",
            f"KL(bigram) ≤ {CLOSE_KL:g} nats, and KL(unigram) ≥ {MIN_RATIO_END:g} times that",
            "training ends half way between the losses of the unigram and the bigram predictor",
        ),
        "head": Statement(
            "the first head comes to attend to the previous token within a short interval",
            f"from ≤ {START_WEIGHT:g} to ≥ {PEAK_WEIGHT:g}; from a tenth to nine tenths of the rise it takes ≤ "
            f"{MAX_RISE:.0%} of the steps",
            "the attention rises evenly in ln(1 + step)",
        ),
        "together": Statement(
            "the head's attention rises when the loss falls from the unigram to the bigram plateau",
            f"the middles of rise and fall are ≤ {MAX_APART:g} apart in ln(1 + step)",
            "the head is formed before, half of it by the middle of the unigram plateau",
        ),
    },
    units="seed, of the network and of all its sequences",
    judged=range(100, 116),
    explored=range(64),
    stopping="fixed number of steps",
    scale={
        "steps": Axis(2000, 2000),
        "batch": Axis(64, 64),
        "length": Axis(100, 100),
        "states": Axis(3, 3),
        "d_model": Axis(32, 16),
        "optimiser": Axis("Adam", "Adam"),
        "scores of positions": Axis("times 15", "a higher learning rate"),
    },
    chosen=f"Every statement asks for {MIN_SEEDS:.0%} of the seeds. Of 16 explored ones all met all of them.",
)


def subjects() -> Subjects:
    recipe = Recipe(steps=600, batch=32, lr=3e-3, test_examples=256, evals_per_doubling=8)
    yield _subject("3 states, rows of 64", InContextMarkov(states=3, length=64), recipe, PLAN.explored[:8])


def large() -> Subjects:
    recipe = Recipe(steps=2000, batch=64, lr=3e-3, test_examples=1024, evals_per_doubling=8)
    yield _subject("3 states, rows of 100", InContextMarkov(states=3, length=100), recipe, PLAN.judged)


def _subject(name: str, sandbox: InContextMarkov, recipe: Recipe, seeds: Sequence[int]) -> Subject:
    data = {"states": sandbox.states, "length": sandbox.length}
    return Subject(name, data=data, trials={"chains": Trial(sandbox, FAMILY, recipe, seeds, probes=PROBES)})


def judge(subject: Subject, measured: Measured) -> Evidence:
    nets = recalled(subject, measured)["chains"]
    passed, losses = zip(
        *(plateaus.stages_of(run, WINDOW, STAGES[-1]) for run in plateaus.points(measured)), strict=True
    )
    loss, unigram, bigram = (nets.curves(name) for name in ("loss", "kl.unigram", "kl"))
    heads = np.moveaxis(nets.curves("previous"), -1, 0)  # [head, seed, step]
    ratio = np.where(unigram <= CLOSE_KL, bigram / unigram, 0.0).max(axis=1)
    begun, risen = (plateaus.reached(nets.steps, heads[0], part) for part in (0.1, 0.9))
    fall = plateaus.middle_of_fall(nets.steps, loss, losses, *STAGES[1:])
    apart = abs(plateaus.middle_of_rise(nets.steps, heads[0]) - fall)
    flat, end, head, together = (partial(Criterion.judged, share=MIN_SEEDS, statement=key) for key in PLAN.statements)
    in_order = [float(order(each) == STAGES) for each in passed]
    gaps = [gap(*both) for both in zip(passed, losses, strict=True)]
    criteria = [
        flat(f"plateaus in the order {', '.join(STAGES)}", in_order, at_least=1),
        flat("distance of a plateau's level from its predictor's loss", gaps, at_most=MAX_GAP),
        flat("largest KL(bigram)/KL(unigram) where KL(unigram) ≤ 0.04", ratio, at_least=MIN_RATIO_DURING),
        end("KL(bigram) at the end, nats", bigram[:, -1], at_most=CLOSE_KL),
        end("KL(unigram)/KL(bigram) at the end", unigram[:, -1] / bigram[:, -1], at_least=MIN_RATIO_END),
        head("attention to the previous token, at the start", heads[0, :, 0], at_most=START_WEIGHT),
        head("attention to the previous token, largest", heads[0].max(axis=1), at_least=PEAK_WEIGHT),
        head("share of the steps in which it rises", (risen - begun) / nets.steps[-1], at_most=MAX_RISE),
        together("ln of the time between the middles of rise and fall", apart, at_most=MAX_APART),
    ]
    figure = {
        "steps": nets.steps,
        "loss": loss,
        "unigram": unigram,
        "bigram": bigram,
        "head 1": heads[0],
        "head 2": heads[1],
        "levels": losses[0],
        "stages": [[(s.name, s.plateau.start, s.plateau.end) for s in each] for each in passed],
    }
    told = Quantity("attention to the previous token at the end", heads[0, :, -1].mean())
    return evidence(subject, criteria, figure, [told])


def head_before(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return attention that rises as measured, but half of it by the middle of the unigram plateau of drawn runs."""
    steps, heads = subject.trials["chains"].recipe.eval_steps(), measured["chains/previous"].copy()
    passed = [plateaus.stages_of(run, WINDOW, STAGES[-1])[0] for run in plateaus.points(measured)]
    flat = [stage.plateau for each in passed for stage in each if stage.name == STAGES[1]]
    middles = [np.log1p([plateau.start, plateau.end]).mean() for plateau in flat]
    at, middle = np.log1p(steps), plateaus.middle_of_rise(steps, heads[..., 0])
    for own, late, early in zip(heads[..., 0], middle, rng.choice(middles, size=len(heads)), strict=True):
        own[:] = np.interp(at + late - early, at, own.copy())
    return {**measured, "chains/previous": heads}


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


NULLS = {"stages": plateaus.smooth, "end": plateaus.half_way, "head": plateaus.even_rise, "together": head_before}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, id="L5", standing="experiment")
