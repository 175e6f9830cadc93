"""Several processes on one store, and processes that are killed: every run is there once, and its log is whole."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vitrify.learn.store import Store

STEPS = 60

# A worker takes what it can get, in small groups, step by step, and ends when nothing is left to do.
WORKER = """
import sys, time
import numpy as np
from pathlib import Path
from vitrify.learn.store import Store
path, count, steps, size, pause = Path(sys.argv[1]), *map(int, sys.argv[2:5]), float(sys.argv[5])
store, computed = Store(path), 0
print("ready", flush=True)
for first in range(0, count, size):
    asked = [{"seed": seed} for seed in range(first, min(count, first + size))]
    with store.open_many(asked) as opened:
        for group in opened.groups:
            seeds = np.array([asked[number]["seed"] for number in group.numbers])
            found = group.latest()
            step, total = (0, seeds * 0) if found is None else (found.step, found.arrays["total"])
            while step < steps:
                total, step = total * 3 % 1009 + seeds, step + 1
                group.log({"step": step, "total": total})
                if step % 7 == 0:
                    group.save(step, {"total": total}, {})
                time.sleep(pause)
            group.finish_all({row: ({"total": int(total[row])}, None) for row in range(len(group))})
            computed += len(group)
print(computed)
"""


def worker(path: Path, count: int, size: int, pause: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WORKER, str(path), str(count), str(STEPS), str(size), str(pause)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def totals(seed: int) -> list[dict[str, int]]:
    """The log of an uninterrupted run, in plain Python."""
    lines, total = [], 0
    for step in range(1, STEPS + 1):
        total = total * 3 % 1009 + seed
        lines.append({"step": step, "total": total})
    return lines


def check(store: Store, count: int) -> None:
    records = store.runs()
    assert sorted(record.identity["seed"] for record in records) == list(range(count))
    for record in records:
        lines = totals(record.identity["seed"])
        assert record.state == "finished"
        assert record.values["total"] == lines[-1]["total"]
        assert store.curve(record) == lines
    assert not list((store.path / "groups").iterdir())


def test_processes_share_the_work_and_repeat_none(tmp_path: Path) -> None:
    """Groupings that overlap; a worker passes by what another one holds, and a last one finds all of it done."""
    store, count = Store(tmp_path / "runs"), 24
    workers = [worker(store.path, count, size, 0.001) for size in (4, 6, 24)]
    done = [process.communicate() for process in workers]
    assert all(process.returncode == 0 for process in workers), done
    assert sum(int(out.split()[1]) for out, _ in done) == count
    check(store, count)


def test_a_worker_killed_at_any_moment_is_gone_on_from(tmp_path: Path) -> None:
    """20 kills at random moments in one store; the last worker finishes what all of them began."""
    store, count, rng = Store(tmp_path / "runs"), 6, random.Random(0)
    ended: set[int] = set()  # at which steps, over all
    for trial in range(20):
        process = worker(store.path, count, (6, 4, 2)[trial % 3], 0.005)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.12))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        ended.add(sum(record.step or 0 for record in store.runs()))
        for record in store.runs():
            lines = store.curve(record)
            assert lines == totals(record.identity["seed"])[: len(lines)]
            assert record.state in ("new", "partial", "finished")
    assert len(ended) >= 8  # the kills were not all before or after the work
    last = worker(store.path, count, 6, 0)
    out, error = last.communicate()
    assert last.returncode == 0, error
    check(store, count)


@pytest.mark.parametrize("size", [1, 8])
def test_listing_while_others_write_reads_no_half_line(tmp_path: Path, size: int) -> None:
    store = Store(tmp_path / "runs")
    process = worker(store.path, 8, size, 0)
    looks = 0
    while process.poll() is None:
        if (store.path / "store.json").exists():
            for record in store.runs():
                lines = store.curve(record)
                assert lines == totals(record.identity["seed"])[: len(lines)]
            looks += 1
    out, error = process.communicate()
    assert (process.returncode, out) == (0, "ready\n8\n"), error
    assert looks
    check(store, 8)
