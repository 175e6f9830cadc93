"""What the run store costs: a line of a log, an empty run, a checkpoint, the end of a large group, a listing.

    python benchmarks/store.py [--folder DIR] [--lines 100000] [--runs 512]

Prints medians, with the limit where there is one. `beside` is what the same bytes cost without the store: a JSON line
written by hand, a file forced to the disk. Exit code 1 if a limit is passed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.learn.store import RunStore


def identity(number: int, kind: str = "benchmark") -> dict[str, Any]:
    return {"sandbox": {"name": kind, "p": 0.2}, "model": {"name": "transformer", "d": 64}, "seed": number}


def seconds(action: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def forced(folder: Path) -> float:
    """One small file, forced to the disk."""

    def write() -> None:
        (folder / "beside").unlink(missing_ok=True)
        file = os.open(folder / "beside", os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(file, b"x" * 300)
        os.fsync(file)
        os.close(file)

    return statistics.median(seconds(write) for _ in range(20))


def a_line(store: RunStore, lines: int) -> tuple[float, float]:
    """Microseconds to log two scalars, and to write the same line to an open file."""
    with store.open(identity(0, "line")) as run:
        begin = time.perf_counter()
        for step in range(lines):
            run.log({"step": step, "loss": 0.6931471805599453})
        taken = time.perf_counter() - begin
    with tempfile.TemporaryFile("w", dir=store.path) as file:
        begin = time.perf_counter()
        for step in range(lines):
            file.write(json.dumps({"step": step, "loss": 0.6931471805599453}) + "\n")
        beside = time.perf_counter() - begin
    return taken / lines * 1e6, beside / lines * 1e6


def an_empty_run(store: RunStore, number: int) -> None:
    with store.open(identity(number, "empty")) as run:
        run.log({"step": 0, "loss": 1.0})
        run.finish({"loss": 1.0})


def main() -> int:
    """Measure, print, and say whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to make the store; by default, the system's place")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=512)
    arguments = parser.parse_args()
    rows: list[tuple[str, float, str, float | None, float | None]] = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        store, sync = RunStore(Path(folder) / "runs"), forced(Path(folder))
        an_empty_run(store, -1)
        line, beside = a_line(store, arguments.lines)
        rows.append(("log two scalars", line, "µs", 20, beside))
        empty = statistics.median(seconds(lambda n=n: an_empty_run(store, n)) for n in range(30))  # type: ignore[misc]
        rows.append(("an empty run", empty * 1e3, "ms", 20, sync * 1e3))
        found = statistics.median(seconds(lambda: store.open(identity(0, "empty"))) for _ in range(30))
        rows.append(("find a finished run", found * 1e3, "ms", None, None))
        many = [identity(number, "many") for number in range(arguments.runs)]
        begin = time.perf_counter()
        (group,) = store.open_many(many).groups
        rows.append((f"open {arguments.runs} runs", (time.perf_counter() - begin) * 1e3, "ms", None, None))
        values = np.random.default_rng(0).random(arguments.runs)
        logged = statistics.median(seconds(lambda s=s: group.log({"step": s, "loss": values})) for s in range(200))  # type: ignore[misc]
        rows.append(("log a scalar of each", logged * 1e6, "µs", None, None))
        arrays = {"w": np.zeros((arguments.runs, 10_000), np.float32)}
        size = arrays["w"].nbytes / 1e6
        group.save(0, arrays, {})
        saved = statistics.median(seconds(lambda s=s: group.save(s, arrays, {})) for s in range(1, 6))  # type: ignore[misc]
        rows.append((f"checkpoint of {size:.0f} MB", saved * 1e3, "ms", None, sync * 1e3))
        done = {row: ({"loss": 1.0}, {"w": arrays["w"][row]}) for row in range(arguments.runs)}
        rows.append((f"finish {arguments.runs} runs", seconds(lambda: group.finish_all(done)) * 1e3, "ms", None, None))
        time.sleep(2.1)
        rows.append(("list them, reading all", seconds(store.runs) * 1e3, "ms", None, None))
        rows.append(("list them, indexed", seconds(store.runs) * 1e3, "ms", None, None))
    print(f"{'':28} {'measured':>12} {'limit':>8} {'beside':>12}")
    for name, value, unit, limit, beside_it in rows:
        least = f"{limit:g}" if limit else ""
        other = f"{beside_it:.2f} {unit}" if beside_it else ""
        print(f"{name:28} {value:>9.2f} {unit} {least:>8} {other:>12}")
    late = [name for name, value, _, limit, _ in rows if limit and value > limit]
    print("limits hold" if not late else f"beyond the limit: {', '.join(late)}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
