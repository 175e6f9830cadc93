r"""Who does what in a mixture of experts: how far tasks and experts are the same partition of the queries.

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

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.learn.elsewhere import all_right
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import Probe
from vitrify.sandboxes.catalogue import Row, Sandbox


def information(counts: Any) -> Any:
    """How much of the task is known from the expert: 0 for nothing, 1 for all of it; 0 where there is one task only."""
    shared, task, _ = _entropies(counts)
    return np.where(task > 0, shared / np.where(task > 0, task, 1.0), 0.0)


def agreement(counts: Any) -> Any:
    """The same, with what is known of the expert from the task: 1 iff tasks and experts are the same partition."""
    shared, task, expert = _entropies(counts)
    both = task + expert
    return np.where(both > 0, 2 * shared / np.where(both > 0, both, 1.0), 1.0)


def purity(counts: Any) -> Any:
    """The part of all work that is done on the main task of whoever does it."""
    return _shares(counts).max(axis=-2).sum(axis=-1)


def load(counts: Any, experts: int | None = None) -> Any:
    """How many times its fair share the busiest of the experts does."""
    shares = _shares(counts).sum(axis=-2)
    return shares.max(axis=-1) * (experts or shares.shape[-1])


def _shares(counts: Any) -> Any:
    table = np.asarray(counts, dtype=float)
    return table / table.sum(axis=(-2, -1), keepdims=True)


def _entropies(counts: Any) -> tuple[Any, Any, Any]:
    """The mutual information of task and expert, and the entropy of each, in nats."""
    joint = _shares(counts)
    task, expert, both = (
        _entropy(p) for p in (joint.sum(axis=-1), joint.sum(axis=-2), joint.reshape(*joint.shape[:-2], -1))
    )
    return np.maximum(task + expert - both, 0.0), task, expert


def _entropy(p: Any) -> Any:
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)


def survey(family: Family, sandbox: Sandbox, queries: Row, layer: int = 0) -> Probe:
    """A probe: for each of some rows who works where it is answered, and whether it is answered rightly.

    [row, 2 expert + 1]: for every expert 1 where it works, else 0; then 1 for a right answer, else 0; and the same of
    answers without each of the experts, whose output is then missing.
    """
    names = ("W_out", "b_out")

    def measured(net: Any, arrays: Mapping[str, Array], row: Row, seen: Mapping[str, Array]) -> Array:
        del row, seen
        experts = len(net.blocks[layer].experts)
        heard: dict[str, Array] = {}
        right = _answered(family, net, sandbox, arrays, queries, heard.__setitem__)
        part = f"blocks.{layer}.moe."
        if net.blocks[layer].gate:
            working = heard[f"{part}hook_gates"] > 0
        else:
            working = jax.nn.one_hot(heard[f"{part}hook_expert"][..., 0], experts)
        skip = max(net.pads - 1, 0)
        working = jnp.einsum("bte,bt->be", working[:, skip:], _asked(queries, working.shape[1] - skip))

        def without(kept: Array) -> Array:
            changed = {f"{part}experts.{e}.{name}": kept[e] for e in range(experts) for name in names}
            given = {name: array * changed[name] if name in changed else array for name, array in arrays.items()}
            return _answered(family, net, sandbox, given, queries)

        removed = jax.vmap(without, out_axes=1)(1 - jnp.eye(experts))
        return jnp.concatenate([working, right[:, None], removed], axis=1)

    return measured


def _asked(row: Row, questions: int) -> Array:
    """Which of the last questions of each row is asked [row, question]: one of them."""
    return (row.weight[:, row.weight.shape[1] - questions :] > 0).astype(jnp.float32)


def _answered(
    family: Family,
    net: Any,
    sandbox: Sandbox,
    arrays: Mapping[str, Array],
    row: Row,
    record: Callable[[str, Any], None] | None = None,
) -> Array:
    """Which rows get the right answer to what they ask [row]."""
    return all_right(family.logits(net, sandbox, arrays, row, record), row)
