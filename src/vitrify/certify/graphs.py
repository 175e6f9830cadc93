"""What a net that reads graphs must answer, and which graphs are worth asking about."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.points import Questions
from vitrify.errors import FolderError
from vitrify.net.architecture import Architecture
from vitrify.spec.connectivity import Connectivity

Floats = NDArray[np.float64]

RANDOM = 64  # random graphs, of all densities
FEW = 1 << 10  # all graphs are asked about if there are no more


class ConnectivityOracle:
    """Which nodes are connected: the distance is the largest difference of two numbers."""

    def __init__(self, spec: Connectivity, net: Architecture) -> None:
        if net.output.symbols != spec.nodes or net.reads != "rows":
            raise FolderError("the network and its spec do not speak about the same nodes")
        self.spec, self.net = spec, net

    def tolerance(self) -> float:
        return self.net.output.error

    def errors(self, inputs: Floats, outputs: Floats) -> Floats:
        right = np.stack([self.spec.connected(rows) for rows in inputs])
        far: Floats = np.abs(outputs - right).max(axis=(1, 2))
        return np.where(np.isfinite(far), far, np.inf)

    def right(self, point: Floats) -> Floats:
        return self.spec.connected(point).astype(np.float64)

    def witness(self, point: Floats, output: Floats) -> dict[str, object]:
        right = self.spec.connected(point)
        a, b = np.unravel_index(int(np.abs(output - right).argmax()), right.shape)
        names = self.spec.nodes
        edges = [f"{names[i]}-{names[j]}" for i, j in np.argwhere(np.triu(point, 1)).tolist()]
        return {
            "graph": " ".join(edges),
            "nodes": f"{names[int(a)]} {names[int(b)]}",
            "expected": float(right[a, b]),
            "found": float(output[a, b]),
        }

    def questions(self, rng: np.random.Generator) -> list[Questions]:
        """Long paths through the nodes in some order, which take all rounds; random graphs; all graphs if they are few.

        Random graphs have from no edge to several for each node: around one each, the components are large and thin.
        """
        n = len(self.spec.nodes)
        asked = [Questions("paths in random orders, whole and cut", self._paths(rng))]
        asked.append(Questions(f"{RANDOM} random graphs", np.stack([self._random(rng) for _ in range(RANDOM)])))
        pairs = list(combinations(range(n), 2))
        if 2 ** len(pairs) <= FEW:
            graphs = [
                _graph(n, [p for p, there in zip(pairs, some, strict=True) if there])
                for some in product((0, 1), repeat=len(pairs))
            ]
            asked.insert(0, Questions(f"all {len(graphs)} graphs", np.stack(graphs), "exhaustive"))
        return asked

    def _paths(self, rng: np.random.Generator) -> Floats:
        n = len(self.spec.nodes)
        orders = [list(range(n)), *(rng.permutation(n).tolist() for _ in range(3))]
        whole = [list(pairwise(order)) for order in orders]
        cut = [[edge for edge in path if rng.random() > 2 / n] for path in whole]
        rings = [[*path, (order[-1], order[0])] for path, order in zip(whole, orders, strict=True)]
        return np.stack([_graph(n, edges) for edges in (*whole, *cut, *rings, [])])

    def _random(self, rng: np.random.Generator) -> Floats:
        n = len(self.spec.nodes)
        edges = rng.integers(n, size=(int(rng.integers(2 * n + 1)), 2)).tolist()
        return _graph(n, [(a, b) for a, b in edges])


def _graph(nodes: int, edges: list[tuple[int, int]]) -> Floats:
    rows = np.eye(nodes)
    for a, b in edges:
        rows[a, b] = rows[b, a] = 1.0
    return rows
