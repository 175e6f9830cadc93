"""The margin proved for all images of a scene's gap set is never above that of an image, however it was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.certification.margins.values import Undecided
from vitrify.certification.reading.gap import gap_margin
from vitrify.constructions.catalogue import build
from vitrify.net.conv import Convolutional
from vitrify.net.inference import outputs
from vitrify.net.weights import Weights
from vitrify.spec.geometry.scene import Scene, random_bitmaps, random_scene
from vitrify.spec.geometry.scene_images import draw_images

SCENES = {
    "gray": (random_scene(0, features=4, size=3, classes=3, per_class=2, image=12), "features"),
    "composites": (random_scene(1, composites=2, size=4, image=20), "features"),
    "bits": (random_bitmaps(2, composites=1), "features"),
    "binary": (random_bitmaps(2, composites=1), "binary"),
}


def images(scene: Scene) -> Iterator[tuple[Any, str]]:
    """Yield images at the edge of the gap set with their classes: pixels at ±eps, and one wrong by eps + gamma."""
    rng = np.random.default_rng(0)
    drawn, labels = draw_images(scene, 12, seed=3)
    for image, label in zip(drawn, labels, strict=True):
        yield image, label
        if scene.binary:
            continue
        for wrong in (False, True):
            moved = image.copy()
            where = scene.present(image)
            for number, row, column in np.argwhere(where).tolist():
                grid = scene.templates[number][1]
                patch = grid + scene.eps * rng.choice([-1.0, 1.0], grid.shape) * (1 - 1e-12)
                if wrong:
                    patch[0, 0] = grid[0, 0] + (scene.eps + scene.gamma) * (1 + 1e-9)
                moved[row : row + grid.shape[0], column : column + grid.shape[1]] = patch
            reading = scene.reading(moved)
            if reading.label is not None or reading.why == "no class has all its features here":
                yield moved, reading.label or "(none)"


def least_margin(weights: Weights[Convolutional], scene: Scene) -> float:
    symbols, margins = weights.architecture.output.symbols, []
    for image, label in images(scene):
        scores = outputs(weights, image[None, None])[0]
        right = symbols.index(label)
        margins.append(scores[right] - np.delete(scores, right).max())
    return float(min(margins))


@each("name", SCENES)
def test_half_of_a_logit_is_proved_and_attained(name: str) -> None:
    scene, construction = SCENES[name]
    weights = build(scene, construction)
    proved = float(gap_margin(weights, scene))
    assert 0.5 - 1e-9 <= proved <= 0.5
    assert proved - 1e-9 <= least_margin(weights, scene) <= 0.5 + 1e-9


@pytest.mark.long
@each("seed", range(40))
def test_what_is_proved_of_wrong_weights_holds_of_images(seed: int) -> None:
    """Thresholds, weights and biases are moved; where there is a proof at all, no image has a smaller margin."""
    rng = np.random.default_rng(seed)
    scene, construction = SCENES[["gray", "composites", "bits"][seed % 3]]
    weights = build(scene, construction)
    name = ["conv.0.b", "conv.1.W", "conv.1.b"][seed % 7 % 3]
    array = weights.arrays[name] * (1 + 0.2 * rng.normal(size=weights.arrays[name].shape) * (rng.random() < 0.8))
    wrong = weights.with_array(name, array + (array != 0) * 0.02 * rng.normal())
    assert float(gap_margin(wrong, scene)) <= least_margin(wrong, scene) + 1e-9


@each(
    "name, index, number",
    [
        ("conv.0.W", (0, 0, 0, 0), 0.5),
        ("conv.1.W", (0, 0, 0, 0), 0.25),
        ("conv.2.W", (0, 0, 0, 0), 0.5),
        ("conv.2.b", 0, 0.5),
        ("dense.0.W_in", (0, 0), 0.0),
        ("dense.0.b_in", 0, 0.5),
        ("unembed.W_U", (0, 0), 0.5),
        ("unembed.b_U", -1, 0.0),
    ],
)
def test_networks_of_another_form_are_not_proved(name: str, index: Any, number: float) -> None:
    scene, construction = SCENES["composites"]
    weights = build(scene, construction)
    array = weights.arrays[name].copy()
    array[index] = number if array[index] != number else 7.0
    with pytest.raises(Undecided, match="the layer of"):
        gap_margin(weights.with_array(name, array), scene)
