"""Hierarchies as convolutional networks: exact on every string, one channel per rule."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from built import rooted
from cases import each
from vitrify.certification import certify, mutation_test
from vitrify.constructions.catalogue import build
from vitrify.constructions.hierarchy import hierarchy_cnn, sizes
from vitrify.errors import BuildRefused
from vitrify.net.conv import symbol_planes
from vitrify.net.inference import outputs
from vitrify.spec.grammars.families import random_hierarchy
from vitrify.spec.grammars.grammar import Grammar

FIVE = [(3, 2, 2, 3, 3), (2, 2, 2, 3, 2), (4, 2, 3, 2, 4), (5, 1, 2, 3, 2), (3, 3, 2, 2, 1)]


@each(("v", "m", "s", "L", "classes"), FIVE)
def test_the_root_of_every_sentence_and_no_other(v: int, m: int, s: int, L: int, classes: int) -> None:
    """Sentences with their roots come from the grammar's own listing of what each root derives."""
    grammar = random_hierarchy(v, m, s, L, seed=2, classes=classes)
    weights = hierarchy_cnn(grammar)
    net = weights.architecture
    roots = {sentence: name for name in net.output.symbols[:-1] for sentence in rooted(grammar, name).sentences()}
    rng = np.random.default_rng(0)
    strings = list(product(net.symbols, repeat=net.columns)) if v**net.columns < 7000 else list(roots)
    strings = [
        strings[i] for i in sorted(rng.choice(len(strings), size=min(len(strings), 2000), replace=False).tolist())
    ]
    found = outputs(weights, symbol_planes(net, strings))
    for string, row in zip(strings, found, strict=True):
        wanted = [float(roots.get(string) == name) for name in net.output.symbols[:-1]]
        assert row.tolist() == [*wanted, 0.5]
    assert certify(weights, grammar).verdict == "holds"


def test_sizes_are_those_of_the_rules() -> None:
    grammar = random_hierarchy(8, 3, 2, 3, seed=8, classes=8)
    net = hierarchy_cnn(grammar).architecture
    assert [layer.channels for layer in net.convolutions] == [24, 24, 24]
    assert sizes(grammar).exact["units_per_layer"] == (24, 24, 24)
    assert {layer.kernel for layer in net.convolutions} == {layer.stride for layer in net.convolutions} == {(1, 2)}


def test_every_channel_is_named_after_its_rule() -> None:
    weights = hierarchy_cnn(random_hierarchy(3, 2, 2, 2, seed=0, classes=2))
    assert [len(label.unit_names) for label in weights.labels.units] == [6, 4]
    assert weights.labels.units[0].unit_names[0].startswith("L1_0 -> '")


def test_other_grammars_and_lengths_are_refused() -> None:
    with pytest.raises(BuildRefused, match="no hierarchy"):
        build(Grammar.from_text("S -> 'a' 'b' | 'a'"), "cnn")
    with pytest.raises(BuildRefused, match="leave --max-length out"):
        build(random_hierarchy(2, 1, 2, 2, seed=0), "cnn", max_length=9)


def test_mutations_are_noticed() -> None:
    grammar = random_hierarchy(6, 3, 2, 3, seed=0, classes=4)
    assert mutation_test(hierarchy_cnn(grammar), grammar, count=200).rate == 1.0


def test_a_model_without_other_strings_needs_no_answer_for_them() -> None:
    """All tuples are legal here, so nothing tells the constant of `(none)`: the only mutation that survives."""
    grammar = random_hierarchy(2, 2, 2, 3, seed=0, classes=2)
    found = mutation_test(hierarchy_cnn(grammar), grammar, count=300)
    assert {what for what, _ in found.survivors} == {"unembed.b_U[2] zeroed"}
