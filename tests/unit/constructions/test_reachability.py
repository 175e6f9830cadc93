"""Reachability over padding tokens: against networkx; the loop; what the proof refuses; sizes that do not grow."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from math import ceil, log2

import networkx as nx
import numpy as np
import pytest

from built import ATTENTIONS
from cases import each, each_then_slow, in_turn
from vitrify.certification.checking import with_proof
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase
from vitrify.certification.equivalence.paths import paths
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.values import Undecided
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions.catalogue import Attention, build, chosen
from vitrify.constructions.reachability import places
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.weights import Weights
from vitrify.spec.tasks.reachability import Reachability


def words_of(graphs: list[nx.DiGraph]) -> np.ndarray:
    """Input ids: the matrix of each graph, 0 as 1 and 1 as 2, and padding tokens, 3."""
    n = len(graphs[0])
    bits = np.stack([nx.to_numpy_array(graph, nodelist=range(n)) > 0 for graph in graphs]).reshape(len(graphs), -1)
    return np.hstack([1 + bits, np.full((len(graphs), n**3), 3)]).astype(np.int64)


def by_networkx(graph: nx.DiGraph) -> np.ndarray:
    return np.asarray(nx.to_numpy_array(nx.transitive_closure(graph, reflexive=True), nodelist=range(len(graph))) > 0)


def wrong(weights: Weights, graphs: list[nx.DiGraph]) -> int:
    """How many pairs of nodes get a wrong answer, or one with a margin below 1/4."""
    net, n = weights.architecture, len(graphs[0])
    logits = batch_logits(weights, with_pads(net, words_of(graphs)))[:, 1 : 1 + n * n]
    margins = (logits[..., 1] - logits[..., 0]).reshape(-1, n, n)
    right = np.stack([by_networkx(graph) for graph in graphs])
    return int((np.where(right, margins, -margins) < 0.25).sum())


def drawn(nodes: int, count: int) -> list[nx.DiGraph]:
    sparse = [nx.gnp_random_graph(nodes, d / nodes, seed=s, directed=True) for s in range(count) for d in (0.7, 1.0, 2)]
    line, ring = (kind(nodes, create_using=nx.DiGraph) for kind in (nx.path_graph, nx.cycle_graph))
    return [*sparse, line, line.reverse(), ring]


@pytest.mark.long
@each_then_slow("nodes, attention", *in_turn(range(2, 9), ATTENTIONS))
def test_random_graphs_against_networkx(nodes: int, attention: Attention) -> None:
    assert wrong(build(Reachability(nodes), attention=attention), drawn(nodes, 5)) == 0


@pytest.mark.slow
def test_more_than_a_thousand_graphs_and_both_links_up_to_12_nodes() -> None:
    count = 0
    for nodes in range(4, 13):
        task = Reachability(nodes)
        weights = build(task)
        graphs = drawn(nodes, 150 if nodes < 7 else 2)
        assert sum(wrong(weights, graphs[at : at + 8]) for at in range(0, len(graphs), 8)) == 0
        count += len(graphs)
        questions = WordCheck(weights.architecture, task, work=1e6, samples=1)
        evidence = with_proof(questions.run(weights), weights, questions)
        assert [link.scope.value for link in evidence.links] == ["to T", "to T"], evidence.links
        assert not chosen(task).sizes(task).problems(weights.sizes)
    assert count > 1000


def test_the_answers_of_the_task_are_those_of_networkx() -> None:
    for graph in (*every_graph_of_three_nodes()[::7], *drawn(6, 4)):
        task = Reachability(len(graph))
        bits = nx.to_numpy_array(graph, nodelist=range(len(graph))).astype(int).ravel().astype(str).tolist()
        answers = task.answers(task.word(bits))
        assert answers[: task.pairs] == tuple(by_networkx(graph).astype(int).ravel().astype(str).tolist())
        assert set(answers[task.pairs :]) == {None}


def every_graph_of_three_nodes() -> list[nx.DiGraph]:
    matrices = np.array(list(product((0, 1), repeat=9))).reshape(-1, 3, 3)
    return [nx.from_numpy_array(matrix, create_using=nx.DiGraph) for matrix in matrices]


def test_all_graphs_of_three_nodes() -> None:
    assert wrong(build(Reachability(3)), every_graph_of_three_nodes()) == 0


@each("nodes", range(2, 13))
def test_the_weights_do_not_grow(nodes: int) -> None:
    task = Reachability(nodes)
    weights, two = build(task), build(Reachability(2))
    assert not chosen(task).sizes(task).problems(weights.sizes)
    assert weights.architecture.loops == max(1, ceil(log2(nodes - 1)))
    assert weights.architecture.max_length == weights.architecture.min_length == nodes**2 + nodes**3
    same = {name for name in weights.arrays if np.array_equal(weights.arrays[name], two.arrays[name])}
    assert weights.arrays.keys() - same <= {"pos_embed.W_pos", "blocks.0.attn.beta", "blocks.1.attn.beta"}


@pytest.mark.parametrize("nodes", [4, 6, 7])
def test_one_round_less_misses_the_end_of_a_path(nodes: int) -> None:
    weights = build(Reachability(nodes))
    fewer = replace(weights, architecture=replace(weights.architecture, loops=weights.architecture.loops - 1))
    line = nx.path_graph(nodes, create_using=nx.DiGraph)
    reach = 2**fewer.architecture.loops
    assert wrong(fewer, [line]) == sum(k - i > reach for i in range(nodes) for k in range(i, nodes)) > 0
    more = replace(weights, architecture=replace(weights.architecture, loops=weights.architecture.loops + 1))
    assert wrong(more, [line, nx.cycle_graph(nodes, create_using=nx.DiGraph)]) == 0


def reason(weights: Weights, task: Reachability) -> str:
    """Why the lemma refuses a net whose margins are taken from the intact one."""
    oracle = WordCheck(weights.architecture, task).oracle
    with pytest.raises(Undecided) as stop:
        paths(SpecCase(weights, task, oracle, proof_of(build(task), oracle)))
    return str(stop.value)


def edited(weights: Weights, name: str, at: object, value: float) -> Weights:
    array = weights.arrays[name].copy()
    array[at] = value
    return weights.with_array(name, array)


def test_what_the_lemma_refuses() -> None:
    task = Reachability(4)
    weights = build(task)
    dims = {label.name: label.dims[0] for label in weights.labels.spaces}
    queries, places = weights.arrays["blocks.0.attn.W_Q"], "pos_embed.W_pos"
    assert "halves of all paths" in reason(weights.with_array("blocks.0.attn.W_Q", queries[[0, 0]]), task)
    missing = weights.arrays[places].copy()
    missing[23] = missing[24]  # no token stands for 1, 2, 3, and two stand for 1, 2, 4
    assert "the pair 1,3 does not read" in reason(weights.with_array(places, missing), task)
    assert "some pair is wrong" in reason(edited(weights, places, (1, dims["itself"]), 0.0), task)
    assert "bits change the scores" in reason(edited(weights, "blocks.0.attn.W_K", (0, dims["bit"], 0), 0.1), task)
    assert "BOS" in reason(edited(weights, "embed.W_E", (0, dims["i² + k²"]), 9.0), task)
    assert "the bit 0" in reason(edited(weights, "embed.W_E", (3, dims["bit"]), 1.0), task)
    assert "another target" in reason(edited(weights, "blocks.1.attn.W_K", (0, dims["both"], 3), 1.5), task)
    assert "against others" in reason(edited(weights, "blocks.1.attn.W_K", (0, dims["both"], 3), -0.5), task)
    assert "more than one bit" in reason(edited(weights, "blocks.1.mlp.W_in", (dims["both"], 0), 0.5), task)
    assert "no function of the conjunction" in reason(edited(weights, "blocks.0.mlp.b_in", 0, -0.5), task)
    once = replace(weights, architecture=replace(weights.architecture, loops=1))
    oracle = WordCheck(weights.architecture, task).oracle
    with pytest.raises(Undecided, match="do not cover all paths"):
        paths(SpecCase(once, task, oracle, proof_of(once, oracle)))


@pytest.mark.long
def test_mutations_that_survive_are_of_single_padding_tokens() -> None:
    tested = mutation_test(build(Reachability(4)), Reachability(4), count=60)
    survivors = [re.fullmatch(r"pos_embed\.W_pos\[(\d+)\] zeroed", change) for change, _ in tested.survivors]
    assert all(match and int(match[1]) > 16 for match in survivors), tested.survivors


def test_a_padding_token_is_needed_unless_it_names_a_node_twice() -> None:
    weights, graphs = build(Reachability(3)), every_graph_of_three_nodes()
    for row, (i, j, _, k) in list(enumerate(places(3).tolist(), start=1))[9:]:
        lost = edited(weights, "pos_embed.W_pos", row, 0.0)
        assert (wrong(lost, graphs) > 0) == (len({i, j, k}) == 3)
