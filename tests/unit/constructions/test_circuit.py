"""Circuits step by step: decoded, against arithmetic and evaluation; sizes by formula; what is refused; mutations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from built import ATTENTIONS
from cases import each
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.constructions.catalogue import Attention, build
from vitrify.constructions.circuit import circuit_by_steps, sizes
from vitrify.errors import BuildRefused, FolderError
from vitrify.kit import assemble
from vitrify.net.generate import generate
from vitrify.net.inference import trace
from vitrify.spec.computation.circuit import Circuit, adder, multiplier, random_circuit


def number(bits: list[str]) -> int:
    return sum(int(bit) << place for place, bit in enumerate(bits))


@each("attention", ATTENTIONS)
@each("bits", [1, 2, 3])
def test_sums_and_products_come_out_of_thoughts(bits: int, attention: Attention) -> None:
    prompts = list(product("01", repeat=2 * bits))
    for circuit, result in ((adder(bits), int.__add__), (multiplier(bits), int.__mul__)):
        weights = assemble(circuit_by_steps(circuit, attention=attention))
        for thought in generate(weights, prompts, circuit.and_gates):
            a, b = number(list(thought.prompt[:bits])), number(list(thought.prompt[bits:]))
            said = circuit.conclusion(thought.prompt, thought.symbols)
            assert list(said) == [name for name, _ in circuit.outputs]
            assert number(list(said.values())) == result(a, b)
            assert thought.steps == circuit.and_gates


@pytest.mark.slow
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_the_adder_of_eight_bits_on_all_inputs(attention: Attention) -> None:
    circuit = adder(8)
    weights = assemble(circuit_by_steps(circuit, attention=attention))
    prompts = list(product("01", repeat=16))
    for at in range(0, len(prompts), 4096):
        for thought in generate(weights, prompts[at : at + 4096], circuit.and_gates):
            a, b = number(list(thought.prompt[:8])), number(list(thought.prompt[8:]))
            assert number(list(circuit.conclusion(thought.prompt, thought.symbols).values())) == a + b


@pytest.mark.long
@each("seed", range(9))
def test_random_circuits_and_sizes(seed: int) -> None:
    circuit = random_circuit(seed, inputs=seed % 5, gates=1 + 7 * seed, outputs=3)
    attention = ATTENTIONS[seed % 3]
    weights = assemble(circuit_by_steps(circuit, attention=attention))
    prompts = list(product("01", repeat=len(circuit.inputs)))
    right = circuit.values(np.array(prompts, dtype=int).reshape(len(prompts), len(circuit.inputs)))
    for values, thought in zip(right, generate(weights, prompts, circuit.and_gates), strict=True):
        assert [int(bit) for bit in thought.symbols] == values[1 + len(circuit.inputs) :].tolist()
    assert not sizes(circuit).problems(weights.sizes)
    assert certify(weights, circuit, work=1e7).verdict == "holds"


def test_operands_are_fetched_from_where_they_stand() -> None:
    circuit = Circuit(("a", "b", "c"), ((2, 7), (5, 8), (1, 10)), (("y", 12),))
    seen = trace(assemble(circuit_by_steps(circuit)), "10011")  # a ∧ ¬c = 1, ¬b ∧ that = 1
    assert seen.read("left operand")[3:] == [1, 0, 0]
    assert seen.read("right operand")[3:] == [0, 1, 1]
    assert seen.read("gate")[3:] == [1, 1, 1]


def test_nearly_every_mutation_is_noticed() -> None:
    found = mutation_test(assemble(circuit_by_steps(adder(3))), adder(3), count=60, work=1e7)
    assert found.rate >= 0.95, found.survivors


def test_what_is_refused() -> None:
    with pytest.raises(BuildRefused, match="without gates"):
        build(Circuit(("a",), (), (("y", 3),)))
    with pytest.raises(BuildRefused, match="no such choice: leave --max-length out"):
        build(adder(2), max_length=9)
    with pytest.raises(FolderError, match="do not speak about the same symbols"):
        oracle_for(
            adder(2),
            build(multiplier(2)).architecture.__class__(("<s>", "x"), build(adder(2)).architecture.output, 3, 2),
        )
