"""Laws of scenes: networks agree with plain loops on any image, and files with values."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from oracles import naive_scene
from vitrify.constructions.scenes import binary_cnn, scene_cnn
from vitrify.errors import SpecError
from vitrify.net.conv import image_planes
from vitrify.net.inference import outputs
from vitrify.spec.geometry.scene import Scene

NUMBERS = st.sampled_from([0.0, 0.5, 1.0])


@st.composite
def scenes(draw: Any, levels: Any = NUMBERS) -> Scene:
    """Two to four features of 2×2 pixels on images of 6×5, perhaps a composite."""
    rows, columns = draw(st.sampled_from([(2, 2), (1, 2), (2, 1)]))
    grid = st.lists(st.lists(levels, min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    names = ["a", "b", "c", "d"][: draw(st.integers(2, 4))]
    features = {name: draw(st.lists(grid, min_size=1, max_size=2)) for name in names}
    composites = {}
    if draw(st.booleans()):
        offset = draw(st.sampled_from([(rows, 0), (0, columns), (rows, 1), (-rows, 1)]))
        composites = {"x": [[names[0], 0, 0], [names[1], *offset]]}
    chosen = st.lists(st.sampled_from([*names, *composites]), min_size=1, max_size=2, unique=True)
    classes = {f"y{k}": draw(chosen) for k in range(draw(st.integers(1, 3)))}
    used = {member for members in classes.values() for member in members}
    used |= {part for name in used & set(composites) for part, _, _ in composites[name]}
    try:
        return Scene.of(
            (6, 5),
            0.125,
            0.25,
            {name: grids for name, grids in features.items() if name in used},
            classes,
            {name: parts for name, parts in composites.items() if name in used},
        )
    except SpecError:
        assume(False)
        raise


def images(draw: Any, levels: Any, scene: Scene) -> Any:
    """A patchwork of templates and levels, every pixel a little off."""
    image = np.array(draw(st.lists(levels, min_size=30, max_size=30))).reshape(6, 5)
    for _ in range(draw(st.integers(0, 3))):
        _, grid = draw(st.sampled_from(scene.templates))
        row, column = draw(st.integers(0, 6 - grid.shape[0])), draw(st.integers(0, 5 - grid.shape[1]))
        image[row : row + grid.shape[0], column : column + grid.shape[1]] = grid
    return image


def wanted(scene: Scene, image: Any) -> list[float]:
    return [1.0 - naive_scene.missing(scene, image, label) for label, _ in scene.classes] + [0.5]


@settings(max_examples=examples(60))
@given(st.data(), scenes())
def test_every_image_with_a_gap_gets_its_classes(data: Any, scene: Scene) -> None:
    image = images(data.draw, NUMBERS, scene)
    image += np.array(
        data.draw(st.lists(st.sampled_from([-0.125, 0.0, 0.0625, 0.125]), min_size=30, max_size=30))
    ).reshape(6, 5)
    assume(naive_scene.gap_holds(scene, image))
    weights = scene_cnn(scene)
    np.testing.assert_allclose(outputs(weights, image[None, None])[0], wanted(scene, image), atol=1e-9)
    reading = scene.reading(image)
    full = [label for (label, _), score in zip(scene.classes, wanted(scene, image), strict=False) if score == 1.0]
    assert reading.label == (full[0] if len(full) == 1 else None)


@settings(max_examples=examples(60))
@given(st.data(), scenes(st.sampled_from([0.0, 1.0])))
def test_every_bitmap_gets_its_classes_from_one_convolution(data: Any, scene: Scene) -> None:
    image = images(data.draw, st.sampled_from([0.0, 1.0]), scene)
    weights = binary_cnn(scene)
    found = outputs(weights, image_planes(weights.architecture, image[None]))[0]
    np.testing.assert_allclose(found, wanted(scene, image), atol=1e-9)
    np.testing.assert_allclose(found, outputs(scene_cnn(scene), image[None, None])[0], atol=1e-9)


@settings(max_examples=examples(30))
@given(scenes())
def test_reading_undoes_writing(scene: Scene) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.scene.toml"
        scene.write(path)
        assert Scene.read(path) == scene
