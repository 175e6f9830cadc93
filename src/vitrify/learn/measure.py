r"""Measurements of a member: its loss, and its distances from the optimal and other known predictors.

All are averages over the same test examples, weighted like the questions, so that differences are paired: sampling
noise that a member shares with the oracle cancels. `loss` is the cross-entropy in nats, `floor` that of the optimal
predictor on the same sequences, `excess` their difference, `kl` the mean $\mathrm{KL}(\text{optimal} \|
\text{member})$, and `kl.NAME` the same to another predictor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import jax
import jax.numpy as jnp

from vitrify.arrays import Array, Float
from vitrify.sandboxes.catalogue import Example, LogProbs, Sandbox, Split, examples

Answers: TypeAlias = Float[Array, "*batch asked answer"]  # to all questions of an example, or to the last of them
TEST_SEED = 0  # every member is measured on the same sequences
PIECE = 64  # sequences that are measured at once, more only where that would make too many pieces
MAX_PIECES = 64
MAX_ONE_HOT_ANSWERS = 256  # up to here a sum over one-hot targets is quicker than a gather


def aligned(batch: Example, logits: Answers) -> Example:
    """The sequence with its last questions only, as many as the member answers."""
    skip = batch.targets.shape[1] - logits.shape[1]
    if not skip:
        return batch
    soft = None if batch.soft is None else batch.soft[:, skip:]
    return batch._replace(targets=batch.targets[:, skip:], weight=batch.weight[:, skip:], soft=soft)


def log_probabilities(logits: Answers) -> Answers:
    """The logarithms of the probabilities that logits mean, in float32 or wider."""
    return jax.nn.log_softmax(logits.astype(jnp.promote_types(logits.dtype, jnp.float32)))


def losses(logp: LogProbs, batch: Example) -> Float[Array, "*batch question"]:
    """The cross-entropy [batch, question] of log-probabilities [batch, question, answer]."""
    if batch.soft is not None:
        return -(batch.soft * jnp.where(batch.soft > 0, logp, 0.0)).sum(axis=-1)
    if logp.shape[-1] <= MAX_ONE_HOT_ANSWERS:
        return -(jax.nn.one_hot(batch.targets, logp.shape[-1], dtype=logp.dtype) * jnp.maximum(logp, -1e9)).sum(axis=-1)
    return -jnp.take_along_axis(logp, batch.targets[..., None], axis=-1)[..., 0]


def mean_loss(logits: Answers, batch: Example, squared: bool = False) -> Float[Array, ""]:
    """The training loss: the mean over all questions of a batch, by weight."""
    batch = aligned(batch, logits)
    each = squares(logits, batch) if squared else losses(log_probabilities(logits), batch)
    return (each * batch.weight).sum() / batch.weight.sum()


def squares(logits: LogProbs, batch: Example) -> Float[Array, "*batch question"]:
    """The squared distance [batch, question] between logits and the target, one-hot or a distribution."""
    logits = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    target = jax.nn.one_hot(batch.targets, logits.shape[-1], dtype=logits.dtype) if batch.soft is None else batch.soft
    return ((logits - target) ** 2).sum(axis=-1)


def divergence(logp: Answers, logq: Answers) -> Float[Array, "*batch asked"]:
    r"""$\mathrm{KL}(p \| q)$ over the last axis; impossible answers of $p$ count nothing."""
    p = jnp.exp(logp)
    return jnp.where(p > 0, p * (logp - logq), 0.0).sum(axis=-1)


def sums(sandbox: Sandbox, logits: Answers, batch: Example) -> dict[str, Array]:
    """Weighted sums over a batch of sequences; `weight` is what they are divided by in the end."""
    known = {"": sandbox.optimal, **sandbox.predictors()}
    row_answers = aligned(batch, logits)
    skip = batch.targets.shape[1] - row_answers.targets.shape[1]
    logp = log_probabilities(logits)
    weight = row_answers.weight
    each: dict[str, Array] = {
        "loss": losses(logp, row_answers),
        "accuracy": (logits.argmax(axis=-1) == row_answers.targets).astype(jnp.float32),
    }
    for name, predictor in known.items():
        theirs = jax.vmap(predictor)(batch)[:, skip:]
        each[f"floor.{name}" if name else "floor"] = losses(theirs, row_answers)
        each[f"kl.{name}" if name else "kl"] = divergence(theirs, logp)
    totals = {name: (value * weight).sum() for name, value in each.items()}
    return totals | {"weight": weight.sum()}


def over(sandbox: Sandbox, logits: Callable[[Example], Answers], split: Split, count: int) -> dict[str, Array]:
    """The measured quantities of a member over the first `count` examples of a split, or a few more."""
    sandbox = sandbox if split == "test" else replace(sandbox)  # what it cached belongs to the loop over the tests
    piece = min(max(PIECE, count // MAX_PIECES), count)

    def measured(start: Array) -> dict[str, Array]:
        batch = examples(sandbox, TEST_SEED, split, start, piece)
        return sums(sandbox, logits(batch), batch)

    starts = jnp.arange(0, count, piece, dtype=jnp.uint32)
    return means(jax.tree.map(lambda x: x.sum(axis=0), jax.lax.map(measured, starts)))


def means(total: Mapping[str, Array]) -> dict[str, Array]:
    """The measured quantities from weighted sums."""
    weight = total["weight"]
    averages = {name: value / weight for name, value in total.items() if name != "weight"}
    return averages | {"excess": averages["loss"] - averages["floor"]}
