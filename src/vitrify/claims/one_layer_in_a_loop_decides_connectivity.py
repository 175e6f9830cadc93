r"""An attention layer run at most $\lceil\log_2 n\rceil$ times with the same weights decides which nodes are connected.

Statement: For every $n$ there is one transformer layer with one head, $4n$ units and width $3n$ which, applied
$\lceil\log_2(n-1)\rceil$ times (at least once, and at most $\lceil\log_2 n\rceil$ times) to the rows of the adjacency
matrix of any undirected graph with $n$ nodes, ones on the diagonal, gives for every node exactly the set of nodes
connected with it.
Why: A node that averages the rows of all nodes it has reached so far doubles the distance it reaches. An average of
zeros and ones is 0 or at least $1/n$, so a threshold makes it a set again; it also removes the leak of softmax.
Checked: All graphs of 4 and 5 nodes; paths, rings and paths without one edge in random order, and random graphs of all
densities, of 17, 33 and 64 nodes, against a graph search. Each number of nodes has one kind of attention: softmax,
sparsemax or hard. One stored block, at most $\lceil\log_2 n\rceil$ rounds, heads, units and width are compared with the
formulas.
Not checked: Graphs of more than 64 nodes, and that depth $\Omega(\log n)$ is needed. This is not the uniform
construction of the papers: there the width is $O(\log n)$ and padding tokens do the work, here the width grows with
$n$.
Source: Merrill & Sabharwal 2025, arXiv 2503.03961 [S]; Sanford et al. 2024, arXiv 2402.09268 [S]; the weights are our
own derivation.
Saboteur: The layer is applied one time fewer.
"""

from __future__ import annotations

import math
from dataclasses import replace

from vitrify.claims._figures import points, show
from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, check_net, in_turn
from vitrify.spec.computation.connectivity import Connectivity

NODES = (4, 5, 17, 33, 64)


def subjects() -> Subjects:
    return in_turn({f"{nodes} nodes": Connectivity.of(nodes) for nodes in NODES}, "loop")


def check(subject: Subject) -> Evidence:
    loops, most = subject.weights.architecture.loops, (len(subject.spec.nodes) - 1).bit_length()
    stored = {name.split(".")[1] for name in subject.weights.arrays if name.startswith("blocks.")}
    declared = {"blocks stored": 1, "rounds within ⌈log₂ n⌉": True}
    measured = {"blocks stored": len(stored), "rounds within ⌈log₂ n⌉": loops <= most, "rounds": loops}
    return check_net(subject, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """Paths of more than half the greatest length are not followed to their ends."""
    shorter = replace(subject.weights.architecture, loops=subject.weights.architecture.loops - 1)
    return replace(subject, weights=replace(subject.weights, architecture=shorter))


FIGURE = show(
    points("{} nodes", "rounds", "nodes n", "rounds of the loop", "2x", joined=True, laws={"log₂ n": math.log2}),
    points("{} nodes", ("d_model", "units"), "nodes n", "size of the layer", "2x2y", joined=True),
)
CLAIM = Claim(subjects, check, sabotage, id="R28", standing="theorem", certified="sampled", figure=FIGURE)
