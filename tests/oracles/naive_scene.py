"""Scenes and convolutions by plain loops over pixels: the independent oracle of both."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.net.conv import Convolutional
from vitrify.net.weights import Weights
from vitrify.spec.geometry.scene import Scene


def present(scene: Scene, image: Any, grid: Any, row: int, column: int) -> bool:
    rows, columns = grid.shape
    return all(
        abs(float(image[row + i][column + j]) - float(grid[i][j])) <= scene.eps
        for i in range(rows)
        for j in range(columns)
    )


def gap_holds(scene: Scene, image: Any) -> bool:
    for _, grid in scene.templates:
        for row, column in corners(scene):
            rows, columns = grid.shape
            beyond = [
                max(0.0, abs(float(image[row + i][column + j]) - float(grid[i][j])) - scene.eps)
                for i in range(rows)
                for j in range(columns)
            ]
            if not present(scene, image, grid, row, column) and sum(beyond) < scene.gamma:
                return False
    return True


def corners(scene: Scene) -> list[tuple[int, int]]:
    rows, columns = scene.templates[0][1].shape
    return [(i, j) for i in range(scene.image[0] - rows + 1) for j in range(scene.image[1] - columns + 1)]


def at(scene: Scene, image: Any, name: str, row: int, column: int) -> bool:
    """Whether a feature or composite is present at a corner, a composite by its parts, from the written offsets."""
    if name in dict(scene.features):
        inside = (row, column) in corners(scene)
        grids = [grid for owner, grid in scene.templates if owner == name]
        return inside and any(present(scene, image, grid, row, column) for grid in grids)
    parts = dict(scene.composites)[name]
    top, left = min(down for _, down, _ in parts), min(right for _, _, right in parts)
    return all(at(scene, image, part, row + down - top, column + right - left) for part, down, right in parts)


def missing(scene: Scene, image: Any, label: str) -> int:
    """How many features of a class are nowhere in an image."""
    places = [(i, j) for i in range(scene.image[0]) for j in range(scene.image[1])]
    return sum(not any(at(scene, image, name, *place) for place in places) for name in dict(scene.classes)[label])


def logits(weights: Weights[Convolutional], planes: Any) -> Any:
    """The forward pass of one input by loops."""
    net, arrays = weights.architecture, weights.arrays
    x = np.array(planes, dtype=np.float64)
    for index, layer in enumerate(net.convolutions):
        kernel, bias = arrays[f"conv.{index}.W"], arrays[f"conv.{index}.b"]
        channels, height, width = x.shape
        rows = (height + 2 * layer.pad[0] - layer.kernel[0]) // layer.stride[0] + 1
        columns = (width + 2 * layer.pad[1] - layer.kernel[1]) // layer.stride[1] + 1
        out = np.zeros((layer.channels, rows, columns))
        for o, r, c in np.ndindex(out.shape):
            total = float(bias[o])
            for k, i, j in np.ndindex(channels, *layer.kernel):
                row, column = r * layer.stride[0] + i - layer.pad[0], c * layer.stride[1] + j - layer.pad[1]
                if 0 <= row < height and 0 <= column < width:
                    total += float(kernel[o, k, i, j]) * float(x[k, row, column])
            out[o, r, c] = max(total, 0.0)
        x = out
    vector = [float(plane.sum()) for plane in x]
    for index in range(len(net.dense)):
        matrix, bias = arrays[f"dense.{index}.W_in"], arrays[f"dense.{index}.b_in"]
        vector = [
            max(0.0, float(bias[u]) + sum(v * float(matrix[k, u]) for k, v in enumerate(vector)))
            for u in range(len(bias))
        ]
    matrix, bias = arrays["unembed.W_U"], arrays["unembed.b_U"]
    return np.array(
        [float(bias[u]) + sum(v * float(matrix[k, u]) for k, v in enumerate(vector)) for u in range(len(bias))]
    )
