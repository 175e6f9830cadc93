"""Real images as a scene: scikit-learn's 8×8 digits, templates learned from a part of them, the rest classified.

Each class is one feature, whose variants are whole training images. A template is kept if no training image of another
digit is within eps of it; of those all are taken, or as few as cover the same training images, chosen greedily. With
17 grey levels and eps halfway between two of them, no pixel is ever just beyond eps by less than half a level: with
gamma half a level the gap condition holds for every image. Larger gammas are tried on the same templates.

Run it with `.venv/bin/python benchmarks/digits_scenes.py`; it needs scikit-learn (`pip install 'vitrify[digits]'`).
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from vitrify.certification.attacks.robust import radii
from vitrify.constructions.scenes import scene_cnn
from vitrify.net.conv import image_planes
from vitrify.net.inference import outputs
from vitrify.spec.geometry.scene import Scene
from vitrify.spec.geometry.scene_files import NONE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVELS = 16
TRAINING = 1200
RADII = 20  # test images whose certified radius is worked out
GAMMAS = (1 / 32, 1 / 4, 1.0)  # the first is that of the scenes


def digits() -> tuple[Floats, Ints]:
    """Images [image, 8, 8] with intensities 0, 1/16 … 1, and their digits."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        sys.exit("this benchmark needs scikit-learn: pip install 'vitrify[digits]'")
    data = load_digits()
    return np.asarray(data.images) / LEVELS, np.asarray(data.target)


def covered(images: Floats, templates: Floats, eps: float) -> NDArray[np.bool_]:
    """Which images [image, template] are within eps of which templates in every pixel."""
    return np.array([np.abs(templates - image).max(axis=(1, 2)) <= eps for image in images])


def learned(images: Floats, labels: Ints, eps: float, few: bool) -> Ints:
    """The numbers of the training images that become templates."""
    near = covered(images, images, eps)
    pure = ~(near & (labels[:, None] != labels)).any(axis=0)
    if not few:
        return np.flatnonzero(pure)
    near &= pure
    chosen: list[int] = []
    left = near.any(axis=1)
    while left.any():
        best = int(near[left].sum(axis=0).argmax())
        chosen.append(best)
        left &= ~near[:, best]
    return np.array(chosen)


def scene_of(templates: Floats, labels: Ints, eps: float, gamma: float) -> Scene:
    """One feature and one class for each digit."""
    features = {f"a {digit}": list(templates[labels == digit]) for digit in range(10)}
    return Scene.of((8, 8), eps, gamma, features, {str(digit): [f"a {digit}"] for digit in range(10)})


def report(images: Floats, labels: Ints, train: Ints, test: Ints, eps: float, few: bool) -> None:
    """Print one row: what a scene of these templates says about the test images."""
    chosen = train[learned(images[train], labels[train], eps, few)]
    scene = scene_of(images[chosen], labels[chosen], eps, GAMMAS[0])
    weights = scene_cnn(scene)
    planes = image_planes(weights.architecture, images[test])
    found = outputs(weights, planes)
    several = (found[:, :-1] > 0.5).sum(axis=1) > 1
    said = np.array([weights.architecture.output.symbols[i] for i in found.argmax(axis=1)])
    right = ~several & (said == labels[test].astype(str))
    shares = [right, ~several & ~right & (said != NONE), several, said == NONE]
    readings = [scene.reading(image).label or NONE for image in images[test]]
    differ = int(((said != readings) & ~several).sum())
    excess = [np.where(scene.present(image), np.inf, scene.excess(image)).min() for image in images[test]]
    told = "  ".join(f"{100 * share.mean():5.1f}" for share in shares)
    gaps = "  ".join(f"{100 * np.mean(np.array(excess) >= gamma):5.1f}" for gamma in GAMMAS)
    radius = radii(weights, planes[right][:RADII])
    print(
        f"{eps:.3f}  {'few' if few else 'all'} {len(chosen):5}  {told}   |  {gaps}   |  {differ:6}   |  "
        f"{radius.min():.3f}  {np.median(radius):.3f}  {radius.max():.3f}"
    )


def main() -> None:
    """Print what learned scenes know about digits that they have not seen."""
    images, labels = digits()
    order = np.random.default_rng(0).permutation(len(images))
    train, test = order[:TRAINING], order[TRAINING:]
    print(f"{len(train)} training images, {len(test)} test images; percentages are of the test images")
    gammas = "  ".join(f"{gamma:.3f}" for gamma in GAMMAS)
    print(f"net ≠ scene: test images that the two read differently; radius: of {RADII} that are right")
    print(f"  eps  templates  right  wrong   two   none   |  gap at {gammas}   |  net ≠ scene  |  radius")
    for level, few in ((6, True), (7, True), (8, True), (9, True), (10, True), (8, False), (9, False)):
        report(images, labels, train, test, (level + 0.5) / LEVELS, few)


if __name__ == "__main__":
    main()
