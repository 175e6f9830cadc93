"""What training will cost, before it begins: members, programs, parameters, operations, memory for the weights."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from vitrify.learn.plan import Group


def estimate(groups: Sequence[Group]) -> str:
    """One sentence for people; operations count two for each weight and token forwards, and twice that backwards."""
    members = sum(len(group.members) for group in groups)
    sizes, operations, held = set(), 0.0, 0
    for group in groups:
        net = group.family.architecture(group.sandbox)
        first = jax.eval_shape(lambda group=group, net=net: group.family.first(net, jax.random.key(0)))
        size = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(first))
        sizes.add(size)
        rows = group.recipe.steps * group.recipe.batch
        operations += 6.0 * size * rows * (group.sandbox.tokens + 1) * len(group.members)
        held = max(held, 16 * size * len(group.members))  # weights, gradients, two moments
    spread = f"{min(sizes):,}" if len(sizes) == 1 else f"{min(sizes):,} to {max(sizes):,}"
    steps = sorted({group.recipe.steps for group in groups})
    return (
        f"{members} members in {len(groups)} program{'s' * (len(groups) != 1)} on {jax.devices()[0].device_kind}: "
        f"{spread} parameters each, {'/'.join(f'{step:,}' for step in steps)} steps, "
        f"about {operations:.1e} operations, {held / 2**20:,.1f} MiB of weights and moments"
    )
