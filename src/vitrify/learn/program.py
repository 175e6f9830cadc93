"""One compiled program for all members of a group: `vmap` over members, a loop over steps, data drawn in the step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vitrify.arrays import Array
from vitrify.learn.measure import mean_loss, means, sums
from vitrify.learn.models.catalogue import Parameters
from vitrify.learn.plan import SEEDS, Group
from vitrify.sandboxes.catalogue import Row, numbered, rows

Probe = Callable[[Any, Mapping[str, Array], Row, Mapping[str, Array]], Array]  # net, arrays, rows, activations
TEST_SEED = 0  # every member is measured on the same rows
PIECE = 64  # rows that are measured at once


class State(NamedTuple):
    """All that a step changes, with members along the first axis of every array but `step`."""

    parameters: Any
    optimiser: Any
    step: Array
    alive: Array  # [member]: neither stopped nor broken
    broken: Array  # [member]: the step whose loss was not a number, or -1
    loss: Array  # [member]: the sum of the training losses since the last measurement


@dataclass(frozen=True, eq=False)
class Program:
    """The compiled functions of a group; `first`, if given, are the parameters that members start from."""

    group: Group
    probes: Mapping[str, Probe] = field(default_factory=dict)
    first: Callable[[Any, Array, Mapping[str, Array]], Parameters] | None = None

    @cached_property
    def net(self) -> Any:
        """The architecture that all members share."""
        return self.group.family.architecture(self.group.sandbox)

    @cached_property
    def values(self) -> dict[str, Array]:
        """The values in which members may differ: an array [member] where they do, one number where they do not."""
        found: dict[str, Array] = {}
        for name in self.group.members[0]:
            column = np.array([member[name] for member in self.group.members])
            column = column.astype(np.uint32 if name in SEEDS else np.float32)
            found[name] = column if name == "seed" or len(set(column.tolist())) > 1 else column[0]
        return found

    @cached_property
    def _axes(self) -> dict[str, int | None]:
        return {name: 0 if np.ndim(value) else None for name, value in self.values.items()}

    def _parts(self, member: Mapping[str, Array]) -> tuple[Any, Any, Any]:
        """Sandbox, family and recipe with a member's values."""
        group = self.group
        return tuple(
            replace(part, **{name: member[name] for name in part.TRACED})  # type: ignore[type-var]
            for part in (group.sandbox, group.family, group.recipe)
        )

    def begin(self) -> State:
        """The state before the first step."""
        return jax.jit(self._begin)(self.values)

    def _begin(self, values: Mapping[str, Array]) -> State:
        def one(member: Mapping[str, Array]) -> tuple[Any, Any]:
            _, family, recipe = self._parts(member)
            key = jax.random.key(member["seed"], impl="threefry2x32")
            parameters = self.first(self.net, key, member) if self.first else family.first(self.net, key)
            return parameters, recipe.transformation().init(parameters)

        count = len(self.group.members)
        parameters, optimiser = jax.vmap(one, in_axes=(self._axes,))(dict(values))
        none = jnp.full(count, -1, dtype=jnp.int32)
        return State(parameters, optimiser, jnp.int32(0), jnp.ones(count, dtype=bool), none, jnp.zeros(count))

    def loss(self, member: Mapping[str, Array], parameters: Any, row: Row) -> Array:
        """The training loss of one member on a batch."""
        _, family, recipe = self._parts(member)
        if recipe.precision != "float32":
            parameters = jax.tree.map(lambda x: x.astype(recipe.precision), parameters)
        seen: dict[str, Array] = {}
        record = seen.__setitem__ if family.watched else None
        logits = family.logits(self.net, family.arrays(self.net, parameters), row, record)
        loss = mean_loss(logits, row)
        return loss + family.penalty(seen) if family.watched else loss

    def _step(self, member: Mapping[str, Array], parameters: Any, optimiser: Any, step: Array) -> tuple[Any, ...]:
        """One step of one member: its rows, its gradient, its update."""
        sandbox, _, recipe = self._parts(member)
        row = self._rows(sandbox, member, step)
        loss, gradient = jax.value_and_grad(lambda p: self.loss(member, p, row))(parameters)
        update, optimiser = recipe.transformation().update(gradient, optimiser, parameters)
        return optax.apply_updates(parameters, update), optimiser, loss

    def _rows(self, sandbox: Any, member: Mapping[str, Array], step: Array) -> Row:
        recipe = self.group.recipe
        seed, start = member["data_seed"], step.astype(jnp.uint32) * recipe.batch
        if recipe.train_rows is None:
            return rows(sandbox, seed, "train", start, recipe.batch)
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(1, impl="threefry2x32"), seed), step)
        return numbered(sandbox, seed, "train", jax.random.randint(key, (recipe.batch,), 0, recipe.train_rows))

    def _advance(self, state: State, values: Mapping[str, Array], steps: Array) -> State:
        each = jax.vmap(self._step, in_axes=(self._axes, 0, 0, None))

        def body(_: Array, state: State) -> State:
            parameters, optimiser, loss = each(dict(values), state.parameters, state.optimiser, state.step)
            whole = jnp.isfinite(loss)
            broken = jnp.where(state.alive & ~whole, state.step, state.broken)
            alive = state.alive & whole

            def kept(new: Array, old: Array) -> Array:
                return jnp.where(alive.reshape(-1, *[1] * (new.ndim - 1)), new, old)

            return State(
                jax.tree.map(kept, parameters, state.parameters),
                jax.tree.map(kept, optimiser, state.optimiser),
                state.step + 1,
                alive,
                broken,
                state.loss + jnp.where(alive, loss, 0.0),
            )

        return jax.lax.fori_loop(0, steps, body, state)

    def _measure(self, state: State, values: Mapping[str, Array]) -> dict[str, Array]:
        def one(member: Mapping[str, Array], parameters: Any) -> dict[str, Array]:
            sandbox, family, recipe = self._parts(member)
            arrays = family.arrays(self.net, parameters)

            def piece(start: Array) -> dict[str, Array]:
                row = rows(sandbox, TEST_SEED, "test", start, min(PIECE, recipe.test_rows))
                return sums(sandbox, family.logits(self.net, arrays, row), row)

            starts = jnp.arange(0, recipe.test_rows, PIECE, dtype=jnp.uint32)
            found = means(jax.tree.map(lambda x: x.sum(axis=0), jax.lax.map(piece, starts)))
            if self.probes:
                row, seen = rows(sandbox, TEST_SEED, "probe", 0, min(PIECE, recipe.test_rows)), {}
                family.logits(self.net, arrays, row, seen.__setitem__)
                found |= {name: probe(self.net, arrays, row, seen) for name, probe in self.probes.items()}
            return found

        return jax.vmap(one, in_axes=(self._axes, 0))(dict(values), state.parameters)

    @cached_property
    def compiled(self) -> tuple[Any, Any, float]:
        """The step loop and the measurement, and the seconds that compiling them took."""
        began = time.perf_counter()
        shapes = jax.eval_shape(self._begin, self.values)
        advance = jax.jit(self._advance, donate_argnums=0).lower(shapes, self.values, jnp.int32(1)).compile()
        measure = jax.jit(self._measure).lower(shapes, self.values).compile()
        return advance, measure, time.perf_counter() - began

    def advance(self, state: State, steps: int) -> State:
        """So many steps further; the state that was given is used up."""
        found: State = self.compiled[0](state, self.values, jnp.int32(steps))
        return found

    def measure(self, state: State) -> dict[str, Any]:
        """What is measured of each member, by name."""
        return {name: np.asarray(value) for name, value in self.compiled[1](state, self.values).items()}
