r"""One attention layer, run $\lceil\log_2 n\rceil$ times over with the same weights, says which nodes are connected.

Statement: for graphs of $n$ nodes, each of which reads its row of the adjacency matrix, one layer with one head, $4n$
units and a width of $3n$, run at most $\lceil\log_2 n\rceil$ times, gives for every node exactly the set of nodes that
a path connects it with; the parameters are those of one layer.
Why: a node that averages the rows of all nodes it reaches finds who is reached in twice as many edges; an average of
zeros and ones is 0 or at least $1/n$, so it can be made a set again.
Checked: all graphs of 4 and 5 nodes; paths, rings and paths cut somewhere, in random orders, and random graphs of all
densities to 64 nodes, against walking through the graph; under three kinds of attention; sizes against the formulas.
The width grows with $n$: this is not the uniform construction with padding, whose width does not.
Source: Merrill and Sabharwal 2025, arXiv 2503.03961 [S]; Sanford et al. 2024, arXiv 2402.09268 [S]; the weights are our
own derivation.
Saboteur: the layer runs one round less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vitrify.certify.evidence import Evidence
from vitrify.certify.points import PointExamination
from vitrify.claims._nets import ATTENTIONS, with_sizes
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.connectivity import connectivity, sizes
from vitrify.kit import assemble
from vitrify.net.weights import Ledger
from vitrify.spec.connectivity import Connectivity

NODES = (4, 5, 17, 33, 64)


def subjects() -> Iterator[Subject]:
    """Graphs of 4 to 64 nodes."""
    for place, nodes in enumerate(NODES):
        spec, attention = Connectivity.of(nodes), ATTENTIONS[place % 3]
        yield Subject(f"{nodes} nodes, {attention}", spec, assemble(connectivity(spec, attention=attention)))


def check(subject: Subject) -> Evidence:
    """Which nodes are connected, how many rounds it took, and the sizes of what is stored."""
    net, size = subject.weights.architecture, Ledger.of(subject.weights)
    most = (len(subject.spec.nodes) - 1).bit_length()
    stored = {name.split(".")[1] for name in subject.weights.arrays if name.startswith("blocks.")}
    promised = {**sizes(subject.spec), "blocks stored": 1, "rounds within ⌈log₂ n⌉": True}
    measured = {name: getattr(size, name) for name in sizes(subject.spec)}
    measured |= {"blocks stored": len(stored), "rounds within ⌈log₂ n⌉": net.loops <= most, "rounds": net.loops}
    return with_sizes(PointExamination(net, subject.spec).run(subject.weights), promised, measured)


def sabotage(subject: Subject) -> Subject:
    """Paths of more than half the greatest length are not followed to their ends."""
    shorter = replace(subject.weights.architecture, loops=subject.weights.architecture.loops - 1)
    return replace(subject, weights=replace(subject.weights, architecture=shorter))


CLAIM = Claim(row="R28", status="proved", certified="sampled", subjects=subjects, check=check, sabotage=sabotage)
