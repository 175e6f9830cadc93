r"""The variant of a built net, read from its arrays at several maximum lengths.

Attention, ties, mask, positions, depth and norm are read off, and whether the same arrays serve all lengths: then only
the table of positions grows, and a shorter one is the beginning of a longer one, unless it is bounded. Precision, steps
and the kind of decision can't be read off; they are those of the variant that is declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2

import numpy as np

from vitrify.arrays import Matrix
from vitrify.bounds.survey.models import ModelVariant, Scope
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

POSITIONS = "pos_embed.W_pos"


def measured(nets: Sequence[Weights[Transformer]], declared: ModelVariant) -> tuple[ModelVariant, Scope]:
    """Return the least variant that nets of one spec for growing lengths are of, and the scope."""
    first, *others = nets
    heads = [head for net in nets for block in net.architecture.blocks for head in block.heads]
    hard = {head.ties == "average" for head in heads if head.attention == "hard"}
    soft = any(head.attention != "hard" for head in heads)
    masks = {head.mask for head in heads}
    scope: Scope = "one net" if all(_same(first, other) for other in others) else "each length"
    variant = replace(
        declared,
        attention="softmax" if soft else "hard",
        ties="" if soft else "averaged" if True in hard else "one side",
        mask=masks.pop() if len(masks) == 1 and "after" not in masks else "any",
        positions=_positions(nets, scope),
        depth=_depth(nets),
        norm="layer norm" if first.architecture.norm else "none",
    )
    return variant, scope


def _arrays(net: Weights[Transformer]) -> dict[str, Matrix]:
    return {name: np.asarray(dense(array)) for name, array in net.arrays.items()}


def _same(first: Weights[Transformer], other: Weights[Transformer]) -> bool:
    """Return whether two nets have equal arrays, but for the table of positions, and the same blocks."""
    few, many = _arrays(first), _arrays(other)
    few.pop(POSITIONS, None), many.pop(POSITIONS, None)
    return first.architecture.blocks == other.architecture.blocks and all(
        name in many and np.array_equal(array, many[name]) for name, array in few.items()
    )


def _positions(nets: Sequence[Weights[Transformer]], scope: Scope) -> str:
    """Return the kind of the position tables; a net for one length may scale its table, so that it is bounded."""
    if any(net.architecture.formulas for net in nets):
        return "formula"
    tables = [_arrays(net)[POSITIONS] for net in nets]
    relative = any(np.any(array) for net in nets for name, array in _arrays(net).items() if name.endswith("b_rel"))
    if not relative and not any(map(np.any, tables)):
        return "none"
    if scope == "each length" or relative:
        return "bounded"
    few, many = tables[0], tables[-1]
    if not np.array_equal(few, many[: len(few)]):
        return "bounded" if np.abs(many).max() <= np.abs(few).max() + 1e-12 else "any"
    periods = range(1, len(few) // 2 + 1)
    periodic = any(np.array_equal(many[period:], many[:-period]) for period in periods)
    return "residues" if periodic else "formula"


def _depth(nets: Sequence[Weights[Transformer]]) -> str:
    """Return the growth of the number of attention layers, those that run again counted again."""
    depths = [sum(bool(block.heads) for block in net.architecture.blocks) * net.architecture.loops for net in nets]
    if len(set(depths)) == 1:
        return "one layer" if depths[0] <= 1 else "constant"
    logs = [ceil(log2(max(2, net.architecture.max_length))) for net in nets]
    grows_slowly = all(
        later - earlier <= after - before
        for earlier, later, before, after in zip(depths, depths[1:], logs, logs[1:], strict=False)
    )
    return "log n" if grows_slowly else "poly(n)"
