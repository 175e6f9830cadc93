"""Checks in processes of their own, two at a time: what they find is in the store when they say that they are done.

Each worker imports what the claims need once, and takes one claim after the other. A worker ends with the process that
started it, however that ends.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Literal, NamedTuple

from vitrify.claims.catalogue import Scale
from vitrify.registry import Headline
from vitrify.report.evidence import Store, recorded
from vitrify.report.figures import Drawings

WORKERS = 2
GRACE = 5.0  # seconds that a worker has to end
THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # two processes with two threads each are slower


@dataclass(frozen=True)
class Job:
    """A claim whose evidence is to be found by a check, unless it is recorded, and whose figure is to be drawn."""

    headline: Headline
    origin: Literal["live", "recorded"]
    scale: Scale
    store: Path
    evidence: Path | None = None

    def run(self) -> None:
        """Find the evidence and draw it; what is there already is left as it is."""
        headline, store, drawings = self.headline, Store(self.store), Drawings(self.store / "figures")
        data = store.find(headline, self.scale) if self.origin == "live" else recorded(headline, self.evidence)
        if data is None and self.origin == "live":
            data = store.check(headline, self.scale)
        if data and drawings.find(headline, data) is None:
            drawings.draw(headline, data)


class Done(NamedTuple):
    """A job that is over, and the error that ended it, if one did."""

    job: Job
    error: str | None


def run(jobs: Sequence[Job], workers: int = WORKERS) -> Iterator[Done]:
    """Run jobs, the first ones first, and say of each when it is over."""
    waiting = list(reversed(jobs))
    with _staff(min(workers, len(waiting))) as staff:
        busy: dict[Connection, Job] = {}
        for line in staff:
            busy[line] = waiting.pop()
            line.send(busy[line])
        while busy:
            ready = wait(list(busy))
            for line in [line for line in busy if line in ready]:
                job = busy.pop(line)
                try:
                    error = line.recv()
                except (EOFError, ConnectionError):
                    yield Done(job, "the process that checked it ended: there may not have been enough memory")
                    continue
                if waiting:
                    busy[line] = waiting.pop()
                    line.send(busy[line])
                yield Done(job, error)
    for job in waiting:  # no worker is left
        yield Done(job, "no process was left to check it")


@contextmanager
def _staff(count: int) -> Iterator[list[Connection]]:
    """Workers, each at the other end of a line."""
    context = get_context("spawn")
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update({name: os.environ.get(name, value) for name, value in THREADS.items()})
    started: list[tuple[SpawnProcess, Connection]] = []
    try:
        for _ in range(count):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(theirs,), daemon=True)
            worker.start()
            theirs.close()
            started.append((worker, ours))
        _restore(before.items())
        yield [line for _, line in started]
    finally:
        _restore(before.items())
        for worker, line in started:
            line.close()
            worker.terminate()
        for worker, _ in started:
            worker.join(GRACE)


def _restore(before: Iterable[tuple[str, str | None]]) -> None:
    for name, value in before:
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _work(line: Connection) -> None:
    """Do what comes along the line, until it is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while True:
            job = line.recv()
            try:
                job.run()
                line.send(None)
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                line.send(f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})")
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
