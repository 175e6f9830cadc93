r"""Two layers of width 12, applied log n times, decide reachability in directed graphs if they get padding tokens.

Statement: For every $n \ge 2$ there are two transformer layers with three heads and 9 units in all, and width 12,
which, applied $\lceil\log_2(n-1)\rceil$ times (at least once) to the $n^2$ bits of the adjacency matrix of any directed
graph with $n$ nodes and $n^3$ padding tokens, say of every two nodes if a path leads from the first to the second
(every node reaches itself, by the empty path). Under softmax the inverse temperatures are $\ln(16n^3)$ and
$2\ln(8n^3)$, rounded up to a quarter.
Why: A padding token stands for three nodes $(i, j, k)$, and reads if there are paths from $i$ to $j$ and from $j$ to
$k$. A pair $(i, k)$ looks among its tokens for one that has both. As nodes reach themselves, paths of length at most
$2^r$ count after $r$ rounds.
Checked: All graphs of 3 nodes; 800 of 4 nodes, 160 of 5, 40 of 6 and 2 of 10 nodes (1,100 tokens), with all pairs of
nodes: paths in random order, whole and cut, and random graphs. Each number of nodes has one kind of attention: softmax,
sparsemax or hard. For each of these nets it is proved, for every graph with that many nodes: the stored weights compute
the net with exact selections (margins), and that net decides reachability (induction over the rounds). Stored blocks,
rounds, heads, units, width and temperatures are compared with the formulas, and the weights with those of the net of 3
nodes: all arrays but positions and temperatures are equal, byte by byte.
Not checked: Other $n$; the tests prove the same for all $n$ from 4 to 12. Positions hold the nodes that a token stands
for and the squares of their numbers, and the temperature grows with $\log n$, so the net is not the same for all $n$;
the abstract of the paper states a uniform net with padding, whose constants were not read. That $O(\log n)$ rounds do
more than $O(1)$ layers is conditional on $\mathrm{TC}^0 \ne \mathrm{NL}$ (for undirected graphs: $\ne \mathrm{L}$), and
not part of this claim.
Source: Merrill & Sabharwal 2025, arXiv 2503.03961 [A]; the weights are our own derivation.
Saboteur: The layers are applied one time fewer, so that pairs of nodes are missed whose shortest path is longer than
$2^{R-1}$, where $R$ is the number of rounds. Where they run once, for 3 nodes, a token reads its left pair twice.
"""

from __future__ import annotations

import math
from dataclasses import replace
from math import log

from vitrify.claims._figures import points, show
from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, Weights, built, check_net, proving
from vitrify.claims.one_layer_in_a_loop_decides_connectivity import sabotage as one_round_less
from vitrify.constructions.catalogue import Attention, build
from vitrify.kit.margins import round_up
from vitrify.spec.tasks.reachability import Reachability

CASES: tuple[tuple[int, Attention, int], ...] = (  # nodes, attention, random graphs
    (3, "softmax", 64),
    (4, "hard", 800),
    (5, "softmax", 160),
    (6, "sparsemax", 40),
    (10, "softmax", 2),
)
WORK = 1e7  # multiplications spent on words beyond those listed
SMALLEST = 3  # nodes, of which all graphs are tried
SAME = "weights equal those for 3 nodes, but for positions and temperatures"
DIFFERENT = ("pos_embed.W_pos", "blocks.0.attn.beta", "blocks.1.attn.beta")


def subjects() -> Subjects:
    for nodes, attention, samples in CASES:
        yield built(f"{nodes} nodes, {attention}", Reachability(nodes), data={"samples": samples}, attention=attention)


def check(subject: Subject) -> Evidence:
    net, n = subject.weights.architecture, subject.spec.nodes
    attention = net.blocks[0].heads[0].attention
    declared: dict[str, object] = {
        "blocks stored": 2,
        "rounds": max(1, (n - 2).bit_length()),
        "tokens": n**2 + n**3,
        SAME: _alike(subject.weights, build(Reachability(SMALLEST), attention=attention)),
    }
    measured = {"blocks stored": len(net.blocks), "rounds": net.loops, "tokens": net.max_length, SAME: True}
    if attention == "softmax":
        declared["inverse temperatures"] = tuple(round_up(log(c * n**3) / gap) for c, gap in ((16, 1.0), (8, 0.5)))
        measured["inverse temperatures"] = tuple(subject.weights.arrays[name][0] for name in DIFFERENT[1:])
    every = subject.spec.length if n == SMALLEST else None
    return proving(subject, check_net(subject, declared, measured, max_length=every, work=WORK))


def _alike(one: Weights, other: Weights) -> bool:
    """Return whether two nets have the same arrays, but for positions and temperatures."""
    names = one.arrays.keys() - {*DIFFERENT}
    return all(one.arrays[name].tobytes() == other.arrays[name].tobytes() for name in names)


def sabotage(subject: Subject) -> Subject:
    if subject.weights.architecture.loops > 1:
        return one_round_less(subject)
    queries = subject.weights.arrays["blocks.0.attn.W_Q"]
    return replace(subject, weights=subject.weights.with_array("blocks.0.attn.W_Q", queries[[0, 0]]))


FIGURE = show(
    points(
        "{} nodes",
        "rounds",
        "nodes n",
        "rounds of the loop",
        joined=True,
        laws={"⌈log₂ (n − 1)⌉": lambda n: math.ceil(math.log2(n - 1))},
    ),
    points("{} nodes", "tokens", "nodes n", "tokens", "y", joined=True, laws={"n³": lambda n: n**3}),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R28", standing="theorem", certified="proved", budget_seconds=20, figure=FIGURE
)
