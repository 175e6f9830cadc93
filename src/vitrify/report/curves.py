"""Curves of runs as plain data that a page draws: sweeps, and in a sweep a line with a band for every combination."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vitrify.errors import InputError, StoreError
from vitrify.learn.follow import Follower
from vitrify.learn.records import Record, rows
from vitrify.learn.records import axes as varied

LINES = 10  # combinations that are drawn, those with the most runs under way first
MEMBERS = 256  # runs of a combination whose logs are read
ROWS = 200  # of the table of runs
QUANTITIES = ("loss", "excess", "kl", "accuracy")
SEEDS = ("seed", "data_seed")
SAME = 1e-6  # nats: floors that are nearer are drawn as one


def look(follower: Follower, query: str = "", sweep: str = "", quantity: str = "loss") -> dict[str, Any]:
    """All sweeps of a store, and the curves of one: the named, else one that is under way, else the latest."""
    if quantity not in QUANTITIES:
        raise InputError(f"what is drawn is {', '.join(QUANTITIES)}, not {quantity!r}")
    try:
        records = follower.records(query)
    except StoreError as error:  # it may be made later
        return {"said": str(error), "sweeps": [], "chosen": None}
    sweeps = _sweeps(records)
    listed = [_sweep(name, own) for name, own in sweeps.items()]
    if not sweeps:
        said = "no run yet: train something with this store" if not query else "no run is like that"
        return {"said": said, "sweeps": [], "chosen": None}
    running = [one["name"] for one in listed if one["states"].get("running")]
    name = sweep if sweep in sweeps else (running or [one["name"] for one in listed])[-1]
    return {"said": "", "sweeps": listed, "chosen": _chosen(follower, name, sweeps[name], quantity)}


def _sweeps(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Runs of one model on one sandbox belong together."""
    found: dict[str, list[Record]] = {}
    for record in records:
        name = f"{record.flat.get('model', 'model')} on {record.flat.get('sandbox', 'sandbox')}"
        found.setdefault(name, []).append(record)
    return found


def _sweep(name: str, records: Sequence[Record]) -> dict[str, Any]:
    states: dict[str, int] = {}
    for record in records:
        states[record.state] = states.get(record.state, 0) + 1
    steps = [record.step for record in records if record.step is not None]
    return {"name": name, "runs": len(records), "states": states, "step": max(steps, default=None)}


def _chosen(follower: Follower, name: str, records: Sequence[Record], quantity: str) -> dict[str, Any]:
    axes = [axis for axis in varied(records) if axis not in SEEDS]
    combinations: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        combinations.setdefault(tuple(_short(record.flat.get(axis)) for axis in axes), []).append(record)
    order = sorted(combinations, key=lambda key: -sum(not record.done for record in combinations[key]))
    lines = []
    for key in order[:LINES]:
        label = ", ".join(f"{axis.rsplit('.', 1)[-1]} = {value}" for axis, value in zip(axes, key, strict=True))
        lines.append(_line(follower, label or "all members", combinations[key], quantity))
    columns, table = rows(records[:ROWS])
    return {
        "name": name,
        "quantity": quantity,
        "lines": lines,
        "levels": _levels(lines) if quantity == "loss" else [],
        "left out": max(len(combinations) - LINES, 0),
        "columns": columns,
        "rows": [[_plain(value) for value in row] for row in table],
        "more rows": max(len(records) - ROWS, 0),
    }


def _line(follower: Follower, label: str, records: Sequence[Record], quantity: str) -> dict[str, Any]:
    """The mean over members, and the band between their 10th and their 90th percentile."""
    read = records[:MEMBERS]
    found = zip(follower.curves(read), read, strict=True)
    curves = [(curve, record.done) for curve, record in found if curve and quantity in curve[0]]
    steps, values = _filled(curves, quantity)
    columns = [column[np.isfinite(column)] for column in values.T]
    spread = [_spread(column) for column in columns]
    last = [curve[-1] for curve, _ in curves]
    floors = {key for point in last for key in point if key == "floor" or key.startswith("floor.")}
    return {
        "label": label,
        "members": len(records),
        "running": sum(record.state == "running" for record in records),
        "failed": sum(record.state == "failed" for record in records),
        "steps": steps,
        "mean": [mean for mean, _, _ in spread],
        "low": [low for _, low, _ in spread],
        "high": [high for _, _, high in spread],
        "floors": {key: float(np.mean([point[key] for point in last if key in point])) for key in sorted(floors)},
    }


def _spread(values: Any) -> tuple[float | None, float | None, float | None]:
    if not len(values):
        return None, None, None
    low, high = np.percentile(values, [10, 90])
    return float(np.mean(values)), float(low), float(high)


def _filled(curves: Sequence[tuple[Sequence[Mapping[str, Any]], bool]], quantity: str) -> tuple[list[int], Any]:
    """All steps, and values [member, step]: one that ended keeps its last, of one under way the rest is not known."""
    steps = sorted({int(point["step"]) for curve, _ in curves for point in curve})
    place = {step: at for at, step in enumerate(steps)}
    values = np.full((len(curves), len(steps)), np.nan)
    for row, (curve, done) in zip(values, curves, strict=True):
        for point in curve:
            row[place[int(point["step"])]] = point.get(quantity, math.nan)
        if done:
            end = place[int(curve[-1]["step"])]
            row[end:] = row[end]
    return steps, values


def _levels(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The optimal loss of every line, one for all where they agree; of other known predictors those of all lines."""
    found: list[dict[str, Any]] = []
    names = dict.fromkeys(key for line in lines for key in line["floors"])
    for name in sorted(names, key=lambda key: (key != "floor", key)):
        values = [line["floors"][name] for line in lines if name in line["floors"]]
        told = "optimal loss" if name == "floor" else name.removeprefix("floor.")
        if max(values) - min(values) <= SAME:
            found.append({"name": told, "value": float(np.mean(values)), "line": None})
        elif name == "floor":
            for number, line in enumerate(lines):
                if name in line["floors"]:
                    found.append(
                        {"name": f"optimal loss ({line['label']})", "value": line["floors"][name], "line": number}
                    )
    return found


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
