"""Worker processes: they stream events, keep to their limits, and end with the process that started them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vitrify.errors import VitrifyError
from vitrify.workers import Lost, WorkerProcess, ready
from worker_tasks import Count

pytestmark = pytest.mark.long


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    worker = WorkerProcess("a test", memory=1 << 32)
    yield worker
    worker.stop()
    assert worker.process.returncode is not None


def heard(worker: WorkerProcess, count: int) -> list[Any]:
    """The next events of a worker."""
    events: list[Any] = []
    while len(events) < count:
        assert ready([worker], 60) == [worker]
        events += worker.events()
    return events


def test_events_come_in_order_and_mistakes_leave_the_worker_alive(worker: WorkerProcess) -> None:
    for _ in range(2):
        worker.begin(Count(3))
        assert heard(worker, 3) == [0, 1, 2]
    for then, kind, words in (
        ("mistake", VitrifyError, "^there is no such thing$"),
        ("fault", RuntimeError, "(?s)worker_tasks.*oh"),
        ("fill memory", RuntimeError, "MemoryError"),
    ):
        worker.begin(Count(0, then))
        with pytest.raises(kind, match=words):
            heard(worker, 1)
    worker.begin(Count(1))
    assert heard(worker, 1) == [0]


def test_a_lost_worker_says_how_it_ended_and_what_it_said_last(worker: WorkerProcess) -> None:
    worker.begin(Count(1, "abort"))
    with pytest.raises(Lost, match=r"ended by signal 6 \(SIGABRT\)(?s:.*)"):
        heard(worker, 2)
    with pytest.raises(Lost):
        worker.begin(Count(1))


def test_a_worker_is_stopped_in_the_middle_of_a_task(worker: WorkerProcess) -> None:
    worker.begin(Count(1, "sleep"))
    assert heard(worker, 1) == [0]
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < 30
    with pytest.raises(ProcessLookupError):
        os.kill(worker.process.pid, 0)


PARENT = """
import sys, time
from vitrify.workers import WorkerProcess, ready
from worker_tasks import Count
worker = WorkerProcess()
worker.begin(Count(1, "sleep"))
ready([worker])
print(worker.process.pid, flush=True)
time.sleep(600)
"""


def test_a_busy_worker_ends_with_the_process_that_started_it() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while _runs(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(worker)


def _runs(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
