"""Claims about word classes notice what breaks only one half of the net, and name it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.claims import a_shift_register_runs_any_word_class_language as register
from vitrify.claims import word_classes_take_one_unit_per_context as classes
from vitrify.claims._words import rank, word_subjects
from vitrify.claims.catalogue import Subject
from vitrify.constructions.word_classes import word_classes
from vitrify.constructions.word_register import word_register
from vitrify.kit import assemble
from vitrify.net.weights import Weights
from vitrify.spec.languages.word_patterns import WordPatterns, random_patterns, waking_up

SPEC = waking_up(2)
NETS: dict[Any, Weights[Any]] = {register: word_register(SPEC), classes: assemble(word_classes(SPEC, attention="hard"))}


def broken(claim: Any, name: str, change: Any) -> dict[str, object]:
    """What the claim's check says of the net with one array changed."""
    array = NETS[claim].arrays[name].copy()
    change(array)
    evidence = claim.check(Subject("", SPEC, NETS[claim].with_array(name, array), {"window": SPEC.window()}))
    assert evidence.verdict == "fails"
    return dict(evidence.witness or {})


@pytest.mark.parametrize("claim", NETS)
def test_they_hold_before_anything_is_broken(claim: Any) -> None:
    evidence = claim.check(Subject("", SPEC, NETS[claim], {"window": SPEC.window()}))
    assert evidence.verdict == "holds"
    assert evidence.measured("rank of the embedding") == 13 + (claim is classes)


@pytest.mark.parametrize("claim", NETS)
def test_an_embedding_that_tells_words_of_a_class_apart_is_noticed(claim: Any) -> None:
    """The answers stay right, and yet the roles are mixed: the logits of two words of one class differ."""
    word = NETS[claim].architecture.inputs.index("who0")

    def differ(array: Any) -> None:
        array[word, array[word].argmax()] = 1.25

    found = broken(claim, "embed.W_E", differ)
    assert set(found) == {"logits that a swap of words moves", "distinct embeddings"}


@pytest.mark.parametrize("claim", NETS)
def test_an_embedding_that_merges_classes_is_noticed(claim: Any) -> None:
    """HOUR and PLACE share their vector: fewer directions, and one context too many matches."""
    dims = NETS[claim].labels.space("classes").dims
    names = NETS[claim].labels.space("classes").kind.names
    hour, place = (dims[names.index(name)] for name in ("∋HOUR", "∋PLACE"))

    def merge(array: Any) -> None:
        both = array[:, hour] + array[:, place]
        array[:, hour] = array[:, place] = both

    assert "rank of the embedding" in broken(claim, "embed.W_E", merge)


def test_a_context_that_is_forgotten_loses_words() -> None:
    def forget(array: Any) -> None:
        array[0] = 0.0

    for claim in NETS:
        assert broken(claim, "blocks.0.mlp.W_out", forget) == {"history": [], "missing": "who0"}


def test_a_register_that_leaks_a_little_is_noticed() -> None:
    """Every answer is still right, but the state never forgets."""

    def leak(array: Any) -> None:
        array[-13, -13] = 2.0**-10

    found = broken(register, "blocks.0.rec.W_A", leak)
    assert found["entries of A^(n-1)"] == {"declared": 0, "measured": 5}
    assert "logits that words before the window move" in found
    assert "exact" not in found


def test_a_window_too_short_is_no_exact_net() -> None:
    subject = Subject("", SPEC, word_register(SPEC, window=5), {"window": 6})
    found = dict(register.check(subject).witness or {})
    assert {"exact", "width", "units"} <= set(found)


@each("seed", range(20))
def test_the_exact_rank_is_the_numerical_one(seed: int) -> None:
    spec = random_patterns(seed, words=8, classes=6, patterns=8)
    matrix = np.array([[word in spec.members[name] for name in spec.members] for word in spec.vocabulary], dtype=float)
    assert rank(spec) == np.linalg.matrix_rank(matrix)


def test_the_rank_is_that_of_the_classes_and_not_of_their_sizes() -> None:
    twice = WordPatterns.of({"A": "x y", "B": "x y", "C": "x y z"}, ["A B C"])
    assert rank(twice) == 2
    assert [rank(waking_up(size)) for size in (2, 10, 100)] == [13] * 3


def test_the_subjects_reach_below_and_above_the_least_window_and_to_large_classes() -> None:
    found = list(word_subjects(lambda spec, n, _: word_register(spec, window=n)))
    below = [subject.data["window"] >= subject.spec.window() for subject in found]
    assert {True, False} == set(below)
    assert max(len(words) for words in found[-1].spec.members.values()) == 1_000
    assert set(found[-1].data["like"]) == {"heads", "units", "width", "rank of the embedding"}
