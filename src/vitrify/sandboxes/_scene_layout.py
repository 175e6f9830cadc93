r"""Where features of a scene may stand so that nothing is there by accident, and what may stand beside them.

The image is cut into cells with room for the largest feature or composite and as many rows and columns between them as
a template has, less one: no patch then touches two of them. Every patch that can occur is looked at once, here: it must
be clearly present, as a part of what was pasted, or clearly absent, whatever the noise is. So no image that is drawn
later has to be thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from vitrify.spec.scene import Scene

COMBINATIONS = 1 << 12  # of variants of the parts of one composite
CLEAR = 1e-9  # rounding decides nothing


@dataclass(frozen=True)
class Layout:
    """The cells of a scene, and its features as arrays."""

    scene: Scene

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The features and composites that classes ask for."""
        return self.scene.names

    @cached_property
    def base(self) -> dict[str, int]:
        """The features with templates, numbered."""
        return {name: number for number, (name, _) in enumerate(self.scene.features)}

    @cached_property
    def grids(self) -> Any:
        """The templates [feature, variant, row, column]; a feature with fewer variants repeats its first ones."""
        most = max(len(variants) for _, variants in self.scene.features)
        return np.array([[grids[k % len(grids)] for k in range(most)] for _, grids in self.scene.features])

    @cached_property
    def variants(self) -> Any:
        """How many different variants each feature has."""
        return np.array([len(variants) for _, variants in self.scene.features])

    @cached_property
    def parts(self) -> Any:
        """The parts of each name [name, part, (feature, down, right)]; those that it has not are -1."""
        found = [[(self.base[b], down, right) for b, down, right in sorted(self.scene.parts(n))] for n in self.names]
        most = max(map(len, found))
        return np.array([[*parts, *[(-1, 0, 0)] * (most - len(parts))] for parts in found])

    @cached_property
    def boxes(self) -> Any:
        """Rows and columns of each name [name, 2]."""
        return self.parts[:, :, 1:].max(axis=1) + self.scene.size

    @cached_property
    def cells(self) -> tuple[int, int]:
        """How many cells there are, down and right."""
        room = np.array(self.scene.image) + self.scene.size - 1
        down, right = room // (self.boxes.max(axis=0) + np.array(self.scene.size) - 1)
        return int(down), int(right)

    @cached_property
    def pitch(self) -> tuple[int, int]:
        """How far apart cells are."""
        down, right = (np.array(self.scene.image) + self.scene.size - 1) // np.maximum(self.cells, 1)
        return int(down), int(right)

    @cached_property
    def room(self) -> Any:
        """In how many places of a cell each name can stand [name, 2]."""
        return np.array(self.pitch) - self.scene.size + 1 - self.boxes + 1

    @cached_property
    def members(self) -> Any:
        """The names of each class [class, member]; -1 where it has fewer."""
        found = [[self.names.index(member) for member in members] for _, members in self.scene.classes]
        most = max(map(len, found))
        return np.array([[*members, *[-1] * (most - len(members))] for members in found])

    @cached_property
    def extras(self) -> tuple[tuple[int, ...], ...]:
        """For each class the names that may stand in its images too: they make none of another class."""
        return tuple(
            tuple(k for k, name in enumerate(self.names) if name not in own and not self._shown({*own, name}) - {label})
            for label, own in self.scene.classes
        )

    def _shown(self, names: set[str]) -> set[str]:
        """The classes that an image with these names may be of, should their parts happen to form composites."""
        bases = {base for name in names for base, _, _ in self.scene.parts(name)}
        formed = {name for name in self.names if all(base in bases for base, _, _ in self.scene.parts(name))}
        return {label for label, members in self.scene.classes if formed >= {*members}}

    def problems(self) -> list[str]:
        """Why images can't be drawn without looking at each of them, if that is so."""
        needed, room = self.members.shape[1] + 1, self.cells[0] * self.cells[1]
        found = []
        if room < needed:
            found.append(f"its images must have room for {needed} features apart, not for {room}: make them larger")
        for label, members in self.scene.classes:
            for other in sorted(self._shown({*members}) - {label}):
                found.append(f"features of {label!r} may happen to form one of {other!r}")
        for name, parts in zip(self.names, self.parts, strict=True):
            count = int(np.prod([self.variants[base] for base, _, _ in parts if base >= 0]))
            if count > COMBINATIONS:
                found.append(f"{name!r} has {count} forms, more than {COMBINATIONS}")
            elif (doubtful := self._doubtful(parts)) is not None:
                found.append(f"around {name!r} there may happen to be {doubtful!r}")
        return found

    def _doubtful(self, parts: Any) -> str | None:
        """A feature that may seem to be where it was not pasted, around something that was."""
        scene = self.scene
        (height, width), present = scene.size, [tuple(part) for part in parts.tolist() if part[0] >= 0]
        frame = parts[:, 1:].max(axis=0) + 3 * np.array(scene.size)  # with a patch of background
        own = {base for base, _, _ in present}
        for forms in product(*(range(self.variants[base]) for base, _, _ in present)):
            canvas = np.full(frame, scene.background)
            for (base, down, right), form in zip(present, forms, strict=True):
                row, column = down + height - 1, right + width - 1
                canvas[row : row + height, column : column + width] = self.grids[base, form]
            patches = np.lib.stride_tricks.sliding_window_view(canvas, scene.size)
            for name, grid in scene.templates:
                apart = np.abs(patches - grid)
                least = np.maximum(apart - scene.noise - scene.eps, 0.0).sum(axis=(2, 3))
                there = (apart.max(axis=(2, 3)) + scene.noise <= scene.eps + CLEAR) & (self.base.get(name, -1) in own)
                if not (there | (least >= scene.gamma - CLEAR)).all():
                    return name
        return None
