r"""Feature scenes: images whose class is the set of features that they show.

An image of a uniform class has every feature and composite of the class in a random variant, each in a cell of its own
at a random place in it, and with probability 1/2 one more that makes it no image of another class; the rest is
background, and noise is added. `_scene_layout` makes sure, once for a scene, that nothing else is or seems to be there,
so the class is certain, as `vitrify.spec.scene` reads the image. Where no scene is given it is a random one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._exact import Exact, distinct
from vitrify.sandboxes._scene_layout import Layout
from vitrify.sandboxes.catalogue import Entry, Row
from vitrify.spec.scene import Scene
from vitrify.spec.scenes import random_scene


@dataclass(frozen=True)
class Scenes(Exact):
    """Images of a `scene`, or of a random one."""

    reads: ClassVar[Literal["tokens", "vector", "image"]] = "image"

    scene: Scene | None = None
    seed: int = 0

    def problems(self) -> Iterator[str]:
        yield from self.layout.problems()

    @cached_property
    def shown(self) -> Scene:
        """The scene: the one that was given, or a random one."""
        return self.scene if self.scene is not None else random_scene(self.seed)

    @cached_property
    def layout(self) -> Layout:
        """Its features as arrays, and where they may stand."""
        return Layout(self.shown)

    @property
    def rounded(self) -> bool:
        return self.shown.noise > 0

    @property
    def symbols(self) -> tuple[str, ...]:
        return ()

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
    def _more(self) -> tuple[Any, Any]:
        """The extra names of each class [class, extra], and how many there are."""
        extras = self.layout.extras
        most = max(1, *map(len, extras))
        return np.array([[*some, *[-1] * (most - len(some))] for some in extras]), np.array([*map(len, extras)])

    def draw(self, key: Array) -> Row:
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
        return Row(image.reshape(-1), label[None], jnp.ones(1), latent)

    def right(self, tokens: Array) -> Array:
        """The class all of whose features are somewhere; what is not within eps in a pixel is far off in some."""
        scene, plan = self.shown, self.layout
        (height, width), image = scene.size, tokens.reshape(scene.image)
        down, right = scene.image[0] - height + 1, scene.image[1] - width + 1
        patches = jnp.stack([image[r : r + down, c : c + right] for r in range(height) for c in range(width)])
        apart = jnp.abs(patches - plan.grids.reshape(*plan.grids.shape[:2], -1, 1, 1)).max(axis=2)
        there = (apart <= scene.eps + scene.gamma / (2 * height * width)).any(axis=1)  # [feature, row, column]
        found = []
        for parts in plan.parts.tolist():
            whole = jnp.ones((down, right), bool)
            for base, low, far in parts:
                if base >= 0:
                    moved = there[base, low:, far:]
                    whole &= jnp.pad(moved, ((0, low), (0, far)))
            found.append(whole.any())
        shown = jnp.stack(found)
        complete = jnp.where(plan.members >= 0, shown[plan.members], True).all(axis=1)
        return jnp.argmax(complete).astype(jnp.int32)[None]

    def floor(self) -> Array:
        return jnp.zeros(1)

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        scene, plan = self.shown, self.layout
        images = np.full((count, *scene.image), scene.background)
        labels = rng.integers(len(self.answers), size=count)
        extras = np.array([len(some) for some in plan.extras])[labels]
        which = np.where((rng.random(count) < 0.5) & (extras > 0), rng.integers(np.maximum(extras, 1)), -1)
        for label, extra in np.unique(np.stack([labels, which], axis=1), axis=0):  # images with the same features
            rows = np.flatnonzero((labels == label) & (which == extra))
            names = [name for name in plan.members[label] if name >= 0]
            names += [plan.extras[label][extra]] if extra >= 0 else []
            order = rng.permuted(np.tile(np.arange(plan.cells[0] * plan.cells[1]), (len(rows), 1)), axis=1)
            for name, cell in zip(names, order.T, strict=False):
                row = cell // plan.cells[1] * plan.pitch[0] + rng.integers(plan.room[name][0], size=len(rows))
                column = cell % plan.cells[1] * plan.pitch[1] + rng.integers(plan.room[name][1], size=len(rows))
                for part, down, right in scene.parts(plan.names[name]):
                    grids = np.array(dict(scene.features)[part])
                    chosen = grids[rng.integers(len(grids), size=len(rows))]
                    for r, c in np.ndindex(*scene.size):
                        images[rows, row + down + r, column + right + c] = chosen[:, r, c]
        images += rng.uniform(-scene.noise, scene.noise, size=images.shape)
        return images.reshape(count, -1), labels[:, None]


TINY = Scene.of(
    (7, 7),
    0.1,
    0.3,
    {"dot": [[[1, 0], [0, 1]]], "bar": [[[1, 1], [0, 0]], [[0, 0], [1, 1]]], "box": [[[1, 1], [1, 1]]]},
    {"a": ["dot", "bar"], "b": ["box"]},
    background=0.5,
)
SANDBOX = Entry(Scenes, small={"scene": TINY})
