"""What the small files of a run store say: `group.json`, `run.json` and `result.json`, read as a stranger's.

Names in them lead to folders, so they must have the form that we give them. What does not fit is a `DamagedStore`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vitrify.encoding import JsonObject
from vitrify.errors import DamagedStore
from vitrify.learn import disk
from vitrify.learn.runs import run_id


def runs_of(folder: Path) -> tuple[str, ...]:
    """The runs of a group, in the order of its rows; none if there is no such group."""
    data = disk.read_json(folder / "group.json")
    with disk.undamaged(folder / "group.json"):
        runs = tuple(() if data is None else data["runs"])
        disk.must(all(isinstance(run, str) and disk.NAME.fullmatch(run) for run in runs), "its runs have other names")
        disk.must(data is None or runs, "it has no runs")
        return runs


def known_of(place: Path) -> JsonObject | None:
    """Return what run.json says in a run's folder; None if there is none."""
    known = disk.read_json(place / "run.json")
    if known is None:
        return None
    with disk.undamaged(place / "run.json"):
        identity, group, started = (known[key] for key in ("identity", "group", "started"))
        disk.must(isinstance(identity, dict) and run_id(identity) == place.name, "it holds another run than its name")
        disk.must(isinstance(group, str) and disk.NAME.fullmatch(group), "its group has another name")
        disk.must(isinstance(started, int | float) and np.isfinite(started), "the time of its start is no number")
    return known


def result_of(place: Path) -> JsonObject | None:
    """Return the result in a run's folder; None if it is not done. What does not fit its files is refused."""
    path = place / "result.json"
    result = disk.read_json(path)
    if result is None:
        return None
    with disk.undamaged(path):
        disk.must(all(disk.PLAIN.fullmatch(name) for name in result["files"]), "it names other files")
        sizes = {name: (place / name).stat().st_size if (place / name).exists() else None for name in result["files"]}
        lost = [name for name, size in result["files"].items() if sizes[name] != size]
        disk.must(not lost, f"{', '.join(lost)} of this run is not as long as it was")
        disk.must(result["state"] in ("finished", "failed"), "it neither finished nor failed")
        tables = (result["last"], result.get("summary", {}), result["files"], result.get("crc", {}))
        disk.must(all(isinstance(table, dict) for table in tables), "a table of it is none")
        numbers = (result["ended"], result.get("seconds", 0.0), 0 if result["step"] is None else result["step"])
        disk.must(all(isinstance(each, int | float) and np.isfinite(each) for each in numbers), "a number is none")
        texts = (result.get("message"), result.get("outside"))
        disk.must(all(text is None or isinstance(text, str) for text in texts), "its message is no text")
    return result


def intact_result(place: Path) -> JsonObject | None:
    """Return the result of a run that its group can compute again; None also if a power cut took a part of it."""
    try:
        return result_of(place)
    except DamagedStore:
        return None


def changed_files(place: Path) -> list[str]:
    """Return the files of a run that is done whose bytes are not those that were written."""
    crc = (result_of(place) or {}).get("crc", {})
    return [name for name, sum_ in crc.items() if disk.PLAIN.fullmatch(name) and disk.checksum(place / name) != sum_]
