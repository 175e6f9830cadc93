r"""Kinds of named spaces of the residual stream, with their codes and invariants.

A *kind* says which vectors are legal, how they are named dimension by dimension, and how far a vector is from the
nearest legal one. A categorical kind gives every value a code vector $c_v$ with $c_v \cdot c_v =$ `norm` and $c_v
\cdot c_w \le$ `norm - gap` for $v \ne w$: that is all a lookup needs to know.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from math import isfinite
from typing import Any, ClassVar, TypeAlias

import numpy as np

from vitrify.arrays import Floats
from vitrify.encoding import JsonObject
from vitrify.errors import FolderError
from vitrify.parameters import Fault, convert, sentences


@dataclass(frozen=True)
class Flag:
    """One bit, 0 or 1."""

    tag: ClassVar[str] = "flag"
    size: ClassVar[int] = 1
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    names: ClassVar[tuple[str, ...]] = ("",)

    def deviation(self, x: Floats) -> Floats:
        """Distance of each vector (last axis) from the nearest legal one, in the largest coordinate."""
        return _from_bits(x)


@dataclass(frozen=True)
class _UnitVectors:
    """Finitely many values, each with a unit vector."""

    values: tuple[str, ...]
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    norm: ClassVar[float] = 1.0
    gap: ClassVar[float] = 1.0

    @property
    def size(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class OneHot(_UnitVectors):
    """One of finitely many values, as a unit vector; `void` also allows the zero vector, for no value at all."""

    void: bool = False
    tag: ClassVar[str] = "onehot"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"={value}" for value in self.values)

    @cached_property
    def codes(self) -> Floats:
        """Code vectors [value, dimension]."""
        return np.eye(self.size)

    def deviation(self, x: Floats) -> Floats:
        """Distance of each vector from the code of its largest coordinate, or from zero if it may be void."""
        far: Floats = np.abs(x - self.codes[x.argmax(axis=-1)]).max(axis=-1)
        return np.minimum(far, np.abs(x).max(axis=-1)) if self.void else far


@dataclass(frozen=True)
class MultiHot(_UnitVectors):
    """Any set of finitely many values, as the sum of their unit vectors."""

    tag: ClassVar[str] = "multihot"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"∋{value}" for value in self.values)

    def deviation(self, x: Floats) -> Floats:
        """Largest distance of a coordinate from 0 and 1."""
        return _from_bits(x)


@dataclass(frozen=True)
class Bits:
    r"""One of $V$ values, as $\max(2, \lceil \log_2 V \rceil)$ signs: the bits of the value's number, as ±1.

    `void` also allows the zero vector, for no value at all; with two bits or more it is a gap away from every code.
    """

    values: tuple[str, ...]
    void: bool = False
    tag: ClassVar[str] = "bits"
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0
    gap: ClassVar[float] = 2.0

    @property
    def size(self) -> int:
        return max(2, (len(self.values) - 1).bit_length())

    @property
    def norm(self) -> float:
        return float(self.size)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f".bit{b}" for b in range(self.size))

    @cached_property
    def codes(self) -> Floats:
        """Code vectors [value, dimension]."""
        bits = np.arange(len(self.values))[:, None] >> np.arange(self.size) & 1
        return 2.0 * bits.astype(np.float64) - 1.0

    def deviation(self, x: Floats) -> Floats:
        """Largest distance of a coordinate from ±1, or of all from zero if the vector may be void."""
        far: Floats = np.abs(np.abs(x) - 1).max(axis=-1)
        return np.minimum(far, np.abs(x).max(axis=-1)) if self.void else far


@dataclass(frozen=True)
class Circle:
    r"""One of $N$ values in a plane: value $i$ is the point at the angle $2\pi i / N$ of the unit circle, none is zero.

    Points of a circle are in convex position, so a line cuts each one off from all the others, with the margin
    $1 - \cos(2\pi/N)$.
    """

    values: tuple[str, ...]
    tag: ClassVar[str] = "circle"
    size: ClassVar[int] = 2
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0
    norm: ClassVar[float] = 1.0
    names: ClassVar[tuple[str, ...]] = (".x", ".y")

    @property
    def gap(self) -> float:
        return float(1.0 - np.cos(2 * np.pi / len(self.values))) if len(self.values) > 1 else 1.0

    @cached_property
    def codes(self) -> Floats:
        """Code vectors [value, dimension], exact at quarter turns."""
        turn = np.arange(len(self.values)) / len(self.values)
        codes = np.stack([np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)], axis=1)
        return np.where(np.abs(codes - np.round(codes)) < 1e-12, np.round(codes), codes)

    def deviation(self, x: Floats) -> Floats:
        """Distance of each vector from the nearest code or from zero, in the largest coordinate."""
        return np.asarray(np.abs(x[..., None, :] - np.vstack([self.codes, np.zeros(2)])).max(axis=-1).min(axis=-1))


@dataclass(frozen=True)
class _Numbers:
    """Numbers between low and high, one per dimension."""

    labels: tuple[str, ...]
    low: float
    high: float

    @property
    def size(self) -> int:
        return len(self.labels)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"[{label}]" for label in self.labels)


@dataclass(frozen=True)
class Integers(_Numbers):
    """Whole numbers between low and high, one per dimension."""

    tag: ClassVar[str] = "integers"

    def deviation(self, x: Floats) -> Floats:
        """Largest distance of a coordinate from a whole number in the range."""
        return np.asarray(np.abs(x - np.clip(np.round(x), self.low, self.high)).max(axis=-1))


@dataclass(frozen=True)
class Reals(_Numbers):
    """Real numbers between low and high, one per dimension."""

    tag: ClassVar[str] = "reals"

    def deviation(self, x: Floats) -> Floats:
        """Return the largest distance of a coordinate from the range."""
        return np.asarray(np.maximum(np.maximum(self.low - x, x - self.high), 0.0).max(axis=-1))


def _from_bits(x: Floats) -> Floats:
    return np.asarray(np.minimum(np.abs(x), np.abs(x - 1)).max(axis=-1))


Categorical = OneHot | Bits
Kind = Flag | OneHot | MultiHot | Bits | Circle | Integers | Reals
KINDS: dict[str, type[Kind]] = {kind.tag: kind for kind in (Flag, OneHot, MultiHot, Bits, Circle, Integers, Reals)}


Content: TypeAlias = Any  # the value of a vector: a symbol, a number, several of them, or None


def decode(kind: Kind, x: Floats) -> Content:
    """Return the value that one vector of a space encodes.

    >>> decode(OneHot(("a", "b")), np.array([0.1, 0.9]))
    'b'
    """
    if isinstance(kind, OneHot | Bits | Circle):
        return kind.values[int(np.argmax(kind.codes @ x))] if np.any(x) else None
    if isinstance(kind, MultiHot):
        return [value for value, held in zip(kind.values, x, strict=True) if held > 0.5]
    if isinstance(kind, Reals):
        return [float(number) for number in x]
    numbers = [round(number) if isfinite(number) else number for number in x.tolist()]
    return numbers[0] if kind.size == 1 else numbers


def kind_to_json(kind: Kind) -> JsonObject:
    """Return a kind as plain JSON data."""
    return {"kind": kind.tag} | asdict(kind)


def kind_from_json(data: object) -> Kind:
    """Return the kind that `kind_to_json` wrote."""
    faults: list[Fault] = []
    kind = KINDS.get(str(data.get("kind"))) if isinstance(data, dict) else None
    if kind is None or not isinstance(data, dict):
        raise FolderError(f"must be one of {', '.join(KINDS)}, not {str(data)[:80]}")
    made: Kind = convert(kind, {key: value for key, value in data.items() if key != "kind"}, (), faults)
    if not faults and isinstance(made, _Numbers) and not -np.inf < made.low <= made.high < np.inf:
        faults.append(((), f"numbers lie between two finite ones, not {made.low} and {made.high}"))
    if faults or not made.size or not getattr(made, "values", True):
        raise FolderError(f"is no {kind.tag}: " + ("; ".join(sentences(faults)[:3]) or "it has no dimension or value"))
    return made
