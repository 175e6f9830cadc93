"""Measure claims of docs/queue.md side by side on one machine, within a limit of time.

    python tools/gpu_queue.py OUT JOBS [--slots N] [--seconds S]

JOBS is a file with one job in a line: the name of a claim, or the name, a colon and some of its trials, separated by
semicolons. An empty line begins the next list. Each list is worked off by processes of its own. Every job
is a process that writes OUT/<number>/NAME.vK.npz and its output to OUT/<number>.log, so a job that fails or runs out of
time loses nothing else. `python tools/gpu_queue.py OUT --merge FOLDER` puts the parts of each claim together, for
`vitrify check NAME --scale large --from FOLDER --record docs/evidence`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from vitrify.claims.protocol.measurements import Measurements, load


def work(jobs: list[tuple[int, str]], out: Path, until: float, lock: threading.Lock) -> None:
    """Take jobs from a list until it is empty or the time is over."""
    while True:
        with lock:
            if not jobs or time.time() > until:
                return
            number, job = jobs.pop(0)
        name, _, trials = job.partition(":")
        words = ["vitrify", "check", name, "--scale", "large", "--measurements", str(out / str(number))]
        words += [word for trial in trials.split(";") if trial for word in ("--trial", trial.strip())]
        began = time.time()
        with (out / f"{number}.log").open("w") as log:
            run = subprocess.Popen([sys.executable, "-m", *words], stdout=log, stderr=subprocess.STDOUT)
            try:
                state = f"exit {run.wait(max(1.0, until - time.time()))}"
            except subprocess.TimeoutExpired:
                run.kill()
                state = "out of time"
        with lock, (out / "done.txt").open("a") as done:
            done.write(f"{number}\t{job}\t{state}\t{time.time() - began:.0f} s\n")


def merge(out: Path, folder: Path) -> None:
    """Write one file for each claim with the arrays and the parts of all its jobs."""
    for name in sorted({path.name for path in out.glob("*/*.npz")}):
        merged = Measurements()
        for path in sorted(out.glob(f"*/{name}"), key=lambda path: int(path.parent.name)):
            part = load(path)
            merged = Measurements(merged.adding(part.subjects).subjects, (*merged.parts, *part.parts))
        merged.save(folder / name)
        print(folder / name, f"{len(merged.parts)} parts")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure claims side by side within a limit of time.")
    parser.add_argument("out", type=Path)
    parser.add_argument("jobs", type=Path, nargs="?")
    parser.add_argument("--slots", type=int, default=1, help="processes at once for each list")
    parser.add_argument("--seconds", type=float, default=1500)
    parser.add_argument("--merge", type=Path)
    given = parser.parse_args()
    if given.merge:
        merge(given.out, given.merge)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    lists = [block.split("\n") for block in given.jobs.read_text().strip().split("\n\n")]
    lock, until, number, threads = threading.Lock(), time.time() + given.seconds, 0, []
    for block in lists:
        jobs = [(number + at, job.strip()) for at, job in enumerate(block) if job.strip()]
        number += len(block)
        threads += [threading.Thread(target=work, args=(jobs, given.out, until, lock)) for _ in range(given.slots)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
