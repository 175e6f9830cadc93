"""The cost of training: members, programs, parameters, operations, memory, and how fast a device could be at most."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.errors import InputError
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.plan import MemberGroup
from vitrify.learn.program import TrainingProgram
from vitrify.sandboxes.catalogue import Sandbox

STATE = 16  # bytes for each parameter: weight, gradient, two moments
AVERAGE = 4  # further bytes where the weights are averaged
STEP_SHARE = 1.25  # peak memory of a step over what is saved for its backward pass: measured 1.11, and some to spare
FILLED = 0.95  # of the memory that JAX has on a GPU
PRODUCT_SIZE = {"cpu": 1024, "gpu": 8192}  # of the square matrices whose product measures operations per second
COPIED_BYTES = {"cpu": 1 << 26, "gpu": 1 << 32}  # of the array whose copy measures bytes per second


class Ceilings(NamedTuple):
    """The operations per second of a large matrix product on a device, and the bytes per second of a copy."""

    operations: float
    bytes: float


class Work(NamedTuple):
    """The operations of a member-step, and the bytes that it reads and writes in device memory."""

    operations: float
    bytes: float

    def limit(self, ceilings: Ceilings) -> float:
        """Return the member-steps per second if the larger of two times were all: of operations, and of bytes."""
        return 1 / max(self.operations / ceilings.operations, self.bytes / ceilings.bytes)


def parameters(family: Family, sandbox: Sandbox) -> int:
    """Return the number of trained parameters of a network of a family on a sandbox."""
    net = family.architecture(sandbox)
    first = jax.eval_shape(lambda: family.first(net, jax.random.key(0)))
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(first))


def operations(group: MemberGroup, size: int | None = None) -> float:
    """Return the operations of a member: two forwards and four backwards for each weight and position, with BOS."""
    weights = parameters(group.family, group.sandbox) if size is None else size
    return 6.0 * weights * group.recipe.steps * group.recipe.batch * (group.sandbox.tokens + 1)


def memory(group: MemberGroup, at_once: int) -> int:
    """Return the bytes of all states and of what `at_once` backward passes need; `STEP_SHARE` leads to the peak."""
    states = len(group.members) * _state(group) * parameters(group.family, group.sandbox)
    return states + at_once * TrainingProgram(group, width=1).step_bytes()


def _state(group: MemberGroup) -> int:
    """Return the bytes of a member's state for each of its parameters."""
    return STATE + AVERAGE * group.recipe.average


def device_bytes() -> int | None:
    """Return the memory that JAX has on a GPU; None on a CPU."""
    if jax.default_backend() == "cpu":
        return None
    return int((jax.devices()[0].memory_stats() or {}).get("bytes_limit", sys.maxsize))


def lane_width(group: MemberGroup, room: int | None) -> int:
    """Return how many members of a group step side by side: as many as there is room for, in lanes of equal width.

    Without a figure for the room, on a CPU, it is one. A member that is too large is refused.
    """
    if room is None:
        return 1
    count, states = len(group.members), memory(group, 0)
    step = int(STEP_SHARE * (memory(group, 1) - states))
    most = (int(FILLED * room) - states) // step
    if most < 1:
        raise InputError(
            f"{count} members need {states / 2**30:,.2f} GiB for their weights and moments, and a step of one takes "
            f"{step / 2**30:,.2f} GiB: the device has {room / 2**30:,.2f}; take fewer members, a smaller batch or model"
        )
    return -(-count // -(-count // most))


def estimate(groups: Sequence[MemberGroup], device: str | None = None) -> str:
    """One sentence for people; without the name of a device, for the one that JAX would take here."""
    members = sum(len(group.members) for group in groups)
    sizes = [parameters(group.family, group.sandbox) for group in groups]
    sized = list(zip(sizes, groups, strict=True))
    total = sum(operations(group, size) * len(group.members) for size, group in sized)
    held = max((_state(group) * size * len(group.members) for size, group in sized), default=0)
    spread = f"{min(sizes):,}" if len(set(sizes)) == 1 else f"{min(sizes):,} to {max(sizes):,}"
    steps = sorted({group.recipe.steps for group in groups})
    device = device or jax.devices()[0].device_kind
    return (
        f"{members} members in {len(groups)} program{'s' * (len(groups) != 1)} on {device}: "
        f"{spread} parameters each, {'/'.join(f'{step:,}' for step in steps)} steps, "
        f"about {total:.1e} operations, {held / 2**20:,.1f} MiB of weights and moments"
    )


def work(program: TrainingProgram) -> Work:
    """Return the work of a member-step: of a transformer by hand, of other families by the compiler's count.

    By hand: 6 operations per weight and token, and 6 T d per token and layer for causal attention; every array that a
    kernel reads or writes, once.
    """
    group, family = program.group, program.group.family
    if not isinstance(family, TransformerFamily):
        cost = program.compiled[1].cost_analysis() or {}
        counted = (cost.get(name, 0.0) / program.width for name in ("flops", "bytes accessed"))
        return Work(*counted)
    length, d, units = group.sandbox.tokens + 1, family.d_model, family.units or 4 * family.d_model
    tokens, item = group.recipe.batch * length, np.dtype(jnp.dtype(group.recipe.precision)).itemsize
    weights = family.layers * (4 * d * d + 2 * d * units) + d * len(group.sandbox.answers)
    hidden = 0 if units <= 256 and d <= 64 else 13 * units / d  # activations, where they go through memory
    per_layer, ends = 55 + hidden, 15  # arrays [token, d] that go through memory
    done = tokens * (6 * weights + 6 * length * d * family.layers)
    return Work(done, tokens * d * item * (per_layer * family.layers + ends))


@cache
def ceilings(precision: str) -> Ceilings:
    """Return the ceilings of the device that JAX takes here, measured once: well under a second, after compiling."""
    kind = "cpu" if jax.default_backend() == "cpu" else "gpu"
    size, copied = PRODUCT_SIZE[kind], COPIED_BYTES[kind]
    matrix = jax.random.normal(jax.random.key(0), (size, size), precision)
    array = jnp.ones(copied // 4, jnp.float32)
    product, copy = jax.jit(lambda x: x @ x), jax.jit(lambda x: x + 1)
    return Ceilings(2 * size**3 / _seconds(lambda: product(matrix)), 2 * copied / _seconds(lambda: copy(array)))


def _seconds(act: Callable[[], Any], repeats: int = 10) -> float:
    """Return the seconds of a call, after one that compiles."""
    cast(Any, jax).block_until_ready(act())
    began = time.perf_counter()
    for _ in range(repeats):
        last = act()
    cast(Any, jax).block_until_ready(last)
    return (time.perf_counter() - began) / repeats
