"""Pools of workers, chosen by the `--on` option; one on a Ray cluster has a worker for each GPU, or for each core.

A worker is an actor that trains on one thread and answers on another. We never ask Ray to try again: a shard goes on
from its last checkpoint, which only the driver has. Nodes need the same vitrify, and no disk in common with us.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vitrify import __version__
from vitrify.errors import InputError
from vitrify.learn.disk import Closing
from vitrify.learn.processes import ProcessPool
from vitrify.learn.sweep import WorkerPool
from vitrify.optional import need
from vitrify.workers import Lost, WorkerTask, failure

if TYPE_CHECKING:
    from ray.actor import ActorHandle

SECONDS = 1.0  # that a worker waits for something to tell before it says that there is nothing
STORE = 80 * 2**20  # bytes of shared memory of a cluster of our own: shards are small, and none are shared


class RayNode:
    """A worker on a node: tasks in, events out. A plain class, which `RayPool` makes an actor."""

    def __init__(self, on_gpu: bool) -> None:
        """Begin on the GPU that Ray has given us, or without any."""
        if not on_gpu:
            stay_off_gpus()
        self.queue: queue.SimpleQueue[object] = queue.SimpleQueue()

    def begin(self, version: str, task: WorkerTask) -> None:
        """Run a task on a thread."""
        if version != __version__:
            self.queue.put(InputError(f"a node has vitrify {__version__}, the driver {version}: install the same one"))
            return
        threading.Thread(target=self._run, args=(task,), daemon=True).start()

    def _run(self, task: WorkerTask) -> None:
        try:
            task.run(self.queue.put)
        except Exception as error:
            self.queue.put(failure(error))

    def events(self, seconds: float) -> list[object]:
        """Return the next events, or an empty list after `seconds`."""
        try:
            events = [self.queue.get(timeout=seconds)]
        except queue.Empty:
            return []
        while not self.queue.empty():
            events.append(self.queue.get())
        return events


class RayPool(Closing):
    """Workers on a cluster: "local" starts one on this machine, "auto" is the one that this machine belongs to."""

    def __init__(self, address: str = "local", workers: int | None = None) -> None:
        """Reach the cluster; at most `workers` of its devices are used."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        self.ray = need("ray", "ray")
        self.most = workers
        own: dict[str, object] = {"include_dashboard": False, "object_store_memory": STORE, "num_cpus": workers}
        try:
            self.ray.init(address, logging_level="ERROR", log_to_driver=False, **(own if address == "local" else {}))
        except (ConnectionError, ImportError, TimeoutError, RuntimeError, ValueError) as error:
            raise InputError(f"no Ray cluster was reached at {address}: {error}") from None
        self.workers: list[RayWorker] = []
        self.on_gpu = self._resource("GPU") > 0
        self.actor = self.ray.remote(RayNode).options(
            num_cpus=1, num_gpus=int(self.on_gpu), max_restarts=0, max_task_retries=0, max_concurrency=2
        )

    def _resource(self, name: str) -> int:
        return int(self.ray.cluster_resources().get(name, 0))

    @property
    def device(self) -> str:
        """Return the resources of one worker."""
        return "a GPU of the cluster" if self.on_gpu else "a core of the cluster"

    def size(self) -> int:
        """The devices of the nodes that are alive."""
        count = self._resource("GPU" if self.on_gpu else "CPU")
        return min(count, self.most) if self.most else count

    def start(self) -> RayWorker:
        """A new actor; it begins when the cluster has a device for it."""
        self.workers.append(RayWorker(self.ray, self.actor.remote(self.on_gpu), len(self.workers) + 1))
        return self.workers[-1]

    def wait(self, workers: Sequence[Any], seconds: float) -> list[Any]:
        """Return the workers that have answered."""
        if not workers:
            time.sleep(seconds)  # until there is a node again
            return []
        pending = {worker.asked: worker for worker in workers}
        ready, _ = self.ray.wait(list(pending), timeout=seconds)
        return [pending[answer] for answer in ready]

    def close(self) -> None:
        """End all actors, and Ray."""
        for worker in self.workers:
            worker.stop()
        self.ray.shutdown()


class RayWorker:
    """One actor, and the question that it has not answered yet."""

    def __init__(self, ray: ModuleType, actor: ActorHandle, number: int) -> None:
        self.ray, self.actor = ray, actor
        self.name = f"Ray worker {number}"
        self.asked = actor.events.remote(SECONDS)

    def begin(self, task: WorkerTask) -> None:
        """Send it a task; a failure to send shows in `events`."""
        self.actor.begin.remote(__version__, task)

    def events(self) -> list[object]:
        """Return the answer, and ask for the next one."""
        try:
            heard = self.ray.get(self.asked)
        except self.ray.exceptions.RayError as error:
            raise Lost(str(error).strip().splitlines()[0]) from None
        self.asked = self.actor.events.remote(SECONDS)
        for event in heard:
            if isinstance(event, Exception):
                raise event
        return list(heard)

    def stop(self) -> None:
        """End it."""
        if self.actor is not None:
            self.ray.kill(self.actor)
            self.actor = None


def worker_pool(where: str, workers: int | None = None) -> WorkerPool:
    """Return a pool on `processes` of this machine or on a Ray cluster.

    That is a new cluster on this machine (`local-ray`), the one that it belongs to (`ray`), or a remote one
    (`ray://HOST:PORT`).
    """
    if where == "processes":
        return ProcessPool(workers)
    addresses = {"local-ray": "local", "ray": "auto"}
    if where in addresses or where.startswith("ray://"):
        return RayPool(addresses.get(where, where), workers)
    raise InputError(f"a sweep runs on processes, local-ray, ray or ray://HOST:PORT, not on {where!r}")


def stay_off_gpus() -> None:
    """Keep this process off the GPUs: one that it takes is missing to a worker."""
    import jax

    update: Callable[[str, str], None] = jax.config.update
    update("jax_platforms", "cpu")
