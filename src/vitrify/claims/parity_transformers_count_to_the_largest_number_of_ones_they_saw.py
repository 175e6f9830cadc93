r"""Transformers trained on parity answer larger numbers of ones like the largest that they saw; recurrences count on.

Statement: Networks are trained on the parity of words of up to $T$ bits with at most $k$ ones. (a) Transformers give
one and the same answer to every word of $T$ bits with $k + 2$ to $3k$ ones: (b) the right answer for $k$ ones, whether
that is the more frequent one or not. They compute the parity of $\min(c, k)$, where $c$ is the number of ones: they are
saturating counters. (c) So they do on words of $2T$ bits. (d) LSTMs and products of Householder factors, trained on the
same words, are right on these numbers of ones: they count modulo 2.
Why: A head that attends to ones has an output that grows with their number and flattens out. The layers behind it
learn a table from this output to the answer, which continues with its last entry. A recurrence of a finite state sees
every further one in a state that it has been in before.
Not checked: Other tasks, other position encodings, larger networks, and more than one way to train them.
Source: Own measurement, without a published target. That the number of ones is the relevant size of parity problems is
in the spirit of Zhou et al. 2023, arXiv 2310.16028 [A]; what happens beyond it we have read nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import counters
from vitrify.claims.trials.counters import LONGER, SAME, TRANSFORMERS
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Recipe, Trial, evidence, recalled
from vitrify.learn.evaluation import accuracy_on
from vitrify.learn.figures import heat, sheet
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.program import Probe
from vitrify.sandboxes.parity import Parity

MIN_FIT = 0.99  # accuracy on the words of training: less is no basis for a judgement
MIN_FITTED = 3 / 4  # of the seeds must reach it
MIN_SHARE = 0.95  # of the words with more ones than in training, answered alike or rightly
MIN_SEEDS = 13 / 16  # of the seeds that fit
PER_COUNT = 64  # words of each number of ones, about
RULE = f"share ≥ {MIN_SHARE} in 13 of 16 of the seeds that fit, for each code of positions and each k"
PLAN = Plan(
    version=1,
    question="What do networks trained on parity answer beyond the numbers of ones that they were trained on?",
    statements={
        "one answer": Statement(
            "transformers give the same answer to all words of T bits with k + 2 to 3k ones",
            f"share of the more frequent answer: {RULE}",
            "each seed answers each number of ones at random, by the frequencies of the answers in training",
        ),
        "last answer": Statement(
            "it is the right answer for k ones",
            f"share of that answer on these words: {RULE}",
            "each seed has one answer, drawn by the frequencies of the answers in training",
        ),
        "longer": Statement(
            "they give the answer for k ones to words of 2T bits with k + 2 to 3k ones, too",
            f"share of that answer: {RULE}",
            "the net reads the share of ones: a word of 2T bits is answered like one of T bits with half as many ones",
        ),
        "recurrences count on": Statement(
            "LSTMs and Householder recurrences give the right answer to words of T bits with k + 1 to 3k ones",
            f"share of right answers ≥ {MIN_SHARE} in 13 of 16 of the seeds that fit, for each recurrence and each k",
            "they answer as transformers do",
        ),
    },
    units="seed",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "largest number of ones": Axis("5 and 6, tested to 3k", None),
        "longest training word": Axis(20, None),
        "layers": Axis(2, None),
        "d_model": Axis(32, None),
    },
    chosen="Rates and steps with seeds 0 to 11, where all nets that fitted answered as the statements say. k = 5 "
    "because both answers are equally frequent in training then, k = 6 because its right answer is the other one.",
)


def subjects() -> Subjects:
    yield _subject(16, [5], ["none", "lstm"], 0.6, PLAN.explored[:8])


def large() -> Subjects:
    """Two codes of positions, two recurrences, and two numbers of ones."""
    yield _subject(20, [5, 6], list(NETS), 1.0, PLAN.judged)


NETS = {  # family, steps and rate
    "none": (TransformerFamily(layers=2, heads=4, d_model=32, positions="none", max_positions=41), 2000, 4e-3),
    "learned": (TransformerFamily(layers=2, heads=4, d_model=32, positions="learned", max_positions=41), 2500, 4e-3),
    "lstm": (RecurrentFamily(kind="lstm", state=32, d_embed=16), 1500, 1e-2),
    "householder": (RecurrentFamily(kind="householder", state=16, d_embed=16), 1500, 1e-2),
}


def _subject(longest: int, ones: list[int], names: list[str], part: float, seeds: Sequence[int]) -> Subject:
    """Return a trial for each kind of net and largest number of ones, with a part of the steps."""
    trials = {f"{name}, k = {k}": _trial(name, longest, k, part, seeds) for k in ones for name in names}
    return Subject(f"words of up to {longest} bits", data={"longest": longest, "ones": ones}, trials=trials)


def _trial(name: str, longest: int, k: int, part: float, seeds: Sequence[int]) -> Trial:
    family, steps, rate = NETS[name]
    recipe = Recipe(batch=64, lr=rate, steps=int(part * steps), warmup=100, schedule="linear", evals_per_doubling=0)
    recipe = replace(recipe, random_offset=name in TRANSFORMERS)
    lengths = {SAME: longest, LONGER: 2 * longest} if name in TRANSFORMERS else {SAME: longest}
    probes = {what: _probe(family, length, k) for what, length in lengths.items()}
    return Trial(Parity(1, longest, 0, k), family, recipe, seeds, probes=probes)


def _probe(family: Family, length: int, k: int) -> Probe:
    cells = 3 * k + 1
    return accuracy_on(family, Parity(length, length, 0, cells - 1), PER_COUNT * cells, by="ones", bins=cells)


def judge(subject: Subject, measured: Measured) -> Evidence:
    """Judge every kind of net on the seeds that fit the words of training."""
    criteria, figure = [], {}
    judged = partial(Criterion.judged, at_least=MIN_SHARE, share=MIN_SEEDS)
    for name, nets in recalled(subject, measured).items():
        k = counters.largest(name)
        fit = nets.final("accuracy")
        fits = fit >= MIN_FIT
        statement = "" if name.startswith(TRANSFORMERS) else "recurrences count on"
        enough = partial(Criterion.judged, premise=True, at_least=MIN_FIT, share=MIN_FITTED)
        criteria.append(enough(f"{name}: accuracy on training words", fit, statement=statement))
        if not fits.any():
            continue
        odd = counters.odd(nets.final(SAME)[fits])
        figure[name] = {"k": k, "odd": odd}
        if statement:
            right = counters.right(odd)[:, k + 1 :].mean(axis=1)
            criteria.append(judged(f"{name}: right with {k + 1} to {3 * k} ones", right, statement=statement))
            continue
        one, of = counters.one_answer(odd, k), f"{k + 2} to {3 * k} ones"
        criteria.append(judged(f"{name}: same answer to {of}", one, statement="one answer"))
        for what, statement in ((SAME, "last answer"), (LONGER, "longer")):
            last = counters.last_answer(counters.odd(nets.final(what)[fits]), k)
            criteria.append(judged(f"{name}: the answer for {k} ones to {of}, {what} bits", last, statement=statement))
    return evidence(subject, criteria, figure)


def draw(figures: Figures) -> Figure:
    """Draw for each kind of net the share of the answer `odd` by seed and number of ones."""
    (nets,) = figures.values()
    rows = max(1, len({each["k"] for each in nets.values()}))
    title = "Parity nets beyond the trained numbers of ones: share of the answer “odd”"
    figure, axes = sheet(rows, -(-len(nets) // rows), title, 3.6, 2.6)
    titles = {"none": "transformer, no positions", "learned": "transformer, learned positions", "lstm": "LSTM"}
    for own, (name, each) in zip(axes.ravel(), nets.items(), strict=False):
        kind, _, count = name.partition(", ")
        heat(own, np.array(each["odd"]), aspect="auto", cmap="RdYlBu", vmin=0, vmax=1)
        own.axvline(each["k"] + 0.5, color="black", linewidth=2)
        own.set(xlabel="number of ones (trained left of the line)", ylabel="seed")
        own.set_title(f"{titles.get(kind, 'Householder recurrence')}, {count}", fontsize=9)
    return figure


NULLS = dict(zip(PLAN.statements, counters.NULL_FUNCTIONS, strict=True))
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, id="G7", standing="experiment")
