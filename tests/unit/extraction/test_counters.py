"""Counters that are fitted to answers: random ones, saturating ones, networks for which the order matters, budgets."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitrify as v
from cases import each
from extracted import counts, model_of, planted
from vitrify.arrays import Floats, Ints
from vitrify.certification.evidence import Scope
from vitrify.errors import InputError
from vitrify.extraction.callables import CallableNet, callable_net
from vitrify.extraction.counters import LetterCounts, describe, shapes
from vitrify.extraction.observations import Observations, SearchBudget
from vitrify.extraction.result import MIXED
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic


def counter(shape: tuple[tuple[int, int], ...], answers: Ints, longest: int = 24) -> Weights[CallableNet]:
    """Return a counter as a function of tokens, which are counted and reduced one by one."""

    def function(tokens: Ints) -> Floats:
        place = np.zeros(tokens.shape, dtype=int)
        for letter, (start, modulus) in enumerate(shape):
            count = np.cumsum(tokens == letter + 1, axis=1)
            for _ in range(tokens.shape[1]):
                count = np.where(count >= start + modulus, count - modulus, count)
            place = place * (start + modulus) + count
        return np.stack([1 - answers[place], answers[place]], axis=-1) * 2.0

    return callable_net(function, "abcdefg"[: len(shape)], ("no", "yes"), longest=longest)


def facts(result: v.Extraction) -> dict[str, Any]:
    return {each.name: each.measured for each in result.evidence.quantities}


@each("seed", range(8))
def test_a_random_counter_is_found_with_its_saturation_points_and_moduli(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple((int(rng.integers(4)), int(rng.integers(1, 4))) for _ in range(2))
    states = int(np.prod([start + modulus for start, modulus in shape]))
    answers = rng.integers(2, size=states)
    net = counter(shape, answers)
    result = v.extract(net, "counter", max_length=9)
    assert result.evidence.verdict == "holds"
    assert result.spec == v.extract(net, max_length=9).spec  # AALpy learns the same automaton
    for word in product("ab", repeat=7):
        assert result.spec.accepts(word) == (net(list(word))[-1].argmax() == 1)
        assert result.spec.accepts(word) == result.spec.accepts(sorted(word))
    least = {letter: counted_alone(net, letter) for letter in (0, 1)}  # the function may need less than its shape
    assert {letter: facts(result)[f"letter {'ab'[letter]}"] for letter in (0, 1)} == least


def counted_alone(net: Weights[CallableNet], letter: int) -> str:
    """Return how a letter is counted, from the definition: the least sum of a saturation point and a modulus."""
    longest, first = 9, 1
    words = {n: ["a"] * n[0] + ["b"] * n[1] for n in product(range(longest + 8), repeat=2) if sum(n) <= longest + 8}
    answer = {n: int(net(word)[-1].argmax()) for n, word in words.items() if sum(n) >= first}
    for size in range(1, longest):
        for modulus in range(1, size + 1):
            more = (modulus, 0) if letter == 0 else (0, modulus)
            pairs = [(n, (n[0] + more[0], n[1] + more[1])) for n in answer if n[letter] >= size - modulus]
            if all(answer[n] == answer[after] for n, after in pairs if after in answer):
                return describe(size - modulus, modulus)
    raise AssertionError


def test_a_counter_that_gets_stuck_beyond_all_short_words_is_seen_in_longer_ones() -> None:
    """It is parity on all words to length 15, and on every word with at most 15 ones."""
    net = model_of(cyclic(2), lambda words: np.maximum(counts(words) - 15, 0) % 2, longest=40)
    result = v.extract(net, "counter", max_length=8)
    assert facts(result)["letter 1"] == "counted up to 15"
    assert facts(result)["letter 0"] == "does not matter"
    assert len(result.spec.states) == 16
    assert result.evidence.verdict == "holds"
    assert result.known.startswith("equal on every word up to length 8; longer ones sampled")
    assert result.spec.accepts("1" * 14 + "0")
    assert not result.spec.accepts("1" * 20)


def test_where_the_order_matters_the_shortest_wrong_word_is_shown() -> None:
    spec = Automaton.from_regex("(ab|ba)*")
    net = model_of(spec)
    result = v.extract(net, "counter", max_length=8)
    assert result.evidence.verdict == "fails"
    assert result.counterexample is not None
    word = result.counterexample["word"]
    assert (
        result.counterexample["actual"] == ("yes" if spec.accepts(word) else "no") != result.counterexample["expected"]
    )
    for shorter in (list(w) for length in range(1, len(word)) for w in product("ab", repeat=length)):
        assert result.spec.accepts(shorter) == spec.accepts(shorter)
    mixed = {
        "".join(sorted(w))
        for length in range(9)
        for w in product("ab", repeat=length)
        if length <= 4 and len({spec.accepts(p) for p in permutations(w)}) > 1
    }
    assert facts(result)[MIXED] >= len(mixed) > 0
    assert all(result.spec.accepts(w) == result.spec.accepts(w[::-1]) for w in product("ab", repeat=6))


def test_one_deviation_is_counted_and_shown() -> None:
    result = v.extract(model_of(cyclic(2), lambda words: planted(words, "0110")), "counter", max_length=8)
    assert result.spec == cyclic(2)
    assert facts(result)[MIXED] == 1
    assert result.counterexample == {"word": ["0", "1", "1", "0"], "expected": "yes", "actual": "no"}
    assert {each.length: each.wrong for each in result.errors if each.complete} == dict.fromkeys(range(9), 0) | {4: 1}


def test_a_deviation_beyond_what_was_run_leaves_the_result_sampled() -> None:
    trigger = "0110100110010110011"  # one word of 2^19
    result = v.extract(model_of(cyclic(2), lambda words: planted(words, trigger)), "counter", max_length=10)
    headline = result.evidence.headline
    assert headline is not None
    assert (headline.scope, headline.longest) == (Scope.SAMPLED, 10)
    assert "longer ones sampled: below" in result.known


def test_a_built_counter_is_proved_for_every_length() -> None:
    result = v.extract(v.build(cyclic(6), "elman"), "counter", words=1 << 14)
    assert result.every_length
    assert facts(result)["letter 1"] == "counted modulo 6"
    assert result.spec.states == cyclic(6).states


def test_too_few_states_give_the_counter_whose_first_mistake_comes_latest() -> None:
    net = model_of(cyclic(2), lambda words: np.maximum(counts(words) - 5, 0) % 2)
    result = v.extract(net, "counter", max_length=9, max_states=3)
    assert result.stopped is not None
    assert result.stopped.startswith("a letter takes more than 3 states, the most that are allowed")
    assert result.spec == cyclic(2)
    assert result.counterexample is not None
    assert result.counterexample["word"] == ["1"] * 6


def test_states_are_counted_in_the_minimal_automaton() -> None:
    """Each of seven letters is counted modulo two: 128 states before minimization, and two after it."""
    even = np.array([bin(state).count("1") % 2 for state in range(128)])
    net = counter(((0, 2),) * 7, even)
    result = v.extract(net, "counter", max_length=3, max_states=2)
    assert (result.stopped, len(result.spec.states), result.evidence.verdict) == (None, 2, "holds")
    refused = v.extract(net, "counter", max_length=3, max_states=1)
    assert refused.evidence.verdict == "fails"
    assert refused.stopped is not None
    apart = counter(((0, 2),) * 2, np.arange(4) // 3)  # four states, two of each letter
    few = v.extract(apart, "counter", max_length=6, max_states=3)
    assert few.stopped == "the counter that fits has 4 states: 3 are the most that are allowed"


def test_letters_that_fit_alone_must_fit_together() -> None:
    """No two words that differ by one or two letters differ in their answer; those of lengths 0 and 3 do."""
    vectors, votes = np.array([[0], [1], [3]]), np.array([[1, 0], [1, 0], [0, 1]])
    counted = LetterCounts(vectors, np.arange(2), votes, 0)
    assert counted.smallest(0, 3) == (0, 1)
    shape, reason = counted.fitted(3)
    assert reason is None
    assert counted.answers(shape)[counted.classes(shape)].tolist() == [0, 0, 1]
    assert counted.fitted(1) == (((0, 1),), "each letter fits alone, but not all of them together")


def test_a_prefix_of_several_long_words_is_counted_once() -> None:
    observations = Observations(model_of(cyclic(2)), SearchBudget(1000))
    observations.complete_to(2)
    longer = np.array([[0, 0, 0, 0], [0, 0, 0, 1], [0, 1, 1, 1]])
    counted = LetterCounts.of(observations, longer)
    words = {tuple(word[:length]) for word in longer.tolist() for length in (3, 4)}
    assert counted.votes.sum() == 2 + 4 + len(words) + (observations.first == 0)


def test_the_search_is_bounded_interrupted_and_resumed(tmp_path: Path) -> None:
    net = model_of(cyclic(3))
    few = v.extract(net, "counter", words=40)
    assert few.words <= 40
    assert few.stopped == "the budget of 40 words is spent"
    assert "longer ones were not compared" in few.known
    with pytest.raises(InputError, match="nothing was extracted: the budget of 0 seconds is spent"):
        v.extract(net, "counter", seconds=0.0)
    calls: list[int] = []

    def interrupting(words: Ints) -> Ints:
        calls.append(len(words))
        if len(calls) == 4 and not resumed:
            raise KeyboardInterrupt
        return np.zeros((len(words), words.shape[1] + 1), dtype=int)

    resumed, file, slow = False, tmp_path / "answers.safetensors", model_of(cyclic(3), interrupting)
    first = v.extract(slow, "counter", max_length=8, resume=file)
    assert first.stopped == "interrupted"
    resumed, before = True, sum(calls)
    second = v.extract(slow, "counter", max_length=8, resume=file)
    assert second.stopped is None
    assert second.spec == first.spec == cyclic(3)
    assert second.words < v.extract(net, "counter", max_length=8).words
    assert before


def test_shapes_come_by_their_number_of_states() -> None:
    every = [*shapes(2, 6)]
    sizes = [int(np.prod([start + modulus for start, modulus in shape])) for shape in every]
    assert sizes == sorted(sizes)
    assert len({*every}) == len(every) == sum(states * divisors(states) for states in range(1, 7))


def divisors(number: int) -> int:
    return sum(number % d == 0 for d in range(1, number + 1))
