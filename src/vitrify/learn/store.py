"""The run store: a folder in which every run has its own, named by what was run.

    store.json                  says that this is a run store
    <id>/run.json                 what the run is: its identity, and the group that works on it
    <id>/log.jsonl                its log, one JSON object a line                       ┐
    <id>/weights.safetensors      what it has learned                                   │ when it is done
    <id>/checkpoints.safetensors  its weights at the steps that the recipe keeps        │
    <id>/result.json              finished or failed, the last words, the architecture  ┘
    groups/<hash of ids>/         runs that step together, while they do (`groups.py`)
    index.sqlite                  what has been read of the above; delete it at will

The id is a hash of the identity, so the same run is the same folder whoever asks for it and together with what else:
`open_many` hands back what is finished, goes on with what has been begun, and begins the rest. A run that is not done
belongs to one group, and a group to the process that holds its lock; the system lets go of the locks of a process that
dies. Who owns what is settled under one more lock, of the store, which is held for moments only.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from vitrify import encoding
from vitrify.arrays import Array, Arrays
from vitrify.encoding import JsonObject
from vitrify.errors import DamagedStore, InputError, StoreError
from vitrify.files import Lock, write_text
from vitrify.learn import disk, groups, stored
from vitrify.learn.disk import Closing
from vitrify.learn.groups import Checkpoint, RunGroup
from vitrify.learn.records import Index, Record, matching
from vitrify.learn.runs import Identity, Run, canonical, digest, run_id
from vitrify.net.architecture import Architecture, from_json
from vitrify.net.weights import Weights

REPAIR = "'vitrify runs --repair' moves what is damaged aside"
FOLDER = "runs"  # the default, below the current folder


class RunWriter(Closing):
    """One run: what is known about it and, if it is here to be worked on, the means to do so.

    `state` is "new", "partial" (there is a checkpoint), "finished", "failed", or "running" (elsewhere).
    """

    def __init__(self, record: Record, group: RunGroup | None) -> None:
        self.id, self.state, self.record = record.id, record.state, record
        self._group = group

    def __repr__(self) -> str:
        return f"RunWriter({self.id}: {self.state})"

    @property
    def group(self) -> RunGroup:
        """The group of this one run."""
        if self._group is None:
            who = f" ({self.record.message})" if self.record.message else ""
            raise StoreError(f"run {self.id} is {self.state}{who}: there is nothing to write")
        return self._group

    def log(self, values: Mapping[str, object]) -> None:
        """Add a line to the log; it is written out at checkpoints, at the end, and about every second."""
        self.group.add(dict(values))

    def save(self, step: int, arrays: Arrays, meta: Mapping[str, object]) -> None:
        """Keep arrays and JSON data as the state after a step."""
        self.group.save(step, {name: np.asarray(array)[None] for name, array in arrays.items()}, meta)

    def latest(self) -> Checkpoint | None:
        """The latest checkpoint; None if there is none."""
        checkpoint = self.group.latest()
        return checkpoint and checkpoint._replace(arrays={name: array[0] for name, array in checkpoint.arrays.items()})

    def finish(self, summary: Mapping[str, object], weights: Arrays | None = None) -> None:
        """Put the run on record as finished."""
        self.group.finish(0, summary, weights)
        self.state = "finished"

    def fail(self, message: str, step: int) -> None:
        """Put the run on record as failed."""
        self.group.fail(0, message, step)
        self.state = "failed"

    def close(self) -> None:
        """Let others work on it."""
        if self._group is not None:
            self._group.close()


@dataclass(frozen=True)
class Opened(Closing):
    """Opened runs: a record for every run, in the order requested, and the groups that are to be trained."""

    records: tuple[Record, ...]
    groups: tuple[RunGroup, ...]

    def close(self) -> None:
        """Let others work on what is not done."""
        for group in self.groups:
            group.close()


class RunStore:
    """A run store; the folder is made when something is first written to it."""

    def __init__(self, path: Path | str | None = None) -> None:
        """The store at a path; without one, the folder named by VITRIFY_STORE, or `runs` in the current folder."""
        self.path = Path(path if path is not None else os.environ.get("VITRIFY_STORE") or FOLDER)
        self._swept = False
        self.unreadable: dict[str, str] = {}  # runs that the last listing left out as damaged, and why

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def open(self, identity: Identity, *, retry: bool = False) -> RunWriter:
        """One run, to be worked on unless it is finished, has failed (without `retry`) or runs elsewhere."""
        opened = self.open_many([identity], retry=retry)
        return RunWriter(opened.records[0], opened.groups[0] if opened.groups else None)

    def open_many(self, identities: Sequence[Identity], *, retry: bool = False) -> Opened:
        """Many runs that are to step together.

        Those that have no checkpoint yet form one group; those that have go on in the groups that they were in, or in
        a part of it if only a part is asked for. What another process works on is left to it.
        """
        ids = [run_id(identity) for identity in identities]
        if len(set(ids)) < len(ids):
            again = next(i for n, i in zip(ids, identities, strict=True) if ids.count(n) > 1)
            raise InputError(f"the same run is asked for twice: {again}")
        made: list[RunGroup] = []
        with disk.guarded(self.path, "opening runs"), self.locked():
            if not self._swept:
                self._sweep()
            try:
                self._divide(dict(zip(ids, identities, strict=True)), retry, made)
            except BaseException:
                for group in made:
                    group.close()
                raise
            ours = {run: "new" if group.step is None else "partial" for group in made for run in group.runs}
            records = tuple(self._record(run, ours.get(run)) for run in ids)
        return Opened(records, tuple(made))

    def _divide(self, requested: dict[str, Identity], retry: bool, made: list[RunGroup]) -> None:
        """Make the groups of what is to be done; the store is locked."""
        places = {run: number for number, run in enumerate(requested)}
        fresh: list[str] = []
        left: list[Path] = []
        begun: dict[str, list[str]] = {}
        for run, identity in requested.items():
            owner = self._owner(run, identity)
            if owner:
                begun.setdefault(owner, []).append(run)
            else:
                undone, again = self._to_do([run], retry, stored.result_of)
                fresh += undone + again
        for owner, runs in begun.items():
            folder = self._group(owner)
            try:
                with Lock(folder / "lock", wait=False):
                    runs, again = self._to_do(runs, retry, stored.intact_result)
                    fresh += again
                    step, length = groups.recover(folder)
                    if step is None:
                        fresh += runs
                        left.append(folder)
                        continue
                    part = self._part(folder, runs, step, length) if runs else None
            except BlockingIOError:
                continue
            if part and part != folder:
                self._claim(runs, requested, part)
            left.append(folder)
            if part:
                made.append(RunGroup(self.path, part, places, self._leave))
        if fresh:
            folder = self._unheld(fresh)
            groups.create(folder, sorted(fresh, key=places.__getitem__))
            self._claim(fresh, requested, folder)
            made.append(RunGroup(self.path, folder, places, self._leave))
        for folder in left:
            self._clear(folder)

    def _to_do(
        self, runs: Sequence[str], retry: bool, result_of: Callable[[Path], JsonObject | None]
    ) -> tuple[list[str], list[str]]:
        """Return the runs that are not done, and the failed ones to start again; nobody may be training them.

        A damaged result is refused, unless a group can compute it again from its checkpoint.
        """
        results = {run: result_of(self.path / run) for run in runs}
        undone = [run for run, result in results.items() if not result]
        again = [run for run, result in results.items() if retry and result and result["state"] == "failed"]
        for run in undone + again:
            (self.path / run / "result.json").unlink(missing_ok=True)  # of a failure, or what a power cut left of it
        return undone, again

    def _part(self, folder: Path, runs: Sequence[str], step: int, length: int) -> Path:
        """The group of some runs of a group: itself if these are all, or a new one, cut out of it."""
        members = stored.runs_of(folder)
        if set(runs) == set(members):
            return folder
        part = self._unheld(runs)
        groups.split(folder, part, [row for row, run in enumerate(members) if run in runs], step, length)
        return part

    def _group(self, name: str) -> Path:
        return self.path / "groups" / name

    def _owner(self, run: str, identity: Identity) -> str | None:
        """The group that a run belongs to, if there still is one."""
        known = stored.known_of(self.path / run)
        if known is None:
            if stored.result_of(self.path / run):
                raise DamagedStore(f"{self.path / run / 'run.json'} is missing: {REPAIR}")
            return None
        if canonical(known["identity"]) != canonical(identity):
            raise StoreError(f"{self.path / run} holds another run of the same name: use another store")
        owner = str(known["group"])
        return owner if run in stored.runs_of(self._group(owner)) else None

    def _claim(self, runs: Sequence[str], requested: Mapping[str, Identity], folder: Path) -> None:
        for run in runs:
            place = self.path / run
            place.mkdir(exist_ok=True)
            before = stored.known_of(place) or {}
            data = {"identity": requested[run], "group": folder.name, "started": before.get("started", time.time())}
            write_text(place / "run.json", encoding.line(data))

    def _unheld(self, runs: Sequence[str]) -> Path:
        """The place of a new group of runs; an old one there must not be in use."""
        folder = self._group(digest(canonical(sorted(runs))))
        holder = Lock.holder(folder / "lock")
        if holder:
            raise StoreError(f"{folder} is still held by {holder}: close it first")
        return folder

    def _leave(self, folder: Path) -> None:
        """Remove a group whose runs are done."""
        with disk.guarded(self.path, "removing a group"), self.locked():
            self._clear(folder)

    def _clear(self, folder: Path) -> None:
        """Remove a group if nobody works on it and no run that is not done belongs to it; the store is locked."""
        if not folder.exists() or Lock.holder(folder / "lock"):
            return
        try:
            for run in stored.runs_of(folder):
                known = stored.known_of(self.path / run)
                if known and known["group"] == folder.name and not stored.result_of(self.path / run):
                    return
        except DamagedStore:
            return  # it may be needed to compute a run again
        shutil.rmtree(folder)

    def _sweep(self) -> None:
        """Remove what processes that were killed have left of groups; the store is locked."""
        for folder in (self.path / "groups").glob("*"):
            if folder.name.startswith("."):
                shutil.rmtree(folder)
            else:
                self._clear(folder)
        self._swept = True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the store; a folder that holds something else is left alone."""
        if not disk.is_store(self.path):
            full = self.path.is_dir() and any(not place.name.startswith(".") for place in self.path.iterdir())
            if full and not disk.is_store(self.path):  # asked again: it may just have been made
                raise StoreError(f"{self.path} is not a run store, and not empty: name another folder")
            self.path.mkdir(parents=True, exist_ok=True)
        lock = Lock(self.path / ".lock", wait=True)
        try:
            if not (self.path / "store.json").exists():
                write_text(self.path / "store.json", encoding.line(disk.FORMAT))
            yield
        finally:
            lock.release()

    def _record(self, run: str, state: str | None = None) -> Record:
        record = Record.read(self.path, run)
        if record is None:
            raise DamagedStore(f"{self.path / run / 'run.json'} is missing: {REPAIR}")
        return replace(record, state=state) if state else record

    def runs(self, query: str = "") -> list[Record]:
        """The runs that a query asks for (see `records.matching`), the first begun first."""
        index = Index(self.path)
        records = index.records()
        self.unreadable = index.damaged
        return matching(records, query)

    def rebuild(self) -> None:
        """Forget the index, and read the folder again; groups that nobody needs any more are removed."""
        with disk.guarded(self.path, "rebuilding the index"), self.locked():
            self._sweep()
            Index(self.path).forget()
        Index(self.path).records()

    def curve(self, record: Record) -> list[JsonObject]:
        """The log of a run, as far as it is written out."""
        return next(self.curves([record]))[1]

    def curves(
        self, records: Iterable[Record], read: Callable[[Path], list[JsonObject]] = disk.read_lines
    ) -> Iterator[tuple[Record, list[JsonObject]]]:
        """The logs of runs, as far as they are written out; `read` reads one, whole lines only."""
        shared = cache(lambda folder: (stored.runs_of(folder), read(folder / "log.jsonl")))
        for record in records:
            if record.done:
                yield record, read(self.path / record.id / "log.jsonl")
                continue
            folder = self._group(record.group)
            runs, lines = shared(folder)
            with disk.undamaged(folder / "log.jsonl"):
                own = [groups.line_of(line, runs.index(record.id)) for line in lines if record.id in runs]
            yield record, own

    def run(self, record: Record, architecture: Architecture) -> Run:
        """Return a run that has ended, with its curve and its weights; `architecture` is the net that was trained."""
        curve = []
        for line in self.curve(record):
            curve.append(line)
            if max(line.get("broken", -1), line.get("stopped", -1)) >= 0:
                break  # what follows are measurements of runs beside it
        return Run(
            record.identity, curve, Weights(architecture, self.weights(record), about={"trained": record.identity})
        )

    def seconds(self) -> float:
        """Return the seconds of training that went into the runs of this store, up to their latest checkpoints."""
        records = self.runs() if self.path.is_dir() else []
        growing = {record.group for record in records if not record.done}
        return sum(record.seconds for record in records) + sum(groups.seconds_of(self._group(one)) for one in growing)

    def weights(self, record: Record) -> dict[str, Array]:
        """Return the arrays of a run that has ended."""
        saved = disk.read_arrays(self.path / record.id / "weights.safetensors")
        if saved is None:
            raise StoreError(f"run {record.id} is {record.state} and holds no weights")
        return saved[0]

    def checkpoints(self, record: Record) -> list[int]:
        """Return the steps after which the weights of a run were kept; of one in training, those so far."""
        if not record.done:
            return groups.saved_steps(self._group(record.group))
        path = self.path / record.id / groups.CHECKPOINTS
        saved = disk.read_arrays(path, only_about=True)
        with disk.undamaged(path):
            return [] if saved is None else [int(step) for step in saved[1]["steps"]]

    def row(self, record: Record, step: int) -> int:
        """Return the number of the checkpoint of a step; a step without one is refused."""
        steps = self.checkpoints(record)
        if step not in steps:
            known = f"it has those of {', '.join(map(str, steps))}" if steps else "train it with --checkpoints N"
            raise InputError(f"run {record.id} has no checkpoint of step {step}: {known}")
        return steps.index(step)

    def net(self, record: Record, step: int | None = None) -> Weights[Any]:
        """Return the network of a run that has ended; with a step, as it was at that checkpoint, in training, too.

        Its numbers are those of the run in float64, the format in which built networks are stored and certified.
        """
        row = None if step is None else self.row(record, step)
        if record.done or step is None:
            result, arrays = stored.result_of(self.path / record.id) or {}, None
        else:
            result, arrays = groups.saved_net(self._group(record.group), step, record.id)
        if "net" not in result:
            steps = ", ".join(f"{record.id}@{step}" for step in self.checkpoints(record)[-3:])
            begun = f"it is {record.state}" + (f": name a checkpoint, as {steps}" if steps else "")
            reason = "its architecture is not recorded: train it again" if result else begun
            raise StoreError(f"run {record.id} holds no network that can be read: {reason}")
        if result.get("outside"):
            raise StoreError(f"run {record.id} is more than a network: {result['outside']}")
        if arrays is None and row is not None:
            arrays = disk.read_row(self.path / record.id / groups.CHECKPOINTS, row)
        arrays = self.weights(record) if arrays is None else arrays
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise StoreError(f"run {record.id} holds numbers that are not finite: {record.message or 'it diverged'}")
        about: JsonObject = {"source": "trained", "run": record.id, "step": record.step if step is None else step}
        with disk.undamaged(self.path / record.id / "result.json"):
            arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
            return Weights(from_json(result["net"]), arrays, about=about | dict(record.identity))
