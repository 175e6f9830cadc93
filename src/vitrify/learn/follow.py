"""Looking on while runs are trained: a store is read again and again, and of its logs only what is new."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock

from vitrify.encoding import JsonObject
from vitrify.files import Lock as FileLock
from vitrify.learn import disk
from vitrify.learn.records import Record
from vitrify.learn.store import RunStore

MAX_LOGS = 4096  # that are kept in memory, those that were looked at last


class Tail:
    """A log that grows: every look reads what was added. One that was cut or replaced is read from its beginning."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines = path, list[JsonObject]()
        self._seen = (0, 0)  # the file, and how far it was read

    def look(self) -> list[JsonObject]:
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
        end = added.rfind(b"\n") + 1
        self.lines += disk.lines_of(self.path, added[:end])
        self._seen = (number, self._seen[1] + end)
        return self.lines


class Follower:
    """One who looks on at a store; several threads may share it."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self._tail = lru_cache(MAX_LOGS)(Tail)
        self._lock = Lock()

    def stamp(self) -> Hashable:
        """Return a cheap value that changes whenever the store does: names, times, lengths, lock holders."""
        stamps: list[Hashable] = []
        for place in self._folders(self.store.path):
            if place.name != "groups":
                stamps.append((place.name, place.stat().st_mtime_ns))
        for place in self._folders(self.store.path / "groups"):
            log = Path(place.path, "log.jsonl")
            size = log.stat().st_size if log.exists() else -1
            stamps.append((place.name, place.stat().st_mtime_ns, size, FileLock.holder(Path(place.path, "lock"))))
        return tuple(stamps)

    def _folders(self, path: Path) -> list[os.DirEntry[str]]:
        try:
            return [place for place in os.scandir(path) if place.is_dir()]
        except FileNotFoundError:
            return []

    def curves(self, records: Sequence[Record]) -> list[list[JsonObject]]:
        """The logs of runs as far as they are written out.

        One that ended since its record was read has none, and is read at the next look.
        """
        with self._lock:
            return [lines for _, lines in self.store.curves(records, lambda path: self._tail(path).look())]
