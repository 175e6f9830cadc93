"""What may come next in a word of an automaton, against a search of all words."""

from __future__ import annotations

from itertools import islice, product

import numpy as np

from cases import each
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.legal import LegalWords
from vitrify.spec.ngrams.model import END

EXPRESSIONS = ("(ab|ba)*", "a*b", "abc", "(a|b)*", "a(ba)*c*", "ab*c|ba")


@each("expression", EXPRESSIONS)
def test_next_letters_begin_the_rest_of_a_word(expression: str) -> None:
    automaton = Automaton.from_regex(expression)
    letters = automaton.alphabet
    language = [word for length in range(9) for word in product(letters, repeat=length) if automaton.accepts(word)]
    legal = LegalWords(automaton)
    for length in range(4):
        for prefix in product(letters, repeat=length):
            longer = {word[length] for word in language if word[:length] == prefix and len(word) > length}
            ends = {END} if automaton.accepts(prefix) else set()
            assert legal.next_letters(prefix) == longer | ends
    prefixes = {word[:end] for word in language for end in range(min(len(word), 3) + 1)}
    assert [*map(len, legal.prefixes(3))] == sorted(map(len, prefixes))
    assert {*legal.prefixes(3)} == prefixes


@each("expression", EXPRESSIONS)
def test_examples_take_every_transition_and_draws_are_words(expression: str) -> None:
    automaton = Automaton.from_regex(expression)
    legal, rng = LegalWords(automaton), np.random.default_rng(0)
    examples = [tuple(word) for word in islice(legal.examples(), 1000)]
    drawn = [tuple(legal.draw(rng)) for _ in range(50)]
    assert all(automaton.accepts(word) for word in [*examples, *drawn])
    steps = {(automaton.run(word)[at], word[at]) for word in examples for at in range(len(word))}
    taken = {(automaton.run(word)[at], word[at]) for word in drawn for at in range(len(word))}
    assert taken <= steps
    assert len({*drawn}) > 1 or expression == "abc"


def test_an_empty_language_has_no_next_letter() -> None:
    nothing = Automaton.from_dict(
        states=["q"], alphabet=["a"], initial="q", accepting=[], transitions={"q": {"a": "q"}}
    )
    legal = LegalWords(nothing)
    assert legal.next_letters(()) == frozenset()
    assert list(legal.prefixes(3)) == [()]
    assert list(legal.examples()) == []
    assert list(legal.draw(np.random.default_rng(0))) == []
    assert legal.meaning().states is None
