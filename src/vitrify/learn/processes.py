"""A crew of processes on this machine: one for each GPU, or one for each core where there is none.

A worker sees its own GPU only: `CUDA_VISIBLE_DEVICES` is set before its Python begins. It talks over a pair of sockets
that ends with either side, so workers whose driver is killed end by themselves, and a driver hears at once of a worker
that has died. `python -m vitrify.learn.processes FD` is the worker's side.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.connection import Connection, Pipe
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from vitrify.errors import InputError, VitrifyError

if TYPE_CHECKING:  # a worker imports JAX when its first shard comes
    from vitrify.learn.shards import News, Shard

MANY = 16  # workers on cores, unless more are asked for: each compiles for itself, and takes about 0.4 GB
DRIVERS = Path("/proc/driver/nvidia/gpus")
CUDA = ("jax_cuda12_plugin", "jax_cuda13_plugin")
GRACE = 5.0  # seconds for a worker to end


@dataclass(frozen=True)
class Device:
    """What a worker has to itself: a GPU or a core, by what its environment says."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    memory: int | None = None


def devices_here(workers: int | None = None) -> list[Device]:
    """The devices of this machine, found without JAX, which would take the memory of the first GPU for itself."""
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    present = [str(number) for number, _ in enumerate(sorted(DRIVERS.glob("*")))]
    gpus = [name for name in asked.split(",") if name.strip()] if asked is not None else present
    usable = any(find_spec(name) for name in CUDA) and not os.environ.get("JAX_PLATFORMS", "").startswith("cpu")
    if gpus and present and usable:
        memory = gpu_memory()
        return [Device(f"GPU {name}", {"CUDA_VISIBLE_DEVICES": name}, memory) for name in gpus[:workers]]
    count = workers or min(os.cpu_count() or 1, MANY)
    return [Device("one core", {"JAX_PLATFORMS": "cpu"}) for _ in range(count)]


def gpu_memory() -> int | None:
    """Bytes of the smallest GPU of this machine, if the driver's tool says so."""
    words = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout
        return min(int(line) for line in said.split()) * 2**20
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


class Processes:
    """Workers on this machine; use it in a `with` statement, which ends them."""

    def __init__(self, workers: int | None = None) -> None:
        """A worker for each GPU or core, or as many as are asked for."""
        if workers is not None and workers < 1:
            raise InputError(f"there must be at least one worker, not {workers}")
        self.devices = devices_here(workers)
        self.workers: dict[int, WorkerProcess] = {}  # by the number of their device

    @property
    def device(self) -> str:
        """What each worker has to itself."""
        return "a GPU" if "CUDA_VISIBLE_DEVICES" in self.devices[0].environment else "one core"

    @property
    def memory(self) -> int | None:
        """That of a GPU; on a core members step one after the other."""
        return self.devices[0].memory

    def size(self) -> int:
        """One worker for each device."""
        return len(self.devices)

    def hire(self) -> WorkerProcess:
        """A new process on a device that has none."""
        for number in [number for number, worker in self.workers.items() if worker.ended]:
            del self.workers[number]
        number = next(number for number in range(len(self.devices)) if number not in self.workers)
        self.workers[number] = WorkerProcess(self.devices[number])
        return self.workers[number]

    def wait(self, workers: Sequence[Any], seconds: float) -> list[Any]:
        """Those whose socket has something in it, or has been closed."""
        ready = set(map(id, wait_for([worker.channel for worker in workers], seconds)))
        return [worker for worker in workers if id(worker.channel) in ready]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers.values():
            worker.dismiss()


class WorkerProcess:
    """One process that trains a shard at a time."""

    def __init__(self, device: Device) -> None:
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `dismiss`
        self.channel, theirs = Pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vitrify.learn.processes", str(theirs.fileno())],
            env={**os.environ, **device.environment},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self.said,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the driver, who ends its workers
        )
        theirs.close()
        self.name = f"process {self.process.pid} ({device.name})"
        self.ended = False

    def begin(self, shard: Shard) -> None:
        """Send it a shard."""
        try:
            self.channel.send(shard)
        except OSError:
            raise self._lost() from None

    def news(self) -> list[News]:
        """All that has come by now."""
        heard: list[News] = []
        try:
            while self.channel.poll():
                told = self.channel.recv()
                if isinstance(told, Exception):
                    raise told
                heard.append(told)
        except (EOFError, ConnectionError):
            if not heard:
                raise self._lost() from None
        return heard

    def _lost(self) -> Exception:
        """Why it is gone: how it ended, and its last words."""
        from vitrify.learn.spread import Lost

        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return Lost("it does not answer")
        self.said.seek(0)
        words = self.said.read().decode(errors="replace").strip().splitlines()
        how = f"ended by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
        return Lost(f"{how}: {words[-1]}" if words else how)

    def dismiss(self) -> None:
        """End it."""
        if self.ended:
            return
        self.ended = True
        self.channel.close()
        self.process.terminate()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.close()


def trouble(error: Exception) -> Exception:
    """What went wrong in a worker, as something that can be sent: a user's mistake stays one."""
    import traceback

    if isinstance(error, VitrifyError):
        return VitrifyError(str(error))
    return RuntimeError("a worker failed:\n" + "".join(traceback.format_exception(error)))


def serve(channel: Connection[Any, Any]) -> None:
    """Train the shards that come, one after the other, until there is nobody to tell."""
    try:
        while True:
            shard = channel.recv()
            _remember()
            try:
                for news in shard.train():
                    channel.send(news)
            except (EOFError, ConnectionError):
                raise
            except Exception as error:
                channel.send(trouble(error))
    except (EOFError, ConnectionError):
        return


def _remember() -> None:
    """Keep compiled programs where other workers find them, unless the environment says where."""
    from vitrify.learn.program import remember_programs

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        remember_programs()


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
