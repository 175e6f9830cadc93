r"""Connectivity of graphs: `.connectivity` files list the nodes, `.graph` files hold one graph.

    # five towns
    nodes: a b c d e

`nodes: 64` names them 1 to 64. A graph has one edge on each line, two nodes with a blank between them; nodes that are
not mentioned have no edges. Edges have no direction, and every node is connected to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitrify.arrays import Bools, Floats
from vitrify.errors import InputError, Problem
from vitrify.spec.formats.headed import Header
from vitrify.spec.formats.text import at_most, lines_of, refuse_any
from vitrify.spec.graphs import reached
from vitrify.spec.kinds import Kind, Spec

BETWEEN = "-"  # separates the nodes of an edge in one word
MAX_NODES = 10_000  # a graph is a matrix of nodes × nodes, and a network has one position for each


@dataclass(frozen=True)
class Connectivity(Spec):
    """Graphs over some nodes, and the pairs of nodes that a path connects.

    >>> towns = Connectivity(("a", "b", "c", "d"))
    >>> towns.connected(adjacency(towns.nodes, [("a", "c"), ("c", "d")])).astype(int).tolist()
    [[1, 0, 1, 1], [0, 1, 0, 0], [1, 0, 1, 1], [1, 0, 1, 1]]
    """

    nodes: tuple[str, ...]
    suffix: ClassVar[str] = ".connectivity"

    def __post_init__(self) -> None:
        refuse_any(_problems(self.nodes))

    @classmethod
    def of(cls, nodes: int) -> Connectivity:
        """Return graphs over numbered nodes, called 1, 2, 3 …"""
        at_most("nodes", nodes, MAX_NODES)
        return cls(_counted(nodes))

    @classmethod
    def read(cls, path: str | Path) -> Connectivity:
        header = Header(lines_of(path, cls.suffix), ("nodes",), str(path))
        header.refuse_others("the file has one line, 'nodes: …', and comments")
        nodes = header.words("nodes")
        if len(nodes) == 1 and nodes[0].isdecimal():
            nodes = _counted(header.number("nodes", MAX_NODES, 2))
        header.report("nodes", _problems(nodes))
        refuse_any(header.problems)
        return cls(nodes)

    def to_text(self) -> str:
        counted = self.nodes == _counted(len(self.nodes))
        return f"nodes: {len(self.nodes) if counted else ' '.join(self.nodes)}\n"

    @classmethod
    def samples(cls) -> dict[str, Connectivity]:
        return {"two": cls.of(2), "five": cls(("a", "b", "c", "d", "e"))}

    # Meaning

    def connected(self, rows: Floats) -> Bools:
        """Return the pairs of nodes that a path connects [node, node], by search from each node."""
        neighbors = [np.flatnonzero(row).tolist() for row in rows]
        connected = np.zeros(rows.shape, dtype=bool)
        for start, row in enumerate(connected):
            row[list(reached([start], neighbors.__getitem__))] = True
        return connected


def _counted(nodes: int) -> tuple[str, ...]:
    return tuple(str(node) for node in range(1, nodes + 1))


def _problems(nodes: Sequence[str]) -> Iterator[str]:
    if not 2 <= len(nodes) <= MAX_NODES:
        yield f"there must be at least 2 nodes and at most {MAX_NODES:,}, there are {len(nodes):,}"
    for node, times in Counter(nodes).items():
        if times > 1:
            yield f"the node {node!r} is listed {times} times: list it once"
        if BETWEEN in node or node.split() != [node]:
            yield f"the name of a node is a word without blanks and {BETWEEN!r}, not {node!r}"


def _listed(nodes: Sequence[str]) -> str:
    return " ".join(nodes[:20]) + (" …" if len(nodes) > 20 else "")


def adjacency(nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> Floats:
    """Return the adjacency matrix of an undirected graph, with self-loops."""
    index = {node: number for number, node in enumerate(nodes)}
    listed = list(edges)
    strange = sorted({node for edge in listed for node in edge if node not in index})
    if strange:
        raise InputError(f"there is no node {', '.join(map(repr, strange))}; the nodes are {_listed(nodes)}")
    rows = np.eye(len(nodes))
    for a, b in listed:
        rows[index[a], index[b]] = rows[index[b], index[a]] = 1.0
    return rows


def edges_of_words(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return the edges that words such as `a-b` name."""
    pairs = [tuple(word.split(BETWEEN)) for word in words]
    odd = [word for word, pair in zip(words, pairs, strict=True) if len(pair) != 2 or not all(pair)]
    if odd:
        raise InputError(f"an edge is given as two nodes, a{BETWEEN}b, not {', '.join(map(repr, odd))}")
    return [(a, b) for a, b in pairs]


def read_graph(path: Path, nodes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the edges of a `.graph` file; unknown nodes are refused with their lines."""
    problems, edges = [], []
    known = frozenset(nodes)
    for number, line in lines_of(path, ".graph"):
        words = line.split()
        if len(words) != 2:
            problems.append(Problem(f"a line holds an edge, two nodes, not {line[:60]!r}", str(path), number))
            continue
        strange = [word for word in dict.fromkeys(words) if word not in known]
        if strange:
            message = f"there is no node {' or '.join(map(repr, strange))}; the nodes are {_listed(nodes)}"
            problems.append(Problem(message, str(path), number))
        edges.append((words[0], words[1]))
    refuse_any(problems)
    return edges


KIND = Kind(Connectivity, {".connectivity": "which nodes of a graph are connected"})
