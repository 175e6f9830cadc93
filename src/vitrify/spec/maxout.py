r"""Maxout networks: layers of units that take the largest of a few affine functions.

Unit $i$ of a layer is $z_i = \max_{j \le k} (w_{ij} \cdot z + b_{ij})$; its *pieces* are the affine functions, its
*rank* is how many of them differ. Inputs are the vectors with $|x|_\infty \le R$. A ReLU unit has rank 2 (itself and
0), an affine unit rank 1. Every such network is a continuous piecewise linear function (CPWL), and every CPWL function
of one variable is two units of the first layer, subtracted: `from_points`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import SpecError
from vitrify.spec.display import Displayed
from vitrify.spec.maxout_files import layer_problems, maxout_text, point_problems, read_maxout

Floats = NDArray[np.float64]
Number = float | Fraction
Line = tuple[Fraction, Fraction]  # slope and intercept


@dataclass(frozen=True, eq=False)
class Layer:
    """Units that take the largest of their pieces: weights [unit, piece, input] and biases [unit, piece].

    A matrix of weights [unit, input] with a vector of biases makes every unit affine. Pieces of a unit may repeat.
    """

    weights: Floats
    biases: Floats

    def __post_init__(self) -> None:
        weights, biases = np.array(self.weights, dtype=np.float64), np.array(self.biases, dtype=np.float64)
        if weights.ndim == 2 and biases.ndim == 1:
            weights, biases = weights[:, None], biases[:, None]
        weights.flags.writeable = biases.flags.writeable = False
        object.__setattr__(self, "weights", weights + 0.0)  # no negative zeros: equal layers have equal bytes
        object.__setattr__(self, "biases", biases + 0.0)

    @classmethod
    def of(cls, weights: Any, biases: Any) -> Layer:
        """From nested lists."""
        return cls(np.asarray(weights, dtype=np.float64), np.asarray(biases, dtype=np.float64))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layer):
            return NotImplemented
        return np.array_equal(self.weights, other.weights) and np.array_equal(self.biases, other.biases)

    def __hash__(self) -> int:
        return hash((self.weights.tobytes(), self.biases.tobytes()))

    @property
    def units(self) -> int:
        return len(self.biases)

    @cached_property
    def pieces(self) -> tuple[tuple[Floats, Floats], ...]:
        """The pieces that differ, unit by unit: weights [piece, input] and biases [piece]."""
        found = []
        for weights, biases in zip(self.weights, self.biases, strict=True):
            rows = np.column_stack([weights, biases])
            first = sorted(np.unique(rows, axis=0, return_index=True)[1].tolist())
            found.append((weights[first], biases[first]))
        return tuple(found)

    @property
    def ranks(self) -> tuple[int, ...]:
        """How many different pieces each unit has."""
        return tuple(len(biases) for _, biases in self.pieces)

    @property
    def steepness(self) -> float:
        r"""$\Lambda = \max_{ij} |w_{ij}|_1$: no output moves more than this often the largest move of an input."""
        return float(np.abs(self.weights).sum(axis=-1).max())

    def __call__(self, z: Floats) -> Floats:
        """The units' values [batch, unit] for activations [batch, input]."""
        found: Floats = (np.einsum("bi,uki->buk", z, self.weights) + self.biases).max(axis=-1)
        return found

    def bounds(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The range of every piece [unit, piece] when the inputs are in theirs, by interval arithmetic."""
        middle = self.weights @ ((low + high) / 2) + self.biases
        reach = np.abs(self.weights) @ ((high - low) / 2)
        return middle - reach, middle + reach


@dataclass(frozen=True, repr=False)
class Maxout(Displayed):
    """A maxout network on the box of inputs that are at most `radius` in every coordinate.

    >>> tent = Maxout.from_points([(-1, 0), (0, 1), (1, 0)])
    >>> tent
    Maxout(inputs=1, units=(1, 1), ranks=(2, 1), radius=1.0)
    >>> tent(np.array([[-0.5], [0.0], [0.25]])).tolist()
    [[0.5], [1.0], [0.75]]
    """

    layers: tuple[Layer, ...]
    radius: float = 1.0
    suffix: ClassVar[str] = ".maxout.json"

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        object.__setattr__(self, "radius", float(self.radius))
        problems = [message for _, message in layer_problems([(x.weights, x.biases) for x in self.layers], self.radius)]
        if problems:
            raise SpecError(problems)

    def __repr__(self) -> str:
        units = tuple(layer.units for layer in self.layers)
        ranks = tuple(max(layer.ranks) for layer in self.layers)
        return f"Maxout(inputs={self.inputs}, units={units}, ranks={ranks}, radius={self.radius})"

    @classmethod
    def from_relu(cls, weights: Sequence[Any], biases: Sequence[Any], radius: float = 1.0) -> Maxout:
        """A ReLU network: matrices [unit, input] and vectors of biases, one of each per layer, the last one affine.

        >>> Maxout.from_relu([[[1.0], [-1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [0.0]])(np.array([[-0.5]])).tolist()
        [[0.5]]
        """
        last = len(weights) - 1
        pairs = [(np.asarray(w, dtype=float), np.asarray(b, dtype=float)) for w, b in zip(weights, biases, strict=True)]
        return cls(tuple(Layer(*(pair if at == last else rectified(*pair))) for at, pair in enumerate(pairs)), radius)

    @classmethod
    def from_points(cls, points: Sequence[tuple[Number, Number]], radius: float | None = None) -> Maxout:
        r"""The CPWL function of one variable through some points, its outer pieces going on beyond the first and last.

        Slope changes upwards go to one convex function $g$, those downwards to another, $h$; the function is $g - h$.
        With $p$ pieces that makes $p+1$ pieces of the two units; one unit is enough for a function that is convex or
        concave. The radius is the largest coordinate of a point unless said.
        """
        problems = list(point_problems([(float(x), float(y)) for x, y in points]))
        if problems:
            raise SpecError(problems)
        units = tuple(convex_parts(points))
        rank = max(len(lines) for _, lines in units)
        padded = [[*lines, *[lines[-1]] * (rank - len(lines))] for _, lines in units]
        table = np.array([[[float(a), float(b)] for a, b in lines] for lines in padded])
        signs = np.array([[float(sign) for sign, _ in units]])
        box = max(abs(float(x)) for x, _ in points) if radius is None else radius
        return cls((Layer(table[:, :, :1], table[:, :, 1]), Layer(signs, np.zeros(1))), box)

    @classmethod
    def read(cls, path: str | Path) -> Maxout:
        """The network of a `.maxout.json` or `.maxout.safetensors` file."""
        given = read_maxout(Path(path))
        if given.points is not None:
            return cls.from_points(given.points, given.radius)
        last = len(given.layers) - 1
        layers = [
            Layer(*(rectified(w, b) if w.ndim == 2 and at < last else (w, b))) for at, (w, b) in enumerate(given.layers)
        ]
        return cls(tuple(layers), 1.0 if given.radius is None else given.radius)

    def write(self, path: str | Path) -> None:
        """Write a `.maxout.json` file that reads back as this value."""
        text = maxout_text([(layer.weights, layer.biases) for layer in self.layers], self.radius)
        Path(path).write_text(text, encoding="utf-8", newline="\n")

    # What it is

    @property
    def inputs(self) -> int:
        return int(self.layers[0].weights.shape[-1])

    @property
    def outputs(self) -> int:
        return self.layers[-1].units

    @property
    def parameters(self) -> int:
        """Weights and biases of all pieces that differ."""
        return sum(sum(layer.ranks) * (layer.weights.shape[-1] + 1) for layer in self.layers)

    @cached_property
    def ranges(self) -> tuple[tuple[Floats, Floats], ...]:
        """Bounds (low, high) of the inputs and of every layer's units, by interval arithmetic."""
        found = [(np.full(self.inputs, -self.radius), np.full(self.inputs, self.radius))]
        for layer in self.layers:
            low, high = layer.bounds(*found[-1])
            found.append((low.max(axis=1), high.max(axis=1)))
        return tuple(found)

    # What it means

    def __call__(self, x: Floats) -> Floats:
        """The outputs [batch, output] for inputs [batch, input]."""
        z = np.asarray(x, dtype=np.float64)
        for layer in self.layers:
            z = layer(z)
        return z

    def exactly(self, x: Sequence[Number]) -> tuple[Fraction, ...]:
        """The outputs for one input, without any rounding: weights are binary fractions."""
        z = [Fraction(number) for number in x]
        for layer in self.layers:
            z = [
                max(sum((Fraction(a) * y for a, y in zip(row, z, strict=True)), Fraction(bias)) for row, bias in unit)
                for unit in _rows(layer)
            ]
        return tuple(z)


def _rows(layer: Layer) -> list[list[tuple[list[float], float]]]:
    """Pieces (weights, bias) by unit, as plain numbers."""
    return [list(zip(weights.tolist(), biases.tolist(), strict=True)) for weights, biases in layer.pieces]


def rectified(weights: Floats, biases: Floats) -> tuple[Floats, Floats]:
    """A ReLU layer as a maxout layer: the second piece of every unit is 0."""
    return np.stack([weights, np.zeros_like(weights)], axis=1), np.stack([biases, np.zeros_like(biases)], axis=1)


def convex_parts(points: Sequence[tuple[Number, Number]]) -> list[tuple[int, list[Line]]]:
    """Convex functions, each with the sign it is added with, whose sum is the function through the points.

    >>> parts = convex_parts([(-1, 0), (0, 1), (1, 0), (2, 2)])
    >>> [(sign, [(int(a), int(b)) for a, b in lines]) for sign, lines in parts]
    [(1, [(1, 1), (4, -2)]), (-1, [(0, 0), (2, 0)])]
    """
    exact = [(Fraction(x), Fraction(y)) for x, y in points]
    slopes = [(y - x_y) / (x - x_x) for (x_x, x_y), (x, y) in pairwise(exact)]
    start = (slopes[0], exact[0][1] - slopes[0] * exact[0][0])
    zero = (Fraction(0), Fraction(0))
    up, down = [start], [zero]
    for (x, _), (before, after) in zip(exact[1:-1], pairwise(slopes), strict=True):
        bend = abs(after - before)
        lines = up if after > before else down
        if bend:
            lines.append((lines[-1][0] + bend, lines[-1][1] - bend * x))
    if len(down) == 1:
        return [(1, up)]
    if len(up) == 1:
        return [(-1, [(a - start[0], b - start[1]) for a, b in down])]
    return [(1, up), (-1, down)]
