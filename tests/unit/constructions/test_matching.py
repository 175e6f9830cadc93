"""Nets that match numbers, against trying everything; sizes by formula; lower precision; mutations."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from built import ATTENTIONS, answers
from cases import each, each_then_slow, in_turn
from matching import MATCHING, matched
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions.catalogue import build
from vitrify.constructions.matching import sizes
from vitrify.errors import BuildRefused
from vitrify.net.inference import encode, trace
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.spec.computation.matching import Matching
from vitrify.spec.tasks.match2 import Match2
from vitrify.spec.tasks.match3_bigram import Match3Bigram
from vitrify.spec.tasks.match3_local import Match3Local


def wrong(weights: Weights[Any], task: Matching, words: list[tuple[str, ...]]) -> int:
    """How many answers are not those of trying everything, or lead by less than a half."""
    net = weights.architecture
    found = answers(weights, np.array([encode(net, word) for word in words]))[:, 1:]
    yes = np.array([[answer == "yes" for answer in matched(task, word)] for word in words])
    lead = found[..., 1] - found[..., 0]
    return int((np.where(yes, lead, -lead) < 0.5).sum())


def drawn(task: Matching, count: int, seed: int = 0) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(seed)
    return [task.draw(rng, task.length) for _ in range(count)]


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("task", MATCHING, ids=repr)
def test_all_short_words_and_sizes(task: Matching, attention: AttentionKind) -> None:
    weights = build(task, attention=attention)
    for length in range(1, task.length + 1):
        words = [*islice(task.words(length), 800)]
        assert wrong(weights, task, words) == 0
    assert wrong(weights, task, drawn(task, 40)) == 0
    assert not sizes(task).problems(weights.sizes)


@pytest.mark.long
@each_then_slow("modulus, attention", *in_turn([11, 101, 1009, 10007, 100003], ATTENTIONS))
def test_pairs_of_large_numbers(modulus: int, attention: AttentionKind) -> None:
    task = Match2(modulus, 256)
    weights = build(task, attention=attention)
    assert wrong(weights, task, drawn(task, 4)) == 0
    assert weights.sizes.d_model == 4
    embedded = weights.arrays["embed.W_E"]
    assert (embedded.any(axis=0).sum(), weights.architecture.d_head) == (3, 3)


@each("attention", ATTENTIONS)
@each("task", [Match3Bigram(1009, 64), Match3Local(1009, 64, reach=4)], ids=repr)
def test_triples_of_large_numbers(task: Matching, attention: AttentionKind) -> None:
    weights = build(task, attention=attention)
    assert wrong(weights, task, drawn(task, 4)) == 0
    assert not sizes(task).problems(weights.sizes)


LARGE: tuple[Matching, ...] = (
    Match2(100003, 256),
    Match2(11, 256),
    Match3Bigram(1009, 128),
    Match3Local(1009, 128, reach=4),
)


@pytest.mark.slow
@pytest.mark.parametrize("task", LARGE, ids=repr)
def test_a_thousand_random_words(task: Matching) -> None:
    weights = build(task)
    for seed in range(20):
        assert wrong(weights, task, drawn(task, 50, seed)) == 0


def test_all_words_of_small_numbers() -> None:
    for task in (Match2(4, 5), Match3Bigram(4, 5), Match3Local(4, 5, reach=2)):
        weights = build(task)
        for length in range(1, 6):
            assert wrong(weights, task, [*task.words(length)]) == 0


def test_sums_and_neighbours_are_in_named_spaces() -> None:
    pairs = trace(build(Match3Bigram(7, 6), attention="hard"), ["3", "6", "5"])
    assert pairs.read("number before")[1:] == [-14, 3, 6]
    assert pairs.read("sum of both") == [None, None, "2", "4"]
    assert pairs.read("a match")[1:] == [1, 0, 1]  # 3 + 4, 5 + 2
    near = trace(build(Match3Local(7, 6, reach=1), attention="hard"), ["1", "6", "5"])
    assert near.read("number at +1")[1:] == [6, 5, 5]
    assert near.read("number at -1")[1:] == [-21, 1, 6]


def test_the_gap_is_that_of_the_circle() -> None:
    for modulus in (5, 101, 1009):
        head = build(Match2(modulus, 8)).labels.heads[0]
        assert head.kappa == pytest.approx(4 / (1 - np.cos(2 * np.pi / modulus)))  # half a gap, two products


def in_float32(task: Match2) -> int:
    """Wrong answers when the net runs in float32."""
    weights = build(task)
    words = drawn(task, 20)
    tokens = np.array([[0, *encode(weights.architecture, word)] for word in words])
    single = weights.map(lambda array: array.astype(np.float32))
    found = np.asarray(single.architecture.forward(single.arrays, tokens))[:, 1:]
    assert found.dtype == np.float32
    said = [["no", "yes"][int(i)] for i in found.argmax(axis=-1).ravel()]
    return sum(s != a for s, a in zip(said, [a for word in words for a in matched(task, word)], strict=True))


@pytest.mark.parametrize("modulus", [11, 1009, 2491])
def test_what_float32_carries(modulus: int) -> None:
    task = Match2(modulus, 64)
    build(task, arithmetic="float32")
    assert in_float32(task) == 0


@pytest.mark.parametrize("modulus", [2492, 10007, 100003])
def test_what_float32_does_not_carry_is_refused(modulus: int) -> None:
    task = Match2(modulus, 64)
    with pytest.raises(BuildRefused, match=r"float32 rounds them by up to \S+: use a smaller spec or float64$"):
        build(task, arithmetic="float32")
    assert modulus < 10000 or in_float32(task) > 0


def test_sums_that_float64_does_not_carry_are_refused() -> None:
    with pytest.raises(BuildRefused, match=r"use a smaller spec or maximum length$"):
        build(Match3Bigram(30011, 8))


@each("attention", ATTENTIONS)
@each("task", [Match2(5, 6), Match3Bigram(4, 6), Match3Local(4, 6, reach=1)], ids=repr)
def test_mutations(task: Matching, attention: AttentionKind) -> None:
    found = mutation_test(build(task, attention=attention), task, count=30, seed=0, work=1e7)
    assert (found.tried, found.survivors) == (30, ())
