r"""Transformers that have learned a flip-flop make errors on sparser and denser sequences; LSTMs make none.

Statement: In flip-flop language modeling a sequence writes bits, ignores bits and reads the bit written last. Networks
are trained on $P(\text{ignore}) = 0.8$ until they are nearly always right there. On sparse sequences, $P(\text{ignore})
= 0.98$, and dense ones, $P(\text{ignore}) = 0.1$, transformers glitch: some of their reads are wrong, how many varies
between seeds. An LSTM makes no error on either. Adding such sequences to the training data removes most of the errors.
Why: The state of an LSTM only needs to hold one bit. A transformer must find the latest write among all of them: its
attention is trained where writes are about ten instructions apart, which does not determine how it weighs adjacent
writes, or one distant write against hundreds of ignored bits.
Checked: Error rate (wrong reads over reads) of each seed on the training distribution and on both tails, on fresh
sequences after the last step; 10 seeds, and 5 transformers with a fifth of the training data from the tails, whose mean
error rate must be at most half. Quick scale has sequences of 64 tokens and a transformer of 2 layers and width 32, and
judges the dense tail; large scale has 512 tokens, 4 layers and width 256, and judges both. Premise: two thirds of the
transformers fit the training distribution (error rate at most 0.05, at large scale 0.001). The LSTMs must make no error
in $10^5$ reads of each tail. A gated linear recurrence is measured, not judged. At large scale 5 of 10 transformers fit
well enough, so the verdict is undecided.
Not checked: The authors' 6 layers of width 512 and 10,000 steps. The sparse tail at quick scale: 64 tokens are too few
for an effect. The size of the effect depends on the network: with rotary positions 4 of 5 transformers were wrong on at
most 0.25 % of the dense reads, and more steps make errors rarer. Sizes were chosen on other seeds, after the verdict at
earlier sizes, with a stricter premise, was undecided (2 of 10 had fitted).
Source: B. Liu, Ash, Goel, Krishnamurthy and C. Zhang 2023, arXiv 2306.00946 [A], settings [S].
Saboteur: Transformers trained with sequences of the tails are presented as ordinary ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials import flip_flop
from vitrify.claims.trials.flip_flop import DENSE_TAIL, SPARSE_TAIL, TAILS, TRAINING, Net, counted, flip_flop_subject
from vitrify.claims.trials.trial import Criterion, Evidence, Recipe, evidence, trained
from vitrify.learn.figures import interval, reference_line, sheet
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.ssm import StateSpaceFamily
from vitrify.learn.models.transformer import TransformerFamily

MIN_CONVERGED = 2 / 3  # share of the transformers that must fit the training distribution
MIN_GLITCHING = 2 / 3  # share of the converged ones with an error rate of at least MIN_RATE on the dense tail
MIN_RATE = 0.01  # wrong reads over reads, dense tail
MAX_RATE_RATIO = 0.5  # error rate with tail sequences in training, over that without
MIN_READS = 1e5  # of each tail, by the LSTMs of all seeds


def subjects() -> Subjects:
    by_distance = TransformerFamily(layers=2, heads=2, d_model=32, positions="relative", gain=10.0)
    recipe = Recipe(steps=600, batch=16, lr=3e-3, schedule="linear", warmup=50, test_examples=64, evals_per_doubling=0)
    lstm, linear = RecurrentFamily(kind="lstm", state=32, d_embed=8), StateSpaceFamily(layers=2, d_model=16, state=16)
    nets: dict[str, Net] = {
        "transformer": (by_distance, recipe, (512, 512, 256), 256),
        "LSTM": (lstm, replace(recipe, steps=1000, lr=5e-3), (512, 8192, 1024), 1024),
        "linear recurrence": (linear, recipe, (512, 512, 256), 256),
    }
    thresholds = {"judged": (DENSE_TAIL,), "max_wrong": 0.05, "min_ratio": 3.0, "share": 2 / 3}
    yield flip_flop_subject("sequences of 64 tokens", nets, 64, thresholds)


def large() -> Subjects:
    brief = Recipe(steps=1000, batch=16, lr=3e-3, schedule="linear", warmup=50, test_examples=64, evals_per_doubling=0)
    recipe = replace(brief, steps=6000, lr=1e-3, weight_decay=0.1, beta2=0.999, precision="bfloat16")
    lstm, linear = RecurrentFamily(kind="lstm", state=128, d_embed=64), StateSpaceFamily(layers=2, d_model=64, state=64)
    nets: dict[str, Net] = {
        "transformer": (TransformerFamily(layers=4, heads=8, d_model=256), recipe, (1024, 2048, 512), 16),
        "LSTM": (lstm, brief, (4096, 32_768, 4096), 256),
        "linear recurrence": (linear, brief, (1024, 2048, 512), 256),
    }
    thresholds = {"judged": (SPARSE_TAIL, DENSE_TAIL), "max_wrong": 0.001, "min_ratio": 10.0, "share": 0.8}
    yield flip_flop_subject("sequences of 512 tokens", nets, 512, thresholds)


def sabotage(subject: Subject) -> Subject:
    return subject.with_data(misnamed=True)


def check(subject: Subject) -> Evidence:
    data, judged = subject.data, Criterion.judged
    reads = {net: counted(nets, *data["tests"][net]) for net, nets in trained(subject).items()}
    alone, mended = slice(len(flip_flop.SEEDS)), slice(len(flip_flop.SEEDS), None)
    plain, repaired = (
        {name: {what: values[part] for what, values in one.items()} for name, one in reads["transformer"].items()}
        for part in ((mended, alone) if data["misnamed"] else (alone, mended))
    )
    groups = {"transformer": plain, "with tail sequences": repaired} | {net: reads[net] for net in list(reads)[1:]}
    rates = {net: {name: one["wrong"] / one["queries"] for name, one in each.items()} for net, each in groups.items()}
    wrong, lstm, tails = rates["transformer"], reads["LSTM"], list(TAILS)[1:]
    training = np.maximum(wrong[TRAINING], 1 / plain[TRAINING]["queries"])
    able = wrong[TRAINING] <= data["max_wrong"]
    able = able if able.any() else ~able  # the premise is not met
    ratio = (np.max([wrong[name] for name in data["judged"]], axis=0) / training)[able]
    left = [rates["with tail sequences"][name].mean() / max(wrong[name].mean(), 1e-12) for name in data["judged"]]
    worst = f"converged: worst of {', '.join(data['judged'])}, over {TRAINING}"
    criteria = [
        judged(
            f"transformer: error rate, {TRAINING}",
            wrong[TRAINING],
            at_most=data["max_wrong"],
            share=MIN_CONVERGED,
            premise=True,
        ),
        judged(worst, ratio, at_least=data["min_ratio"], share=data["share"]),
        judged(f"converged: error rate, {DENSE_TAIL}", wrong[DENSE_TAIL][able], at_least=MIN_RATE, share=MIN_GLITCHING),
        judged(f"transformer: error rate, {DENSE_TAIL}", wrong[DENSE_TAIL]),
        judged(f"transformer: error rate, {SPARSE_TAIL}", wrong[SPARSE_TAIL]),
        *(judged(f"LSTM: number of wrong reads, {name}", lstm[name]["wrong"], at_most=0) for name in TAILS),
        *(
            judged(f"LSTM: reads of all seeds, {name}", [lstm[name]["queries"].sum()], at_least=MIN_READS)
            for name in tails
        ),
        judged("mean error rate with tail sequences in training, over that without", left, at_most=MAX_RATE_RATIO),
        *(judged(f"with tail sequences: error rate, {name}", rates["with tail sequences"][name]) for name in TAILS),
        *(judged(f"linear recurrence: error rate, {name}", rates["linear recurrence"][name]) for name in TAILS),
    ]
    counts = {group: {name: one["queries"].mean() for name, one in each.items()} for group, each in groups.items()}
    nets = {group: {"rates": rates[group], "reads": counts[group]} for group in groups}
    return evidence(subject, criteria, {"nets": nets, "learned": data["max_wrong"]})


def draw(figures: Figures) -> Figure:
    title = "Flip-flop: reading the bit written last (bars: mean and 95 % interval; numbers: reads of each seed)"
    figure, axes = sheet(len(figures), len(TAILS), title, width=4.4, height=3.8)
    for row, (subject, data) in zip(axes, figures.items(), strict=True):
        for own, test in zip(row, TAILS, strict=True):
            floor = min(0.3 / net["reads"][test] for net in data["nets"].values())
            for at, net in enumerate(data["nets"].values()):
                interval(own, at, net["rates"][test], f"C{at}", floor)
                own.text(at, floor * 0.55, f"{net['reads'][test]:,.0f}", fontsize=7, ha="center", va="top")
            own.axhspan(floor / 4, floor * 1.5, color="0.92", linewidth=0, zorder=0)
            own.text(0.01, floor * 1.55, "no error", transform=own.get_yaxis_transform(), fontsize=8)
            reference_line(own, 0.5, "guessing", at=0.99)
            own.set(yscale="log", ylim=(floor / 4, 1), xlim=(-0.6, 3.6), title=f"{subject}, {test}")
            own.set_xticks(range(len(data["nets"])), [name.replace(" ", "\n", 1) for name in data["nets"]], fontsize=8)
        reference_line(row[0], data["learned"], f"converged: {data['learned']:g}", at=0.99)
        row[0].set_ylabel("error rate (wrong reads over reads), a dot per seed")
    return figure


CLAIM = Claim(subjects, check, sabotage, large, draw, id="G3", standing="experiment", learned=True, budget_seconds=180)
