"""The margin proved for all images of a scene's gap set is never above that of an image, however it was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.certification.margins.values import Undecided
from vitrify.certification.reading.gap import Presence, _all_parts, _any_variant, _detectors, gap_margin
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


def detector(weights: Weights[Convolutional], template: int, patch: Any) -> float:
    """Return a template's detector at one patch, from the stored arrays."""
    arrays = weights.arrays
    above = np.maximum(arrays["conv.0.W"][:, 0] * patch + arrays["conv.0.b"][:, None, None], 0.0)
    return max(0.0, float((arrays["conv.1.W"][template] * above).sum() + arrays["conv.1.b"][template]))


@each("seed", range(30))
def test_detectors_with_moved_weights_stay_within_their_bounds(seed: int) -> None:
    """Patches at the edge of presence and of absence, with one pixel off on either side."""
    rng, (scene, construction) = np.random.default_rng(seed), SCENES["gray"]
    weights = build(scene, construction)
    for name in ("conv.0.b", "conv.1.W", "conv.1.b"):
        array = weights.arrays[name]
        weights = weights.with_array(name, array * (1 + 0.003 * rng.normal(size=array.shape)))
    for number, ((_, grid), bit) in enumerate(zip(scene.templates, _detectors(weights.arrays, scene), strict=True)):
        there, absent = [], []
        for signs in (1.0, -1.0, *rng.choice([-1.0, 1.0], (20, *grid.shape))):
            there.append(detector(weights, number, grid + scene.eps * signs))
            for pixel in np.ndindex(grid.shape):
                for side in (-1.0, 1.0):
                    patch = grid + scene.eps * signs
                    patch[pixel] = grid[pixel] + side * (scene.eps + scene.gamma)
                    absent.append(detector(weights, number, patch))
        assert bit.low - 1e-12 <= min(there) <= max(there) <= bit.high + 1e-12
        assert max(absent) <= bit.absent + 1e-12


def test_a_detector_that_reads_too_much_counts_at_every_location() -> None:
    """A bias of 1 + d leaves d at each of 12 × 12 places for each of two variants, where a feature may be nowhere."""
    scene, construction = SCENES["gray"]
    weights = build(scene, construction)
    array = weights.arrays["conv.1.b"] + 0.001
    proved = gap_margin(weights.with_array("conv.1.b", array), scene)
    assert float(proved) == pytest.approx(0.5 - 12 * 12 * 2 * 0.001, abs=1e-9)


@each("count", [1, 2, 3])
def test_all_parts_and_any_variant_bound_every_combination(count: int) -> None:
    variant = Presence(Fraction(9, 10), Fraction(11, 10), Fraction(1, 20))
    some = [Fraction(0), variant.absent]
    part, two = [variant.low, variant.high], _any_variant([variant] * 2, 2)
    there = [x + y for x in part for y in some]
    absent = [x + y for x in some for y in some]
    assert (two.low, two.high, two.absent) == (min(there), max(there), max(absent))
    all_there = [sum(parts) + 1 - count for parts in product(there, repeat=count)]
    lacking = [sum(parts) + one + 1 - count for parts in product(there, repeat=count - 1) for one in absent]
    whole = _all_parts(two, count)
    assert (whole.low, whole.high, whole.absent) == (min(all_there), max(all_there), max(0, *lacking))


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
