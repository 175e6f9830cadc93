r"""Transformers generalise to longer inputs if one short counting program covers all lengths; on parity they do not.

Statement: Transformers are trained on words of up to $n$ letters. For tasks that a counting program of constant length
computes (majority and most frequent letter; at large scale also sorting and copying of distinct letters), they are
right on words of up to $2n$ letters, and for majority up to $4n$. For tasks whose known programs all grow with the word
(parity; at large scale also sums modulo 3 and copying with repeats), they fit lengths up to $n$ and fail on lengths $n
+ 1$ to $2n$. An LSTM learns parity at both.
Why: Attention and counts mean the same in longer words. From counts, parity needs a case for each number of ones; a
recurrent state needs one bit, which each one flips.
Not checked: The authors' sizes and their search over them (see the scale); addition and scratchpads. Other position
encodings are reported. Lengths are of the shortest known programs: that parity has no shorter one is not shown. A
program lists the letters of its alphabet, so that of sorting is long, but of the same length for all words. Pairs of
tasks have equal answers; majority and parity have nets and training lengths of their own.
Source: Zhou et al. 2023, arXiv 2310.16028 [A]; Huang et al. 2024, arXiv 2410.02140 [A], whose protocol is used at
smaller sizes; Yang and Chiang 2024, arXiv 2404.04393 [A].
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import lengths
from vitrify.claims.trials.lengths import between, thirds
from vitrify.claims.trials.programs import TIMES
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, evidence
from vitrify.encoding import JsonObject
from vitrify.intervals import mean_interval
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.transformer import TransformerFamily

MIN_FIT, MIN_SEEDS = 0.9, 7 / 8  # accuracy at training lengths: with less, nothing is judged; share of the seeds
MIN_TWICE = 0.95  # accuracy at twice the length, where a program of constant length exists
MIN_MAJORITY, MIN_RECURRENT = 0.97, 0.99  # accuracy at four times the length; of an LSTM at twice the length
MAX_TWICE, MIN_DROP = 0.72, 0.15  # where no program is known: accuracy at twice the length, and how much less it is
MIN_APART = 0.3  # between the accuracies of a pair at twice the length
LISTS = "sort", "copy different letters"  # tasks with short programs whose answer is a word
GUESS = "longer words get the answer that is the most frequent at their length"
PLAN = Plan(
    version=1,
    question="Does a transformer generalise to longer words where one short counting program covers all lengths?",
    statements={
        "counting": Statement(
            "majority and the most frequent letter, which have short programs, generalise to longer words",
            f"2×: share of right words ≥ {MIN_TWICE} in 7 of 8 seeds for both; 4×: ≥ {MIN_MAJORITY} for majority",
            GUESS,
        ),
        "lists": Statement(
            "sorting and copying of distinct letters, which have short programs, generalise to longer words",
            f"2×: share of right words ≥ {MIN_TWICE} in 7 of 8 seeds for each task",
            GUESS,
        ),
        "growing": Statement(
            "tasks whose known programs grow with the word are learned and do not generalise to longer words",
            f"2×: share of right words ≤ {MAX_TWICE}, and less than up to n by ≥ {MIN_DROP}, in 7 of 8 seeds for each",
            "only the number of letters counts: each further one adds as many mistakes as one up to n",
        ),
        "apart": Statement(
            "of two tasks with equal answers the one with a short program generalises better",
            f"2×: mean difference with its 95 % interval ≥ {MIN_APART}: majority and parity, both ways of copying",
            "programs do not matter: in a random half of the seeds the two tasks have each other's accuracies",
        ),
        "recurrent": Statement(
            "an LSTM learns parity and generalises to longer words",
            f"2×: share of right words ≥ {MIN_RECURRENT} in 7 of 8 seeds",
            GUESS,
        ),
    },
    units="seed",
    judged=range(100, 108),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        "longest training word": Axis("10 to 32", 50),
        "test length over training length": Axis(TIMES, 3),
        "steps": Axis(8000, 30_000),
        "batch": Axis(128, 64),
        "layers": Axis(4, 4),
        "d_model": Axis(128, 256),
        "sizes and rates": Axis("one for each task", "chosen from 27"),
    },
    chosen="Before the plan, 4 of 8 seeds copied distinct letters at 2×. Only the threshold for pairs is new.",
)


def subjects() -> Subjects:
    counts = Recipe(steps=500, batch=64, lr=4e-3, schedule="linear", warmup=50)
    shallow, deep = TransformerFamily(layers=1, heads=2, d_model=32), TransformerFamily(layers=2, heads=4, d_model=64)
    majority: lengths.Words = ("majority", 8, shallow, counts)
    judged: list[lengths.Words] = [
        majority,
        ("most frequent", 8, shallow, counts),
        ("sort", 5, replace(shallow, layers=2), counts),
        ("parity", 6, deep, replace(counts, steps=1000, lr=2e-3, warmup=100)),
        ("parity", 8, RecurrentFamily(state=32, d_embed=16), replace(counts, steps=400, lr=1e-2)),
    ]
    others = lengths.other_positions(majority, 300, "rotary")
    yield lengths.subject("short words", judged, others, PLAN.explored[:8])


def large() -> Subjects:
    counts = Recipe(steps=3000, batch=128, lr=2e-3, schedule="linear", warmup=200)
    written, listed = replace(counts, steps=5000, lr=3e-3), replace(counts, steps=8000, lr=5e-4)
    shallow, middle = (TransformerFamily(layers=layers, heads=4, d_model=64) for layers in (1, 2))
    deep = TransformerFamily(layers=4, heads=4, d_model=128)
    majority: lengths.Words = ("majority", 32, shallow, counts)
    copying: lengths.Words = ("copy different letters", 12, middle, written)
    judged: list[lengths.Words] = [
        majority,
        ("most frequent", 32, shallow, counts),
        ("sort", 24, middle, replace(written, lr=1e-3)),
        copying,
        ("copy repeated letters", 12, middle, written),
        ("sum modulo 3", 10, deep, listed),
        ("parity", 12, deep, listed),
        ("parity", 16, RecurrentFamily(state=64, d_embed=32), replace(counts, steps=2000, lr=5e-3)),
    ]
    others = lengths.other_positions(majority, 2000, "none", "rotary", "alibi")
    others += lengths.other_positions(copying, 5000, "relative")
    yield lengths.subject("longer words", judged, others, PLAN.judged)


def judge(subject: Subject, arrays: Measured) -> Evidence:
    criteria, quantities, twices = [], [], {}
    figure: dict[str, list[JsonObject]] = {"trials": [], "others": []}
    for name, (_, n, kind) in (subject.data["judged"] | subject.data["others"]).items():
        shares = lengths.final(subject, arrays, name)[:, 1:]
        fit, twices[name], far = (between(shares, *ends) for ends in thirds(n))
        shown: JsonObject = {"name": name, "kind": kind, "n": n, "right": np.round(shares, 3)}
        if name in subject.data["others"]:
            quantities.append(
                Quantity(f"{name}: accuracy in 1×, 2×, 4×", [fit.mean(), twices[name].mean(), far.mean()])
            )
            figure["others"].append(shown)
            continue
        program, mistakes = arrays[f"{name}/program"].tolist(), arrays[f"{name}/mistakes"]
        constant, recurrent = program[0] == program[1], kind != "learned"
        key = "recurrent" if recurrent else "growing" if not constant else "lists" if name in LISTS else "counting"
        judged = partial(Criterion.judged, share=MIN_SEEDS, statement=key)
        least, most = (-np.inf, MAX_TWICE) if key == "growing" else (MIN_RECURRENT if recurrent else MIN_TWICE, np.inf)
        criteria.append(judged(f"{name}: words on which the program errs", mistakes, at_most=0, share=1, premise=True))
        criteria.append(judged(f"{name}: accuracy in 1×", fit, at_least=MIN_FIT, premise=True))
        criteria.append(judged(f"{name}: accuracy in 2×", twices[name], at_least=least, at_most=most))
        if key == "growing":
            criteria.append(judged(f"{name}: accuracy in 1× minus 2×", fit - twices[name], at_least=MIN_DROP))
        if name == "majority":
            criteria.append(judged(f"{name}: accuracy in 4×", far, at_least=MIN_MAJORITY))
        if any(name in pair for pair in lengths.pairs(subject)):
            of = f"{name}, of a pair: accuracy in 1×"
            criteria.append(judged(of, fit, at_least=MIN_FIT, premise=True, statement="apart"))
        quantities.append(Quantity(f"{name}: parts of the program, for 1× and {TIMES}×", program))
        figure["trials"].append(shown | {"program": program, "usual": not recurrent})
    for one, other in lengths.pairs(subject):
        apart = twices[one] - twices[other]
        judged = partial(Criterion.estimated, f"{one} minus {other}: accuracy in 2×", values=apart, statement="apart")
        criteria.append(judged(apart.mean(), mean_interval(apart), at_least=MIN_APART, null=0.0))
    return evidence(subject, criteria, figure, quantities)


def draw(figures: Figures) -> Figure:
    """Draw the accuracy by word length for every task, with the length of its program, and other position encodings."""
    (data,) = figures.values()
    title = "Trained on short words, tested on longer ones"
    figure, ((*axes,),) = sheet(1, 3 if data["others"] else 2, title, 5.6, 5.4)
    for number, one in enumerate([*data["trials"], *data["others"]]):
        right, times = np.array(one["right"], dtype=float), np.arange(1, len(one["right"][0]) + 1) / one["n"]
        short, long = one.get("program", (0, 0))
        size = f"{short}" if short == long else f"{short} → {long}"
        label = f"{one['name']} (program: {size} parts; {len(right)} seeds)" if short else one["name"]
        own, color = axes[int(short != long) if short else 2], number if short else number - len(data["trials"])
        band(own, times, right, label, f"C{color}", linestyle="-" if one.get("usual", True) else "--")
    titles = ("a program of constant length", "programs grow with the words", "other position encodings (not judged)")
    x, y = "length of the word, over the longest of training", "share of words without a mistake"
    names = ("threshold up to 2×", "upper bound for transformers up to 2×", "threshold for learned positions")
    for own, title, name, bound in zip(axes, titles, names, (MIN_TWICE, MAX_TWICE, MIN_TWICE), strict=False):
        own.axhline(bound, color="black", linestyle=":", linewidth=1, label=name)
        own.axvspan(0, 1, color="grey", alpha=0.15, linewidth=0, label="lengths of training")
        panel(own, legend=None, title=title, xlabel=x, ylabel=y, xlim=(0, TIMES), ylim=(0, 1.04))
        own.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return figure


NULLS = dict.fromkeys(PLAN.statements, lengths.guessed) | {"growing": lengths.compounded, "apart": lengths.exchanged}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, lengths.measure, id="G1", standing="experiment")
