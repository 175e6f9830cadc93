r"""Transformers generalise to longer inputs if one short counting program covers all lengths; on parity they do not.

Statement: Transformers are trained on words of up to $n$ letters. For tasks that a counting program of constant length
computes (majority and most frequent letter; at large scale also sorting and copying of distinct letters), they are
right on words of up to $2n$ letters, and for majority up to $4n$. For tasks whose known programs all grow with the word
(parity; at large scale also sums modulo 3 and copying with repeats), they fit lengths up to $n$ and fail on lengths $n
+ 1$ to $2n$. An LSTM learns parity at both.
Why: Attention and counts mean the same in longer words. From counts, parity needs a case for each number of ones; a
recurrent state needs one bit, which each one flips.
Checked: Every program is an expression of this package, without division and without attention to computed positions,
as in C-RASP and RASP-L; its length is counted for words up to $n$ and $4n$, and it is run against the task. The share
of words without a mistake is measured by length, for 8 seeds. Quick scale has $n = 6$ or 8, large scale $n = 10$ to 32.
Fitting the training lengths is a premise. Learned positions start at a random offset. At large scale the claim fails: 4
of 8 seeds copy distinct letters.
Not checked: The authors' lengths (up to 50, tested to 150), their search over sizes and their 30,000 steps; addition
and scratchpads. Other position encodings are reported. Lengths are of the shortest known programs: that parity has no
shorter one is not shown.
Source: Zhou et al. 2023, arXiv 2310.16028 [A]; Huang et al. 2024, arXiv 2410.02140 [A], whose protocol is used at
smaller sizes; Yang and Chiang 2024, arXiv 2404.04393 [A].
Saboteur: Programs may divide, so that parity has a short program as well and is predicted to generalise.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials import lengths
from vitrify.claims.trials.lengths import TIMES, between, length, shortest_program, thirds
from vitrify.claims.trials.trial import Criterion, Evidence, Quantity, Recipe, evidence, trained
from vitrify.encoding import JsonObject
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.transformer import TransformerFamily

MIN_FIT = 0.9  # accuracy at training lengths: with less, nothing is judged
MIN_TWICE = 0.95  # accuracy at twice the length, where a program of constant length exists
MIN_MAJORITY = 0.97  # accuracy at four times the length
MAX_TWICE = 0.72  # accuracy at twice the length, where none is known
MIN_DROP = 0.15  # in accuracy from training lengths to twice these
MIN_RECURRENT = 0.99  # accuracy of an LSTM at twice the length
MIN_SEEDS = 7 / 8


def subjects() -> Subjects:
    counts = Recipe(steps=500, batch=64, lr=4e-3, schedule="linear", warmup=50)
    shallow, deep = TransformerFamily(layers=1, heads=2, d_model=32), TransformerFamily(layers=2, heads=4, d_model=64)
    majority: lengths.Words = ("majority", 8, shallow, counts)
    judged: list[lengths.Words] = [
        majority,
        ("most frequent", 8, shallow, counts),
        ("parity", 6, deep, replace(counts, steps=1000, lr=2e-3, warmup=100)),
        ("parity", 8, RecurrentFamily(state=32, d_embed=16), replace(counts, steps=400, lr=1e-2)),
    ]
    yield lengths.subject("short words", judged, lengths.other_positions(majority, 300, "none", "rotary"))


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
    yield lengths.subject("longer words", judged, others)


def sabotage(subject: Subject) -> Subject:
    return subject.with_data(free=True)


def check(subject: Subject) -> Evidence:
    shares = {name: nets.final("right")[:, 1:] for name, nets in trained(subject).items()}  # [seed, length]
    criteria, quantities, shown = [], [], []
    twices: dict[bool, list[Array]] = {True: [], False: []}  # with a program of constant length, and without
    judged = partial(Criterion.judged, share=MIN_SEEDS)
    for name, (task, n, kind) in subject.data["judged"].items():
        short, root = (shortest_program(task, n, most, subject.data["free"]) for most in (n, TIMES * n))
        program, constant = [length(short), length(root)], length(short) == length(root)
        mistakes = [lengths.wrong(task, n, root, at) for at in (1, n, 2 * n, TIMES * n)]
        fit, twice, far = (between(shares[name], *ends) for ends in thirds(n))
        criteria.append(Criterion.judged(f"{name}: words on which the program errs", mistakes, at_most=0))
        criteria.append(judged(f"{name}: accuracy in 1×", fit, at_least=MIN_FIT, premise=True))
        least = MIN_RECURRENT if kind != "learned" else MIN_TWICE if constant else -np.inf
        most = np.inf if constant or kind != "learned" else MAX_TWICE
        criteria.append(judged(f"{name}: accuracy in 2×", twice, at_least=least, at_most=most))
        if most < np.inf:
            criteria.append(judged(f"{name}: accuracy in 1× minus 2×", fit - twice, at_least=MIN_DROP))
        elif name == "majority":
            criteria.append(judged(f"{name}: accuracy in 4×", far, at_least=MIN_MAJORITY))
        twices[constant] += [twice] if kind == "learned" else []
        quantities.append(Quantity(f"{name}: parts of the program, for 1× and {TIMES}×", program))
        shown.append(_shown(name, kind, n, shares[name]) | {"program": program, "usual": kind == "learned"})
    if twices[True] and twices[False]:
        apart = np.min(twices[True], axis=0) - np.max(twices[False], axis=0)
        name = "accuracy in 2×: smallest with a short program minus largest without"
        criteria.append(Criterion.judged(name, apart, at_least=0))
    others = [_shown(name, kind, n, shares[name]) for name, (_, n, kind) in subject.data["others"].items()]
    for one in others:
        means = [float(np.mean(between(one["right"], *ends))) for ends in thirds(one["n"])]
        quantities.append(Quantity(f"{one['name']}: accuracy in 1×, 2×, 4×", means))
    return evidence(subject, criteria, {"trials": shown, "others": others}, quantities)


def _shown(name: str, kind: str, n: int, shares: Array) -> JsonObject:
    return {"name": name, "kind": kind, "n": n, "right": np.round(shares, 3)}


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


CLAIM = Claim(subjects, check, sabotage, large, draw, id="G1", standing="experiment", learned=True, budget_seconds=180)
