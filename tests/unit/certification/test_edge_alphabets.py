"""Specs at the edge: one letter, no letter, one position."""

from __future__ import annotations

import pytest

from cases import each
from vitrify.certification import Domain, Method, certify
from vitrify.constructions.catalogue import build
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic
from vitrify.spec.ngrams.model import NGramModel

Listed = dict[tuple[str, ...], tuple[float, float]]
HALF = -0.3010299956639812
NOTHING_TO_READ: Listed = {("<s>",): (-99.0, 0.0), ("</s>",): (0.0, 0.0)}
ONE_WORD: Listed = {("<s>",): (-99.0, 0.0), ("</s>",): (HALF, 0.0), ("a",): (HALF, 0.0)}


@pytest.mark.long
@each(
    ("spec", "words"),
    [
        (NGramModel.from_ngrams(NOTHING_TO_READ), (1, 0)),
        (NGramModel.from_ngrams(ONE_WORD), (1025, 1024)),
        (cyclic(3, letters=1), (129, 128)),
        (Automaton.from_regex("a*"), (129, 128)),
    ],
)
def test_all_words_are_tried_however_few_letters_there_are(spec: object, words: tuple[int, int]) -> None:
    evidence = certify(build(spec), spec)
    assert evidence.verdict == "holds"
    assert evidence.domains[0] == Domain("words", Method.EXHAUSTIVE, words[0], 0, words[1])


def test_a_net_for_one_letter_is_examined_on_both_words() -> None:
    spec = Automaton.from_regex("ab")
    evidence = certify(build(spec, max_length=1), spec)
    assert evidence.verdict == "holds"
    assert evidence.domains[0] == Domain("words", Method.EXHAUSTIVE, 3, 0, 1)
