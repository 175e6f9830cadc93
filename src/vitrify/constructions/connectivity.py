r"""Connectivity of graphs with $n$ nodes takes $\lceil\log_2(n-1)\rceil$ rounds of one layer, stored once.

In the spirit of Merrill and Sabharwal (2025, arXiv 2503.03961) and Sanford et al. (2024, arXiv 2402.09268); the weights
are our own derivation, and the width grows with $n$. Position $i$ stands for node $i$ and reads its row $R_i$ of the
adjacency matrix, itself included. In each round

- a head attends equally to all nodes $j$ with $R_{ij} = 1$: the score is $R_i \cdot e_j$. Its output is the mean $Y_i$
  of their rows, whose coordinates are either 0 or at least $1/n$;
- an MLP turns them into 0 or 1 and replaces $R_i$.

So $R$ becomes $R^2$, and paths of twice the length count. After $r$ rounds they have up to $2^r \ge n - 1$ edges.

| | formula |
| --- | --- |
| layers stored, rounds | 1; $\lceil\log_2(n-1)\rceil$, at least 1: at most $\lceil\log_2 n\rceil$ |
| heads | 1 |
| units | $4n$: two for each step, one to erase each coordinate of $R$ and of $Y$ |
| width | $3n$ |
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, Builder, MultiHot, Network, OneHot, Output, Readout, Reals, Space
from vitrify.spec.computation.connectivity import Connectivity

ROUNDING = 1e-9  # what an answer, 0 or 1, may be off


def sizes(spec: Connectivity) -> DeclaredSizes:
    """Return all sizes of the layer, which is stored once."""
    n = len(spec.nodes)
    return DeclaredSizes({"layers": 1, "heads": 1, "units": 4 * n, "d_model": 3 * n})


@construction("loop", "which nodes are connected, by one layer in a loop", sizes, default=True)
def connectivity(spec: Connectivity, *, attention: Attention = "softmax") -> Network:
    """Return a transformer of one layer, run in a loop, that outputs which nodes are connected."""
    nodes = spec.nodes
    net = Builder(f"connectivity of {len(nodes)} nodes, {attention}", nodes, len(nodes), attention, reads="rows")
    reached = net.embed("reached", MultiHot(nodes), np.eye(len(nodes)))
    node = net.embed_position("node", OneHot(nodes), np.eye(len(nodes)))
    among = Test(Affine.copy(reached), Affine.copy(node), 1.0)
    mean = Space("mean of the rows", Reals(nodes, 0.0, 1.0))
    select(net, [among], Affine.copy(reached), mean, sink="none", mask="none")
    further = Space("reached in a round more", MultiHot(nodes))
    points, bits = np.array([0.0, 1.0 / len(nodes)]), np.array([0.0, 1.0])
    steps(net, mean, points, [(further, bits)], name=f"step: {further.name}", each=True)
    made = net.network(
        Output("values", nodes, error=ROUNDING),
        Readout(((further, np.eye(len(nodes))),), np.zeros(len(nodes)), {further: ROUNDING / 2}),
        "connectivity by squaring, one layer in a loop",
        {"nodes": len(nodes), "rounds": rounds(spec)},
        source="in the spirit of Merrill and Sabharwal 2025, arXiv 2503.03961",
        reuse=False,
    )
    return replace(made, loops=rounds(spec), carries=((reached, further),))


def rounds(spec: Connectivity) -> int:
    """Return how often the layer runs."""
    return max(1, (len(spec.nodes) - 2).bit_length())
