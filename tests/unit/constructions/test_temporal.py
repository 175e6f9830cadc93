"""Temporal logic as transformers: exact, one attention layer per nested look back."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cases import each, each_then_slow
from formulas import random_formula
from vitrify.certification import certify, mutation_test
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.temporal import temporal
from vitrify.kit import assemble
from vitrify.spec.logic.ltl import Formula

ATTENTIONS: list[Attention] = ["softmax", "sparsemax", "hard"]


@pytest.mark.long
@each_then_slow("seed", range(12), range(12, 30))
def test_random_formulas_are_exact(seed: int) -> None:
    formula = random_formula(seed)
    evidence = certify(assemble(temporal(formula, attention=ATTENTIONS[seed % 3])), formula, max_length=6, work=1e7)
    assert evidence.verdict == "holds", (str(formula), evidence.witness)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500))
def test_500_random_formulas_are_exact(seed: int) -> None:
    formula = random_formula(1_000 + seed, letters="ab")
    for attention in ("softmax", "hard"):
        weights = assemble(temporal(formula, attention=attention))
        assert certify(weights, formula, max_length=8).verdict == "holds", str(formula)


@pytest.mark.long
@each_then_slow("seed", range(10), range(10, 30))
def test_there_is_one_attention_layer_per_nested_look_back(seed: int) -> None:
    plain, mixed = random_formula(seed, mod=False), random_formula(seed)
    assert assemble(temporal(plain, attention="hard")).sizes.attention_layers <= plain.depth
    assert assemble(temporal(mixed, attention="hard")).sizes.attention_layers <= mixed.depth + 1


def test_the_bound_is_reached() -> None:
    formula = Formula.from_text("alphabet: a b\nlength: 9\nO (a & Y (b & O (a & Y b)))")
    assert formula.depth == 4
    assert assemble(temporal(formula, attention="hard")).sizes.attention_layers == 4


def test_broken_nets_are_noticed() -> None:
    formula = Formula.from_text("alphabet: a b c\nlength: 12\n(!c S a) & Y (b | O c)")
    assert mutation_test(assemble(temporal(formula, attention="hard")), formula, count=60, seed=1).rate >= 0.95


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_the_program_says_what_the_formula_means(seed: int) -> None:
    formula = random_formula(seed)
    for length in (1, 3, 5):
        words = list(product(range(3), repeat=length))
        wanted = formula.holds(np.array(words))
        for word, row in zip(words, wanted.tolist(), strict=True):
            assert formula.program(["abc"[i] for i in word]) == row


@each("text", ["true", "O true | a", "(a S false) S !Y MOD(1, 3)", "!(a S (b & false)) & O a"])
@each("attention", ["softmax", "hard"])
def test_parts_that_are_always_so_need_no_net(text: str, attention: Attention) -> None:
    formula = Formula.from_text(f"alphabet: a b\nlength: 9\n{text}")
    assert certify(assemble(temporal(formula, attention=attention)), formula, max_length=7).verdict == "holds"


@pytest.mark.parametrize("text", ["!c S a", "O (a & O b)", "H (a | O b)"])
def test_hard_heads_need_no_positions(text: str) -> None:
    """They break ties instead, so that nothing grows with the length."""
    nets = [
        assemble(temporal(Formula.from_text(f"alphabet: a b c\nlength: {n}\n{text}"), attention="hard"))
        for n in (9, 300)
    ]
    assert not any(net.arrays["pos_embed.W_pos"].any() for net in nets)
    assert nets[0].sizes.max_abs == nets[1].sizes.max_abs
    assert nets[0].sizes.nonzero == nets[1].sizes.nonzero
