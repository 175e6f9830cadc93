"""A crew of workers on a Ray cluster: one for each of its GPUs, or for each of its cores where there are none.

A worker is an actor that trains on one thread and answers on another. We never ask Ray to try again: a shard goes on
from its last checkpoint, which only the driver has. Nodes need the same vitrify, and no disk in common with us.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from vitrify import __version__
from vitrify.errors import InputError
from vitrify.interop.optional import need
from vitrify.learn.processes import gpu_memory, trouble
from vitrify.learn.program import remember_programs
from vitrify.learn.shards import News, Shard
from vitrify.learn.spread import Lost

SECONDS = 1.0  # that a worker waits for something to tell before it says that there is nothing
STORE = 80 * 2**20  # bytes of shared memory of a cluster of our own: shards are small, and none are shared
REACH = 60  # seconds for a node to say how large its GPUs are


class Trainer:
    """What runs on a node: shards in, news out. A plain class, which `RayCrew` makes an actor."""

    def __init__(self, on_gpu: bool) -> None:
        """Begin on the GPU that Ray has given us, or without any."""
        if not on_gpu:
            import jax

            config: Any = jax.config
            config.update("jax_platforms", "cpu")
        if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
            remember_programs()
        self.told: queue.SimpleQueue[News | Exception] = queue.SimpleQueue()

    def begin(self, version: str, shard: Shard) -> None:
        """Train a shard on a thread."""
        if version != __version__:
            self.told.put(InputError(f"a node has vitrify {__version__}, the driver {version}: install the same one"))
            return
        threading.Thread(target=self._train, args=(shard,), daemon=True).start()

    def _train(self, shard: Shard) -> None:
        try:
            for news in shard.train():
                self.told.put(news)
        except Exception as error:
            self.told.put(trouble(error))

    def news(self, seconds: float) -> list[News | Exception]:
        """What is to be told; nothing, after so many seconds."""
        try:
            found = [self.told.get(timeout=seconds)]
        except queue.Empty:
            return []
        while not self.told.empty():
            found.append(self.told.get())
        return found


class RayCrew:
    """Workers on a cluster: "local" starts one on this machine, "auto" is the one that this machine belongs to."""

    def __init__(self, address: str = "local", workers: int | None = None) -> None:
        """Reach the cluster; at most `workers` of its devices are used."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        self.ray = need("ray", "ray")
        self.most = workers
        own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": STORE, "num_cpus": workers}
        try:
            self.ray.init(address, logging_level="ERROR", log_to_driver=False, **(own if address == "local" else {}))
        except (ConnectionError, ImportError, TimeoutError, RuntimeError, ValueError) as error:
            raise InputError(f"no Ray cluster was reached at {address}: {error}") from None
        self.workers: list[RayWorker] = []
        self.on_gpu = self._resource("GPU") > 0
        self.actor = self.ray.remote(Trainer).options(
            num_cpus=1, num_gpus=int(self.on_gpu), max_restarts=0, max_task_retries=0, max_concurrency=2
        )

    def _resource(self, name: str) -> int:
        return int(self.ray.cluster_resources().get(name, 0))

    @property
    def device(self) -> str:
        """What each worker has to itself."""
        return "a GPU of the cluster" if self.on_gpu else "a core of the cluster"

    @cached_property
    def memory(self) -> int | None:
        """That of a GPU of the node that answers first; None if none does, and on cores."""
        if not self.on_gpu:
            return None
        try:
            found: int | None = self.ray.get(self.ray.remote(num_gpus=1)(gpu_memory).remote(), timeout=REACH)
        except self.ray.exceptions.RayError:
            return None
        return found

    def size(self) -> int:
        """The devices of the nodes that are alive."""
        found = self._resource("GPU" if self.on_gpu else "CPU")
        return min(found, self.most) if self.most else found

    def hire(self) -> RayWorker:
        """A new actor; it begins when the cluster has a device for it."""
        self.workers.append(RayWorker(self.ray, self.actor.remote(self.on_gpu), len(self.workers) + 1))
        return self.workers[-1]

    def wait(self, workers: Sequence[Any], seconds: float) -> list[Any]:
        """Those that have answered."""
        if not workers:
            time.sleep(seconds)  # until there is a node again
            return []
        asked = {worker.asked: worker for worker in workers}
        ready, _ = self.ray.wait(list(asked), timeout=seconds)
        return [asked[answer] for answer in ready]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.dismiss()
        self.ray.shutdown()


class RayWorker:
    """One actor, and the question that it has not answered yet."""

    def __init__(self, ray: Any, actor: Any, number: int) -> None:
        self.ray, self.actor = ray, actor
        self.name = f"Ray worker {number}"
        self.asked = actor.news.remote(SECONDS)

    def begin(self, shard: Shard) -> None:
        """Send it a shard; it is lost if the answers say so."""
        self.actor.begin.remote(__version__, shard)

    def news(self) -> list[News]:
        """What it has answered, and the same question again."""
        try:
            heard = self.ray.get(self.asked)
        except self.ray.exceptions.RayError as error:
            raise Lost(str(error).strip().splitlines()[0]) from None
        self.asked = self.actor.news.remote(SECONDS)
        for told in heard:
            if isinstance(told, Exception):
                raise told
        return heard  # type: ignore[no-any-return]

    def dismiss(self) -> None:
        """End it."""
        if self.actor is not None:
            self.ray.kill(self.actor)
            self.actor = None
