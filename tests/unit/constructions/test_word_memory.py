"""Word memory: one number per word, contexts told apart by one sum, units that interpolate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from built import ATTENTIONS
from cases import each
from vitrify.certification import certify
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.word_memory import projection, sizes, type_contexts, types, word_memory
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.spec.languages.word_patterns import WordPatterns, waking_up

AWOKE = WordPatterns.read(Path(__file__).parents[3] / "examples" / "awoke.patterns")
DISJOINT = WordPatterns.of({"A": "a b", "B": "c d e", "C": "f"}, ["A B C", "B A A", 'C "g" A B'])


@each("attention", ATTENTIONS)
@each("spec", [AWOKE, DISJOINT, waking_up(3)], ids=["awoke", "disjoint", "waking up"])
def test_it_is_right_and_as_large_as_the_formulas_say(spec: WordPatterns, attention: Attention) -> None:
    weights = assemble(word_memory(spec, attention=attention))
    assert certify(weights, spec).verdict == "holds"
    measured, promised = weights.sizes, sizes(spec)
    assert weights.labels.space("type").kind.size == 1
    assert not promised.problems(measured)


def test_disjoint_classes_cost_one_unit_less_than_there_are_contexts() -> None:
    for n in range(2, 8):
        assert sizes(DISJOINT, window=n).exact["units"] == len(DISJOINT.contexts(n)) - 1
    assert len(type_contexts(AWOKE, 5)) - 1 > len(AWOKE.contexts(5))


def test_types_and_their_contexts_by_hand() -> None:
    spec = WordPatterns.of({"A": "x y", "B": "y"}, ["A", "B B"])
    assert types(spec) == {frozenset({"A"}): 1, frozenset({"A", "B"}): 2}
    assert type_contexts(spec, 2) == {(0,): {"A", "B"}, (1,): {"</s>"}, (2,): {"</s>", "B"}}


def test_the_projection_tells_contexts_apart() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        contexts = np.unique(rng.integers(6, size=(40, 4)), axis=0)
        assert len(np.unique(contexts @ projection(contexts))) == len(contexts)


def test_refusals() -> None:
    with pytest.raises(BuildRefused, match=r"--window .* must be a whole number of at least 2"):
        word_memory(AWOKE, window=0)
    kinds = {name: [f"w{number}" for number in range(1, 64) if number >> bit & 1] for bit, name in enumerate("ABCDEF")}
    with pytest.raises(BuildRefused, match="use --construction classes"):
        word_memory(WordPatterns.of(kinds, ["A B C D", "E F"]), window=4)
