"""Specs at the edge: one letter, no letter, one position."""

from __future__ import annotations

import pytest

from vitrify.certify import certify
from vitrify.constructions.catalogue import Settings, build
from vitrify.spec.automata import cyclic
from vitrify.spec.automaton import Automaton
from vitrify.spec.ngram import NGramModel

Listed = dict[tuple[str, ...], tuple[float, float]]
HALF = -0.3010299956639812
NOTHING_TO_READ: Listed = {("<s>",): (-99.0, 0.0), ("</s>",): (0.0, 0.0)}
ONE_WORD: Listed = {("<s>",): (-99.0, 0.0), ("</s>",): (HALF, 0.0), ("a",): (HALF, 0.0)}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (NGramModel.from_ngrams(NOTHING_TO_READ), "all 1 words of length 0 to 0"),
        (NGramModel.from_ngrams(ONE_WORD), "all 1025 words of length 0 to 1024"),
        (cyclic(3, letters=1), "all 129 words of length 0 to 128"),
        (Automaton.from_regex("a*"), "all 129 words of length 0 to 128"),
    ],
)
def test_all_words_are_tried_however_few_letters_there_are(spec: object, words: str) -> None:
    evidence = certify(build(spec), spec)
    assert evidence.verdict == "holds"
    assert words in evidence.domain


def test_a_net_for_one_letter_is_examined_on_both_words() -> None:
    spec = Automaton.from_regex("ab")
    evidence = certify(build(spec, settings=Settings(max_length=1)), spec)
    assert evidence.verdict == "holds"
    assert "all 3 words of length 0 to 1" in evidence.domain
