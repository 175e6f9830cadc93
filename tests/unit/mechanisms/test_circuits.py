"""True circuits of the zoo: every true edge matters, all others together do not, and entangling changes neither."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError
from vitrify.mechanisms.circuit import Judge, TrueCircuit, judged, true_circuit
from vitrify.mechanisms.domain import PatchDomain, differs, joined
from vitrify.mechanisms.entangle import entangle
from vitrify.mechanisms.parts import NetWiring, wiring
from vitrify.mechanisms.puzzle import puzzle
from vitrify.mechanisms.zoo import ZOO, network, networks
from vitrify.net.architecture import Output
from vitrify.net.inference import batch_logits

FEW = 12  # words: enough to see most edges matter
RARE = {"experts-xor", "experts-hidden", "experts-linear"}  # where only many words show which edges matter
SEED = 5


@cache
def wired_of(name: str) -> NetWiring:
    return wiring(ZOO[name].build())


@cache
def known(name: str) -> tuple[Judge, TrueCircuit]:
    """A circuit, on few words."""
    judge = judged(wired_of(name), ZOO[name].spec(), words=FEW, draws=0)
    return judge, true_circuit(judge)


@pytest.mark.long
def test_the_zoo_is_large_and_has_every_family() -> None:
    assert len(networks()) >= 150
    wanted = {"grammar", "automaton", "n-gram", "induction", "Dyck", "facts", "experts", "program", "logic", "counting"}
    assert wanted <= {entry.family for entry in ZOO.values()}
    assert len({entry.build().digest for entry in networks().values()}) == len(networks())
    with pytest.raises(InputError, match="no network of the zoo is called 'lion'"):
        network("lion")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(ZOO) - RARE))
def test_true_edges_matter_and_all_others_together_do_not(name: str) -> None:
    judge, circuit = known(name)
    assert circuit.edges
    assert circuit.exact
    assert min(circuit.effects) > 0
    assert set(circuit.edges) <= set(judge.wired.composed)


@pytest.mark.long
@each("name", sorted(ZOO))
def test_an_entangled_network_says_the_same_and_its_stream_is_another(name: str) -> None:
    wired = wired_of(name)
    start = time.process_time()
    assert ZOO[name].build().digest == wired.weights.digest  # the same bytes
    assert time.process_time() - start < 1
    twin = entangle(wired, SEED)
    net = wired.weights.architecture
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, len(net.inputs), size=(8, net.positions))
    tokens[:, : net.pads] = 0
    want, got = (batch_logits(weights, tokens) for weights in (wired.weights, twin.wired.weights))
    np.testing.assert_allclose(got, want, atol=1e-9, rtol=1e-12)
    assert twin.wired.weights.architecture.d_model > net.d_model
    embedded = np.asarray(twin.wired.weights.arrays["embed.W_E"])
    assert (np.abs(embedded) > 1e-6).mean() > 0.95  # nothing is left in one dimension
    assert not twin.wired.weights.labels.heads


def test_entangling_is_seeded_and_renames_every_node_once() -> None:
    wired = wired_of("mod3-log-depth")
    one, again, other = (entangle(wired, seed) for seed in (1, 1, 2))
    assert one.wired.weights.digest == again.wired.weights.digest != other.wired.weights.digest
    assert one.renamed == again.renamed
    assert set(one.renamed) == {node.name for node in wired.nodes}
    assert len(set(one.renamed.values())) == len(wired.nodes)
    new = {node.name for node in one.wired.nodes}
    assert set(one.renamed.values()) < new  # decoys are there too
    kinds = {node.name: node.kind for node in (*wired.nodes, *one.wired.nodes)}
    sizes = {node.name: len(node.units) for node in one.wired.nodes}
    for node in wired.nodes:
        assert kinds[one.renamed[node.name]] == node.kind
        assert sizes[one.renamed[node.name]] == len(node.units)


@each("name", ["induction", "trigram-heads", "brackets", "estimate-norm", "adder", "increment-hybrid"])
def test_an_entangled_circuit_is_the_old_one_under_new_names(name: str) -> None:
    judge, circuit = known(name)
    twin = entangle(judge.wired, SEED)
    moved = Judge(twin.wired, judge.domain)
    edges = [twin.edge(edge) for edge in circuit.edges]
    assert moved.faithfulness(edges) == 1.0
    assert [moved.changed((edge,)) for edge in edges] == pytest.approx(circuit.effects)
    decoys = {node.name for node in twin.wired.nodes} - set(twin.renamed.values())
    assert decoys
    assert {edge for edge in twin.wired.composed if edge[1].startswith(tuple(decoys))}  # they do hear the others


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(networks()))
def test_the_whole_zoo_edge_by_edge(name: str) -> None:
    made = puzzle(name)
    true = set(made.circuit.edges)
    assert made.circuit.exact
    assert {edge for edge in made.wired.composed if made.judge.changed((edge,)) > 0} == true
    if name != "experts-hidden":  # where another cut edge may take back what one did
        assert max(made.judge.faithfulness(true - {edge}) for edge in true) < 1
    for seed in (1, 2):
        twin = entangle(made.wired, seed)
        judge, moved = Judge(twin.wired, made.judge.domain), {twin.edge(edge) for edge in true}
        assert judge.faithfulness(moved) == 1.0
        assert {edge for edge in twin.wired.composed if judge.changed((edge,)) > 0} == moved


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ZOO)[::4])
def test_whole_layers_have_exact_circuits_too(name: str) -> None:
    for seed in (None, 3):
        made = puzzle(name, grain="layers", seed=seed)
        assert made.judge.faithfulness(made.circuit.edges) == 1.0


def test_what_counts_as_another_answer() -> None:
    one = np.array([[[1.0, 0.0, -1.0]]])
    near, far = one + np.array([0.0, 1e-9, 0.0]), one + np.array([0.0, 2.0, 0.0])
    for kind in ("lm", "next", "recognizer", "transducer", "class", "values"):
        output = Output(kind, ("a", "b", "c"))
        assert not differs(output, one, near).any()
        assert differs(output, one, far).all()
    assert not differs(Output("class", ("a", "b", "c")), one, 2 * one).any()
    assert differs(Output("lm", ("a", "b", "c")), one, 2 * one).all()
    linear = Output("lm", ("a", "b", "c"), scores="linear")
    assert not differs(linear, one, np.full_like(one, 1e-17)).any()  # weights that sum to nothing
    assert not differs(linear, one + 1, 3 * (one + 1)).any()
    assert differs(linear, one + 1, one + 2).all()
    assert differs(Output("values", ("a", "b", "c")), one, np.full_like(one, np.nan)).all()


def test_questions_are_joined_by_length_and_written_and_read() -> None:
    judge, _ = known("induction")
    (first, *_) = judge.domain
    some = first.only(np.array([3, 5]))
    assert some.pairs.shape == (2, 2)
    np.testing.assert_array_equal(some.tokens[some.pairs], first.tokens[first.pairs[[3, 5]]])
    (whole,) = joined([first, some])
    np.testing.assert_array_equal(whole.tokens[whole.pairs[-2:]], first.tokens[first.pairs[[3, 5]]])
    back = PatchDomain.from_json(whole.to_json())
    for name in ("tokens", "mask", "pairs", "donor_positions"):
        np.testing.assert_array_equal(getattr(back, name), getattr(whole, name))
    for part in judge.domain:
        assert (part.pairs[:, 0] != part.pairs[:, 1]).all()
