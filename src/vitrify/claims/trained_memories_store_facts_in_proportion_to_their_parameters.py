r"""Trained memories store facts in proportion to their parameters: a matrix, units, heads, heads and units.

Statement: with random codes that stay as they are, the bits that gradient descent stores at 99 % accuracy grow like the
number of trained parameters: the slope on logarithmic scales lies between 0.8 and 1.2. Words with an answer of their
own are stored by a $d \times d$ matrix and by $m = 4d$ units; facts about subjects and 4 relations, of 4 answers each,
by heads with $H d_h = 2d$, and by heads with $H d_h = d$, in whole heads (16 at $d = 14$), and $4d$ units. A fact of
$M$ possible answers is $\log_2 M$ bits.
Why: parameters of $b$ bits can't tell more than $b$ bits each, and random codes of $d$ numbers are so nearly orthogonal
that each association can be written down by its own product; $N$ words with $N$ answers are $N \log_2 N$ bits, so that
$N$ itself grows a little slower.
Checked: for several sizes, each with a ladder of numbers of facts, all seeds are trained side by side as one program:
a smaller net is the largest one with zeros, fewer facts are the first of all. What is stored is where the accuracy
falls below 0.99, between two rungs on logarithmic scales; each seed has a slope of its own, and their mean is asked
for. All seeds must know the fewest facts, and may not know the most, or the ladder says nothing. Intervals, slopes of
facts, and bits per parameter are measured beside it.
Source: Nichani, Lee & Bietti 2025, arXiv 2412.06538 [S]: facts in proportion to $4 H d_h d + 2md$, and
$N \ln N = d^2/1.3$ for matrices; sizes, steps and the fixed number of relations are ours.
Saboteur: training ends after a hundredth of its steps, when there is room for the facts and they are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided, interval
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.memory import MemoryFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.associations import AssociationSandbox
from vitrify.sandboxes.facts import FactRecall

ENOUGH = 0.99  # accuracy
SLOPE = (0.8, 1.2)
TESTED = 512  # rows
LEAST = 0.5 / TESTED  # error
RELATIONS, ANSWERS = 4, 4
D_HEAD = 4


@dataclass(frozen=True)
class Settings:
    """A kind of memory in several widths, the largest last; bits per parameter that are tried; and the training."""

    family: MemoryFamily
    widths: tuple[int, ...]
    loads: tuple[float, ...]
    recipe: Recipe
    members: int = 8

    @property
    def whole_facts(self) -> bool:
        """Whether facts of subjects and relations are stored, and not words with answers."""
        return self.family.heads > 0

    def sized(self, width: int) -> MemoryFamily:
        """The memory of that width."""
        return replace(self.family, part=width / self.family.d_model)

    def count(self, width: int, load: float) -> int:
        """How many facts make so many bits per parameter."""
        bits = load * self.sized(width).size()
        if self.whole_facts:
            return round(float(bits / np.log2(ANSWERS)))
        return round(float(brentq(lambda n: n * np.log2(n) - bits, 1.0, bits + 2)))

    def bits(self, facts: float) -> float:
        """What so many facts are."""
        return float(facts * np.log2(ANSWERS if self.whole_facts else facts))


def _settings(
    kind: str, widths: Sequence[int], loads: Sequence[float], steps: int, batch: int, lr: float, members: int = 8
) -> Settings:
    width = widths[-1]
    heads = 2 * width // D_HEAD if kind == "heads" else width // D_HEAD if "heads" in kind else 0
    family = MemoryFamily(d_model=width, heads=heads, d_head=D_HEAD, units=4 * width if "units" in kind else 0)
    recipe = Recipe(steps=steps, batch=batch, lr=lr, clip=None, warmup=0, schedule="cosine", marks=0, test_rows=TESTED)
    return Settings(family, tuple(widths), tuple(loads), recipe, members)


def subjects() -> Iterator[Subject]:
    """Widths up to 16."""
    sizes: tuple[tuple[Any, ...], ...] = (
        ("matrix", (6, 8, 11, 16), (0.8, 1.0, 1.25, 1.6, 2.2), 400, 128, 3.0),
        ("units", (6, 8, 11, 14), (0.8, 1.1, 1.5, 2.1), 1000, 64, 0.1),
        ("heads", (14, 20, 28), (0.2, 0.36, 0.65), 1200, 64, 0.06),
        ("heads and units", (8, 12, 16), (0.15, 0.25, 0.4, 0.65), 800, 64, 0.03),
    )
    for kind, *rest in sizes:
        yield Subject(kind, data={"settings": _settings(kind, *rest)})


def paper() -> Iterator[Subject]:
    """About two decades of parameters."""
    sizes: tuple[tuple[Any, ...], ...] = (
        ("matrix", (8, 14, 25, 45, 80), (0.7, 0.95, 1.25, 1.65, 2.2), 1500, 512, 3.0),
        ("units", (5, 9, 16, 28, 50), (0.6, 0.9, 1.3, 1.8, 2.5), 3000, 256, 0.1),
        ("heads", (8, 14, 24, 44, 80), (0.1, 0.18, 0.3, 0.5, 0.85), 4000, 512, 0.02),
        ("heads and units", (8, 14, 24, 40, 64), (0.2, 0.36, 0.65, 1.1, 1.7, 2.5), 8000, 1024, 0.02),
    )
    for kind, *rest in sizes:
        yield Subject(kind, data={"settings": _settings(kind, *rest)})


def check(subject: Subject) -> Evidence:
    """Train the whole ladder, find what each seed stores at each size, and fit slopes."""
    settings: Settings = subject.data["settings"]
    counts, accuracy = _trained(settings)
    pairs = zip(counts, accuracy, strict=True)
    stored = np.array([[_crossing(rungs, of) for of in reached.T] for rungs, reached in pairs])
    bits = np.vectorize(settings.bits)(stored)
    sizes = np.array([settings.sized(width).size() for width in settings.widths])
    slopes, raw = ([_slope(sizes, up[:, seed]) for seed in range(settings.members)] for up in (bits, stored))
    per_parameter = bits / sizes[:, None]
    evidence = decided(
        [
            Asked("accuracy on the fewest facts", accuracy[:, 0].ravel().tolist(), least=ENOUGH),
            Asked("accuracy on the most facts", accuracy[:, -1].ravel().tolist(), most=ENOUGH, premise=True),
            Asked("slope of bits on parameters, mean over seeds", [float(np.mean(slopes))], *SLOPE),
        ],
        domain=f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]} parameters, {settings.members} seeds of each",
        seed=0,
        shown={
            "sizes": sizes,
            "counts": counts,
            "accuracy": accuracy.mean(axis=-1),
            "stored": stored,
            "bits": bits,
            "slope": [float(np.mean(slopes)), *interval(slopes)],
        },
    )
    beside = {
        "slope of bits on parameters, each seed": Asked("", slopes).measured,
        "slope of facts on parameters, each seed": Asked("", raw).measured,
        "bits per parameter": " ".join(f"{value:.2f}" for value in per_parameter.mean(axis=1)),
        "facts at 99 %": " ".join(f"{value:.0f}" for value in stored.mean(axis=1)),
    }
    return replace(evidence, measured={**evidence.measured, **beside})


def _trained(settings: Settings) -> tuple[list[list[int]], Any]:
    """The numbers of facts [width, rung], and the accuracy reached [width, rung, seed]."""
    counts = [[settings.count(width, load) for load in settings.loads] for width in settings.widths]
    most = max(map(max, counts))
    box: Any = AssociationSandbox(most)
    if settings.whole_facts:
        subjects = -(-most // RELATIONS)
        box = FactRecall(subjects, RELATIONS, ANSWERS, noise=0, length=3, table="random")
        most = subjects * RELATIONS
    points = [
        (width / settings.family.d_model, count / most)
        for width, rungs in zip(settings.widths, counts, strict=True)
        for count in rungs
    ]
    axes = {"part,share": points}
    runs = train(settings.family, box, axes=axes, members=settings.members, recipe=settings.recipe)
    reached = np.array([run.last["accuracy"] for run in runs])
    return counts, reached.reshape(len(settings.widths), len(settings.loads), settings.members)


def _crossing(rungs: Sequence[int], accuracy: Sequence[float]) -> float:
    """Where the accuracy first falls below what is enough; an end of the ladder where it does so nowhere on it.

    Between two rungs the logarithm of the error, which is at least half a test row, goes with that of the facts.
    """
    error = np.log(np.maximum(1 - np.asarray(accuracy, dtype=float), LEAST))
    aim = np.log(1 - ENOUGH)
    for at in range(len(rungs)):
        if accuracy[at] < ENOUGH:
            if not at:
                return float(rungs[0])
            ahead = (aim - error[at - 1]) / (error[at] - error[at - 1])
            return float(rungs[at - 1] * (rungs[at] / rungs[at - 1]) ** ahead)
    return float(rungs[-1])


def _slope(sizes: Any, up: Any) -> float:
    """The slope of the line that fits best on logarithmic scales."""
    return float(np.polyfit(np.log(sizes), np.log(up), 1)[0])


def sabotage(subject: Subject) -> Subject:
    """A hundredth of the steps."""
    settings: Settings = subject.data["settings"]
    short = replace(settings.recipe, steps=settings.recipe.steps // 100)
    return replace(subject, data={"settings": replace(settings, recipe=short)})


def draw(shown: Mapping[str, Any]) -> Any:
    """Bits stored over parameters with the fitted lines, and the accuracy along the ladders."""
    from vitrify.learn.figures import level, sheet

    figure, planes = sheet(1, 2, "What trained memories store", 5.6, 4.6)
    left, right = planes[0]
    sizes = np.array(
        [min(min(one["sizes"]) for one in shown.values()), max(max(one["sizes"]) for one in shown.values())]
    )
    for share in (0.5, 1.0, 2.0):
        left.plot(sizes, share * sizes, color="grey", linewidth=0.8, linestyle=":")
        left.annotate(f"{share:g} bit{'s' * (share > 1)} per parameter", (sizes[0], share * sizes[0]), fontsize=7)
    for number, (name, one) in enumerate(shown.items()):
        colour, bits = f"C{number}", np.array(one["bits"])
        slope, low, high = one["slope"]
        left.plot(np.repeat(one["sizes"], bits.shape[1]), bits.ravel(), ".", color=colour, markersize=4, alpha=0.5)
        middle = np.exp(np.log(bits).mean(axis=1))
        line = np.exp(np.log(middle).mean() + slope * (np.log(one["sizes"]) - np.log(one["sizes"]).mean()))
        left.plot(one["sizes"], line, color=colour, label=f"{name}: slope {slope:.2f} [{low:.2f}, {high:.2f}]")
        for size, rungs, accuracy in zip(one["sizes"], one["counts"], one["accuracy"], strict=True):
            last = size == one["sizes"][-1]
            right.plot(
                np.array(rungs) / size, accuracy, color=colour, alpha=0.3 + 0.7 * last, label=name if last else None
            )
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xlabel("trained parameters")
    left.set_ylabel("bits stored at 99 % accuracy")
    left.legend(fontsize=8)
    level(right, ENOUGH, "99 %")
    right.set_xscale("log")
    right.set_xlabel("facts per trained parameter")
    right.set_ylabel("accuracy (mean over seeds)")
    right.legend(fontsize=8, title="largest size of each; paler: smaller", title_fontsize=7)
    return figure


CLAIM = Claim(
    row="L11",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
