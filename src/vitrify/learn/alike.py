r"""Functional similarity of two nets of one architecture: attention patterns, unit activations, expert choices.

`distance` takes the basis of the residual stream as it is. A net that was trained from random weights has no reason to
use the same one; but whatever the basis, a head that does what another does looks at the same places, and a unit that
does what another does fires on the same inputs. On the same sequences, with heads, units and experts of a layer matched
by linear assignment:

| part | how far one is from the other |
| --- | --- |
| a head | the total variation distance of where it looks, averaged over positions |
| a unit, a channel | $1 - \rho$, $\rho \ge 0$ the correlation of activations; 1 where one never changes |
| a router | the share of positions whose expert is not the one that is matched with the reference's |

Every part is in [0, 1]; a layer has the mean over what the reference has there, and the nets the mean over layers.
Positions behind the last question of a sequence do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from vitrify.arrays import Array, Floats
from vitrify.learn.distance import each
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import Probe
from vitrify.learn.runs import Net
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Example, Sandbox

STILL = 1e-6  # what changes less than this part of the largest activation does not change


Part = Literal["heads", "units", "experts"]
HOOKS: dict[Part, str] = {"heads": "attn.hook_pattern", "units": "hook_post", "experts": "moe.hook_expert"}


def probe(reference: Weights[Net], family: Family, sandbox: Sandbox, only: Part | None = None) -> Probe:
    """A probe that measures how differently a member works from the reference, or its heads, units or experts alone.

    It is between 0 and 1, and 0 where the reference has no such part.
    """

    def measured(net: Net, arrays: Mapping[str, Array], batch: Example, seen: Mapping[str, Array]) -> Array:
        del arrays
        reference_arrays = {name: jnp.asarray(dense(array), jnp.float32) for name, array in reference.arrays.items()}
        theirs: dict[str, Array] = {}
        family.logits(net, sandbox, reference_arrays, batch, theirs.__setitem__)
        costs = _costs(net, seen, {n: x for n, x in theirs.items() if only is None or n.endswith(HOOKS[only])}, batch)
        ranks = jax.tree.map(jnp.ndim, costs)
        return jax.pure_callback(
            lambda batch: each(_matched, batch, ranks), np.float32(0.0), costs, vmap_method="broadcast_all"
        )

    return measured


def _costs(
    net: Net, ours: Mapping[str, Array], theirs: Mapping[str, Array], batch: Example
) -> list[tuple[Array, Array]]:
    """For each part how far each of ours is from each of theirs [theirs, ours], and how much each counts."""
    counted = _counted(net, batch)
    costs = []
    for name, there in theirs.items():
        here = ours[name]
        if name.endswith(HOOKS["heads"]):
            each = jnp.abs(there[:, :, None] - here[:, None]).sum(axis=-1) / 2  # [batch, theirs, ours, query]
            cost = (each * counted[:, None, None]).sum(axis=(0, 3)) / counted.sum()
            costs.append((cost, jnp.ones(cost.shape[0])))
        elif name.endswith(HOOKS["experts"]):
            one, two = (jax.nn.one_hot(x[..., 0], _experts(net, name)) * counted[..., None] for x in (there, here))
            met = jnp.einsum("btx,bty->xy", one, two) / counted.sum()
            share = met.sum(axis=1)
            costs.append((1 - met / jnp.maximum(share, 1e-9)[:, None], share))
        elif name.endswith(HOOKS["units"]):
            one, two = (_samples(x, counted) for x in (there, here))
            costs.append((1 - jnp.maximum(one.T @ two, 0.0), (one != 0).any(axis=0).astype(jnp.float32)))
    return costs


def _counted(net: Net, batch: Example) -> Array:
    """Return 1 for positions up to the last target with a weight, else 0: [batch, position]."""
    up_to_last_target = jnp.cumsum(batch.weight[:, ::-1], axis=1)[:, ::-1] > 0
    pads = getattr(net, "pads", 0)
    return (jnp.pad(up_to_last_target, ((0, 0), (pads - 1, 0))) if pads else up_to_last_target[:, 1:]).astype(
        jnp.float32
    )


def _samples(fired: Array, counted: Array) -> Array:
    """Activations as columns of mean 0 and length 1, one for each unit; zeros for what does not change."""
    if fired.ndim == 4:  # maps of a convolution: [batch, channel, row, column]
        columns = jnp.moveaxis(fired, 1, -1).reshape(-1, fired.shape[1])
        share = jnp.ones((len(columns), 1))
    else:
        columns = fired.reshape(-1, fired.shape[-1])
        share = counted.reshape(-1, 1) if fired.ndim == 3 else jnp.ones((len(columns), 1))
    centered = share * (columns - (share * columns).sum(axis=0) / share.sum())
    size = jnp.sqrt((centered**2).sum(axis=0))
    return jnp.where(size > STILL * jnp.abs(columns).max(), centered / jnp.where(size > 0, size, 1.0), 0.0)


def _experts(net: Net, name: str) -> int:
    block = int(name.split(".")[1])
    return len(net.turns[block][1].experts)


def _matched(costs: Sequence[tuple[Floats, Floats]]) -> float:
    """The mean over parts of the matched distances."""
    means = []
    for cost, share in costs:
        if share.sum() > 0:
            theirs, ours = linear_sum_assignment(cost * share[:, None])
            means.append(float((cost[theirs, ours] * share[theirs]).sum() / share.sum()))
    return float(np.mean(means)) if means else 0.0
