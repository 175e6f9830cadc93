r"""Specialization in a mixture of experts: how far tasks and experts are the same partition of the queries.

`counts[t, e]` says how often expert $e$ works on a query of task $t$. From it, with $p$ the shares of all work:

| name | what |
| --- | --- |
| `information` | $I(\text{task}; \text{expert}) / H(\text{task})$: 1 iff the expert tells the task |
| `agreement` | $2I / (H(\text{task}) + H(\text{expert}))$: 1 iff, besides, each task has one expert only |
| `purity` | $\sum_e \max_t p_{te}$: the part of its work that an expert does on its main task |
| `load` | $E \max_e p_e$: how many times its fair share the busiest expert works, 1 at balance |

All take tables with any axes in front.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Float, Num
from vitrify.learn.evaluation import all_right
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import Probe
from vitrify.learn.runs import Net
from vitrify.sandboxes.catalogue import Example, Sandbox

Counts: TypeAlias = Num[Array, "*member task expert"]
PerMember: TypeAlias = Float[Array, "*member"]


def information(counts: Counts) -> PerMember:
    """Return the normalized mutual information of task and expert, from 0 to 1; 0 where there is one task only."""
    shared, task, _ = _entropies(counts)
    return np.where(task > 0, shared / np.where(task > 0, task, 1.0), 0.0)


def agreement(counts: Counts) -> PerMember:
    """The same, with what is known of the expert from the task: 1 iff tasks and experts are the same partition."""
    shared, task, expert = _entropies(counts)
    both = task + expert
    return np.where(both > 0, 2 * shared / np.where(both > 0, both, 1.0), 1.0)


def purity(counts: Counts) -> PerMember:
    """The part of all work that is done on the main task of whoever does it."""
    return _shares(counts).max(axis=-2).sum(axis=-1)


def load(counts: Counts, experts: int | None = None) -> PerMember:
    """Return the load of the busiest expert, relative to a uniform load."""
    shares = _shares(counts).sum(axis=-2)
    return shares.max(axis=-1) * (experts or shares.shape[-1])


def _shares(counts: Counts) -> Counts:
    table = np.asarray(counts, dtype=float)
    return table / table.sum(axis=(-2, -1), keepdims=True)


def _entropies(counts: Counts) -> tuple[PerMember, PerMember, PerMember]:
    """The mutual information of task and expert, and the entropy of each, in nats."""
    joint = _shares(counts)
    task, expert, both = (
        _entropy(p) for p in (joint.sum(axis=-1), joint.sum(axis=-2), joint.reshape(*joint.shape[:-2], -1))
    )
    return np.maximum(task + expert - both, 0.0), task, expert


def _entropy(p: Array) -> Array:
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)


def survey(family: Family, sandbox: Sandbox, queries: Example) -> Probe:
    """A probe of the first layer: who works where each of some sequences is answered, and whether rightly.

    [example, 2 expert + 1]: for every expert 1 where it works, else 0; then 1 for a right answer, else 0; and the same
    of answers without each of the experts, whose output is then missing.
    """
    names = ("W_out", "b_out")

    def measured(net: Net, arrays: Mapping[str, Array], batch: Example, seen: Mapping[str, Array]) -> Array:
        del batch, seen
        experts = len(net.blocks[0].experts)
        heard: dict[str, Array] = {}
        right = all_right(family.logits(net, sandbox, arrays, queries, heard.__setitem__), queries)
        part = "blocks.0.moe."
        if net.blocks[0].gate:
            working = heard[f"{part}hook_gates"] > 0
        else:
            working = jax.nn.one_hot(heard[f"{part}hook_expert"][..., 0], experts)
        skip = max(net.pads - 1, 0)
        asked = (queries.weight[:, skip - working.shape[1] :] > 0).astype(jnp.float32)
        working = jnp.einsum("bte,bt->be", working[:, skip:], asked)

        def without(mask: Array) -> Array:
            changed = {f"{part}experts.{e}.{name}": mask[e] for e in range(experts) for name in names}
            changed_arrays = {
                name: array * changed[name] if name in changed else array for name, array in arrays.items()
            }
            return all_right(family.logits(net, sandbox, changed_arrays, queries), queries)

        removed = jax.vmap(without, out_axes=1)(1 - jnp.eye(experts))
        return jnp.concatenate([working, right[:, None], removed], axis=1)

    return measured
