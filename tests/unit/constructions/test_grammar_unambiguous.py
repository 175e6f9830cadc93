"""Nets of unambiguous grammars: exactly as many blocks as levels, exact sets, exact probabilities of hierarchies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

import numpy as np
import pytest

from cases import each
from next_words import answers, by_listing
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions._parses import Parses
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.grammar_unambiguous import Code, plane_sizes, proportional, sizes, unambiguous
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.inference import encode, log_probabilities, logits
from vitrify.net.spaces import Circle
from vitrify.net.weights import Weights
from vitrify.spec.grammars.families import random_grammar, random_hierarchy
from vitrify.spec.grammars.grammar import Grammar

KINDS: tuple[Attention, ...] = ("softmax", "sparsemax", "hard")


def with_shapes(least: int, most: int) -> Iterator[Grammar]:
    """Random unambiguous grammars with so many shapes."""
    for seed in count():
        grammar = random_grammar(seed, ambiguous=False, shapes=most)
        if grammar.leveled().count_shapes() >= least:
            yield grammar


SEVERAL = list(islice(with_shapes(2, 6), 10))


def sized(grammar: Grammar, attention: Attention, code: Code = "axes") -> Weights:
    weights = assemble(unambiguous(grammar, attention=attention, code=code))
    measured = weights.sizes
    assert not (sizes if code == "axes" else plane_sizes)(grammar).problems(measured)
    assert measured.layers == grammar.depth + 1  # exactly d, the end of the sentence included
    return weights


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(SEVERAL)))
def test_exact_sets_in_exactly_d_blocks(number: int) -> None:
    grammar = SEVERAL[number]
    expected = by_listing(grammar)
    for attention in KINDS:
        weights = sized(grammar, attention)
        assert answers(weights, list(expected)) == list(expected.values())
        assert weights.architecture.output.kind == "next"


HIERARCHIES = ((2, 2, 2, 2, 1), (5, 3, 2, 2, 1), (4, 3, 2, 2, 3), (3, 2, 3, 2, 1), (3, 2, 2, 3, 1))


def largest_error(grammar: Grammar, weights: Weights, sentences: list[tuple[str, ...]]) -> float:
    """Over every beginning of some sentences, the largest difference from the exact fractions of the charts."""
    net, worst = weights.architecture, 0.0
    for sentence, scores in zip(sentences, logits(weights, [encode(net, s) for s in sentences]), strict=True):
        found = np.exp(log_probabilities(net.output, scores))
        for row, chances in zip(found, grammar.next_word_probs_along(sentence), strict=True):
            expected = [float(chances.get(word, 0)) for word in net.output.symbols]
            worst = max(worst, float(np.abs(row - expected).max()))
    return worst


@pytest.mark.long
@each("code", ["axes", "circle"])
@each("number", range(len(HIERARCHIES)))
def test_hierarchies_are_predicted_exactly(number: int, code: Code) -> None:
    v, m, s, levels, classes = HIERARCHIES[number]
    grammar = random_hierarchy(v, m, s, levels, seed=number, classes=classes)
    weights = sized(grammar, KINDS[number % 3], code)
    assert weights.architecture.output.scores == "linear"
    assert largest_error(grammar, weights, list(grammar.sentences())) <= 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("attention", KINDS)
def test_a_large_hierarchy_on_all_beginnings(attention: Attention) -> None:
    grammar = random_hierarchy(8, 4, 2, 3, seed=0)
    distinct = {sentence[:-1]: sentence for sentence in grammar.sentences()}
    weights = sized(grammar, attention)
    assert largest_error(grammar, weights, list(distinct.values())) <= 1e-12


@each("labels", [2, 3, 4, 6, 8])
def test_states_in_planes(labels: int) -> None:
    """Two dimensions for the labels of each level, and the margin that a circle has."""
    grammar = random_hierarchy(labels, 2, 2, 2, seed=5, classes=min(labels, 3))
    weights = sized(grammar, "hard", "circle")
    states = [space for space in weights.labels.spaces if isinstance(space.kind, Circle) and "@" not in space.name]
    assert [space.name for space in states] == ["word", "complete 1.0", "complete 2.0", "complete 3.0"]
    for space in states:
        assert len(space.dims) == 2
        assert isinstance(space.kind, Circle)
        if len(space.kind.values) > 1:
            assert space.kind.gap == pytest.approx(1 - np.cos(2 * np.pi / len(space.kind.values)))
    rules = sum(units.stop - units.start for units in weights.labels.units if "complete" in units.name) // 2
    assert weights.sizes.units == assemble(unambiguous(grammar)).sizes.units + rules  # a ramp has two units


@pytest.mark.long
@pytest.mark.parametrize("code", ["axes", "circle"])
def test_temperatures_are_enough_and_the_proved_errors_hold(code: Code) -> None:
    grammar = random_hierarchy(4, 3, 2, 3, seed=2).plain()
    weights = assemble(unambiguous(grammar, code=code))
    assert certify(weights, grammar, work=1e8).verdict == "holds"
    assert all(0 < space.error < 0.25 for space in weights.labels.spaces if "@" in space.name)


@pytest.mark.parametrize("code", ["axes", "circle"])
def test_mutations_are_noticed(code: Code) -> None:
    """But one: all sentences have four words, so after four words the end comes, whatever else its unit asks for."""
    grammar = random_hierarchy(3, 2, 2, 2, seed=1).plain()
    weights = assemble(unambiguous(grammar, code=code))
    found = mutation_test(weights, grammar, count=60, seed=3, work=1e8)
    (last,) = (units for units in weights.labels.units if units.name == "and: next words")
    known = {f"blocks.{last.block}.mlp.b_in[{last.stop - 1}] zeroed"}  # the last unit is the end's
    assert {what for what, _ in found.survivors} <= known


def test_when_counts_are_probabilities() -> None:
    def counts(text: str) -> bool:
        grammar = Grammar.from_text(text)
        return proportional(grammar, Parses.of(grammar))

    assert counts("S -> A B [0.5] | B A [0.5]\nA -> 'a' [0.5] | 'b' [0.5]\nB -> 'c' [0.5] | 'd' [0.5]")
    assert not counts("S -> A B [0.5] | B A [0.5]\nA -> 'a' [0.5] | 'b' [0.5]\nB -> 'c' [0.4] | 'd' [0.6]")
    assert not counts("S -> A B [0.5] | B A [0.5]\nA -> 'a' [0.5] | 'b' [0.5]\nB -> 'c' [1.0]")
    assert not counts("S -> A A\nA -> 'a' | 'b'")
    assert not counts("S -> A A [0.5] | A [0.5]\nA -> 'a' [0.5] | 'b' [0.5]")  # two shapes
    assert sized(Grammar.from_text("S -> 'a' [0.3] | 'b' [0.7]"), "hard").architecture.output.kind == "next"


def test_refusals_name_a_witness() -> None:
    with pytest.raises(BuildRefused, match="but S derives 'b b' so: use --construction one-pass or shapes"):
        unambiguous(Grammar.from_text("S -> A A | B B\nA -> 'a' | 'b'\nB -> 'b' | 'c'"))
    both = Grammar.from_text("S -> A 'x' | B 'y'\nA -> 'a' | 'b'\nB -> 'b' | 'c'")
    sized(both, "softmax")
    with pytest.raises(
        BuildRefused, match="but A and B both derive 'b' in one shape of tree: use --construction unambiguous"
    ):
        unambiguous(both, code="circle")
    with pytest.raises(BuildRefused, match="--max-length must be at least that"):
        unambiguous(Grammar.from_text("S -> 'a' 'b'"), max_length=1)
