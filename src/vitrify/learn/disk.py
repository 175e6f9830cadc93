"""Files of a run store: arrays with JSON data about them, JSON objects, and logs; errors of the disk as sentences.

Files take their place in one step (`vitrify.files`). Logs are the exception: they grow by whole lines, and a line
without its end is not one.
"""

from __future__ import annotations

import os
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np

from vitrify import encoding
from vitrify.arrays import Array
from vitrify.encoding import JsonObject
from vitrify.errors import DamagedStore, StoreError
from vitrify.files import remedy, whole_file

NAME = re.compile(r"[0-9a-f]{16}")  # of a run and of a group; no other name leads to a folder
PLAIN = re.compile(r"\w[\w.-]*")  # the name of a file, which leads nowhere else
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)  # makes of readers


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


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Turn what a damaged file makes of its reader into an error that names the file."""
    from safetensors import SafetensorError

    try:
        yield
    except (*DAMAGE, SafetensorError) as error:
        raise DamagedStore(
            f"{path} is damaged ({type(error).__name__}: {error}): 'vitrify runs --repair' moves what is damaged aside"
        ) from None


def must(holds: object, sentence: str) -> None:
    """Raise a ValueError, which `undamaged` turns into an error that names the file."""
    if not holds:
        raise ValueError(sentence)


FORMAT = {"format": "vitrify-runs", "version": 1}


def is_store(folder: Path) -> bool:
    """Return whether a folder says that it is a run store; one of another format or version is refused."""
    header = read_json(folder / "store.json")
    if header not in (None, FORMAT):
        raise StoreError(
            f"{folder} is a run store of another version: its store.json says {encoding.line(header)[:200]}, and this "
            f"vitrify reads {encoding.line(FORMAT)}"
        )
    return header is not None


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    total = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total = zlib.crc32(block, total)
    return total


def checksum_of(arrays: Mapping[str, Array]) -> int:
    """Return the CRC-32 of the numbers of arrays, in the order of their names."""
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data, total)
    return total


def read_arrays(path: Path, *, only_about: bool = False) -> tuple[dict[str, Array], JsonObject] | None:
    """Return arrays and the data about them; None where the file is missing."""
    from safetensors import safe_open

    try:
        with undamaged(path), safe_open(path, framework="numpy") as file:
            about = encoding.parsed((file.metadata() or {})["vitrify"])
            must(isinstance(about, dict), "the data about its arrays are no table")
            names = [] if only_about else list(file.keys())
            arrays = {name: file.get_tensor(name) for name in names}
            must(only_about or about.get("crc", 0) in (0, checksum_of(arrays)), "its numbers are not those written")
            return arrays, about
    except FileNotFoundError:
        return None


def read_row(path: Path, row: int) -> dict[str, Array]:
    """Return one entry along the first axis of every array of a file; the others are not read."""
    from safetensors import safe_open

    with undamaged(path), safe_open(path, framework="numpy") as file:
        return {name: file.get_slice(name)[row] for name in file.keys()}  # noqa: SIM118 - not a dict


def read_json(path: Path) -> JsonObject | None:
    """Return a JSON object; None where the file is missing."""
    try:
        with undamaged(path):
            data = encoding.parsed(path.read_bytes())
            must(isinstance(data, dict), "it is no JSON object")
            return dict(data)
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_lines(path: Path, start: int = 0, stop: int | None = None) -> list[JsonObject]:
    """Return the whole lines of a log between two bytes; a line that has no end is left out."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read() if stop is None else file.read(stop - start)
    except FileNotFoundError:
        return []
    return lines_of(path, data[: data.rfind(b"\n") + 1])


def lines_of(path: Path, data: bytes) -> list[JsonObject]:
    """Return the JSON objects of lines of a log."""
    with undamaged(path):
        lines = [encoding.parsed(line) for line in data.split(b"\n")[:-1]]
        must(all(isinstance(line, dict) for line in lines), "a line is no JSON object")
        return lines


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
                    return lines_of(path, data[start : end + 1])[0]
    except FileNotFoundError:
        pass
    return None
