"""Estimates of the cost of training: members, programs, parameters, operations, memory."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from vitrify.errors import InputError
from vitrify.learn.models.catalogue import Family
from vitrify.learn.plan import MemberGroup
from vitrify.learn.program import TrainingProgram
from vitrify.sandboxes.catalogue import Sandbox

STATE = 16  # bytes for each parameter: weight, gradient, two moments
STEP_SHARE = 1.25  # of the bytes that a backward pass goes back to: what a step takes at its peak, measured 1.11
FILLED = 0.95  # of the memory that JAX has on a GPU


def parameters(family: Family, sandbox: Sandbox) -> int:
    """Return the number of trained parameters of a network of a family on a sandbox."""
    net = family.architecture(sandbox)
    first = jax.eval_shape(lambda: family.first(net, jax.random.key(0)))
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(first))


def operations(group: MemberGroup, size: int | None = None) -> float:
    """Of each member of a group: two for each weight and token forwards, and twice that backwards."""
    weights = parameters(group.family, group.sandbox) if size is None else size
    return 6.0 * weights * group.recipe.steps * group.recipe.batch * (group.sandbox.tokens + 1)


def memory(group: MemberGroup, at_once: int) -> int:
    """Bytes that a group takes when so many of its members step at once: all their states, and the steps."""
    states = len(group.members) * STATE * parameters(group.family, group.sandbox)
    return states + at_once * TrainingProgram(group, width=1).step_bytes()


def lane_width(group: MemberGroup) -> int:
    """Return how many members of a group step side by side: one on a CPU, all that there is room for on a GPU.

    Lanes are of equal width. A member that is too large for the GPU is refused.
    """
    count, stats = len(group.members), jax.devices()[0].memory_stats()
    if jax.default_backend() == "cpu":
        return 1
    if not stats or "bytes_limit" not in stats:
        return count
    states, step = memory(group, 0), int(STEP_SHARE * memory(group, 1)) - memory(group, 0)
    room = int(FILLED * stats["bytes_limit"]) - states
    if room < step:
        raise InputError(
            f"{count} members need {states / 2**30:,.1f} GiB for their weights and moments, and a step of one takes "
            f"{step / 2**30:,.1f} GiB: the device has {stats['bytes_limit'] / 2**30:,.1f}; take fewer members, or a "
            "smaller batch or model"
        )
    return -(-count // -(-count // (room // step)))


def estimate(groups: Sequence[MemberGroup], device: str | None = None) -> str:
    """One sentence for people; without the name of a device, for the one that JAX would take here."""
    members = sum(len(group.members) for group in groups)
    sizes = [parameters(group.family, group.sandbox) for group in groups]
    sized = list(zip(sizes, groups, strict=True))
    total = sum(operations(group, size) * len(group.members) for size, group in sized)
    held = max((STATE * size * len(group.members) for size, group in sized), default=0)
    spread = f"{min(sizes):,}" if len(set(sizes)) == 1 else f"{min(sizes):,} to {max(sizes):,}"
    steps = sorted({group.recipe.steps for group in groups})
    device = device or jax.devices()[0].device_kind
    return (
        f"{members} members in {len(groups)} program{'s' * (len(groups) != 1)} on {device}: "
        f"{spread} parameters each, {'/'.join(f'{step:,}' for step in steps)} steps, "
        f"about {total:.1e} operations, {held / 2**20:,.1f} MiB of weights and moments"
    )
