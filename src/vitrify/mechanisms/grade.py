"""How hard a circuit puzzle is: its size, depth, composition, and how crowded its residual stream is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from vitrify.mechanisms.parts import Edge, NetWiring, node_of

DIRECTIONS_FROM = 1e-9  # singular values below this part of the largest are 0


@dataclass(frozen=True)
class Grade:
    """Numbers that grow with the difficulty of a puzzle.

    `size` is the number of true edges, `depth` that of nodes on the longest path of true edges from an embedding to the
    output, and `composition` that of heads on such a path. `superposition` is the number of different vectors that
    nodes of the circuit write to the residual stream (tokens, positions, rows of heads and units), by the number of
    dimensions that these vectors span.
    """

    size: int
    depth: int
    composition: int
    superposition: float


def grade(wired: NetWiring, circuit: Sequence[Edge]) -> Grade:
    """Return the grade of a network with its true circuit."""
    heads = {node.name for node in wired.nodes if node.kind == "head"}

    @cache
    def longest(node: str, kinds: bool) -> int:
        before = [longest(source, kinds) for source, port in circuit if node_of(port) == node]
        return (node in heads if kinds else 1) + max(before, default=0)

    rows = [wired.writers[node].span for node in dict.fromkeys(source for source, _ in circuit)]
    vectors = np.concatenate([span[np.abs(span).max(axis=1) > 0] for span in rows if span.size])
    vectors = np.unique(np.round(vectors, 9), axis=0)
    sizes = np.linalg.svd(vectors, compute_uv=False)
    spanned = max(1, int((sizes > DIRECTIONS_FROM * sizes.max(initial=0)).sum()))
    return Grade(len(circuit), longest("output", False), longest("output", True), round(len(vectors) / spanned, 3))
