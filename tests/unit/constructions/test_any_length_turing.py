"""Turing machines by one set of weights: against a tape that is rewritten; every length; the reach of each format."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cases import each
from oracles.naive_turing import steps_of
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions.any_length_hybrid_turing import sizes as recurrent_sizes
from vitrify.constructions.any_length_turing import any_length_turing, sizes
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused
from vitrify.kit.heads.whole import longest_selection
from vitrify.net.answers import run_generation
from vitrify.net.generate import generate
from vitrify.net.inference import batch_logits, batch_of, encode, trace
from vitrify.net.weights import Weights
from vitrify.spec.computation.turing import (
    TuringMachine,
    busy_beaver,
    counter,
    increment,
    palindrome,
    random_machine,
)

NAME, RECURRENCE = "turing-any-length", "turing-hybrid-any-length"
NAMES = (NAME, RECURRENCE)
SIZES = {NAME: sizes, RECURRENCE: recurrent_sizes}
STEPS = 200


def naive(machine: TuringMachine, word: str, most: int) -> tuple[list[str], str]:
    rules = {(rule.state, rule.read): (rule.write, rule.move, rule.to) for rule in machine.rules}
    return steps_of(rules, machine.start, machine.halt, machine.blank, word, most)


def answers(weights: Weights, word: str, steps: list[str]) -> list[str]:
    """What the network writes next, in one pass over the right thought."""
    net = weights.architecture
    tokens, _ = batch_of(net, [encode(net, [*word, *steps[:-1]])])
    logits = batch_logits(weights, tokens)[0, net.pads - 1 + len(word) :]
    return [net.output.symbols[place] for place in logits.argmax(axis=-1)]


@pytest.mark.parametrize("name", NAMES)
def test_palindromes_to_20_letters(name: str) -> None:
    machine = palindrome(2)
    weights = build(machine, name)
    rng = np.random.default_rng(0)
    for length in range(21):
        half = "".join(rng.choice(["a", "b"], size=length // 2))
        word = half + "a" * (length % 2) + half[::-1]
        broken = word[:-1] + "ba"["ab".index(word[-1])] if length > 1 else word
        for each_word in dict.fromkeys((word, broken)):
            (thought,) = generate(weights, [each_word], 2000)
            assert list(thought.symbols) == naive(machine, each_word, 2000)[0]
            said = machine.conclusion(thought.prompt, thought.symbols)
            assert said["accepted"] == ("yes" if each_word == each_word[::-1] else "no")


@pytest.mark.parametrize("name", NAMES)
def test_the_busy_beaver_takes_107_steps_and_writes_13_ones(name: str) -> None:
    machine = busy_beaver()
    (thought,) = generate(build(machine, name), [()], 107)
    assert (list(thought.symbols), "10" + "1" * 12) == naive(machine, "", 200)
    assert thought.stopped


@each("seed", range(30))
def test_random_machines_to_200_steps(seed: int) -> None:
    """One pass over the right thought: a net that is right after each of its beginnings writes it."""
    halting = 0.02 if seed % 3 == 0 else 0.0
    machine = random_machine(seed, 1 + seed % 6, 2 + seed % 3, halting=halting, length=4, steps=STEPS)
    word = "".join(machine.alphabet[(seed + place) % len(machine.alphabet)] for place in range(seed % 5))
    steps = naive(machine, word, STEPS)[0]
    for name in NAMES:
        weights = build(machine, name)
        assert answers(weights, word, steps) == steps
        assert not SIZES[name](machine).problems(weights.sizes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_200_random_machines_decoded_for_200_steps(seed: int) -> None:
    machine = random_machine(1000 + seed, 1 + seed % 8, 2 + seed % 4, halting=0.01 * (seed % 2), length=5, steps=STEPS)
    word = "".join(machine.alphabet[(seed * place) % len(machine.alphabet)] for place in range(5))
    for name in NAMES:
        (thought,) = generate(build(machine, name), [word], STEPS)
        assert list(thought.symbols) == naive(machine, word, STEPS)[0]


@pytest.mark.slow
def test_a_counter_counts_for_2500_steps() -> None:
    machine = counter(2500)
    for name in NAMES:
        (thought,) = generate(build(machine, name), [()], 2500)
        assert list(thought.symbols) == naive(machine, "", 2500)[0]


@pytest.mark.parametrize("name", NAMES)
def test_long_inputs_are_read(name: str) -> None:
    machine = increment(2)
    weights = build(machine, name, max_length=5)
    word = "10" * 150 + "1" * 50
    steps = naive(machine, word, 1000)[0]
    assert answers(weights, word, steps) == steps


def test_a_machine_that_may_never_halt_is_run_under_a_budget() -> None:
    machine = TuringMachine.of({"on": {"_": "_ R on", "1": "1 S off"}}, start="on", halt=["off"], alphabet="1")
    with pytest.raises(BuildRefused, match="no step limit"):
        build(machine)
    answer = run_generation(build(machine, NAME), (), 50, None, machine)
    assert answer.conclusion["halted"] == "no"
    assert len(answer.symbols) == 50


def test_the_stream_holds_both_cells_and_their_squares() -> None:
    steps = ["1,R,right", "1,R,right", "_,L,carry", "0,L,carry"]
    seen = trace(build(increment(4), NAME), ["1", "1", *steps])
    assert seen.read("cell") == [[0, 0], [0, 0], [0, 0], [1, 1], [2, 4], [1, 1], [0, 0]]
    assert seen.read("cell written") == [[0, 0], [0, 0], [1, 1], [0, 0], [1, 1], [2, 4], [1, 1]]
    assert seen.read("symbol read")[2:] == ["1", "1", "_", "1", "1"]
    seen = trace(build(increment(4), RECURRENCE), ["1", "1", *steps])
    assert seen.read("cells")[-3:] == [[2, 4, 2, 4, 1], [1, 1, 3, 9, 1], [0, 0, 2, 4, 1]]
    assert seen.read("symbol read")[2:] == ["1", "1", "_", "1", "1"]


def test_negative_cells_are_told_apart() -> None:
    rules = {"a": {"_": "x L b", "x": "x L b"}, "b": {"_": "_ L c", "x": "_ L c"}, "c": {"_": "x R a", "x": "_ R a"}}
    machine = TuringMachine.of(rules, start="a", halt=[], alphabet=[], marks=["x"], steps=300)
    steps = naive(machine, "", 300)[0]
    assert all(answers(build(machine, name), "", steps) == steps for name in NAMES)
    assert min(trace(build(machine, NAME), steps[:60]).read("cell"))[0] < -5


@pytest.mark.parametrize("bits", [11, 24])
def test_the_reach_of_a_format_is_where_the_proved_gap_ends(bits: int) -> None:
    """Simulated with so many bits: the right position wins by half of its gap, and means are in the worst order."""
    longest, u = longest_selection(bits), Fraction(1, 1 << bits)
    n = longest + 1
    assert 16 * n**2 * u <= 1 < 16 * (n + 1) ** 2 * u
    if bits == 24:
        rng = np.random.default_rng(0)
        for _ in range(200):
            moves = rng.choice(np.array([-1, 0, 1], dtype=np.float32), size=n - 1, p=rng.dirichlet([1, 1, 1]))
            share = np.float32(1) / np.float32(n)
            mean = np.cumsum(np.concatenate([[0], moves]).astype(np.float32) * share, dtype=np.float32)[-1]
            keys = np.arange(n, dtype=np.float32)
            cell = int(moves.sum())
            for sign in (1, -1):
                scores = np.float32(2 * sign) * mean * keys - share * (keys * keys)
                assert scores.argmax() == max(sign * cell, 0)
                assert (scores == scores.max()).sum() == 1


def test_what_is_refused() -> None:
    with pytest.raises(BuildRefused, match="float64 carries this network up to --max-length 23726565, not 30000000"):
        build(increment(3), NAME, max_length=30_000_000)
    with pytest.raises(BuildRefused, match="at least the length of the inputs, 5, is 4"):
        build(increment(5), NAME, max_length=4)
    assert any_length_turing(increment(5), attention="hard").max_length == 133


@pytest.mark.parametrize("name", NAMES)
def test_nearly_every_mutation_is_noticed(name: str) -> None:
    """What survives belongs to negative cells, to which this machine never comes, or is told twice."""
    machine = palindrome(6)
    tested = mutation_test(build(machine, name, max_length=40), machine, count=60, work=1e7)
    assert tested.rate >= 0.85, tested.survivors


@pytest.mark.parametrize("name", NAMES)
def test_both_links_are_proved_to_the_end_of_float64(name: str) -> None:
    weights = build(palindrome(5), name)
    evidence = certify(weights, palindrome(5), work=1e7, prove=True)
    assert evidence.verdict == "holds"
    assert {(link.lemma, link.longest) for link in evidence.links} == {("machine steps at any length", 23_726_565)}
