"""Convolutions on fractions and balls: every window of the maps is a row that meets the kernel."""

from __future__ import annotations

from collections.abc import Callable

from flint import fmpq

from vitrify.certify.ball_steps import Rounded, sizes
from vitrify.certify.reals import NOTHING, Entry, Reals, ones, relu, together
from vitrify.net.conv import Convolution, Convolutional

Affine = Callable[[Reals, str, str], Reals]


def pooled(net: Convolutional, affine: Affine, x: Reals, rounded: Rounded) -> Reals:
    """The sums [1, channel] of the last maps, from planes [plane, row * column]."""
    height, width = net.rows, net.columns
    for index, layer in enumerate(net.convolutions):
        maps = relu(affine(_windows(layer, x, height, width), f"conv.{index}.W", f"conv.{index}.b"))
        height, width = layer.places(height, width)
        x = maps.T
    total = ones(x.shape[1]).T @ x.T
    return rounded.widened(total, ones(x.shape[1]).T.whole() * sizes(x.T.whole()), x.shape[1]) if rounded.u else total


def _windows(layer: Convolution, x: Reals, height: int, width: int) -> Reals:
    """One row per place of the new maps: what its window shows of each plane, with zeros around the planes."""
    entries, outside = x.entries(), (fmpq(0), NOTHING)
    high, wide = layer.places(height, width)

    def seen(plane: int, row: int, column: int) -> Entry:
        inside = 0 <= row < height and 0 <= column < width
        return entries[(plane * height + row) * width + column] if inside else outside

    found = [
        seen(plane, i * layer.stride[0] - layer.pad[0] + down, j * layer.stride[1] - layer.pad[1] + right)
        for i in range(high)
        for j in range(wide)
        for plane in range(x.shape[0])
        for down in range(layer.kernel[0])
        for right in range(layer.kernel[1])
    ]
    return together(high * wide, x.shape[0] * layer.kernel[0] * layer.kernel[1], found)
