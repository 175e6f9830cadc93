"""Reachability in directed graphs, all pairs at once, with padding tokens.

A word over n nodes has one bit for each ordered pair (1,1), (1,2) … (n,n), which says if there is an edge, and then n³
padding tokens `.`, one for each triple of nodes. At the pair (i,k) the answer is 1 if a path leads from i to k; every
node reaches itself. There are no answers before the word is whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, ClassVar

import numpy as np

from vitrify.parameters import Within
from vitrify.spec.graphs import reached
from vitrify.spec.tasks.catalogue import Answer, Task, Word

BITS = ("0", "1")
PAD = "."


@dataclass(frozen=True)
class Reachability(Task):
    """Whether a path leads from node i to node k, at each pair.

    >>> Reachability(nodes=2).answers("0100........")[:4]
    ('1', '1', '0', '1')
    """

    name: ClassVar[str] = "reachability"
    SAMPLES: ClassVar = {"reachability": {"nodes": 3}}
    free: ClassVar[bool] = False
    alphabet: ClassVar = (*BITS, PAD)
    outputs: ClassVar = BITS

    nodes: Annotated[int, Within(2, 16)]  # 16 have 4,352 tokens

    @property
    def pairs(self) -> int:
        """Number of ordered pairs of nodes."""
        return self.nodes**2

    @property
    def length(self) -> int:
        """Length of every word."""
        return self.pairs + self.nodes**3

    def answers(self, word: Word) -> Sequence[Answer]:
        if len(word) < self.length:
            return (None,) * len(word)
        rows = [word[at : at + self.nodes] for at in range(0, self.pairs, self.nodes)]
        after = [[k for k, bit in enumerate(row) if bit == "1"] for row in rows]
        ends = [reached([start], after.__getitem__) for start in range(self.nodes)]
        return (*(BITS[k in end] for end in ends for k in range(self.nodes)), *(None,) * self.nodes**3)

    def word(self, bits: Word) -> tuple[str, ...]:
        """Return the word of a graph, given by its bits."""
        return (*bits, *(PAD,) * self.nodes**3)

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        return map(self.word, product(BITS, repeat=self.pairs)) if length == self.length else iter(())

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return the word of a path through all nodes in random order, of one cut anywhere, or of a random graph.

        Random graphs have up to two edges for each node.
        """
        n, kind = self.nodes, rng.integers(3)
        edges = rng.integers(n, size=(int(rng.integers(2 * n + 1)), 2))
        if kind < 2:  # a path takes all rounds
            order = rng.permutation(n)
            edges = np.delete(np.stack([order[:-1], order[1:]], axis=1), rng.integers(n - 1, size=kind), axis=0)
        bits = np.zeros((n, n), dtype=int)
        bits[edges[:, 0], edges[:, 1]] = 1
        return self.word([BITS[bit] for bit in bits.ravel().tolist()])[:length]


TASK = Reachability
