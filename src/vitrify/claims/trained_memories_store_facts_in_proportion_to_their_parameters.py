r"""The facts that trained memories (matrix, MLP, attention, both) store grow in proportion to their parameters.

Statement: Embeddings are random and frozen. The bits that gradient descent stores at 99 % accuracy grow in proportion
to the number of trained parameters: the slope in log-log scale lies between 0.8 and 1.2, and is about the same at all
sizes. This holds for a $d \times d$ matrix and an MLP with $m = 4d$ units, which map $N$ inputs to $N$ answers, and for
attention with $H d_h = 2d$, and with $H d_h = d$ and an MLP of $4d$ units, which map subjects and 4 relations to one of
4 answers. A fact with $M$ possible answers counts $\log_2 M$ bits.
Why: Parameters of $b$ bits cannot hold more than $b$ bits each. Random codes of $d$ numbers are nearly orthogonal, so
each association can be stored by its own outer product. $N$ inputs with $N$ answers are $N \log_2 N$ bits, so $N$
itself grows slightly slower.
Not checked: The authors' larger sizes and longer training, and their number of relations, which grows with the size
(fixed here). $d_h = 4$ throughout, so at some widths heads only approximate the stated ratio. That training has
converged at every size: with longer training the largest may store more.
Source: Nichani, Lee and Bietti 2025, arXiv 2412.06538 [S]: facts in proportion to $4 H d_h d + 2md$, and $N \ln N =
d^2/1.3$ for matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials.ladders import ANSWERS, MIN_ACCURACY, TEST_ROWS, bits_of, crossing, facts_of
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, Recipe, Trial, evidence, trained
from vitrify.intervals import mean_interval
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.memory import MemoryFamily
from vitrify.sandboxes.associations import AssociationSandbox
from vitrify.sandboxes.catalogue import Sandbox
from vitrify.sandboxes.facts import FactRecall

MIN_SLOPE, MAX_SLOPE = 0.8, 1.2
MAX_CHANGE = MAX_SLOPE - MIN_SLOPE  # of the slope from the smallest to the largest size: a hump has a mean slope, too
RELATIONS, D_HEAD = 4, 4
Sizes: TypeAlias = tuple[tuple[int, ...], tuple[float, ...], tuple[int, int, float]]
MEMORIES = {  # with the largest width and the steps in the source
    "matrix": ("a matrix of d × d parameters", 256, 1 << 12),
    "units": ("an MLP of 4d units", 91, 1 << 15),
    "heads": ("attention with H d_h = 2d", 181, 1 << 14),
    "heads and units": ("attention with H d_h = d and an MLP of 4d units", 181, 1 << 14),
}
# Widths, ladders of facts by bits per parameter, and steps, batch and learning rate.
QUICK: Mapping[str, Sizes] = {
    "matrix": ((6, 8, 11, 16), (0.8, 1.0, 1.25, 1.6, 2.2), (400, 128, 3.0)),
    "units": ((6, 8, 11, 14), (0.8, 1.1, 1.5, 2.1), (1000, 64, 0.1)),
    "heads": ((14, 20, 28), (0.2, 0.36, 0.65), (1200, 64, 0.06)),
    "heads and units": ((8, 12, 16), (0.15, 0.25, 0.4, 0.65), (800, 64, 0.03)),
}
LARGE: Mapping[str, Sizes] = {  # about two decades of parameters
    "matrix": ((8, 14, 25, 45, 80), (0.7, 0.95, 1.25, 1.65, 2.2), (1500, 512, 3.0)),
    "units": ((5, 9, 16, 28, 50), (0.6, 0.9, 1.3, 1.8, 2.5), (3000, 256, 0.1)),
    "heads": ((8, 14, 24, 44, 80), (0.1, 0.18, 0.3, 0.5, 0.85), (4000, 512, 0.02)),
    "heads and units": ((8, 14, 24, 40, 64), (0.2, 0.36, 0.65, 1.1, 1.7, 2.5), (8000, 1024, 0.02)),
}
PLAN = Plan(
    version=1,
    question="Do the bits that trained memories store grow in proportion to the number of their parameters?",
    statements={
        kind: Statement(
            f"{name} stores bits in proportion to its parameters",
            f"95 % intervals, Student's t over seeds: of the slope of ln bits on ln parameters within {MIN_SLOPE} to "
            f"{MAX_SLOPE}; of its change from the smallest to the largest size, by a quadratic fit, within "
            f"±{MAX_CHANGE:.1f}",
            "the largest size is bound by the number of steps: it stores as much as the one before it",
        )
        for kind, (name, _, _) in MEMORIES.items()
    },
    units="seed: random embeddings and initial weights",
    judged=range(100, 108),
    explored=range(32),
    stopping="fixed number of steps",
    scale={
        **{f"largest d, {kind}": Axis(LARGE[kind][0][-1], width) for kind, (_, width, _) in MEMORIES.items()},
        **{f"steps, {kind}": Axis(LARGE[kind][2][0], steps) for kind, (_, _, steps) in MEMORIES.items()},
        "relations": Axis("4", "as many as subjects"),
        "answers": Axis(ANSWERS, 8),
    },
    chosen="Rates and ladders of numbers of facts, so that each size stores the fewest facts and not the most.",
)


def subjects() -> Subjects:
    for kind, sizes in QUICK.items():
        yield _subject(kind, *sizes, PLAN.explored[:8])


def large() -> Subjects:
    for kind, sizes in LARGE.items():
        yield _subject(kind, *sizes, PLAN.judged)


def _subject(
    kind: str, widths: Sequence[int], loads: Sequence[float], training: tuple[int, int, float], seeds: Sequence[int]
) -> Subject:
    """A kind of memory in several widths, the largest last, and a ladder of facts for each, by bits per parameter."""
    width = widths[-1]
    heads = 2 * width // D_HEAD if kind == "heads" else width // D_HEAD if "heads" in kind else 0
    family = MemoryFamily(d_model=width, heads=heads, d_head=D_HEAD, units=4 * width if "units" in kind else 0)
    common = Recipe(clip=None, warmup=0, schedule="cosine", evals_per_doubling=0, test_examples=TEST_ROWS)
    recipe = replace(common, steps=training[0], batch=training[1], lr=training[2])
    parts = [own / width for own in widths]
    sizes = [replace(family, part=part).size() for part in parts]
    counts = [[facts_of(load * size, heads > 0) for load in loads] for size in sizes]
    most = max(map(max, counts))
    box: Sandbox = AssociationSandbox(most)
    if heads:
        most = -(-most // RELATIONS) * RELATIONS
        box = FactRecall(most // RELATIONS, RELATIONS, ANSWERS, noise=0, length=3, table="random", task=seeds[0])
    points = [(part, count / most) for part, rungs in zip(parts, counts, strict=True) for count in rungs]
    data = {"parameters": sizes, "counts": counts, "loads": loads, "relations": heads > 0}
    axes = {f"part,{'fact' if heads else 'word'}_fraction": points}
    return Subject(kind, data=data, trials={kind: Trial(box, family, recipe, seeds, axes)})


def measure(subject: Subject) -> Measured:
    """Return the accuracy at the end [size, rung, seed] and the facts at 99 % [size, seed]."""
    (nets,) = trained(subject).values()
    counts = subject.data["counts"]
    accuracy = nets.final("accuracy").reshape(len(counts), len(counts[0]), -1)
    stored = [[crossing(rungs, of) for of in each.T] for rungs, each in zip(counts, accuracy, strict=True)]
    return {f"{subject.name}/accuracy": accuracy, f"{subject.name}/facts": np.array(stored)}


def judge(subject: Subject, measured: Measured) -> Evidence:
    accuracy, stored = (measured[f"{subject.name}/{name}"] for name in ("accuracy", "facts"))
    counts, sizes = subject.data["counts"], np.array(subject.data["parameters"])
    bits, at = bits_of(stored, subject.data["relations"]), np.log(sizes)
    slopes, raw = (np.polyfit(at, np.log(up), 1)[0] for up in (bits, stored))
    changes = 2 * np.polyfit(at, np.log(bits), 2)[0] * (at[-1] - at[0])
    premise, estimated = partial(Criterion.judged, premise=True), partial(_estimated, statement=subject.name)
    criteria = [
        premise("accuracy on the fewest facts", accuracy[:, 0].ravel(), at_least=MIN_ACCURACY),
        premise("accuracy on the most facts", accuracy[:, -1].ravel(), at_most=MIN_ACCURACY),
        estimated("slope of bits on parameters", slopes, at_least=MIN_SLOPE, at_most=MAX_SLOPE),
        estimated("change of the slope over all sizes", changes, at_least=-MAX_CHANGE, at_most=MAX_CHANGE),
    ]
    quantities = [
        Quantity("slope of facts on parameters, each seed", raw, interval=mean_interval(raw)),
        Quantity("bits per parameter", (bits / sizes[:, None]).mean(axis=1)),
        Quantity("facts at 99 %", stored.mean(axis=1)),
    ]
    figure = {"sizes": sizes, "counts": counts, "accuracy": accuracy.mean(axis=-1), "stored": stored, "bits": bits}
    return evidence(subject, criteria, figure | {"slope": [slopes.mean(), *mean_interval(slopes)]}, quantities)


def _estimated(name: str, values: Array, **limits: Any) -> Criterion:
    return Criterion.estimated(name, values.mean(), mean_interval(values), values=values, **limits)


def bound_by_steps(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements of redrawn seeds in which the largest size stores as many facts as the one before it."""
    stored = measured[f"{subject.name}/facts"]
    seeds, others = rng.integers(stored.shape[1], size=(2, stored.shape[1]))
    return {**measured, f"{subject.name}/facts": np.concatenate([stored[:-1, seeds], stored[-2:-1, others]])}


def draw(figures: Figures) -> Figure:
    """Bits stored over parameters with the fitted lines, and the accuracy along the ladders."""
    figure, ((left, right),) = sheet(1, 2, "What trained memories store", 5.6, 4.6)
    every = [size for data in figures.values() for size in data["sizes"]]
    ends = np.array([min(every), max(every)])
    for share in (0.5, 1.0, 2.0):
        left.plot(ends, share * ends, color="grey", linewidth=0.8, linestyle=":")
        left.annotate(f"{share:g} bit{'s' * (share > 1)} per parameter", (ends[0], share * ends[0]), fontsize=7)
    for number, (name, data) in enumerate(figures.items()):
        color, sizes, logs = f"C{number}", data["sizes"], np.log(np.array(data["bits"]))
        slope, low, high = data["slope"]
        left.plot(np.repeat(sizes, logs.shape[1]), np.exp(logs).ravel(), ".", color=color, markersize=4, alpha=0.5)
        line = np.exp(logs.mean() + slope * (np.log(sizes) - np.log(sizes).mean()))
        left.plot(sizes, line, color=color, label=f"{name}: slope {slope:.2f} [{low:.2f}, {high:.2f}]")
        for size, rungs, accuracy in zip(sizes, data["counts"], data["accuracy"], strict=True):
            alpha, label = (1.0, name) if size == sizes[-1] else (0.3, None)
            right.plot(np.array(rungs) / size, accuracy, color=color, alpha=alpha, label=label)
    panel(left, xscale="log", yscale="log", xlabel="trained parameters", ylabel="bits stored at 99 % accuracy")
    panel(right, lines={"99 %": MIN_ACCURACY}, xscale="log", xlabel="facts per trained parameter")
    right.set(ylabel="accuracy (mean over seeds)", title="largest size of each; paler: smaller")
    return figure


NULLS = dict.fromkeys(MEMORIES, bound_by_steps)
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, measure, id="L11", standing="experiment")
