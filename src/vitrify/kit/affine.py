"""Named spaces of the residual stream, and maps that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Matrix
from vitrify.net.spaces import Kind
from vitrify.net.sparse import is_sparse

Floats = NDArray[np.float64]
UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True)
class Space:
    """A named part of the residual stream, written once and read by name."""

    name: str
    kind: Kind

    @property
    def size(self) -> int:
        return self.kind.size


@dataclass(frozen=True, eq=False)
class Affine:
    """A map from some spaces to vectors: the sum of `space @ matrix`, plus a bias."""

    parts: tuple[tuple[Space, Matrix], ...]
    bias: Floats

    @classmethod
    def of(cls, parts: Mapping[Space, Any], bias: Any = None) -> Affine:
        """From matrices [space, out] by space, dense or sparse."""
        matrices = tuple((s, m if is_sparse(m) else np.asarray(m, dtype=float)) for s, m in parts.items())
        size = matrices[0][1].shape[1] if matrices else len(bias)
        return cls(matrices, np.zeros(size) if bias is None else np.asarray(bias, dtype=float))

    @classmethod
    def copy(cls, space: Space, scale: float = 1.0) -> Affine:
        """The space itself, scaled."""
        return cls.of({space: scale * np.eye(space.size)})

    @classmethod
    def constant(cls, values: Any) -> Affine:
        """The same vector everywhere."""
        return cls((), np.atleast_1d(np.asarray(values, dtype=float)))

    def __add__(self, other: Affine) -> Affine:
        matrices: dict[Space, Matrix] = dict(self.parts)
        for space, matrix in other.parts:
            matrices[space] = matrices[space] + matrix if space in matrices else matrix
        return Affine(tuple(matrices.items()), self.bias + other.bias)

    def __matmul__(self, matrix: Any) -> Affine:
        """The map followed by a matrix [size, out], dense or sparse."""
        after = matrix if is_sparse(matrix) else np.asarray(matrix, dtype=float)
        return Affine(tuple((space, part @ after) for space, part in self.parts), self.bias @ after)

    def __mul__(self, scale: float) -> Affine:
        return Affine(tuple((space, scale * part) for space, part in self.parts), scale * self.bias)

    def beside(self, other: Affine) -> Affine:
        """Both vectors, one after the other."""
        left = np.eye(self.size, self.size + other.size)
        right = np.eye(other.size, self.size + other.size, k=self.size)
        return self @ left + other @ right

    @property
    def size(self) -> int:
        return len(self.bias)

    @property
    def spaces(self) -> tuple[Space, ...]:
        return tuple(space for space, _ in self.parts)

    @cached_property
    def bound(self) -> Floats:
        """Largest absolute value of each output coordinate, from the ranges of the spaces."""
        bound = np.abs(self.bias)
        for space, matrix in self.parts:
            bound = bound + max(abs(space.kind.low), abs(space.kind.high)) * abs(matrix).sum(axis=0)
        return bound

    def gain(self, space: Space) -> float:
        """How much an error of 1 in every coordinate of a space can move an output coordinate."""
        return max((float(abs(m).sum(axis=0).max(initial=0.0)) for s, m in self.parts if s == space), default=0.0)

    @property
    def terms(self) -> int:
        """The most numbers that one output coordinate adds up, its bias among them."""
        counts = sum(((matrix != 0).sum(axis=0) for _, matrix in self.parts), np.zeros(self.size))
        return int(counts.max(initial=0)) + 1

    def moved(self, errors: Mapping[Space, float]) -> float:
        """How far an output coordinate can be off when every space has its own error."""
        moves = sum((errors[space] * abs(matrix).sum(axis=0) for space, matrix in self.parts), np.zeros(self.size))
        return float(moves.max(initial=0.0))
