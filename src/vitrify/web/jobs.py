"""Long questions: they wait for a worker, tell of their progress, and are withdrawn when nobody wants the answer."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from vitrify.web.pool import Admission, Pool, Progress, Refused

KEPT = 256  # jobs whose answers are remembered
BEAT = 10.0  # seconds after which a silent stream shows that it is alive

Work = Callable[[Admission, Progress], Awaitable[dict[str, Any]]]


@dataclass(eq=False)
class Job:
    """A question that is being answered; `events` are what was said so far, the last one ends it."""

    owner: str
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self._news = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether there is nothing more to come."""
        return bool(self.events) and self.events[-1][0] in ("done", "failed")

    def say(self, event: str, data: dict[str, Any]) -> None:
        """Tell all who listen; only the latest progress is kept."""
        if self.events and self.events[-1][0] == "progress":
            self.events.pop()
        self.events.append((event, data))
        self._news.set()
        self._news = asyncio.Event()

    async def listen(self) -> AsyncIterator[str]:
        """What is said, as server-sent events, until it is over."""
        while True:
            news = self._news
            event, data = self.events[-1]
            yield f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
            if self.over:
                return
            while not news.is_set():
                try:
                    await asyncio.wait_for(news.wait(), BEAT)
                except TimeoutError:
                    yield ": still here\n\n"


class Jobs:
    """The long questions of all visitors."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def start(self, owner: str, work: Work) -> Job:
        """Take a place in the queue, or raise `Full`; the work goes on by itself."""
        place = self._pool.admit()
        job = Job(owner)
        job.say("progress", {"doing": "waiting for a worker"})
        job.task = asyncio.create_task(self._run(job, place, work))
        self._jobs[job.key] = job
        while len(self._jobs) > KEPT:
            self._stop(self._jobs.popitem(last=False)[1])
        return job

    def find(self, owner: str, key: str) -> Job | None:
        """A visitor's own job."""
        job = self._jobs.get(key)
        return job if job is not None and job.owner == owner else None

    def withdraw(self, job: Job) -> None:
        """Stop a job: its worker is killed."""
        self._stop(job)

    async def close(self) -> None:
        """Stop all jobs, and wait until they have stopped."""
        tasks = [job.task for job in self._jobs.values() if job.task]
        for job in self._jobs.values():
            self._stop(job)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _stop(self, job: Job) -> None:
        if job.task and not job.over:
            job.task.cancel()

    async def _run(self, job: Job, place: Admission, work: Work) -> None:
        def progress(parts: Any) -> None:
            job.say("progress", dict(zip(("doing", "done", "total"), parts, strict=False)))

        with place:
            try:
                job.say("done", await work(place, progress))
            except Refused as refused:
                job.say("failed", {"error": str(refused)})
            except asyncio.CancelledError:
                job.say("failed", {"error": "stopped"})
                raise
