"""Grammar nets: the exact set of next words after every beginning of every sentence, at the stated size."""

from __future__ import annotations

import pytest

from cases import rest_slow
from next_words import answers, by_listing
from vitrify.certification import certify
from vitrify.claims.bounded_depth_grammars_run_in_linear_depth import conjunctions
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.grammar_shapes import complete, grammar_shapes, last_symbols, most_conjunctions, sizes
from vitrify.errors import BuildRefused, SpecError
from vitrify.kit import assemble
from vitrify.net.inference import trace
from vitrify.net.weights import Weights
from vitrify.spec.grammars.families import random_grammar, random_hierarchy
from vitrify.spec.grammars.grammar import Grammar

KINDS: tuple[Attention, ...] = ("softmax", "sparsemax", "hard")
AMBIGUOUS = "S -> A A | B\nA -> 'a' | 'a' 'a'\nB -> 'a' 'a' 'b' | A 'b'"


def check(grammar: Grammar, attention: Attention) -> Weights:
    weights = assemble(grammar_shapes(grammar, attention=attention))
    expected = by_listing(grammar)
    beginnings = list(expected)
    assert answers(weights, beginnings) == [expected[words] for words in beginnings]
    assert len(conjunctions(weights)) <= sum(most_conjunctions(grammar.leveled().with_end().shapes()))
    assert not sizes(grammar).problems(weights.sizes)
    return weights


@pytest.mark.long
@pytest.mark.parametrize("seed", rest_slow(range(30), first=12))
def test_no_word_is_missing_and_none_too_many(seed: int) -> None:
    check(random_grammar(seed, shapes=42), KINDS[seed % 3])


@pytest.mark.parametrize("attention", KINDS)
def test_a_random_hierarchy(attention: Attention) -> None:
    check(random_hierarchy(3, 2, 2, 3, seed=1), attention)


@pytest.mark.parametrize("attention", KINDS)
def test_an_ambiguous_grammar_with_sentences_of_unequal_length(attention: Attention) -> None:
    weights = check(Grammar.from_text(AMBIGUOUS), attention)
    assert certify(weights, Grammar.from_text(AMBIGUOUS)).verdict == "holds"


def test_smallest_grammars() -> None:
    for text in ("S -> 'a'", "S -> 'a' | 'b'", "S -> 'a' 'b' 'a'"):
        check(Grammar.from_text(text), "softmax")


def test_states_can_be_read_by_name() -> None:
    grammar = Grammar.from_text("S -> NP VP\nNP -> 'the' N\nN -> 'dog' | 'cat'\nVP -> 'sleeps'")
    weights = check(grammar, "softmax")
    run = trace(weights, ["the", "dog"])
    shapes = grammar.leveled().with_end().shapes()
    noun_phrase = next(space.name for space in weights.labels.spaces if getattr(space.kind, "values", ()) == ("NP",))
    assert run.space(noun_phrase)[:, 0].round(6).tolist() == [0.0, 0.0, 1.0]
    assert all(level < shapes.levels.depth for level, _ in complete(shapes))
    assert last_symbols(shapes)[-1] == {0}


def test_refusals() -> None:
    with pytest.raises(SpecError, match="S → S leads back to itself"):
        grammar_shapes(Grammar.from_text("S -> 'a' S | 'b'"))
    with pytest.raises(BuildRefused, match="--max-length must be at least that"):
        grammar_shapes(Grammar.from_text("S -> 'a' 'b'"), max_length=1)
    with pytest.raises(BuildRefused, match="more than 2"):
        grammar_shapes(random_grammar(4, shapes=42), limit=2)


def test_a_recursive_grammar_can_be_cut() -> None:
    check(Grammar.from_text("S -> 'a' S | 'b'").cut(4), "hard")
