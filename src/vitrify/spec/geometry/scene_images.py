"""Random images of a scene, checked by the scene's own semantics.

An image of a class is a background with noise, into which a random variant of each feature of the class and some other
features are pasted where they do not overlap; draws that break the gap condition, or that happen to show another class,
are rejected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, islice

import numpy as np

from vitrify.arrays import Bools, Floats
from vitrify.errors import SpecError
from vitrify.spec.geometry.scene import Part, Place, Scene

MAX_DRAWS = 400  # of an image of one class
MAX_SPOTS = 60  # tries to place one feature
ROUNDING_MARGIN = 1e-6  # distance from a limit, so that rounding does not decide
Pasted = tuple[Floats, list[tuple[int, Place]]]  # an image, and the index and location of every template in it
MAX_OTHERS = 2  # features that the class does not require


def draw_image(scene: Scene, rng: np.random.Generator, label: str) -> Floats:
    """Return a random image of a class; a refusal names the most frequent reason for rejection."""
    reasons = Counter[str]()
    for _ in range(MAX_DRAWS):
        drawn = paste(scene, rng, label, others=MAX_OTHERS)
        if drawn is None:
            reasons["there was no room for all features"] += 1
            continue
        reading = scene.reading(drawn[0])
        if reading.label == label:
            return drawn[0]
        reasons[reading.why.split(" at row")[0]] += 1
    ((why, times),) = reasons.most_common(1)
    raise SpecError(
        [f"no image of the class {label!r} was found in {MAX_DRAWS} draws; {times} times {why}: use a larger image"]
    )


def draw_images(scene: Scene, count: int, seed: int) -> tuple[Floats, tuple[str, ...]]:
    """Return images [image, row, column] and their classes, class by class; equal seeds give equal images."""
    rng = np.random.default_rng(seed)
    labels = tuple(scene.classes[k % len(scene.classes)][0] for k in range(count))
    return _stacked(scene, [draw_image(scene, rng, label) for label in labels]), labels


def paste(
    scene: Scene, rng: np.random.Generator, label: str, *, others: int = 0, scatter: bool = False
) -> Pasted | None:
    """Return an unchecked image with the features of a class, and the index and location of every template in it.

    Up to `others` other features are added where they fit. With `scatter`, the parts of composites are swapped or
    shifted. The result is None if the features of the class did not fit.
    """
    members = dict(scene.classes)[label]
    extra = rng.permutation([name for name in scene.names if name not in members])[: rng.integers(others + 1)].tolist()
    pixels = np.full(scene.image, scene.background)
    taken = np.zeros(scene.image, dtype=bool)
    pasted: list[tuple[int, Place]] = []
    for name in (*rng.permutation(members).tolist(), *extra):
        parts = _apart(scene, rng, sorted(scene.parts(name))) if scatter else sorted(scene.parts(name))
        corner = _room(scene, rng, taken, parts)
        if corner is None:
            if name in members:
                return None
            continue
        for base, down, right in parts:
            variants = [number for number, (owner, _) in enumerate(scene.templates) if owner == base]
            number, place = int(rng.choice(variants)), (corner[0] + down, corner[1] + right)
            pixels[_box(scene, place)] = scene.templates[number][1]
            taken[_box(scene, place)] = True
            pasted.append((number, place))
    return pixels + rng.uniform(-scene.noise, scene.noise, size=scene.image), pasted


def _room(scene: Scene, rng: np.random.Generator, taken: Bools, parts: Sequence[Part]) -> Place | None:
    """Return a random corner at which no part covers an occupied pixel, or None."""
    rows = scene.image[0] - scene.size[0] - max(down for _, down, _ in parts) + 1
    columns = scene.image[1] - scene.size[1] - max(right for _, _, right in parts) + 1
    for _ in range(MAX_SPOTS if min(rows, columns) > 0 else 0):
        row, column = int(rng.integers(rows)), int(rng.integers(columns))
        if not any(taken[_box(scene, (row + down, column + right))].any() for _, down, right in parts):
            return row, column
    return None


def _apart(scene: Scene, rng: np.random.Generator, parts: list[Part]) -> list[Part]:
    """Return the parts of a composite with swapped offsets, or with one of them shifted."""
    for _ in range(MAX_SPOTS if len(parts) > 1 else 0):
        order, odd = rng.permutation(len(parts)), int(rng.integers(len(parts)))
        spots = [[parts[k][1], parts[k][2]] for k in order.tolist()]
        spots[odd] = [place + int(move) for place, move in zip(spots[odd], rng.integers(-1, 2, size=2), strict=True)]
        top, left = min(row for row, _ in spots), min(column for _, column in spots)
        moved = [(base, row - top, column - left) for (base, _, _), (row, column) in zip(parts, spots, strict=True)]
        clear = all(
            abs(one[1] - two[1]) >= scene.size[0] or abs(one[2] - two[2]) >= scene.size[1]
            for one, two in combinations(moved, 2)
        )
        if clear and set(moved) != set(parts):
            return moved
    return parts


def _box(scene: Scene, place: Place) -> tuple[slice, slice]:
    return slice(place[0], place[0] + scene.size[0]), slice(place[1], place[1] + scene.size[1])


def near_misses(scene: Scene, rng: np.random.Generator, most: int, *, bits: bool = False) -> Floats:
    r"""Return images in which one pixel of one pasted template is just too far off, by $\epsilon + \gamma$.

    Every pixel of every template is wrong once upwards and once downwards (with `bits`: flipped), as long as room is
    found and the gap condition holds elsewhere, too; a random part of them if they are more than `most`.
    """
    off = (scene.eps + scene.gamma) * (1 + ROUNDING_MARGIN)
    cases = [
        (number, pixel, float(wrong))
        for number, (_, grid) in enumerate(scene.templates)
        for pixel in np.ndindex(grid.shape)
        for wrong in ((1.0 - grid[pixel],) if bits else (grid[pixel] + off, grid[pixel] - off))
    ]
    if len(cases) > most:
        cases = [cases[i] for i in sorted(rng.choice(len(cases), size=most, replace=False).tolist())]
    found = [_spoilt(scene, rng, *case) for case in cases]
    return _stacked(scene, [image for image in found if image is not None])


def near_hits(scene: Scene, rng: np.random.Generator, count: int) -> Floats:
    r"""Return images in which every pixel of every pasted template is off by $\epsilon$, up or down."""

    def draw(turn: int) -> Pasted | None:
        drawn = paste(scene, rng, scene.classes[turn % len(scene.classes)][0])
        for number, place in drawn[1] if drawn else ():
            off = scene.eps * (1 - ROUNDING_MARGIN) * rng.choice((-1.0, 1.0), size=scene.size)
            drawn[0][_box(scene, place)] = scene.templates[number][1] + off  # type: ignore[index]  # it is drawn
        return drawn

    return _clear(scene, count, draw)


def scattered(scene: Scene, rng: np.random.Generator, count: int) -> Floats:
    """Images with the parts of composites in wrong places, but near each other."""
    labels = [label for label, members in scene.classes if any(len(scene.parts(member)) > 1 for member in members)]
    return _clear(scene, count if labels else 0, lambda _: paste(scene, rng, str(rng.choice(labels)), scatter=True))


def _clear(scene: Scene, count: int, draw: Callable[[int], Pasted | None]) -> Floats:
    """The first images out of some draws in which the gap condition holds."""
    drawn = (draw(turn) for turn in range(MAX_DRAWS if count else 0))
    clear = (each[0] for each in drawn if each and scene.violation(each[0]) is None)
    return _stacked(scene, list(islice(clear, count)))


def _spoilt(scene: Scene, rng: np.random.Generator, number: int, pixel: tuple[int, ...], wrong: float) -> Floats | None:
    """An image with a template in it, one pixel of which is wrong."""
    for _ in range(MAX_SPOTS):
        drawn = paste(scene, rng, _class_with(scene, rng, scene.templates[number][0]))
        spots = [place for other, place in drawn[1] if other == number] if drawn else []
        if drawn and spots:
            image, (row, column) = drawn[0], spots[0]
            image[row + pixel[0], column + pixel[1]] = wrong
            if scene.violation(image) is None:
                return image
    return None


def _stacked(scene: Scene, images: list[Floats]) -> Floats:
    return np.array(images).reshape(len(images), *scene.image)


def _class_with(scene: Scene, rng: np.random.Generator, base: str) -> str:
    """A class whose features need a base feature."""
    needed = {label: {b for m in members for b, _, _ in scene.parts(m)} for label, members in scene.classes}
    return str(rng.choice([label for label, bases in needed.items() if base in bases]))
