"""Turing machines on a recurrence and one head: every step of known and of random machines; sizes; ablations."""

from __future__ import annotations

import numpy as np
import pytest

from built import ATTENTIONS
from vitrify.certification import certify
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.hybrid_turing import hybrid_turing, sizes
from vitrify.constructions.turing import turing
from vitrify.kit import assemble
from vitrify.net.generate import generate
from vitrify.net.inference import trace
from vitrify.spec.computation.turing import TuringMachine, busy_beaver, increment, palindrome, random_machine

MOVES = {"L": -1, "S": 0, "R": 1}


def simulated(machine: TuringMachine, word: str, most: int) -> tuple[list[str], list[int]]:
    """The steps of a machine and the cells where its head stands, from its rules and nothing else."""
    rules = {(rule.state, rule.read): rule for rule in machine.rules}
    tape, state, head = dict(enumerate(word)), machine.start, 0
    written: list[str] = []
    cells = [0]
    while len(written) < most and state not in machine.halt:
        rule = rules[state, tape.get(head, machine.blank)]
        written.append(f"{rule.write},{rule.move},{rule.to}")
        tape[head], state, head = rule.write, rule.to, head + MOVES[rule.move]
        cells.append(head)
    return written, cells


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_known_machines_to_the_end(attention: Attention) -> None:
    for machine, inputs in (
        (increment(6), ["", "0", "1011", "111111", "010"]),
        (palindrome(6), ["", "a", "ab", "abba", "abaaba", "aabab"]),
        (busy_beaver(), [""]),
    ):
        weights = assemble(hybrid_turing(machine, attention=attention))
        for thought in generate(weights, inputs, machine.limit):
            assert list(thought.symbols) == simulated(machine, "".join(thought.prompt), machine.limit)[0]
            assert thought.stopped
    assert thought.steps == 107


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(s, marks=pytest.mark.slow) for s in range(3, 200))])
def test_random_machines_for_200_steps(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    machine = random_machine(seed, int(rng.integers(2, 7)), int(rng.integers(2, 5)), steps=200)
    weights = assemble(hybrid_turing(machine, attention=ATTENTIONS[seed % 3]))
    inputs = ["".join(machine.draw_prompt(rng)) for _ in range(2)]
    for word, thought in zip(inputs, generate(weights, [list(word) for word in inputs], 200), strict=True):
        assert list(thought.symbols) == simulated(machine, word, 200)[0]


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_sizes_and_certificates(attention: Attention) -> None:
    for machine in (increment(3), palindrome(4), random_machine(3, 5, 4, steps=30)):
        weights = assemble(hybrid_turing(machine, attention=attention))
        assert not sizes(machine, max_length=None).problems(weights.sizes)
        assert weights.architecture.blocks[0].cell.state == 2  # type: ignore[union-attr]
        assert certify(weights, machine, work=1e7).verdict == "holds"


def test_the_recurrence_holds_the_cell_and_the_place_in_the_input() -> None:
    machine = palindrome(4)
    weights = assemble(hybrid_turing(machine))
    steps, cells = simulated(machine, "abb", 99)
    seen = trace(weights, [*"abb", *steps[:-1]])
    assert seen.read("cell") == [0, 0, 0, 0, *cells[1:-1]]
    assert seen.read("place in the input") == [0, 1, 2, 3, *[0] * (len(steps) - 1)]


def test_neither_part_does_it_alone() -> None:
    machine = palindrome(4)
    weights = assemble(hybrid_turing(machine))
    for name in ("blocks.0.rec.W_C", "blocks.1.attn.W_O"):
        broken = weights.with_array(name, np.zeros_like(weights.arrays[name]))
        assert certify(broken, machine, work=1e7).verdict == "fails"


def test_one_attention_layer_less_than_without_a_recurrence() -> None:
    machine = increment(4)
    mixed, plain = (assemble(make(machine)).sizes for make in (hybrid_turing, turing))
    assert (mixed.attention_layers, plain.attention_layers) == (1, 2)
    assert (mixed.heads, plain.heads) == (1, 3)
