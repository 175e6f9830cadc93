r"""Gradient descent keeps what was built, mends it without coming back, and from scratch finds only induction heads.

Statement: of nets that were built for n-grams, induction, a grammar, a mixture of experts and a hierarchy, (a) training
that starts at the built net keeps it, function and weights; (b) where training that starts near it returns to its loss,
it does not return to its weights; (c) training that starts at random weights of the same architecture never has its
weights, and works in another way even where it reaches the loss, but for induction: there it works as the built net
does, in another basis.
Why: an optimum has no slope to leave by; the same steps at the same rate mend noise, so there was time to leave. Optima
are not points: noise along flat directions costs nothing, and nothing undoes it. Random starts meet one of many nets of
the same function; two layers of one head each have hardly another way to do induction than by an induction head.
Checked: five problems, built nets as they are at several learning rates, with noise of several sizes (the standard
deviation as a multiple of an array's root mean square), and random weights, 8 seeds each in one program per problem.
*In function*: an excess over the optimum of at most 5 % of what there is to learn (the uniform predictor's excess). *In
weights*: the sine of the angle to the construction, part by part, up to symmetries, at most ½ (30°); random nets are
near 1. *In kind*: what heads look at, when units fire and which expert works differs from the built net at most half as
much as it does in a random net. Kept: in function and in weights, at the end. Found: in function and in kind.
Source: own measurement, without a published target; induction heads that form from random weights are known from Olsson
et al. 2022, arXiv 2209.11895 [A].
Saboteur: two answers of the net for the hierarchy are exchanged, and it is presented as the construction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided, rate_interval
from vitrify.claims._starts import LARGE, SMALL, Problem, Problems
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn import alike, distance
from vitrify.learn.models.built import BuiltFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import Run, train

FUNCTION = 0.05  # of what there is to learn: a net that errs no more answers as the optimum does
NEAR = 0.5  # of a right angle's sine, and of a random net's difference: nearer to the construction than to chance
MOST = 7 / 8  # of the seeds must agree
MENDED = 0.5  # weights have come back that are half as far from the construction as the noise put them
FOUND = ("induction",)  # what is found in kind


@dataclass(frozen=True)
class Setting:
    """The problems, how they are trained, and the starts: rates from the built net, noises at `rate`, and scratch."""

    problems: Problems
    steps: int
    batch: int
    rate: float
    rates: tuple[float, ...]
    noises: tuple[float, ...]
    fresh: tuple[float, ...]
    seeds: int = 8
    wrong: bool = False

    @property
    def starts(self) -> dict[str, tuple[float, bool, float]]:
        """Noise, scratch and learning rate of every start, by name."""
        found = {f"built, rate {rate:g}": (0.0, False, rate) for rate in self.rates}
        found |= {f"noise {noise:g}": (noise, False, self.rate) for noise in self.noises}
        return found | {f"scratch, rate {rate:g}": (0.0, True, rate) for rate in self.fresh}


QUICK = Setting(SMALL, 400, 16, 1e-3, (1e-3, 1e-2), (0.01, 0.1, 0.3), (1e-2,))
PAPER = Setting(LARGE, 1500, 32, 3e-4, (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), (0.01, 0.03, 0.1, 0.3, 1.0), (3e-3, 1e-2))


def subjects() -> Iterator[Subject]:
    """Small problems, a few hundred steps."""
    yield Subject("five constructions", data={"setting": QUICK})


def paper() -> Iterator[Subject]:
    """Larger ones, more rates and more sizes of noise."""
    yield Subject("five constructions", data={"setting": PAPER})


WHAT = ("excess", "turn", "kind")
Curves = Mapping[str, Mapping[str, Any]]  # by start: excess, turn and kind as [seed, mark]


def measured(problem: Problem, setting: Setting) -> tuple[list[float], Curves]:
    """The steps, and what became of every start: all of them members of one program."""
    family = BuiltFamily(start=problem.built)
    runs = train(
        family,
        problem.sandbox,
        members=setting.seeds,
        axes={"noise,scratch,lr": list(setting.starts.values())},
        recipe=Recipe(
            steps=setting.steps, batch=setting.batch, schedule="linear", test_rows=256, marks=1, weight_decay=0.0
        ),
        probes={
            "turn": distance.probe(problem.built, turned=True),
            "kind": alike.probe(problem.built, family, problem.sandbox),
        },
    )
    steps = [point["step"] for point in runs[0].curve]
    found = {
        name: {what: _curves(runs[at * setting.seeds : (at + 1) * setting.seeds], what, len(steps)) for what in WHAT}
        for at, name in enumerate(setting.starts)
    }
    chance = np.mean([found[name]["kind"][:, 0] for name in _scratch(setting)])
    for curves in found.values():
        curves["kind"] = curves["kind"] / chance
    return steps, found


def _scratch(setting: Setting) -> list[str]:
    return [name for name, (_, scratch, _) in setting.starts.items() if scratch]


def _curves(runs: Sequence[Run], what: str, marks: int) -> Any:
    """A quantity of some runs [seed, mark]; excess as a share of what there is to learn. Nothing where it broke."""
    rows = np.full((len(runs), marks), np.nan)
    for row, run in zip(rows, runs, strict=True):
        values = [point[what] for point in run.curve]
        if what == "excess":
            values = [point["excess"] / (point["floor.uniform"] - point["floor"]) for point in run.curve]
        row[: len(values)] = values
    return rows


def check(subject: Subject) -> Evidence:
    """Train every start of every problem, and judge what is kept, mended and found."""
    setting: Setting = subject.data["setting"]
    asked: list[Asked] = []
    left: list[float] = []
    shown: dict[str, Any] = {}
    for name, make in setting.problems.items():
        problem = _exchanged(make()) if setting.wrong else make()
        steps, curves = measured(problem, setting)
        built, scratch = curves[f"built, rate {setting.rate:g}"], curves[_best(curves, setting)]
        asked += [
            _asked(f"{name}, from the built net: excess", built["excess"], most=FUNCTION),
            _asked(f"{name}, from the built net: sine of the angle to it", built["turn"], most=NEAR),
            _asked(f"{name}, from scratch: sine of the angle to the built net", scratch["turn"], least=NEAR),
        ]
        there = scratch["excess"][:, -1] <= FUNCTION
        kind = f"{name}, from scratch: difference in kind (random nets 1)"
        if name in FOUND:
            reached = f"{name}, from scratch: excess"
            asked.append(Asked(reached, scratch["excess"][:, -1].tolist(), most=FUNCTION, share=0.5, premise=True))
            asked += (
                [_asked(f"{kind}, where the loss is reached", scratch["kind"][there], most=NEAR)] if any(there) else []
            )
        else:
            asked.append(_asked(kind, scratch["kind"], least=NEAR))
        for noisy in (curves[f"noise {noise:g}"] for noise in setting.noises):
            back = noisy["excess"][:, -1] <= FUNCTION
            left += (noisy["turn"][back, -1] / noisy["turn"][back, 0]).tolist()
        shown[name] = {"steps": steps, "rate": setting.rate, "best": _best(curves, setting)}
        shown[name] |= {"told": _told(curves, setting), "starts": {n: _quantiles(c) for n, c in curves.items()}}
    mended = "share of the noise's angle that is left in weights whose function came back"
    asked += [Asked(mended, left, least=MENDED, share=MOST)] if left else []
    sizes = f"{setting.steps} steps of {setting.batch} rows, {setting.seeds} seeds of each start"
    notes = [
        f"{name}: {', '.join(f'{what} {value}' for what, value in one['told'].items())}" for name, one in shown.items()
    ]
    domain = f"{', '.join(setting.problems)}; Adam, {sizes}, {len(setting.starts)} starts"
    return decided(asked, domain=domain, seed=0, shown=shown, notes=notes)


def _asked(name: str, values: Any, **bounds: Any) -> Asked:
    return Asked(name, values[:, -1].tolist(), share=MOST, **bounds)


def _best(curves: Curves, setting: Setting) -> str:
    """The start from scratch whose seeds end with the least excess."""
    return min(
        _scratch(setting), key=lambda name: float(np.median(np.nan_to_num(curves[name]["excess"][:, -1], nan=9e9)))
    )


def _told(curves: Curves, setting: Setting) -> dict[str, str]:
    """The table's line: kept, mended and found, in words."""

    def share(inside: Any) -> str:
        low, high = rate_interval(int(inside.sum()), len(inside))
        return f"{int(inside.sum())} of {len(inside)} [{low:.2f}, {high:.2f}]"

    def ends(name: str) -> tuple[Any, Any, Any]:
        return tuple(curves[name][what][:, -1] for what in WHAT)

    kept = {}
    for rate in setting.rates:
        excess, turn, _ = ends(f"built, rate {rate:g}")
        kept[rate] = (excess <= FUNCTION) & (turn <= NEAR)
    largest = [rate for rate, inside in kept.items() if inside.mean() >= MOST]
    back = {noise: ends(f"noise {noise:g}")[0] <= FUNCTION for noise in setting.noises}
    half = [noise for noise, inside in back.items() if inside.mean() >= 0.5]
    turned = {noise: curves[f"noise {noise:g}"]["turn"] for noise in setting.noises}
    home = [noise for noise, turn in turned.items() if (turn[:, -1] <= MENDED * turn[:, 0]).mean() >= 0.5]
    excess, turn, kind = ends(_best(curves, setting))
    return {
        "kept": share(kept[setting.rate]),
        "largest rate kept": f"{max(largest):g}" if largest else "none",
        "largest noise mended by half": f"{max(half):g}" if half else "none",
        "weights back by half": f"{max(home):g}" if home else "none",
        "loss reached from scratch": share(excess <= FUNCTION),
        "found in weights": share((excess <= FUNCTION) & (turn <= NEAR)),
        "found in kind": share((excess <= FUNCTION) & (kind <= NEAR)),
    }


def _quantiles(curves: Mapping[str, Any]) -> dict[str, Any]:
    """The 10th, 50th and 90th percentile at each mark, and all values at the end."""
    found = {what: np.nanpercentile(values, [10, 50, 90], axis=0) for what, values in curves.items()}
    return found | {f"end {what}": values[:, -1] for what, values in curves.items()}


def sabotage(subject: Subject) -> Subject:
    """The net for the hierarchy, with two answers exchanged, as the construction."""
    setting: Setting = subject.data["setting"]
    problems = {"hierarchy": setting.problems["hierarchy"]}
    wrong = replace(setting, problems=problems, rates=(setting.rate,), noises=setting.noises[:1], wrong=True)
    return replace(subject, data={"setting": wrong})


def _exchanged(problem: Problem) -> Problem:
    arrays = problem.built.arrays
    order = np.arange(arrays["unembed.b_U"].shape[-1])
    order[[0, 1]] = 1, 0
    swapped = {name: np.asarray(arrays[name])[..., order] for name in ("unembed.W_U", "unembed.b_U")}
    return replace(problem, built=replace(problem.built, arrays={**arrays, **swapped}))


def draw(shown: Mapping[str, Any]) -> Any:
    """A column for each problem: excess, angle of the weights and difference in kind by step, and where all ended."""
    from vitrify.learn.figures import by_step, level, sheet

    problems = next(iter(shown.values()))
    title = "Gradient descent that starts at a construction, near it, and at random"
    figure, planes = sheet(4, len(problems), title, 4.0, 3.0)
    for column, (name, found) in zip(planes.T, problems.items(), strict=True):
        told = found["told"]
        column[0].set_title(
            f"{name}\nkept {told['kept'].split(' [')[0]}, to the rate {told['largest rate kept']}\n"
            f"half mended to noise {told['largest noise mended by half']}\n"
            f"from scratch: loss {told['loss reached from scratch'].split(' [')[0]}, "
            f"weights {told['found in weights'].split(' of')[0]}, kind {told['found in kind'].split(' of')[0]}",
            fontsize=9,
        )
        looks = _looks(found)
        for plane, what in zip(column, WHAT, strict=False):
            for start, (colour, style) in looks.items():
                low, middle, high = (np.asarray(row, float) for row in found["starts"][start][what])
                if what == "excess":
                    low, middle, high = (np.maximum(row, LEAST) for row in (low, middle, high))
                plane.plot(found["steps"], middle, color=colour, linestyle=style, label=start)
                plane.fill_between(found["steps"], low, high, color=colour, alpha=0.15, linewidth=0)
            by_step(plane)
        column[0].set_yscale("log")
        column[0].set_ylim(LEAST / 2, 30)
        level(column[0], 1.0, "uniform guess", at=0.01)
        level(column[0], FUNCTION, "5 %: as the optimum", at=0.01)
        for plane in column[1:3]:
            plane.set_ylim(0, 1.3)
            level(plane, NEAR, "near")
        level(column[1], 1.0, "right angle")
        level(column[2], 1.0, "random net")
        for start, (colour, _) in looks.items():
            ends = found["starts"][start]
            excess = np.maximum(np.array(ends["end excess"], float), LEAST)
            column[3].scatter(excess, ends["end kind"], s=18, color=colour, alpha=0.8)
        column[3].set_xscale("log")
        column[3].set_xlim(LEAST / 2, 20)
        column[3].set_ylim(-0.04, 1.3)
        column[3].axvline(FUNCTION, color="black", linestyle=":", linewidth=1)
        level(column[3], NEAR, "")
        for x, y, word in (
            (0.02, 0.31, "as built: kept, mended, found"),
            (0.02, 0.93, "learned another way"),
            (0.99, 0.93, "not learned"),
        ):
            side = "right" if x > 0.5 else "left"
            column[3].text(x, y, word, transform=column[3].transAxes, fontsize=8, ha=side, style="italic")
        column[3].set_xlabel("excess at the end (share of what there is to learn)", fontsize=9)
    labels = (
        "excess loss over the optimum\n(share of what there is to learn)",
        "weights: sine of the angle\nto the construction",
    )
    for plane, label in zip(planes[:, 0], (*labels, *["difference in kind\n(random nets: 1)"] * 2), strict=True):
        plane.set_ylabel(label)
    lines, names = planes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names), fontsize=9, title=LEGEND)
    return figure


LEGEND = "start of training (median of the seeds, 10th to 90th percentile as a band); noise at the rate that is judged"
LEAST = 1e-5  # what is drawn of an excess that is smaller, or below 0 by chance


def _looks(found: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Colour and line of what is drawn: the built net at the rate that is judged and at the largest, noise, scratch."""
    built = [name for name in found["starts"] if name.startswith("built")]
    noisy = [name for name in found["starts"] if name.startswith("noise")]
    looks = {f"built, rate {found['rate']:g}": ("black", "-"), built[-1]: ("grey", "--")}
    shades = ("#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#08519c")
    looks |= {name: (shades[len(shades) - len(noisy) + at], "-") for at, name in enumerate(noisy[-len(shades) :])}
    return looks | {found["best"]: ("#d95f02", "-")}


CLAIM = Claim(
    row="L15",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
