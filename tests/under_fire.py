"""A sweep on worker processes that are killed at random moments, and the same sweep in peace.

    python -m under_fire KILLS SEED FOLDER

prints JSON: how many workers were killed, how often the command was called, and whether both stores hold the same.
Workers are forks of this process, so that one more takes a moment, and their training is arithmetic (`Counting`); all
else is as in `vitrify sweep --on processes`: pipes, checkpoints, lost workers, the store.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from vitrify.errors import WorkersLost
from vitrify.learn import sweep
from vitrify.learn.experiment import in_words
from vitrify.learn.runs import Run
from vitrify.learn.store import RunStore
from vitrify.learn.sweep import Shard, train_on_workers
from vitrify.learn.trainer import TrainEvent
from vitrify.net.architecture import Output
from vitrify.net.transformer import Transformer
from vitrify.workers import Lost, WorkerTask, ready, serve
from waiting_shards import content

NET = Transformer(("<s>", "a"), Output("lm", ("a",)), max_length=1, d_model=1)
NET_WORDS = ("layers=1", "heads=1", "d_model=8", "length=8", "batch=4", "test_examples=16", "units=8")
WORDS = (*NET_WORDS, "lr=1e-3,1e-2", "p=0.2,0.3")
STEPS, STEP_SECONDS, WORKERS = 40, 0.004, 3
MAX_CALLS = 200


class Counting(Shard):
    """A shard whose training is arithmetic, with a checkpoint at every step."""

    def events(self) -> Iterator[TrainEvent]:
        seeds = np.array([member["seed"] + 1 for member in self.group.members])
        step, total = (self.latest.step, self.latest.arrays["total"]) if self.latest else (0, 0 * seeds)
        size = self.group.recipe.steps, len(seeds)
        while step < self.group.recipe.steps:
            time.sleep(STEP_SECONDS)
            step, total = step + 1, total * 3 % 1009 + seeds
            point = {"step": step, "total": total}
            yield TrainEvent(step, *size, rate=1.0, measured=point, point=point, checkpoint={"total": total})
        runs = []
        for identity, value in zip(self.group.identities(), total, strict=True):
            weights: Any = SimpleNamespace(arrays={"w": np.array([value])}, architecture=NET, about={})
            runs.append(Run(identity, [{"total": int(value), "broken": -1}], weights))
        yield TrainEvent(step, *size, runs=tuple(runs))


class Fork:
    """A worker that is a fork of this process."""

    def __init__(self) -> None:
        self.channel, theirs = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            ours = theirs.fileno()  # all else is closed, as in a new program: locks of the store are files
            os.closerange(3, ours)
            os.closerange(ours + 1, 1 << 12)
            serve(theirs)
            os._exit(0)
        theirs.close()
        self.name, self.ended = f"process {self.pid}", False

    def begin(self, task: WorkerTask) -> None:
        try:
            self.channel.send(task)
        except OSError:
            raise Lost("its pipe is closed") from None

    def events(self) -> list[Any]:
        events = []
        try:
            while self.channel.poll():
                event = self.channel.recv()
                if isinstance(event, Exception):
                    raise event
                events.append(event)
        except (EOFError, ConnectionError):
            if not events:
                raise Lost("it was killed") from None
        return events

    def stop(self) -> None:
        if not self.ended:
            self.ended = True
            self.channel.close()
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


class Forks:
    """A pool of forks; `kill` kills one of them."""

    device = "a fork"

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.workers, self.lock = rng, list[Fork](), threading.Lock()

    def size(self) -> int:
        return WORKERS

    def start(self) -> Fork:
        with self.lock:
            self.workers = [worker for worker in self.workers if not worker.ended]
            self.workers.append(Fork())
            return self.workers[-1]

    def kill(self) -> bool:
        with self.lock:
            alive = [worker for worker in self.workers if not worker.ended]
            if alive:
                os.kill(self.rng.choice(alive).pid, signal.SIGKILL)
            return bool(alive)

    def wait(self, workers: Sequence[Any], seconds: float) -> Sequence[Any]:
        return ready(workers, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.stop()


def trained(store: RunStore, kills: int, seed: int, steps: int = STEPS) -> tuple[int, int]:
    """Call the sweep until it is done, while workers are killed; return the kills and the calls."""
    sweep.Shard = Counting  # type: ignore[misc]
    rng = random.Random(seed)
    groups = in_words("markov", "transformer", [*WORDS, f"steps={steps}"], 3).groups()
    killed, over = 0, threading.Event()
    with Forks(rng) as pool:

        def fire() -> None:
            nonlocal killed
            while killed < kills and not over.wait(rng.uniform(0.0, 6 * STEP_SECONDS)):
                killed += pool.kill()

        gun = threading.Thread(target=fire)
        gun.start()
        for call in range(1, MAX_CALLS):
            try:
                train_on_workers(groups, store, pool, checkpoint_seconds=0.0)
            except WorkersLost:
                continue
            over.set()
            gun.join()
            return killed, call
    raise AssertionError("it is never done")


def main(kills: int, seed: int, folder: Path) -> int:
    """Train in peace and under fire, in sweeps until enough workers were killed; print the figures."""
    trained(RunStore(folder / "peace"), 0, seed)
    peace, killed, calls, sweeps, equal = content(RunStore(folder / "peace")), 0, 0, 0, True
    while killed < kills:
        store = RunStore(folder / f"fire-{sweeps}")
        more, called = trained(store, kills - killed, seed + sweeps)
        killed, calls, sweeps = killed + more, calls + called, sweeps + 1
        equal = equal and content(store) == peace
    figures = {
        "killed": killed,
        "calls": calls,
        "sweeps": sweeps,
        "equal": equal,
        "runs": len(RunStore(folder / "peace").runs()),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return int(not equal)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
