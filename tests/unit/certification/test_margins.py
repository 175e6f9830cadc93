"""Margins: proofs for all words at once agree with real runs, and damaged nets lose them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from audit_proofs import contradiction
from built import ATTENTIONS
from samples import ENTRIES, SAMPLES, built, own
from vitrify.certification.checking import certify
from vitrify.certification.margins.net import margins
from vitrify.certification.margins.proof import Proof
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.constructions.catalogue import build
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic, symmetric_group
from vitrify.spec.grammars.families import english
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.ngrams.families import pydoc_sentences, random_ngram
from vitrify.spec.ngrams.model import NGramModel

# Links may be proved without margins: bit by bit, by running all inputs, or by a lemma about the stored weights.
PROVED = [
    shape
    for shape, entry in ENTRIES.items()
    if entry.certified[0] == "to T"
    and not entry.unproved
    and shape not in ("turing-hybrid", "probabilistic-turing-rnn")
]
# What is not says why: numbers that only a language keeps in place, keys that only the task tells apart, weights that
# depend on what keys hold, answers that only words decide.
OPEN = [shape for shape, entry in ENTRIES.items() if entry.unproved]


def proof_of(weights: Weights[Any], spec: object) -> Proof:
    oracle = oracle_for(spec, weights.architecture)
    return margins(weights, language=oracle.language is not None, longest=oracle.longest)


@pytest.mark.long
@pytest.mark.parametrize("shape", PROVED)
def test_it_is_proved_and_real_runs_stay_inside(shape: str) -> None:
    entry = ENTRIES[shape]
    nets = ((spec, built(entry, spec, own(entry))) for spec in reversed(SAMPLES[entry.kind]))  # small ones come last
    spec, weights = next((spec, net) for spec, net in nets if net is not None)
    proof = proof_of(weights, spec)
    assert proof.holds, proof.reason
    inside(weights, spec, proof)


@pytest.mark.slow
@pytest.mark.parametrize("shape", PROVED)
def test_so_is_every_sample_under_every_attention(shape: str) -> None:
    entry = ENTRIES[shape]
    for attention in ATTENTIONS:
        for spec in SAMPLES[entry.kind]:
            weights = built(entry, spec, attention)
            if weights is None or (shape, attention) == ("single", "hard"):  # hard attention has no digits to read
                continue
            proof = proof_of(weights, spec)
            assert proof.holds, (attention, spec, proof.reason)
            inside(weights, spec, proof)


@pytest.mark.long
@pytest.mark.parametrize("shape", OPEN)
def test_what_is_not_proved_says_why(shape: str) -> None:
    entry = ENTRIES[shape]
    nets = ((spec, built(entry, spec, own(entry))) for spec in SAMPLES[entry.kind])
    spec, weights = next((spec, net) for spec, net in nets if net is not None)
    proof = proof_of(weights, spec)
    assert entry.unproved in (proof.reason or f"answers may be off by {proof.error}")


def inside(weights: Weights[Any], spec: object, proof: Proof) -> None:
    """Heads, spaces and answers of real runs are as they were proved to be."""
    net, rng = weights.architecture, np.random.default_rng(0)
    length = proof.max_length
    language = oracle_for(spec, net).language
    if language is None:
        lengths = [length, *rng.integers(1, length + 1, size=19).tolist()]
        words = [rng.integers(1, max(2, len(net.inputs)), size=n).tolist() for n in lengths]
    else:
        words = [language.draw(rng)[:length] for _ in range(20)]
    some = [np.array([word], dtype=np.int64) for word in (words if len(net.inputs) > 1 else [[]])]
    assert contradiction(weights, proof, some) is None


@pytest.mark.long
def test_long_words_are_proved() -> None:
    formula = Formula.from_text("alphabet: a b\nlength: 300\nb -> Y (a S b)")
    program = Crasp.from_text("alphabet: a b\nlength: 300\n#(#a < #b) = 0 & 2 * #a = #true & MOD(1, 2)")
    for spec, shape in [
        (cyclic(7), "commutative"),
        (cyclic(6), "cascade"),
        (formula, "temporal"),
        (program, "counting"),
    ]:
        proof = proof_of(net := build(spec, shape, attention="softmax", max_length=300), spec)
        assert proof.holds, proof.reason
        assert proof.max_length == net.architecture.max_length == 300
        assert proof.margin is not None
        assert proof.margin > 0.4


@pytest.fixture(scope="module")
def ngram() -> Weights[Any]:
    return build(random_ngram(3, 3, seed=1), "heads", attention="softmax", max_length=40)


def test_the_table_says_where_heads_look(ngram: Weights[Any]) -> None:
    proof = margins(ngram)
    assert [head.attends_to for head in proof.heads] == ["fixed weights", "1 back, else a pad"]
    gap = proof.heads[1].gap
    assert gap is not None
    beta = float(ngram.arrays["blocks.0.attn.beta"][1])
    assert gap == pytest.approx(beta * 1.0, rel=1e-6)  # the gap of the dyadic code
    assert proof.heads[1].leak == pytest.approx(40 * np.exp(-gap), rel=1e-6)


def test_a_softer_head_is_refused(ngram: Weights[Any]) -> None:
    beta = ngram.arrays["blocks.0.attn.beta"].copy()
    beta[1] /= 50
    proof = margins(ngram.with_array("blocks.0.attn.beta", beta))
    assert not proof.holds
    assert "may leak" in (proof.reason or "")


def test_one_wrong_position_far_out_is_found(ngram: Weights[Any]) -> None:
    table = np.array(ngram.arrays["pos_embed.W_pos"])
    table[[30, 31]] = table[[31, 30]]
    proof = margins(ngram.with_array("pos_embed.W_pos", table))
    assert not proof.holds
    assert "does not attend 1 back at position" in (proof.reason or "")


def test_a_wrong_order_of_matches_is_found() -> None:
    formula = Formula.from_text("alphabet: a b\nlength: 40\na S b")
    weights = build(formula, "temporal", attention="softmax", max_length=40)
    assert margins(weights).holds
    index = weights.labels.space("index")
    table = np.array(weights.arrays["pos_embed.W_pos"])
    table[33, index.dims[0]] += 1.6
    proof = margins(weights.with_array("pos_embed.W_pos", table))
    assert not proof.holds
    assert "last of equal matches" in (proof.reason or "")


def test_a_unit_that_writes_nonsense_is_found(ngram: Weights[Any]) -> None:
    program = build(cyclic(3), "log-depth", attention="softmax", max_length=40)
    assert margins(program).holds
    out = np.array(program.arrays["blocks.1.mlp.W_out"])
    row, column = np.argwhere(out != 0)[0]
    out[row, column] *= 1.5
    assert not margins(program.with_array("blocks.1.mlp.W_out", out)).holds
    strange = np.array(program.arrays["blocks.1.mlp.W_out"])
    strange[row, program.labels.space("bos").dims[0]] = 1.0
    proof = margins(program.with_array("blocks.1.mlp.W_out", strange))
    assert "no space is born" in (proof.reason or "")
    assert ngram.labels.spaces


def test_what_is_not_covered_says_so(ngram: Weights[Any]) -> None:
    net = replace(ngram.architecture, residual="concatenate", blocks=())
    arrays = {name: ngram.arrays[name] for name in ("embed.W_E", "pos_embed.W_pos", "unembed.W_U", "unembed.b_U")}
    proof = margins(Weights(net, arrays))
    assert not proof.holds
    assert "not worked out" in (proof.reason or "")


def test_a_proof_is_as_long_as_the_spec_says_and_not_as_a_file_records() -> None:
    grammar = Grammar.from_text("S -> 'a' B | 'b'\nB -> 'a' | 'a' 'b'")
    weights = build(grammar, "one-pass", max_length=6)
    assert weights.about["longest sentence"] == grammar.longest == 3
    for claimed in (0, 1, 99, "NaN", None):
        forged = replace(weights, about={"longest sentence": claimed})
        proof = certify(forged, grammar, prove=True).proof
        assert proof is not None
        assert (proof["holds"], proof["max_length"]) == (True, 3)
    shorter = build(grammar, "one-pass", max_length=3)
    assert margins(shorter, language=True, longest=99).max_length == 3


@pytest.mark.slow
def test_real_sizes_are_proved() -> None:
    grammar = english()
    proof = proof_of(build(grammar), grammar)
    assert proof.holds, proof.reason
    assert len(grammar.rules) > 300
    model = NGramModel.fit(pydoc_sentences(), 5)
    proof = margins(build(model))
    assert proof.holds, proof.reason
    assert proof.max_length == 1024
    assert proof.error is not None
    assert proof.error < 1e-8
    proof = margins(build(symmetric_group(5), "log-depth", attention="softmax", max_length=1000))
    assert proof.holds, proof.reason
