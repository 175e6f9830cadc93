r"""The margin of a scene's network on all images that satisfy the gap condition, from its stored weights.

A template's detector is $b - \sum_u w_u\,[x_u - a_u]_+ - \sum_u w'_u\,[c_u - x_u]_+$ with stored thresholds near $T_u
\pm \epsilon$. Moving a threshold changes a term by at most as much, so with $s$ the sum of these distances the detector
is at most $b - w_{\min}(\gamma - s)$ where the excess of $T$ is at least $\gamma$, and in $[b - w_{\max} s, b]$ where
it is 0. On images of zeros and ones it is largest where $x = T$, and falls by a weight with every other pixel. These
two intervals, present and absent, go through the remaining layers: sums of parts, sums over all locations, missing
features, classes. All in fractions and for pixels of any size; the rounding of a run is not included.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from vitrify.arrays import Arrays, Floats
from vitrify.certification.margins.values import Undecided
from vitrify.net.conv import Convolutional
from vitrify.net.weights import Weights
from vitrify.spec.geometry.scene import Scene


class Presence(NamedTuple):
    """The least and largest value where something is present, and the largest where it is absent; the least is 0."""

    low: Fraction
    high: Fraction
    absent: Fraction


def gap_margin(weights: Weights[Convolutional], scene: Scene) -> Fraction:
    """Return a lower bound on the margin of the right class over all images that satisfy the gap condition."""
    net, arrays = weights.architecture, weights.arrays
    first = 1 if net.pixels == "bits" else 2
    pads, strides = [layer.pad for layer in net.convolutions], {layer.stride for layer in net.convolutions}
    _need(
        net.shared
        and strides == {(1, 1)}
        and len(pads) == first + bool(scene.composites)
        and {*pads[:first]} == {(0, 0)},
        "convolutions",
    )
    bits = _bitmaps(arrays, scene) if first == 1 else _detectors(arrays, scene)
    owners = [owner for owner, _ in scene.templates]
    if scene.composites:
        kernel = arrays[f"conv.{first}.W"]
        _need(np.array_equal(kernel, _composites(kernel, scene)), "composites")
        _need(pads[first] == (kernel.shape[2] - 1, kernel.shape[3] - 1), "composites")
        sizes = [len(scene.parts(name)) for name in scene.names]
        _need(arrays[f"conv.{first}.b"].tolist() == [1.0 - size for size in sizes], "composites")
        variants = max(owners.count(owner) for owner in owners)
        bits, owners = [_all_parts(_any_variant(bits, variants), size) for size in sizes], list(scene.names)
    missing = -np.array([[float(owner == name) for name in scene.names] for owner in owners])
    _need(np.array_equal(arrays["dense.0.W_in"], missing), "missing features")
    _need(set(arrays["dense.0.b_in"].tolist()) == {1.0}, "missing features")
    required = np.array([[float(name in members) for _, members in scene.classes] for name in scene.names])
    _need(np.array_equal(arrays["unembed.W_U"], 0.0 - np.pad(required, ((0, 0), (0, 1)))), "classes")
    _need(arrays["unembed.b_U"].tolist() == [1.0] * len(scene.classes) + [0.5], "classes")
    places = scene.image[0] * scene.image[1] * max(owners.count(owner) for owner in owners)
    found = max(Fraction(0), 1 - min(bit.low for bit in bits))  # of a unit for a feature that is somewhere
    lacking = max(Fraction(0), 1 - places * max(bit.absent for bit in bits))  # of a unit for one that is nowhere
    all_there = found * max(len(members) for _, members in scene.classes)
    half = Fraction(1, 2)
    return min(half - all_there, lacking - all_there, lacking - half)


def _detectors(arrays: Arrays, scene: Scene) -> list[Presence]:
    """Return the bits of all templates, over channels for pixels above and below intensities."""
    sign, threshold = arrays["conv.0.W"].ravel(), arrays["conv.0.b"]
    _need(set(np.abs(sign).tolist()) == {1.0}, "intensities")
    eps, gamma = Fraction(scene.eps), Fraction(scene.gamma)
    bits = []
    for kernel, bias, (_, grid) in zip(arrays["conv.1.W"], arrays["conv.1.b"].tolist(), scene.templates, strict=True):
        moved, sizes = Fraction(0), list[Fraction]()
        for pixel in np.ndindex(grid.shape):
            channels = np.flatnonzero(kernel[:, *pixel])
            _need(sorted(sign[channels].tolist()) == [-1.0, 1.0] and (kernel[channels, *pixel] < 0).all(), "templates")
            for channel in channels.tolist():
                side = int(sign[channel])
                right = Fraction(float(grid[pixel])) + side * eps
                moved += abs(-side * Fraction(float(threshold[channel])) - right)
                sizes.append(-Fraction(float(kernel[channel, *pixel])))
        low, high = Fraction(bias) - max(sizes) * moved, Fraction(bias)
        bits.append(Presence(low, high, max(Fraction(0), high - min(sizes) * (gamma - moved))))
    return bits


def _bitmaps(arrays: Arrays, scene: Scene) -> list[Presence]:
    """Return the bits of all templates, on images of zeros and ones."""
    bits = []
    for kernel, bias, (_, grid) in zip(arrays["conv.0.W"], arrays["conv.0.b"].tolist(), scene.templates, strict=True):
        numbers = [Fraction(number) for number in kernel.ravel().tolist()]
        _need(np.array_equal(kernel[0] > 0, grid == 1) and all(numbers), "templates")
        there = Fraction(bias) + sum(number for number in numbers if number > 0)
        bits.append(Presence(there, there, max(Fraction(0), there - min(map(abs, numbers)))))
    return bits


def _any_variant(bits: list[Presence], variants: int) -> Presence:
    """Return the sum over the variants of a feature, of which one at most is present at a location."""
    absent = max(bit.absent for bit in bits)
    high = max(bit.high for bit in bits) + (variants - 1) * absent
    return Presence(min(bit.low for bit in bits), high, variants * absent)


def _all_parts(part: Presence, count: int) -> Presence:
    """Return what a unit for some parts gives: their sum, less all but one."""
    rest = (count - 1) * (part.high - 1)
    return Presence(1 - count * (1 - part.low), part.high + rest, max(Fraction(0), part.absent + rest))


def _composites(kernel: Floats, scene: Scene) -> Floats:
    """Return the kernel of the units for features at locations, as large as the stored one."""
    right = np.zeros_like(kernel)
    owners = np.array([owner for owner, _ in scene.templates])
    for row, name in zip(right, scene.names, strict=True):
        for base, down, across in scene.parts(name):
            row[owners == base, down, across] = 1.0
    return right


def _need(condition: bool, layer: str) -> None:
    if not condition:
        raise Undecided(f"the layer of {layer} is not of the form that the proof is about")
