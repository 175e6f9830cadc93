"""Scenes as convolutional networks: bits at every layer, sizes, names, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from built import small_scene
from cases import each
from vitrify.certification import certify
from vitrify.constructions.catalogue import build
from vitrify.constructions.scenes import binary_cnn, binary_sizes, scene_cnn, sizes
from vitrify.errors import BuildRefused
from vitrify.net.conv import image_planes
from vitrify.net.inference import outputs
from vitrify.spec.geometry.scene import Scene, random_bitmaps
from vitrify.spec.geometry.scene_images import draw_images, near_misses

SCENES = [
    small_scene(0),
    small_scene(1, composites=1),
    random_bitmaps(0),
    random_bitmaps(2, composites=1),
]


def maps(weights: Any, images: Any) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    weights.architecture.forward(weights.arrays, images[:, None], record=seen.__setitem__)
    return seen


@pytest.mark.long
@each("scene", SCENES)
@each("shape", ["features", "binary"])
def test_every_layer_holds_what_the_scene_says(scene: Scene, shape: str) -> None:
    if shape == "binary" and not scene.binary:
        return
    weights = build(scene, shape)
    rng = np.random.default_rng(0)
    images = np.concatenate([draw_images(scene, 30, 7)[0], near_misses(scene, rng, 60, bits=shape == "binary")])
    seen = maps(weights, images)
    first = 1 if shape == "features" else 0
    np.testing.assert_allclose(seen[f"conv.{first}.hook_post"], np.array([*map(scene.present, images)]), atol=1e-9)
    places = [scene.places(image) for image in images]
    absent = np.array([[float(not found[name]) for name in scene.names] for found in places])
    np.testing.assert_allclose(seen["dense.0.hook_post"], absent, atol=1e-9)
    if scene.composites:
        pads = weights.architecture.convolutions[-1].pad
        for image, found in zip(seen[f"conv.{first + 1}.hook_post"], places, strict=True):
            for channel, name in zip(image, scene.names, strict=True):
                where = np.argwhere(channel > 0.5) - pads
                assert [tuple(place) for place in where.tolist()] == list(found[name])
                assert set(np.unique(channel.round(9))) <= {0.0, 1.0}
    wanted = [[1.0 - sum(not found[m] for m in members) for _, members in scene.classes] + [0.5] for found in places]
    np.testing.assert_allclose(outputs(weights, image_planes(weights.architecture, images)), wanted, atol=1e-9)


@each("scene", SCENES)
def test_sizes_are_those_of_the_formulas(scene: Scene) -> None:
    net = scene_cnn(scene).architecture
    q, templates = len(scene.intensities), sum(len(variants) for _, variants in scene.features)
    wanted = [2 * q, templates] + ([len(scene.names)] if scene.composites else [])
    assert [layer.channels for layer in net.convolutions] == wanted
    assert 2 * q <= 2 * q + 1
    assert net.dense == (len(scene.names),)
    assert len(net.output.symbols) == len(scene.classes) + 1
    assert sizes(scene).exact["units_per_layer"] == (*wanted, *net.dense)
    if scene.binary:
        assert [layer.channels for layer in binary_cnn(scene).architecture.convolutions] == wanted[1:]
        assert binary_sizes(scene).exact["units_per_layer"] == (*wanted[1:], *net.dense)


@each("scene", SCENES)
def test_every_channel_and_unit_is_named(scene: Scene) -> None:
    weights = scene_cnn(scene)
    named = {label.block: label for label in weights.labels.units}
    assert [len(named[layer].unit_names) for layer in sorted(named)] == list(weights.architecture.units_per_layer)
    assert named[0].unit_names[:2] == ("above 0", "below 0")


def test_scenes_that_are_not_binary_are_refused_in_that_shape() -> None:
    bitmap = random_bitmaps(0)
    coarse = Scene.of((6, 6), 0.3, 0.8, {"light": [[[0, 0]]], "dark": [[[1, 1]]]}, {"a": ["light"], "b": ["dark"]})
    for scene in (SCENES[0], replace(bitmap, noise=0.1), replace(bitmap, background=0.5), coarse):
        with pytest.raises(BuildRefused, match="needs a scene of zeros and ones"):
            build(scene, "binary")


@pytest.mark.long
def test_gaps_that_rounding_would_decide_are_refused() -> None:
    scene = random_bitmaps(0)
    with pytest.raises(BuildRefused, match="gamma must be at least"):
        scene_cnn(replace(scene, gamma=1e-9))
    assert certify(scene_cnn(replace(scene, gamma=2e-8)), replace(scene, gamma=2e-8)).verdict == "holds"
