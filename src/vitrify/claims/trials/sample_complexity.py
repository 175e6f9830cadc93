r"""Sample complexity on random hierarchies: how many different strings a net must see to err on 10 % of new ones.

A model is a hierarchy with $v$ symbols, $m$ productions each, $n_c$ classes and $L$ levels; $P^* = n_c m^L$. For each
of several sizes $P$, a net is trained on a set of strings until its training loss is small, and then tested on strings
that are held out. Its error is that of the end of training. Training sets are drawn with replacement, so $P$ is the
expected number of different strings. Each grammar crosses 10 % between two sizes; $\ln P$ is interpolated. Where even
the largest size is too small, or the smallest is enough, the crossing is known from one side only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from vitrify.arrays import Array, Bools, Floats
from vitrify.certification.evidence import Quantity
from vitrify.claims.catalogue import Figure, Figures, Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.statistics.crossings import Regression, crossing_interval, interval_regression
from vitrify.claims.statistics.estimates import UNKNOWN, IntervalEstimate
from vitrify.claims.trials.trial import Trial, run_trial
from vitrify.encoding import JsonObject
from vitrify.intervals import CONFIDENCE
from vitrify.learn.figures import panel, reference_line, sheet
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.hierarchy import HierarchySandbox

CNN, SHALLOW = "CNN", "two hidden layers"
AT_ERROR = 0.10
MAX_USED = 0.9  # of all strings, training and test strings together
TOGETHER = 4  # sizes of a trial: members that need many steps keep those that are done waiting
Curves: TypeAlias = "Mapping[Model, ErrorCurve]"


class Model(NamedTuple):
    """A random hierarchy: symbols, productions of each, classes, levels; every production has two symbols."""

    v: int
    m: int
    classes: int
    L: int

    @classmethod
    def of(cls, box: HierarchySandbox) -> Model:
        """Return the model of a sandbox."""
        return cls(box.v, box.m, box.roots, box.L)

    @property
    def star(self) -> int:
        """The number of strings that are expected to be enough, up to a factor: n_c m^L."""
        return int(self.classes * self.m**self.L)

    @property
    def name(self) -> str:
        """The name of the model in trials and figures."""
        return f"v = {self.v}, m = {self.m}, {self.classes} classes, L = {self.L}"

    @property
    def strings(self) -> int:
        """The number of all strings."""
        return int(self.classes * self.m ** (2**self.L - 1))

    def draws(self, different: float) -> int | None:
        """Return how many draws with replacement give so many different training strings; None if these are too many.

        One string in m is held out for tests.
        """
        held = self.strings / self.m
        if different + held > MAX_USED * self.strings:
            return None
        pool = self.strings - held
        return round(math.log1p(-different / pool) / math.log1p(-1 / pool))


def trials(
    net: str,
    models: Sequence[Model],
    family: HierarchicalFamily,
    recipe: Recipe,
    units: Sequence[int],
    times: Sequence[float],
) -> dict[str, Trial]:
    """Return the trials [size, grammar] of a net on some models; `times` are the sizes in units of P*.

    Grammars are those of the task seeds `units`, which follow each other; each has a training seed of the same number.
    """
    made = {}
    for model in models:
        v, m, classes, L = model
        box = HierarchySandbox(
            v=v,
            m=m,
            L=L,
            classes=classes,
            mode="classify",
            grammars=len(units),
            task=units[0],
            levels=False,
            held_out=True,
        )
        sizes = [size for size in (model.draws(time * model.star) for time in times) if size]
        own = family if net == CNN else replace(family, s=2**L, dense=1)
        for part, at in enumerate(range(0, len(sizes), TOGETHER), 1):
            chosen = sizes[at : at + TOGETHER]
            axes: dict[str, Sequence[Any]] = {"train_examples": chosen, "grammar,seed": list(enumerate(units))}
            made[f"{net}, {model.name}, part {part}"] = Trial(box, own, recipe, units, axes=axes)
    return made


def measured(subject: Subject) -> Measured:
    """Train the nets of a subject; return different strings [size], and errors and last steps [size, grammar]."""
    arrays: dict[str, Array] = {}
    for name, trial in subject.trials.items():
        nets, model = run_trial(trial, subject.store), Model.of(trial.sandbox)
        pool = model.strings * (1 - 1 / model.m)
        draws = np.array(trial.axes["train_examples"], dtype=float)
        arrays[f"{name}/rows"] = -pool * np.expm1(draws * math.log1p(-1 / pool))
        arrays[f"{name}/error"] = 1 - nets.final("accuracy")
        arrays[f"{name}/stopped"] = nets.final("stopped")
    return arrays


@dataclass(frozen=True)
class ErrorCurve:
    """The errors [grammar, size] of a net on a model, and whether its training loss was reached there."""

    rows: Floats
    error: Floats
    fitted: Bools

    def logs(self, level: float = AT_ERROR) -> tuple[Floats, Floats]:
        """Return bounds [grammar] of ln P at which the error first falls to a level; they are equal where known."""
        return self._bounds(np.nan_to_num(self.error, nan=1.0), level)

    def middle(self, level: float) -> float:
        """Return ln P at which the mean error of the grammars first falls to a level, infinite if it is not known."""
        low, high = self._bounds(np.nan_to_num(self.error, nan=1.0).mean(axis=0, keepdims=True), level)
        return float(high[0]) if low[0] == high[0] else math.inf

    def _bounds(self, error: Floats, level: float) -> tuple[Floats, Floats]:
        logs = np.log(self.rows)
        low, high = crossing_interval(logs, error, np.full(len(error), level), start=-math.inf)
        known = np.isfinite(low) & np.isfinite(high)
        at = np.searchsorted(logs, np.where(known, high, logs[-1]))
        over, under = (np.take_along_axis(error, each[:, None], axis=1)[:, 0] for each in (at - 1, at))
        ahead = (over - level) / np.where(known, over - under, 1.0)
        exact = logs[at - 1] + ahead * (logs[at] - logs[at - 1])
        return np.where(known, exact, low), np.where(known, exact, high)


def curves(subject: Subject, arrays: Measured, net: str) -> dict[Model, ErrorCurve]:
    """Return the curves of a net by model, from the trials that are parts of them."""
    parts: dict[Model, list[str]] = {}
    for name, trial in subject.trials.items():
        if name.startswith(f"{net}, "):
            parts.setdefault(Model.of(trial.sandbox), []).append(name)
    joined = {}
    for model, names in parts.items():
        rows, error, stopped = (
            np.concatenate([arrays[f"{name}/{key}"] for name in names]) for key in ("rows", "error", "stopped")
        )
        joined[model] = ErrorCurve(rows, error.T, stopped.T >= 0)
    return joined


def law(own: Curves, *, by_model: bool = False) -> Regression:
    """Return the regression of ln P(10 %) on ln n_c and L ln m over all grammars of all models.

    With `by_model` each model has a random intercept: it says how far the law itself is off, and is not judged.
    """
    bounds = [np.stack(curve.logs()) for curve in own.values()]
    low, high = np.concatenate(bounds, axis=1)
    counts = [each.shape[1] for each in bounds]
    columns = [[1.0, math.log(model.classes), model.L * math.log(model.m)] for model in own]
    units = np.repeat(np.arange(len(counts)), counts) if by_model else None
    return interval_regression(low, high, np.repeat(columns, counts, axis=0), units)


def spread(own: Curves, level: float) -> tuple[float, float]:
    """Return the largest over the smallest P / P* of the models with a mean error, and the share where it is known."""
    ratios = np.array([curve.middle(level) - math.log(model.star) for model, curve in own.items()])
    known = np.isfinite(ratios)
    return float(np.exp(np.ptp(ratios[known]))) if known.any() else math.nan, float(known.mean())


def growth(own: Curves) -> IntervalEstimate:
    """Return the slope of mean ln P(10 %) over ln P*, or a lower bound of it, with the interval over grammars.

    A crossing that is known from one side counts as that end, where this makes the slope smaller. Where a model that
    is not reached pulls the other way, nothing is known. Student's t with the degrees of freedom of Welch.
    """
    from scipy.special import stdtrit

    x = np.array([math.log(model.star) for model in own])
    weights = (x - x.mean()) / np.square(x - x.mean()).sum()
    ends = [np.stack(curve.logs())[0 if weight > 0 else 1] for weight, curve in zip(weights, own.values(), strict=True)]
    if not all(np.isfinite(each).all() for each in ends):
        return IntervalEstimate(math.nan, UNKNOWN)
    value = sum(weight * each.mean() for weight, each in zip(weights, ends, strict=True))
    parts = np.array([weight**2 * each.var(ddof=1) / len(each) for weight, each in zip(weights, ends, strict=True)])
    freedom = np.array([len(each) - 1 for each in ends])
    total = parts.sum()
    welch = total**2 / (parts**2 / freedom).sum() if total else 1.0
    half = float(stdtrit(welch, (1 + CONFIDENCE) / 2)) * math.sqrt(total)
    return IntervalEstimate(float(value), (float(value - half), float(value + half)))


def center(curve: ErrorCurve) -> float:
    """Return the mean of ln P(10 %) over grammars; what is known from one side counts as that end."""
    low, high = curve.logs()
    return float(np.where(np.isfinite(low), low, high).mean())


def unreached(own: Curves) -> list[float]:
    """Return for each model the share of grammars whose error is above 10 % with all sizes."""
    return [float(np.isinf(curve.logs()[1]).mean()) for curve in own.values()]


def fitted(own: Curves) -> list[float]:
    """Return for each model the share of members whose training loss was reached."""
    return [float(curve.fitted.mean()) for curve in own.values()]


def told(deep: Curves, shallow: Curves) -> list[Quantity]:
    """Return P(10 %) by net and model, and the regression in which each model has an intercept of its own."""
    needed = [
        Quantity(f"P(10 %) / P*, {net}, {model.name}", math.exp(center(curve)) / model.star)
        for net, own in ((CNN, deep), (SHALLOW, shallow))
        for model, curve in own.items()
    ]
    by_model = law(deep, by_model=True).coefficients[1:]
    names = (f"coefficient of {name}, random intercepts by model" for name in ("ln n_c", "L ln m"))
    return needed + [
        Quantity(name, each.value, interval=each.interval) for name, each in zip(names, by_model, strict=True)
    ]


# Null hypotheses


def redrawn(subject: Subject, arrays: Measured, rng: np.random.Generator) -> dict[str, Array]:
    """Return measurements in which the grammars of each model and net are drawn again from those that there are."""
    drawn: dict[tuple[str, Model], Array] = {}
    again = dict(arrays)
    for name, trial in subject.trials.items():
        count = arrays[f"{name}/error"].shape[1]
        key = name.split(", ")[0], Model.of(trial.sandbox)
        picks = drawn.setdefault(key, rng.integers(count, size=count))
        again |= {f"{name}/{part}": arrays[f"{name}/{part}"][:, picks] for part in ("error", "stopped")}
    return again


def last_level(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which P(10 %) of the CNN is proportional to n_c m: the sizes of each model are moved."""
    own = {model: center(curve) for model, curve in curves(subject, arrays, CNN).items()}
    level = np.mean([middle - math.log(model.classes * model.m) for model, middle in own.items()])
    null = redrawn(subject, arrays, rng)
    for name, trial in subject.trials.items():
        model = Model.of(trial.sandbox)
        if name.startswith(f"{CNN}, "):
            move = level + math.log(model.classes * model.m) - own[model]
            null[f"{name}/rows"] = arrays[f"{name}/rows"] * math.exp(move)
    return null


def constant_factor(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the shallow net is a CNN that needs one factor more: P(10 %) proportional to P*.

    The factor is the one measured, on average, but at most half of the largest that sizes allow, so that it is seen.
    """
    deep, shallow = (curves(subject, arrays, net) for net in (CNN, SHALLOW))
    measured = np.mean([center(curve) - math.log(model.star) for model, curve in shallow.items()])
    most = min(math.log(curve.rows[-1] / model.star / 2) for model, curve in shallow.items())
    level = min(float(measured), most)
    null = redrawn(subject, arrays, rng)
    redrawn_deep = curves(subject, null, CNN)
    for name, trial in subject.trials.items():
        if not name.startswith(f"{SHALLOW}, "):
            continue
        model = Model.of(trial.sandbox)
        move = level + math.log(model.star) - center(deep[model])
        seen = np.log(arrays[f"{name}/rows"]) - move
        curve = redrawn_deep[model]
        null[f"{name}/error"] = np.stack([np.interp(seen, np.log(curve.rows), own) for own in curve.error], axis=1)
    return null


# Figure


def figure(deep: Curves, shallow: Curves) -> JsonObject:
    """Return the data of the figure: for each net and model P*, sizes, errors [grammar, size] and P(10 %)."""
    data: JsonObject = {}
    for net, own in ((CNN, deep), (SHALLOW, shallow)):
        data[net] = {}
        for model, curve in own.items():
            low, high = curve.logs()
            data[net][model.name] = {
                "model": list(model),
                "rows": curve.rows,
                "error": curve.error,
                "needed": np.exp(high),
                "above": np.exp(low),
            }
    return data


def draw(figures: Figures) -> Figure:
    """Draw errors over P / P*, P(10 %) over P* of both nets, and by how much the CNN is off the line of slope 1."""
    (data,) = figures.values()
    deep, shallow = data[CNN], data[SHALLOW]
    title = "Strings that a net must see to classify a random hierarchy, $P^* = n_c\\, m^L$"
    sheeted, ((collapse, needed, off),) = sheet(1, 3, title, 5.2, 4.4)
    colors = {name: f"C{at % 10}" for at, name in enumerate(deep)}
    marks = {name: "os^Dv"[at // 10 % 5] for at, name in enumerate(deep)}
    factor = float(np.exp(np.mean([_log(one) - math.log(_star(one)) for one in deep.values() if _finite(one).any()])))
    for name, one in deep.items():
        star, style = _star(one), {"color": colors[name], "marker": marks[name]}
        error = np.array(one["error"], dtype=float)
        collapse.plot(np.array(one["rows"]) / star, error.mean(axis=0), label=name, markersize=4, linewidth=1, **style)
        values = np.array(one["needed"], dtype=float)[_finite(one)]
        needed.plot(np.full(len(values), star), values, linestyle="", markersize=4, alpha=0.5, **style)
        off.plot(np.full(len(values), star), values / star / factor, linestyle="", markersize=4, alpha=0.5, **style)
        if len(values):
            off.plot([star], [math.exp(_log(one)) / star / factor], label=name, linestyle="", markersize=8, **style)
    stars = np.array(sorted({_star(one) for own in (deep, shallow) for one in own.values()}))
    needed.plot(stars, factor * stars, color="black", linewidth=1, label=f"CNN, slope 1: {factor:.2g} P*")
    for at, one in enumerate(shallow.values()):
        reached = _finite(one)
        for chosen, key, mark, label in (
            (reached, "needed", "x", "fully connected, two hidden layers"),
            (~reached, "above", 6, "the same: above 10 % with all sizes"),
        ):
            values = np.array(one[key], dtype=float)[chosen]
            drawn = {"color": "black", "linestyle": "", "marker": mark, "markersize": 7}
            needed.plot(np.full(len(values), _star(one)), values, label=None if at else label, **drawn)
    reference_line(collapse, AT_ERROR, "10 %", at=0.01)
    for edge in (1.0, math.sqrt(1.5), 1 / math.sqrt(1.5)):
        off.axhline(edge, color="black", linestyle="-" if edge == 1 else ":", linewidth=1)
    label = "error on held-out strings at the end of training"
    panel(collapse, size=6, xlabel="different training strings P / P*", ylabel=label, title="mean of the grammars")
    collapse.set_xscale("log", base=2)
    for axes in (needed, off):
        axes.set(xscale="log", yscale="log", xlabel="$P^*$")
    panel(needed, size=7, ylabel="strings for 10 % error", title="each grammar")
    label = "strings for 10 % error / slope 1"
    panel(off, legend=None, ylabel=label, title="CNN: residuals; between dotted lines a factor 1.5")
    off.set_yticks([0.5, 0.75, 1, 1.5, 2], ["0.5", "0.75", "1", "1.5", "2"])
    off.minorticks_off()
    return sheeted


def _star(one: JsonObject) -> int:
    return Model(*one["model"]).star


def _finite(one: JsonObject) -> Bools:
    needed, above = (np.array(one[key], dtype=float) for key in ("needed", "above"))
    return np.asarray(needed == above)


def _log(one: JsonObject) -> float:
    """Return the mean of ln P(10 %) over the grammars where it is known."""
    return float(np.log(np.array(one["needed"], dtype=float)[_finite(one)]).mean())
