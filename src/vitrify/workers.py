"""Worker processes: each runs one task at a time and streams its events; sweeps, the atlas and the web app use them.

A task is a value with a method `run`; it is sent to a worker, which runs it and sends its events back. Who started the
worker knows the last event of its tasks. A worker talks over a pair of sockets that ends with either side: workers
end with the process that started them, however that ends, and it learns at once of a worker that has died.

`python -m vitrify.workers FD MEMORY NICE MODULE…` is the worker's side. Workers elsewhere (`interop/pools.py`) have
the same methods.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from multiprocessing.connection import wait as wait_for
from typing import Any, Protocol

from vitrify.errors import VitrifyError

EXIT_SECONDS = 5.0  # for a lost worker to say how it ended


class Lost(Exception):
    """A worker is gone: its process or its machine has ended, or can't be reached."""


class WorkerTask(Protocol):
    """A task that a worker runs."""

    def run(self, send: Callable[[Any], None]) -> None:
        """Do the work, and send its events; the last one says that it is done."""


class Worker(Protocol):
    """Runs one task at a time, in a process or on a machine."""

    @property
    def name(self) -> str:
        """Return the name that messages call it by."""

    def begin(self, task: WorkerTask) -> None:
        """Give it a task; does not wait."""

    def events(self) -> list[Any]:
        """Return the events since the last call; raise `Lost`, or what the task raised."""

    def stop(self) -> None:
        """End it, whatever it is doing."""


class WorkerProcess:
    """A worker that is a process of this machine.

    `memory` bounds its address space in bytes, `nice` lets others go first, and `modules` are imported before its first
    task. What it prints is shown with the reason why it was lost, or goes to our own standard error (`shown`).
    """

    def __init__(
        self,
        name: str = "this machine",
        environment: Mapping[str, str] | None = None,
        *,
        memory: int | None = None,
        nice: int = 0,
        modules: Sequence[str] = (),
        shown: bool = False,
    ) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        self.channel, theirs = Pipe()
        words = [str(theirs.fileno()), str(memory or 0), str(nice), *modules]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vitrify.workers", *words],
            env={**os.environ, **(environment or {})},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=2 if shown else self._output,
            stderr=2 if shown else subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us, and we end our workers
        )
        theirs.close()
        self.name = f"process {self.process.pid} ({name})"
        self.ended = False

    def begin(self, task: WorkerTask) -> None:
        """Send it a task."""
        try:
            self.channel.send(task)
        except OSError:
            raise self._lost() from None

    def events(self) -> list[Any]:
        """Return all events that have come by now."""
        events: list[Any] = []
        try:
            while self.channel.poll():
                event = self.channel.recv()
                if isinstance(event, Exception):
                    raise event
                events.append(event)
        except (EOFError, ConnectionError):
            if not events:
                raise self._lost() from None
        return events

    def _lost(self) -> Lost:
        """Return why it is gone: how it ended, and the last line that it printed."""
        try:
            code = self.process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return Lost("it does not answer")
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        how = f"ended by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
        return Lost(f"{how}: {lines[-1]}" if lines else how)

    def stop(self) -> None:
        """Kill it, and wait until it is gone."""
        if not self.ended:
            self.ended = True
            self.channel.close()
            self.process.kill()
            self.process.wait()
            self._output.close()


def ready(workers: Sequence[Any], seconds: float | None = None) -> list[Any]:
    """Return the processes among some workers that have sent something or have ended, after at most so many seconds."""
    channels = set(map(id, wait_for([worker.channel for worker in workers], seconds)))
    return [worker for worker in workers if id(worker.channel) in channels]


def failure(error: Exception) -> Exception:
    """Return what a task raised as something that can be sent: a user's mistake stays one."""
    if isinstance(error, VitrifyError):
        return VitrifyError(str(error))
    return RuntimeError("a worker failed:\n" + "".join(traceback.format_exception(error)))


def serve(channel: Connection[Any, Any]) -> None:
    """Run the tasks that come, one after the other, until there is nobody to tell."""
    try:
        while True:
            task = channel.recv()
            try:
                task.run(channel.send)
            except (EOFError, ConnectionError):
                raise
            except Exception as error:
                channel.send(failure(error))
    except (EOFError, ConnectionError):
        return


def main(number: int, memory: int, nice: int, modules: Sequence[str]) -> None:
    """Be a worker: within its limits, and until the other side is gone."""
    import resource

    os.nice(nice)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    threading.Thread(target=_end_with, args=(number,), daemon=True).start()
    for module in modules:
        import_module(module)
    serve(Connection(number))


def _end_with(number: int) -> None:
    """End this process as soon as the other end of a socket is closed, in the middle of a task, too."""
    poll = select.poll()
    poll.register(number, 0)  # nothing but that it has ended
    poll.poll()
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
