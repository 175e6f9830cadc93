r"""The facts that trained memories (matrix, MLP, attention, both) store grow in proportion to their parameters.

Statement: Embeddings are random and frozen. The bits that gradient descent stores at 99 % accuracy grow in proportion
to the number of trained parameters: the slope in log-log scale lies between 0.8 and 1.2. This holds for a $d \times d$
matrix and an MLP with $m = 4d$ units, which map $N$ inputs to $N$ answers, and for attention with $H d_h = 2d$, and
with $H d_h = d$ and an MLP of $4d$ units, which map subjects and 4 relations to one of 4 answers. A fact with $M$
possible answers counts $\log_2 M$ bits.
Why: Parameters of $b$ bits cannot hold more than $b$ bits each. Random codes of $d$ numbers are nearly orthogonal, so
each association can be stored by its own outer product. $N$ inputs with $N$ answers are $N \log_2 N$ bits, so $N$
itself grows slightly slower.
Checked: Three to five sizes of each memory, with $d$ from 6 to 28 at quick scale and from 5 to 80 at large scale, eight
seeds, and a ladder of numbers of facts for each size. Capacity is where the accuracy falls below 0.99, interpolated
between two rungs in log scale. Each seed has its own slope; their mean is judged. All seeds must store the fewest
facts, and none of them the most. Slopes of facts and bits per parameter are reported.
Not checked: The authors' larger sizes and longer training, and their number of relations, which grows with the size
(fixed here). $d_h = 4$ throughout, so at some widths heads only approximate the stated ratio. That training has
converged at every size.
Source: Nichani, Lee and Bietti 2025, arXiv 2412.06538 [S]: facts in proportion to $4 H d_h d + 2md$, and $N \ln N =
d^2/1.3$ for matrices.
Saboteur: Training stops after a hundredth of its steps, before the facts are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials.ladders import ANSWERS, MIN_ACCURACY, TEST_ROWS, bits_of, crossing, facts_of
from vitrify.claims.trials.trial import Criterion, Evidence, Quantity, Recipe, Trial, evidence, trained
from vitrify.intervals import mean_interval
from vitrify.learn.figures import panel, sheet
from vitrify.learn.models.memory import MemoryFamily
from vitrify.sandboxes.associations import AssociationSandbox
from vitrify.sandboxes.catalogue import Sandbox
from vitrify.sandboxes.facts import FactRecall

MIN_SLOPE, MAX_SLOPE = 0.8, 1.2
RELATIONS, D_HEAD = 4, 4


def subjects() -> Subjects:
    yield _subject("matrix", (6, 8, 11, 16), (0.8, 1.0, 1.25, 1.6, 2.2), steps=400, batch=128, lr=3.0)
    yield _subject("units", (6, 8, 11, 14), (0.8, 1.1, 1.5, 2.1), steps=1000, batch=64, lr=0.1)
    yield _subject("heads", (14, 20, 28), (0.2, 0.36, 0.65), steps=1200, batch=64, lr=0.06)
    yield _subject("heads and units", (8, 12, 16), (0.15, 0.25, 0.4, 0.65), steps=800, batch=64, lr=0.03)


def large() -> Subjects:
    """About two decades of parameters."""
    yield _subject("matrix", (8, 14, 25, 45, 80), (0.7, 0.95, 1.25, 1.65, 2.2), steps=1500, batch=512, lr=3.0)
    yield _subject("units", (5, 9, 16, 28, 50), (0.6, 0.9, 1.3, 1.8, 2.5), steps=3000, batch=256, lr=0.1)
    yield _subject("heads", (8, 14, 24, 44, 80), (0.1, 0.18, 0.3, 0.5, 0.85), steps=4000, batch=512, lr=0.02)
    loads = (0.2, 0.36, 0.65, 1.1, 1.7, 2.5)
    yield _subject("heads and units", (8, 14, 24, 40, 64), loads, steps=8000, batch=1024, lr=0.02)


def _subject(kind: str, widths: Sequence[int], loads: Sequence[float], *, steps: int, batch: int, lr: float) -> Subject:
    """A kind of memory in several widths, the largest last, and a ladder of facts for each, by bits per parameter."""
    width = widths[-1]
    heads = 2 * width // D_HEAD if kind == "heads" else width // D_HEAD if "heads" in kind else 0
    family = MemoryFamily(d_model=width, heads=heads, d_head=D_HEAD, units=4 * width if "units" in kind else 0)
    common = Recipe(clip=None, warmup=0, schedule="cosine", evals_per_doubling=0, test_examples=TEST_ROWS)
    recipe = replace(common, steps=steps, batch=batch, lr=lr)
    parts = [own / width for own in widths]
    sizes = [replace(family, part=part).size() for part in parts]
    counts = [[facts_of(load * size, heads > 0) for load in loads] for size in sizes]
    most = max(map(max, counts))
    box: Sandbox = AssociationSandbox(most)
    if heads:
        subjects = -(-most // RELATIONS)
        box, most = FactRecall(subjects, RELATIONS, ANSWERS, noise=0, length=3, table="random"), subjects * RELATIONS
    points = [(part, count / most) for part, rungs in zip(parts, counts, strict=True) for count in rungs]
    data = {"parameters": sizes, "counts": counts, "loads": loads, "relations": heads > 0}
    return Subject(kind, data=data, trials={kind: Trial(box, family, recipe, axes={"part,share": points})})


def sabotage(subject: Subject) -> Subject:
    ((kind, trial),) = subject.trials.items()
    short = replace(trial.recipe, steps=trial.recipe.steps // 100)
    return replace(subject, trials={kind: replace(trial, recipe=short)})


def check(subject: Subject) -> Evidence:
    (nets,) = trained(subject).values()
    counts, sizes = subject.data["counts"], np.array(subject.data["parameters"])
    accuracy = nets.final("accuracy").reshape(len(sizes), len(counts[0]), -1)  # [size, rung, seed]
    pairs = zip(counts, accuracy, strict=True)
    stored = np.array([[crossing(rungs, of) for of in reached.T] for rungs, reached in pairs])  # [size, seed]
    bits = bits_of(stored, subject.data["relations"])
    slopes, raw = (np.polyfit(np.log(sizes), np.log(up), 1)[0] for up in (bits, stored))
    mean = float(np.mean(slopes))
    name = "slope of bits on parameters, mean over seeds"
    criteria = [
        Criterion.judged("accuracy on the fewest facts", accuracy[:, 0].ravel(), at_least=MIN_ACCURACY),
        Criterion.judged("accuracy on the most facts", accuracy[:, -1].ravel(), at_most=MIN_ACCURACY, premise=True),
        Criterion.judged(name, [mean], at_least=MIN_SLOPE, at_most=MAX_SLOPE),
    ]
    quantities = [
        Quantity("slope of bits on parameters, each seed", slopes, interval=mean_interval(slopes)),
        Quantity("slope of facts on parameters, each seed", raw, interval=mean_interval(raw)),
        Quantity("bits per parameter", (bits / sizes[:, None]).mean(axis=1)),
        Quantity("facts at 99 %", stored.mean(axis=1)),
    ]
    figure = {"sizes": sizes, "counts": counts, "accuracy": accuracy.mean(axis=-1), "stored": stored, "bits": bits}
    return evidence(subject, criteria, figure | {"slope": [mean, *mean_interval(slopes)]}, quantities)


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


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L11", standing="experiment", learned=True, budget_seconds=180)
