"""Families of maxout networks: random ones, and zigzags whose linear regions multiply with every layer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from vitrify.spec.maxout import Layer, Maxout


def random_maxout(widths: Sequence[int], rank: int, seed: int, *, radius: float = 1.0) -> Maxout:
    r"""A network with the given widths, inputs first, every unit of the given rank.

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
    """A ReLU network with the given widths, inputs and outputs included."""
    rng = np.random.default_rng(seed)
    pairs = list(pairwise(widths))
    weights = [rng.normal(size=(units, inputs)) * np.sqrt(2 / inputs) for inputs, units in pairs]
    return Maxout.from_relu(weights, [rng.normal(size=units) / 2 for _, units in pairs], radius)


def zigzag(pieces: int, depth: int, dimensions: int = 1) -> Maxout:
    r"""The zigzag of `pieces` slopes $\pm k$ on $[-1, 1]$, composed `depth` times, in every coordinate by itself.

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
    r"""A chain of units whose rivals are all about one gap behind, everywhere: the worst case for soft attention.

    Every layer is $\max(\Lambda z, \Lambda z - g_2, \dots, \Lambda z - g_k)$ with $g \le g_j \le (1 + 10^{-6}) g$: the
    pieces differ, but hardly.
    """
    behind = np.concatenate([[0.0], gap * (1 + 1e-6 * np.arange(rank - 1) / rank)])
    layer = Layer(np.full((1, rank, 1), steepness), -behind[None])
    return Maxout((layer,) * depth)


def _side_by_side(layers: tuple[Layer, ...], copies: int) -> Maxout:
    """Copies of a network that do not look at each other."""
    eye = np.eye(copies)
    together = [
        Layer(
            np.einsum("cd,uki->cukdi", eye, layer.weights).reshape(
                copies * layer.units, -1, copies * layer.weights.shape[-1]
            ),
            np.tile(layer.biases, (copies, 1)),
        )
        for layer in layers
    ]
    return Maxout(tuple(together))
