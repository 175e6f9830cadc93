"""Compiled programs for the members of a group: a loop over steps, data drawn in the step, members side by side.

Members go in lanes. The members of a lane are one `vmap`ped program, and all lanes run the same one. On a GPU a lane
holds all members: that is what keeps it busy. On a CPU, where a small member keeps a core busy, a lane holds one, and
lanes run on threads; so a member's numbers are the same to the bit whoever is trained beside it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.measure import mean_loss, means, sums
from vitrify.learn.models.catalogue import Parameters
from vitrify.learn.plan import WHOLE, Group
from vitrify.net.transformer import Transformer
from vitrify.sandboxes._draws import below
from vitrify.sandboxes.catalogue import Row, numbered, rows

Probe = Callable[[Any, Mapping[str, Array], Row, Mapping[str, Array]], Array]  # net, arrays, rows, activations
First = Callable[[Any, Array, Mapping[str, Array]], Parameters]  # net, key, the member's values -> parameters
TEST_SEED = 0  # every member is measured on the same rows
PIECE = 64  # rows that are measured at once


class Member(NamedTuple):
    """All that a step changes of a member; in a lane of several, every array has them along its first axis."""

    parameters: Any
    optimiser: Any
    alive: Array  # neither stopped nor broken
    broken: Array  # the step whose loss was not a number, or -1
    loss: Array  # the sum of the training losses since the last measurement


@dataclass(frozen=True, eq=False)
class Program:
    """The compiled functions of a group.

    `first`, if given, makes the parameters that members start from; `probes` are measured beside the losses; `width` is
    the number of members in a lane, and `threads` that of the lanes that step at a time, by default one for each core.
    With several `devices` each has a part of every batch and a copy of everything else, and lanes step one by one.
    """

    group: Group
    probes: Mapping[str, Probe] = field(default_factory=dict)
    first: First | None = None
    width: int = 0
    threads: int = 0
    devices: int = 1

    def __post_init__(self) -> None:
        problem = _unshared(self.devices, self.group.recipe.batch) if self.devices != 1 else None
        if problem:
            raise InputError(problem)
        if not self.width:
            wide = jax.default_backend() != "cpu"
            object.__setattr__(self, "width", len(self.group.members) if wide else 1)

    @cached_property
    def net(self) -> Any:
        """The architecture that all members share."""
        return self.group.family.architecture(self.group.sandbox)

    @cached_property
    def lanes(self) -> list[dict[str, Array]]:
        """The values of the members of each lane; the last lane is filled up with copies of its last member."""
        members = list(self.group.members)
        members += [members[-1]] * (-len(members) % self.width)
        columns = {
            name: np.array([member[name] for member in members]).astype(np.uint32 if name in WHOLE else np.float32)
            for name in self._axes
        }
        return [
            {
                name: column[at : at + self.width] if self._axes[name] == 0 else column[at]
                for name, column in columns.items()
            }
            for at in range(0, len(members), self.width)
        ]

    @cached_property
    def _axes(self) -> dict[str, int | None]:
        """Which values differ between the members of a lane; the others are one number for all."""
        members = self.group.members
        given = [name for name, value in members[0].items() if value is not None]  # the same ones for all members
        differ = {name: len({member[name] for member in members}) > 1 for name in given}
        return {name: 0 if self.width > 1 and (name == "seed" or differs) else None for name, differs in differ.items()}

    def _each(self, one: Callable[..., Any]) -> Callable[..., Any]:
        """A function of a member's values and anything of its own, for all members of a lane."""
        if self.width == 1:
            return one
        return lambda values, *own: jax.vmap(one, in_axes=(self._axes, *[0] * len(own)))(values, *own)

    def _parts(self, values: Mapping[str, Array]) -> tuple[Any, Any, Any]:
        """Sandbox, family and recipe with a member's values."""
        group = self.group

        def own(part: Any) -> Any:
            return replace(part, **{name: values.get(name) for name in part.TRACED})

        return own(group.sandbox), own(group.family), own(group.recipe)

    def _begin(self, values: Mapping[str, Array]) -> Member:
        def one(values: Mapping[str, Array]) -> Member:
            _, family, recipe = self._parts(values)
            key = jax.random.key(values["seed"], impl="threefry2x32")
            parameters = self.first(self.net, key, values) if self.first else family.first(self.net, key)
            state = recipe.transformation().init(parameters)
            return Member(parameters, state, jnp.bool_(True), jnp.int32(-1), jnp.float32(0.0))

        found: Member = self._each(one)(values)
        return found

    def loss(self, values: Mapping[str, Array], parameters: Any, row: Row) -> Array:
        """The training loss of one member on a batch."""
        return self._loss(values, parameters, row)[0]

    def _loss(self, values: Mapping[str, Array], parameters: Any, row: Row) -> tuple[Array, dict[str, Array]]:
        """The training loss of one member on a batch, and the activations that its family watches."""
        sandbox, family, recipe = self._parts(values)
        if recipe.precision != "float32":
            parameters = jax.tree.map(lambda x: x.astype(recipe.precision), parameters)
        seen: dict[str, Array] = {}
        record = seen.__setitem__ if family.watched else None
        logits = family.logits(self.net, sandbox, family.arrays(self.net, parameters), row, record)
        loss = mean_loss(logits, row, recipe.loss == "squared")
        watched = {name: seen[name] for name in family.watched}
        return loss + family.penalty(watched, row) if watched else loss, watched

    def step_bytes(self) -> int:
        """Memory of a step of one member: what its backward pass goes back to."""

        def residuals(values: Mapping[str, Array]) -> Any:
            sandbox, _, recipe = self._parts(values)
            row = self._rows(sandbox, recipe, values["data_seed"], jnp.int32(0))
            return jax.vjp(lambda parameters: self.loss(values, parameters, row), self._begin(values).parameters)[1]

        kept = jax.tree.leaves(jax.eval_shape(residuals, self.lanes[0]))
        return sum(leaf.size * leaf.dtype.itemsize for leaf in kept)

    def _advance(self, lane: Member, values: Mapping[str, Array], start: Array, steps: Array) -> Member:
        def one(values: Mapping[str, Array], member: Member, step: Array) -> Member:
            sandbox, family, recipe = self._parts(values)
            row = self._shared(self._rows(sandbox, recipe, values["data_seed"], step))
            slopes = jax.value_and_grad(lambda p: self._loss(values, p, row), has_aux=True)
            (loss, seen), gradient = slopes(member.parameters)
            update, optimiser = recipe.transformation().update(gradient, member.optimiser, member.parameters)
            parameters: Any = optax.apply_updates(member.parameters, update)
            own = family.moved(member.parameters, seen, row)
            parameters = {**parameters, **own} if own else parameters
            whole = jnp.isfinite(loss)
            alive = member.alive & whole

            def kept(new: Array, old: Array) -> Array:
                return jnp.where(alive, new, old)

            return Member(
                jax.tree.map(kept, parameters, member.parameters),
                jax.tree.map(kept, optimiser, member.optimiser),
                alive,
                jnp.where(member.alive & ~whole, step, member.broken),
                member.loss + jnp.where(alive, loss, 0.0),
            )

        def body(done: Array, lane: Member) -> Member:
            step: Array = start + done
            found: Member = self._each(lambda values, member: one(values, member, step))(values, lane)
            return found

        after: Member = jax.lax.fori_loop(0, steps, body, lane)
        return after

    def _rows(self, sandbox: Any, recipe: Any, seed: Array, step: Array) -> Row:
        """The batch of a step: fresh rows, or some of a finite training set."""
        if recipe.train_rows is None:
            found = rows(sandbox, seed, "train", step.astype(jnp.uint32) * recipe.batch, recipe.batch)
        else:
            size = jnp.asarray(recipe.train_rows, jnp.int32)
            found = numbered(
                sandbox, seed, "train", jax.random.randint(_drawn(1, seed, step), (recipe.batch,), 0, size)
            )
        return found._replace(start=self._start(found, _drawn(2, seed, step))) if recipe.anywhere else found

    def _shared(self, row: Row) -> Row:
        """A batch of which every device has a part; the gradient's sums over it are then sums over the devices."""
        if self.devices == 1:
            return row
        parts, constrain = self._over("batch"), cast(Any, jax.lax.with_sharding_constraint)
        found: Row = jax.tree.map(lambda array: constrain(array, parts), row)
        return found

    def _over(self, *axes: str) -> NamedSharding:
        """Arrays whose first axes are divided among the devices; without any, each device has a copy."""
        mesh = Mesh(np.array(jax.devices()[: self.devices]), ("batch",))
        return NamedSharding(mesh, cast(Any, PartitionSpec)(*axes))

    def _jit(self, function: Callable[..., Any], **options: Any) -> Any:
        """Compile for one device, or for several that have a copy each of what goes in and what comes out."""
        if self.devices > 1:
            options |= {"in_shardings": self._over(), "out_shardings": self._over()}
        return jax.jit(function, **options)

    def _start(self, row: Row, key: Array) -> Array | None:
        """A random place for each row of a batch that leaves room for it up to its last question."""
        if not isinstance(self.net, Transformer):
            return None
        used = jnp.where(row.weight > 0, jnp.arange(row.weight.shape[1]), 0).max(axis=1)
        bits = jax.random.bits(key, used.shape)
        return below(bits, jnp.maximum(self.net.max_length - used, 0) + 1)

    def _measure(self, lane: Member, values: Mapping[str, Array]) -> dict[str, Array]:
        def one(values: Mapping[str, Array], member: Member) -> dict[str, Array]:
            sandbox, family, recipe = self._parts(values)
            arrays = family.arrays(self.net, member.parameters)
            piece = min(PIECE, recipe.test_rows)

            def measured(start: Array) -> dict[str, Array]:
                row = rows(sandbox, TEST_SEED, "test", start, piece)
                return sums(sandbox, family.logits(self.net, sandbox, arrays, row), row)

            starts = jnp.arange(0, recipe.test_rows, piece, dtype=jnp.uint32)
            found = means(jax.tree.map(lambda x: x.sum(axis=0), jax.lax.map(measured, starts)))
            if self.probes:
                row = rows(sandbox, TEST_SEED, "probe", 0, piece)
                seen: dict[str, Array] = {}
                family.logits(self.net, sandbox, arrays, row, seen.__setitem__)
                found |= {name: probe(self.net, arrays, row, seen) for name, probe in self.probes.items()}
            return found

        found: dict[str, Array] = self._each(one)(values, lane)
        return found

    @cached_property
    def compiled(self) -> tuple[Any, Any, Any, float]:
        """The start, the step loop and the measurement of a lane, and the seconds that compiling them took."""
        began, values, shapes = time.perf_counter(), self.lanes[0], self.shapes
        zero = jnp.int32(0)
        begin = self._jit(self._begin).lower(values).compile()
        advance = self._jit(self._advance, donate_argnums=0).lower(shapes, values, zero, zero).compile()
        measure = self._jit(self._measure).lower(shapes, values).compile()
        return begin, advance, measure, time.perf_counter() - began

    @cached_property
    def shapes(self) -> Member:
        """What a lane looks like, without its numbers."""
        found: Member = jax.eval_shape(self._begin, self.lanes[0])
        return found

    def _on_all(self, act: Callable[[int], Any]) -> list[Any]:
        """The results of every lane, from threads where there are several."""
        threads = min(len(self.lanes), self.threads or os.cpu_count() or 1) if self.devices == 1 else 1
        if threads == 1:
            return [act(at) for at in range(len(self.lanes))]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(act, range(len(self.lanes))))

    def begin(self) -> list[Member]:
        """Every lane before the first step."""
        return self._on_all(lambda at: self.compiled[0](self.lanes[at]))

    def advance(self, lanes: list[Member], start: int, steps: int) -> list[Member]:
        """Every lane so many steps further; those that were given are used up."""
        go, first, count = self.compiled[1], jnp.int32(start), jnp.int32(steps)

        def act(at: int) -> Member:
            found: Member = go(lanes[at], self.lanes[at], first, count)
            found.alive.block_until_ready()
            return found

        return self._on_all(act)

    def measure(self, lanes: list[Member]) -> dict[str, Any]:
        """What is measured of each member, by name."""
        found = self._on_all(lambda at: jax.tree.map(np.asarray, self.compiled[2](lanes[at], self.lanes[at])))
        joined: dict[str, Any] = self.joined(found)
        return joined

    def joined(self, lanes: list[Any]) -> Any:
        """Something of every lane as arrays with all members along the first axis."""
        count = len(self.group.members)
        join = np.stack if self.width == 1 else np.concatenate
        return jax.tree.map(lambda *parts: join([np.asarray(part) for part in parts])[:count], *lanes)

    def apart(self, whole: Any) -> list[Any]:
        """The other way round: arrays with all members along the first axis, as lanes."""
        count, width = len(self.group.members), self.width
        fill = -count % width

        def lane(array: Any, at: int) -> Array:
            array = np.concatenate([array, np.repeat(array[-1:], fill, axis=0)]) if fill else array
            return jnp.asarray(array[at * width : (at + 1) * width] if width > 1 else array[at])

        return [jax.tree.map(lambda array, at=at: lane(array, at), whole) for at in range(len(self.lanes))]


def _unshared(devices: int, batch: int) -> str | None:
    """Why a batch can't be shared among so many devices."""
    there = len(jax.devices())
    if not 1 <= devices <= there:
        return f"devices must lie between 1 and {there}, the number of those that JAX sees here, not {devices}"
    if batch % devices:
        return f"each of {devices} devices must have the same part of a batch: take a multiple of it, not {batch}"
    return None


def _drawn(what: int, seed: Array, step: Array) -> Array:
    """The key of something that is drawn anew at every step."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(what, impl="threefry2x32"), seed), step)


def remember_programs() -> None:
    """Keep compiled programs on disk, so that the next process need not compile them again."""
    folder = os.environ.get("VITRIFY_CACHE") or Path.home() / ".cache" / "vitrify"
    config: Any = jax.config
    config.update("jax_compilation_cache_dir", str(Path(folder) / "programs"))
    config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
