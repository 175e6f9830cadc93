"""Word memory: one number per word, contexts told apart by one sum, units that interpolate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from built import ATTENTIONS
from vitrify.certify import certify
from vitrify.constructions.word_memory import projection, sizes, type_contexts, types, word_memory
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net import Ledger
from vitrify.net.transformer import AttentionKind
from vitrify.spec.patterns import WordPatterns
from vitrify.spec.word_languages import waking_up

AWOKE = WordPatterns.read(Path(__file__).parents[3] / "examples" / "awoke.patterns")
DISJOINT = WordPatterns.of({"A": "a b", "B": "c d e", "C": "f"}, ["A B C", "B A A", 'C "g" A B'])


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("spec", [AWOKE, DISJOINT, waking_up(3)], ids=["awoke", "disjoint", "waking up"])
def test_it_is_right_and_as_large_as_the_formulas_say(spec: WordPatterns, attention: AttentionKind) -> None:
    weights = assemble(word_memory(spec, attention=attention))
    assert certify(weights, spec).verdict == "holds"
    ledger, promised = Ledger.of(weights), sizes(spec, spec.window())
    assert weights.labels.space("type").kind.size == promised["embedding"] == 1
    assert (ledger.heads, ledger.units) == (promised["heads"], promised["units"])


def test_disjoint_classes_cost_one_unit_less_than_there_are_contexts() -> None:
    for n in range(2, 8):
        assert sizes(DISJOINT, n)["units"] == len(DISJOINT.contexts(n)) - 1
    assert sizes(AWOKE, 5)["units"] > len(AWOKE.contexts(5))


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
    with pytest.raises(BuildRefused, match="--window must be at least 2"):
        word_memory(AWOKE, window=0)
    kinds = {name: [f"w{number}" for number in range(1, 64) if number >> bit & 1] for bit, name in enumerate("ABCDEF")}
    with pytest.raises(BuildRefused, match="use --shape classes"):
        word_memory(WordPatterns.of(kinds, ["A B C D", "E F"]), window=4)
