"""Connectivity: its files, graphs in files and in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError, SpecError
from vitrify.spec import read_spec
from vitrify.spec.computation.connectivity import Connectivity, adjacency, edges_of_words, read_graph

EXAMPLES = Path(__file__).parents[3] / "examples"
TOWNS = ("ash", "birch", "cedar", "elm", "fir", "oak", "pine", "yew")


def test_files_read_back(tmp_path: Path) -> None:
    path = tmp_path / "some.connectivity"
    for spec in (Connectivity.of(64), Connectivity(("b", "a"))):
        spec.write(path)
        assert Connectivity.read(path) == spec
    path.write_text("# x\n nodes:  3\n")
    assert Connectivity.read(path) == Connectivity(("1", "2", "3"))
    assert read_spec(EXAMPLES / "towns.connectivity") == Connectivity(TOWNS)
    roads = read_graph(EXAMPLES / "roads.graph", TOWNS)
    found = Connectivity(TOWNS).connected(adjacency(TOWNS, roads))
    assert [TOWNS[i] for i in np.flatnonzero(found[0])] == ["ash", "birch", "elm", "oak"]


def test_rows_are_symmetric_with_every_node_beside_itself() -> None:
    rows = adjacency(("a", "b", "c"), [("a", "c"), ("b", "b")])
    assert rows.tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    assert edges_of_words(["a-b", "c-c"]) == [("a", "b"), ("c", "c")]


BAD = {
    "empty": ("", [": the line 'nodes: …' is missing"]),
    "one node": ("nodes: a\n", [":1: there must be at least 2 nodes and at most 10,000, there are 1"]),
    "count": ("# x\nnodes: 1\n", [":2: the nodes must be a whole number from 2 to 10,000, is '1'"]),
    "twice": ("nodes: a b a a\n", [":1: the node 'a' is listed 3 times"]),
    "names": ("nodes: a-b c\n", [":1: the name of a node is a word without blanks and '-', not 'a-b'"]),
    "strange": (
        "nodes: a b\nedges: 3\nnodes: 4\n",
        [":2: the file has one line", ":3: the line .nodes: …. occurs twice"],
    ),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines_all_at_once(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.connectivity"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        Connectivity.read(path)
    assert len(caught.value.problems) == len(messages)
    for message in messages:
        with pytest.raises(SpecError, match=message):
            Connectivity.read(path)


def test_graphs_with_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "bad.graph"
    path.write_text("a b\n# x\na\nb z\ny y\na b c\n")
    with pytest.raises(SpecError) as caught:
        read_graph(path, ("a", "b"))
    assert [problem.line for problem in caught.value.problems] == [3, 4, 5, 6]
    with pytest.raises(SpecError, match=r":4: there is no node 'z'; the nodes are a b\n.*:5: there is no node 'y'"):
        read_graph(path, ("a", "b"))
    with pytest.raises(SpecError, match=r"must end in \.graph"):
        read_graph(tmp_path / "x.txt", ("a", "b"))
    with pytest.raises(InputError, match="there is no node 'x', 'y'; the nodes are a b"):
        adjacency(("a", "b"), [("y", "x"), ("a", "b")])
    with pytest.raises(InputError, match="an edge is given as two nodes, a-b, not 'a', 'a-b-c', '-a'"):
        edges_of_words(["a", "a-b", "a-b-c", "-a"])
    with pytest.raises(SpecError, match="at least 2 nodes"):
        Connectivity(("a",))
