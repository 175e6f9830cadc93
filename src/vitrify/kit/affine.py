"""Named spaces of the residual stream, and affine maps that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Float, Floats, Matrix
from vitrify.net.spaces import Kind
from vitrify.net.sparse import is_sparse

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
    """An affine map from some spaces to a vector: the sum of `space @ matrix`, plus a bias."""

    parts: tuple[tuple[Space, Matrix], ...]
    bias: Float[np.ndarray, " out"]

    @classmethod
    def of(cls, parts: Mapping[Space, Matrix], bias: ArrayLike | None = None) -> Affine:
        """Return the map with the given matrices [space, out], dense or sparse; the bias is 0 by default."""
        matrices = tuple((s, m if is_sparse(m) else np.asarray(m, dtype=float)) for s, m in parts.items())
        return cls(matrices, np.asarray(np.zeros(matrices[0][1].shape[1]) if bias is None else bias, dtype=float))

    @classmethod
    def copy(cls, space: Space, scale: float = 1.0) -> Affine:
        """Return the map that copies a space, scaled."""
        return cls.of({space: scale * np.eye(space.size)})

    @classmethod
    def constant(cls, values: ArrayLike) -> Affine:
        """Return the map whose value is the same vector at every position."""
        return cls((), np.atleast_1d(np.asarray(values, dtype=float)))

    def __add__(self, other: Affine) -> Affine:
        matrices: dict[Space, Matrix] = dict(self.parts)
        for space, matrix in other.parts:
            matrices[space] = matrices[space] + matrix if space in matrices else matrix
        return Affine(tuple(matrices.items()), self.bias + other.bias)

    def __matmul__(self, matrix: Matrix) -> Affine:
        """Return the map followed by a matrix [size, out], dense or sparse."""
        after = matrix if is_sparse(matrix) else np.asarray(matrix, dtype=float)
        return Affine(tuple((space, part @ after) for space, part in self.parts), self.bias @ after)

    def __mul__(self, scale: float) -> Affine:
        return Affine(tuple((space, scale * part) for space, part in self.parts), scale * self.bias)

    def beside(self, other: Affine) -> Affine:
        """Return the map to both vectors, concatenated."""
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
        """Return the largest absolute value of each output coordinate, from the ranges of the spaces."""
        bound: Floats = np.abs(self.bias)
        for space, matrix in self.parts:
            bound = bound + max(abs(space.kind.low), abs(space.kind.high)) * abs(matrix).sum(axis=0)
        return bound

    @property
    def range(self) -> tuple[Floats, Floats]:
        """Return the least and largest value of each output coordinate, from the ranges of the spaces."""
        low, high = self.bias, self.bias
        for space, matrix in self.parts:
            rising, falling = (0.5 * (abs(matrix) + matrix * sign).sum(axis=0) for sign in (1.0, -1.0))
            low = low + space.kind.low * rising - space.kind.high * falling
            high = high + space.kind.high * rising - space.kind.low * falling
        return low, high

    def gain(self, space: Space) -> float:
        """Return how much an error of 1 in every coordinate of a space can move an output coordinate."""
        return max((float(abs(m).sum(axis=0).max(initial=0.0)) for s, m in self.parts if s == space), default=0.0)

    @property
    def terms(self) -> int:
        """Return the largest number of terms that an output coordinate adds up, its bias included."""
        counts = sum(((matrix != 0).sum(axis=0) for _, matrix in self.parts), np.zeros(self.size))
        return int(counts.max(initial=0)) + 1

    def error_bound(self, errors: Mapping[Space, float]) -> float:
        """Return a bound on the error of an output coordinate, from the errors of the spaces."""
        moves = sum((errors[space] * abs(matrix).sum(axis=0) for space, matrix in self.parts), np.zeros(self.size))
        return float(moves.max(initial=0.0))
