"""Nets of retrieval tasks, against text; sizes by formula; lower precision; mutations; what programs would take."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from math import floor, log2
from typing import Any

import numpy as np
import pytest

from built import ATTENTIONS, answers
from cases import each, each_then_slow, in_turn
from retrieval import TASKS, right
from vitrify.certification.mutation_test import mutation_test
from vitrify.claims.k_hops_take_log_k_layers_of_constant_size import counting_itself
from vitrify.constructions.catalogue import Size, build, chosen
from vitrify.errors import BuildRefused
from vitrify.net.inference import encode, logits, trace
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.spec.programs import families as library
from vitrify.spec.programs.program import program
from vitrify.spec.tasks.catalogue import Task, letters
from vitrify.spec.tasks.composition import Composition
from vitrify.spec.tasks.copying import Copying
from vitrify.spec.tasks.k_hop import KHop
from vitrify.spec.tasks.recall import Recall


def promised(task: Task) -> Mapping[str, Size]:
    return chosen(task).sizes(task).exact


def wrong(weights: Weights[Any], task: Task, words: list[tuple[str, ...]]) -> int:
    """How many answers are not those of the text, or not clearly."""
    net = weights.architecture
    ids = np.array([encode(net, word) for word in words])
    found = answers(weights, ids)[:, 1:]
    count = 0
    for word, rows in zip(words, found, strict=True):
        asked = [(row, answer) for row, answer in zip(rows, right(task, word), strict=True) if answer is not None]
        if not asked:
            continue
        best = np.array([row for row, _ in asked])
        lead = np.diff(np.sort(best, axis=-1)[:, -2:], axis=-1) if best.shape[-1] > 1 else np.ones((len(best), 1))
        said = [net.output.symbols[i] for i in best.argmax(axis=-1)]
        count += sum(s != a or g < 0.25 for s, (_, a), g in zip(said, asked, lead[:, -1], strict=True))
    return count


def drawn(task: Task, count: int, seed: int = 0) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(seed)
    return [task.draw(rng, task.length) for _ in range(count)]


@pytest.mark.long
@each_then_slow("task, attention", *in_turn(TASKS, ATTENTIONS), ids=repr)
def test_all_short_words_and_sizes(task: Task, attention: AttentionKind) -> None:
    weights = build(task, attention=attention)
    for length in range(1, task.length + 1):
        words = [*islice(task.words(length), 2000)] if length < 7 or not task.free else []
        assert not words or wrong(weights, task, words) == 0
    assert wrong(weights, task, drawn(task, 40)) == 0
    size = weights.sizes
    assert {name: getattr(size, name) for name in promised(task)} == promised(task)


LARGE: tuple[Task, ...] = (
    Composition(64),
    Copying(symbols=26, size=100, gram=4),
    KHop(hops=1, symbols=64, length=200),
    KHop(hops=43, symbols=64, length=256),
    Recall(keys=256, values=256, pairs=64, queries=64, fused=False),
    Recall(keys=256, values=256, pairs=64, queries=64, fused=True),
)


@pytest.mark.long
@each_then_slow("task, attention", *in_turn(LARGE, ATTENTIONS), ids=repr)
def test_large_ones(task: Task, attention: AttentionKind) -> None:
    weights = build(task, attention=attention)
    assert wrong(weights, task, drawn(task, 8)) == 0
    size = weights.sizes
    assert {name: getattr(size, name) for name in promised(task)} == promised(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", [*LARGE, Composition(8), KHop(64, 64, 256)], ids=repr)
def test_a_thousand_random_words(task: Task) -> None:
    weights = build(task)
    for seed in range(20):
        assert wrong(weights, task, drawn(task, 50, seed)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_functions_of_500_values(seed: int) -> None:
    task = Composition(500)
    assert wrong(build(task), task, drawn(task, 100, seed)) == 0


@pytest.mark.slow
def test_all_functions_of_four_values() -> None:
    task = Composition(4)
    words = [*task.words(9)]
    assert len(words) == 4**9
    for attention in ATTENTIONS:
        assert wrong(build(task, attention=attention), task, words) == 0


@each("hops", range(1, 65))
@pytest.mark.parametrize("symbols", [2, 5, 64])
def test_layers_of_hops(hops: int, symbols: int) -> None:
    task = KHop(hops, symbols, 256)
    size = build(task).sizes
    assert size.attention_layers == size.layers == floor(log2(hops)) + 2
    assert set(size.heads_per_layer) == {1}
    assert size.d_model == (7 if hops > 1 else 8)
    assert size.units == floor(log2(hops)) + f"{hops:b}".count("1")
    assert {name: getattr(size, name) for name in promised(task)} == promised(task)


@pytest.mark.slow
@pytest.mark.parametrize("hops", range(1, 65))
@pytest.mark.parametrize("symbols", [2, 5, 64])
def test_hops_at_length_256(hops: int, symbols: int) -> None:
    task = KHop(hops, symbols, 256)
    assert wrong(build(task), task, drawn(task, 50)) == 0


@pytest.mark.parametrize("hops", [2, 6, 11, 13])
def test_digits_in_reverse_order_are_another_number_of_hops(hops: int) -> None:
    reverse = KHop(int(f"{hops:b}"[::-1], 2), 3, 60)
    assert wrong(build(reverse), KHop(hops, 3, 60), drawn(reverse, 5)) > 0


@pytest.mark.parametrize("hops", [2, 3, 8])
def test_a_position_is_no_earlier_occurrence_of_its_symbol(hops: int) -> None:
    task = KHop(hops, 3, 12)
    assert wrong(counting_itself(build(task)), task, [tuple("abcab")]) > 0


def test_places_and_symbols_are_in_named_spaces() -> None:
    seen = trace(build(KHop(3, 3, 12), attention="hard"), "abcabcab")
    assert seen.read("after 1 hop") == [0, 0, 0, 0, 2, 3, 4, 5, 6]
    assert seen.read("after 2 hops") == [*[[0, 0]] * 4, [0, 2], [0, 3], [2, 1], [3, 2], [4, 3]]
    assert seen.read("symbol after 3 hops") == [*[0] * 8, 2]
    induction = trace(build(KHop(1, 3, 12), attention="hard"), "abcabcab")
    assert induction.read("symbol before")[1:] == [None, *"abcabca"]
    assert induction.read("after 1 hop") == [0, 0, 0, 0, 2, 3, 1, 2, 3]
    composed = trace(build(Composition(2)), ["f0=1", "g1=0", "f1=1", "g0=1", "x=1"])
    assert (composed.read("g(x)")[-1], composed.read("f(g(x))")[-1]) == ("0", "1")


def test_composition_of_64_values_is_exact_in_sixteen_bits() -> None:
    task = Composition(64)
    half = build(task).map(lambda array: array.astype(np.float16))
    assert half.architecture.d_model <= 14
    tokens = np.array([[0, *encode(half.architecture, word)] for word in drawn(task, 20)])
    found = np.asarray(half.architecture.forward(half.arrays, tokens))
    assert found.dtype == np.float16
    said = [half.architecture.output.symbols[i] for i in found[:, -1].argmax(axis=-1)]
    assert said == [right(task, word)[-1] for word in drawn(task, 20)]


def test_a_repeated_run_is_where_copying_ends() -> None:
    task = Copying(symbols=3, size=9, gram=2)
    weights = build(task)
    text = "aabcabb"  # ab comes twice, before c and before b
    (found,) = logits(weights, [encode(weights.architecture, task.word(text))])
    said = [weights.architecture.output.symbols[i] for i in found[1:].argmax(axis=-1)]
    assert said[8:11] == ["a", "a", "b"]
    lead = np.diff(np.sort(found[12], axis=-1)[-2:])[0]
    assert lead < 0.25  # after the first ab, c and b are equally near


def test_what_a_program_would_take() -> None:
    """The program of an induction head has as many layers and heads, and the width of a one-hot vocabulary."""
    weights = build(program(library.induction(), letters(16), 30, causal=True))
    size, ours = weights.sizes, build(KHop(1, 16, 30)).sizes
    assert size.heads_per_layer == ours.heads_per_layer == (1, 1)
    assert ours.d_model == 8 < size.d_model
    assert ours.nonzero < size.nonzero


@pytest.mark.long
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_mutations(task: Task, attention: AttentionKind) -> None:
    found = mutation_test(build(task, attention=attention), task, count=40, seed=0, work=1e7)
    assert (found.tried, found.survivors) == (40, ())


def test_a_length_is_not_to_be_chosen() -> None:
    for task in TASKS:
        with pytest.raises(BuildRefused, match="leave --max-length out"):
            build(task, max_length=5)
