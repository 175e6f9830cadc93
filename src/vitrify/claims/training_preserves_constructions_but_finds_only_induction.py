r"""Training preserves built nets, repairs their function but not their weights, and finds only induction from scratch.

Statement: For networks built for n-grams, induction, a grammar, a mixture of experts and a hierarchy: (a) training that
starts at the built network keeps it, in function and in weights; (b) where training from a perturbed start recovers the
loss, it does not recover the weights; (c) training from random weights of the same architecture never finds the built
weights, and where it reaches the loss it works differently. The exception is induction, where it works as the built
network does, in another basis. The angle of weights is taken array by array, up to symmetries. The difference in kind
compares attention patterns, active units and chosen experts with the built network's, relative to a random network.
Why: An optimum has no gradient to leave by, and the same number of steps is enough to repair noise. Optima are not
isolated: noise along flat directions costs nothing and is not undone. Random starts reach one of many networks with the
same function; two layers of one head have hardly another way to do induction.
Not checked: Longer training, other optimisers than AdamW, weight decay, and other architectures than the built ones.
Four of the five problems are judged as not found at these sizes and steps only.
Source: Own measurement, without a published target. That induction heads form from random weights is known from Olsson
et al. 2022, arXiv 2209.11895 [A].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import start_nulls, starts
from vitrify.claims.trials.problems import LARGE, SMALL, Problems
from vitrify.claims.trials.start_figures import draw_column
from vitrify.claims.trials.starts import MAX_DISTANCE, MAX_EXCESS, MIN_LEFT, MIN_SEEDS, Curves, StartSettings
from vitrify.claims.trials.trial import Criterion, Evidence, Measured, Quantity, evidence
from vitrify.intervals import rate_interval
from vitrify.learn.figures import sheet

INDUCTION = "induction"  # the problem that is solved in the built way
MIN_REACHED = 0.5  # share of the seeds that must reach the loss from scratch, for their kind to say something
MIN_REPAIRED = 5  # starts that lost the function and regained it, for their weights to say something
QUICK = StartSettings(400, 16, 1e-3, (1e-3, 1e-2), (0.01, 0.1, 0.3), (1e-2,))
JUDGED = StartSettings(1500, 32, 3e-4, (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), (0.01, 0.03, 0.1, 0.3, 1.0), (3e-3, 1e-2))
SHARE = f"in {MIN_SEEDS:.1%} of the seeds"
SOLVED = f"an excess loss ≤ {MAX_EXCESS:.0%} of the uniform predictor's"
PLAN = Plan(
    version=1,
    question="Does gradient descent keep constructions, return to them, and find them from random weights?",
    statements={
        "kept": Statement(
            "training that starts at a built network keeps its function and its weights",
            f"{SOLVED} and a sine of the angle ≤ {MAX_DISTANCE} at the end, {SHARE} of each problem",
            "in half of the seeds training leaves the construction for what it finds from random weights",
        ),
        "not repaired": Statement(
            "training from a perturbed network that loses the function regains it, but not the weights",
            f"of the starts with noise that end with {SOLVED} and began with more, {MIN_SEEDS:.1%} keep ≥ {MIN_LEFT} "
            "of the initial angle",
            "the construction is an isolated optimum: the excess is quadratic in the angle",
        ),
        "not found": Statement(
            "training from random weights does not find the built weights",
            f"sine of the angle ≥ {MAX_DISTANCE} at the end, {SHARE} of each problem",
            "in half of the seeds it ends where training from the built network ends",
        ),
        "another way": Statement(
            "but for induction, networks from random weights that reach the loss work differently",
            f"in each such problem in which ≥ {MIN_REACHED:.0%} of the seeds reach {SOLVED}: difference in kind from "
            f"the construction ≥ {MAX_DISTANCE} times that of random networks, {MIN_SEEDS:.1%} of these seeds",
            "networks that reach the loss work as the built network does after training",
        ),
        "same way": Statement(
            "networks for induction from random weights work as the built network does",
            f"difference in kind ≤ {MAX_DISTANCE} times that of random networks, {MIN_SEEDS:.1%} of the seeds that "
            "reach the loss",
            "they work as differently as networks for the other problems do",
        ),
    },
    units="seed of noise, random weights and batches; the n-gram model and the hierarchy are drawn once for the run",
    judged=range(100, 108),
    explored=range(32),
    stopping="fixed number of steps",
    scale={"problems": Axis("five small ones", None), "steps": Axis(JUDGED.steps, None)},
    chosen="Rates, sizes of noise, and MIN_REPAIRED; noise that never costs the function no longer counts as repaired.",
)
LEGEND = "start of training (median of the seeds, 10th to 90th percentile as a band); noise at the rate that is judged"
LABELS = (
    "excess loss over the optimum\n(share of the uniform predictor's excess)",
    "weights: sine of the angle\nto the construction",
    *["difference in kind\n(random nets: 1)"] * 2,
)


def subjects() -> Subjects:
    yield _subject(QUICK, SMALL, PLAN.explored[:8])


def large() -> Subjects:
    """Larger problems, more rates and more sizes of noise."""
    yield _subject(JUDGED, LARGE, PLAN.judged)


def _subject(settings: StartSettings, problems: Problems, seeds: Sequence[int]) -> Subject:
    trials = {name: settings.trial(make(), seeds) for name, make in problems.items()}
    return Subject("five constructions", data={"settings": settings, "starts": list(settings.starts)}, trials=trials)


def judge(subject: Subject, measured: Measured) -> Evidence:
    settings: StartSettings = subject.data["settings"]
    curves = {name: starts.curves(measured, name, settings) for name in subject.trials}
    best = {name: starts.best_from_scratch(own, settings) for name, own in curves.items()}
    quantities: list[Quantity] = []
    figure = {}
    for name, own in curves.items():
        summary = starts.summary(own, settings, best[name])
        quantities += [_quantity(f"{name}: {what}", value) for what, value in summary.items()]
        figure[name] = {"steps": settings.recipe.eval_steps(), "rate": settings.rate, "best": best[name]}
        drawn = {start: starts.quantiles(each) for start, each in own.items()}
        figure[name] |= {"summary": summary, "starts": drawn}
    return evidence(subject, list(_criteria(curves, best, settings)), figure, quantities)


def _criteria(curves: Mapping[str, Curves], best: Mapping[str, str], settings: StartSettings) -> Iterator[Criterion]:
    """Yield the criteria of each problem, from the ends of its best start at random weights; then those of all."""
    most, enough = partial(Criterion.judged, share=MIN_SEEDS), partial(Criterion.judged, premise=True)
    solved: list[float] = []
    for name, own in curves.items():
        built, scratch = ({what: each[:, -1] for what, each in own[at].items()} for at in (settings.judged, best[name]))
        kept, of = f"{name}, from the built net: ", f"{name}, from scratch: "
        yield most(f"{kept}excess", built["excess"], at_most=MAX_EXCESS, statement="kept")
        yield most(f"{kept}sine of the angle to it", built["turn"], at_most=MAX_DISTANCE, statement="kept")
        yield most(f"{of}sine of the angle to it", scratch["turn"], at_least=MAX_DISTANCE, statement="not found")
        reached, of_kind = scratch["excess"] <= MAX_EXCESS, f"{of}difference in kind, where the loss is reached"
        share, kind = [reached.mean()], scratch["kind"][reached]
        if name == INDUCTION:
            yield enough(f"{of}share that reaches the loss", share, at_least=MIN_REACHED, statement="same way")
        else:
            solved += share
        if share[0] >= MIN_REACHED and name == INDUCTION:
            yield most(of_kind, kind, at_most=MAX_DISTANCE, statement="same way")
        elif share[0] >= MIN_REACHED:
            yield most(of_kind, kind, at_least=MAX_DISTANCE, statement="another way")
    others = "from scratch: share that reaches the loss, in the best of the other problems"
    yield enough(others, [max(solved)], at_least=MIN_REACHED, statement="another way")
    left, kept = np.concatenate([starts.repaired(own, settings) for own in curves.values()]), "not repaired"
    yield enough("starts that lost the function and regained it", [len(left)], at_least=MIN_REPAIRED, statement=kept)
    if len(left):
        yield most("share of the noise's angle left in their weights", left, at_least=MIN_LEFT, statement=kept)


def _quantity(name: str, value: Array) -> Quantity:
    """Return a quantity; counts of seeds [successes, all] become a share with its interval."""
    if isinstance(value, list):
        return Quantity(f"{name}, share of the seeds", value[0] / value[1], interval=rate_interval(*value))
    return Quantity(name, value)


def draw(figures: Figures) -> Figure:
    """A column for each problem: excess, angle of the weights and difference in kind by step, and where all ended."""
    problems = next(iter(figures.values()))
    title = "Gradient descent that starts at a construction, near it, and at random"
    figure, axes = sheet(4, len(problems), title, 4.0, 3.0)
    for column, (name, data) in zip(axes.T, problems.items(), strict=True):
        draw_column(column, name, data)
    for own, label in zip(axes[:, 0], LABELS, strict=True):
        own.set_ylabel(label)
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names), fontsize=9, title=LEGEND)
    return figure


NULLS = {
    "kept": start_nulls.left,
    "not repaired": start_nulls.isolated,
    "not found": start_nulls.found,
    "another way": start_nulls.alike,
    "same way": start_nulls.other,
}
CLAIM = Claim.planned(PLAN, subjects, judge, NULLS, large, draw, starts.measure, id="L15", standing="experiment")
