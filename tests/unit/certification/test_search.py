"""Attacks by words: a fault that one word in a hundred thousand shows is found, and certified nets stand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from audit_nets import NETS, subject
from built import all_words
from cases import each
from vitrify.certification import certify
from vitrify.certification.attacks.words import Attack, attack_words
from vitrify.certification.checking import SLACK
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.evidence import Quantity
from vitrify.certification.margins.net import proof_of
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.net.inference import batch_logits
from vitrify.net.weights import Weights
from vitrify.report import wording
from vitrify.spec.automata.families import cyclic
from vitrify.spec.geometry.maxout import zigzag
from vitrify.spec.logic.ltl import Formula

LENGTH = 17
WORDS = 2**LENGTH  # one of which shows the fault: more than 10⁵
SEEDS = range(8)
FEW = 4_000  # evaluations that the search gets; random words would take about WORDS


def soft_head() -> tuple[object, Weights[Any]]:
    """`a S b` with a head that is ten times too soft: a `b` at the very beginning is lost among many a's."""
    formula = Formula.from_text(f"alphabet: a b\nlength: {LENGTH}\na S b")
    net = build(formula, "temporal", attention="softmax", max_length=LENGTH)
    return formula, net.with_array("blocks.0.attn.beta", net.arrays["blocks.0.attn.beta"] / 10)


def lost_unit() -> tuple[object, Weights[Any]]:
    """Counting modulo 3 without the unit that only a count of 17 uses."""
    spec = cyclic(3)
    net = build(spec, "commutative", attention="softmax", max_length=LENGTH)
    out = np.array(net.arrays["blocks.0.mlp.W_out"])
    out[int(np.argsort(net.arrays["blocks.0.mlp.b_in"])[1])] = 0.0
    return spec, net.with_array("blocks.0.mlp.W_out", out)


PLANTED = {"soft head": soft_head, "lost unit": lost_unit}


@cache
def planted(fault: str) -> tuple[WordCheck, Weights[Any]]:
    spec, net = PLANTED[fault]()
    return WordCheck(net.architecture, spec, max_length=1, work=1e6), net


@pytest.mark.slow
@pytest.mark.parametrize("fault", PLANTED)
def test_exactly_one_word_shows_the_fault(fault: str) -> None:
    questions, net = planted(fault)
    words, wrong = all_words(2, LENGTH), 0
    for at in range(0, WORDS, 1 << 12):
        some = words[at : at + (1 << 12)]
        tokens = np.concatenate([np.zeros((len(some), 1), dtype=np.int64), some], axis=1)
        errors = questions.oracle.errors(some, batch_logits(net, tokens))
        wrong += int((errors > questions.oracle.tolerance()).any(axis=1).sum())
    assert wrong == 1


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_that_one_word_in_131072_shows_is_found(fault: str) -> None:
    questions, net = planted(fault)
    found = [attack_words(net, questions, FEW, seed) for seed in SEEDS]
    assert all(attack.witness is not None for attack in found)
    assert max(attack.tried for attack in found) <= FEW < WORDS / 30
    assert all(len(attack.word) == LENGTH and attack.margin < 0 for attack in found)


@pytest.mark.long
@pytest.mark.parametrize("fault", PLANTED)
def test_random_words_do_not_find_it(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the search is compared with: as many words, all of them new."""
    questions, net = planted(fault)
    monkeypatch.setattr("vitrify.certification.attacks.words._Search.next", lambda search, count: search.fresh(count))
    found = [attack_words(net, questions, FEW, seed) for seed in SEEDS]
    assert [attack.tried for attack in found] == [FEW] * len(SEEDS)
    assert all(attack.witness is None for attack in found)


STRONG = (
    *("Z3, commutative", "Z3, cascade", "some a, cascade, hard", "Z3, log depth", "some a, log depth, sparse"),
    *("formula", "formula, hard", "counting program", "reversal", "balance, causal", "brackets, recognizer"),
    *("circuit", "Turing machine", "associations"),
)


@pytest.mark.long
@each("name", STRONG)
def test_certified_nets_stand_and_lead_by_what_was_proved(name: str) -> None:
    it = subject(name)
    questions = WordCheck(it.weights.architecture, it.spec, max_length=1, work=1e6)
    proof = proof_of(it.weights, questions.oracle)
    assert proof.holds
    assert proof.margin is not None
    found = attack_words(it.weights, questions, 500)
    assert found.witness is None
    assert found.tried == 500
    assert np.isfinite(found.margin)
    assert found.margin >= proof.margin * (1 - SLACK)


@each("name", sorted(set(NETS) - set(STRONG) - {"matches", "grammar, one pass"}))
def test_so_do_those_without_a_proved_lead(name: str) -> None:
    it = subject(name)
    questions = WordCheck(it.weights.architecture, it.spec, max_length=1, work=1e6)
    found = attack_words(it.weights, questions, 100)
    assert found.witness is None
    assert found.margin > 0


def test_the_margin_is_that_of_the_word() -> None:
    """Run again by itself, the word that was found has the margin that was found."""
    it = subject("reversal")
    questions = WordCheck(it.weights.architecture, it.spec, max_length=1, work=1e6)
    found = attack_words(it.weights, questions, 300, seed=3)
    net = it.weights.architecture
    tokens = np.array([[0] + [net.inputs.index(letter) for letter in found.word]])
    logits = np.sort(batch_logits(it.weights, tokens)[0, 1:], axis=-1)
    assert found.margin == pytest.approx(float((logits[:, -1] - logits[:, -2]).min()), abs=1e-12)
    assert found == attack_words(it.weights, questions, 300, seed=3)


def test_certify_fails_with_the_word_as_its_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    """The formula's own labels give the soft head away; without them the steps of the spec, or the attack."""
    spec, net = soft_head()
    bare = replace(net, labels=replace(net.labels, heads=(), spaces=()))
    assert certify(bare, spec, max_length=4, samples=4).verdict == "fails"
    monkeypatch.setattr(WordCheck, "coverage", None)
    assert certify(bare, spec, max_length=4, samples=4).verdict == "holds"
    found = certify(bare, spec, max_length=4, samples=4, attack=20_000)
    assert found.verdict == "fails"
    assert found.witness is not None
    assert list(found.witness["word"]) == ["b", *"a" * (LENGTH - 1)]
    assert found.measured("smallest margin that the attack found") < 0


def test_a_lead_below_the_proved_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    it = subject("formula")
    found = certify(it.weights, it.spec, prove=True, attack=200)
    assert found.verdict == "holds"
    assert found.measured("words tried by the attack") == 200
    assert found.measured("smallest margin that the attack found") == 1
    assert set(found.measured("word with the smallest margin")) <= {"a", "b"}
    assert found.proof is not None
    weak = Attack(200, found.proof["margin"] / 2, ("a", "b"))
    monkeypatch.setattr("vitrify.certification.checking.attack_words", lambda *_: weak)
    found = certify(it.weights, it.spec, prove=True, attack=200)
    assert found.verdict == "fails"
    assert found.witness == {"word": ["a", "b"], "expected": "the proved margin of 1", "actual": weak.margin}


def test_only_nets_that_read_words_are_attacked_by_words() -> None:
    spec = zigzag(2, 1)
    with pytest.raises(InputError, match="leave --attack out"):
        certify(build(spec), spec, attack=10)


def test_long_words_are_cut_where_they_are_shown() -> None:
    name = "word with the smallest margin"
    assert wording.quantity(Quantity(name, ("a", "b")))[1] == "a, b"
    assert wording.quantity(Quantity(name, ("a",) * 40))[1].endswith("a, … (40 in all)")
