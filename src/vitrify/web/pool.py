"""Answers by worker processes: bounded in number, time and memory, with a bounded queue.

A worker that takes too long, or whose question is withdrawn, is killed.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

from vitrify.encoding import JsonObject
from vitrify.web.worker import WebQuestion
from vitrify.workers import Lost, WorkerProcess

Progress = Callable[[tuple[object, ...]], None]
NICENESS = 10  # of the processes that build: what a visitor waits for at every key goes first
GROWN = 4  # a worker that has used this part of its memory does not go on
THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
RETRY_SECONDS = 5  # after which a visitor asks again who found the queue full
MAX_JOBS = 256  # whose answers are remembered
HEARTBEAT_SECONDS = 10.0  # after which a silent stream shows that it is alive
Work = Callable[[Progress], Awaitable[JsonObject]]


class Refused(HTTPException):
    """A request that a worker can't fulfil; the message is for the user."""

    def __init__(self, message: str, status: int = 422, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message, headers)

    def __str__(self) -> str:
        return self.detail


class Full(Refused):
    """All workers are busy and the queue is full."""

    def __init__(self) -> None:
        later = f"all workers are busy and the queue is full: try again in {RETRY_SECONDS} seconds"
        super().__init__(later, 429, {"retry-after": str(RETRY_SECONDS)})


class Pool:
    """`size` workers, and `waiting` questions that wait for one; `patient` workers let others go first."""

    def __init__(self, size: int, waiting: int, seconds: float, memory: int, *, patient: bool = False) -> None:
        self.size, self.waiting, self.seconds, self.memory = size, waiting, seconds, memory
        self.niceness = NICENESS if patient else 0
        self._inside = 0
        self._idle: list[WorkerProcess] = []
        self._free = asyncio.Semaphore(size)

    async def warm(self) -> None:
        """Start the workers, so that the first question need not wait for one."""
        self._idle += [self._start() for _ in range(self.size - len(self._idle))]

    def _start(self) -> WorkerProcess:
        modules = ["vitrify.web.tasks"]
        return WorkerProcess("an answer", THREADS, shown=True, memory=self.memory, nice=self.niceness, modules=modules)

    async def close(self) -> None:
        """Stop all workers that are idle; those that work are stopped with their question."""
        while self._idle:
            await asyncio.to_thread(self._idle.pop().stop)

    def admit(self) -> None:
        """Take a place in the queue, or raise `Full`; `leave` gives it back."""
        if self._inside >= self.size + self.waiting:
            raise Full
        self._inside += 1

    def leave(self) -> None:
        """Give a place in the queue back."""
        self._inside -= 1

    async def ask(self, question: WebQuestion, seconds: float | None = None) -> JsonObject:
        """Return a worker's answer, within the pool's time or less, to a question that takes a place for itself."""
        self.admit()
        try:
            return await self.answer(question, seconds=seconds)
        finally:
            self.leave()

    async def answer(
        self, question: WebQuestion, progress: Progress | None = None, seconds: float | None = None
    ) -> JsonObject:
        """Return the answer of the first worker that is free, to a question that has a place in the queue.

        A worker that does not come to an end is stopped, and so is one that has grown: its memory is free again only
        when it is gone.
        """
        limit = self.seconds if seconds is None else seconds
        async with self._free:
            worker = self._idle.pop() if self._idle else self._start()
            healthy = False
            try:
                async with asyncio.timeout(limit):
                    answer = await _answered(worker, question, progress)
                healthy = int(answer.pop("peak", 0)) < self.memory // GROWN
            except TimeoutError:
                raise Refused(f"it took more than {limit:g} seconds and was stopped: ask for less") from None
            finally:
                if healthy:
                    self._idle.append(worker)
                else:
                    await asyncio.shield(asyncio.to_thread(worker.stop))
        if "error" in answer:
            raise Refused(str(answer["error"]), int(answer.get("status", 422)))
        return answer


async def _answered(worker: WorkerProcess, question: WebQuestion, progress: Progress | None) -> JsonObject:
    """Return a worker's answer to a question."""
    try:
        worker.begin(question)
        while True:
            await _readable(worker.channel.fileno())
            for event in worker.events():
                if isinstance(event, str):
                    answer: JsonObject = json.loads(event)
                    return answer
                if progress:
                    progress(event)
    except Lost:
        raise Refused("the worker process ended, most likely for want of memory: ask for less", 413) from None


async def _readable(number: int) -> None:
    """Wait until there is something to read from a file of the system."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    loop.add_reader(number, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(number)


@dataclass(eq=False)
class Job:
    """A question that is being answered; `events` are what was said so far, the last one ends it."""

    owner: str
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    events: list[tuple[str, JsonObject]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self._news = asyncio.Event()

    @property
    def over(self) -> bool:
        """True if no more events will come."""
        return bool(self.events) and self.events[-1][0] in ("done", "failed")

    def say(self, event: str, data: JsonObject) -> None:
        """Tell all who listen; only the latest progress is kept."""
        if self.events and self.events[-1][0] == "progress":
            self.events.pop()
        self.events.append((event, data))
        self._news.set()
        self._news = asyncio.Event()

    async def listen(self) -> AsyncIterator[str]:
        """Return what is said, as server-sent events, until it is over."""
        while True:
            news = self._news
            event, data = self.events[-1]
            yield f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
            if self.over:
                return
            while not news.is_set():
                try:
                    await asyncio.wait_for(news.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"

    def stop(self) -> None:
        """Stop it, unless it is over: its worker is killed."""
        if self.task and not self.over:
            self.task.cancel()


class Jobs:
    """The long questions of all visitors."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def start(self, owner: str, work: Work) -> Job:
        """Take a place in the queue, or raise `Full`; the work goes on by itself."""
        self._pool.admit()
        job = Job(owner)
        job.say("progress", {"doing": "waiting for a worker"})
        job.task = asyncio.create_task(self._run(job, work))
        job.task.add_done_callback(lambda _task: self._pool.leave())
        self._jobs[job.key] = job
        while len(self._jobs) > MAX_JOBS:
            self._jobs.popitem(last=False)[1].stop()
        return job

    def find(self, owner: str, key: str) -> Job | None:
        """Return a visitor's own job."""
        job = self._jobs.get(key)
        return job if job is not None and job.owner == owner else None

    async def close(self) -> None:
        """Stop all jobs, and wait until they have stopped."""
        tasks = [job.task for job in self._jobs.values() if job.task]
        for job in self._jobs.values():
            job.stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job: Job, work: Work) -> None:
        def progress(parts: tuple[object, ...]) -> None:
            job.say("progress", dict(zip(("doing", "done", "total"), parts, strict=False)))

        try:
            job.say("done", await work(progress))
        except Refused as refused:
            job.say("failed", {"error": str(refused)})
        except asyncio.CancelledError:
            job.say("failed", {"error": "stopped"})
            raise
