"""Files of a run store: arrays with JSON data about them, JSON objects, and logs; errors of the disk as sentences.

Files take their place in one step (`vitrify.files`). Logs are the exception: they grow by whole lines, and a line
without its end is not one.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np

from vitrify import encoding
from vitrify.arrays import Array
from vitrify.encoding import JsonObject
from vitrify.errors import StoreError
from vitrify.files import remedy, whole_file


class Closing(ABC):
    """A value that a `with` statement closes at its end."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@contextmanager
def guarded(store: Path, doing: str) -> Iterator[None]:
    """Turn what the system refuses into a `StoreError` that says what to do and that nothing written is lost."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        other = "name another store ('--store', VITRIFY_STORE)"
        reason = remedy(error).replace("name another place", other)
        saved = "; what was written before is kept, and the same command goes on from there" if store.exists() else ""
        raise StoreError(f"the run store {store} failed while {doing}: {reason}{saved}") from error


def write_arrays(
    path: Path, arrays: Mapping[str, Array], about: JsonObject, force: Iterable[Path] | None = None
) -> None:
    """Write arrays and JSON data about them in one step; with `force`, not before they and these files are settled."""
    from safetensors.numpy import save_file

    flat = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in sorted(arrays.items())}
    with whole_file(path, force) as partial:
        save_file(flat, partial, metadata={"vitrify": encoding.line(about)})


def read_arrays(path: Path, *, only_about: bool = False) -> tuple[dict[str, Array], JsonObject] | None:
    """Return arrays and the data about them; None where the file is missing or not whole."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            about = encoding.parsed((file.metadata() or {})["vitrify"])
            names = [] if only_about else list(file.keys())
            return {name: file.get_tensor(name) for name in names}, about
    except (FileNotFoundError, SafetensorError, KeyError, ValueError):
        return None


def read_row(path: Path, row: int) -> dict[str, Array]:
    """Return one entry along the first axis of every array of a file; the others are not read."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return {name: file.get_slice(name)[row] for name in file.keys()}  # noqa: SIM118 - not a dict


def read_json(path: Path) -> JsonObject | None:
    """Return a JSON object; None where the file is missing or not whole."""
    try:
        data = encoding.parsed(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def read_lines(path: Path, start: int = 0, stop: int | None = None) -> list[JsonObject]:
    """Return the whole lines of a log between two bytes; a line that has no end is left out."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read() if stop is None else file.read(stop - start)
    except FileNotFoundError:
        return []
    return lines_of(data[: data.rfind(b"\n") + 1])


def lines_of(data: bytes) -> list[JsonObject]:
    """Return the JSON data of every line."""
    return [encoding.parsed(line) for line in data.splitlines()]


def last_line(path: Path) -> JsonObject | None:
    """Return the last whole line of a log."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            for block in (1 << 16, 1 << 22, size):
                file.seek(max(0, size - block))
                data = file.read(min(size, block))
                end = data.rfind(b"\n")
                start = data.rfind(b"\n", 0, max(end, 0)) + 1
                if end > 0 and (start or block >= size):
                    return lines_of(data[start:end])[0]
    except FileNotFoundError:
        pass
    return None
