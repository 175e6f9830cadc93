"""Figures of stored runs: quantities against steps, seeds as bands or one by one, plateaus and known predictors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vitrify.arrays import Array
from vitrify.encoding import JsonMapping, JsonObject
from vitrify.errors import InputError
from vitrify.learn.figures import MAX_COLORS, aligned, band, by_step, saved, sheet
from vitrify.learn.records import Record, combinations
from vitrify.learn.stages import WINDOW, plateaus
from vitrify.learn.store import RunStore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WINDOW_POINTS, MIN_WINDOW = 6, 0.5  # measurements, and ln(1 + step), over which slopes are fitted: plateaus are short
LEAST = ("entropy",)  # of what several heads have, the smallest is drawn; else the largest
Curve = Sequence[JsonMapping]


def curves(store: RunStore, records: Sequence[Record], quantities: Sequence[str], out: Path, *, each: bool) -> None:
    """Draw quantities of runs against steps, one below the other, with a color for each combination of parameters.

    Seeds are a band, or with `each` thin lines with the plateaus of their losses. Of a quantity with a value for each
    head, it is the largest (of entropies the smallest); `previous.2` is that of head 2.
    """
    if not records:
        raise InputError("no run to draw: train something, or ask for less")
    logs = {record.id: curve for record, curve in store.curves(records) if curve}
    drawn = {run: curve for run, curve in logs.items() if all(_has(curve[0], name) for name in quantities)}
    parameters, groups = combinations([record for record in records if record.id in drawn])
    if not groups:
        known = sorted({name for curve in logs.values() for name in curve[0]})
        raise InputError(f"no run has {' and '.join(map(repr, quantities))}; there are {', '.join(known)}")

    def make() -> Figure:
        figure, grid = sheet(len(quantities), 1, width=7, height=4.2 if len(quantities) == 1 else 3.2)
        for axes, quantity in zip(grid[:, 0], quantities, strict=True):
            for number, (values, members) in enumerate(list(groups.items())[:MAX_COLORS]):
                label = ", ".join(f"{name}={value}" for name, value in zip(parameters, values, strict=True))
                own = [drawn[record.id] for record in members]
                _seeds(axes, own, quantity, f"{label or 'members'} ({len(members)} seeds)", f"C{number}", each)
            if quantity == "loss":
                _known_losses(axes, drawn[next(iter(groups.values()))[0].id][-1])
            _dressed(axes, quantity, max(curve[-1]["step"] for curve in drawn.values()))
        grid[0, 0].set_title(f"{records[0].flat.get('sandbox', '')}, {records[0].flat.get('model', '')}")
        return figure

    saved(make, out)


def _seeds(axes: Axes, own: Sequence[Curve], quantity: str, label: str, color: str, each: bool) -> None:
    """Draw the seeds of one combination: their mean and a band, or each by itself with its plateaus."""
    steps, values = aligned([([_point(point, quantity) for point in curve], True) for curve in own], quantity)
    if not each:
        band(axes, steps, values, label, color)
        return
    axes.plot(steps, values.T, color=color, alpha=0.5, linewidth=0.7)[0].set_label(label)
    for start, end, level in _plateaus(own) if quantity == "loss" else ():
        axes.plot([start, end], [level, level], color="black", alpha=0.3, linewidth=2, solid_capstyle="butt")


def _plateaus(own: Sequence[Curve]) -> list[tuple[float, float, float]]:
    """Return the first and last step and the level of every plateau of some curves of losses."""
    spans = []
    for curve in own:
        points = [point for point in curve if math.isfinite(point["loss"])]
        if len(points) > 1:
            floor = float(points[-1].get("floor", 0.0))
            steps = [point["step"] for point in points]
            window = min(max(WINDOW_POINTS * math.log1p(steps[-1]) / len(steps), MIN_WINDOW), WINDOW)
            flat = plateaus(steps, [point["loss"] for point in points], floor, window=window)
            spans += [(plateau.start, plateau.end, plateau.level) for plateau in flat]
    return spans


def _has(point: JsonMapping, quantity: str) -> bool:
    """Return whether a measurement has a quantity; one after a dot is that of a head."""
    try:
        return bool(np.isreal(_value(point, quantity)))
    except (LookupError, TypeError, ValueError):
        return False


def _point(point: JsonMapping, quantity: str) -> Mapping[str, float]:
    return {"step": point["step"], quantity: _value(point, quantity)}


def _value(point: JsonMapping, quantity: str) -> float:
    """Return the number of a quantity: that of a head by its number, or the largest or smallest of all heads."""
    name, _, number = quantity.rpartition(".")
    if quantity not in point and number.isdecimal() and isinstance(point[name], list):
        return float(point[name][int(number)])
    value: Array = np.asarray(point[quantity], dtype=float)
    return float(value.min() if quantity in LEAST else value.max())


def _dressed(axes: Axes, quantity: str, last: float) -> None:
    by_step(axes)
    axes.set_xlim(0, last)
    unit = " (nats per answer)" if quantity in ("loss", "excess", "kl") or quantity.startswith("kl.") else ""
    axes.set_ylabel(f"{quantity}{unit}")
    if quantity in ("excess", "kl") or quantity.startswith("kl."):
        axes.set_yscale("log")
    axes.legend(fontsize=8)


def _known_losses(axes: Axes, point: JsonObject | JsonMapping) -> None:
    """Draw the losses of the optimal and the other known predictors; names that would overlap share a line."""
    low, high = axes.get_ylim()
    known = {"optimal" if name == "floor" else name.removeprefix("floor."): value for name, value in point.items()}
    known = {name: value for name, value in known.items() if name == "optimal" or f"floor.{name}" in point}
    groups: list[tuple[float, list[str]]] = []
    for name, value in sorted(known.items(), key=lambda item: item[1]):
        axes.axhline(value, color="black", linestyle="-" if name == "optimal" else ":", linewidth=1)
        if groups and value - groups[-1][0] < (high - low) / 25:
            groups[-1] = value, [*groups[-1][1], name]
        else:
            groups.append((value, [name]))
    for value, names in groups:
        place = axes.get_yaxis_transform()
        axes.text(0.99, value, ", ".join(names), transform=place, fontsize=8, va="bottom", ha="right")
