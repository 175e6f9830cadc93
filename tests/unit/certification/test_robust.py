"""Robustness radii: sound on random nets, equal to the hand proof on scenes, and tight against attacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from built import small_scene
from cases import each
from vitrify.certification.attacks.images import attack, lead_gradient
from vitrify.certification.attacks.robust import answers, certified, radii
from vitrify.constructions.scenes import scene_cnn
from vitrify.net.architecture import Output
from vitrify.net.conv import Convolution, Convolutional
from vitrify.net.inference import outputs
from vitrify.net.weights import Weights
from vitrify.spec.geometry.scene import Scene
from vitrify.spec.geometry.scene_images import draw_images, near_misses

SCENES = [small_scene(0), small_scene(1, composites=1)]
NET = Convolutional(
    1,
    5,
    5,
    Output("class", ("a", "b", "c")),
    (Convolution(4, (2, 3)), Convolution(3, (2, 2), stride=(2, 1), pad=(1, 0))),
    dense=(6,),
)


def random_weights(seed: int) -> Weights[Convolutional]:
    rng = np.random.default_rng(seed)
    return Weights(NET, {name: rng.normal(size=shape) for name, shape in NET.shapes().items()})


@pytest.mark.long
@each("seed", range(6))
def test_no_answer_changes_within_the_radius_of_any_net(seed: int) -> None:
    """Corners of the cube, random points, and the worst that an attack finds."""
    weights, rng = random_weights(seed), np.random.default_rng([seed, 1])
    planes = rng.normal(size=(6, 1, 5, 5))
    radius = radii(weights, planes)
    assert (radius > 0).all()
    assert certified(weights, planes, radius).all()
    assert not certified(weights, planes, 1.01 * radius + 1e-12).any()
    first = answers(weights, planes)
    for _ in range(200):
        moves = rng.choice((-1.0, 1.0), size=planes.shape) * rng.choice((1.0, rng.random()))
        np.testing.assert_array_equal(answers(weights, planes + radius[:, None, None, None] * moves), first)
    assert not attack(weights, planes, radius, seed)[0].any()


def test_a_linear_net_gets_its_exact_radius() -> None:
    """One pixel, logits 3x and 1: the answer changes where x = 1/3."""
    net = Convolutional(1, 1, 1, Output("class", ("up", "down")))
    weights = Weights(net, {"unembed.W_U": np.array([[3.0, 0.0]]), "unembed.b_U": np.array([0.0, 1.0])})
    found = radii(weights, np.array([1.0, 0.0]).reshape(2, 1, 1, 1))
    exact = np.array([2 / 3, 1 / 3])
    assert (found < exact).all()
    np.testing.assert_allclose(found, exact, rtol=1e-3)


def test_answers_that_rounding_may_change_have_no_radius() -> None:
    net = Convolutional(1, 1, 1, Output("class", ("up", "down")))
    weights = Weights(net, {"unembed.W_U": np.array([[1.0, 0.0]]), "unembed.b_U": np.array([0.0, 1.0])})
    planes = np.array([1.0, 1.0 + 2.0**-52, 1.0 + 2.0**-40]).reshape(3, 1, 1, 1)
    assert certified(weights, planes, np.zeros(3)).tolist() == [False, False, True]
    assert radii(weights, planes)[0] == 0.0


def test_sums_are_widened_by_what_rounding_can_do() -> None:
    """Ten terms of 0.1 against a little less than 1: a lead of a few roundings is none, a larger one is."""
    net = Convolutional(10, 1, 1, Output("class", ("sum", "one")))
    matrix, planes = np.stack([np.full(10, 0.1), np.zeros(10)], axis=1), np.ones((1, 10, 1, 1))
    for less, safe in ((2e-15, False), (1e-13, True)):
        weights = Weights(net, {"unembed.W_U": matrix, "unembed.b_U": np.array([0.0, 1.0 - less])})
        assert answers(weights, planes)[0] == 0
        assert certified(weights, planes, np.zeros(1))[0] == safe


def by_hand(scene: Scene, image: Any, label: str) -> float:
    """The largest radius that the two conditions of the hand proof allow, with their coarse bounds."""
    pixels = scene.size[0] * scene.size[1]
    absent = np.where(scene.present(image), np.inf, scene.excess(image)).min()
    deviations = []
    for name in dict(scene.classes)[label]:
        for base, down, right in scene.parts(name):
            corner = scene.places(image)[name][0]
            row, column = corner[0] + down, corner[1] + right
            patch = image[row : row + scene.size[0], column : column + scene.size[1]]
            deviations.append(min(float(np.abs(patch - g).max()) for owner, g in scene.templates if owner == base))

    def loss(r: float) -> float:
        return sum(pixels * max(0.0, r + d - scene.eps) / scene.gamma for d in deviations)

    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) < 0.5 else (low, middle)
    return min(low, float(absent - scene.gamma) / pixels)


@pytest.mark.parametrize("scene", SCENES, ids=["plain", "composites"])
def test_the_radius_is_no_smaller_than_that_of_the_hand_proof(scene: Scene) -> None:
    weights = scene_cnn(scene)
    images, labels = draw_images(scene, 12, seed=3)
    hand = np.array([by_hand(scene, image, label) for image, label in zip(images, labels, strict=True)])
    assert (hand > 0.01).any()
    assert certified(weights, images[:, None], hand * (1 - 1e-9)).all()
    assert (radii(weights, images[:, None]) >= hand * (1 - 1e-3)).all()


def test_on_a_plain_scene_the_radius_is_the_exact_excess_condition() -> None:
    r"""Where absence is far away, the answer holds as long as $\sum_f e_T(\epsilon - r) < \gamma/2$."""
    scene = SCENES[0]
    weights = scene_cnn(scene)
    images, labels = draw_images(scene, 12, seed=5)
    found = radii(weights, images[:, None])
    compared = 0
    for image, label, radius in zip(images, labels, found, strict=True):
        present = scene.present(image)
        chosen = [
            (grid, np.argwhere(where))
            for (name, grid), where in zip(scene.templates, present, strict=True)
            if name in dict(scene.classes)[label] and where.any()
        ]
        patches = [(grid, image[r : r + 3, c : c + 3]) for grid, where in chosen for r, c in where]
        if (
            len(patches) != len(dict(scene.classes)[label])
            or scene.excess(image)[~present].min() < scene.gamma + 9 * radius
        ):
            continue
        compared += 1
        low, high = 0.0, scene.eps
        while high - low > 1e-12:
            r = (low + high) / 2
            lost = sum(float(np.maximum(np.abs(x - grid) + r - scene.eps, 0).sum()) for grid, x in patches)
            low, high = (r, high) if lost < scene.gamma / 2 else (low, r)
        assert radius == pytest.approx(low, rel=2e-4)
    assert compared >= 3


@pytest.mark.parametrize("scene", SCENES, ids=["plain", "composites"])
def test_attacks_fail_inside_and_succeed_outside(scene: Scene) -> None:
    weights = scene_cnn(scene)
    planes = draw_images(scene, 12, seed=9)[0][:, None]
    radius = radii(weights, planes)
    assert not attack(weights, planes, 0.999 * radius)[0].any()
    broken, points = attack(weights, planes, 1.25 * radius)
    assert broken.mean() >= 0.5
    moved = np.abs(points - planes).max(axis=(1, 2, 3))
    assert (moved <= 1.25 * radius * (1 + 1e-12)).all()
    assert (answers(weights, points[broken]) != answers(weights, planes[broken])).all()
    np.testing.assert_array_equal(points[~broken], planes[~broken])


def test_images_of_no_class_have_a_radius_too() -> None:
    scene = SCENES[0]
    weights = scene_cnn(scene)
    planes = near_misses(scene, np.random.default_rng(0), 10)[:, None]
    assert (answers(weights, planes) == len(scene.classes)).all()
    radius = radii(weights, planes)
    assert (radius > 0).all()
    assert not attack(weights, planes, 0.999 * radius)[0].any()


@each("seed", range(4))
def test_the_gradient_is_that_of_finite_differences(seed: int) -> None:
    weights, rng = random_weights(seed), np.random.default_rng(seed)
    planes = rng.normal(size=(3, 1, 5, 5))
    first, others = np.array([0, 1, 2]), np.array([1, 2, 0])
    found = lead_gradient(weights, planes, first, others, softness=0.0)
    rows = np.arange(3)
    for i, j in np.ndindex(5, 5):
        step = np.zeros(planes.shape)
        step[:, 0, i, j] = 1e-6
        up, down = outputs(weights, planes + step), outputs(weights, planes - step)
        slope = ((up - down)[rows, first] - (up - down)[rows, others]) / 2e-6
        np.testing.assert_allclose(found[:, 0, i, j], slope, atol=1e-5)
