"""A pool of worker processes on this machine: one for each GPU, or one for each core where there is none.

A worker sees its own GPU only: `CUDA_VISIBLE_DEVICES` is set before its Python begins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from vitrify.errors import InputError
from vitrify.learn.disk import Closing
from vitrify.workers import Worker, WorkerProcess, ready

MAX_CORES = 16  # by default: each worker compiles for itself, and takes about 0.4 GB
DRIVERS = Path("/proc/driver/nvidia/gpus")
CUDA = ("jax_cuda12_plugin", "jax_cuda13_plugin")


@dataclass(frozen=True)
class Device:
    """A GPU or a core that one worker uses alone, set by its environment."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)


def devices_here(workers: int | None = None) -> list[Device]:
    """Return the devices of this machine, found without JAX, which would take the memory of the first GPU."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    present = [str(number) for number, _ in enumerate(sorted(DRIVERS.glob("*")))]
    gpus = [name for name in visible.split(",") if name.strip()] if visible is not None else present
    usable = any(find_spec(name) for name in CUDA) and not os.environ.get("JAX_PLATFORMS", "").startswith("cpu")
    if gpus and present and usable:
        return [Device(f"GPU {name}", {"CUDA_VISIBLE_DEVICES": name}) for name in gpus[:workers]]
    count = workers or min(os.cpu_count() or 1, MAX_CORES)
    return [Device("one core", {"JAX_PLATFORMS": "cpu"}) for _ in range(count)]


class ProcessPool(Closing):
    """Workers on this machine; use it in a `with` statement, which ends them."""

    def __init__(self, workers: int | None = None) -> None:
        """Prepare a worker for each GPU or core, or as many as are asked for."""
        if workers is not None and workers < 1:
            raise InputError(f"there must be at least one worker, not {workers}")
        self.devices = devices_here(workers)
        self.workers: dict[int, WorkerProcess] = {}  # by the number of their device

    @property
    def device(self) -> str:
        """The device of each worker, in words."""
        return "a GPU" if "CUDA_VISIBLE_DEVICES" in self.devices[0].environment else "one core"

    def size(self) -> int:
        """Return the number of devices."""
        return len(self.devices)

    def start(self) -> WorkerProcess:
        """Start a process on a device that has none."""
        for number in [number for number, worker in self.workers.items() if worker.ended]:
            del self.workers[number]
        number = next(number for number in range(len(self.devices)) if number not in self.workers)
        device = self.devices[number]
        self.workers[number] = WorkerProcess(device.name, device.environment)
        return self.workers[number]

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Return the workers that have something to tell, or have ended."""
        return ready(workers, seconds)

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers.values():
            worker.stop()
