r"""A transformer that learns to predict chains in context first counts symbols, then pairs: uniform, unigram, bigram.

Statement: two layers of one head each, attention only, with a learned number per distance, are trained on rows that are
each drawn from a chain of their own. They go through two plateaus on the way to the optimum. On the first they say
every symbol alike; on the second they say how often each symbol came up in the row; then, all at once, the first head
begins to look at the token before, and the second layer counts what followed the present token, which is optimal.

Why: how often symbols came up can be had from uniform attention and a readout, to which the gradient of the first steps
leads. Counting pairs takes both layers, and the gradient for either is small as long as the other does not do its part.

Checked: the plateaus of every seed's test loss are found by slope and named by the predictor with the least KL; their
names must be uniform, unigram, bigram in 7 of 8 seeds, and their levels within 5 % of that predictor's loss on the same
rows. Somewhere on the way KL(unigram ‖ net) ≤ 0.04 and KL(bigram ‖ net) ≥ 3 KL(unigram ‖ net); at the end KL(bigram ‖
net) ≤ 0.04 and KL(unigram ‖ net) ≥ 2 KL(bigram ‖ net). The first head's weight on the token before must rise from at
most 0.15 to at least 0.9, from a tenth to nine tenths of the rise within 40 % of the steps; it may fall again later, as
it does in long training, while the loss goes on falling: the last value is told. With 2 states the first plateau is too
short for the slope rule in most seeds (named in 28 of 64, all else as with 3), so 3 states decide.

Source: Edelman, Tsilivis, Edelman, Malach and Goel 2024, "The Evolution of Statistical Induction Heads: In-Context
Learning Markov Chains", arXiv 2402.11004 [S]; in the spirit of its experiments: the numbers of distances are multiplied
by a gain, as its minimal model gives them a higher rate; first symbols are uniform.

Saboteur: rows of independent symbols, each row with a law of its own: there are no pairs to learn, and a net that is
trained on them has no third stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided
from vitrify.claims._stages import MOST_SEEDS, NEAR, Trial
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import attention_on, previous_token
from vitrify.learn.recipe import Recipe
from vitrify.learn.stages import Curve
from vitrify.sandboxes.in_context_markov import InContextMarkov

STAGES = ("uniform", "unigram", "bigram")
CLOSE = 0.04  # nats of KL to a predictor
APART, LEFT = 3.0, 2.0  # how many times further the other one is: on the way, and at the end
BEFORE, AFTER, RISE = 0.15, 0.9, 0.4  # weight on the token before, and the part of the steps in which it rises
PROBE = "previous"


def family(d_model: int = 32) -> TransformerFamily:
    """Attention only, without norms, so that nets begin at the uniform predictor."""
    return TransformerFamily(
        layers=2,
        heads=1,
        d_model=d_model,
        units=0,
        positions="relative",
        norm=False,
        biases=False,
        scale=0.7,
        gain=15.0,
    )


def subjects() -> Iterator[Subject]:
    recipe = Recipe(steps=600, batch=32, lr=3e-3, test_rows=256, marks=8)
    yield _subject("3 states, rows of 64", InContextMarkov(states=3, length=64), recipe, members=8)


def paper() -> Iterator[Subject]:
    recipe = Recipe(steps=2000, batch=64, lr=3e-3, test_rows=1024, marks=8)
    yield _subject("3 states, rows of 100", InContextMarkov(states=3, length=100), recipe, members=16)


def _subject(name: str, sandbox: InContextMarkov, recipe: Recipe, members: int) -> Subject:
    probes = {PROBE: attention_on(previous_token)}
    return Subject(name, data={"trial": Trial(sandbox, family(), recipe, members, probes)})


def check(subject: Subject) -> Evidence:
    trial: Trial = subject.data["trial"]
    runs = trial.runs()
    curves: list[Sequence[Mapping[str, Any]]] = [run.curve for run in runs]
    looks = [[point[PROBE][0] for point in curve] for curve in curves]
    kl = [(curve[-1][_kl(trial, "bigram")], curve[-1][_kl(trial, "unigram")]) for curve in curves]
    asked = [
        Asked(
            f"goes through {', '.join(STAGES)}",
            [float(trial.passes(curve, STAGES)) for curve in curves],
            least=1,
            share=MOST_SEEDS,
        ),
        Asked("distance of a plateau's level from its predictor's loss", [trial.gap(c) for c in curves], most=NEAR),
        Asked(
            "most of KL(bigram)/KL(unigram) where KL(unigram) ≤ 0.04", [_apart(trial, c) for c in curves], least=APART
        ),
        Asked("KL(bigram) at the end, nats", [bigram for bigram, _ in kl], most=CLOSE),
        Asked("KL(unigram)/KL(bigram) at the end", [unigram / bigram for bigram, unigram in kl], least=LEFT),
        Asked("weight on the token before, at first", [look[0] for look in looks], most=BEFORE),
        Asked("weight on the token before, at most", [max(look) for look in looks], least=AFTER, share=MOST_SEEDS),
        Asked("weight on the token before, at the end", [look[-1] for look in looks]),
        Asked(
            "part of the steps in which it rises", [_rise(c, s) for c, s in zip(curves, looks, strict=True)], most=RISE
        ),
    ]
    heads = {f"head {layer + 1}": [[point[PROBE][layer] for point in curve] for curve in curves] for layer in (0, 1)}
    shown = trial.shown(runs, {"loss": "loss", **{name: _kl(trial, name) for name in ("unigram", "bigram")}}, heads)
    domain = f"{trial.members} seeds, {trial.recipe.steps} steps of {trial.recipe.batch} rows, {subject.name}"
    return decided(asked, domain=domain, seed=0, shown=shown)


def _kl(trial: Trial, name: str) -> str:
    """Under which name the KL to a predictor is measured; where symbols are independent, pairs say what symbols say."""
    return f"kl.{name}" if name in trial.known else "kl"


def _apart(trial: Trial, curve: Curve) -> float:
    """How many times further from the bigram than from the unigram predictor a net is, where near to the latter."""
    near = [p[_kl(trial, "bigram")] / p[key] for p in curve if p[key := _kl(trial, "unigram")] <= CLOSE]
    return max(near, default=0.0)


def _rise(curve: Curve, look: Sequence[float]) -> float:
    """The part of all steps between a tenth and nine tenths of the way from the first to the highest value."""
    steps = np.array([point["step"] for point in curve])
    way = (np.array(look) - look[0]) / (max(look) - look[0])
    return float((steps[np.argmax(way >= 0.9)] - steps[np.argmax(way >= 0.1)]) / steps[-1])


def sabotage(subject: Subject) -> Subject:
    trial: Trial = subject.data["trial"]
    independent = replace(trial.sandbox, order=0)
    return Subject(f"{subject.name}, independent", data={"trial": replace(trial, sandbox=independent)})


def draw(shown: Any) -> Any:
    from vitrify.learn.figures import band, by_step, level, sheet

    figure, planes = sheet(len(shown), 3, "In-context chains are learned in stages")
    for (name, found), (losses, far, looks) in zip(shown.items(), planes, strict=True):
        steps = found["steps"]
        band(losses, steps, found["loss"], f"test loss ({len(found['loss'])} seeds)", "C0")
        for predictor, value in found["levels"].items():
            level(losses, value, predictor)
        for predictor, colour in (("unigram", "C1"), ("bigram", "C2")):
            band(far, steps, found[predictor], f"KL({predictor} ‖ net)", colour)
        level(far, CLOSE, "near: 0.04")
        for head, colour in (("head 1", "C3"), ("head 2", "C4")):
            band(looks, steps, found[head], f"layer {head[-1]}", colour)
        level(looks, AFTER, "0.9")
        losses.set(ylabel="loss (nats per symbol)", title=name)
        far.set(ylabel="nats per symbol", yscale="log", title="distance from counting symbols, pairs")
        looks.set(ylabel="weight on the token before", ylim=(0, 1), title="where the heads look")
        for plane in (losses, far, looks):
            by_step(plane)
            plane.legend(fontsize=8)
    return figure


CLAIM = Claim(
    row="L5",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
