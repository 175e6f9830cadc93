"""Records of runs, the index that caches them, and queries.

The folder is the truth. The index holds the records of runs that are done, under the time their folder last changed; it
is brought up to date by whoever reads, never by those who train: nobody waits for it, and nothing is lost with it.
"""

from __future__ import annotations

import operator
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from vitrify import encoding
from vitrify.encoding import Json, JsonObject
from vitrify.errors import DamagedStore, InputError, StoreError
from vitrify.files import Lock
from vitrify.learn import disk, groups, stored
from vitrify.learn.runs import Identity

SETTLED = 2_000_000_000  # ns: a folder that changed later than this may change again within one tick of its clock
SAME = ("code", "version")  # parts of an identity that are no axis
Compare = Callable[[Any, Any], bool]
SIGNS: dict[str, Compare] = {"!=": operator.ne, "<=": operator.le, ">=": operator.ge}
SIGNS |= {"=": operator.eq, "<": operator.lt, ">": operator.gt}


@dataclass(frozen=True)
class Record:
    """One run: its identity and state; `values` are its summary or, before it is done, the last line of its log."""

    id: str
    state: str
    step: int | None
    identity: Identity
    values: JsonObject
    group: str
    started: float
    ended: float | None = None
    message: str | None = None
    seconds: float = 0.0  # its share of the training of those it stepped with

    @property
    def done(self) -> bool:
        """True if it has finished or failed."""
        return self.ended is not None

    @cached_property
    def flat(self) -> JsonObject:
        """Everything by one name: `{"sandbox": {"name": "markov", "p": 0.2}}` gives `sandbox` and `sandbox.p`."""
        known = {"id": self.id, "state": self.state, "step": self.step, **_flattened(self.identity)}
        return known | {key: value for key, value in _flattened(self.values).items() if key not in known}

    def to_json(self) -> JsonObject:
        """Its fields as JSON data."""
        return asdict(self)

    @classmethod
    def read(cls, store: Path, run: str, last: Callable[[Path], JsonObject | None] = disk.last_line) -> Record | None:
        """The record of a run from its folder; None if there is none."""
        known = stored.known_of(store / run)
        if known is None:
            return None
        begun = {"id": run, "identity": known["identity"], "group": known["group"], "started": known["started"]}
        folder = store / "groups" / known["group"]
        runs = stored.runs_of(folder)
        result = (stored.intact_result if run in runs else stored.result_of)(store / run)
        if result is not None:
            outcome = {"values": result["last"] | result.get("summary", {}), "message": result.get("message")}
            outcome |= {"ended": result["ended"], "seconds": result.get("seconds", 0.0)}  # not in old stores
            return cls(**begun, **outcome, state=result["state"], step=result["step"])
        line = last(folder / "log.jsonl") if run in runs else None
        with disk.undamaged(folder / "log.jsonl"):
            values = groups.line_of(line, runs.index(run)) if line else {}
        running = Lock.holder(folder / "lock")
        state = "running" if running else "partial" if groups.begun(folder) else "new"
        if not running and stored.intact_result(store / run):  # done, since we asked
            return cls.read(store, run, last)
        return cls(**begun, state=state, step=values.get("step"), values=values, message=running)


def _flattened(data: Identity, before: str = "") -> JsonObject:
    flat: JsonObject = {}
    for key, value in data.items():
        name = before if before and key == "name" else f"{before}.{key}" if before else key
        flat |= _flattened(value, name) if isinstance(value, Mapping) else {name: value}
    return flat


def _cached_record(text: str) -> Record | None:
    """Return a record of the index; None if that is damaged."""
    try:
        record = Record(**encoding.parsed(text))
        rows([record])
    except disk.DAMAGE:
        return None
    return record


class Index:
    """Records of a store that need not be read again, in SQLite."""

    def __init__(self, store: Path) -> None:
        self.store, self.file = store, store / "index.sqlite"
        self.damaged: dict[str, str] = {}  # the runs that `records` found to be damaged: name and message

    def records(self) -> list[Record]:
        """Every run of the store, the first begun first."""
        if not self.store.is_dir():
            raise StoreError(f"there is no run store {self.store}: name one with '--store' or VITRIFY_STORE")
        if not disk.is_store(self.store) and any(self.store.iterdir()):
            raise StoreError(f"{self.store} is not a run store: name one with '--store' or VITRIFY_STORE")
        with disk.guarded(self.store, "reading runs"):
            return self._read()

    def _read(self) -> list[Record]:
        cached = self._cached()
        records: list[Record] = []
        learnt: list[tuple[str, int, str]] = []
        last = cache(disk.last_line)  # runs of a group share a log
        for place in self.store.iterdir():
            if not disk.NAME.fullmatch(place.name):
                continue
            changed, now = place.stat().st_mtime_ns, time.time_ns()
            stamp, text = cached.pop(place.name, (0, ""))
            if stamp == changed and (known := _cached_record(text)):
                records.append(known)
                continue
            try:
                record = Record.read(self.store, place.name, last)
                if record is None and any(not each.name.startswith(".") for each in place.iterdir()):
                    raise DamagedStore(f"{place / 'run.json'} is missing: nothing says which run this is")
            except DamagedStore as damage:
                self.damaged[place.name] = str(damage)
                continue
            if record is None:
                continue
            records.append(record)
            if record.done and now - changed > SETTLED:
                learnt.append((record.id, changed, encoding.line(record.to_json())))
        if learnt or cached:
            self._learn(learnt, cached)
        return sorted(records, key=lambda record: (record.started, record.id))

    def _cached(self) -> dict[str, tuple[int, str]]:
        """Return the records of the index; none if it is missing or damaged."""
        if not self.file.exists():
            return {}
        try:
            with closing(self._connect()) as index:
                return {run: (stamp, text) for run, stamp, text in index.execute("SELECT id, stamp, record FROM runs")}
        except sqlite3.OperationalError:  # not ours to read just now
            return {}
        except sqlite3.DatabaseError:
            self.forget()
            return {}

    def _learn(self, learnt: Sequence[tuple[str, int, str]], gone: Iterable[str]) -> None:
        """Keep what was read; an index that can't be written is done without."""
        try:
            with closing(self._connect()) as index, index:
                index.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", learnt)
                index.executemany("DELETE FROM runs WHERE id = ?", [(run,) for run in gone])
        except (sqlite3.Error, OSError):
            return

    def _connect(self) -> sqlite3.Connection:
        index = sqlite3.connect(self.file, timeout=5)
        index.execute("PRAGMA journal_mode=WAL")
        index.execute("CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, stamp INTEGER, record TEXT)")
        return index

    def forget(self) -> None:
        """Remove the index."""
        for ending in ("", "-wal", "-shm"):
            self.file.with_name(self.file.name + ending).unlink(missing_ok=True)


def matching(records: Sequence[Record], query: str) -> list[Record]:
    """The records that fulfil every word of a query: `key=value`, `!=`, `<`, `<=`, `>`, `>=`, or a word found in them.

    Keys are those of `Record.flat`, or their last parts (`p` for `sandbox.p`).
    """
    chosen = list(records)
    for word in query.split():
        parts = re.fullmatch(r"([^<>=!]+)(!=|<=|>=|=|<|>)(.*)", word)
        if not parts:
            chosen = [record for record in chosen if _mentions(record, word)]
            continue
        key, sign, value = parts.groups()
        names = {name for record in records for name in record.flat}
        matched = {key} & names or {name for name in names if name.rsplit(".", 1)[-1] == key}
        if not matched and records:
            near = get_close_matches(key, sorted(names), n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(names))}"
            raise InputError(f"no run has a value {key!r}: {hint}")
        holds = SIGNS[sign]
        chosen = [
            record
            for record in chosen
            if any(name in record.flat and _compares(record.flat[name], value, sign, holds) for name in matched)
        ]
    return chosen


def _mentions(record: Record, word: str) -> bool:
    if record.id.startswith(word):
        return True
    texts = (value for key, value in record.flat.items() if isinstance(value, str) and key != "id")
    return any(word.lower() in text.lower() for text in texts)


def _compares(value: Json, text: str, sign: str, holds: Compare) -> bool:
    if isinstance(value, bool) or value is None or isinstance(value, list):
        value = encoding.line(value)
    try:
        return holds(float(str(value)), float(text))
    except ValueError:
        return sign in ("=", "!=") and holds(str(value), text)


def axes(records: Sequence[Record]) -> list[str]:
    """The parts of the identities that differ between records, by name; what runs and on what are not among them.

    Of parts that always have the same value, only the first is one.
    """
    flats = [_flattened(record.identity) for record in records]
    names = dict.fromkeys(name for flat in flats for name in flat if name not in ("sandbox", "model", *SAME))
    first: dict[tuple[str, ...], str] = {}
    for name in names:
        first.setdefault(tuple(encoding.line(flat.get(name)) for flat in flats), name)
    return [name for column, name in first.items() if len(set(column)) > 1]


def combinations(records: Sequence[Record]) -> tuple[list[str], dict[tuple[str, ...], list[Record]]]:
    """Return the axes that are no seeds, and the records of each combination of their values, floats by six digits."""
    names = [axis for axis in axes(records) if axis not in ("seed", "data_seed")]
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        values = (record.flat.get(axis) for axis in names)
        key = tuple(f"{value:.6g}" if isinstance(value, float) else str(value) for value in values)
        groups.setdefault(key, []).append(record)
    return names, groups


def rows(records: Sequence[Record]) -> tuple[list[str], list[list[Json]]]:
    """A table of records: what runs, what differs, how far it is, and how near to the best possible loss."""
    varied = axes(records)
    columns = ["id", "sandbox", "model", *varied, "state", "step", "loss", "floor", "excess"]
    table = []
    for record in records:
        known = dict(record.flat)
        loss, floor = known.get("loss"), known.get("floor")
        if isinstance(loss, float) and isinstance(floor, float):
            known.setdefault("excess", loss - floor)
        table.append([known.get(column) for column in columns])
    return columns, table
