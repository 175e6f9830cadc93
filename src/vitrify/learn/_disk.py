"""Files that are whole or absent: written beside their place and moved there, and errors of the disk as sentences.

Everything that a run store writes goes through here. A file is written as `.NAME.partial`, forced to the disk where
that matters, and then takes its place in one step; a reader never sees half of one. Logs are the exception: they grow
by whole lines, and a line without its end is not one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from vitrify.errors import StoreError

TRIES, PAUSE = 5, 0.005  # a lock may be held for a moment by somebody who only looks whether it is held
MANY = 16  # files: beyond, one `sync` of the system is quicker than forcing each of them
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_sorted = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True).encode

_MEND = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the quota of this disk is used up: free some space",
    errno.EFBIG: "a file may not grow that large here: raise the limit ('ulimit -f')",
    errno.EACCES: "no permission: make it writable, or name another store ('--store', VITRIFY_STORE)",
    errno.EPERM: "no permission: make it writable, or name another store ('--store', VITRIFY_STORE)",
    errno.EROFS: "the disk is read-only: name another store ('--store', VITRIFY_STORE)",
    errno.ENOTDIR: "a part of its path is a file: name another store ('--store', VITRIFY_STORE)",
    errno.EEXIST: "a file stands in its place: name another store ('--store', VITRIFY_STORE)",
}


@contextmanager
def guarded(store: Path, doing: str) -> Iterator[None]:
    """Turn what the system refuses into a `StoreError` that says what to mend and that nothing written is lost."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        mend = _MEND.get(_number(error), str(error))
        kept = "; what was written before is kept, and the same command goes on from there" if store.exists() else ""
        raise StoreError(f"the run store {store} failed while {doing}: {mend}{kept}") from error


def _number(error: Exception) -> int:
    """The system's number of an error; safetensors only tells it in its text."""
    if isinstance(error, OSError):
        return error.errno or 0
    _, found, rest = str(error).partition("(os error ")
    return int(rest.partition(")")[0]) if found else 0


def encode(data: Any) -> str:
    """JSON on one line; numbers that JSON does not have become the strings "NaN", "Infinity" and "-Infinity".

    Strings that say so themselves get a quote in front.

    >>> encode({"loss": math.nan, "said": "NaN"})
    '{"loss":"NaN","said":"\\'NaN"}'
    """
    try:
        text = _compact(data)
    except ValueError:
        return _compact(_spelled(data))
    return _compact(_spelled(data)) if 'NaN"' in text or 'Infinity"' in text else text


def canonical(data: Any) -> str:
    """The one text of JSON data: keys sorted, no blanks, no number that JSON does not have."""
    return _sorted(data)


def decode(text: bytes) -> Any:
    """What `encode` wrote."""
    data = json.loads(text)
    return _numbers(data) if b"NaN" in text or b"Infinity" in text else data


def _spelled(data: Any) -> Any:
    if isinstance(data, float) and not math.isfinite(data):
        return "NaN" if math.isnan(data) else "Infinity" if data > 0 else "-Infinity"
    if isinstance(data, str):
        return f"'{data}" if data.lstrip("'") in SPECIAL else data
    if isinstance(data, Mapping):
        return {key: _spelled(value) for key, value in data.items()}
    return [_spelled(value) for value in data] if isinstance(data, list | tuple) else data


def _numbers(data: Any) -> Any:
    if isinstance(data, str):
        return SPECIAL.get(data, data[1:] if data.startswith("'") and data.lstrip("'") in SPECIAL else data)
    if isinstance(data, dict):
        return {key: _numbers(value) for key, value in data.items()}
    return [_numbers(value) for value in data] if isinstance(data, list) else data


def plain(value: Any) -> Any:
    """A value as JSON data: arrays and their numbers become lists and numbers, deeply."""
    if value is None or isinstance(value, bool | int | float | str):
        return float(value) if isinstance(value, np.floating) else value
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return np.asarray(value).tolist()


def write_text(path: Path, text: str) -> None:
    """Write a file in one step."""
    partial = path.with_name(f".{path.name}.partial")
    file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        append(file, bytearray(text.encode()))
    finally:
        os.close(file)
    partial.replace(path)


def write_arrays(path: Path, arrays: Mapping[str, Any], about: Any, force: Iterable[Path] | None = None) -> None:
    """Write arrays and JSON data about them in one step; with `force`, not before they and these files are settled."""
    from safetensors.numpy import save_file

    flat = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in sorted(arrays.items())}
    partial = path.with_name(f".{path.name}.partial")
    save_file(flat, partial, metadata={"vitrify": encode(about)})
    partial.chmod(0o644)  # safetensors makes files that only their owner can read
    if force is not None:
        settle([partial, *force])
    partial.replace(path)


def read_arrays(path: Path, *, only_about: bool = False) -> tuple[dict[str, Any], Any] | None:
    """Arrays and what is said about them; None where the file is missing or not whole."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            about = decode((file.metadata() or {})["vitrify"].encode())
            names = [] if only_about else list(file.keys())
            return {name: file.get_tensor(name) for name in names}, about
    except (FileNotFoundError, SafetensorError, KeyError, ValueError):
        return None


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where the file is missing or not whole."""
    try:
        data = decode(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def read_lines(path: Path, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
    """The whole lines of a log between two bytes; a line that has no end is left out."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read() if stop is None else file.read(stop - start)
    except FileNotFoundError:
        return []
    return [decode(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def last_line(path: Path) -> dict[str, Any] | None:
    """The last whole line of a log."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            for block in (1 << 16, 1 << 22, size):
                file.seek(max(0, size - block))
                data = file.read(min(size, block))
                end = data.rfind(b"\n")
                start = data.rfind(b"\n", 0, max(end, 0)) + 1
                if end > 0 and (start or block >= size):
                    found: dict[str, Any] = decode(data[start:end])
                    return found
    except FileNotFoundError:
        pass
    return None


def append(file: int, pending: bytearray) -> None:
    """Write all of `pending`, taking away what is written, so that after an error the rest can follow later."""
    while pending:
        del pending[: os.write(file, pending)]


def settle(paths: Iterable[Path]) -> None:
    """Force files and folders to the disk, all at once: a disk that is asked together writes its journal once."""
    chosen = list(paths)
    if len(chosen) > MANY:
        os.sync()
        return
    with ThreadPoolExecutor(len(chosen) or 1) as threads:
        for _ in threads.map(_force, chosen):
            pass


def _force(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class Lock:
    """A file that one handle holds at a time; the system lets go of it when its process ends, however it ends."""

    def __init__(self, path: Path, *, wait: bool) -> None:
        """Take the lock, or raise `BlockingIOError` if somebody holds it and there is no waiting."""
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if wait:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            else:
                self._try()
                os.ftruncate(self._file, 0)
                os.write(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        except OSError:
            os.close(self._file)
            raise

    def _try(self) -> None:
        for left in reversed(range(TRIES)):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if not left:
                    raise
                time.sleep(PAUSE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Let go."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @staticmethod
    def holder(path: Path) -> str | None:
        """Who holds the lock at a path; None if nobody does."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(file, 200).decode(errors="replace").strip() or "somebody"
        finally:
            os.close(file)
        return None
