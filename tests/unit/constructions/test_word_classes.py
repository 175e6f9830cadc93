"""Word classes: the net's sets of next words against the language's, its sizes against the formulas."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from built import ATTENTIONS, mistakes
from cases import each
from vitrify.certification import Domain, Method, certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions import catalogue
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.word_classes import sizes, word_classes
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.inference import encode, logits
from vitrify.net.weights import Weights
from vitrify.spec.languages.word_patterns import WordPatterns, random_patterns, waking_up
from vitrify.spec.ngrams.families import random_ngram

AWOKE = WordPatterns.read(Path(__file__).parents[3] / "examples" / "awoke.patterns")


@cache
def built(window: int, attention: Attention = "softmax") -> Weights:
    return assemble(word_classes(AWOKE, window=window, attention=attention))


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_exact_from_the_least_window_on_and_one_sided_below(attention: Attention) -> None:
    assert AWOKE.window() == 5
    found = {n: mistakes(built(n, attention), AWOKE) for n in range(2, 8)}
    assert all(lost == 0 for lost, _ in found.values())
    assert [extra == 0 for _, extra in found.values()] == [False] * 3 + [True] * 3
    assert found[2][1] > found[3][1] >= found[4][1]


@each("n", [2, 3, 4, 5, 6, 14, 15, 16, 17, 40])
def test_sizes_are_those_of_the_formulas(n: int) -> None:
    measured, promised = built(n).sizes, sizes(AWOKE, window=n)
    assert measured.layers == 1
    assert not promised.problems(measured)
    assert measured.units == len(AWOKE.contexts(n))
    assert measured.attention_layers == min(measured.heads, 1)
    assert built(n).labels.space("classes").kind.size == len(AWOKE.members) + 1


def test_logits_keep_their_distance_from_zero() -> None:
    for attention in ATTENTIONS:
        words = [encode(built(5).architecture, sentence) for sentence in AWOKE.sentences()]
        assert min(float(np.abs(rows).min()) for rows in logits(built(5, attention), words)) >= 0.25


@pytest.mark.slow
def test_no_size_depends_on_how_many_words_a_class_has() -> None:
    small, large = (assemble(word_classes(waking_up(size))) for size in (2, 1_000))
    one, two = small.sizes, large.sizes
    assert (one.units, one.heads, one.d_model, one.layers) == (two.units, two.heads, two.d_model, two.layers)
    assert len(large.architecture.inputs) > 4_000
    assert certify(large, waking_up(1_000), work=1e8).verdict == "holds"


def test_words_in_the_same_classes_are_the_same_to_the_last_bit() -> None:
    weights = built(5)
    one, two = logits(
        weights,
        [
            encode(weights.architecture, text.split())
            for text in ("Ann awoke at one o'clock and was too hungry", "Bob awoke at two o'clock and was too happy")
        ],
    )
    assert (one == two).all()


def test_a_short_window_says_so() -> None:
    assert built(5).about["exact"] == "yes"
    assert built(5).about["least window"] == 5
    assert "--window 5 is exact" in built(3).about["exact"]
    evidence = certify(built(3), AWOKE)
    assert evidence.verdict == "fails"
    assert evidence.witness == {
        "history": ["Ann", "was", "too", "hungry"],
        "missing": [],
        "too many": ["to"],
        "undecided": [],
    }


def test_certify_asks_about_every_beginning_of_a_sentence() -> None:
    evidence = certify(built(5), AWOKE)
    assert evidence.verdict == "holds"
    assert evidence.domains[0] == Domain("prefixes of sentences", Method.EXHAUSTIVE, len(list(AWOKE.prefixes())), 0, 14)
    assert evidence.measured("share of answers that float32 must give too") == 1.0


def test_a_net_shorter_than_the_sentences() -> None:
    weights = assemble(word_classes(AWOKE, max_length=6))
    evidence = certify(weights, AWOKE)
    assert evidence.verdict == "holds"
    assert evidence.domains[0].longest == 6


def test_most_mutations_are_noticed_and_the_others_change_no_answer() -> None:
    found = mutation_test(built(5), AWOKE, count=150, seed=1)
    assert found.rate >= 0.95
    kinds = {what.split("[")[0] for what, _ in found.survivors}
    assert kinds <= {"blocks.0.mlp.b_in"}  # a context whose every part already says what follows


@pytest.mark.parametrize("positions", ["dyadic", "quadratic", "sqrt"])
def test_every_position_code_will_do(positions: str) -> None:
    spec = random_patterns(3)
    weights = catalogue.build(spec, "classes", positions=positions)
    assert mistakes(weights, spec) == (0, 0)


def test_refusals() -> None:
    with pytest.raises(BuildRefused, match=r"--window .* must be a whole number of at least 2"):
        word_classes(AWOKE, window=1)
    with pytest.raises(BuildRefused, match="leave --window out"):
        catalogue.build(random_ngram(2, 2, seed=0), window=3)
