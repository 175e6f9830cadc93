"""Runs on sparse matrices: the same logits as the ordinary forward pass, or None where they would differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases import each
from vitrify.constructions.catalogue import build
from vitrify.net import sparse
from vitrify.net.sparse_forward import SparseForward
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.grammars.grammar import Grammar

GRAMMAR = Grammar.from_text("S -> A B | B\nA -> C 'x' | C C\nB -> A 'y' C | C\nC -> 'x' | 'y' 'x'")


@pytest.fixture(autouse=True)
def small_matrices_are_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "DENSE_ENTRIES", 1)
    monkeypatch.setattr(sparse, "DENSE_DENSITY", 1.1)


def grammar_net(attention: str = "softmax") -> Weights:
    return build(GRAMMAR, "spans", attention=attention)


def ordinary(net: Weights, tokens: np.ndarray) -> np.ndarray:
    return np.asarray(net.architecture.forward(net.prepared, tokens))


@each("attention", ["softmax", "hard"])
def test_logits_are_those_of_the_ordinary_forward_pass(attention: str) -> None:
    net, rng = grammar_net(attention), np.random.default_rng(0)
    run = net.by_position
    assert run is not None
    for length in (net.architecture.max_length, 3, 1, 5, 0):
        tokens = rng.integers(1, len(net.architecture.inputs), size=(7, length + net.architecture.pads))
        tokens[:, : net.architecture.pads] = 0
        tokens[0, -2:] = 0  # padding behind
        found = run(tokens)
        assert found is not None
        np.testing.assert_allclose(found, ordinary(net, tokens), rtol=0, atol=1e-13)


def test_ties_go_where_the_head_says() -> None:
    """Heads whose scores tie at several positions, to the left, to the right, or shared."""
    net, tokens = grammar_net("hard"), np.array([[0, 1, 2, 1, 1, 2]])
    arrays = {name: np.zeros(array.shape) if ".W_K" in name else array for name, array in net.arrays.items()}
    logits = []
    for ties in ("left", "right", "average"):
        blocks = [replace(b, heads=tuple(replace(h, ties=ties) for h in b.heads)) for b in net.architecture.blocks]
        tied = Weights(replace(net.architecture, blocks=tuple(blocks)), arrays)
        run = tied.by_position
        assert run is not None
        out = run(tokens)
        assert out is not None
        logits.append(out)
        np.testing.assert_allclose(logits[-1], ordinary(tied, tokens), rtol=0, atol=1e-12)
    assert not np.allclose(logits[0], logits[1])


def test_networks_whose_heads_read_tokens_have_no_such_run() -> None:
    assert build(Automaton.from_regex("(ab)*"), "star-free").by_position is None
    net = grammar_net()
    name = "blocks.0.attn.W_Q"
    query = sparse.dense(net.arrays[name]).copy()
    column = int(np.flatnonzero(np.ptp(sparse.dense(net.arrays["embed.W_E"])[1:], axis=0))[0])
    query[0, column, 0] = 1.0
    assert SparseForward.of(net.architecture, dict(net.arrays) | {name: query}) is None
    assert net.by_position is not None
    assert net.by_position(np.array([[0, 1, 0, 1]])) is None  # BOS inside
    assert net.by_position(np.array([[1, 1]])) is None  # no BOS in front
