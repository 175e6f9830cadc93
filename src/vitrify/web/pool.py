"""Worker processes: bounded in number, time and memory, with a bounded queue, and stopped for good when not wanted.

A worker is `python -m vitrify.web.worker`, which reads a question and writes its answer, one line of JSON each.
Between the two it may write lines of progress. One that takes too long, or whose question is withdrawn, is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Progress = Callable[[dict[str, Any]], None]
LINE = 64 << 20  # bytes of an answer, at most
PATIENCE = 10  # how nice, as the system calls it, builders are to what a visitor waits for at every key
GROWN = 4  # a worker that has used this part of its memory does not go on
ENDING = 5.0  # seconds that a killed process may take to be gone


class Full(Exception):
    """All workers are busy and the queue is full; `seconds` is when to ask again."""

    seconds = 5

    def __str__(self) -> str:
        return f"all workers are busy and the queue is full: try again in {self.seconds} seconds"


class Refused(Exception):
    """What a worker was asked can't be done; the message is for the user, `status` is that of the answer."""

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


class Pool:
    """So many workers, and so many questions that wait for one; `patient` workers let others go first."""

    def __init__(self, size: int, waiting: int, seconds: float, memory: int, *, patient: bool = False) -> None:
        self.size, self.waiting, self.seconds, self.memory, self.patient = size, waiting, seconds, memory, patient
        self._inside = 0
        self._idle: list[Worker] = []
        self._free = asyncio.Semaphore(size)

    async def warm(self) -> None:
        """Start the workers, so that the first question need not wait for one."""
        self._idle += [await Worker.start(self.memory, self.patient) for _ in range(self.size - len(self._idle))]

    def admit(self) -> Admission:
        """A place in the queue, taken at once or refused at once."""
        if self._inside >= self.size + self.waiting:
            raise Full
        self._inside += 1
        return Admission(self)

    async def ask(
        self, question: dict[str, Any], progress: Progress | None = None, seconds: float | None = None
    ) -> dict[str, Any]:
        """The answer of a worker to a question, within the pool's time or less."""
        with self.admit() as place:
            return await place.ask(question, progress, seconds)

    async def close(self) -> None:
        """Stop all workers that are idle; those that work are stopped with their question."""
        while self._idle:
            await self._idle.pop().stop()

    def leave(self) -> None:
        """Give a place in the queue back."""
        self._inside -= 1

    async def answer(
        self, question: dict[str, Any], progress: Progress | None, seconds: float | None
    ) -> dict[str, Any]:
        """The answer of the first worker that is free.

        A worker that does not come to an end is stopped, and so is one that has grown: its memory is free again only
        when it is gone.
        """
        limit = self.seconds if seconds is None else seconds
        async with self._free:
            worker = self._idle.pop() if self._idle else await Worker.start(self.memory, self.patient)
            healthy = False
            try:
                async with asyncio.timeout(limit):
                    answer = await worker.ask(question, progress)
                healthy = int(answer.pop("peak", 0)) < self.memory // GROWN
            except TimeoutError:
                raise Refused(f"it took more than {limit:g} seconds and was stopped: ask for less") from None
            finally:
                if healthy:
                    self._idle.append(worker)
                else:
                    await asyncio.shield(worker.stop())
        if "error" in answer:
            raise Refused(str(answer["error"]), int(answer.get("status", 422)))
        return answer


class Admission:
    """A place in the queue of a pool, which is given back at the end of a `with`."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def __enter__(self) -> Admission:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.leave()

    async def ask(
        self, question: dict[str, Any], progress: Progress | None = None, seconds: float | None = None
    ) -> dict[str, Any]:
        """The answer of a worker."""
        return await self.pool.answer(question, progress, seconds)


class Worker:
    """One process."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, memory: int, patient: bool) -> Worker:
        """Start a process that has so many bytes of memory, and one thread for its linear algebra."""
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        words = ("-m", "vitrify.web.worker", str(memory), str(PATIENCE if patient else 0))
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdin=PIPE, stdout=PIPE, limit=LINE, env=os.environ | threads
        )
        return cls(process)

    async def ask(self, question: dict[str, Any], progress: Progress | None) -> dict[str, Any]:
        """Put a question and wait for the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            await self.process.stdin.drain()
            while True:
                line = await self.process.stdout.readline()
                if not line:
                    raise ConnectionResetError
                said: dict[str, Any] = json.loads(line)
                if "progress" not in said:
                    return said
                if progress:
                    progress(said["progress"])
        except (ConnectionResetError, BrokenPipeError):
            raise Refused("the worker process ended, most likely for want of memory: ask for less", 413) from None
        except (ValueError, asyncio.LimitOverrunError):
            raise Refused("the answer is too large to be shown: ask for less", 413) from None

    async def stop(self) -> None:
        """Kill the process, and wait until it is gone."""
        with suppress(ProcessLookupError):
            self.process.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), ENDING)
        if self.process.stdin is not None:
            self.process.stdin.close()
