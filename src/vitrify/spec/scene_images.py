"""Images of a scene: drawn at random, and told by the scene's own semantics to be what they should be.

An image of a class is a background with noise, into which a random variant of each feature of the class and some other
features are pasted where they do not overlap; draws that break the gap condition, or that happen to show another class,
are thrown away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import SpecError
from vitrify.spec.scene import Part, Place, Scene

Floats = NDArray[np.float64]

TRIES = 400  # draws after which a class is given up
SPOTS = 60  # tries to find room for one feature
CLEAR = 1e-6  # a little more or less than the limit, so that rounding does not decide
OTHERS = 2  # at most so many features that the class does not ask for


def draw_image(scene: Scene, rng: np.random.Generator, label: str) -> Floats:
    """A random image of a class; refused with what went wrong most often where none is found."""
    reasons = Counter[str]()
    for _ in range(TRIES):
        drawn = paste(scene, rng, label, others=OTHERS)
        if drawn is None:
            reasons["there was no room for all features"] += 1
            continue
        reading = scene.reading(drawn[0])
        if reading.label == label:
            return drawn[0]
        reasons[reading.why.split(" at row")[0]] += 1
    ((why, times),) = reasons.most_common(1)
    raise SpecError(
        [f"no image of the class {label!r} was found in {TRIES} draws; {times} times {why}: use a larger image"]
    )


def draw_images(scene: Scene, count: int, seed: int) -> tuple[Floats, tuple[str, ...]]:
    """Images [image, row, column] and their classes, one class after the other; equal seeds give equal images."""
    rng = np.random.default_rng(seed)
    labels = tuple(scene.classes[k % len(scene.classes)][0] for k in range(count))
    return _stacked(scene, [draw_image(scene, rng, label) for label in labels]), labels


def paste(
    scene: Scene, rng: np.random.Generator, label: str, *, others: int = 0, scatter: bool = False
) -> tuple[Floats, list[tuple[int, Place]]] | None:
    """An unchecked image with the features of a class, and the number and place of every template in it.

    Up to so many `others` are put in where there is room. With `scatter`, the parts of composites trade places or stand
    a little off. None where no room was found for all that the class asks for.
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


def _room(scene: Scene, rng: np.random.Generator, taken: NDArray[np.bool_], parts: Sequence[Part]) -> Place | None:
    """A random corner where none of the parts covers a pixel that is taken."""
    rows = scene.image[0] - scene.size[0] - max(down for _, down, _ in parts) + 1
    columns = scene.image[1] - scene.size[1] - max(right for _, _, right in parts) + 1
    for _ in range(SPOTS if min(rows, columns) > 0 else 0):
        row, column = int(rng.integers(rows)), int(rng.integers(columns))
        if not any(taken[_box(scene, (row + down, column + right))].any() for _, down, right in parts):
            return row, column
    return None


def _apart(scene: Scene, rng: np.random.Generator, parts: list[Part]) -> list[Part]:
    """The parts of a composite in other places: they trade offsets, or one of them is a little off."""
    for _ in range(SPOTS if len(parts) > 1 else 0):
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
    r"""Images in which one pixel of one pasted template is just too far off: $\epsilon + \gamma$ from the template.

    Every pixel of every template is wrong once upwards and once downwards (with `bits`: flipped), as long as room is
    found and the gap condition holds elsewhere, too; a random part of them if they are more than `most`.
    """
    off = (scene.eps + scene.gamma) * (1 + CLEAR)
    cases = [
        (number, pixel, wrong)
        for number, (_, grid) in enumerate(scene.templates)
        for pixel in np.ndindex(grid.shape)
        for wrong in _wrong(float(grid[pixel]), None if bits else off)
    ]
    if len(cases) > most:
        cases = [cases[i] for i in sorted(rng.choice(len(cases), size=most, replace=False).tolist())]
    found = [_spoilt(scene, rng, *case) for case in cases]
    return _stacked(scene, [image for image in found if image is not None])


def near_hits(scene: Scene, rng: np.random.Generator, count: int) -> Floats:
    r"""Images in which every pixel of every pasted template is as far off as it may be: $\epsilon$, up or down."""
    found: list[Floats] = []
    for turn in range(TRIES):
        if len(found) == count:
            break
        drawn = paste(scene, rng, scene.classes[turn % len(scene.classes)][0])
        for number, place in drawn[1] if drawn else ():
            off = scene.eps * (1 - CLEAR) * rng.choice((-1.0, 1.0), size=scene.size)
            drawn[0][_box(scene, place)] = scene.templates[number][1] + off  # type: ignore[index]  # it is drawn
        if drawn and scene.violation(drawn[0]) is None:
            found.append(drawn[0])
    return _stacked(scene, found)


def scattered(scene: Scene, rng: np.random.Generator, count: int) -> Floats:
    """Images with the parts of composites in wrong places, but near each other."""
    labels = [label for label, members in scene.classes if any(len(scene.parts(member)) > 1 for member in members)]
    found: list[Floats] = []
    for _ in range(TRIES if labels else 0):
        if len(found) == count:
            break
        drawn = paste(scene, rng, str(rng.choice(labels)), scatter=True)
        if drawn and scene.violation(drawn[0]) is None:
            found.append(drawn[0])
    return _stacked(scene, found)


def _spoilt(scene: Scene, rng: np.random.Generator, number: int, pixel: tuple[int, ...], wrong: float) -> Floats | None:
    """An image with a template in it, one pixel of which is wrong."""
    for _ in range(SPOTS):
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


def _wrong(value: float, off: float | None) -> tuple[float, ...]:
    return (1.0 - value,) if off is None else (value + off, value - off)


def _class_with(scene: Scene, rng: np.random.Generator, base: str) -> str:
    """A class whose features need a base feature."""
    fitting = [
        label for label, members in scene.classes if any(base == b for m in members for b, _, _ in scene.parts(m))
    ]
    return str(rng.choice(fitting))
