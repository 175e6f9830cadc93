"""What may come next in a word of an automaton, against a search of all words."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice, product
from math import exp, inf

import numpy as np
import pytest

from cases import each
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.net.example_files import LabeledExample
from vitrify.net.scoring import score
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


def words_to(automaton: Automaton, longest: int) -> list[tuple[str, ...]]:
    letters = automaton.alphabet
    return [w for length in range(longest + 1) for w in product(letters, repeat=length) if automaton.accepts(w)]


def edits(word: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return the edit distance of two words, by the table of all their prefixes."""
    row: list[int] = [*range(len(other) + 1)]
    for place, letter in enumerate(word, start=1):
        above = row
        row = [place]
        for end, own in enumerate(other, start=1):
            row.append(min(above[end] + 1, row[-1] + 1, above[end - 1] + (letter != own)))
    return row[-1]


@each("expression", EXPRESSIONS)
def test_edit_distances_are_the_least_over_all_words(expression: str) -> None:
    automaton = Automaton.from_regex(expression)
    language = words_to(automaton, 8)
    for length in range(5):
        for word in product(automaton.alphabet, repeat=length):
            assert automaton.words.edit_distance(word) == min(edits(word, other) for other in language)
    nothing = Automaton.explore(0, ("a",), lambda state, _: state, lambda _: False)
    assert nothing.words.edit_distance(("a",)) is None
    with pytest.raises(InputError, match="no word is accepted"):
        nothing.words.language_model()


@each("expression", EXPRESSIONS)
def test_a_language_model_gives_weights_to_what_keeps_a_word_completable(expression: str) -> None:
    automaton = Automaton.from_regex(expression)
    weights = {automaton.alphabet[0]: 3.0, END: 0.5}
    for given in ({}, weights):
        model = automaton.words.language_model(given)
        rows = []
        for word in words_to(automaton, 5):
            expected, share = Fraction(1), []
            for end in range(len(word) + 1):
                legal = automaton.words.next_letters(word[:end])
                total = sum(Fraction(given.get(symbol, 1)) for symbol in legal)
                share.append({symbol: float(Fraction(given.get(symbol, 1)) / total) for symbol in legal})
                expected *= Fraction(given.get((*word, END)[end], 1)) / total
            assert model.probability(word) == pytest.approx(float(expected), rel=1e-12)
            rows.append(LabeledExample(str(word), word, {"next": share}))
            rows.append(LabeledExample(str(word), word, {"next": [frozenset(each) for each in share]}))
        net = build(model, "letters-elman")
        assert score(net, rows, tolerance=1e-12).agrees
        wrong = [LabeledExample("wrong", (), {"next": frozenset({"z"})})]
        assert not score(net, wrong).agrees
    with pytest.raises(InputError, match="weights must be numbers"):
        automaton.words.language_model({"z": 1})
    with pytest.raises(InputError, match="has the weight 0"):
        automaton.words.language_model(dict.fromkeys((*automaton.alphabet, END), 0))


@each("expression", EXPRESSIONS)
def test_a_law_of_lengths_shares_out_each_length_among_its_words(expression: str) -> None:
    automaton = Automaton.from_regex(expression)
    lengths, weights = {1: 0.25, 2: 0.25, 3: 0.125, 4: 0.375}, {automaton.alphabet[0]: 2.5}
    for length, law in lengths.items():
        words = [word for word in words_to(automaton, length) if len(word) == length]
        each_ = [exp(automaton.words.log_prob(word, lengths, weights)) for word in words]
        assert sum(each_) == pytest.approx(law if words else 0)
        for word, p in zip(words, each_, strict=True):
            ratio = 2.5 ** (word.count(automaton.alphabet[0]) - words[0].count(automaton.alphabet[0]))
            assert p == pytest.approx(each_[0] * ratio)
    assert automaton.words.log_prob(automaton.alphabet * 9, lengths) == -inf
