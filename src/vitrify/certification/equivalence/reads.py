"""Inputs that the heads of a transformer read, as plain matrices: shared by lemmas."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.catalogue import SpecCase
from vitrify.certification.equivalence.ideal import EQUAL
from vitrify.certification.margins.values import Undecided
from vitrify.net.sparse import dense
from vitrify.net.transformer import Head, Transformer
from vitrify.net.weights import has_architecture

NAMES = ("beta", "W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")


class HeadMaps(NamedTuple):
    """A head: queries are $x q + b_q$ (with the inverse temperature), keys $x k + b_k$, and it writes $x v + b_v$."""

    head: Head
    q: Floats
    b_q: Floats
    k: Floats
    b_k: Floats
    v: Floats
    b_v: Floats
    averages: bool = False  # with fixed weights
    bias: Floats | None = None  # by distance, of a head that sees a window


def head_maps(case: SpecCase, block: int, *, averages: bool = False) -> list[HeadMaps]:
    """Return the heads of a block; none may average with fixed weights or see only a window, unless `averages`."""
    weights, proof = case.weights, case.proof
    assert proof is not None
    assert has_architecture(weights, Transformer)
    fixed = {head.index for head in proof.heads if head.block == block and head.gap is None}
    maps = []
    for at, head in enumerate(weights.architecture.blocks[block].heads):
        if not averages and (head.window is not None or at in fixed):
            raise Undecided("a head sees only a window, or averages with fixed weights")
        prefix = f"blocks.{block}.attn."
        part = {name: np.asarray(dense(weights.arrays[prefix + name][at])) for name in NAMES}
        beta = float(part["beta"])
        v, b_v = part["W_V"] @ part["W_O"], part["b_V"] @ part["W_O"]
        bias = None if head.window is None else np.asarray(weights.arrays[f"{prefix}b_rel"][at])
        q, b_q = part["W_Q"] * beta, part["b_Q"] * beta
        maps.append(HeadMaps(head, q, b_q, part["W_K"], part["b_K"], v, b_v, at in fixed, bias))
    return maps


def need_above(high: Floats, low: Floats, size: float, what: str) -> None:
    """Refuse scores that do not exceed others clearly."""
    if not (high > low + EQUAL * (1.0 + size)).all():
        raise Undecided(what)
