"""Scenes: images that the scene's own semantics read as what they are, and scenes that are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exact_rows import drawn, foretold
from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import make
from vitrify.sandboxes.scenes import TINY, Scenes
from vitrify.spec.geometry.scene import Scene, random_bitmaps, random_scene

EXAMPLES = Path(__file__).parents[3] / "examples"
SCENES: dict[str, Callable[[], Scene | None]] = {
    "random": lambda: None,
    "composites": lambda: random_scene(1, composites=2, image=40),
    "bitmaps": lambda: random_bitmaps(1),
}


def spoilt(scene: Scene, image: Any) -> str | None:
    """The class of an image whose pixels were rounded to single precision."""
    return scene.reading(np.asarray(image, dtype=np.float64).reshape(scene.image)).label


@pytest.mark.parametrize("which", [*SCENES])
def test_the_scene_reads_every_image_as_its_class(which: str) -> None:
    sandbox = Scenes(SCENES[which](), seed=3)
    found = drawn(sandbox, 120)
    best = foretold(sandbox, found)
    scene = sandbox.shown
    labels = [sandbox.answers[k] for k in found.targets[:, 0]]
    assert [spoilt(scene, image) for image in found.tokens] == labels
    assert [sandbox.answers[k] for k in best[:, 0].argmax(axis=1)] == labels
    assert {*labels} == {*sandbox.answers}
    assert sandbox.planes == (1, *scene.image)
    for names, corners, image in zip(found.latent["names"], found.latent["corner"], found.tokens, strict=True):
        places = scene.places(np.asarray(image, dtype=np.float64).reshape(scene.image))
        for name, corner in zip(names, corners.tolist(), strict=True):
            assert name < 0 or tuple(corner) in places[sandbox.layout.names[name]]
    images, targets = reference(sandbox, np.random.default_rng(0), 40)
    assert [spoilt(scene, image) for image in images] == [sandbox.answers[k] for k in targets[:, 0]]


def test_extra_features_make_no_other_class() -> None:
    found = drawn(Scenes(TINY), 2000)
    names = found.latent["names"]
    with_extra = (names[:, 2] >= 0) & (found.targets[:, 0] == 1)
    assert abs(with_extra.sum() / (found.targets[:, 0] == 1).sum() - 0.5) < 0.1
    assert not (names[found.targets[:, 0] == 0, 2] >= 0).any()  # a box would make it an image of both
    assert {*names[with_extra, 2].tolist()} == {0, 1}


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        (random_bitmaps(0), "around 'f3' there may happen to be 'f0'"),
        (random_scene(2, composites=2, image=40), "features of 'c0' may happen to form one of 'c2'"),
        (random_scene(0, image=12), "must have room for 4 features apart, not for 1"),
    ],
)
def test_scenes_with_accidents_are_refused(scene: Scene, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Scenes(scene)


def test_files_that_are_no_scenes_or_too_small_are_refused() -> None:
    with pytest.raises(InputError, match="room for 3 features apart, not for 1"):
        make("scenes", {"scene": str(EXAMPLES / "faces.scene.toml")})
    with pytest.raises(InputError, match="must be of type Scene or none, not a value of type Dyck"):
        make("scenes", {"scene": str(EXAMPLES / "brackets.dyck")})
