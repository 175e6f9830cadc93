r"""Reachability in directed graphs of $n$ nodes: two layers of constant width, run $\lceil\log_2(n-1)\rceil$ times.

In the spirit of Merrill and Sabharwal (2025, arXiv 2503.03961), where padding tokens do the work; the weights are our
own derivation. There are $n^2$ tokens for pairs $(i, k)$, which hold a bit, and $n^3$ padding tokens for triples $(i,
j, k)$. The position of a token holds its two *sources* and its *target*: $(i, j)$, $(j, k)$ and $(i, k)$ for a
triple; three times $(i, k)$ for a pair. Each round replaces the bit $b_{ik}$ by $b_{ik} \lor \bigvee_j (b_{ij} \land
b_{jk})$:

1. Two heads read the bits of the sources. The score of the pair $(i', k')$ for the query $(i, k)$ is $2ii' + 2kk' -
   (i'^2 + k'^2)$: a key that is the distance $\delta$ away is $\delta^2$ behind. Triples score $4n^2$ less, and BOS, as
   the pair $(0, 0)$, at least 2 less than the best. Units take the conjunction $c$ of both bits.
2. A third head does the same over pairs and triples, by target, and adds $\tfrac12 c$ to the score of a key: of the
   $n + 1$ tokens with the right target, those with $c = 1$ win by $\tfrac12$, if there are any. So it copies a one if
   there is one, without a threshold of $\tfrac1n$. Units make it exact.

After $r$ rounds the bit says if a path of 1 to $2^r$ edges leads from $i$ to $k$. That a node reaches itself is added
at the end. Triples that name a node twice add nothing, but they are padding like the others. With $n^2 + n^3$ other
keys and BOS, the first two heads leak at most $(n^2 + n^3)e^{-\beta} \le \tfrac{3}{32}$ at $\beta = \ln(16n^3)$, the
third at most $\tfrac{3}{16}$ at $\beta = 2\ln(8n^3)$; their units remove errors below $\tfrac18$ and $\tfrac14$.

| | formula |
| --- | --- |
| layers stored, heads in each | 2; 2 and 1 |
| rounds | $\lceil\log_2(n-1)\rceil$, at least 1 |
| tokens | $n^2 + n^3$ |
| units in each | 2 and 7: two each to compute a bit, one for each of 5 spaces that end with the round |
| width | 12 |
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import exp, log

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.gadgets.steps import snap
from vitrify.kit.gadgets.table import table
from vitrify.kit.margins import round_up
from vitrify.kit.network import Affine, Builder, Flag, Integers, Network, Output, Readout, Space
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.reachability import Reachability


def sizes(task: Reachability) -> DeclaredSizes:
    """Return the sizes, none of which depends on the graph."""
    del task
    return DeclaredSizes.of_layers((2, 1), (2, 7), 12)


@construction(
    "padded-loop",
    "reachability at constant width, two layers in a loop over padding tokens",
    sizes,
    default=True,
    certified=("to T", "to T"),
)
def reachability(task: Reachability, *, attention: Attention = "softmax") -> Network:
    """Return a transformer of two layers, run in a loop, that outputs which nodes are reachable."""
    n, longest = task.nodes, task.length
    name = f"reachability among {n} nodes, {attention}"
    net = Builder(name, (BEGIN, *task.alphabet), longest, attention, min_length=longest)
    bit = net.embed("bit", Flag(), np.array([[0.0], [0.0], [1.0], [0.0]]))
    rows = places(n)
    ends = net.embed_position("i, j, j', k", Integers(("i", "j", "j'", "k"), 0.0, float(n)), rows)
    target = np.eye(4)[:, [0, 3]]
    squares = (rows @ target) ** 2 @ np.ones((2, 1))
    square = net.embed_position("i² + k²", Integers(("i² + k²",), 0.0, 2.0 * n * n), squares)
    far = np.where(np.arange(longest) < n * n, 0.0, 4.0 * n * n)[:, None]
    apart = net.embed_position("4n² at triples", Integers(("4n²",), 0.0, 4.0 * n * n), far)
    key = Affine.of({ends: target}).beside(Affine.of({square: [[1.0]], apart: [[1.0]]}))
    read = []
    for side, columns in (("left", [0, 1]), ("right", [2, 3])):
        read.append(
            net.attend(
                f"bit of the {side} source",
                query=Affine.of({ends: 2 * np.eye(4)[:, columns]}).beside(Affine.constant(-1.0)),
                key=key,
                value=Affine.copy(bit),
                writes=Space(f"{side} bit", Flag()),
                gap=1.0,
                bound=10.0 * n * n,
                mask="none",
                **(temperature(n, 1.0, 16) if attention == "softmax" else {}),
            )
        )
    both = table(net, read, np.array([[1, 1]]), Space("both", Flag()), np.ones((1, 1)), snap=True)
    key = Affine.of({ends: target}).beside(Affine.of({square: [[1.0]]})).beside(Affine.of({both: [[0.5]]}))
    some = net.attend(
        "some conjunction for the same target",
        query=Affine.of({ends: 2 * target}).beside(Affine.constant([-1.0, 1.0])),
        key=key,
        value=Affine.copy(both),
        writes=Space("some", Flag()),
        gap=0.5,
        bound=6.0 * n * n + 1,
        mask="none",
        **(temperature(n, 0.5, 8) if attention == "softmax" else {}),
    )
    further = snap(net, some, name="bit after the round")
    itself = net.embed_position("itself", Flag(), ((rows[:, [0]] == rows[:, [3]]) & (far == 0)).astype(float))
    yes = np.array([[0.0, 1.0]])
    network = net.network(
        Output("transducer", task.outputs),
        Readout(((further, yes), (itself, yes)), np.array([0.5, 0.0]), {further: 0.25}),
        "reachability, two layers in a loop over padding tokens",
        {"nodes": n, "rounds": rounds(task)},
        source="in the spirit of Merrill and Sabharwal 2025, arXiv 2503.03961",
        reuse=False,
    )
    return replace(network, loops=rounds(task), carries=((bit, further),))


def places(n: int) -> Floats:
    """Return the sources (i, j) and (j', k) of all pairs, where j = k and j' = i, and of all triples, where j = j'."""
    pairs = [(i, k, i, k) for i, k in product(range(1, n + 1), repeat=2)]
    triples = [(i, j, j, k) for i, j, k in product(range(1, n + 1), repeat=3)]
    return np.array([*pairs, *triples], dtype=float)


def rounds(task: Reachability) -> int:
    """Return how often the layers run."""
    return max(1, (task.nodes - 2).bit_length())


def temperature(n: int, gap: float, share: int) -> dict[str, float]:
    """Return the inverse temperature at which a head with this gap leaks at most (1 + 1/n)/share, and that leak."""
    beta = round_up(log(share * n**3) / gap)
    return {"beta": beta, "shortfall": (n**3 + n**2) * exp(-beta * gap), "noise": 0.0}
