"""Several processes on one store, and processes that are killed: every run is there once, and its log is whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vitrify.learn.store import RunStore

STEPS = 60

# A worker takes what it can get, in groups of a size, step by step, and says how many runs it has computed.
WORKER = """
import os, random, signal, sys, time
import numpy as np
from pathlib import Path
from vitrify.learn.store import RunStore

def work(path, count, steps, size, pause):
    store, computed = RunStore(path), 0
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
    return computed

path, count, steps, size, kills = Path(sys.argv[1]), *map(int, sys.argv[2:6])
rng = random.Random(0)
FILES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")

def die_at(left):
    \"\"\"End at some operation on files; in the middle of it, if it is one that writes.\"\"\"
    def count(name, _):
        nonlocal left
        left -= name in FILES
        if left == 0 and name in FILES:
            os.kill(os.getpid(), signal.SIGKILL)
    def write(file, data):
        nonlocal left
        left -= 1
        if left <= 0:
            plain(file, bytes(data[: len(data) // 2]))
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(file, data)
    plain, os.write = os.write, write
    sys.addaudithook(count)

for kill in range(kills):
    moment, delay = rng.randint(1, 200), rng.uniform(0, 0.1)
    child = os.fork()
    if not child:
        if kill % 4:
            die_at(moment)
        work(path, count, steps, (size, 4, 2)[kill % 3], 0.002)
        os._exit(0)
    if kill % 4 == 0:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    print(os.WIFSIGNALED(os.waitpid(child, 0)[1]), end="|")
    records = RunStore(path).runs() if (path / "store.json").exists() else []
    print(*(f"{record.identity['seed']}:{record.state}:{RunStore(path).curve(record)}" for record in records), sep="|")
print(work(path, count, steps, size, 0 if kills else 0.001))
"""


def worker(path: Path, count: int, size: int, kills: int = 0) -> subprocess.Popen[str]:
    """A process that works, after as many others as `kills` were killed at random moments while they did."""
    words = [sys.executable, "-c", WORKER, str(path), str(count), str(STEPS), str(size), str(kills)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def totals(seed: int) -> list[dict[str, int]]:
    """The log of an uninterrupted run, in plain Python."""
    lines, total = [], 0
    for step in range(1, STEPS + 1):
        total = total * 3 % 1009 + seed
        lines.append({"step": step, "total": total})
    return lines


def check(store: RunStore, count: int) -> None:
    records = store.runs()
    assert sorted(record.identity["seed"] for record in records) == list(range(count))
    for record in records:
        lines = totals(record.identity["seed"])
        assert record.state == "finished"
        assert record.values["total"] == lines[-1]["total"]
        assert store.curve(record) == lines
    assert not list((store.path / "groups").iterdir())


@pytest.mark.long
def test_processes_share_the_work_and_repeat_none(tmp_path: Path) -> None:
    """Groupings that overlap; a worker passes by what another one holds, and a last one finds all of it done."""
    store, count = RunStore(tmp_path / "runs"), 24
    workers = [worker(store.path, count, size) for size in (4, 6, 24)]
    done = [process.communicate() for process in workers]
    assert all(process.returncode == 0 for process in workers), done
    assert sum(int(out) for out, _ in done) == count
    check(store, count)


@pytest.mark.long
@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_a_worker_killed_at_any_moment_is_gone_on_from(tmp_path: Path, kills: int) -> None:
    """Kills at random operations or moments in one store; the last worker finishes what all of them began."""
    store, count = RunStore(tmp_path / "runs"), 12
    process = worker(store.path, count, 12, kills=kills)
    out, error = process.communicate()
    assert process.returncode == 0, error
    *trials, _ = out.splitlines()
    assert len(trials) == kills
    for trial in trials:
        for seed, state, lines in (run.split(":", 2) for run in trial.split("|")[1:] if run):
            assert state in ("new", "partial", "finished")
            assert str(totals(int(seed))).startswith(lines.removesuffix("]"))
    assert sum(trial.startswith("True") for trial in trials) >= 12  # the others had ended before
    assert len(set(trials)) >= 6
    check(store, count)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 8])
def test_listing_while_others_write_reads_no_half_line(tmp_path: Path, size: int) -> None:
    store = RunStore(tmp_path / "runs")
    process = worker(store.path, 8, size)
    looks = 0
    while process.poll() is None:
        if (store.path / "store.json").exists():
            for record in store.runs():
                lines = store.curve(record)
                assert lines == totals(record.identity["seed"])[: len(lines)]
            looks += 1
    out, error = process.communicate()
    assert (process.returncode, out) == (0, "8\n"), error
    assert looks
    check(store, 8)
