"""Figures of runs: curves with the floor and the known predictors as lines, and seeds as bands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.errors import InputError
from vitrify.learn.records import Record
from vitrify.learn.records import axes as varied
from vitrify.learn.store import Store

MOST = 10  # combinations with a colour of their own
KINDS = (".svg", ".png", ".pdf")


def curves(store: Store, records: Sequence[Record], quantity: str, out: Path) -> None:
    """Draw a quantity of runs against steps: a line for each combination of axes, seeds as a band around it."""
    if out.suffix not in KINDS:
        raise InputError(f"a figure is {', '.join(KINDS)}, not {out.name!r}")
    if not records:
        raise InputError("no run to draw: train something, or ask for less")
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib: install vitrify[report]") from None
    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    axes = [axis for axis in varied(records) if axis not in ("seed", "data_seed")]
    combinations: dict[tuple[Any, ...], list[list[dict[str, Any]]]] = {}
    for record, curve in store.curves(records):
        if curve and quantity in curve[0]:
            combinations.setdefault(tuple(record.flat.get(axis) for axis in axes), []).append(curve)
    if not combinations:
        known = sorted({name for _, curve in store.curves(records[:1]) for name in (curve[0] if curve else {})})
        raise InputError(f"no run has {quantity!r}; there are {', '.join(known)}")
    with plt.rc_context({"svg.hashsalt": "vitrify", "font.size": 10}):
        figure, plane = plt.subplots(figsize=(7, 4.2), layout="constrained")
        for number, (combination, found) in enumerate(list(combinations.items())[:MOST]):
            label = ", ".join(f"{axis}={_short(v)}" for axis, v in zip(axes, combination, strict=True)) or "members"
            _band(plane, found, quantity, f"{label} ({len(found)} seeds)", f"C{number}")
        if quantity == "loss":
            _lines(plane, next(iter(combinations.values()))[0][-1])
        plane.set_xscale("symlog", linthresh=1)
        plane.set_xlim(left=0)
        plane.set_xlabel("training step")
        plane.set_ylabel(f"{quantity}{' (nats per answer)' if quantity != 'accuracy' else ''}")
        if quantity in ("excess", "kl") or quantity.startswith("kl."):
            plane.set_yscale("log")
        plane.set_title(str(records[0].flat.get("sandbox", "")) + ", " + str(records[0].flat.get("model", "")))
        plane.legend(fontsize=8)
        metadata: dict[str, Any] = {"Date": None} if out.suffix == ".svg" else {}
        figure.savefig(out, metadata=metadata, dpi=150)
        plt.close(figure)


def _band(plane: Any, found: Sequence[Sequence[dict[str, Any]]], quantity: str, label: str, colour: str) -> None:
    """The mean over seeds, and between the 10th and the 90th percentile a band."""
    steps = [point["step"] for point in max(found, key=len)]
    values = np.full((len(found), len(steps)), np.nan)
    for row, curve in zip(values, found, strict=True):
        row[: len(curve)] = [point[quantity] for point in curve]
        row[len(curve) :] = curve[-1][quantity]
    low, high = np.nanpercentile(values, [10, 90], axis=0)
    plane.plot(steps, np.nanmean(values, axis=0), color=colour, label=label)
    plane.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)


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
