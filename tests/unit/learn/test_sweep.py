"""Sweeps whose shards are trained by workers: cut well, written down once, and the same as without workers."""

from __future__ import annotations

import pickle
import re
import signal
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest

import waiting_shards
from cases import rest_slow
from vitrify import registry
from vitrify.errors import InputError, VitrifyError, WorkersLost
from vitrify.learn import sweep
from vitrify.learn.cost import operations
from vitrify.learn.experiment import in_words
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.models.catalogue import names as model_names
from vitrify.learn.plan import MemberGroup
from vitrify.learn.processes import ProcessPool, devices_here
from vitrify.learn.runs import Run, run_id
from vitrify.learn.store import RunStore
from vitrify.learn.sweep import Report, Shard, cut, to_do, train_on_workers
from vitrify.learn.train import train_groups
from vitrify.learn.trainer import TrainEvent
from vitrify.net.architecture import Output
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import make as make_sandbox
from vitrify.workers import Lost, WorkerProcess, WorkerTask, serve
from waiting_shards import content

NET = Transformer(("<s>", "a"), Output("lm", ("a",)), max_length=1, d_model=1)
SMALL = ["layers=1", "heads=1", "d_model=8", "length=8", "steps=6", "batch=4", "test_examples=16"]


def small(*words: str, units: str = "8", members: int = 2) -> list[MemberGroup]:
    return in_words("markov", "transformer", [*SMALL, f"units={units}", *words], members).groups()


class Counting(Shard):
    """A shard whose training is arithmetic, with a checkpoint at every step: for all that is not about training."""

    def events(self) -> Iterator[TrainEvent]:
        seeds = np.array([member["seed"] + 1 for member in self.group.members])
        step, total = (self.latest.step, self.latest.arrays["total"]) if self.latest else (0, 0 * seeds)
        size = self.group.recipe.steps, len(seeds)
        while step < self.group.recipe.steps:
            step, total = step + 1, total * 3 % 1009 + seeds
            point = {"step": step, "total": total}
            checkpoint = {"total": total} if self.checkpoint_seconds < 0 else None
            yield TrainEvent(step, *size, rate=1.0, measured=point, point=point, checkpoint=checkpoint)
        runs = []
        for identity, value in zip(self.group.identities(), total, strict=True):
            weights: Any = SimpleNamespace(arrays={"w": np.array([value])}, architecture=NET, about={})
            runs.append(Run(identity, [{"total": int(value), "broken": -1}], weights))
        yield TrainEvent(step, *size, runs=tuple(runs))


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What four runs leave that nothing happens to."""
    monkeypatch.setattr(sweep, "Shard", Counting)
    store = RunStore(tmp_path / "counted")
    train_on_workers(small("lr=1e-3,1e-2"), store, HerePool(1))
    return content(store)


class HereWorker:
    """A worker in this process, lost after as many news as are left to it."""

    def __init__(self, life: float) -> None:
        self.name, self.life = "somebody", life
        self.training: Iterator[TrainEvent] = iter(())
        self.steps: list[int] = []

    def begin(self, task: WorkerTask) -> None:
        assert isinstance(task, Shard)
        self.training = task.events()

    def events(self) -> list[TrainEvent]:
        self.life -= 1
        if self.life < 0:
            raise Lost("it fell asleep")
        told = next(self.training)
        self.steps.append(told.step)
        return [told]

    def stop(self) -> None:
        self.life = -1


class HerePool:
    """Workers in this process, with lives of given lengths; all after them live for ever."""

    device = "a part of this process"

    def __init__(self, size: int, lives: Sequence[float] = ()) -> None:
        self.count, self.lives, self.hired = size, list(lives), list[HereWorker]()

    def size(self) -> int:
        return self.count

    def start(self) -> HereWorker:
        self.hired.append(HereWorker(self.lives.pop(0) if self.lives else float("inf")))
        return self.hired[-1]

    def wait(self, workers: Sequence[Any], seconds: float) -> Sequence[Any]:
        assert seconds > 0
        return workers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def test_groups_are_cut_into_shares_that_lose_nobody_and_waste_no_compilation() -> None:
    (group,) = small(members=7)
    assert [len(piece.members) for piece in cut([group], 3)] == [3, 2, 2]
    assert {piece.members[0]["seed"] for piece in cut([group], 7)} == set(range(7))
    assert len(cut([group], 50)) == 7
    shapes = small(units="8,16,24,32")
    assert len(cut(shapes, 2)) == 4  # none is more than a half
    for workers in (2, 3, 5):
        pieces = cut(shapes, workers)
        assert len(pieces) < len(shapes) + workers
        everybody = [run_id(identity) for group in shapes for identity in group.identities()]
        assert sorted(run_id(identity) for piece in pieces for identity in piece.identities()) == sorted(everybody)
    sizes = [operations(piece) * len(piece.members) for piece in pieces]
    assert sizes == sorted(sizes, reverse=True)


def test_what_is_told_is_kept_once_and_what_is_kept_is_not_trained(tmp_path: Path, counted: dict[str, Any]) -> None:
    store, pool, events = RunStore(tmp_path / "runs"), HerePool(2), list[str]()
    groups = small("lr=1e-3,1e-2")

    def callback(report: Report) -> None:
        events.extend([report.event] if report.event else [])
        assert 0 <= report.steps_done <= report.steps == 24

    found = train_on_workers(groups, store, pool, callback=callback)
    assert [record.id for record in found] == [run_id(identity) for group in groups for identity in group.identities()]
    assert content(store) == counted
    assert len(pool.hired) == 2
    assert len([event for event in events if "overhead" in event]) == 2
    idle = HerePool(2)
    again = train_on_workers(groups, store, idle)
    assert [record.id for record in again] == [record.id for record in found]
    assert not idle.hired
    assert to_do(groups, store, False) == []


def test_a_lost_shard_goes_on_from_its_checkpoint_and_is_on_record_once(
    tmp_path: Path, counted: dict[str, Any]
) -> None:
    store, pool, events = RunStore(tmp_path / "runs"), HerePool(2, [4, 1]), list[str]()
    groups = small("lr=1e-3,1e-2")
    train_on_workers(
        groups, store, pool, checkpoint_seconds=-1.0, callback=lambda report: events.append(report.event or "")
    )
    assert content(store) == counted
    steps = [worker.steps for worker in pool.hired]
    assert steps == [[1, 2, 3, 4], [1], [2, 3, 4, 5, 6, 6], [5, 6, 6]]  # no step twice; the last words are news, too
    lost = [event for event in events if "it fell asleep" in event]
    assert [event[: event.index(" elsewhere")] for event in lost] == [
        "shard 2 goes on from step 1",
        "shard 1 goes on from step 4",
    ]


@pytest.mark.usefixtures("counted")
def test_who_has_nothing_left_to_do_lets_others_have_its_device(tmp_path: Path) -> None:
    """A worker that is new may have to wait for it: without this, for ever."""
    pool = HerePool(2, [3])
    train_on_workers(small("lr=1e-3,1e-2"), RunStore(tmp_path / "runs"), pool, checkpoint_seconds=-1.0)
    lost, done, last = pool.hired
    assert (lost.life, done.life, len(done.steps)) == (-1, -1, 7)
    assert last.life == float("inf")


def test_a_shard_that_gets_further_may_lose_any_number_of_workers(tmp_path: Path, counted: dict[str, Any]) -> None:
    store, pool = RunStore(tmp_path / "runs"), HerePool(1, [1] * 5)
    train_on_workers(small("lr=1e-3,1e-2"), store, pool, checkpoint_seconds=-1.0)
    assert len(pool.hired) == 6
    assert content(store) == counted


@pytest.mark.usefixtures("counted")
def test_a_shard_that_loses_everybody_is_given_up_and_the_others_are_done(tmp_path: Path) -> None:
    store, pool = RunStore(tmp_path / "runs"), HerePool(1, [0, 0, 0])
    groups = small("lr=1e-3,1e-2", members=1) + small("lr=0.1", members=1)
    with pytest.raises(WorkersLost, match="has lost 3 workers at step 0, the last time: it fell asleep"):
        train_on_workers(groups, store, pool)
    states = {record.id: record.state for record in store.runs()}
    assert sorted(states.values()) == ["finished", "new", "new"]
    assert all(record.state == "finished" for record in train_on_workers(groups, store, HerePool(1)))


def test_an_interrupted_sweep_lets_go_of_its_runs_and_goes_on_later(tmp_path: Path, counted: dict[str, Any]) -> None:
    store, groups = RunStore(tmp_path / "runs"), small("lr=1e-3,1e-2")

    def interrupt(report: Report) -> None:
        if report.steps_done > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_on_workers(groups, store, HerePool(2), checkpoint_seconds=-1.0, callback=interrupt)
    assert {record.state for record in store.runs()} == {"partial"}
    train_on_workers(groups, store, HerePool(3))
    assert content(store) == counted


@pytest.mark.parametrize("workers", rest_slow([1, 2], first=1))  # every worker is a process that compiles
def test_a_worker_process_that_is_killed_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    groups, alone = small("lr=1e-3,1e-2"), RunStore(tmp_path / "alone")
    train_groups(groups, alone)
    monkeypatch.setenv(waiting_shards.UNTIL, str(tmp_path / "now"))
    monkeypatch.setattr(sweep, "Shard", waiting_shards.Waiting)
    store, events, killed = RunStore(tmp_path / "runs"), list[str](), list[int]()

    def kill_one(report: Report) -> None:
        events.extend([report.event] if report.event else [])
        waiting = [task for task in report.tasks if task.event and task.event.step >= waiting_shards.STEP]
        if waiting and not killed:
            worker = waiting[0].worker
            assert isinstance(worker, WorkerProcess)
            killed.append(worker.process.pid)
            worker.process.send_signal(signal.SIGKILL)
        if report.event and "was lost" in report.event:
            (tmp_path / "now").touch()

    with ProcessPool(workers) as pool:
        train_on_workers(groups, store, pool, checkpoint_seconds=-1.0, callback=kill_one)
        everybody = list(pool.workers.values())
    assert content(store) == content(alone)
    lost = [event for event in events if f"process {killed[0]}" in event]
    assert len(lost) == 1
    assert "goes on from step 4" in lost[0]
    assert "SIGKILL" in lost[0]
    assert all(worker.process.returncode is not None for worker in everybody)  # none is left behind


class Mistaken(Shard):
    """A shard whose training ends with a mistake, or with an error of ours if its members are few."""

    def events(self) -> Iterator[TrainEvent]:
        yield TrainEvent(0, 1, 1)
        raise InputError("there is no such thing") if len(self.group.members) > 1 else ZeroDivisionError("oh")


def test_what_goes_wrong_in_a_worker_is_told_as_it_is_and_the_worker_stays() -> None:
    ours, theirs = Pipe()
    working = Thread(target=serve, args=(theirs,))
    working.start()
    for members, kind, message in ((2, VitrifyError, "^there is no such thing$"), (1, RuntimeError, "events\n.*oh")):
        (group,) = small(members=members)
        ours.send(Mistaken(group))
        assert ours.recv().step == 0
        told = ours.recv()
        assert type(told) is kind
        assert re.search(message, str(told), re.DOTALL)
    ours.close()
    working.join(20)
    assert not working.is_alive()  # it ends with the driver


def test_every_sandbox_and_model_can_be_sent_to_a_worker() -> None:
    sandboxes = [make_sandbox(name) for name in registry.names("vitrify.sandboxes")]
    models = [make_model(name, {}) for name in model_names() if name != "built"]
    assert pickle.loads(pickle.dumps((sandboxes, models))) == (sandboxes, models)


def test_devices_are_the_gpus_that_are_visible_or_else_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr("vitrify.learn.processes.DRIVERS", tmp_path)
    monkeypatch.setattr("vitrify.learn.processes.CUDA", ("json",))  # something that can be imported
    for name in ("0000:1a:00.0", "0000:3b:00.0", "0000:5e:00.0"):
        (tmp_path / name).mkdir()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [device.environment["CUDA_VISIBLE_DEVICES"] for device in devices_here()] == ["0", "1", "2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-7")
    assert [device.environment["CUDA_VISIBLE_DEVICES"] for device in devices_here()] == ["2", "GPU-7"]
    assert len(devices_here(1)) == 1
    assert (ProcessPool().device, ProcessPool().size()) == ("a GPU", 2)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert {device.name for device in devices_here(3)} == {"one core"}
    monkeypatch.delenv("JAX_PLATFORMS")
    monkeypatch.setattr("vitrify.learn.processes.CUDA", ("no_such_plugin",))
    assert devices_here(2)[1].environment == {"JAX_PLATFORMS": "cpu"}
