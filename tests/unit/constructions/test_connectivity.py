"""Connectivity in a loop: against networkx; sizes by formula; what is stored; mutations."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from built import ATTENTIONS
from cases import each, each_then_slow, in_turn
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.connectivity import connectivity, rounds, sizes
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.gadgets.steps import at_least
from vitrify.kit.network import Affine, Builder, Readout, Space
from vitrify.net.architecture import Output
from vitrify.net.inference import outputs
from vitrify.net.spaces import Reals
from vitrify.spec.computation.connectivity import Connectivity


def by_networkx(graph: nx.Graph) -> np.ndarray:
    n = len(graph)
    found = np.zeros((n, n))
    for component in nx.connected_components(graph):
        for a in component:
            found[a, list(component)] = 1.0
    return found


def rows_of(graph: nx.Graph) -> np.ndarray:
    return np.asarray(nx.to_numpy_array(graph, nodelist=range(len(graph)))) + np.eye(len(graph))


@pytest.mark.long
@each_then_slow("nodes, attention", *in_turn([2, 3, 4, 10, 64], ATTENTIONS))
def test_random_graphs_against_networkx(nodes: int, attention: Attention) -> None:
    spec = Connectivity.of(nodes)
    weights = assemble(connectivity(spec, attention=attention))
    graphs = [
        nx.gnp_random_graph(nodes, density / nodes, seed=seed) for density in (0.5, 1.0, 2.0) for seed in range(8)
    ]
    graphs += [
        nx.path_graph(nodes),
        nx.cycle_graph(nodes),
        nx.empty_graph(nodes),
        nx.random_labeled_tree(nodes, seed=1),
    ]
    found = outputs(weights, np.stack([np.minimum(rows_of(graph), 1.0) for graph in graphs]))
    for graph, answer in zip(graphs, found, strict=True):
        assert np.allclose(answer, by_networkx(graph), rtol=0, atol=1e-9)
        assert np.array_equal(spec.connected(rows_of(graph)), by_networkx(graph) > 0)


def test_all_graphs_of_four_nodes() -> None:
    weights = assemble(connectivity(Connectivity.of(4)))
    pairs = list(combinations(range(4), 2))
    for some in range(2 ** len(pairs)):
        graph = nx.empty_graph(4)
        graph.add_edges_from(pair for place, pair in enumerate(pairs) if some >> place & 1)
        assert np.allclose(outputs(weights, rows_of(graph)[None])[0], by_networkx(graph), rtol=0, atol=1e-9)


@each("nodes", [2, 3, 5, 9, 33, 64])
def test_one_layer_is_stored_whatever_the_rounds(nodes: int) -> None:
    spec = Connectivity.of(nodes)
    weights = assemble(connectivity(spec))
    assert not sizes(spec).problems(weights.sizes)
    assert {name.split(".")[1] for name in weights.arrays if name.startswith("blocks")} == {"0"}
    assert weights.architecture.loops == rounds(spec) <= int(np.ceil(np.log2(nodes)))
    more = replace(weights, architecture=replace(weights.architecture, loops=rounds(spec) + 3))
    path = rows_of(nx.path_graph(nodes))[None]
    assert np.allclose(outputs(more, path), 1.0)  # rounds too many do no harm
    if nodes > 3:
        fewer = replace(weights, architecture=replace(weights.architecture, loops=rounds(spec) - 1))
        assert np.abs(outputs(fewer, path) - 1.0).max() > 0.9


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_round_doubles_the_distance(attention: Attention) -> None:
    """A star with a tail: the node in the middle sees all others, and the end of the tail through one of them only."""
    graph = nx.star_graph(14)
    nx.add_path(graph, [14, 15, 16, 17])
    weights = assemble(connectivity(Connectivity.of(18), attention=attention))
    seen: dict[str, np.ndarray] = {}
    weights.architecture.forward(weights.prepared, rows_of(graph)[None], record=seen.__setitem__)
    (reached,) = [list(label.dims) for label in weights.labels.spaces if label.name == "reached"]
    apart = np.array([[nx.shortest_path_length(graph, a, b) for b in range(18)] for a in range(18)])
    for turn in range(weights.architecture.loops):
        held = seen[f"blocks.{turn}.hook_resid_post"][0, :, reached].T
        assert np.allclose(held, apart <= 2 ** (turn + 1), rtol=0, atol=1e-9), turn


def test_every_mutation_is_noticed() -> None:
    found = mutation_test(assemble(connectivity(Connectivity.of(6))), Connectivity.of(6), count=60)
    assert found.rate == 1.0, found.survivors


def test_names_of_nodes_and_certificates() -> None:
    spec = Connectivity(("x", "y", "z"))
    weights = assemble(connectivity(spec, attention="hard"))
    assert certify(weights, spec).verdict == "holds"
    wrong = weights.with_array("blocks.0.mlp.b_in", weights.arrays["blocks.0.mlp.b_in"] * 0)
    found = certify(wrong, spec)
    assert found.verdict == "fails"
    assert set(found.witness or {}) == {"graph", "nodes", "expected", "actual"}


def test_loops_of_the_kit_refuse_what_can_not_go_round() -> None:
    def made(*, noisy: bool) -> Builder:
        net = Builder("loop", ("x",), max_length=2, reads="rows")
        net.start = net.numbers("start", 0.0, 1.0)  # type: ignore[attr-defined]
        net.after = Space("after", Reals(("x",), 0.0, 1.0))  # type: ignore[attr-defined]
        at_least(net, Affine.copy(net.start, 0.5), 0.0, net.after)  # type: ignore[attr-defined]
        if noisy:
            at_least(net, Affine.copy(net.start, 0.5), 0.0, Space("other", Reals(("x",), 0.0, 1.0)))  # type: ignore[attr-defined]
        return net

    for noisy, error, message in ((False, BuildRefused, "would grow from round to round"), (True, ValueError, "other")):
        net = made(noisy=noisy)
        start, after = net.start, net.after  # type: ignore[attr-defined]
        readout = Readout(((after, np.eye(1)),), np.zeros(1), {after: 1.0})
        network = net.network(Output("values", ("x",)), readout, reuse=False)
        with pytest.raises(error, match=message):
            assemble(replace(network, loops=2, carries=((start, after),)))
