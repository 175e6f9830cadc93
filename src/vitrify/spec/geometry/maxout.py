r"""Maxout networks: layers of units that take the largest of a few affine functions.

Unit $i$ of a layer is $z_i = \max_{j \le k} (w_{ij} \cdot z + b_{ij})$; its *pieces* are the affine functions, its
*rank* is the number of different ones. Inputs are the vectors with $|x|_\infty \le R$. A ReLU unit has rank 2 (itself
and 0), an affine unit rank 1. Every such network is a continuous piecewise linear function (CPWL), and every CPWL
function of one variable is two units of the first layer, subtracted: `from_points`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Floats
from vitrify.spec.formats.data import json_object
from vitrify.spec.formats.text import refuse_any
from vitrify.spec.geometry.maxout_files import layer_problems, point_problems, read_maxout
from vitrify.spec.kinds import Kind, Spec

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
    def of(cls, weights: ArrayLike, biases: ArrayLike) -> Layer:
        """Return the layer of nested lists."""
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
        """Different pieces of each unit: weights [piece, input] and biases [piece]."""
        distinct = []
        for weights, biases in zip(self.weights, self.biases, strict=True):
            rows = np.column_stack([weights, biases])
            first = sorted(np.unique(rows, axis=0, return_index=True)[1].tolist())
            distinct.append((weights[first], biases[first]))
        return tuple(distinct)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of different pieces of each unit."""
        return tuple(len(biases) for _, biases in self.pieces)

    @property
    def steepness(self) -> float:
        r"""$\Lambda = \max_{ij} |w_{ij}|_1$: the Lipschitz constant in the maximum norm."""
        return float(np.abs(self.weights).sum(axis=-1).max())

    def __call__(self, z: Floats) -> Floats:
        """Return the units' values [batch, unit] for activations [batch, input]."""
        return np.asarray((np.einsum("bi,uki->buk", z, self.weights) + self.biases).max(axis=-1))

    def bounds(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the range of every piece [unit, piece] from the ranges of the inputs, by interval arithmetic."""
        middle = self.weights @ ((low + high) / 2) + self.biases
        reach = np.abs(self.weights) @ ((high - low) / 2)
        return middle - reach, middle + reach


@dataclass(frozen=True, repr=False)
class Maxout(Spec):
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
        refuse_any(message for _, message in layer_problems([(x.weights, x.biases) for x in self.layers], self.radius))

    def __repr__(self) -> str:
        units = tuple(layer.units for layer in self.layers)
        ranks = tuple(max(layer.ranks) for layer in self.layers)
        return f"Maxout(inputs={self.inputs}, units={units}, ranks={ranks}, radius={self.radius})"

    @classmethod
    def from_relu(cls, weights: Sequence[ArrayLike], biases: Sequence[ArrayLike], radius: float = 1.0) -> Maxout:
        """Return a ReLU network of matrices [unit, input] and bias vectors, one of each per layer, the last one affine.

        >>> Maxout.from_relu([[[1.0], [-1.0]], [[1.0, 1.0]]], [[0.0, 0.0], [0.0]])(np.array([[-0.5]])).tolist()
        [[0.5]]
        """
        pairs = zip(weights, biases, strict=True)
        return cls(_layers([(np.asarray(w, dtype=float), np.asarray(b, dtype=float)) for w, b in pairs]), radius)

    @classmethod
    def from_points(cls, points: Sequence[tuple[Number, Number]], radius: float | None = None) -> Maxout:
        r"""Return the CPWL function of one variable through some points; its outer pieces extend beyond them.

        Slope changes upwards go to one convex function $g$, those downwards to another, $h$; the function is $g - h$.
        With $p$ pieces that makes $p+1$ pieces of the two units; one unit is enough for a function that is convex or
        concave. The radius is by default the largest coordinate of a point.
        """
        refuse_any(point_problems([(float(x), float(y)) for x, y in points]))
        units = tuple(convex_parts(points))
        rank = max(len(lines) for _, lines in units)
        padded = [[*lines, *[lines[-1]] * (rank - len(lines))] for _, lines in units]
        table = np.array([[[float(a), float(b)] for a, b in lines] for lines in padded])
        signs = np.array([[float(sign) for sign, _ in units]])
        box = max(abs(float(x)) for x, _ in points) if radius is None else radius
        return cls((Layer(table[:, :, :1], table[:, :, 1]), Layer(signs, np.zeros(1))), box)

    @classmethod
    def read(cls, path: str | Path) -> Maxout:
        file_layers, points, radius = read_maxout(Path(path))
        if points is not None:
            return cls.from_points(points, radius)
        return cls(_layers(file_layers), 1.0 if radius is None else radius)

    def to_text(self) -> str:
        """Return the `.maxout.json` text, one line for each layer."""
        layers = [{"weights": x.weights.tolist(), "biases": x.biases.tolist()} for x in self.layers]
        return json_object({"radius": self.radius, "layers": layers}, "layers")

    @classmethod
    def samples(cls) -> dict[str, Maxout]:
        folded = {"zigzag": zigzag(3, 2), "relu": random_relu((2, 3, 1), 0)}
        return folded | {"maxout": random_maxout((2, 3, 2), 3, 0), "linear": random_maxout((2, 1), 1, 0)}

    # Sizes

    @property
    def inputs(self) -> int:
        return int(self.layers[0].weights.shape[-1])

    @property
    def outputs(self) -> int:
        return self.layers[-1].units

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(f"x{i + 1}" for i in range(self.inputs))

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(f"y{i + 1}" for i in range(self.outputs))

    @property
    def parameters(self) -> int:
        """Weights and biases of all pieces that differ."""
        return sum(sum(layer.ranks) * (layer.weights.shape[-1] + 1) for layer in self.layers)

    @cached_property
    def ranges(self) -> tuple[tuple[Floats, Floats], ...]:
        """Bounds (low, high) of the inputs and of every layer's units, by interval arithmetic."""
        bounds = [(np.full(self.inputs, -self.radius), np.full(self.inputs, self.radius))]
        for layer in self.layers:
            low, high = layer.bounds(*bounds[-1])
            bounds.append((low.max(axis=1), high.max(axis=1)))
        return tuple(bounds)

    # Meaning

    def __call__(self, x: Floats) -> Floats:
        """Return the outputs [batch, output] for inputs [batch, input]."""
        z = np.asarray(x, dtype=np.float64)
        for layer in self.layers:
            z = layer(z)
        return z

    def exactly(self, x: Sequence[Number]) -> tuple[Fraction, ...]:
        """Return the outputs for one input in exact arithmetic: weights are binary fractions."""
        z = [Fraction(number) for number in x]
        for layer in self.layers:
            z = [
                max(
                    sum((Fraction(a) * y for a, y in zip(row, z, strict=True)), Fraction(bias))
                    for row, bias in zip(weights.tolist(), biases.tolist(), strict=True)
                )
                for weights, biases in layer.pieces
            ]
        return tuple(z)


def _layers(arrays: Sequence[tuple[Floats, Floats]]) -> tuple[Layer, ...]:
    """Return the layers of weights and biases; matrices before the last are ReLU layers, whose second piece is 0."""
    layers = []
    for at, (weights, biases) in enumerate(arrays, start=1):
        if weights.ndim == 2 and at < len(arrays):
            weights = np.stack([weights, np.zeros_like(weights)], axis=1)
            biases = np.stack([biases, np.zeros_like(biases)], axis=1)
        layers.append(Layer(weights, biases))
    return tuple(layers)


def convex_parts(points: Sequence[tuple[Number, Number]]) -> list[tuple[int, list[Line]]]:
    """Return convex functions with signs whose signed sum is the function through the points.

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


def random_maxout(widths: Sequence[int], rank: int, seed: int, *, radius: float = 1.0) -> Maxout:
    r"""Return a random network with the given widths, inputs first, every unit of the given rank.

    Weights are normal with variance $1/(\text{inputs of the layer})$, biases half as wide as a standard normal.

    >>> random_maxout((2, 3, 1), 4, seed=0) == random_maxout((2, 3, 1), 4, seed=0)
    True
    """
    rng = np.random.default_rng(seed)
    layers = [
        Layer(rng.normal(size=(units, rank, inputs)) / np.sqrt(inputs), rng.normal(size=(units, rank)) / 2)
        for inputs, units in pairwise(widths)
    ]
    return Maxout(tuple(layers), radius)


def random_relu(widths: Sequence[int], seed: int, *, radius: float = 1.0) -> Maxout:
    """Return a random ReLU network with the given widths, inputs and outputs included."""
    rng = np.random.default_rng(seed)
    pairs = list(pairwise(widths))
    weights = [rng.normal(size=(units, inputs)) * np.sqrt(2 / inputs) for inputs, units in pairs]
    return Maxout.from_relu(weights, [rng.normal(size=units) / 2 for _, units in pairs], radius)


def zigzag(pieces: int, depth: int, dimensions: int = 1) -> Maxout:
    r"""Return the zigzag of `pieces` slopes $\pm k$ on $[-1, 1]$, composed `depth` times, in each coordinate.

    It runs $k$ times through $[-1, 1]$, so every composition multiplies the number of linear regions by $k$: there are
    $k^L$ in one dimension and $(k^L)^n$ in $n$. Up to two units per layer and coordinate; all weights whole numbers.

    >>> zigzag(3, 2)
    Maxout(inputs=1, units=(2, 2, 1), ranks=(2, 2, 1), radius=1.0)
    """
    step = Fraction(2, pieces)
    wave = Maxout.from_points([(-1 + j * step, (-1) ** (j + 1)) for j in range(pieces + 1)])
    first, last = wave.layers
    next_layers = [Layer(first.weights * last.weights[0, 0], first.biases)] * (depth - 1)
    return _side_by_side((first, *next_layers, last), dimensions)


def level_pieces(rank: int, depth: int, gap: float, steepness: float = 2.0) -> Maxout:
    r"""Return a chain of units whose other pieces are about one gap below: the worst case for soft attention.

    Every layer is $\max(\Lambda z, \Lambda z - g_2, \dots, \Lambda z - g_k)$ with $g \le g_j \le (1 + 10^{-6}) g$: the
    pieces differ, but hardly.
    """
    behind = np.concatenate([[0.0], gap * (1 + 1e-6 * np.arange(rank - 1) / rank)])
    layer = Layer(np.full((1, rank, 1), steepness), -behind[None])
    return Maxout((layer,) * depth)


def _side_by_side(layers: tuple[Layer, ...], copies: int) -> Maxout:
    """Return independent copies of a network side by side."""
    eye = np.eye(copies)
    together = []
    for layer in layers:
        shape = copies * layer.units, -1, copies * layer.weights.shape[-1]
        weights = np.einsum("cd,uki->cukdi", eye, layer.weights).reshape(shape)
        together.append(Layer(weights, np.tile(layer.biases, (copies, 1))))
    return Maxout(tuple(together))


KIND = Kind(Maxout, {".maxout.json": "maxout network", ".maxout.safetensors": "maxout network"})
