"""Compiled programs for the members of a group: a loop over steps, data drawn in the step, members side by side.

Members go in lanes. The members of a lane are one `vmap`ped program, and all lanes run the same one. On a GPU a lane
holds all members, or as many as its memory has room for, and lanes run in turn. On a CPU, where a small member keeps a
core busy, a lane holds one, and lanes run on threads; so a member's numbers are the same to the bit whoever is trained
beside it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.stages import Compiled, Lowered, Wrapped

from vitrify.arrays import Array, Tree
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.learn import compiler
from vitrify.learn.measure import PIECE, TEST_SEED, mean_loss, over
from vitrify.learn.models.catalogue import Family, Parameters
from vitrify.learn.plan import INTEGERS, MemberGroup
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import Net, digest
from vitrify.net.transformer import Transformer
from vitrify.parameters import Parameterized
from vitrify.sandboxes.catalogue import Example, Sandbox, examples, examples_at
from vitrify.sandboxes.kit.draws import below

Probe = Callable[[Net, Mapping[str, Array], Example, Mapping[str, Array]], Array]  # net, arrays, sequences, activations
First = Callable[[Net, Array, Mapping[str, Array]], Parameters]  # net, key, the member's values -> parameters
compiler.one_kernel_for_random_bits()
T = TypeVar("T")  # a tree of arrays, or a dictionary of them
P = TypeVar("P", bound=Parameterized)
COMPILED = 16  # programs of groups that a process holds for others like them


class Member(NamedTuple):
    """All that a step changes of a member; in a lane of several, every array has them along its first axis."""

    parameters: Parameters
    optimizer: Tree
    alive: Array  # neither stopped nor broken
    broken: Array  # the step whose loss was not a number, or -1
    loss: Array  # the sum of the training losses since the last measurement
    average: Parameters | None = None  # of the parameters, where the recipe measures it

    @property
    def measured(self) -> Parameters:
        """The weights that are measured, and that a run ends with."""
        return self.parameters if self.average is None else self.average


@dataclass(frozen=True, eq=False)
class TrainingProgram:
    """The compiled functions of a group.

    `first`, if given, makes the parameters that members start from; `probes` are measured beside the losses; `width` is
    the number of members in a lane, and `threads` that of the lanes that step at a time, by default one for each core.
    With several `devices` each has a part of every batch and a copy of everything else, and lanes step one by one.
    """

    group: MemberGroup
    probes: Mapping[str, Probe] = field(default_factory=dict)
    first: First | None = None
    width: int = 0
    threads: int = 0
    devices: int = 1

    def __post_init__(self) -> None:
        problem = compiler.unshared(self.devices, self.group.recipe.batch) if self.devices != 1 else None
        if problem:
            raise InputError(problem)
        if not self.width:
            from vitrify.learn import cost

            object.__setattr__(self, "width", cost.lane_width(self.group, cost.device_bytes()))

    @cached_property
    def net(self) -> Net:
        """The architecture that all members share."""
        return self.group.family.architecture(self.group.sandbox)

    @cached_property
    def _measured(self) -> dict[str, Probe]:
        """The probes that are given, and those that the recipe names."""
        if not self.group.recipe.probes:
            return dict(self.probes)
        from vitrify.learn.watched import named

        return named(self.group) | dict(self.probes)

    @cached_property
    def lanes(self) -> list[dict[str, Array]]:
        """The values of the members of each lane; the last lane is filled up with copies of its last member."""
        members = list(self.group.members)
        members += [members[-1]] * (-len(members) % self.width)
        columns = {
            name: np.array([member[name] for member in members]).astype(np.uint32 if name in INTEGERS else np.float32)
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
        """The `vmap` axis of each value: 0 if it differs between the members of a lane, else None."""
        members = self.group.members
        names = [name for name, value in members[0].items() if value is not None]  # the same ones for all members
        differ = {name: len({member[name] for member in members}) > 1 for name in names}
        return {name: 0 if self.width > 1 and (name == "seed" or differs) else None for name, differs in differ.items()}

    def _each(self, one: Callable[..., T]) -> Callable[..., T]:
        """A function of a member's values and anything of its own, for all members of a lane."""
        if self.width == 1:
            return one
        return lambda values, *own: jax.vmap(one, in_axes=(self._axes, *[0] * len(own)))(values, *own)

    def _parts(self, values: Mapping[str, Array]) -> tuple[Sandbox, Family, Recipe]:
        """Sandbox, family and recipe with a member's values."""
        group = self.group

        def own(part: P) -> P:
            return replace(part, **{name: values.get(name) for name in part.TRACED})

        return own(group.sandbox), own(group.family), own(group.recipe)

    def _begin(self, values: Mapping[str, Array]) -> Member:
        def one(values: Mapping[str, Array]) -> Member:
            _, family, recipe = self._parts(values)
            key = jax.random.key(values["seed"], impl="threefry2x32")
            parameters = self.first(self.net, key, values) if self.first else family.first(self.net, key)
            state = recipe.transformation().init(parameters)
            average = parameters if recipe.average else None
            return Member(parameters, state, jnp.bool_(True), jnp.int32(-1), jnp.float32(0.0), average)

        return self._each(one)(values)

    def loss(self, values: Mapping[str, Array], parameters: Parameters, batch: Example) -> Array:
        """The training loss of one member on a batch."""
        return self._loss(values, parameters, batch)[0]

    def _loss(
        self, values: Mapping[str, Array], parameters: Parameters, batch: Example
    ) -> tuple[Array, dict[str, Array]]:
        """The training loss of one member on a batch, and the activations that its family watches."""
        sandbox, family, recipe = self._parts(values)
        if recipe.precision != "float32":
            parameters = jax.tree.map(lambda x: x.astype(recipe.precision), parameters)
        seen: dict[str, Array] = {}
        record = seen.__setitem__ if family.watched else None
        logits = family.logits(self.net, sandbox, family.arrays(self.net, parameters), batch, record)
        loss = mean_loss(logits, batch, recipe.loss == "squared")
        watched = {name: seen[name] for name in family.watched}
        return loss + family.penalty(watched, batch) if watched else loss, watched

    def step_bytes(self) -> int:
        """Memory of a step of one member: what its backward pass goes back to."""

        def residuals(values: Mapping[str, Array]) -> Tree:
            sandbox, _, recipe = self._parts(values)
            batch = self._rows(sandbox, recipe, values["data_seed"], jnp.int32(0))
            return jax.vjp(lambda parameters: self.loss(values, parameters, batch), self._begin(values).parameters)[1]

        leaves = jax.tree.leaves(jax.eval_shape(residuals, self.lanes[0]))
        return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)

    def _advance(self, lane: Member, values: Mapping[str, Array], start: Array, steps: Array) -> Member:
        def one(values: Mapping[str, Array], member: Member, step: Array) -> Member:
            sandbox, family, recipe = self._parts(values)
            batch = self._shared(self._rows(sandbox, recipe, values["data_seed"], step))
            slopes = jax.value_and_grad(lambda p: self._loss(values, p, batch), has_aux=True)
            (loss, seen), gradient = slopes(member.parameters)
            update, optimizer = recipe.transformation().update(gradient, member.optimizer, member.parameters)
            parameters: Parameters = optax.apply_updates(member.parameters, update)
            own = family.moved(member.parameters, seen, batch)
            parameters = {**parameters, **own} if own else parameters
            average = recipe.averaged(member.average, parameters, step) if recipe.average else None
            finite = jnp.isfinite(loss)
            alive = member.alive & finite

            def updated(new: Array, old: Array) -> Array:
                return jnp.where(alive, new, old)

            return Member(
                jax.tree.map(updated, parameters, member.parameters),
                jax.tree.map(updated, optimizer, member.optimizer),
                alive,
                jnp.where(member.alive & ~finite, step, member.broken),
                member.loss + jnp.where(alive, loss, 0.0),
                jax.tree.map(updated, average, member.average),
            )

        def body(done: Array, lane: Member) -> Member:
            step: Array = start + done
            return self._each(lambda values, member: one(values, member, step))(values, lane)

        after: Member = jax.lax.fori_loop(0, steps, body, lane)
        return after

    def _rows(self, sandbox: Sandbox, recipe: Recipe, seed: Array, step: Array) -> Example:
        """The batch of a step: fresh sequences, or some of a finite training set."""
        if recipe.train_examples is None:
            batch = examples(sandbox, seed, "train", step.astype(jnp.uint32) * recipe.batch, recipe.batch)
        else:
            size = jnp.asarray(recipe.train_examples, jnp.int32)
            batch = examples_at(
                sandbox, seed, "train", jax.random.randint(_drawn(1, seed, step), (recipe.batch,), 0, size)
            )
        return batch._replace(start=self._start(batch, _drawn(2, seed, step))) if recipe.random_offset else batch

    def _shared(self, batch: Example) -> Example:
        """A batch of which every device has a part; the gradient's sums over it are then sums over the devices."""
        if self.devices == 1:
            return batch
        parts, constrain = self._over("batch"), cast(Any, jax.lax.with_sharding_constraint)
        shared: Example = jax.tree.map(lambda array: constrain(array, parts), batch)
        return shared

    def _over(self, *axes: str) -> NamedSharding:
        """Arrays whose first axes are divided among the devices; without any, each device has a copy."""
        mesh = Mesh(np.array(jax.devices()[: self.devices]), ("batch",))
        return NamedSharding(mesh, cast(Any, PartitionSpec)(*axes))

    def _jit(self, function: Callable[..., Tree], **options: Any) -> Wrapped:
        """Compile for one device, or for several that have a copy each of what goes in and what comes out."""
        if self.devices > 1:
            options |= {"in_shardings": self._over(), "out_shardings": self._over()}
        return jax.jit(function, **options)

    def _start(self, batch: Example, key: Array) -> Array | None:
        """A random place for each sequence of a batch that leaves room for it up to its last question."""
        if not isinstance(self.net, Transformer):
            return None
        used = jnp.where(batch.weight > 0, jnp.arange(batch.weight.shape[1]), 0).max(axis=1)
        bits = jax.random.bits(key, used.shape)
        return below(bits, jnp.maximum(self.net.max_length - used, 0) + 1)

    def _measure(self, lane: Member, values: Mapping[str, Array]) -> dict[str, Array]:
        def one(values: Mapping[str, Array], member: Member) -> dict[str, Array]:
            sandbox, family, recipe = self._parts(values)
            arrays = family.arrays(self.net, member.measured)

            def logits(batch: Example) -> Array:
                return family.logits(self.net, sandbox, arrays, batch)

            measurements = over(sandbox, logits, "test", recipe.test_examples)
            if recipe.validation_examples:
                measurements["validation"] = over(sandbox, logits, "validation", recipe.validation_examples)["excess"]
            if self._measured:
                batch = examples(sandbox, TEST_SEED, "probe", 0, min(PIECE, recipe.test_examples))
                seen: dict[str, Array] = {}
                family.logits(self.net, sandbox, arrays, batch, seen.__setitem__)
                measurements |= {name: probe(self.net, arrays, batch, seen) for name, probe in self._measured.items()}
            return measurements

        return self._each(one)(values, lane)

    @cached_property
    def identities(self) -> list[JsonObject]:
        """The identity of each member's run, as JSON data.

        `first` and `probes` are code: where they are given, `code` is a digest of the programs that they are part of.
        """
        programs = [self._lowered_begin] if self.first else []
        programs += [self._lowered_measure] if self.probes else []
        code = {"code": digest("".join(lowered.as_text() for lowered in programs))} if programs else {}
        return [identity | code for identity in self.group.identities()]

    def only(self, numbers: Sequence[int]) -> TrainingProgram:
        """Return the program of some members."""
        if list(numbers) == list(range(len(self.group.members))):
            return self
        group = replace(self.group, members=tuple(self.group.members[number] for number in numbers))
        part = replace(self, group=group, width=0)
        part.__dict__["identities"] = [self.identities[number] for number in numbers]
        return part

    @cached_property
    def _lowered_begin(self) -> Lowered:
        return self._jit(self._begin).lower(self.lanes[0])

    @cached_property
    def _lowered_measure(self) -> Lowered:
        return self._jit(self._measure).lower(self.shapes, self.lanes[0])

    @cached_property
    def compiled(self) -> tuple[Compiled, Compiled, Compiled, float]:
        """The start, the step loop and the measurement of a lane, and the seconds that compiling them took.

        They are those of an earlier group where nothing differs but the members: further seeds, what was interrupted.
        """
        began = time.perf_counter()
        own_code = bool(self.probes or self.first)  # functions may read what changes from one call to the next
        functions = self._compile() if own_code else _compiled_once(_Likeness(self._likeness(), self))
        return *functions, time.perf_counter() - began

    def _compile(self) -> tuple[Compiled, Compiled, Compiled]:
        zero = jnp.int32(0)
        advance = self._jit(self._advance, donate_argnums=0).lower(self.shapes, self.lanes[0], zero, zero).compile()
        return self._lowered_begin.compile(), advance, self._lowered_measure.compile()

    def _likeness(self) -> tuple[Hashable, ...]:
        """Return all that the compiled functions depend on, but for probes and initial weights."""
        group, config = self.group, cast(Any, jax.config)
        lane = tuple((name, array.shape, array.dtype, self._axes[name]) for name, array in self.lanes[0].items())
        settings = (config.jax_enable_x64, config.jax_default_device)
        return group.sandbox, group.family, group.recipe, lane, self.width, self.devices, *settings

    @property
    def compile_seconds(self) -> float:
        """The seconds that compiling took; 0 if nothing has been compiled yet."""
        return self.compiled[3] if "compiled" in self.__dict__ else 0.0

    @cached_property
    def shapes(self) -> Member:
        """The shapes and types of the arrays of a lane."""
        shapes: Member = jax.eval_shape(self._begin, self.lanes[0])
        return shapes

    def _on_all(self, act: Callable[[int], T]) -> list[T]:
        """The results of every lane, from threads where there are several."""
        alone = self.devices > 1 or jax.default_backend() != "cpu"
        threads = 1 if alone else min(len(self.lanes), self.threads or os.cpu_count() or 1)
        if threads == 1:
            return [act(at) for at in range(len(self.lanes))]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(act, range(len(self.lanes))))

    def begin(self) -> list[Member]:
        """Every lane before the first step."""
        return self._on_all(lambda at: self.compiled[0](self.lanes[at]))

    def advance(self, lanes: list[Member], start: int, steps: int) -> list[Member]:
        """Every lane so many steps further; those that were given are used up, but for lanes that have ended."""
        go, first, count = self.compiled[1], jnp.int32(start), jnp.int32(steps)

        def act(at: int) -> Member:
            stepped: Member = go(lanes[at], self.lanes[at], first, count) if np.any(lanes[at].alive) else lanes[at]
            stepped.alive.block_until_ready()
            return stepped

        return self._on_all(act)

    def measure(self, lanes: list[Member]) -> dict[str, Array]:
        """Return the measurements of all members, by name."""
        per_lane = self._on_all(lambda at: jax.tree.map(np.asarray, self.compiled[2](lanes[at], self.lanes[at])))
        return self.joined(per_lane)

    def joined(self, lanes: list[T]) -> T:
        """Something of every lane as arrays with all members along the first axis."""
        count = len(self.group.members)
        join = np.stack if self.width == 1 else np.concatenate
        joined: T = jax.tree.map(lambda *parts: join([np.asarray(part) for part in parts])[:count], *lanes)
        return joined

    def apart(self, tree: T) -> list[T]:
        """The other way round: arrays with all members along the first axis, as lanes."""
        count, width = len(self.group.members), self.width
        fill = -count % width

        def lane(array: Array, at: int) -> Array:
            array = np.concatenate([array, np.repeat(array[-1:], fill, axis=0)]) if fill else array
            return jnp.asarray(array[at * width : (at + 1) * width] if width > 1 else array[at])

        return [jax.tree.map(lambda array, at=at: lane(array, at), tree) for at in range(len(self.lanes))]


@dataclass(frozen=True)
class _Likeness:
    """A program that is equal to those with the same compiled functions."""

    of: tuple[Hashable, ...]
    program: TrainingProgram = field(compare=False)


@lru_cache(maxsize=COMPILED)
def _compiled_once(like: _Likeness) -> tuple[Compiled, Compiled, Compiled]:
    return like.program._compile()


def _drawn(what: int, seed: Array, step: Array) -> Array:
    """The key of something that is drawn anew at every step."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(what, impl="threefry2x32"), seed), step)
