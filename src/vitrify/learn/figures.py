"""Figures: curves with the floor and the known predictors as lines, and seeds as bands; of runs, and of claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.errors import InputError
from vitrify.learn.records import Record
from vitrify.learn.records import axes as varied
from vitrify.learn.store import Store

MOST = 10  # combinations with a colour of their own
KINDS = (".svg", ".png", ".pdf")
STYLE: Any = {"svg.hashsalt": "vitrify", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}


@contextmanager
def made(make: Callable[[], Any]) -> Iterator[Any]:
    """Make a figure in the house's style, to be saved inside."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib: install vitrify[report]") from None
    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure = make()
        try:
            yield figure
        finally:
            plt.close(figure)


def saved(make: Callable[[], Any], out: Path) -> None:
    """Make a figure in the house's style and save it; the same data give the same bytes."""
    if out.suffix not in KINDS:
        raise InputError(f"a figure is {', '.join(KINDS)}, not {out.name!r}")
    with made(make) as figure:
        figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else {}, dpi=150)


def sheet(rows: int, columns: int, title: str = "", width: float = 4.2, height: float = 3.4) -> tuple[Any, Any]:
    """A figure of `rows` times `columns` planes, each of that size in inches; the planes as an array [row, column]."""
    from matplotlib import pyplot as plt

    figure, planes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False
    )
    if title:
        figure.suptitle(title, fontsize=12)
    return figure, planes


def band(plane: Any, steps: Sequence[float], values: Any, label: str, colour: str, **style: Any) -> None:
    """The mean over members of values [member, step], and between the 10th and the 90th percentile a band."""
    numbers = np.asarray(values, dtype=float)
    low, high = np.nanpercentile(numbers, [10, 90], axis=0)
    plane.plot(steps, np.nanmean(numbers, axis=0), color=colour, label=label, **style)
    plane.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)


def level(plane: Any, value: float, name: str, colour: str = "black", style: str = ":", at: float = 0.99) -> None:
    """A horizontal line with its name above it, `at` so much of the width."""
    plane.axhline(value, color=colour, linestyle=style, linewidth=1)
    side = "right" if at > 0.5 else "left"
    plane.text(at, value, name, transform=plane.get_yaxis_transform(), color=colour, fontsize=8, va="bottom", ha=side)


def by_step(plane: Any) -> None:
    """Steps from 0 on a logarithmic axis."""
    plane.set_xscale("symlog", linthresh=1)
    plane.set_xlim(left=0)
    plane.set_xlabel("training step")


def curves(store: Store, records: Sequence[Record], quantity: str, out: Path) -> None:
    """Draw a quantity of runs against steps: a line for each combination of axes, seeds as a band around it."""
    if not records:
        raise InputError("no run to draw: train something, or ask for less")
    axes = [axis for axis in varied(records) if axis not in ("seed", "data_seed")]
    combinations: dict[tuple[Any, ...], list[list[dict[str, Any]]]] = {}
    for record, curve in store.curves(records):
        if curve and quantity in curve[0]:
            combinations.setdefault(tuple(record.flat.get(axis) for axis in axes), []).append(curve)
    if not combinations:
        known = sorted({name for _, curve in store.curves(records[:1]) for name in (curve[0] if curve else {})})
        raise InputError(f"no run has {quantity!r}; there are {', '.join(known)}")

    def make() -> Any:
        figure, planes = sheet(1, 1, width=7, height=4.2)
        plane = planes[0, 0]
        for number, (combination, found) in enumerate(list(combinations.items())[:MOST]):
            label = ", ".join(f"{axis}={_short(v)}" for axis, v in zip(axes, combination, strict=True)) or "members"
            band(plane, *_filled(found, quantity), f"{label} ({len(found)} seeds)", f"C{number}")
        if quantity == "loss":
            _lines(plane, next(iter(combinations.values()))[0][-1])
        by_step(plane)
        plane.set_ylabel(f"{quantity}{' (nats per answer)' if quantity != 'accuracy' else ''}")
        if quantity in ("excess", "kl") or quantity.startswith("kl."):
            plane.set_yscale("log")
        plane.set_title(str(records[0].flat.get("sandbox", "")) + ", " + str(records[0].flat.get("model", "")))
        plane.legend(fontsize=8)
        return figure

    saved(make, out)


def _filled(found: Sequence[Sequence[dict[str, Any]]], quantity: str) -> tuple[list[float], Any]:
    """The steps of the longest curve, and values [member, step]; a curve that ended keeps its last value."""
    steps = [point["step"] for point in max(found, key=len)]
    values = np.full((len(found), len(steps)), np.nan)
    for row, curve in zip(values, found, strict=True):
        row[: len(curve)] = [point[quantity] for point in curve]
        row[len(curve) :] = curve[-1][quantity]
    return steps, values


def _lines(plane: Any, point: dict[str, Any]) -> None:
    """The losses of the optimal and the other known predictors; names that would overlap share a line."""
    low, high = plane.get_ylim()
    known = {"optimal" if name == "floor" else name.removeprefix("floor."): value for name, value in point.items()}
    known = {name: value for name, value in known.items() if name == "optimal" or f"floor.{name}" in point}
    groups: list[tuple[float, list[str]]] = []
    for name, value in sorted(known.items(), key=lambda item: item[1]):
        plane.axhline(value, color="black", linestyle="-" if name == "optimal" else ":", linewidth=1)
        if groups and value - groups[-1][0] < (high - low) / 25:
            groups[-1] = value, [*groups[-1][1], name]
        else:
            groups.append((value, [name]))
    for value, names in groups:
        place = plane.get_yaxis_transform()
        plane.text(0.99, value, ", ".join(names), transform=place, fontsize=8, va="bottom", ha="right")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
