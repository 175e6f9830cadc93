"""Scenes: what is present, what an image is, and the images that are drawn."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases import each
from oracles import naive_scene
from vitrify.errors import InputError, SpecError
from vitrify.spec.geometry.scene import Scene, random_bitmaps, random_scene
from vitrify.spec.geometry.scene_images import draw_images, near_hits, near_misses, scattered

DOT = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
BAR = [[0, 1, 0], [0, 1, 0], [0, 1, 0]]
RING = [[1, 1, 1], [1, 0, 1], [1, 1, 1]]
STAR = [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
SCENE = Scene.of(
    (12, 10),
    0.1,
    0.3,
    {"dot": [DOT], "line": [BAR, np.array(BAR).T.tolist()], "ring": [RING], "star": [STAR]},
    {"i": ["tower"], "o": ["ring", "star"]},
    {"pair": [["dot", 5, 2], ["line", 2, 4]], "tower": [["pair", 1, 0], ["ring", 8, -1]]},
    background=0.5,
    noise=0.05,
)


def with_templates(*pasted: tuple[Any, int, int]) -> Any:
    image = np.full(SCENE.image, SCENE.background)
    for grid, row, column in pasted:
        image[row : row + 3, column : column + 3] = grid
    return image


def test_composites_are_unfolded_and_measured_from_the_corner_of_their_box() -> None:
    assert SCENE.parts("pair") == {("dot", 3, 0), ("line", 0, 2)}
    assert SCENE.parts("tower") == {("dot", 3, 1), ("line", 0, 3), ("ring", 7, 0)}
    assert SCENE.parts("dot") == {("dot", 0, 0)}
    assert SCENE.names == ("ring", "star", "tower")
    assert SCENE.intensities == (0.0, 1.0)
    assert not SCENE.binary


def test_a_composite_is_where_all_its_parts_are() -> None:
    image = with_templates((DOT, 4, 3), (np.array(BAR).T, 1, 5), (RING, 8, 2))
    assert SCENE.places(image) == {
        "dot": ((4, 3),),
        "line": ((1, 5),),
        "ring": ((8, 2),),
        "star": (),
        "pair": ((1, 3),),
        "tower": ((1, 2),),
    }
    moved = with_templates((DOT, 4, 3), (BAR, 1, 6), (RING, 8, 2))
    assert SCENE.places(moved)["pair"] == SCENE.places(moved)["tower"] == ()


@each(
    ("pasted", "label", "why"),
    [
        ([], None, "no class has all its features"),
        ([(RING, 0, 0)], None, "no class has all its features"),
        ([(RING, 0, 0), (STAR, 0, 5)], "o", "all features"),
        ([(DOT, 4, 3), (BAR, 1, 5), (RING, 8, 2), (STAR, 8, 6)], None, "2 classes: i, o"),
        (
            [(RING, 0, 0), (STAR, 0, 5), (np.array(DOT) + np.eye(3) * 0.15, 5, 5)],
            None,
            "row 5, column 5 .* 'dot' .* 0.15",
        ),
    ],
)
def test_an_image_has_a_class_or_a_reason_why_not(pasted: Any, label: str | None, why: str) -> None:
    reading = SCENE.reading(with_templates(*pasted))
    assert reading.label == label
    assert re.search(why, reading.why)


def test_the_limits_of_presence_and_absence() -> None:
    """Within eps is present, gamma beyond eps is absent, anything between is neither."""
    scene = replace(SCENE, eps=0.125, gamma=0.25)  # exact in binary
    for off, found, gap in ((0.125, True, True), (0.126, False, False), (0.374, False, False), (0.375, False, True)):
        image = with_templates((RING, 3, 3))
        image[4, 4] = off
        assert bool(scene.places(image)["ring"]) == found, off
        assert (scene.violation(image) is None) == gap, off


@pytest.mark.parametrize(
    "scene", [SCENE, random_scene(3, size=2, variants=1, features=3, per_class=1, classes=2, image=7)]
)
def test_semantics_are_those_of_plain_loops(scene: Scene) -> None:
    rng = np.random.default_rng(0)
    seen = Counter[bool]()
    for image in [*draw_images(scene, 4, 0)[0], *near_misses(scene, rng, 4), *scattered(scene, rng, 3)]:
        for spoilt in (image, image + rng.uniform(-0.2, 0.2, size=image.shape) * rng.integers(2)):
            places = scene.places(spoilt)
            for name, where in places.items():
                naive = [
                    (i, j)
                    for i in range(scene.image[0])
                    for j in range(scene.image[1])
                    if naive_scene.at(scene, spoilt, name, i, j)
                ]
                assert list(where) == naive
            gap = scene.violation(spoilt) is None
            assert gap == naive_scene.gap_holds(scene, spoilt)
            seen[gap] += 1
    assert all(seen[kind] for kind in (True, False))


def test_images_of_another_size_or_without_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="12×10 pixels"):
        SCENE.reading(np.zeros((10, 12)))
    with pytest.raises(InputError, match="finite"):
        SCENE.reading(np.full((12, 10), np.nan))


# Drawing


@pytest.mark.parametrize("scene", [SCENE, random_scene(1, composites=1), random_bitmaps(0)])
def test_drawn_images_are_of_their_class_and_depend_on_the_seed_alone(scene: Scene) -> None:
    images, labels = draw_images(scene, 12, seed=4)
    again, same = draw_images(scene, 12, seed=4)
    np.testing.assert_array_equal(images, again)
    assert labels == same
    assert set(labels) == set(dict(scene.classes))
    assert [scene.reading(image).label for image in images] == list(labels)
    assert not np.array_equal(images, draw_images(scene, 12, seed=5)[0])
    if scene.binary:
        assert set(np.unique(images)) == {0.0, 1.0}


def test_distractors_are_drawn_too() -> None:
    scene = random_scene(0)
    images, labels = draw_images(scene, 40, seed=0)
    more = [
        len([name for name, where in scene.places(image).items() if where]) > len(dict(scene.classes)[label])
        for image, label in zip(images, labels, strict=True)
    ]
    assert any(more)


def test_near_misses_break_one_template_and_near_hits_none() -> None:
    scene, rng = random_scene(0, image=18), np.random.default_rng(0)
    misses = near_misses(scene, rng, 40)
    assert len(misses) >= 36
    for image in misses:
        assert scene.violation(image) is None
        least = np.where(scene.present(image), np.inf, scene.excess(image)).min()
        assert scene.gamma <= least <= scene.gamma * 1.001
    for image in near_hits(scene, rng, 8):
        assert scene.reading(image).label
        assert np.abs(image - scene.background).max() > 0.75 + scene.eps / 2


def test_near_misses_of_bitmaps_are_bitmaps() -> None:
    scene = random_bitmaps(0)
    images = near_misses(scene, np.random.default_rng(0), 30, bits=True)
    assert len(images) >= 25
    assert set(np.unique(images)) <= {0.0, 1.0}


def test_scattered_parts_are_all_there_but_not_together() -> None:
    images = scattered(SCENE, np.random.default_rng(0), 10)
    assert len(images) == 10
    for image in images:
        places = SCENE.places(image)
        assert places["dot"]
        assert places["line"]
    assert sum(bool(SCENE.places(image)["tower"]) for image in images) <= 1
    plain = random_bitmaps(0)
    assert len(scattered(plain, np.random.default_rng(0), 10)) == 0


def test_a_class_that_does_not_fit_is_refused_with_the_reason() -> None:
    small = Scene.of((4, 4), 0.1, 0.3, {"dot": [DOT], "ring": [RING]}, {"both": ["dot", "ring"]})
    with pytest.raises(SpecError, match="class 'both' was found in 400 draws; 400 times there was no room"):
        draw_images(small, 1, seed=0)
    grey = Scene.of((6, 6), 0.3, 0.8, {"dot": [DOT], "ring": [RING]}, {"a": ["dot"], "b": ["ring"]}, background=0.35)
    with pytest.raises(SpecError, match="400 times the patch"):
        draw_images(grey, 1, seed=0)


@pytest.mark.long
def test_random_scenes_are_what_was_asked_for_or_refused() -> None:
    assert len(random_scene(2, composites=2).composites) == 2
    assert random_scene(5) == random_scene(5) != random_scene(6)
    with pytest.raises(SpecError, match="no such scene was found"):
        random_scene(0, features=3, classes=4, per_class=1)


def test_a_refusal_names_the_reason_of_the_last_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first draw is refused by its layout, the second since a composite is in no class."""
    monkeypatch.setattr("vitrify.spec.geometry.scene.MAX_DRAWS", 2)
    with pytest.raises(SpecError, match="the last one failed because some composite is in no class"):
        random_scene(0, features=3, composites=2, classes=3, per_class=1, size=3, image=4)
