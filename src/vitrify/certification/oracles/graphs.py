"""Oracle of graph connectivity: the right answers, and the graphs on which a net is checked."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.checks.points import PointBatch, PointOracle
from vitrify.certification.evidence import Method
from vitrify.certification.oracles.catalogue import oracle
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.computation.connectivity import Connectivity

RANDOM = 64  # random graphs, of all densities
MAX_GRAPHS = 1 << 10  # all graphs are checked if there are no more


@oracle(Connectivity, output="values", reads="rows")
class ConnectivityOracle(PointOracle):
    """Which nodes are connected: the distance is the largest difference of two numbers."""

    def __init__(self, spec: Connectivity, net: SequenceArchitecture) -> None:
        if not net.output.symbols == net.inputs == spec.nodes or net.max_length != len(spec.nodes):
            raise FolderError("the network and its spec do not speak about the same nodes")
        self.spec, self.net = spec, net

    def right(self, point: Floats) -> Floats:
        return self.spec.connected(point).astype(np.float64)

    def witness(self, point: Floats, output: Floats) -> dict[str, object]:
        right = self.spec.connected(point)
        a, b = np.unravel_index(int(np.abs(output - right).argmax()), right.shape)
        names = self.spec.nodes
        edges = [f"{names[i]}-{names[j]}" for i, j in np.argwhere(np.triu(point, 1)).tolist()]
        numbers = {"expected": float(right[a, b]), "actual": float(output[a, b])}
        return {"graph": " ".join(edges), "nodes": f"{names[int(a)]} {names[int(b)]}", **numbers}

    def cases(self, rng: np.random.Generator) -> list[PointBatch]:
        """Long paths through the nodes in some order, which take all rounds; random graphs; all graphs if they are few.

        Random graphs have from no edge to several for each node: around one each, the components are large and thin.
        """
        n = len(self.spec.nodes)
        batches = [PointBatch("paths in random orders, whole and cut", self._paths(rng))]
        batches.append(PointBatch("random graphs", np.stack([self._random(rng) for _ in range(RANDOM)])))
        pairs = list(combinations(range(n), 2))
        if 2 ** len(pairs) <= MAX_GRAPHS:
            graphs = [
                _graph(n, [p for p, there in zip(pairs, some, strict=True) if there])
                for some in product((0, 1), repeat=len(pairs))
            ]
            batches.insert(0, PointBatch("graphs", np.stack(graphs), Method.EXHAUSTIVE))
        return batches

    def _paths(self, rng: np.random.Generator) -> Floats:
        n = len(self.spec.nodes)
        orders = [list(range(n)), *(rng.permutation(n).tolist() for _ in range(3))]
        paths = [list(pairwise(order)) for order in orders]
        cut = [[edge for edge in path if rng.random() > 2 / n] for path in paths]
        rings = [[*path, (order[-1], order[0])] for path, order in zip(paths, orders, strict=True)]
        return np.stack([_graph(n, edges) for edges in (*paths, *cut, *rings, [])])

    def _random(self, rng: np.random.Generator) -> Floats:
        n = len(self.spec.nodes)
        edges = rng.integers(n, size=(int(rng.integers(2 * n + 1)), 2)).tolist()
        return _graph(n, [(a, b) for a, b in edges])


def _graph(nodes: int, edges: list[tuple[int, int]]) -> Floats:
    rows = np.eye(nodes)
    for a, b in edges:
        rows[a, b] = rows[b, a] = 1.0
    return rows
