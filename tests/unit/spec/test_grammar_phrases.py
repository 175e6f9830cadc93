"""Grammars as phrases: the same sentences, without rules of one symbol, and with their end."""

from __future__ import annotations

from itertools import product

import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec.grammars.families import english, random_grammar
from vitrify.spec.grammars.grammar import END, Grammar
from vitrify.spec.grammars.phrases import Phrases


def strings(phrases: Phrases) -> list[set[tuple[str, ...]]]:
    """What each phrase can be, by listing."""
    found: list[set[tuple[str, ...]]] = []
    for phrase in phrases.listed:
        mine: set[tuple[str, ...]] = {(word,) for word in phrase.words}
        for side in phrase.sides:
            mine |= {sum(parts, ()) for parts in product(*(found[part] for part in side))}
        found.append(mine)
    return found


@each("seed", range(12))
def test_the_sentences_are_the_same_and_so_are_widths_and_first_words(seed: int) -> None:
    grammar = random_grammar(seed, largest=400)
    phrases = Phrases.of(grammar)
    found = strings(phrases)
    assert found[phrases.start] == {(*sentence, END) for sentence in grammar.sentences()}
    for number, phrase in enumerate(phrases.listed):
        assert phrase.words or phrase.sides
        assert all(len(side) > 1 and max(side) < number for side in phrase.sides)
        assert set(phrases.widths[number]) == {len(words) for words in found[number]}
        assert phrases.first_words[number] == {words[0] for words in found[number]}
    assert phrases.longest == max(grammar.lengths())
    assert max(phrases.heights) == phrases.heights[phrases.start] <= grammar.depth


def test_what_says_the_same_is_one_phrase() -> None:
    phrases = Phrases.of(
        Grammar.from_text("S -> A 'x' | B 'x' | 'x' A\nA -> C\nB -> 'a' | 'b' 'a'\nC -> 'b' 'a' | 'a'")
    )
    assert str(phrases) == "C: 'a' | 'b' 'a'\nS </s>: C 'x' </s> | 'x' C </s>"


def test_only_phrases_that_something_may_follow_are_recognised_as_wholes() -> None:
    phrases = Phrases.of(english())
    whole = {phrases.listed[number].name for number in phrases.complete}
    assert {"NPs^6", "NP^5", "'that'", "Name"} <= whole
    assert not any(name.endswith(END) for name in whole)
    assert not {"S^7", "VPs^6", "S^5"} & {phrase.name for phrase in phrases.listed}
    assert {"S^7 </s>", "VPs^6 </s>", "S^5 </s>"} <= {phrase.name for phrase in phrases.listed}


def test_words_at_the_end_of_a_phrase_that_nothing_follows() -> None:
    phrases = Phrases.of(Grammar.from_text("S -> 'a' V\nV -> 'b' | 'c' | 'b' 'a'"))
    assert str(phrases).splitlines() == ["V~1: 'b' 'c'", "V </s>: 'b' 'a' </s> | V~1 </s>", "S </s>: 'a' V </s>"]


def test_recursive_grammars_are_refused() -> None:
    with pytest.raises(SpecError, match="S → S leads back to itself"):
        Phrases.of(Grammar.from_text("S -> 'a' S | 'b'"))
