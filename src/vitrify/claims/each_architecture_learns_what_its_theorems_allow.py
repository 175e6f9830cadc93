r"""Differences between architectures in learning and length generalisation follow the published theorems.

Statement: Networks of about the same width, trained on the same sequences with the best of a few learning rates, differ
as published. Parity at twice the trained length: LSTMs, linear RNNs with eigenvalues in $[-1, 1]$ and DeltaProduct are
right, and ahead of linear RNNs with eigenvalues in $[0, 1]$ and of transformers. Permutations of five points, at twice
the trained length: DeltaProduct (products of Householder reflections) is right, and ahead of diagonal linear RNNs and
of transformers. Associative recall: attention, alone or behind a recurrence, beats every recurrence. Copying: attention
beats LSTMs and diagonal linear RNNs.
Why: Entries of the table cite the claim that says whether suitable weights exist: one reflection per swap, and no
parity with positive eigenvalues (R24); changing one of $n$ letters moves softmax attention by $O(1/n)$ (B7);
permutations of five points need more than constant depth unless TC0 = NC1 (B8); a lookup takes one head (R23), but a
state must hold all pairs (B5; the states here are large enough, so what lags is learning). That weights exist does not
imply that training finds them.
Not checked: The authors' much larger sizes, up to $10^6$ steps and tests at up to 12.5 times the length. Whether errors
at longer lengths are failures of generalization: transformers and linear RNNs with eigenvalues in $[0, 1]$ did not fit
parity and permutations, so a difference to them is one of learning. Recall and copying are judged at the trained size;
copying at twice that size came out the other way round in an earlier run (0.40 for transformers, 0.51 to 0.55 for LSTMs
and diagonal RNNs), without fitted RNNs. Cells that disagree with their theorem are marked in the figure. Sizes in
parameters differ between architectures.
Source: Delétang et al. 2022, arXiv 2207.02098 [S]; Arora et al. 2023, arXiv 2312.04927 [S]; Grazzi et al. 2024, arXiv
2411.12537 [S]; Jelassi et al. 2024, arXiv 2402.01032 [S]; Merrill et al. 2024, arXiv 2404.08819 [S]. All sizes are
ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials.benchmark import LONGER, NULLS, RIGHT, architectures, columns, generalizing, measure
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Recipe, Trial, evidence
from vitrify.encoding import JsonObject
from vitrify.learn.agreement import PREDICTED, WORDS, agreement
from vitrify.learn.figures import heat, sheet
from vitrify.learn.models.catalogue import Family
from vitrify.optional import need
from vitrify.sandboxes.medley import Medley

MARGIN, MIN_SEEDS = 0.1, 0.8  # least difference of accuracy in a published separation; share of the seeds
PUBLISHED = (  # task, better architecture, worse ones, source
    ("parity", "LSTM", ("transformer", "positive"), "Delétang 2022"),
    ("parity", "reflections", ("transformer", "positive"), "Grazzi 2024"),
    ("parity", "signed", ("transformer", "positive"), "Grazzi 2024"),
    ("permutations", "reflections", ("transformer", "positive", "signed"), "Grazzi 2024, Merrill 2024"),
    ("recall", "transformer", ("LSTM", "positive", "signed", "reflections"), "Arora 2023"),
    ("recall", "hybrid", ("LSTM", "positive", "signed", "reflections"), "Arora 2023"),
    ("copying", "transformer", ("LSTM", "positive", "signed"), "Jelassi 2024"),
)
LOOKUPS = "recall", "copying"
EDGES = {"allowed, not found": "darkorange", "found against a theorem": "red"}
BY_FREQUENCY = "beyond the trained length the net guesses by the frequency of answers"
COIN = "architectures do not differ: their results are exchanged at random inside each seed"
PLAN = Plan(
    version=1,
    question="Do architectures differ in what they learn as theorems about their weights say?",
    statements={
        "parity": Statement(
            "LSTMs, linear RNNs with eigenvalues in [−1, 1] and DeltaProduct are right on longer words of parity",
            LONGER,
            BY_FREQUENCY,
        ),
        "permutations": Statement(
            "DeltaProduct is right on longer words of permutations of five points", LONGER, BY_FREQUENCY
        ),
        "separations": Statement(
            "on longer words of both they are ahead of transformers and linear RNNs with eigenvalues in [0, 1]",
            f"accuracy higher by ≥ {MARGIN} for each published pair in {MIN_SEEDS:.0%} of the seeds, fitted or not",
            COIN,
        ),
        "lookup": Statement(
            "attention recalls and copies better than recurrences",
            f"at the trained size accuracy higher by ≥ {MARGIN} for each published pair in {MIN_SEEDS:.0%} of seeds",
            COIN,
        ),
    },
    units="seed, the same for all architectures",
    judged=range(100, 116),
    explored=range(32),
    stopping="fixed number of steps; of the learning rates the one with the least median training loss",
    scale={
        "steps": Axis(2000, 1_000_000),
        "batch": Axis(32, 128),
        "length": Axis(32, 40),
        "largest test length over trained": Axis(2, 12.5),
        "LSTM units": Axis(64, 256),
        "transformer layers": Axis(2, 5),
        "seeds": Axis(16, 10),
        "width of all": Axis("64", None),
    },
    chosen="In an earlier run, judged by differences alone, DeltaProduct learned parity in 5 of 8 seeds.",
)


def subjects() -> Subjects:
    families, tasks = architectures(width=32, factors=1, loops=4), columns(length=16, pairs=4, vocabulary=18)
    rows = {name: families[name] for name in ("transformer", "LSTM", "positive", "reflections")}
    data = {"columns": {task: tasks[task] for task in ("parity", "permutations", "recall")}, "rates": (2e-3, 1e-2)}
    recipe = Recipe(steps=500, batch=16, test_examples=128, evals_per_doubling=1)
    yield _subject("a part of the table", rows, {**data, "test_examples": 64}, recipe, PLAN.explored[:6])


def large() -> Subjects:
    rows, tasks = architectures(width=64, factors=2, loops=5), columns(length=32, pairs=8, vocabulary=34)
    data = {"columns": tasks, "rates": (1e-3, 3e-3, 1e-2), "test_examples": 256}
    recipe = Recipe(steps=2000, batch=32, test_examples=256, evals_per_doubling=1)
    yield _subject("the table", rows, data, recipe, PLAN.judged)


def _subject(name: str, rows: Mapping[str, Family], data: JsonObject, recipe: Recipe, seeds: Sequence[int]) -> Subject:
    medley = Medley(tuple(column.sandbox for column in data["columns"].values()))
    axes = {"task": [float(task) for task in range(len(data["columns"]))], "lr": data["rates"]}
    trials = {row: Trial(medley, family, recipe, seeds, axes) for row, family in rows.items()}
    return Subject(name, data=data, trials=trials)


def judge(subject: Subject, measured: Measured) -> Evidence:
    tasks, names = subject.data["columns"], list(subject.trials)
    table = np.array([measured[f"{name}/accuracy"] for name in names])  # [architecture, task, seed, size]
    beyond = [int(column.beyond) for column in tasks.values()]
    cells = dict(zip(product(names, tasks), table.reshape(-1, *table.shape[2:]), strict=True))  # [seed, size]
    criteria = [each for key in RIGHT for each in generalizing(key, cells)]
    for task, better, others, source in PUBLISHED:
        size, key = int(task not in LOOKUPS), "lookup" if task in LOOKUPS else "separations"
        separated = partial(Criterion.judged, at_least=MARGIN, share=MIN_SEEDS, statement=key)
        for worse in others:
            if (better, task) in cells and (worse, task) in cells:
                margins = cells[better, task][:, size] - cells[worse, task][:, size]
                criteria.append(separated(f"{task}: {better} over {worse} ({source})", margins))
    first = next(iter(subject.trials.values()))
    figure = {
        "architectures": names,
        "tasks": list(tasks),
        "accuracy": table.round(4),
        "beyond": list(map(bool, beyond)),
        "rates": [measured[f"{name}/rates"] for name in names],
        "predicted": [[PREDICTED[name].get(task) for task in tasks] for name in names],
        "parameters": {name: int(measured[f"{name}/parameters"]) for name in names},
        "budget": f"{first.recipe.steps:,} steps of {first.recipe.batch} sequences",
        "sweep": subject.data["rates"],
        "seeds": len(first.seeds),
        "lengths": [[column.sandbox.tokens, column.longer.tokens] for column in tasks.values()],
    }
    return evidence(subject, criteria, figure)


def draw(figures: Figures) -> Figure:
    patches = need("matplotlib.patches", "report")
    (data,) = figures.values()
    names, tasks, table = data["architectures"], data["tasks"], np.array(data["accuracy"])
    title = f"Accuracy after {data['budget']}: median [min, max] of {data['seeds']} seeds"
    figure, ((axes,),) = sheet(1, 1, title, width=2.2 + 1.75 * len(tasks), height=2.0 + 0.9 * len(names))
    judged = np.median(table, axis=2)[:, range(len(tasks)), np.array(data["beyond"], int)]  # [architecture, task]
    heat(axes, judged, "median accuracy, at the judged length (◂)", vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for (row, column), median in np.ndenumerate(judged):
        predicted, lines = data["predicted"][row][column], []
        for size, times in enumerate(("1×", "2×")):
            middle, low, high = (f(table[row, column, :, size]) for f in (np.median, np.min, np.max))
            lines.append(f"{times} {middle:.2f} [{low:.2f}, {high:.2f}]{' ◂' * (size == data['beyond'][column])}")
        can = f"{predicted[1]}: {WORDS.get(predicted[1]) or ('can' if predicted[0] else 'can’t')}" if predicted else "–"
        text = "\n".join([*lines, f"{can}   lr {data['rates'][row][column]:g}"])
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if median > 0.6 else "black")
        if edge := EDGES.get(agreement(float(median), predicted)):
            corner = column - 0.47, row - 0.45
            axes.add_patch(patches.Rectangle(corner, 0.94, 0.9, fill=False, edgecolor=edge, linewidth=2.5))
    heads = [f"{task}\n{short} → {long} tokens" for task, (short, long) in zip(tasks, data["lengths"], strict=True)]
    axes.set_xticks(range(len(tasks)), heads, fontsize=8)
    axes.set_yticks(
        range(len(names)), [f"{name}\n{data['parameters'][name]:,} parameters" for name in names], fontsize=8
    )
    axes.spines[:].set_visible(False)
    marks = [patches.Patch(fill=False, edgecolor=edge, linewidth=2.5, label=label) for label, edge in EDGES.items()]
    axes.legend(handles=marks, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=2, fontsize=8, frameon=False)
    return figure


CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, measure, id="G4", standing="experiment")
