"""Runs that step together: one log, one checkpoint and one lock for all of them.

    groups/<hash of the run ids>/
        group.json              the ids, in the order of the rows of every array
        log.jsonl               {"step": 10, "each": {"loss": [0.31, 0.29, …]}}: a value for each run, or one for all
        step-<n>.safetensors    arrays [run, …] and how long the log was then; the last two are kept
        net-<n>.safetensors     weights of the nets [run, …] after a step, where the recipe keeps them
        lock                    held by the process that works on the group

A checkpoint remembers how many bytes of the log were there before it. Going on from it cuts the log at that byte, so
that what is logged again stands there once. A checkpoint that is not whole, or that the log is too short for, is passed
over for the one before.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vitrify import encoding, files
from vitrify.arrays import Array, Arrays
from vitrify.encoding import JsonObject
from vitrify.errors import DamagedStore, InputError, StoreError
from vitrify.files import Lock
from vitrify.learn import disk
from vitrify.learn.disk import Closing
from vitrify.learn.stored import runs_of
from vitrify.net.architecture import to_json
from vitrify.net.weights import Weights

if TYPE_CHECKING:
    from vitrify.learn.trainer import TrainEvent

KEPT = 2  # checkpoints
SECONDS, LARGEST = 0.5, 1 << 20  # the log is written out after so long, or so many bytes
EACH = "each"  # the key of what differs between the runs of a group

CHECKPOINTS = "checkpoints.safetensors"  # of a run: arrays [checkpoint, …], and the steps as data about them

Done = tuple[JsonObject, Arrays | None]  # what result.json is to hold, and the weights


class Checkpoint(NamedTuple):
    """Where a run can go on from."""

    step: int
    arrays: dict[str, Array]
    meta: JsonObject


class RunGroup(Closing):
    """Runs that are being worked on here; row i of every array belongs to `runs[i]`, number `numbers[i]` requested.

    Use it in a `with` statement, or close it: until then nobody else can work on these runs.
    """

    def __init__(self, store: Path, folder: Path, places: Mapping[str, int], leave: Callable[[Path], None]) -> None:
        """Go on from the latest checkpoint that is whole; `leave` removes the folder when every run is done."""
        self.store, self.folder, self.runs = store, folder, runs_of(folder)
        self.numbers = tuple(places[run] for run in self.runs)
        self._leave = leave
        with ExitStack() as undo:
            self._lock = undo.enter_context(Lock(folder / "lock", wait=False))
            self._step, length = recover(folder)
            self._file = os.open(folder / "log.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            os.ftruncate(self._file, length)
            undo.pop_all()
        self._pending = bytearray()  # lines of the log that are not written out
        self._flushed = time.monotonic()
        self._open: set[int] = set(range(len(self.runs)))
        self._parsed: list[JsonObject] = []
        self._parsed_to = 0

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"RunGroup({self.folder.name}: {len(self)} runs, {len(self._open)} to do, step {self._step})"

    @property
    def step(self) -> int | None:
        """The step of the latest checkpoint; None if there is none yet."""
        return self._step

    def log(self, values: Arrays) -> None:
        """Add a line to the log: arrays [run, …] hold a value for each run, anything else is the same for all."""
        shared: JsonObject = {}
        each: JsonObject = {}
        for key, value in values.items():
            if type(value) in (float, int, str, bool) or not hasattr(value, "__array__"):
                shared[key] = value
            elif np.ndim(value) == 0:
                shared[key] = np.asarray(value).item()
            elif len(value) != len(self.runs):
                raise InputError(f"{key} must have a row for each of {len(self.runs)} runs, it has {len(value)}")
            else:
                each[key] = np.asarray(value).tolist()
        if each:
            shared[EACH] = each
        self.add(shared)

    def add(self, line: JsonObject) -> None:
        """Add a line to the log as it is: a value for all, or under "each" a list with one for each run."""
        self._working()
        self._pending += f"{encoding.line(line)}\n".encode()
        self.flush_if_due()

    def flush_if_due(self) -> None:
        """Write the log out if it is large or old: called at every event, so that others see how far the runs are."""
        if self._pending and (len(self._pending) > LARGEST or time.monotonic() - self._flushed > SECONDS):
            self.flush()

    def lines(self) -> list[JsonObject]:
        """The log so far: what is the same for all, and lists with a value for each run."""
        self.flush()
        lines = disk.read_lines(self.folder / "log.jsonl")
        return [{key: value for key, value in line.items() if key != EACH} | line.get(EACH, {}) for line in lines]

    def flush(self) -> None:
        """Write the log out, so that others can read it (`save` also forces it to the disk)."""
        self._working()
        self._flushed = time.monotonic()
        with disk.guarded(self.store, "writing a log"):
            files.append(self._file, self._pending)

    def save(self, step: int, arrays: Arrays, meta: Mapping[str, object]) -> None:
        """Keep arrays [run, …] and JSON data as the state after a step, in one go with the log up to here."""
        if self._step is not None and step < self._step:
            raise InputError(f"step {step} can't be saved: step {self._step} is saved already")
        wrong = [name for name, array in arrays.items() if np.shape(array)[:1] != (len(self.runs),)]
        if wrong:
            raise InputError(f"arrays must have a row for each of {len(self.runs)} runs: {', '.join(wrong)}")
        self.flush()
        with disk.guarded(self.store, f"saving step {step}"):
            about = {"step": step, "log": os.fstat(self._file).st_size, "meta": dict(meta)}
            about["crc"] = disk.checksum_of({name: np.asarray(array) for name, array in arrays.items()})
            force = [self.folder / "log.jsonl"]
            if self._step is None:  # from now on there is something to lose: whose it is must outlast a power cut
                force += [self.folder / "group.json", *(self.store / run / "run.json" for run in self.runs)]
            disk.write_arrays(_place(self.folder, step), arrays, about, force)
            for old in _checkpoints(self.folder)[KEPT:]:
                old.unlink()
        self._step = step

    def latest(self) -> Checkpoint | None:
        """The latest checkpoint; None if there is none."""
        return None if self._step is None else load(self.folder, self._step)

    def finish(self, row: int, summary: Mapping[str, object], weights: Arrays | None = None) -> None:
        """Put one run on record as finished, with its log so far; it will not be computed again."""
        self.finish_all({row: (summary, weights)})

    def finish_all(self, done: Mapping[int, tuple[Mapping[str, object], Arrays | None]]) -> None:
        """The same for several runs by their rows, quicker than one after the other."""
        self._commit({row: ({"summary": dict(summary)}, weights) for row, (summary, weights) in done.items()})

    def fail(self, row: int, message: str, step: int, weights: Arrays | None = None) -> None:
        """Put one run on record as failed, with its log so far; the others go on."""
        self._commit({row: ({"state": "failed", "message": message, "step": step}, weights)})

    def record(self, event: TrainEvent) -> None:
        """Put an event of these runs' training on record: its point, its checkpoint, and the runs that have ended."""
        if event.point is not None:
            self.log(event.point)
        self.flush_if_due()
        seconds = event.seconds_before + event.seconds
        if event.weights is not None:
            with disk.guarded(self.store, f"keeping the weights of step {event.step}"):
                about = {"step": event.step, **(event.net or {})}
                disk.write_arrays(_net_place(self.folder, event.step), event.weights, about, force=())
        if event.checkpoint is not None:
            self.save(event.step, event.checkpoint, {"seconds": seconds})
        share = {"seconds": seconds / event.members}
        ended: dict[int, Done] = {}
        for row, run in enumerate(event.runs):
            failure = {"state": "failed", "message": run.message, "step": int(run.last["broken"])}
            result = failure if run.state == "failed" else {"summary": dict(run.last)}
            ended[row] = ({**result, **share, **net_record(run.weights)}, run.weights.arrays)
        if ended:
            self._commit(ended)

    def _commit(self, done: Mapping[int, Done]) -> None:
        """A run is done when its result.json is there, and the files that it tells of are as long as it says."""
        twice = [self.runs[row] for row in done if row not in self._open]
        if twice:
            raise InputError(f"already on record: {', '.join(twice)}")
        self.flush()
        with disk.guarded(self.store, "writing results"):
            end = os.fstat(self._file).st_size
            self._parsed += disk.read_lines(self.folder / "log.jsonl", self._parsed_to, end)
            self._parsed_to = end
            last = self._parsed[-1] if self._parsed else {}
            written, snapshots = [], list(_snapshots(self.folder))
            for row, (outcome, weights) in done.items():
                place = self.store / self.runs[row]
                paths = [place / "log.jsonl"]
                files.write_text(paths[0], "".join(f"{encoding.line(line_of(x, row))}\n" for x in self._parsed))
                if weights is not None:
                    paths.append(place / "weights.safetensors")
                    disk.write_arrays(paths[1], weights, {"run": self.runs[row]})
                line = line_of(last, row)
                ended = max(line.get("broken", -1), line.get("stopped", -1))
                own = [saved for saved in snapshots if ended < 0 or saved.step <= ended]
                if own:
                    paths.append(place / CHECKPOINTS)
                    arrays = {name: np.stack([saved.arrays[name][row] for saved in own]) for name in own[0].arrays}
                    disk.write_arrays(
                        paths[-1], arrays, {"run": self.runs[row], "steps": [saved.step for saved in own]}
                    )
                result = {"state": "finished", "step": line.get("step"), "last": line, "ended": time.time()} | outcome
                result["files"] = {file.name: file.stat().st_size for file in paths}
                result["crc"] = {file.name: disk.checksum(file) for file in paths}
                files.write_text(place / "result.json", encoding.line(result))
                written += [*paths, place / "run.json", place / "result.json", place]
            files.settle(written)
        self._open -= set(done)
        if not self._open:
            self.close()

    def close(self) -> None:
        """Write the log out and let others work on what is not done."""
        if self._file < 0:
            return
        try:
            self.flush()
        finally:
            os.close(self._file)
            self._file = -1
            self._lock.release()
        if not self._open:
            self._leave(self.folder)

    def _working(self) -> None:
        if self._file < 0:
            raise StoreError(f"{self.folder.name} was closed: open its runs again")


def line_of(line: JsonObject, row: int) -> JsonObject:
    """Return the part of a line of a group's log that belongs to one run."""
    shared = {key: value for key, value in line.items() if key != EACH}
    return shared | {key: values[row] for key, values in line.get(EACH, {}).items()}


def create(folder: Path, runs: Sequence[str]) -> None:
    """A new group in place of one that nobody needs any more."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    files.write_text(folder / "group.json", encoding.line({"runs": list(runs)}))


def recover(folder: Path) -> tuple[int | None, int]:
    """The step of the latest checkpoint that can be gone on from, and the length of its log.

    Damaged ones are removed where an older one is whole; where none is, they are refused.
    """
    for rest in folder.glob(".*.partial"):
        rest.unlink()
    log = folder / "log.jsonl"
    size = log.stat().st_size if log.exists() else 0
    refusals: list[DamagedStore] = []
    checkpoints = _checkpoints(folder)
    for path in checkpoints:
        try:
            saved = disk.read_arrays(path)
            with disk.undamaged(path):
                assert saved is not None  # it was just listed
                step, length = saved[1]["step"], saved[1]["log"]
                disk.must(type(step) is int and _place(folder, step) == path and type(length) is int, "it is misnamed")
                disk.must(isinstance(saved[1]["meta"], dict), "the data about it are no table")
                rows = {array.shape[:1] for array in saved[0].values()} - {(len(runs_of(folder)),)}
                disk.must(not rows, "its arrays have other rows than its group has runs")
            with disk.undamaged(log):
                disk.must(0 <= length <= size, f"it has {size:,} bytes, {length:,} were written before step {step:,}")
        except DamagedStore as damage:
            refusals.append(damage)
            continue
        for damaged in checkpoints[: len(refusals)]:
            damaged.unlink()
        return step, length
    if refusals:
        raise refusals[0]
    return None, 0


def seconds_of(folder: Path) -> float:
    """Return the seconds of training behind the latest checkpoint of a group; 0 if there is none."""
    for path in _checkpoints(folder)[:1]:
        saved = disk.read_arrays(path, only_about=True)
        with disk.undamaged(path):
            return float(saved[1]["meta"].get("seconds", 0.0)) if saved else 0.0
    return 0.0


def load(folder: Path, step: int) -> Checkpoint:
    """A checkpoint that is known to be whole."""
    saved = disk.read_arrays(_place(folder, step))
    if saved is None:
        raise StoreError(f"{_place(folder, step)} is damaged")
    return Checkpoint(step, saved[0], saved[1]["meta"])


def split(source: Path, target: Path, chosen: Sequence[int], step: int, length: int) -> None:
    """A group of some rows of another one, at its checkpoint; `source` stays as it is."""
    runs = runs_of(source)
    partial = target.with_name(f".{target.name}.partial")
    create(partial, [runs[row] for row in chosen])
    lines = []
    for line in disk.read_lines(source / "log.jsonl", 0, length):
        each = {key: [values[row] for row in chosen] for key, values in line.get(EACH, {}).items()}
        lines.append(encoding.line(line | ({EACH: each} if each else {})) + "\n")
    text = "".join(lines)
    files.write_text(partial / "log.jsonl", text)
    saved = load(source, step)
    arrays = {name: array[list(chosen)] for name, array in saved.arrays.items()}
    about = {"step": step, "log": len(text.encode()), "meta": saved.meta}
    for snapshot in _snapshots(source):
        part = {name: array[list(chosen)] for name, array in snapshot.arrays.items()}
        disk.write_arrays(_net_place(partial, snapshot.step), part, snapshot.meta)
    disk.write_arrays(_place(partial, step), arrays, about, force=[partial / "log.jsonl", partial / "group.json"])
    if target.exists():
        shutil.rmtree(target)
    partial.rename(target)
    files.settle([target.parent])


def begun(folder: Path) -> bool:
    """Return True if there is a checkpoint; others may remove the folder at any moment."""
    try:
        return any(path.name.startswith("step-") for path in folder.iterdir())
    except FileNotFoundError:
        return False


def _place(folder: Path, step: int) -> Path:
    return folder / f"step-{step:012d}.safetensors"


def _net_place(folder: Path, step: int) -> Path:
    return folder / f"net-{step:012d}.safetensors"


def _snapshots(folder: Path) -> Iterator[Checkpoint]:
    """Yield the weights that the runs of a group have kept so far, in the order of their steps."""
    for path in sorted(folder.glob("net-*.safetensors")):
        saved = disk.read_arrays(path)
        if saved is not None:
            yield Checkpoint(int(saved[1]["step"]), saved[0], saved[1])


def saved_steps(folder: Path) -> list[int]:
    """Return the steps after which a group in training has kept the weights of its runs so far."""
    return sorted(int(path.stem.removeprefix("net-")) for path in folder.glob("net-*.safetensors"))


def saved_net(folder: Path, step: int, run: str) -> tuple[JsonObject, dict[str, Array]]:
    """Return what is known of the network of a run in training, and its arrays, after a step that it has kept."""
    path = _net_place(folder, step)
    about = disk.read_arrays(path, only_about=True)
    if about is None:
        raise StoreError(f"{path} is not there any more: the run may be done by now")
    return about[1], disk.read_row(path, runs_of(folder).index(run))


def net_record(weights: Weights[Any]) -> JsonObject:
    """Return what is recorded of a network beside its arrays: its architecture, and what is not in them."""
    return {"net": to_json(weights.architecture), "outside": weights.about.get("outside")}


def _checkpoints(folder: Path) -> list[Path]:
    """The latest first."""
    return sorted(folder.glob("step-*.safetensors"), reverse=True)
