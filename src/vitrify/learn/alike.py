r"""How alike two nets of one architecture work: where heads look, when units fire and which expert is chosen.

`distance` takes the basis of the residual stream as it is. A net that was trained from random weights has no reason to
use the same one; but whatever the basis, a head that does what another does looks at the same places, and a unit that
does what another does fires on the same inputs. On the same rows, with heads, units and experts of a layer matched by
linear assignment:

| part | how far one is from the other |
| --- | --- |
| a head | the total variation distance of where it looks, averaged over positions |
| a unit, a channel | $1 - \rho$, $\rho \ge 0$ the correlation of activations; 1 where one never changes |
| a router | the share of positions whose expert is not the one that is matched with the reference's |

Every part is in [0, 1]; a layer has the mean over what the reference has there, and the nets the mean over layers.
Positions behind the last question of a row do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from vitrify.arrays import Array
from vitrify.learn.distance import each
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import Probe
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Row, Sandbox

STILL = 1e-6  # what changes less than this part of the largest activation does not change


Part = Literal["heads", "units", "experts"]
HOOKS: dict[Part, str] = {"heads": "attn.hook_pattern", "units": "hook_post", "experts": "moe.hook_expert"}


def probe(reference: Weights[Any], family: Family, sandbox: Sandbox, only: Part | None = None) -> Probe:
    """A probe that measures how differently a member works from the reference, or its heads, units or experts alone.

    It is between 0 and 1, and 0 where the reference has no such part.
    """

    def measured(net: Any, arrays: Mapping[str, Array], row: Row, seen: Mapping[str, Array]) -> Array:
        del arrays
        given = {name: jnp.asarray(dense(array), jnp.float32) for name, array in reference.arrays.items()}
        theirs: dict[str, Array] = {}
        family.logits(net, sandbox, given, row, theirs.__setitem__)
        costs = _costs(net, seen, {n: x for n, x in theirs.items() if only is None or n.endswith(HOOKS[only])}, row)
        ranks = jax.tree.map(jnp.ndim, costs)
        return jax.pure_callback(
            lambda batch: each(_matched, batch, ranks), np.float32(0.0), costs, vmap_method="broadcast_all"
        )

    return measured


def _costs(net: Any, ours: Mapping[str, Array], theirs: Mapping[str, Array], row: Row) -> list[tuple[Array, Array]]:
    """For each part how far each of ours is from each of theirs [theirs, ours], and how much each counts."""
    counted = _counted(net, row)
    found = []
    for name, there in theirs.items():
        here = ours[name]
        if name.endswith(HOOKS["heads"]):
            each = jnp.abs(there[:, :, None] - here[:, None]).sum(axis=-1) / 2  # [batch, theirs, ours, query]
            cost = (each * counted[:, None, None]).sum(axis=(0, 3)) / counted.sum()
            found.append((cost, jnp.ones(cost.shape[0])))
        elif name.endswith(HOOKS["experts"]):
            one, two = (jax.nn.one_hot(x[..., 0], _experts(net, name)) * counted[..., None] for x in (there, here))
            met = jnp.einsum("btx,bty->xy", one, two) / counted.sum()
            share = met.sum(axis=1)
            found.append((1 - met / jnp.maximum(share, 1e-9)[:, None], share))
        elif name.endswith(HOOKS["units"]):
            one, two = (_samples(x, counted) for x in (there, here))
            found.append((1 - jnp.maximum(one.T @ two, 0.0), (one != 0).any(axis=0).astype(jnp.float32)))
    return found


def _counted(net: Any, row: Row) -> Array:
    """Which positions [batch, position] stand before the last question of their row, or at it."""
    asked = jnp.cumsum(row.weight[:, ::-1], axis=1)[:, ::-1] > 0
    pads = getattr(net, "pads", 0)
    return (jnp.pad(asked, ((0, 0), (pads - 1, 0))) if pads else asked[:, 1:]).astype(jnp.float32)


def _samples(fired: Array, counted: Array) -> Array:
    """Activations as columns of mean 0 and length 1, one for each unit; zeros for what does not change."""
    if fired.ndim == 4:  # maps of a convolution: [batch, channel, row, column]
        columns = jnp.moveaxis(fired, 1, -1).reshape(-1, fired.shape[1])
        share = jnp.ones((len(columns), 1))
    else:
        columns = fired.reshape(-1, fired.shape[-1])
        share = counted.reshape(-1, 1) if fired.ndim == 3 else jnp.ones((len(columns), 1))
    centred = share * (columns - (share * columns).sum(axis=0) / share.sum())
    size = jnp.sqrt((centred**2).sum(axis=0))
    return jnp.where(size > STILL * jnp.abs(columns).max(), centred / jnp.where(size > 0, size, 1.0), 0.0)


def _experts(net: Any, name: str) -> int:
    block = int(name.split(".")[1])
    return len(net.turns[block][1].experts)


def _matched(costs: Any) -> float:
    """The mean over parts of the matched distances."""
    means = []
    for cost, share in costs:
        if share.sum() > 0:
            theirs, ours = linear_sum_assignment(cost * share[:, None])
            means.append(float((cost[theirs, ours] * share[theirs]).sum() / share.sum()))
    return float(np.mean(means)) if means else 0.0
