r"""Races on random hierarchies: how many sequences each architecture needs for each level, trained on fresh sequences.

A racer is trained at several learning rates on sequences that never repeat. At every measurement the rate with the
least loss on validation sequences is chosen, for each grammar alone, and its loss on test sequences is reported. The
racer takes step $l$ at $P_l$ sequences, where this loss first falls to the middle of the exact stairs $l - 1$ and $l$;
$P_l$ is interpolated in $\ln P$, and infinite where the loss does not get there.

What is judged are means over grammars of *contrasts*, differences of logarithms such as $\ln P_3 - \ln P_2$. A contrast
in which a $P_l$ is infinite is known from one side only, and the mean is then fitted to such half-lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.evidence import Criterion, Quantity
from vitrify.claims.catalogue import Figure, Figures, Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.statistics.crossings import interval_regression
from vitrify.claims.statistics.estimates import IntervalEstimate, mean
from vitrify.claims.trials import hierarchies
from vitrify.claims.trials.trial import Trial, run_trial
from vitrify.encoding import JsonObject
from vitrify.intervals import mean_interval
from vitrify.learn.figures import band, panel, sheet
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.hierarchy import HierarchySandbox

TINY = 1e-12
MARKS = 4  # measurements each time the number of sequences doubles
SPLITS = ("excess", "validation")  # losses above the optimum on test and on validation sequences
CNN, LCN, TF, LOCAL = "CNN", "CNN without weight sharing", "transformer", "transformer with local mask"
MAX_SHOWN = 1 << 13  # sequences at the end of a curve over those where its drawing begins
COLORS = {CNN: "C0", LCN: "C2", TF: "C3", LOCAL: "C1"}
Racer = tuple[str, int]  # a net, and the productions m of each symbol
Contrast = Mapping[tuple[str, int, int], float]  # weights of ln P by net, m and step (from 1)


class Nets(NamedTuple):
    """The sizes and the learning rates of convolutional nets and of transformers."""

    convolutional: HierarchicalFamily
    convolutional_rates: Sequence[float]
    transformer: TransformerFamily
    transformer_rates: Sequence[float]

    def of(self, net: str) -> tuple[Family, Sequence[float]]:
        """Return the family of a net, and its rates."""
        if net in (CNN, LCN):
            return replace(self.convolutional, shared=net == CNN), self.convolutional_rates
        return replace(self.transformer, causal=True, segments=2 if net == LOCAL else 0), self.transformer_rates


def subject(
    v: int, L: int, recipe: Recipe, racers: Mapping[str, tuple[int, int]], nets: Nets, units: Sequence[int]
) -> Subject:
    """Return the race of some racers, each with log2 of its sequences and the last step that is judged.

    Grammars are those of the task seeds `units`, which follow each other; each has a training seed of the same number.
    """
    trials = {}
    common = replace(recipe, schedule="constant", average=True, evals_per_doubling=MARKS)
    for name, (power, _) in racers.items():
        net, m = racer_of(name)
        box = HierarchySandbox(v=v, m=m, L=L, mode="last", grammars=len(units), task=units[0], levels=False)
        family, rates = nets.of(net)
        axes = {"lr": rates, "grammar,seed": list(enumerate(units))}
        trials[name] = Trial(box, family, replace(common, steps=(1 << power) // recipe.batch), units, axes=axes)
    return Subject(
        f"v = {v}, L = {L}", data={"v": v, "L": L, "last": {n: r[1] for n, r in racers.items()}}, trials=trials
    )


def _envelope(excess: Floats, validation: Floats) -> Floats:
    """Return the losses [grammar, mark] at the rates with the least validation losses."""
    chosen = np.where(np.isfinite(validation), validation, np.inf).argmin(axis=0)
    return np.asarray(np.take_along_axis(excess, chosen[None], axis=0)[0])


def measured(subject: Subject) -> Measured:
    """Train the racers of a subject; return losses above the optimum [rate, grammar, mark] and exact stairs."""
    arrays: dict[str, Floats] = {}
    for name, trial in subject.trials.items():
        nets = run_trial(trial, subject.store)
        arrays |= {f"{name}/{split}": nets.curves(split)[..., 1:] for split in SPLITS}
        arrays[f"{name}/stairs"] = hierarchies.stairs(trial.sandbox, trial.sandbox.grammars)
    return arrays


@dataclass(frozen=True)
class Curve:
    """A racer's loss above the optimum [grammar, mark] at the rate chosen for each mark; `rows` [mark] are sequences.

    `inner` is the same where the two ends of the grid of rates may not be chosen.
    """

    rows: Floats
    excess: Floats
    inner: Floats
    middles: Floats  # [grammar, step]

    @classmethod
    def of(cls, trial: Trial, excess: Floats, validation: Floats, stair: Floats) -> Curve:
        """Return the curve of a trial from its losses [rate, grammar, mark] and the exact stairs [grammar, level]."""
        return cls(
            np.array(trial.recipe.eval_steps()[1:]) * float(trial.recipe.batch),
            _envelope(excess, validation),
            _envelope(excess[1:-1], validation[1:-1]),
            (stair[:, :-1] + stair[:, 1:]) / 2 - stair[:, -1:],
        )

    def logs(self) -> tuple[Floats, Floats]:
        r"""Return bounds [grammar, step] of $\ln P_l$, which are equal where it is known.

        Where the loss never falls to the middle, $P_l$ is above the last mark. Where an end of the grid of rates takes
        the step earlier than all other rates by more than a mark, a wider grid might take it earlier still: $P_l$ is at
        most what it is seen to be.
        """
        seen, inner = self._crossed(self.excess), self._crossed(self.inner)
        with np.errstate(invalid="ignore"):
            narrow = (inner - seen > math.log(2) / MARKS) | (seen == math.log(self.rows[0]))
        low = np.where(np.isinf(seen), math.log(self.rows[-1]), np.where(narrow, -np.inf, seen))
        return low, seen

    def _crossed(self, excess: Floats) -> Floats:
        """Return ln P [grammar, step] where losses first fall to the middles, interpolated; infinite if never."""
        down = excess[:, None, :] <= self.middles[..., None]  # [grammar, step, mark]
        at, each = down.argmax(axis=-1), np.arange(len(excess))[:, None]
        before, logs = np.clip(at - 1, 0, None), np.log(self.rows)
        over, under = excess[each, before], excess[each, at]
        ahead = np.clip((over - self.middles) / np.maximum(over - under, TINY), 0.0, 1.0)
        return np.where(down.any(axis=-1), logs[before] + ahead * (logs[at] - logs[before]), np.inf)

    def delayed(self, curve: Curve, factors: Floats) -> Floats:
        """Return losses [grammar, mark] at the marks of this curve: those of another one, each delayed by a factor."""
        logs, marks = np.log(curve.rows), np.log(self.rows)
        shifted = (
            np.interp(marks - delay, logs, own) for delay, own in zip(np.log(factors), curve.excess, strict=True)
        )
        return np.array(list(shifted))


@dataclass(frozen=True)
class Race:
    """The curves of all racers of a subject, and statistics over grammars."""

    curves: Mapping[Racer, Curve]

    @classmethod
    def of(cls, subject: Subject, arrays: Measured) -> Race:
        """Return the race that a subject's measurements describe; a trial is named "CNN, m = 3"."""
        parts = {name: [arrays[f"{name}/{part}"] for part in (*SPLITS, "stairs")] for name in subject.trials}
        return cls({racer_of(name): Curve.of(subject.trials[name], *own) for name, own in parts.items()})

    @cached_property
    def logs(self) -> Mapping[Racer, tuple[Floats, Floats]]:
        """Bounds [grammar, step] of ln P by racer."""
        return {racer: curve.logs() for racer, curve in self.curves.items()}

    def contrast(self, weights: Contrast) -> tuple[Floats, Floats]:
        """Return bounds [grammar] of a weighted sum of ln P; its terms are (net, m, step), with steps from 1."""
        low = high = np.zeros(len(next(iter(self.curves.values())).excess))
        for (net, m, step), weight in weights.items():
            if not weight:
                continue
            bounds = [weight * end[:, step - 1] for end in self.logs[net, m]]
            one, two = bounds if weight > 0 else bounds[::-1]
            low, high = low + one, high + two
        return low, high

    def mean(self, weights: Contrast) -> IntervalEstimate:
        """Return the mean of a contrast over grammars, with its interval."""
        return interval_mean(*self.contrast(weights))

    def factors(self, slow: str, fast: str, m: int, step: int) -> Floats:
        """Return ln of the factor [grammar] between two nets at a step; the mean of the others where it is unknown."""
        low, high = self.contrast(factor(slow, fast, m, step))
        known = low == high
        return np.where(known, low, low[known].mean() if known.any() else 0.0)

    def productions(self, net: str) -> list[int]:
        """Return the numbers m of productions that a net was trained at."""
        return sorted(m for name, m in self.curves if name == net)

    def power(self, net: str, step: int, v: int) -> IntervalEstimate:
        """Return the power of m in $P_l (1 - m/v) / v$, by regression over all grammars of all m."""
        ms = self.productions(net)
        bounds = [np.stack(self.contrast({(net, m, step): 1.0})) + math.log(1 - m / v) for m in ms]
        low, high = np.concatenate(bounds, axis=1)
        x = np.repeat(np.log(ms), [each.shape[1] for each in bounds])
        return interval_regression(low, high, np.stack([np.ones_like(x), x], axis=1)).coefficients[1]

    def figure(self) -> JsonObject:
        """Return the data of the figure: curves, stairs and steps by racer."""
        titles = {racer: f"{racer[0]}, m = {racer[1]}" for racer in self.curves}
        return {
            "rows": {titles[racer]: curve.rows for racer, curve in self.curves.items()},
            "excess": {titles[racer]: curve.excess for racer, curve in self.curves.items()},
            "middles": {titles[racer]: curve.middles for racer, curve in self.curves.items()},
            "steps": {titles[racer]: np.exp(logs[1]) for racer, logs in self.logs.items()},
            "bounded": {titles[racer]: logs[0] != logs[1] for racer, logs in self.logs.items()},
        }

    def quantities(self) -> list[Quantity]:
        """Return what is reported beside the criteria: mean ln P_l by racer, bounds, and ratios of exponents."""
        told = []
        for (net, m), (low, high) in self.logs.items():
            for step in range(low.shape[1]):
                mean = self.mean({(net, m, step + 1): 1.0}).exp()
                bounded = int((low[:, step] != high[:, step]).sum())
                name = f"P_{step + 1}, {net}, m = {m}" + (f" ({bounded} of {len(low)} only bounded)" if bounded else "")
                told.append(Quantity(name, mean.value, interval=mean.interval))
        for m in self.productions(TF):
            each = self.exponents(CNN, m) / self.exponents(TF, m)
            known = each[np.isfinite(each)]
            if len(known) > 1:
                name = f"exponent of the CNN's loss over that of the transformer, m = {m}"
                told.append(Quantity(name, float(known.mean()), interval=mean_interval(list(known))))
        return told

    def exponents(self, net: str, m: int) -> Floats:
        r"""Return $\beta$ [grammar] of the loss above it $\sim P^{-\beta}$ from the second to the third step."""
        logs = self.logs[net, m][1]
        fall = np.log(self.curves[net, m].middles)
        with np.errstate(invalid="ignore"):
            return np.asarray((fall[:, 1] - fall[:, 2]) / (logs[:, 2] - logs[:, 1]))


def interval_mean(low: Floats, high: Floats) -> IntervalEstimate:
    """Return the mean of values that are known between two ends, or exactly; with Student's t where all are exact."""
    exact = np.array_equal(low, high)
    return mean(low) if exact else interval_regression(low, high, np.ones(len(low))).coefficients[0]


def powers(race: Race, ranges: Mapping[str, tuple[float, float]], v: int) -> list[Criterion]:
    """Return the criteria of the powers of m in $P_3$ of two nets, and of their difference."""
    own = {net: race.power(net, 3, v) for net in ranges}
    judged = [
        Criterion.estimated(f"power of m in P_3, {net}", *own[net], statement="powers", **within(limits))
        for net, limits in ranges.items()
    ]
    name, difference = "power of m in P_3, difference", apart(*own.values())
    return [*judged, Criterion.estimated(name, *difference, statement="powers", at_least=0.0, null=0.0)]


def apart(one: IntervalEstimate, other: IntervalEstimate) -> IntervalEstimate:
    """Return the difference of two estimates as if they were independent, which is cautious for shared grammars."""
    half = math.hypot(*((each.interval[1] - each.interval[0]) / 2 for each in (one, other)))
    value = one.value - other.value
    return IntervalEstimate(value, (value - half, value + half))


def within(limits: tuple[float, float]) -> dict[str, Any]:
    """Return a range as the limits of a criterion."""
    return {"at_least": limits[0], "at_most": limits[1]}


def slope(net: str, m: int, steps: range) -> Contrast:
    r"""Return the contrast that is the slope of $\log_m P_l$ over some steps $l$."""
    x = np.array(steps) - np.mean(steps)
    weights = x / np.square(x).sum() / math.log(m)
    return {(net, m, step): float(weight) for step, weight in zip(steps, weights, strict=True)}


def factor(slow: str, fast: str, m: int, step: int) -> Contrast:
    """Return the contrast that is the logarithm of how many more sequences one net needs than another at a step."""
    return {(slow, m, step): 1.0, (fast, m, step): -1.0}


def minus(one: Contrast, other: Contrast) -> Contrast:
    """Return the difference of two contrasts."""
    return {term: one.get(term, 0.0) - other.get(term, 0.0) for term in {**one, **other}}


def racer_of(trial: str) -> Racer:
    """Return the racer that a trial is named after.

    >>> racer_of("CNN, m = 3")
    ('CNN', 3)
    """
    net, _, m = trial.partition(", m = ")
    return net, int(m)


def delayed(
    subject: Subject,
    measured: Measured,
    rng: np.random.Generator,
    *,
    slow: str,
    fast: str,
    step: int,
    common: bool = False,
    centered: bool = False,
) -> Measured:
    """Return measurements of redrawn grammars in which one net's curves are those of another, delayed by a factor.

    For each grammar it is the factor between the two at a step, or else the geometric mean over grammars and all m
    (`common`). With `centered`, factors are divided by their geometric mean for each m: only their scatter is left.
    """
    race = Race.of(subject, measured)
    count = len(next(iter(race.curves.values())).excess)
    drawn = {m: rng.integers(count, size=count) for _, m in race.curves}
    arrays: dict[str, Floats] = {}
    logs = {m: race.factors(slow, fast, m, step) for m in race.productions(slow) if (fast, m) in race.curves}
    level = float(np.mean(np.concatenate(list(logs.values()))))
    for (net, m), curve in race.curves.items():
        name = f"{net}, m = {m}"
        if net != slow or m not in logs:
            own = {split: measured[f"{name}/{split}"] for split in SPLITS}
        else:
            factors = np.full(count, level) if common else logs[m] - (logs[m].mean() if centered else 0.0)
            other = curve.delayed(race.curves[fast, m], np.exp(factors))
            shape = measured[f"{name}/excess"].shape
            own = dict.fromkeys(SPLITS, np.broadcast_to(other, shape))
        arrays |= {f"{name}/{split}": array[:, drawn[m]] for split, array in own.items()}
        arrays[f"{name}/stairs"] = measured[f"{name}/stairs"][drawn[m]]
    return arrays


def draw(figures: Figures) -> Figure:
    """Draw for each m the losses with the exact stairs, the sequences of each step, and the curves over P / P_3."""
    (data,) = figures.values()
    ms = sorted({racer_of(name)[1] for name in data["rows"] if racer_of(name)[0] == TF})
    figure, grid = sheet(len(ms), 3, "Sequences that each step of a random hierarchy takes", 4.6, 3.7)
    for m, (loss, steps, collapse) in zip(ms, grid, strict=True):
        nets = [net for net in COLORS if f"{net}, m = {m}" in data["rows"]]
        for net in nets:
            name, color = f"{net}, m = {m}", COLORS[net]
            rows, excess, taken = (np.array(data[key][name], dtype=float) for key in ("rows", "excess", "steps"))
            shown = rows >= rows[-1] / MAX_SHOWN
            band(loss, rows[shown], excess[:, shown], net, color)
            levels = np.arange(1, taken.shape[1] + 1)
            with np.errstate(invalid="ignore"):
                means = np.exp(np.where(np.isfinite(taken).all(axis=0), np.log(taken).mean(axis=0), np.nan))
            steps.plot(
                levels, np.where(np.isfinite(taken), taken, np.nan).T, "o", color=color, alpha=0.35, markersize=4
            )
            steps.plot(levels, means, color=color, label=net)
            if np.isfinite(means[2]):
                ahead = rows[shown] / means[2]
                band(collapse, ahead, excess[:, shown], net, color)
        middles = np.array(data["middles"][f"{TF}, m = {m}"], dtype=float).mean(axis=0)
        lines = {f"middle of step {step}": value for step, value in enumerate(middles, 1)}
        for power, style in ((1, "--"), (2, ":")):
            levels = np.arange(2, 5)
            anchor = np.nanmin(np.array(data["steps"][f"{CNN}, m = {m}"], dtype=float)[:, 1])
            law = anchor * float(m) ** (power * (levels - 2))
            steps.plot(
                levels,
                law,
                style,
                color="black",
                linewidth=1,
                label=f"slope {power}: $m^{{{power if power > 1 else ''}l}}$",
            )
        label = "test loss above the optimum (nats)"
        title = f"m = {m}: mean of the grammars, 10–90 % band"
        panel(loss, lines=lines, at=0.01, xscale="log", xlabel="training sequences P", ylabel=label, title=title)
        steps.set(yscale="log", xlabel="step l", ylabel="sequences $P_l$", title=f"m = {m}: each grammar")
        panel(steps, xticks=range(1, 5), size=7)
        title = f"m = {m}: sequences in units of step 3"
        panel(collapse, lines=lines, at=0.01, xscale="log", xlabel="$P / P_3$ of the net", ylabel=label, title=title)
    return figure
