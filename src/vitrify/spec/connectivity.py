r"""Which nodes of a graph are connected: `.connectivity` files say which nodes there are, `.graph` files hold a graph.

    # five towns
    nodes: a b c d e

`nodes: 64` names them 1 to 64. A graph has one edge on each line, two nodes with a blank between them; nodes that are
not mentioned have no edges. Edges have no direction, and every node is connected to itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import InputError, Problem, SpecError
from vitrify.spec.display import Displayed
from vitrify.spec.files import lines_of, refuse_any, refuse_suffix

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
BETWEEN = "-"  # the nodes of an edge that is given as one word


@dataclass(frozen=True)
class Connectivity(Displayed):
    """Graphs over some nodes, and which of these a path connects.

    >>> towns = Connectivity(("a", "b", "c", "d"))
    >>> towns.connected(towns.rows([("a", "c"), ("c", "d")])).astype(int).tolist()
    [[1, 0, 1, 1], [0, 1, 0, 0], [1, 0, 1, 1], [1, 0, 1, 1]]
    """

    nodes: tuple[str, ...]
    suffix: ClassVar[str] = ".connectivity"

    def __post_init__(self) -> None:
        problems = list(_problems(self.nodes))
        if problems:
            raise SpecError(problems)

    @classmethod
    def of(cls, nodes: int) -> Connectivity:
        """Graphs over so many nodes, called 1, 2, 3 …"""
        return cls(tuple(str(node) for node in range(1, nodes + 1)))

    @classmethod
    def read(cls, path: str | Path) -> Connectivity:
        """The spec in a `.connectivity` file."""
        path = Path(path)
        if not path.name.endswith(cls.suffix):
            raise refuse_suffix(path, cls.suffix)
        problems: list[Problem] = []
        said: list[str] | None = None
        for number, line in lines_of(path):
            key, colon, rest = line.partition(":")
            if not colon or key.strip() != "nodes" or said is not None:
                problems.append(Problem("the file has one line, 'nodes: …', and comments", str(path), number))
                continue
            said = rest.split()
            if len(said) == 1 and said[0].isdecimal():
                said = [str(node) for node in range(1, int(said[0]) + 1)]
            problems += [Problem(message, str(path), number) for message in _problems(said)]
        if said is None:
            problems.append(Problem("the line 'nodes: …' is missing", str(path)))
        refuse_any(problems)
        return cls(tuple(said or ()))

    def write(self, path: str | Path) -> None:
        """Write a `.connectivity` file that reads back as this value."""
        counted = self.nodes == Connectivity.of(len(self.nodes)).nodes
        text = f"nodes: {len(self.nodes) if counted else ' '.join(self.nodes)}\n"
        Path(path).write_text(text, encoding="utf-8", newline="\n")

    # What it means

    def rows(self, edges: Iterable[tuple[str, str]]) -> Floats:
        """The rows of a graph's adjacency matrix, with every node beside itself."""
        return adjacency(self.nodes, edges)

    def connected(self, rows: Floats) -> Bools:
        """Which nodes a path connects [node, node], by walking from each: the definition."""
        neighbours = [np.flatnonzero(row).tolist() for row in rows]
        found = np.zeros(rows.shape, dtype=bool)
        for start, reached in enumerate(found):
            waiting = [start]
            reached[start] = True
            while waiting:
                for node in neighbours[waiting.pop()]:
                    if not reached[node]:
                        reached[node] = True
                        waiting.append(node)
        return found


def adjacency(nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> Floats:
    """The rows of the adjacency matrix of a graph without directions, with every node beside itself."""
    place = {node: number for number, node in enumerate(nodes)}
    listed = list(edges)
    strange = sorted({node for edge in listed for node in edge if node not in place})
    if strange:
        known = " ".join(nodes[:20]) + (" …" if len(nodes) > 20 else "")
        raise InputError(f"there is no node {', '.join(map(repr, strange))}; the nodes are {known}")
    rows = np.eye(len(nodes))
    for a, b in listed:
        rows[place[a], place[b]] = rows[place[b], place[a]] = 1.0
    return rows


def edges_of_words(words: Sequence[str]) -> list[tuple[str, str]]:
    """The edges that words such as `a-b` name."""
    pairs = [tuple(word.split(BETWEEN)) for word in words]
    odd = [word for word, pair in zip(words, pairs, strict=True) if len(pair) != 2 or not all(pair)]
    if odd:
        raise InputError(f"an edge is given as two nodes, a{BETWEEN}b, not {', '.join(map(repr, odd))}")
    return [(a, b) for a, b in pairs]


def read_graph(path: Path, nodes: Sequence[str]) -> list[tuple[str, str]]:
    """The edges in a `.graph` file; nodes that are not among the given ones are refused with their lines."""
    if not path.name.endswith(".graph"):
        raise refuse_suffix(path, ".graph")
    problems, edges = [], []
    known = frozenset(nodes)
    for number, line in lines_of(path):
        words = line.split()
        if len(words) != 2:
            problems.append(Problem(f"a line holds an edge, two nodes, not {line[:60]!r}", str(path), number))
            continue
        strange = [word for word in dict.fromkeys(words) if word not in known]
        if strange:
            shown = " ".join(nodes[:20]) + (" …" if len(nodes) > 20 else "")
            message = f"there is no node {' or '.join(map(repr, strange))}; the nodes are {shown}"
            problems.append(Problem(message, str(path), number))
        edges.append((words[0], words[1]))
    refuse_any(problems)
    return edges


def _problems(nodes: Sequence[str]) -> Iterator[str]:
    """Every broken rule of a row of nodes."""
    if len(nodes) < 2:
        yield f"there must be at least 2 nodes, there are {len(nodes)}"
    for node in dict.fromkeys(nodes):
        if nodes.count(node) > 1:
            yield f"the node {node!r} is listed {nodes.count(node)} times: list it once"
        if BETWEEN in node or node.split() != [node]:
            yield f"the name of a node is a word without blanks and {BETWEEN!r}, not {node!r}"
