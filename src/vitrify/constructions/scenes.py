r"""A feature scene becomes a convolutional network: intensities, templates, features, classes.

In the spirit of Nandakumar, Tagade & Liu (2023, arXiv 2307.00919); the weights are our own derivation. With $q$
distinct intensities in the templates, templates $T$ of $h \times w$ pixels, $F$ the features that classes ask for:

1. **Clipped intensities**, a 1×1 convolution: for each intensity $t$ one channel $\mathrm{relu}(x - (t + \epsilon))$,
   how far a pixel is above it, and one $\mathrm{relu}((t - \epsilon) - x)$, how far below.
2. **Templates**, an $h \times w$ convolution: one channel per template, $\varphi_T = \mathrm{relu}(1 - e_T/\gamma)$,
   $e_T = \sum_u [x_u - T_u - \epsilon]_+ + [T_u - \epsilon - x_u]_+$. It is exactly 1 where $T$ is present and 0 where
   the gap condition says that it is absent.
3. **Composites**, one more convolution, only where there are some: the parts of a composite, moved back by their
   offsets, are added up with bias $1 - k$ for $k$ parts; a plain feature is passed on as the sum of its variants.
   No patch is within $\epsilon$ of two variants of a part, so every sum is a bit.
4. **Missing features**, one dense unit each, on the sum of the maps over all places: $u_f = \mathrm{relu}(1 - \sum
   \varphi)$ is 0 iff $f$ is somewhere, else 1.
5. **Classes**: the logit of $y$ is $1 - \sum_{f \in F_y} u_f$, one minus the number of its features that are missing.
   The answer `(none)` has the constant logit ½, so the right answer always leads by ½.

| layer | size |
| --- | --- |
| intensities | $2q$ channels |
| templates | one channel each |
| composites | $\lvert F\rvert$ channels, if there are composites |
| dense | $\lvert F\rvert$ units, then one logit per class and one for `(none)` |

Construction `binary`, for scenes whose images are zeros and ones: steps 1 and 2 are one convolution, $\mathrm{relu}(1 -
\lvert T\rvert + \sum_u (2T_u - 1) x_u)$, which is 1 iff the patch equals $T$, else 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import BuildRefused, DeclaredSizes, construction
from vitrify.net.architecture import Output
from vitrify.net.conv import Convolution, Convolutional, Pixels
from vitrify.net.labels import Labels, UnitsLabel
from vitrify.net.weights import Weights
from vitrify.spec.geometry.scene import Scene
from vitrify.spec.geometry.scene_files import NONE

Layer = tuple[Convolution, Floats, Floats, UnitsLabel]  # its shape, kernel, biases and the names of its channels

MIN_RELATIVE_GAMMA = 1e-9  # over the summed intensities of a patch: below, rounding moves a detector by more than 1e-6


def sizes(scene: Scene) -> DeclaredSizes:
    """Return all sizes: channels of each convolution, then dense units; the width is the largest of them."""
    return _sizes(scene, (2 * len(scene.intensities),))


def binary_sizes(scene: Scene) -> DeclaredSizes:
    """Return the sizes of the same without channels for intensities."""
    return _sizes(scene, ())


def _sizes(scene: Scene, intensities: tuple[int, ...]) -> DeclaredSizes:
    features = len(scene.names)
    channels = (*intensities, len(scene.templates), *([features] if scene.composites else []), features)
    return DeclaredSizes.of_layers((0,) * len(channels), channels, max(channels))


@construction(
    "features",
    "clipped intensities, templates, missing features, classes: any scene",
    sizes,
    default=True,
)
def scene_cnn(scene: Scene) -> Weights[Convolutional]:
    """Return a network whose answer is the class of every image that satisfies the gap condition."""
    largest = max(abs(t) for t in scene.intensities) + scene.eps
    finest = MIN_RELATIVE_GAMMA * largest * scene.size[0] * scene.size[1]
    if scene.gamma < finest:
        raise BuildRefused(f"gamma must be at least {finest:.3g} here, or rounding decides, got {scene.gamma:.3g}")
    layers = [_clipped_intensities(scene), _templates(scene)]
    return _network(scene, layers, "numbers", "features")


@construction("binary", "one convolution for scenes of zeros and ones", binary_sizes)
def binary_cnn(scene: Scene) -> Weights[Convolutional]:
    """Return the same for a binary scene, with one convolution less."""
    if not scene.binary:
        raise BuildRefused(
            "the construction 'binary' needs a scene of zeros and ones: intensities and background 0 or 1, no noise, "
            "and eps + gamma at most 1; the construction 'features' builds any scene"
        )
    grids = np.array([grid for _, grid in scene.templates])
    bitmaps = _detectors(scene, 2.0 * grids[:, None] - 1.0, 1.0 - grids.sum(axis=(1, 2)))
    return _network(scene, [bitmaps], "bits", "binary")


def _clipped_intensities(scene: Scene) -> Layer:
    """Return the layer with two channels for each intensity: how far a pixel is above it, and below."""
    q, t = len(scene.intensities), np.array(scene.intensities)
    kernel = np.tile([1.0, -1.0], q).reshape(2 * q, 1, 1, 1)
    bias = np.stack([-(t + scene.eps), t - scene.eps], axis=1).ravel()
    rows = tuple(f"{side} {value:g}" for value in scene.intensities for side in ("above", "below"))
    label = UnitsLabel("clipped intensities", 0, 0, 2 * q, ("templates",), rows)
    return Convolution(2 * q, (1, 1)), kernel, bias, label


def _templates(scene: Scene) -> Layer:
    kernel: Floats = np.zeros((len(scene.templates), len(scene.intensities), 2, *scene.size))
    index = {value: number for number, value in enumerate(scene.intensities)}
    for detector, (_, grid) in zip(kernel, scene.templates, strict=True):
        for pixel in np.ndindex(grid.shape):
            detector[index[float(grid[pixel])], :, *pixel] = -1.0 / scene.gamma
    kernel = kernel.reshape(len(scene.templates), -1, *scene.size)
    return _detectors(scene, kernel, np.ones(len(scene.templates)))


def _detectors(scene: Scene, kernel: Floats, bias: Floats) -> Layer:
    rows = tuple(f"{name}, variant {number + 1}" for name, grids in scene.features for number in range(len(grids)))
    label = UnitsLabel("templates", 0, 0, len(bias), ("features",), rows)
    return Convolution(len(bias), scene.size), kernel, bias, label


def _composites(scene: Scene) -> Layer:
    parts = {name: scene.parts(name) for name in scene.names}
    down = max(part[1] for offsets in parts.values() for part in offsets)
    right = max(part[2] for offsets in parts.values() for part in offsets)
    kernel = np.zeros((len(parts), len(scene.templates), down + 1, right + 1))
    for row, offsets in zip(kernel, parts.values(), strict=True):
        for base, d, r in offsets:
            row[[owner == base for owner, _ in scene.templates], d, r] = 1.0
    bias = np.array([1.0 - len(offsets) for offsets in parts.values()])
    label = UnitsLabel("features at places", 0, 0, len(parts), ("missing features",), scene.names)
    return Convolution(len(parts), (down + 1, right + 1), pad=(down, right)), kernel, bias, label


def _network(scene: Scene, layers: list[Layer], pixels: Pixels, variant: str) -> Weights[Convolutional]:
    """Return the network: the detectors, then composites, missing features and classes, as in every variant."""
    owners = [owner for owner, _ in scene.templates]
    if scene.composites:
        layers.append(_composites(scene))
        owners = list(scene.names)
    classes = dict(scene.classes)
    net = Convolutional(
        planes=1,
        rows=scene.image[0],
        columns=scene.image[1],
        output=Output("class", (*classes, NONE)),
        convolutions=tuple(layer for layer, _, _, _ in layers),
        dense=(len(scene.names),),
        pixels=pixels,
        name=f"scene of {len(classes)} classes, {variant}",
    )
    arrays = {f"conv.{index}.W": kernel for index, (_, kernel, _, _) in enumerate(layers)}
    arrays |= {f"conv.{index}.b": bias for index, (_, _, bias, _) in enumerate(layers)}
    required = [[float(name in members) for members in classes.values()] + [0.0] for name in scene.names]
    arrays |= {
        "dense.0.W_in": -np.array([[float(owner == name) for name in scene.names] for owner in owners]),
        "dense.0.b_in": np.ones(len(scene.names)),
        "unembed.W_U": 0.0 - np.array(required),
        "unembed.b_U": np.array([1.0] * len(classes) + [0.5]),
    }
    missing = UnitsLabel("missing features", 0, 0, len(scene.names), ("classes",), scene.names)
    named = [*(label for _, _, _, label in layers), missing]
    about = {
        "construction": "scene",
        "variant": variant,
        "features": len(scene.names),
        "templates": len(scene.templates),
        "intensities": len(scene.intensities),
        "composites": len(scene.composites),
        "eps": scene.eps,
        "gamma": scene.gamma,
        "exact": "on images that satisfy the gap condition and show at most one class",
        "source": "in the spirit of Nandakumar, Tagade & Liu 2023, arXiv 2307.00919",
    }
    units = tuple(replace(label, block=layer) for layer, label in enumerate(named))  # each is of a whole layer
    return Weights(net, arrays, Labels(units=units), about)
