"""Measurements of learned claims: unrounded arrays by subject and name, in one compressed file for each plan version.

    docs/evidence/measurements/NAME.vK.npz    "0/cnn, m = 3/excess" is an array of the first subject; `header` is JSON

Everything that a claim judges is computed from these arrays and the claim's file, so verdicts and figures can be
reproduced without training. A long run is measured in parts: each part is saved as it is measured, with the digest of
its plan, the code, the device and the times, and a later part is added to what the file holds.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import numpy as np

from vitrify.arrays import Array
from vitrify.encoding import JsonMapping, JsonObject, canonical
from vitrify.errors import InputError
from vitrify.files import write_bytes

MAX_BYTES = 1 << 28  # of one array in a file
Measured: TypeAlias = Mapping[str, Array]  # the arrays of a subject, by name


@dataclass(frozen=True)
class Measurements:
    """The arrays of each subject, and for each part of the run: plan digest, place, times and what was measured."""

    subjects: Mapping[str, Measured] = field(default_factory=dict)
    parts: tuple[JsonMapping, ...] = ()

    @property
    def began(self) -> datetime:
        """Return when the first part began."""
        return min(datetime.fromisoformat(str(part["began"])) for part in self.parts)

    @property
    def seconds(self) -> float:
        """Return the seconds that all parts took."""
        return sum(float(part["seconds"]) for part in self.parts)

    def adding(self, subjects: Mapping[str, Measured], **part: object) -> Measurements:
        """Return the measurements with those of one more part; an array that is there already is refused."""
        merged = {name: dict(arrays) for name, arrays in self.subjects.items()}
        for name, arrays in subjects.items():
            twice = sorted(set(arrays) & set(merged.get(name, {})))
            if twice:
                raise InputError(f"{name}: {twice[0]} is measured already")
            merged[name] = {**merged.get(name, {}), **{key: _wide(array) for key, array in arrays.items()}}
        return Measurements(merged, (*self.parts, {**part, "ended": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S+00:00}"}))

    def save(self, path: Path) -> None:
        """Write the file in one step; the same measurements give the same bytes."""
        header: JsonObject = {"subjects": list(self.subjects), "parts": list(self.parts)}
        arrays = {
            f"{at}/{key}": array for at, own in enumerate(self.subjects.values()) for key, array in sorted(own.items())
        }
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in {"header": np.frombuffer(canonical(header).encode(), np.uint8), **arrays}.items():
                held = io.BytesIO()
                np.lib.format.write_array(held, _narrow(np.asarray(array)), allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), held.getvalue(), zipfile.ZIP_DEFLATED)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, buffer.getvalue())


def load(path: Path) -> Measurements:
    """Return the measurements that a file holds; empty where there is no file."""
    if not path.exists():
        return Measurements()
    try:
        with np.load(path, allow_pickle=False) as data:
            sizes = [entry.file_size for entry in data.zip.infolist()]
            if max(sizes, default=0) > MAX_BYTES:
                raise ValueError(f"an array of more than {MAX_BYTES} bytes")
            header = json.loads(data["header"].tobytes())
            subjects: dict[str, dict[str, Array]] = {name: {} for name in header["subjects"]}
            names = list(subjects)
            for name in data.files:
                at, _, key = name.partition("/")
                if key:
                    subjects[names[int(at)]][key] = _wide(data[name])
            return Measurements(subjects, tuple(header["parts"]))
    except (OSError, ValueError, KeyError, IndexError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} must be measurements that 'vitrify check --measurements' wrote: {error}") from None


def _wide(array: Array) -> Array:
    """Return an array with real numbers in 64 bits: what is judged is the same before it is stored and after."""
    numbers = np.asarray(array)
    return numbers.astype(np.float64) if numbers.dtype.kind == "f" else numbers


def _narrow(array: Array) -> Array:
    """Return an array of 64-bit numbers in 32 bits where that loses nothing, as for all that a GPU measured."""
    if array.dtype != np.float64:
        return array
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), array, equal_nan=True) else array


def file_of(name: str, version: int, folder: Path) -> Path:
    """Return the path of a claim's measurements of a plan version in a folder."""
    return folder / f"{name}.v{version}.npz"
