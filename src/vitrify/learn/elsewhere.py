"""A probe of out-of-distribution accuracy: examples of another sandbox, longer, rarer or harder ones.

A probe for `train(probes={…})` that draws sequences of its own. The other sandbox has the same symbols and answers, and
the net must have room for its sequences (`max_positions` of a transformer).
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp

from vitrify.arrays import Array, Float
from vitrify.errors import InputError
from vitrify.learn.measure import aligned
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import PIECE, TEST_SEED, Probe
from vitrify.learn.runs import Net
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Example, Sandbox, examples


def elsewhere(family: Family, sandbox: Sandbox, count: int = 512, by: str | None = None, bins: int = 0) -> Probe:
    """A probe: the share of `count` sequences of a sandbox in which every answer that counts is right.

    `by` names a latent whole number of the sequences: then it is a share [bin] for each of its values from 0 on, of
    those sequences that have the value; without such sequences it is not a number.
    """
    piece = min(PIECE, count)
    if count % piece:
        raise InputError(f"sequences are asked {PIECE} at a time: take a multiple of it, not {count}")

    def probe(net: Net, arrays: Mapping[str, Array], batch: Example, seen: Mapping[str, Array]) -> Array:
        del batch, seen
        if tuple(net.inputs[1:]) != sandbox.symbols or tuple(net.output.symbols) != sandbox.answers:
            raise InputError(f"the net was not made for the symbols and answers of {sandbox.name}")
        if isinstance(net, Transformer) and net.max_length < sandbox.tokens:
            raise InputError(
                f"the net has room for {net.max_length} tokens, and sequences have {sandbox.tokens}: give max_positions"
            )

        def counts(start: Array) -> tuple[Array, Array]:
            batch_there = examples(sandbox, TEST_SEED, "test", start, piece)
            correct = all_right(family.logits(net, sandbox, arrays, batch_there), batch_there)
            at = jnp.zeros(piece, jnp.int32) if by is None else batch_there.latent[by]
            which = (at[:, None] == jnp.arange(bins if by else 1)).astype(jnp.float32)
            return (which * correct[:, None]).sum(axis=0), which.sum(axis=0)

        starts = jnp.arange(0, count, piece, dtype=jnp.uint32)
        right, total = (part.sum(axis=0) for part in jax.lax.map(counts, starts))
        share = right / total
        return share if by else share[0]

    return probe


def all_right(logits: Float[Array, "batch asked answer"], batch: Example) -> Float[Array, " batch"]:
    """Return 1 for each sequence of a batch whose targets with a weight are all predicted, else 0: [batch]."""
    batch = aligned(batch, logits)
    right = (logits.argmax(axis=-1) == batch.targets) | (batch.weight == 0)
    return right.all(axis=1).astype(jnp.float32)
