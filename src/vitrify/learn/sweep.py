"""A sweep whose shards are trained by workers elsewhere: who they are is a pool's affair, what is kept is the store's.

Only this process writes to the store. A worker is given a shard and sends events (`trainer.py`); it needs no
disk in common with us. A worker that is lost costs what it did since its last checkpoint: its runs are let go and
opened again, as if this process had been killed and called again, and another worker goes on. Nobody listens to a
worker that was given up, so nothing is on record twice.

How groups are cut: no shard is more work than one worker's fair share of the sweep. So there are fewer shards than
groups and workers together, and as many compilations; and the largest begin first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Protocol, Self

from vitrify.arrays import Arrays
from vitrify.errors import WorkersLost
from vitrify.learn.compiler import remember_programs
from vitrify.learn.cost import memory, operations
from vitrify.learn.groups import Checkpoint, RunGroup
from vitrify.learn.plan import MemberGroup
from vitrify.learn.program import TrainingProgram
from vitrify.learn.records import Record
from vitrify.learn.runs import run_id
from vitrify.learn.store import RunStore
from vitrify.learn.trainer import CHECKPOINT_SECONDS, Trainer, TrainEvent
from vitrify.workers import Lost, Worker

PAUSE = 1.0  # seconds to wait for news before looking around
TRIES = 3  # workers that may be lost one after the other over a shard without a step of progress


@dataclass(frozen=True, eq=False)
class Shard:
    """A worker's task: members of one shape and their checkpoint; `threads` of them step at a time."""

    group: MemberGroup
    latest: Checkpoint | None = None
    lines: Sequence[Arrays] = ()
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    threads: int = 1

    def run(self, send: Callable[[TrainEvent], None]) -> None:
        """Train to the end, and send all events."""
        for event in self.events():
            send(event)

    def events(self) -> Iterator[TrainEvent]:
        """Train to the end; compiled programs are saved where other workers of this machine find them."""
        if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
            remember_programs()
        program = TrainingProgram(self.group, threads=self.threads)
        yield from Trainer.resume(program, self.latest, self.lines).events(self.checkpoint_seconds)


class WorkerPool(Protocol):
    """Where the workers of a sweep come from."""

    @property
    def device(self) -> str:
        """The device of each worker, in words."""

    def size(self) -> int:
        """Return the number of workers that can run now."""

    def start(self) -> Worker:
        """Start one more worker."""

    def wait(self, workers: Sequence[Worker], seconds: float) -> Sequence[Worker]:
        """Return the workers that have sent something or are lost, waiting at most `seconds`."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


@dataclass(frozen=True, eq=False)
class Piece:
    """Members that are to be trained together, and how often their worker was lost at the step they are at."""

    group: MemberGroup
    number: int
    retry: bool = False
    losses: int = 0
    step: int | None = None

    @property
    def steps(self) -> int:
        """Steps of all members together."""
        return self.group.recipe.steps * len(self.group.members)


@dataclass(eq=False)
class ShardTask:
    """A piece that a worker has, and its last event."""

    piece: Piece
    held: RunGroup
    worker: Worker
    began: float = field(default_factory=time.monotonic)
    event: TrainEvent | None = None


@dataclass(frozen=True)
class Report:
    """Progress of a sweep: shards running and in total, member-steps, and the latest event."""

    tasks: Sequence[ShardTask]
    done: int
    total: int
    steps_done: int
    steps: int
    event: str | None = None

    @property
    def rate(self) -> float:
        """Member-steps per second, of all workers together."""
        return sum(task.event.rate for task in self.tasks if task.event)

    @property
    def left(self) -> float:
        """Seconds, by the rate at this moment."""
        return (self.steps - self.steps_done) / self.rate if self.rate else float("nan")


def train_on_workers(
    groups: Sequence[MemberGroup],
    store: RunStore,
    pool: WorkerPool,
    *,
    callback: Callable[[Report], None] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    retry: bool = False,
) -> list[Record]:
    """`train_groups` by the workers of a pool: the records of all runs of some groups, in order."""
    pieces = cut(to_do(groups, store, retry), pool.size())
    sweep = _Sweep(store, pool, callback or (lambda _report: None), checkpoint_seconds)
    sweep.run([Piece(group, number, retry) for number, group in enumerate(pieces, 1)])
    known = {record.id: record for record in store.runs()}
    return [known[run_id(identity)] for group in groups for identity in group.identities()]


def to_do(groups: Sequence[MemberGroup], store: RunStore, retry: bool) -> list[MemberGroup]:
    """Return the groups without the runs that a store holds already."""
    states = {record.id: record.state for record in store.runs()} if store.path.exists() else {}
    skipped = {"finished"} if retry else {"finished", "failed"}
    remaining = []
    for group in groups:
        members = zip(group.members, group.identities(), strict=True)
        left = tuple(member for member, identity in members if states.get(run_id(identity)) not in skipped)
        if left:
            remaining.append(replace(group, members=left))
    return remaining


def cut(groups: Sequence[MemberGroup], workers: int) -> list[MemberGroup]:
    """Groups in pieces of at most one worker's share of the work, the most work first."""
    costs = [operations(group) for group in groups]
    share = sum(cost * len(group.members) for cost, group in zip(costs, groups, strict=True)) / max(workers, 1)
    pieces: list[tuple[float, MemberGroup]] = []
    for cost, group in zip(costs, groups, strict=True):
        count = len(group.members)
        parts = ceil(cost * count / share - 1e-6) if share else 1
        parts = max(1, min(parts, count))
        for part in range(parts):
            members = group.members[part * count // parts : (part + 1) * count // parts]
            pieces.append((cost * len(members), replace(group, members=members)))
    return [group for _, group in sorted(pieces, key=lambda pair: -pair[0])]


class _Sweep:
    """Pieces that wait, tasks under way, and workers without one."""

    def __init__(
        self, store: RunStore, pool: WorkerPool, callback: Callable[[Report], None], checkpoint_seconds: float
    ) -> None:
        self.store, self.pool, self.callback, self.checkpoint_seconds = store, pool, callback, checkpoint_seconds
        self.ready: list[tuple[Piece, RunGroup]] = []  # opened, and not given to anybody yet
        self.tasks: dict[Worker, ShardTask] = {}
        self.idle: list[Worker] = []
        self.waiting: list[Piece] = []
        self.problems: list[str] = []
        self.done = self.steps_done = 0

    def run(self, waiting: list[Piece]) -> None:
        """Work until nothing is left; whatever happens, no run stays with us."""
        self.waiting = waiting
        try:
            while self.waiting or self.ready or self.tasks:
                self._assign()
                for worker in self.pool.wait(list(self.tasks), PAUSE):
                    self._hear(worker)
                self._tell()
        finally:
            for held in [held for _, held in self.ready] + [task.held for task in self.tasks.values()]:
                held.close()
        if self.problems:
            raise WorkersLost("\n".join(self.problems))

    def _assign(self) -> None:
        """Give shards to workers, as long as there are both."""
        while len(self.tasks) < self.pool.size() and (self.ready or self._open()):
            piece, held = self.ready.pop(0)
            worker = self.idle.pop() if self.idle else self.pool.start()
            self.tasks[worker] = ShardTask(piece, held, worker)
            try:
                worker.begin(Shard(piece.group, held.latest(), held.lines(), self.checkpoint_seconds))
            except Lost as lost:
                self._lose(worker, lost)
        while self.idle and not (self.ready or self.waiting):
            self.idle.pop().stop()  # a worker with a shard may be waiting for its device

    def _open(self) -> bool:
        """Take the runs of waiting pieces from the store until there is something to do."""
        while self.waiting and not self.ready:
            piece = self.waiting.pop(0)
            for held in self.store.open_many(piece.group.identities(), retry=piece.retry).groups:
                members = tuple(piece.group.members[number] for number in held.numbers)
                self.ready.append((replace(piece, group=replace(piece.group, members=members), retry=False), held))
        return bool(self.ready)

    def _hear(self, worker: Worker) -> None:
        task = self.tasks[worker]
        try:
            events = worker.events()
        except Lost as lost:
            self._lose(worker, lost)
            return
        for event in events:
            task.held.record(event)
            task.event = event
            if event.runs:
                self._finish(task, event)

    def _finish(self, task: ShardTask, event: TrainEvent) -> None:
        del self.tasks[task.worker]
        self.idle.append(task.worker)
        self.done += 1
        self.steps_done += task.piece.steps
        wall, members = time.monotonic() - task.began, len(task.piece.group.members)
        self._tell(
            f"shard {task.piece.number} done by {task.worker.name}: {members} member{'s' * (members != 1)} in "
            f"{wall:.1f} s, {event.seconds - event.compile_seconds:.1f} training, "
            f"{event.compile_seconds:.1f} compiling, {max(wall - event.seconds, 0.0):.1f} overhead"
        )

    def _lose(self, worker: Worker, lost: Lost) -> None:
        """Let the runs of a worker go, and put them in front of those that wait."""
        task = self.tasks.pop(worker)
        piece, step = task.piece, task.held.step
        task.held.close()
        worker.stop()
        losses = piece.losses + 1 if step == piece.step else 1
        if losses < TRIES:
            self.waiting.insert(0, replace(piece, losses=losses, step=step))
            self._tell(
                f"shard {piece.number} goes on from step {step or 0:,} elsewhere: {worker.name} was lost ({lost})"
            )
            return
        self.problems.append(
            f"shard {piece.number} ({len(piece.group.members)} members of {piece.group.family.name} on "
            f"{piece.group.sandbox.name}) has lost {TRIES} workers at step {step or 0:,}, the last time: {lost}; "
            f"give it more memory or smaller batches: the same command goes on from there"
        )
        self._tell(self.problems[-1])

    def _tell(self, event: str | None = None) -> None:
        tasks = list(self.tasks.values())
        left = [*self.waiting, *(piece for piece, _ in self.ready), *(task.piece for task in tasks)]
        on_the_way = sum(task.event.step * len(task.piece.group.members) for task in tasks if task.event)
        steps = self.steps_done + sum(piece.steps for piece in left)
        self.callback(Report(tasks, self.done, self.done + len(left), self.steps_done + on_the_way, steps, event))


def shards_in_words(groups: Sequence[MemberGroup], pool: WorkerPool | None) -> Iterator[str]:
    """Return a line of text for each shard of a sweep, the largest first; without a pool, for each group."""
    workers = pool.size() if pool else 1
    pieces = cut(groups, workers) if pool else list(groups)
    who = f"{workers} worker{'s' * (workers != 1)}, each with {pool.device}" if pool else "this process"
    yield f"{len(pieces)} shard{'s' * (len(pieces) != 1)} for {who}"
    for number, piece in enumerate(pieces, 1):
        count = len(piece.members)
        yield (
            f"shard {number}: {count} member{'s' * (count != 1)} of {piece.family.name} on {piece.sandbox.name}, "
            f"{piece.recipe.steps:,} steps, about {operations(piece) * count:.1e} operations, "
            f"{memory(piece, 1) / 2**20:,.2f} MiB of states, and of what one backward pass needs"
        )
