"""One-pass grammar nets: exact sets of next words at the stated size, in at most 2d - 1 layers."""

from __future__ import annotations

import pytest

from cases import rest_slow
from next_words import answers, by_listing
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.certification.reading.probes import streams
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.grammar_one_pass import one_pass, sizes
from vitrify.constructions.grammar_shapes import grammar_shapes, most_conjunctions
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.inference import batch_of, encode
from vitrify.net.spaces import MultiHot
from vitrify.net.weights import Weights
from vitrify.spec.grammars.families import random_grammar, random_hierarchy
from vitrify.spec.grammars.grammar import END, Grammar

KINDS: tuple[Attention, ...] = ("softmax", "sparsemax", "hard")
AMBIGUOUS = "S -> A A | B\nA -> 'a' | 'a' 'a'\nB -> 'a' 'a' 'b' | A 'b'"


def check(grammar: Grammar, attention: Attention) -> Weights:
    weights = assemble(one_pass(grammar, attention=attention))
    expected = by_listing(grammar)
    beginnings = list(expected)
    assert answers(weights, beginnings) == [expected[words] for words in beginnings]
    promised, measured = sizes(grammar), weights.sizes
    assert not promised.problems(measured)
    assert promised.at_most["layers"] == 2 * weights.about["depth"] - 1
    assert measured.layers <= assemble(grammar_shapes(grammar)).sizes.layers
    rows = [row for units in weights.labels.units if units.name.startswith("and: ") for row in units.unit_names]
    up, down = most_conjunctions(grammar.leveled().with_end().shapes())
    assert sum(not row.endswith("(cut)") for row in rows) <= up + (len(grammar.vocabulary) + 1) * down
    return weights


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_slow(range(30), first=12))
def test_no_word_is_missing_and_none_too_many(seed: int) -> None:
    check(random_grammar(seed, shapes=42), KINDS[seed % 3])


@pytest.mark.long
@pytest.mark.parametrize("attention", KINDS)
def test_hand_written_ones(attention: Attention) -> None:
    for text in (AMBIGUOUS, "S -> 'a'", "S -> 'a' | 'b'", "S -> 'a' 'b' 'a'"):
        grammar = Grammar.from_text(text)
        assert certify(check(grammar, attention), grammar, work=1e7).verdict == "holds"


@pytest.mark.long
def test_soft_attention_is_exact_after_the_thresholds_and_wrong_when_far_too_soft() -> None:
    grammar = random_grammar(4, shapes=42)
    weights = assemble(one_pass(grammar))
    expected = by_listing(grammar)
    sentences = [words for words in expected if END in expected[words]]
    tokens, _ = batch_of(weights.architecture, [encode(weights.architecture, words) for words in sentences])
    moments = list(streams(weights, tokens).values())
    bits = [space for space in weights.labels.spaces if isinstance(space.kind, MultiHot) and space.born > 0]
    restored = [space for space in bits if "@" not in space.name]
    assert len(restored) > 10
    for space in bits:
        far = space.kind.deviation(moments[space.born][:, :, list(space.dims)]).max()
        assert far <= (1e-14 if space in restored else space.error)
    soft = weights
    for block in range(len(weights.architecture.blocks)):
        name = f"blocks.{block}.attn.beta"
        if name in weights.arrays:
            soft = soft.with_array(name, weights.arrays[name] / 8)
    assert answers(soft, list(expected)) != list(expected.values())


@pytest.mark.long
def test_mutations_are_noticed() -> None:
    grammar = random_hierarchy(3, 2, 2, 2, seed=1)
    found = mutation_test(assemble(one_pass(grammar)), grammar, count=100, seed=3, work=1e8)
    assert found.rate >= 0.99, found.survivors


def test_refusals() -> None:
    with pytest.raises(BuildRefused, match="--max-length must be at least that"):
        one_pass(Grammar.from_text("S -> 'a' 'b'"), max_length=1)
    with pytest.raises(BuildRefused, match="more than 2"):
        one_pass(random_grammar(4, shapes=42), limit=2)
