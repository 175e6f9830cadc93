"""What the heads of a transformer read, as plain matrices: shared by lemmas."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.catalogue import Case
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


def head_maps(case: Case, block: int) -> list[HeadMaps]:
    """Return the heads of a block, none of which may average with fixed weights or see only a window."""
    weights, proof = case.weights, case.proof
    assert proof is not None
    assert has_architecture(weights, Transformer)
    if any(head.block == block and head.attends_to == "fixed weights" for head in proof.heads):
        raise Undecided("a head averages with fixed weights")
    maps = []
    for at, head in enumerate(weights.architecture.blocks[block].heads):
        if head.window is not None:
            raise Undecided("a head sees only a window")
        prefix = f"blocks.{block}.attn."
        part = {name: np.asarray(dense(weights.arrays[prefix + name][at])) for name in NAMES}
        beta = float(part["beta"])
        v, b_v = part["W_V"] @ part["W_O"], part["b_V"] @ part["W_O"]
        maps.append(HeadMaps(head, part["W_Q"] * beta, part["b_Q"] * beta, part["W_K"], part["b_K"], v, b_v))
    return maps


def need_above(high: Floats, low: Floats, size: float, what: str) -> None:
    """Refuse scores that do not exceed others clearly."""
    if not (high > low + EQUAL * (1.0 + size)).all():
        raise Undecided(what)
