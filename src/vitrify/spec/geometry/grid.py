r"""CPWL functions by their values on a regular grid: Kuhn's triangulation, as hat functions of two maxima each.

A cell of the grid has a simplex for each order of the coordinates $t_i \in [0, 1]$ within it: the points with $t_{\pi
1} \ge \dots \ge t_{\pi d}$. With $z = (x - v)/h$, coordinate by coordinate, the function that is 1 at the vertex $v$, 0
at all other vertices and affine on every simplex is

$$\mathrm{hat}_v(x) = \max\big(0,\; 1 - \max(0, z_1, \dots, z_d) - \max(0, -z_1, \dots, -z_d)\big).$$

On a simplex the order and the signs of the $z_i$ do not change, so both inner maxima are affine. At $v + hk$, $k \in
\mathbb{Z}^d$, they sum to $0$ if $k = 0$, to $1$ if $k$ or $-k$ is a vector of zeros and ones, as all vertices of
simplices at $v$ are, and to at least 1 otherwise: on simplices at $v$ the outer maximum is its second part, on all
others its first. So $f = \sum_v f(v) \,\mathrm{hat}_v$: two maxout units of $d + 1$ pieces and one of 2 for each
vertex. Vertices with value 0 have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Annotated, ClassVar

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import InputError
from vitrify.parameters import Count, Help
from vitrify.spec.geometry.cpwl import Cpwl, Numbers
from vitrify.spec.geometry.maxout import Layer, Maxout

MAX_VERTICES = 1500  # with values other than 0: the network has three heads for each


@dataclass(frozen=True, kw_only=True)
class GridFunction(Cpwl):
    """The function with some values on a regular grid, interpolated by Kuhn's triangulation.

    >>> saddle = GridFunction(box=((0, 1), (0, 1)), cells=(1, 1), values=(0, 1, 1, 0))
    >>> saddle(np.array([[0.5, 0.25], [0.5, 0.5]])).tolist()
    [[0.25], [0.0]]
    """

    SAMPLES: ClassVar[dict[str, dict[str, object]]] = {
        "two cells": {"box": ((0.0, 1.0), (0.0, 2.0)), "cells": (1, 2), "values": (0.5, 1.0, 0.0, 1.0, -0.5, 0.25)},
        "cube": {"box": ((-1.0, 1.0),) * 3, "cells": (1, 1, 1), "values": (0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, -1.0)},
    }

    cells: Annotated[tuple[Count, ...], Help("cells of the grid along each variable")]
    values: Annotated[Numbers, Help("values at the vertices, the last variable running fastest")]

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        count = prod(number + 1 for number in self.cells)
        if len(self.cells) != self.inputs:
            yield "cells", f"must be {self.inputs} numbers, one per interval of the box, not {len(self.cells)}"
        elif len(self.values) != count:
            yield "values", f"must be {count:,} numbers, one per vertex of the grid, not {len(self.values):,}"

    @property
    def steps(self) -> Floats:
        """The distance of two vertices along each variable."""
        return np.asarray((self.high - self.low) / np.array(self.cells))

    def corners(self) -> Floats:
        return vertices_of(self.low, self.high, self.cells)

    @property
    def support(self) -> int:
        """Number of vertices whose value is not 0."""
        return int(np.count_nonzero(self.values))

    def __call__(self, x: Floats) -> Floats:
        """Return the values: from the least vertex of a cell to the largest, one coordinate after the other."""
        x = np.asarray(x, dtype=np.float64)
        table = np.array(self.values).reshape([number + 1 for number in self.cells])
        scaled = (x - self.low) / self.steps
        cell = np.clip(np.floor(scaled).astype(int), 0, np.array(self.cells) - 1)
        t = scaled - cell
        order = np.argsort(-t, axis=1, kind="stable")
        rows = np.arange(len(x))
        value = table[tuple(cell.T)]
        for axis in order.T:
            before = table[tuple(cell.T)]
            cell[rows, axis] += 1
            value = value + t[rows, axis] * (table[tuple(cell.T)] - before)
        return np.asarray(value)[:, None]

    def maxout(self) -> Maxout:
        if self.support > MAX_VERTICES:
            raise InputError(
                f"the grid has {self.support:,} vertices with a value, more than {MAX_VERTICES:,}: use fewer cells"
            )
        size, count = self.inputs, self.support
        if not count:
            return Maxout((Layer(np.zeros((1, size)), np.zeros(1)),), self.radius)
        values = np.array(self.values)
        z = np.vstack([np.zeros((1, size)), np.diag(1 / self.steps)])  # the pieces 0, z_1, …, z_d, before the shift
        shifts = -(self.corners()[values != 0] / self.steps)
        biases = np.column_stack([np.zeros(count), shifts])
        maxima = Layer(
            np.concatenate([np.tile(z, (count, 1, 1)), np.tile(-z, (count, 1, 1))]), np.vstack([biases, -biases])
        )
        sides = -np.hstack([np.eye(count), np.eye(count)])
        hats = Layer(
            np.stack([np.zeros_like(sides), sides], axis=1), np.column_stack([np.zeros(count), np.ones(count)])
        )
        return Maxout((maxima, hats, Layer(values[values != 0][None], np.zeros(1))), self.radius)


def vertices_of(low: Floats, high: Floats, cells: tuple[int, ...]) -> Floats:
    """Return the vertices [vertex, input] of a grid, the last coordinate running fastest."""
    axes = [np.linspace(a, b, number + 1) for a, b, number in zip(low, high, cells, strict=True)]
    return np.array(list(product(*axes)))
