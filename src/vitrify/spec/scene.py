r"""Feature scenes: images whose class is the set of features that they show.

A *feature* has finitely many templates (its variants), grids of intensities of one size. It is **present** at a place
of an image iff the patch there is within `eps` of one of them in every pixel. A *composite* is a list of features at
fixed offsets, present where all of them are. A *class* is a set of features; an image is of the class whose features
all occur in it. The **gap condition** asks that nothing is half there: for every template $T$ and every patch $x$,
either $\max_u |x_u - T_u| \le \epsilon$ or the excess $\sum_u \max(0, |x_u - T_u| - \epsilon)$ is at least $\gamma$.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vitrify.errors import InputError, SpecError
from vitrify.spec.display import Displayed
from vitrify.spec.scene_files import SUFFIX, Parts, read_scene, scene_problems, scene_text, unfold

Floats = NDArray[np.float64]
Grid = tuple[tuple[float, ...], ...]
Part = tuple[str, int, int]  # name, rows down, columns right
Place = tuple[int, int]


@dataclass(frozen=True)
class Violation:
    """A patch that is neither a variant of a feature nor clearly not one."""

    feature: str
    variant: int
    place: Place
    excess: float

    def __str__(self) -> str:
        row, column = self.place
        return (
            f"the patch at row {row}, column {column} is neither variant {self.variant + 1} of {self.feature!r} nor "
            f"clearly not: {self.excess:.6g} beyond eps"
        )


@dataclass(frozen=True)
class Reading:
    """What an image shows: its class, or the reason why it has none, and where each feature is."""

    label: str | None
    why: str
    features: Mapping[str, tuple[Place, ...]]


@dataclass(frozen=True)
class Scene(Displayed):
    """Features, classes and the two numbers that say what counts as present and as absent.

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
        problems = [message for _, message in scene_problems(self.data)]
        if problems:
            raise SpecError(problems)

    @classmethod
    def of(
        cls,
        image: Sequence[int],
        eps: float,
        gamma: float,
        features: Mapping[str, Iterable[ArrayLike]],
        classes: Mapping[str, Iterable[str]],
        composites: Mapping[str, Iterable[Sequence[Any]]] | None = None,
        *,
        background: float = 0.0,
        noise: float = 0.0,
    ) -> Scene:
        """From nested lists, as a file writes them."""
        grids = {name: tuple(_grid(grid) for grid in variants) for name, variants in features.items()}
        parts = {name: tuple((str(p), int(d), int(r)) for p, d, r in ps) for name, ps in (composites or {}).items()}
        return cls(
            (image[0], image[1]),
            eps,
            gamma,
            tuple(grids.items()),
            tuple((name, tuple(members)) for name, members in classes.items()),
            tuple(parts.items()),
            background,
            noise,
        )

    @classmethod
    def read(cls, path: str | Path) -> Scene:
        """The scene in a `.scene.toml` file."""
        return cls.of(**read_scene(Path(path)))

    def write(self, path: str | Path) -> None:
        """Write a `.scene.toml` file that reads back as this value."""
        Path(path).write_text(scene_text(self.data), encoding="utf-8", newline="\n")

    @property
    def data(self) -> dict[str, Any]:
        """The scene as the plain data that its file holds."""
        numbers = {"image": list(self.image), "eps": self.eps, "gamma": self.gamma}
        tables = {name: dict(getattr(self, name)) for name in ("features", "composites", "classes")}
        return numbers | {"background": self.background, "noise": self.noise} | tables

    # What it is

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The features that classes ask for: those with templates first, then composites."""
        asked = {member for _, members in self.classes for member in members}
        return tuple(name for name, _ in (*self.features, *self.composites) if name in asked)

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
        """Whether all its images are of zeros and ones, and one wrong pixel makes a feature absent."""
        values = {*self.intensities, self.background}
        return values <= {0.0, 1.0} and self.noise == 0 and self.eps + self.gamma <= 1

    def parts(self, name: str) -> Parts:
        """A feature or composite as features with templates, each with its offset from the top left corner."""
        found = unfold(name, dict(self.features), dict(self.composites))
        assert found is not None  # checked when the scene was made
        return found

    # What it means

    def _patches(self, image: ArrayLike) -> Floats:
        """Every patch of the size of the templates: [pixel of the patch, row, column]."""
        pixels = np.asarray(image, dtype=np.float64)
        if pixels.shape != self.image:
            raise InputError(f"an image of this scene has {self.image[0]}×{self.image[1]} pixels, got {pixels.shape}")
        if not np.isfinite(pixels).all():
            raise InputError("every pixel of an image must be a finite number")
        patches = np.lib.stride_tricks.sliding_window_view(pixels, self.size)
        return np.ascontiguousarray(np.moveaxis(patches, (2, 3), (0, 1))).reshape(-1, *patches.shape[:2])

    def _compared(self, image: ArrayLike) -> tuple[NDArray[np.bool_], Floats]:
        """For each template and place: whether it is present, within eps in every pixel; and the excess over eps."""
        patches = self._patches(image)
        present, excess = [], []
        for _, grid in self.templates:
            apart = np.abs(patches - grid.reshape(-1, 1, 1))
            present.append(apart.max(axis=0) <= self.eps)
            excess.append(np.maximum(apart - self.eps, 0.0).sum(axis=0))
        return np.stack(present), np.stack(excess)

    def present(self, image: ArrayLike) -> NDArray[np.bool_]:
        """Where each template is present [template, row, column]."""
        return self._compared(image)[0]

    def excess(self, image: ArrayLike) -> Floats:
        """How far each patch is from each template beyond eps [template, row, column], summed over its pixels."""
        return self._compared(image)[1]

    def violation(self, image: ArrayLike) -> Violation | None:
        """The first place where the gap condition fails, if it does."""
        return self._violation(*self._compared(image))

    def _violation(self, present: NDArray[np.bool_], excess: Floats) -> Violation | None:
        half = np.argwhere(~present & ~(excess >= self.gamma))
        if not len(half):
            return None
        template, row, column = half[0].tolist()
        name = self.templates[template][0]
        first = next(i for i, (other, _) in enumerate(self.templates) if other == name)
        return Violation(name, template - first, (row, column), float(excess[template, row, column]))

    def places(self, image: ArrayLike) -> dict[str, tuple[Place, ...]]:
        """The places of every feature and composite, top left corners in reading order."""
        return self._places(self.present(image))

    def _places(self, present: NDArray[np.bool_]) -> dict[str, tuple[Place, ...]]:
        there: dict[str, set[Place]] = {name: set() for name, _ in self.features}
        for (name, _), where in zip(self.templates, present, strict=True):
            there[name] |= {(row, column) for row, column in np.argwhere(where).tolist()}
        for name, _ in self.composites:
            (base, down, right), *others = sorted(self.parts(name))
            corners = {(row - down, column - right) for row, column in there[base]}
            there[name] = {
                (row, column) for row, column in corners if all((row + d, column + r) in there[b] for b, d, r in others)
            }
        return {name: tuple(sorted(found)) for name, found in there.items()}

    def reading(self, image: ArrayLike) -> Reading:
        """The class of an image, or the reason why it has none."""
        present, excess = self._compared(image)
        places, half = self._places(present), self._violation(present, excess)
        found = [name for name, members in self.classes if all(places[member] for member in members)]
        if half:
            return Reading(None, str(half), places)
        if len(found) != 1:
            why = (
                f"it is of {len(found)} classes: {', '.join(found)}" if found else "no class has all its features here"
            )
            return Reading(None, why, places)
        return Reading(found[0], "all features of the class are here", places)


def _grid(grid: ArrayLike) -> Grid:
    rows: Any = grid.tolist() if isinstance(grid, np.ndarray) else grid
    return tuple(tuple(float(value) for value in row) for row in rows)
