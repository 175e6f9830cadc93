"""Looking on while runs are trained: a store is read again and again, and of its logs only what is new."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from vitrify.learn import _disk, groups
from vitrify.learn.records import Record
from vitrify.learn.store import Store

KEPT = 4096  # logs of runs that are done; they change no more


class Tail:
    """A log that grows: every look reads what was added. One that was cut or replaced is read from its beginning."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines = path, list[dict[str, Any]]()
        self._seen = (0, 0)  # the file, and how far it was read

    def look(self) -> list[dict[str, Any]]:
        """All whole lines; none if there is no such file any more."""
        try:
            with self.path.open("rb") as file:
                size, number = file.seek(0, 2), self.path.stat().st_ino
                if number != self._seen[0] or size < self._seen[1]:
                    self.lines, self._seen = [], (number, 0)
                file.seek(self._seen[1])
                added = file.read(size - self._seen[1])
        except FileNotFoundError:
            self.lines, self._seen = [], (0, 0)
            return self.lines
        whole = added.rfind(b"\n") + 1
        self.lines += [_disk.decode(line) for line in added[:whole].splitlines()]
        self._seen = (number, self._seen[1] + whole)
        return self.lines


class Follower:
    """One who looks on at a store; several threads may share it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._done: OrderedDict[tuple[str, float | None], list[dict[str, Any]]] = OrderedDict()
        self._tails: dict[str, Tail] = {}
        self._lock = Lock()

    def stamp(self) -> Hashable:
        """What changes whenever anything in the store does, and costs little: names, times, lengths, who holds what."""
        found: list[Hashable] = []
        for place in self._folders(self.store.path):
            if place.name != "groups":
                found.append((place.name, place.stat().st_mtime_ns))
        for place in self._folders(self.store.path / "groups"):
            log = Path(place.path, "log.jsonl")
            size = log.stat().st_size if log.exists() else -1
            found.append((place.name, place.stat().st_mtime_ns, size, _disk.Lock.holder(Path(place.path, "lock"))))
        return tuple(found)

    def _folders(self, path: Path) -> list[os.DirEntry[str]]:
        try:
            return [place for place in os.scandir(path) if place.is_dir()]
        except FileNotFoundError:
            return []

    def records(self, query: str = "") -> list[Record]:
        """The runs that a query asks for; of groups that are gone the logs are forgotten."""
        found = self.store.runs(query)
        with self._lock:
            for name in set(self._tails) - {record.group for record in found if not record.done}:
                if not (self.store.path / "groups" / name).exists():
                    del self._tails[name]
        return found

    def curves(self, records: Sequence[Record]) -> list[list[dict[str, Any]]]:
        """The logs of runs as far as they are written out.

        One that ended since its record was read has none, and is read at the next look.
        """
        with self._lock:
            growing: dict[str, tuple[dict[str, int], list[dict[str, Any]]]] = {}
            found = []
            for record in records:
                if record.done:
                    found.append(self._finished(record))
                    continue
                if record.group not in growing:
                    growing[record.group] = self._growing(record.group)
                rows, lines = growing[record.group]
                row = rows.get(record.id)
                found.append([] if row is None else [groups.line_of(line, row) for line in lines])
            return found

    def _finished(self, record: Record) -> list[dict[str, Any]]:
        key = record.id, record.ended
        if key not in self._done:
            self._done[key] = self.store.curve(record)
            while len(self._done) > KEPT:
                self._done.popitem(last=False)
        self._done.move_to_end(key)
        return self._done[key]

    def _growing(self, name: str) -> tuple[dict[str, int], list[dict[str, Any]]]:
        """The rows of a group's runs, and its log."""
        folder = self.store.path / "groups" / name
        tail = self._tails.setdefault(name, Tail(folder / "log.jsonl"))
        return {run: row for row, run in enumerate(groups.runs_of(folder))}, tail.look()
