r"""What is measured of a member: its loss, and how far it is from the best predictor and from other known ones.

All are averages over the same test rows, weighted like the questions, so that differences are paired: sampling noise
that a member shares with the oracle cancels. `loss` is the cross-entropy in nats, `floor` that of the optimal predictor
on the same rows, `excess` their difference, `kl` the mean $\mathrm{KL}(\text{optimal} \| \text{member})$, and
`kl.NAME` the same to another predictor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.sandboxes.catalogue import Row, Sandbox

FEW = 256  # answers up to which a sum over all of them is quicker than picking one


def aligned(row: Row, logits: Array) -> Row:
    """The row with its last questions only, as many as the member answers."""
    skip = row.targets.shape[1] - logits.shape[1]
    if not skip:
        return row
    soft = None if row.soft is None else row.soft[:, skip:]
    return row._replace(targets=row.targets[:, skip:], weight=row.weight[:, skip:], soft=soft)


def log_probabilities(logits: Array) -> Array:
    """The logarithms of the probabilities that logits mean, in float32 or wider."""
    return jax.nn.log_softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)))


def losses(logp: Array, row: Row) -> Array:
    """The cross-entropy [batch, question] of log-probabilities [batch, question, answer]."""
    if row.soft is not None:
        return -(row.soft * jnp.where(row.soft > 0, logp, 0.0)).sum(axis=-1)
    if logp.shape[-1] <= FEW:
        return -(jax.nn.one_hot(row.targets, logp.shape[-1], dtype=logp.dtype) * jnp.maximum(logp, -1e9)).sum(axis=-1)
    return -jnp.take_along_axis(logp, row.targets[..., None], axis=-1)[..., 0]


def mean_loss(logits: Array, row: Row, squared: bool = False) -> Array:
    """The training loss: the mean over all questions of a batch, by weight."""
    row = aligned(row, logits)
    each = squares(logits, row) if squared else losses(log_probabilities(logits), row)
    return (each * row.weight).sum() / row.weight.sum()


def squares(logits: Array, row: Row) -> Array:
    """The squared distance [batch, question] between logits and the target, one-hot or a distribution."""
    logits = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    target = jax.nn.one_hot(row.targets, logits.shape[-1], dtype=logits.dtype) if row.soft is None else row.soft
    return ((logits - target) ** 2).sum(axis=-1)


def divergence(logp: Array, logq: Array) -> Array:
    r"""$\mathrm{KL}(p \| q)$ over the last axis; impossible answers of $p$ count nothing."""
    p = jnp.exp(logp)
    return jnp.where(p > 0, p * (logp - logq), 0.0).sum(axis=-1)


def sums(sandbox: Sandbox, logits: Array, row: Row) -> dict[str, Array]:
    """Weighted sums over a batch of rows; `weight` is what they are divided by in the end."""
    known = {"": sandbox.optimal, **sandbox.predictors()}
    row_answers = aligned(row, logits)
    skip = row.targets.shape[1] - row_answers.targets.shape[1]
    logp = log_probabilities(logits)
    weight = row_answers.weight
    each: dict[str, Array] = {
        "loss": losses(logp, row_answers),
        "accuracy": (logits.argmax(axis=-1) == row_answers.targets).astype(jnp.float32),
    }
    for name, predictor in known.items():
        theirs = jax.vmap(predictor)(row)[:, skip:]
        each[f"floor.{name}" if name else "floor"] = losses(theirs, row_answers)
        each[f"kl.{name}" if name else "kl"] = divergence(theirs, logp)
    found = {name: (value * weight).sum() for name, value in each.items()}
    return found | {"weight": weight.sum()}


def means(total: Mapping[str, Any]) -> dict[str, Any]:
    """The measured quantities from weighted sums."""
    weight = total["weight"]
    found = {name: value / weight for name, value in total.items() if name != "weight"}
    return found | {"excess": found["loss"] - found["floor"]}
