r"""Feature scenes: images that are classified by the features that they show.

A *feature* has finitely many templates (its variants), grids of intensities; all templates of a scene have one size.
It is **present** at a location iff the patch there is within `eps` of one of them in every pixel. A *composite* is a
list of features or composites at fixed offsets, present where all are. A *class* is a set of features and composites;
an image is of the only class whose members all occur in it. The **gap condition** excludes intermediate cases: for
every template $T$ and patch $x$, either $\max_u |x_u - T_u| \le \epsilon$ or the excess $\sum_u \max(0, |x_u - T_u| -
\epsilon)$ is at least $\gamma$. `background` and `noise` are of images drawn for the scene.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Bools, Floats
from vitrify.encoding import JsonObject
from vitrify.errors import InputError, SpecError
from vitrify.spec.formats.text import refuse_any
from vitrify.spec.geometry.scene_files import SUFFIX, Parts, read_scene, scene_problems, scene_text, unfold
from vitrify.spec.kinds import Kind, Spec

Grid = tuple[tuple[float, ...], ...]
Part = tuple[str, int, int]  # name, rows down, columns right
Place = tuple[int, int]


@dataclass(frozen=True)
class Reading:
    """Class of an image, or the reason why it has none, and the locations of each feature and composite."""

    label: str | None
    why: str
    features: Mapping[str, tuple[Place, ...]]


@dataclass(frozen=True)
class Scene(Spec):
    """Features, classes and the two tolerances for presence and absence.

    >>> dot, bar = [[0, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 1, 0], [0, 1, 0], [0, 1, 0]]
    >>> scene = Scene.of((8, 8), 0.1, 0.3, {"dot": [dot], "bar": [bar]}, {"i": ["dot", "bar"], "l": ["bar"]})
    Traceback (most recent call last):
    vitrify.errors.SpecError: an image of 'i' has all that 'l' asks for: add to 'l' what 'i' has not
    >>> scene = Scene.of((8, 8), 0.1, 0.3, {"dot": [dot], "bar": [bar]}, {"point": ["dot"], "line": ["bar"]})
    >>> image = np.full((8, 8), 0.5)
    >>> scene.reading(image).why
    'no class has all its features here'
    >>> image[2:5, 3:6] = np.array(bar) + 0.05
    >>> scene.reading(image)
    Reading(label='line', why='all features of the class are here', features={'dot': (), 'bar': ((2, 3),)})
    """

    image: tuple[int, int]
    eps: float
    gamma: float
    features: tuple[tuple[str, tuple[Grid, ...]], ...]
    classes: tuple[tuple[str, tuple[str, ...]], ...]
    composites: tuple[tuple[str, tuple[Part, ...]], ...] = ()
    background: float = 0.0
    noise: float = 0.0
    suffix: ClassVar[str] = SUFFIX

    def __post_init__(self) -> None:
        refuse_any(message for _, message in scene_problems(self.data))

    @classmethod
    def of(
        cls,
        image: Sequence[int],
        eps: float,
        gamma: float,
        features: Mapping[str, Iterable[Iterable[Iterable[float]]]],
        classes: Mapping[str, Iterable[str]],
        composites: Mapping[str, Iterable[Sequence[str | int]]] | None = None,
        *,
        background: float = 0.0,
        noise: float = 0.0,
    ) -> Scene:
        """Return the scene given by nested lists, as in its file."""
        grids = {
            name: tuple(tuple(tuple(map(float, row)) for row in grid) for grid in variants)
            for name, variants in features.items()
        }
        parts = {name: tuple((str(p), int(d), int(r)) for p, d, r in ps) for name, ps in (composites or {}).items()}
        listed = tuple((name, tuple(members)) for name, members in classes.items())
        tables = tuple(grids.items()), listed, tuple(parts.items())
        return cls((image[0], image[1]), eps, gamma, *tables, background, noise)

    @classmethod
    def read(cls, path: str | Path) -> Scene:
        return cls.of(**read_scene(Path(path)))

    def to_text(self) -> str:
        return scene_text(self.data)

    @property
    def data(self) -> JsonObject:
        """Return the scene as the plain data of its file."""
        numbers = {"image": list(self.image), "eps": self.eps, "gamma": self.gamma}
        tables = {name: dict(getattr(self, name)) for name in ("features", "composites", "classes")}
        return numbers | {"background": self.background, "noise": self.noise} | tables

    @classmethod
    def samples(cls) -> dict[str, Scene]:
        gray = random_scene(0, composites=0, features=4, size=3, classes=3, per_class=2, image=12)
        return {"gray": gray, "bits": random_bitmaps(2, composites=1)}

    # Parts

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Members of classes: features with templates first, then composites."""
        required = {member for _, members in self.classes for member in members}
        return tuple(name for name, _ in (*self.features, *self.composites) if name in required)

    @cached_property
    def templates(self) -> tuple[tuple[str, Floats], ...]:
        """Every variant of every feature."""
        return tuple((name, np.array(grid)) for name, variants in self.features for grid in variants)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of every template."""
        rows, columns = self.templates[0][1].shape
        return rows, columns

    @cached_property
    def intensities(self) -> tuple[float, ...]:
        """The distinct intensities of the templates, in ascending order."""
        return tuple(np.unique(np.concatenate([grid.ravel() for _, grid in self.templates])).tolist())

    @property
    def binary(self) -> bool:
        """Return True if images drawn for this scene are binary and one wrong pixel makes a feature absent."""
        values = {*self.intensities, self.background}
        return values <= {0.0, 1.0} and self.noise == 0 and self.eps + self.gamma <= 1

    def parts(self, name: str) -> Parts:
        """Return a feature or composite as features with templates and offsets from the top left corner."""
        unfolded = unfold(name, dict(self.features), dict(self.composites))
        assert unfolded is not None  # checked by __post_init__
        return unfolded

    # Meaning

    def _patches(self, image: ArrayLike) -> Floats:
        """Every patch of the size of the templates: [pixel of the patch, row, column]."""
        pixels = np.asarray(image, dtype=np.float64)
        if pixels.shape != self.image:
            raise InputError(f"an image of this scene has {self.image[0]}×{self.image[1]} pixels, got {pixels.shape}")
        if not np.isfinite(pixels).all():
            raise InputError("every pixel of an image must be a finite number")
        patches = np.lib.stride_tricks.sliding_window_view(pixels, self.size)
        return np.ascontiguousarray(np.moveaxis(patches, (2, 3), (0, 1))).reshape(-1, *patches.shape[:2])

    def _compared(self, image: ArrayLike) -> tuple[Bools, Floats]:
        """Return for each template and location whether it is present (within eps), and the excess over eps."""
        patches = self._patches(image)
        present, excess = [], []
        for _, grid in self.templates:
            apart = np.abs(patches - grid.reshape(-1, 1, 1))
            present.append(apart.max(axis=0) <= self.eps)
            excess.append(np.maximum(apart - self.eps, 0.0).sum(axis=0))
        return np.stack(present), np.stack(excess)

    def present(self, image: ArrayLike) -> Bools:
        """Return where each template is present [template, row, column]."""
        return self._compared(image)[0]

    def excess(self, image: ArrayLike) -> Floats:
        """Return the excess over eps of each patch, summed over its pixels [template, row, column]."""
        return self._compared(image)[1]

    def violation(self, image: ArrayLike) -> str | None:
        """Return where and how the gap condition is first violated, or None.

        There, a patch is neither a variant of a feature nor clearly different.
        """
        return self._violation(*self._compared(image))

    def _violation(self, present: Bools, excess: Floats) -> str | None:
        between = np.argwhere(~present & ~(excess >= self.gamma))
        if not len(between):
            return None
        template, row, column = between[0].tolist()
        name = self.templates[template][0]
        variant = 1 + [owner for owner, _ in self.templates[:template]].count(name)
        return (
            f"the patch at row {row}, column {column} is neither variant {variant} of {name!r} nor different enough: "
            f"its excess over eps is {float(excess[template, row, column]):.6g}, less than gamma"
        )

    def places(self, image: ArrayLike) -> dict[str, tuple[Place, ...]]:
        """Return the locations of every feature and composite, top left corners in reading order."""
        return self._places(self.present(image))

    def _places(self, present: Bools) -> dict[str, tuple[Place, ...]]:
        there: dict[str, set[Place]] = {name: set() for name, _ in self.features}
        for (name, _), where in zip(self.templates, present, strict=True):
            there[name] |= {(row, column) for row, column in np.argwhere(where).tolist()}
        for name, _ in self.composites:
            (base, down, right), *others = sorted(self.parts(name))
            corners = {(row - down, column - right) for row, column in there[base]}
            there[name] = {
                (row, column) for row, column in corners if all((row + d, column + r) in there[b] for b, d, r in others)
            }
        return {name: tuple(sorted(corners)) for name, corners in there.items()}

    def reading(self, image: ArrayLike) -> Reading:
        """Return the class of an image, or the reason why it has none."""
        present, excess = self._compared(image)
        places, violation = self._places(present), self._violation(present, excess)
        matching = [name for name, members in self.classes if all(places[member] for member in members)]
        if violation:
            return Reading(None, violation, places)
        if not matching:
            return Reading(None, "no class has all its features here", places)
        if len(matching) > 1:
            return Reading(None, f"it is of {len(matching)} classes: {', '.join(matching)}", places)
        return Reading(matching[0], "all features of the class are here", places)


MAX_DRAWS = 1_000  # attempts to draw a valid random scene


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
    """Return a random scene without unused features: composites are adjacent pairs, classes have equal size.

    >>> scene = random_scene(0)
    >>> len(scene.templates), len(scene.intensities), len(scene.classes)
    (12, 3, 4)
    """
    rng = np.random.default_rng(seed)
    for _ in range(MAX_DRAWS):
        problem = "some composite is in no class"
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
    raise SpecError([f"no such scene was found in {MAX_DRAWS} draws; the last one failed because {problem}"])


def random_bitmaps(seed: int, *, features: int = 5, classes: int = 3, composites: int = 0, image: int = 16) -> Scene:
    """Return a random binary scene: templates of zeros and ones on a background of zeros.

    >>> random_bitmaps(0).binary
    True
    """
    bitmaps = partial(random_scene, variants=2, size=3, per_class=2, eps=0.25, gamma=0.5, background=0.0, noise=0.0)
    shared = {"features": features, "classes": classes, "composites": composites, "image": image}
    return bitmaps(seed, intensities=(0.0, 1.0), **shared)


KIND = Kind(Scene, {".scene.toml": "scene of features in images"})
