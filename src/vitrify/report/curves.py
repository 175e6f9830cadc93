"""Curves of runs as plain data that a page draws: sweeps, and in a sweep a line with a band for every combination."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from vitrify.arrays import Floats
from vitrify.encoding import JsonMapping, JsonObject
from vitrify.errors import InputError, StoreError
from vitrify.learn.figures import aligned
from vitrify.learn.follow import Follower
from vitrify.learn.records import Record, combinations, rows

T = TypeVar("T")
LINES = 10  # combinations that are drawn, those with the most runs under way first
MEMBERS = 256  # runs of a combination whose logs are read
ROWS = 200  # of the table of runs
QUANTITIES = ("loss", "excess", "kl", "accuracy")
SAME = 1e-6  # nats: floors that are nearer are drawn as one


def look(follower: Follower, query: str = "", sweep: str = "", quantity: str = "loss") -> JsonObject:
    """All sweeps of a store, and the curves of one: the named, else one that is under way, else the latest."""
    if quantity not in QUANTITIES:
        raise InputError(f"what is drawn is {', '.join(QUANTITIES)}, not {quantity!r}")
    try:
        records = follower.store.runs(query)
    except StoreError as error:  # it may be made later
        return {"message": str(error), "sweeps": [], "chosen": None}
    sweeps = _sweeps(records)
    listed = [_sweep(name, own) for name, own in sweeps.items()]
    if not sweeps:
        message = "no run yet: train something with this store" if not query else "no run is like that"
        return {"message": message, "sweeps": [], "chosen": None}
    running = [one["name"] for one in listed if one["states"].get("running")]
    name = sweep if sweep in sweeps else (running or [one["name"] for one in listed])[-1]
    return {"message": "", "sweeps": listed, "chosen": _chosen(follower, name, sweeps[name], quantity)}


def _sweeps(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Runs of one model on one sandbox belong together."""
    sweeps: dict[str, list[Record]] = {}
    for record in records:
        name = f"{record.flat.get('model', 'model')} on {record.flat.get('sandbox', 'sandbox')}"
        sweeps.setdefault(name, []).append(record)
    return sweeps


def _sweep(name: str, records: Sequence[Record]) -> JsonObject:
    states = dict(Counter(record.state for record in records))
    steps = [record.step for record in records if record.step is not None]
    return {"name": name, "runs": len(records), "states": states, "step": max(steps, default=None)}


def _chosen(follower: Follower, name: str, records: Sequence[Record], quantity: str) -> JsonObject:
    axes, groups = combinations(records)
    order = sorted(groups, key=lambda key: -sum(not record.done for record in groups[key]))
    lines = []
    for key in order[:LINES]:
        label = ", ".join(f"{axis.rsplit('.', 1)[-1]} = {value}" for axis, value in zip(axes, key, strict=True))
        lines.append(_line(follower, label or "all members", groups[key], quantity))
    columns, table = rows(records[:ROWS])
    return {
        "name": name,
        "quantity": quantity,
        "lines": lines,
        "levels": _levels(lines) if quantity == "loss" else [],
        "left out": max(len(groups) - LINES, 0),
        "columns": columns,
        "rows": [[_plain(value) for value in row] for row in table],
        "more rows": max(len(records) - ROWS, 0),
    }


def _line(follower: Follower, label: str, records: Sequence[Record], quantity: str) -> JsonObject:
    """The mean over members, and the band between their 10th and their 90th percentile."""
    read = records[:MEMBERS]
    pairs = zip(follower.curves(read), read, strict=True)
    curves = [(curve, record.done) for curve, record in pairs if curve and quantity in curve[0]]
    steps, values = aligned(curves, quantity)
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


def _spread(values: Floats) -> tuple[float | None, float | None, float | None]:
    if not len(values):
        return None, None, None
    low, high = np.percentile(values, [10, 90])
    return float(np.mean(values)), float(low), float(high)


def _levels(lines: Sequence[JsonMapping]) -> list[JsonObject]:
    """The optimal loss of every line, one for all where they agree; of other known predictors those of all lines."""
    levels: list[JsonObject] = []
    names = dict.fromkeys(key for line in lines for key in line["floors"])
    for name in sorted(names, key=lambda key: (key != "floor", key)):
        values = [line["floors"][name] for line in lines if name in line["floors"]]
        title = "optimal loss" if name == "floor" else name.removeprefix("floor.")
        if max(values) - min(values) <= SAME:
            levels.append({"name": title, "value": float(np.mean(values)), "line": None})
        elif name == "floor":
            for number, line in enumerate(lines):
                if name in line["floors"]:
                    levels.append(
                        {"name": f"optimal loss ({line['label']})", "value": line["floors"][name], "line": number}
                    )
    return levels


def _plain(value: T) -> T | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
