"""Three associative memories of an induction head: what each recalls, when it is learned, and rival orders.

    recall, among_equal       probes: recall among all items of a memory, and among as many as there are triggers
    by_memory, learned        the steps at which the memories are learned
    exchanged, …              null hypotheses about the order, as measurements

The memories are those of `MEMORIES`, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.learn.models.frozen_memories import recalled
from vitrify.learn.stages import stays_above
from vitrify.sandboxes.catalogue import Example

MEMORIES = "outputs", "matches", "positions"
LEARNED = 0.9  # the recall among equally many items, and the share of right predictions, at which each is learned
SUBSETS = 200  # of as many outputs, or positions, as there are triggers


def recall(triggers: Array, net: object, arrays: Mapping[str, Array], row: Example, seen: object) -> Array:
    """Return the recall of each memory among all its items: outputs of tokens, triggers, positions."""
    del net, row, seen
    return jnp.stack([recalled(arrays, jnp.asarray(triggers))[name] for name in MEMORIES])


def among_equal(triggers: Array, net: object, arrays: Mapping[str, Array], row: Example, seen: object) -> Array:
    """Return the recall of each memory among as many items as there are triggers: the mean over random subsets."""
    del net, row, seen
    rng, count, positions = np.random.default_rng(0), int(np.sum(triggers)), len(arrays["pos_embed.W_pos"])
    outputs = np.stack([rng.permutation(len(triggers))[:count] for _ in range(SUBSETS)])
    windows = rng.integers(positions - count, size=SUBSETS)[:, None] + np.arange(count + 1)  # each with the one before

    def among(tokens: Array, window: Array, memory: str) -> Array:
        few = {
            "embed.W_E": arrays["embed.W_E"][jnp.concatenate([jnp.zeros(1, int), 1 + tokens])],
            "unembed.W_U": arrays["unembed.W_U"][:, tokens],
            "pos_embed.W_pos": arrays["pos_embed.W_pos"][window],
        }
        return recalled({**arrays, **few}, jnp.ones(count, bool))[memory]

    def mean(memory: str) -> Array:
        return jax.vmap(partial(among, memory=memory))(jnp.asarray(outputs), jnp.asarray(windows)).mean()

    matches = among(jnp.asarray(np.flatnonzero(triggers)), jnp.asarray(windows[0]), "matches")
    return jnp.stack([mean("outputs"), matches, mean("positions")])


def learned(steps: Sequence[float], curves: Array, level: float = LEARNED) -> Array:
    """Return the step from which on each curve stays at a level or above it; NaN if never."""
    return np.array([stays_above(steps, each, level) for each in curves])


def by_memory(recall: Array, steps: Sequence[float]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the recall curves [unit, step] and the steps at which they are learned [unit], by memory."""
    curves = dict(zip(MEMORIES, np.moveaxis(recall, -1, 0), strict=True))
    return curves, {name: learned(steps, own) for name, own in curves.items()}


def exchanged(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which outputs and matches have exchanged their curves in a random half of the draws."""
    del subject
    equal = measured["memories/equal"].copy()
    swapped = rng.random(len(equal)) < 1 / 2
    equal[swapped, :, :2] = equal[swapped, :, 1::-1]
    return {**measured, "memories/equal": equal}


def _later(subject: Subject, recall: Array, rng: np.random.Generator) -> Array:
    """Return for each draw the curve of the later of outputs and matches in another one."""
    both, when = by_memory(recall, subject.trials["memories"].recipe.eval_steps())
    last = np.where((when["matches"] > when["outputs"])[:, None], both["matches"], both["outputs"])
    return last[others(len(last), rng)]


def others(count: int, rng: np.random.Generator) -> Array:
    """Return for each unit another one."""
    return (np.arange(count) + rng.integers(1, count, size=count)) % count


def positions_too(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which positions are learned together with the later of outputs and matches."""
    equal = measured["memories/equal"].copy()
    equal[..., 2] = _later(subject, equal, rng)
    return {**measured, "memories/equal": equal}


def predictions_too(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which predictions become right together with the later of outputs and matches."""
    return {**measured, "memories/accuracy": _later(subject, measured["memories/recall"], rng)}


def heads_too(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the previous-token head rises as the match head of another seed does."""
    del subject
    back, match = measured["transformer/back"].copy(), measured["transformer/match"]
    back[..., 0] = match[others(len(match), rng), :, 1]
    return {**measured, "transformer/back": back}


NULLS = {"outputs": exchanged, "positions": positions_too, "predictions": predictions_too, "heads": heads_too}
