"""Runs that step together: one log, one checkpoint and one lock for all of them.

    groups/<hash of the run ids>/
        group.json              the ids, in the order of the rows of every array
        log.jsonl               {"step": 10, "each": {"loss": [0.31, 0.29, …]}}: a value for each run, or one for all
        step-<n>.safetensors    arrays [run, …] and how long the log was then; the last two are kept
        lock                    held by the process that works on the group

A checkpoint remembers how many bytes of the log were there before it. Going on from it cuts the log at that byte, so
that what is logged again stands there once. A checkpoint that is not whole, or that the log is too short for, is passed
over for the one before.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from vitrify.errors import InputError, StoreError
from vitrify.learn import _disk

KEPT = 2  # checkpoints
SECONDS, LARGEST = 0.5, 1 << 20  # the log is written out after so long, or so many bytes
EACH = "each"  # the key of what differs between the runs of a group

Done = tuple[dict[str, Any], Mapping[str, Any] | None]  # what result.json is to hold, and the weights


class Checkpoint(NamedTuple):
    """Where a run can go on from."""

    step: int
    arrays: dict[str, Any]
    meta: dict[str, Any]


class Group:
    """Runs that are being worked on here; row i of every array belongs to `runs[i]`, the `numbers[i]`-th asked for.

    Use it in a `with` statement, or close it: until then nobody else can work on these runs.
    """

    def __init__(self, store: Path, folder: Path, places: Mapping[str, int], leave: Callable[[Path], None]) -> None:
        """Go on from the latest checkpoint that is whole; `leave` removes the folder when every run is done."""
        self.store, self.folder, self.runs = store, folder, runs_of(folder)
        self.numbers = tuple(places[run] for run in self.runs)
        self._leave = leave
        with ExitStack() as undo:
            self._lock = undo.enter_context(_disk.Lock(folder / "lock", wait=False))
            self._step, length = recover(folder)
            self._file = os.open(folder / "log.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            os.ftruncate(self._file, length)
            undo.pop_all()
        self._lines: list[str] = []
        self._pending = bytearray()
        self._size, self._flushed = 0, time.monotonic()
        self._open: set[int] = set(range(len(self.runs)))
        self._parsed: list[dict[str, Any]] = []
        self._parsed_to = 0

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"Group({self.folder.name}: {len(self)} runs, {len(self._open)} to do, step {self._step})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def step(self) -> int | None:
        """The step of the latest checkpoint; None if there is none yet."""
        return self._step

    def log(self, values: Mapping[str, Any]) -> None:
        """Add a line to the log: arrays [run, …] hold a value for each run, anything else is the same for all."""
        shared: dict[str, Any] = {}
        each: dict[str, Any] = {}
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

    def add(self, line: dict[str, Any]) -> None:
        """Add a line to the log as it is: a value for all, or under "each" a list with one for each run."""
        self._working()
        try:
            text = _disk.encode(line)
        except TypeError:  # numbers of NumPy or JAX somewhere inside
            text = _disk.encode(_disk.plain(line))
        self._lines.append(text)
        self._size += len(text)
        self.breathe()

    def breathe(self) -> None:
        """Write the log out if that is due: who trains calls it now and then, so that others see how far it is."""
        if self._lines and (self._size > LARGEST or time.monotonic() - self._flushed > SECONDS):
            self.flush()

    def lines(self) -> list[dict[str, Any]]:
        """The log so far: what is the same for all, and lists with a value for each run."""
        self.flush()
        found = _disk.read_lines(self.folder / "log.jsonl")
        return [{key: value for key, value in line.items() if key != EACH} | line.get(EACH, {}) for line in found]

    def flush(self) -> None:
        """Write the log out, so that others can read it (`save` also forces it to the disk)."""
        self._working()
        if self._lines:
            self._pending += "\n".join([*self._lines, ""]).encode()
            self._lines.clear()
        self._size, self._flushed = 0, time.monotonic()
        with _disk.guarded(self.store, "writing a log"):
            _disk.append(self._file, self._pending)

    def save(self, step: int, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Keep arrays [run, …] and JSON data as the state after a step, in one go with the log up to here."""
        if self._step is not None and step < self._step:
            raise InputError(f"step {step} can't be saved: step {self._step} is saved already")
        wrong = [name for name, array in arrays.items() if np.shape(array)[:1] != (len(self.runs),)]
        if wrong:
            raise InputError(f"arrays must have a row for each of {len(self.runs)} runs: {', '.join(wrong)}")
        self.flush()
        with _disk.guarded(self.store, f"saving step {step}"):
            about = {"step": step, "log": os.fstat(self._file).st_size, "meta": _disk.plain(meta)}
            force = [self.folder / "log.jsonl"]
            if self._step is None:  # from now on there is something to lose: whose it is must outlast a power cut
                force += [self.folder / "group.json", *(self.store / run / "run.json" for run in self.runs)]
            _disk.write_arrays(_place(self.folder, step), arrays, about, force)
            for old in _checkpoints(self.folder)[KEPT:]:
                old.unlink()
        self._step = step

    def latest(self) -> Checkpoint | None:
        """The latest checkpoint; None if there is none."""
        if self._step is None:
            return None
        return load(self.folder, self._step)

    def finish(self, row: int, summary: Mapping[str, Any], weights: Mapping[str, Any] | None = None) -> None:
        """Put one run on record as finished, with its log so far; it will not be computed again."""
        self.finish_all({row: (summary, weights)})

    def finish_all(self, done: Mapping[int, tuple[Mapping[str, Any], Mapping[str, Any] | None]]) -> None:
        """The same for several runs by their rows, quicker than one after the other."""
        self._commit({row: ({"summary": _disk.plain(said)}, weights) for row, (said, weights) in done.items()})

    def fail(self, row: int, message: str, step: int) -> None:
        """Put one run on record as failed, with its log so far; the others go on."""
        self._commit({row: ({"state": "failed", "message": message, "step": step}, None)})

    def _commit(self, done: Mapping[int, Done]) -> None:
        """A run is done when its result.json is there, and the files that it tells of are as long as it says."""
        twice = [self.runs[row] for row in done if row not in self._open]
        if twice:
            raise InputError(f"already on record: {', '.join(twice)}")
        self.flush()
        with _disk.guarded(self.store, "writing results"):
            end = os.fstat(self._file).st_size
            self._parsed += _disk.read_lines(self.folder / "log.jsonl", self._parsed_to, end)
            self._parsed_to = end
            last = self._parsed[-1] if self._parsed else {}
            written = []
            for row, (said, weights) in done.items():
                place = self.store / self.runs[row]
                files = [place / "log.jsonl"]
                _disk.write_text(files[0], "".join(f"{_disk.encode(line_of(x, row))}\n" for x in self._parsed))
                if weights is not None:
                    files.append(place / "weights.safetensors")
                    _disk.write_arrays(files[1], weights, {"run": self.runs[row]})
                line = line_of(last, row)
                result = {"state": "finished", "step": line.get("step"), "last": line, "ended": time.time()} | said
                result["files"] = {file.name: file.stat().st_size for file in files}
                _disk.write_text(place / "result.json", _disk.encode(result))
                written += [*files, place / "run.json", place / "result.json", place]
            _disk.settle(written)
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


def line_of(line: Mapping[str, Any], row: int) -> dict[str, Any]:
    """What a line of a group's log says about one run."""
    shared = {key: value for key, value in line.items() if key != EACH}
    return shared | {key: values[row] for key, values in line.get(EACH, {}).items()}


def runs_of(folder: Path) -> tuple[str, ...]:
    """The runs of a group, in the order of its rows; none if there is no such group."""
    return tuple((_disk.read_json(folder / "group.json") or {}).get("runs", ()))


def result_of(place: Path) -> dict[str, Any] | None:
    """What came of a run, from its folder; None if it is not done, or a power cut took a part of it."""
    result = _disk.read_json(place / "result.json")
    if result is None:
        return None
    sizes = {name: (place / name).stat().st_size if (place / name).exists() else None for name in result["files"]}
    return result if sizes == result["files"] else None


def create(folder: Path, runs: Sequence[str]) -> None:
    """A new group in place of one that nobody needs any more."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    _disk.write_text(folder / "group.json", _disk.encode({"runs": list(runs)}))


def recover(folder: Path) -> tuple[int | None, int]:
    """The step of the latest checkpoint that can be gone on from, and the length of its log; others are removed."""
    for rest in folder.glob(".*.partial"):
        rest.unlink()
    log = folder / "log.jsonl"
    size = log.stat().st_size if log.exists() else 0
    for path in _checkpoints(folder):
        found = _disk.read_arrays(path, only_about=True)
        if found and found[1]["log"] <= size:
            return int(found[1]["step"]), int(found[1]["log"])
        path.unlink()
    return None, 0


def load(folder: Path, step: int) -> Checkpoint:
    """A checkpoint that is known to be whole."""
    found = _disk.read_arrays(_place(folder, step))
    if found is None:
        raise StoreError(f"{_place(folder, step)} is damaged")
    return Checkpoint(step, found[0], found[1]["meta"])


def split(source: Path, target: Path, chosen: Sequence[int], step: int, length: int) -> None:
    """A group of some rows of another one, at its checkpoint; `source` stays as it is."""
    runs = runs_of(source)
    partial = target.with_name(f".{target.name}.partial")
    create(partial, [runs[row] for row in chosen])
    lines = []
    for line in _disk.read_lines(source / "log.jsonl", 0, length):
        each = {key: [values[row] for row in chosen] for key, values in line.get(EACH, {}).items()}
        lines.append(_disk.encode(line | ({EACH: each} if each else {})) + "\n")
    text = "".join(lines)
    _disk.write_text(partial / "log.jsonl", text)
    saved = load(source, step)
    arrays = {name: array[list(chosen)] for name, array in saved.arrays.items()}
    about = {"step": step, "log": len(text.encode()), "meta": saved.meta}
    _disk.write_arrays(_place(partial, step), arrays, about, force=[partial / "log.jsonl", partial / "group.json"])
    if target.exists():
        shutil.rmtree(target)
    partial.rename(target)
    _disk.settle([target.parent])


def begun(folder: Path) -> bool:
    """Whether there is a checkpoint; the folder may be removed by others at any moment."""
    try:
        return any(path.name.startswith("step-") for path in folder.iterdir())
    except FileNotFoundError:
        return False


def _place(folder: Path, step: int) -> Path:
    return folder / f"step-{step:012d}.safetensors"


def _checkpoints(folder: Path) -> list[Path]:
    """The latest first."""
    return sorted(folder.glob("step-*.safetensors"), reverse=True)
