"""Temporal logic as transformers: exact, one attention layer per nested look back."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cases import each, each_then_slow
from formulas import random_formula
from vitrify.certification import certify, mutation_test
from vitrify.certification.evidence import Scope
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.temporal import sizes, temporal
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.transformer import Head
from vitrify.spec.logic.ltl import Formula, Node

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
    for attention in ATTENTIONS:
        result = mutation_test(assemble(temporal(formula, attention=attention)), formula, count=60, seed=1)
        assert result.rate >= 0.85
        assert all(reason.startswith("no answer on the whole domain moves") for _, reason in result.survivors)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_the_program_says_what_the_formula_means(seed: int) -> None:
    formula = random_formula(seed)
    for length in (1, 3, 5):
        words = list(product(range(3), repeat=length))
        wanted = formula.holds(np.array(words))
        for word, row in zip(words, wanted.tolist(), strict=True):
            assert formula.program(["abc"[i] for i in word]) == row


@each("text", ["true", "O true | a", "(a S false) S !Y MOD(1, 3)", "!(a S (b & false)) & O a", "a S AT(2, 5)"])
@each("attention", ["softmax", "hard"])
def test_parts_that_are_always_so_need_no_net(text: str, attention: Attention) -> None:
    formula = Formula.from_text(f"alphabet: a b\nlength: 9\n{text}")
    assert certify(assemble(temporal(formula, attention=attention)), formula, max_length=7).verdict == "holds"


@pytest.mark.parametrize("text", ["!c S a", "O (a & O b)", "H (a | Y b)", "Y Y a", "Y (!c S a) <-> b"])
def test_hard_heads_need_no_positions(text: str) -> None:
    """They break ties instead, so that every array but the empty table of positions has the same bytes."""
    formula = Formula.from_text(f"alphabet: a b c\nlength: 9\n{text}")
    nets = [assemble(temporal(formula, attention="hard", max_length=length)) for length in (9, 300)]
    assert not any(net.arrays["pos_embed.W_pos"].any() for net in nets)
    short, long = ({name: array.tobytes() for name, array in net.arrays.items() if "pos" not in name} for net in nets)
    assert short == long


@each("seed", range(40))
def test_the_sizes_of_hard_nets_follow_from_the_formula(seed: int) -> None:
    formula = random_formula(seed, mod=seed % 2 > 0)
    net = assemble(temporal(formula, attention="hard"))
    declared = sizes(formula, attention="hard")
    assert not declared.problems(net.sizes), str(formula)
    assert set(declared.exact) == {"heads", "attention_layers", "layers", "units", "d_model"}
    assert net.sizes.heads <= formula.operators
    assert net.sizes.attention_layers <= formula.depth
    assert all(head == Head("hard", "strict", None, "right", 0.5) for b in net.architecture.blocks for head in b.heads)


def test_yesterday_of_since_is_one_strict_head() -> None:
    for text, heads, layers in (("a S b", 1, 1), ("Y (a S b)", 1, 1), ("Y a & Y (a S b)", 2, 1), ("Y H a", 2, 2)):
        formula = Formula.from_text(f"alphabet: a b\nlength: 9\n{text}")
        net = assemble(temporal(formula, attention="hard"))
        assert (net.sizes.heads, net.sizes.attention_layers) == (heads, layers)


@each_then_slow("seed", range(12), range(12, 100))
def test_hard_nets_are_proved_bit_by_bit_for_every_length(seed: int) -> None:
    formula = random_formula(seed)
    evidence = certify(assemble(temporal(formula, attention="hard")), formula, max_length=4, prove=True)
    assert [link.scope for link in evidence.links] == [Scope.EVERY_LENGTH] * 2, str(formula)
    assert evidence.proof is not None
    assert evidence.proof["holds"], "and the margins of all words to length 12"


def test_operators_inside_each_other_hundreds_deep_are_refused() -> None:
    formula = Formula.from_text(f"alphabet: a b\nlength: 9\n{'a S (b & ' * 90}a{')' * 90}")
    deep = replace(formula, node=_nested(formula.node, 20))
    with pytest.raises(BuildRefused, match="hundreds of operators"):
        temporal(deep, attention="hard")


def _nested(node: Node, times: int) -> Node:
    for _ in range(times * 90):
        node = ("O", ("and", node, ("letter", "a")))
    return node
