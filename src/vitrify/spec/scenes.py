"""Families of scenes: random ones, with composites or without, and binary ones."""

from __future__ import annotations

import numpy as np

from vitrify.errors import SpecError
from vitrify.spec.scene import Scene

TRIES = 1_000  # draws after which a random scene with the asked-for properties is given up


def random_scene(
    seed: int,
    *,
    features: int = 6,
    variants: int = 2,
    size: int = 5,
    classes: int = 4,
    per_class: int = 3,
    composites: int = 0,
    image: int = 24,
    intensities: tuple[float, ...] = (0.0, 0.5, 1.0),
    eps: float = 0.08,
    gamma: float = 0.15,
    background: float = 0.25,
    noise: float = 0.05,
) -> Scene:
    """Random templates, random pairs of features side by side as composites, and random classes of equal size.

    >>> scene = random_scene(0)
    >>> len(scene.templates), len(scene.intensities), len(scene.classes)
    (12, 3, 4)
    """
    rng = np.random.default_rng(seed)
    problem = "composites were in no class"
    for _ in range(TRIES):
        grids = rng.choice(intensities, size=(features, variants, size, size))
        names = [f"f{k}" for k in range(features)]
        pairs = rng.integers(features, size=(composites, 2)).tolist()
        turns = rng.integers(2, size=composites).tolist()
        made = {
            f"g{k}": [(names[one], 0, 0), (names[two], size * turn, size * (1 - turn))]
            for k, ((one, two), turn) in enumerate(zip(pairs, turns, strict=True))
        }
        everything = [*names, *made]
        chosen = {f"c{k}": sorted(rng.choice(everything, size=per_class, replace=False)) for k in range(classes)}
        used = {name for members in chosen.values() for name in members}
        inner = {part for parts in made.values() for part, _, _ in parts}
        if not used >= set(made):
            continue
        try:
            return Scene.of(
                (image, image),
                eps,
                gamma,
                {name: list(grids[k]) for k, name in enumerate(names) if name in used | inner},
                {name: [str(member) for member in members] for name, members in chosen.items()},
                made,
                background=background,
                noise=noise,
            )
        except SpecError as error:
            problem = str(error.problems[0])
    raise SpecError([f"no such scene was found in {TRIES} draws; the last one failed because {problem}"])


def random_bitmaps(seed: int, *, features: int = 5, classes: int = 3, composites: int = 0, image: int = 16) -> Scene:
    """A random binary scene: templates of zeros and ones on a background of zeros.

    >>> random_bitmaps(0).binary
    True
    """
    return random_scene(
        seed,
        features=features,
        variants=2,
        size=3,
        classes=classes,
        per_class=2,
        composites=composites,
        image=image,
        intensities=(0.0, 1.0),
        eps=0.25,
        gamma=0.5,
        background=0.0,
        noise=0.0,
    )
