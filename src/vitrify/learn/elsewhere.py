"""How a member answers rows of other sandboxes than the one it is trained on: longer ones, rarer ones, harder ones.

A probe for `train(probes={…})` that draws rows of its own. The other sandbox has the same symbols and answers, and the
net must have room for its rows (`room` of a transformer).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.measure import aligned
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import PIECE, TEST_SEED, Probe
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Row, Sandbox, rows


def elsewhere(family: Family, sandbox: Sandbox, count: int = 512, by: str | None = None, bins: int = 0) -> Probe:
    """A probe: the share of `count` rows of a sandbox in which every answer that counts is right.

    `by` names a latent whole number of the rows: then it is a share [bin] for each of its values from 0 on, of those
    rows that have the value; without such rows it is not a number.
    """
    piece = min(PIECE, count)
    if count % piece:
        raise InputError(f"rows are asked {PIECE} at a time: take a multiple of it, not {count}")

    def probe(net: Any, arrays: Mapping[str, Array], row: Row, seen: Mapping[str, Array]) -> Array:
        del row, seen
        if tuple(net.inputs[1:]) != sandbox.symbols or tuple(net.output.symbols) != sandbox.answers:
            raise InputError(f"the net was not made for the symbols and answers of {sandbox.name}")
        if isinstance(net, Transformer) and net.max_length < sandbox.tokens:
            raise InputError(f"the net has room for {net.max_length} tokens, and rows have {sandbox.tokens}: give room")

        def asked(start: Array) -> tuple[Array, Array]:
            found = rows(sandbox, TEST_SEED, "test", start, piece)
            whole = all_right(family.logits(net, sandbox, arrays, found), found)
            at = jnp.zeros(piece, jnp.int32) if by is None else found.latent[by]
            which = (at[:, None] == jnp.arange(bins if by else 1)).astype(jnp.float32)
            return (which * whole[:, None]).sum(axis=0), which.sum(axis=0)

        starts = jnp.arange(0, count, piece, dtype=jnp.uint32)
        right, total = (part.sum(axis=0) for part in jax.lax.map(asked, starts))
        share = right / total
        return share if by else share[0]

    return probe


def all_right(logits: Array, row: Row) -> Array:
    """Which rows of a batch are answered rightly wherever an answer counts [batch], as 0 or 1."""
    row = aligned(row, logits)
    right = (logits.argmax(axis=-1) == row.targets) | (row.weight == 0)
    return right.all(axis=1).astype(jnp.float32)
