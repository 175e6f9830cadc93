r"""Feature scenes: images whose class is the set of features that they show.

An image of a uniform class has every feature and composite of the class in a random variant, each in a cell of its own
at a random place in it, and with probability 1/2 one more that makes it no image of another class; the rest is
background, and noise is added. `SceneLayout` makes sure, once for a scene, that nothing else is or seems to be there,
so the class is certain, as `vitrify.spec.geometry.scene` reads the image. Where no scene is given it is a random one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Entry, Exact, Example, Float, Int
from vitrify.sandboxes.kit.draws import below, distinct
from vitrify.spec.geometry.scene import Scene, random_scene

COMBINATIONS = 1 << 12  # of variants of the parts of one composite
CLEAR = 1e-9  # rounding decides nothing


@dataclass(frozen=True)
class Scenes(Exact):
    """Images of a `scene`, or of a random one."""

    symbols = ()
    reads = "image"

    scene: Scene | None = None
    seed: int = 0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        for problem in self.layout.problems():
            yield "scene", f"can't be drawn: {problem}"

    @cached_property
    def shown(self) -> Scene:
        """The scene: the one that was given, or a random one."""
        return self.scene if self.scene is not None else random_scene(self.seed)

    @cached_property
    def layout(self) -> SceneLayout:
        """Its features as arrays, and where they may stand."""
        return SceneLayout(self.shown)

    @property
    def rounded(self) -> bool:
        return self.shown.noise > 0

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(label for label, _ in self.shown.classes)

    @property
    def tokens(self) -> int:
        return self.shown.image[0] * self.shown.image[1]

    @property
    def planes(self) -> tuple[int, int, int]:
        return (1, *self.shown.image)

    @cached_property
    def _more(self) -> tuple[Int[Array, "class extra"], Int[Array, " class"]]:
        """The extra names of each class [class, extra], and how many there are."""
        extras = self.layout.extras
        most = max(1, *map(len, extras))
        return np.array([[*some, *[-1] * (most - len(some))] for some in extras]), np.array([*map(len, extras)])

    def draw(self, key: Array) -> Example:
        one, two, three = jax.random.split(key, 3)
        plan, (extras, counts) = self.layout, self._more
        first = jax.random.bits(one, (3,))
        label = below(first[0], len(self.answers))
        extra = jnp.asarray(extras)[label, below(first[1], jnp.maximum(jnp.asarray(counts)[label], 1))]
        names = jnp.append(jnp.asarray(plan.members)[label], jnp.where(first[2] >> 31, extra, -1))
        items, parts = len(names), plan.parts.shape[1]
        bits = jax.random.bits(two, (items, 3 + parts))
        cell = distinct(bits[:, 0], plan.cells[0] * plan.cells[1])
        corner = jnp.stack(jnp.divmod(cell, plan.cells[1]), axis=1) * jnp.array(plan.pitch)
        corner = corner + below(bits[:, 1:3], jnp.asarray(plan.room)[names])
        base, down, right = jnp.moveaxis(jnp.asarray(plan.parts)[names], 2, 0)  # [item, part]
        grids = jnp.asarray(plan.grids, jnp.float32)[base, below(bits[:, 3:], jnp.asarray(plan.variants)[base])]
        there = (names[:, None] >= 0) & (base >= 0)
        top = jnp.where(there, corner[:, :1] + down, self.shown.image[0])[:, :, None, None]  # outside: not pasted
        rows, columns = np.indices(self.shown.size)
        image = jnp.full(self.shown.image, self.shown.background, jnp.float32)
        image = image.at[top + rows, (corner[:, 1:] + right)[:, :, None, None] + columns].set(grids, mode="drop")
        if self.shown.noise:
            image = image + self.shown.noise * jax.random.uniform(three, self.shown.image, minval=-1.0)
        latent = {"names": names, "corner": corner}
        return Example(image.reshape(-1), label[None], jnp.ones(1), latent)

    def right(self, tokens: Array) -> Array:
        """The class all of whose features are somewhere; what is not within eps in a pixel is far off in some."""
        scene, plan = self.shown, self.layout
        (height, width), image = scene.size, tokens.reshape(scene.image)
        down, right = scene.image[0] - height + 1, scene.image[1] - width + 1
        patches = jnp.stack([image[r : r + down, c : c + right] for r in range(height) for c in range(width)])
        apart = jnp.abs(patches - plan.grids.reshape(*plan.grids.shape[:2], -1, 1, 1)).max(axis=2)
        there = (apart <= scene.eps + scene.gamma / (2 * height * width)).any(axis=1)  # [feature, row, column]
        present = []
        for parts in plan.parts.tolist():
            everywhere = jnp.ones((down, right), bool)
            for base, low, far in parts:
                if base >= 0:
                    moved = there[base, low:, far:]
                    everywhere &= jnp.pad(moved, ((0, low), (0, far)))
            present.append(everywhere.any())
        shown = jnp.stack(present)
        complete = jnp.where(plan.members >= 0, shown[plan.members], True).all(axis=1)
        return jnp.argmax(complete).astype(jnp.int32)[None]

    def floor(self) -> Array:
        return jnp.zeros(1)


@dataclass(frozen=True)
class SceneLayout:
    """Where features of a scene may stand so that nothing is there by accident, and what may stand beside them.

    The image is cut into cells with room for the largest feature or composite and as many rows and columns between them
    as a template has, less one: no patch then touches two of them. Every patch that can occur is looked at once, here:
    it must be clearly present, as a part of what was pasted, or clearly absent, whatever the noise is. So no image that
    is drawn later has to be thrown away.
    """

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
    def grids(self) -> Float[np.ndarray, "feature variant row column"]:
        """The templates [feature, variant, row, column]; a feature with fewer variants repeats its first ones."""
        most = max(len(variants) for _, variants in self.scene.features)
        return np.array([[grids[k % len(grids)] for k in range(most)] for _, grids in self.scene.features])

    @cached_property
    def variants(self) -> Int[np.ndarray, " feature"]:
        """The number of variants of each feature."""
        return np.array([len(variants) for _, variants in self.scene.features])

    @cached_property
    def parts(self) -> Int[np.ndarray, "name part 3"]:
        """The parts of each name [name, part, (feature, down, right)]; those that it has not are -1."""
        listed = [[(self.base[b], down, right) for b, down, right in sorted(self.scene.parts(n))] for n in self.names]
        most = max(map(len, listed))
        return np.array([[*parts, *[(-1, 0, 0)] * (most - len(parts))] for parts in listed])

    @cached_property
    def boxes(self) -> Int[np.ndarray, "name 2"]:
        """Rows and columns of each name [name, 2]."""
        return np.asarray(self.parts[:, :, 1:].max(axis=1) + self.scene.size)

    @cached_property
    def cells(self) -> tuple[int, int]:
        """The number of cells, down and right."""
        room = np.array(self.scene.image) + self.scene.size - 1
        down, right = room // (self.boxes.max(axis=0) + np.array(self.scene.size) - 1)
        return int(down), int(right)

    @cached_property
    def pitch(self) -> tuple[int, int]:
        """The distance between cells, down and right."""
        down, right = (np.array(self.scene.image) + self.scene.size - 1) // np.maximum(self.cells, 1)
        return int(down), int(right)

    @cached_property
    def room(self) -> Int[np.ndarray, "name 2"]:
        """In how many places of a cell each name can stand [name, 2]."""
        return np.asarray(np.array(self.pitch) - self.scene.size + 1 - self.boxes + 1)

    @cached_property
    def members(self) -> Int[np.ndarray, "class member"]:
        """The names of each class [class, member]; -1 where it has fewer."""
        listed = [[self.names.index(member) for member in members] for _, members in self.scene.classes]
        most = max(map(len, listed))
        return np.array([[*members, *[-1] * (most - len(members))] for members in listed])

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
        problems = []
        if room < needed:
            problems.append(f"its images must have room for {needed} features apart, not for {room}: make them larger")
        for label, members in self.scene.classes:
            for other in sorted(self._shown({*members}) - {label}):
                problems.append(f"features of {label!r} may happen to form one of {other!r}")
        for name, parts in zip(self.names, self.parts, strict=True):
            count = int(np.prod([self.variants[base] for base, _, _ in parts if base >= 0]))
            if count > COMBINATIONS:
                problems.append(f"{name!r} has {count} forms, more than {COMBINATIONS}")
            elif (doubtful := self._doubtful(parts)) is not None:
                problems.append(f"around {name!r} there may happen to be {doubtful!r}")
        return problems

    def _doubtful(self, parts: Int[np.ndarray, "part 3"]) -> str | None:
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


TINY = Scene.of(
    (7, 7),
    0.1,
    0.3,
    {"dot": [[[1, 0], [0, 1]]], "bar": [[[1, 1], [0, 0]], [[0, 0], [1, 1]]], "box": [[[1, 1], [1, 1]]]},
    {"a": ["dot", "bar"], "b": ["box"]},
    background=0.5,
)
SANDBOX = Entry(Scenes, small={"scene": TINY})
