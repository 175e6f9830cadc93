"""Circuits of wide gates against their meaning, written out in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from vitrify.bounds.ac0 import to_aiger
from vitrify.bounds.gates import FALSE, TRUE, GateWiring, WideCircuit, all_words, input_bits
from vitrify.errors import BuildRefused, InputError
from vitrify.spec.computation.circuit import Circuit

Drawn = tuple[GateWiring, list[int], list[Any]]


def all_bits(width: int) -> np.ndarray:
    return np.indices((2,) * width).reshape(width, -1).T.astype(bool)


@st.composite
def wirings(draw: st.DrawFn, thresholds: bool = True) -> Drawn:
    """A wiring with random gates, the literal that each call gave, and the calls."""
    wiring = GateWiring([f"x{n}" for n in range(draw(st.integers(1, 4)))])
    literals, calls = [FALSE, TRUE, *wiring.literals], list[Any]()
    for _ in range(draw(st.integers(0, 8))):
        read = [literals[draw(st.integers(0, len(literals) - 1))] ^ draw(st.integers(0, 1)) for _ in range(3)]
        kind = draw(st.sampled_from(["and", "or", "threshold"] if thresholds else ["and", "or"]))
        weights = [draw(st.integers(-3, 3)) for _ in read]
        least = draw(st.integers(-4, 4))
        made = {"and": wiring.all_of, "or": wiring.any_of}.get(kind)
        literals.append(made(read) if made else wiring.at_least(weights, read, least))
        calls.append((kind, read, weights, least, literals[-1]))
    return wiring, literals, calls


def meant(calls: list[Any], bits: np.ndarray) -> dict[int, int]:
    """The value of every literal for one input, call by call."""
    value = {FALSE: 0, TRUE: 1}
    for variable, bit in enumerate(bits.tolist(), start=1):
        value |= {2 * variable: int(bit), 2 * variable + 1: 1 - int(bit)}
    for kind, read, weights, least, literal in calls:
        given_values = [value[wire] for wire in read]
        found = {
            "and": min(given_values),
            "or": max(given_values),
            "threshold": int(sum(w * v for w, v in zip(weights, given_values, strict=True)) >= least),
        }[kind]
        assert value.get(literal, found) == found  # a gate that is shared, or simplified away, means the same
        value |= {literal: found, literal ^ 1: 1 - found}
    return value


@pytest.mark.long
@given(wirings())
@settings(max_examples=examples(150), deadline=None)
def test_a_circuit_computes_what_its_gates_say(case: Drawn) -> None:
    wiring, literals, calls = case
    circuit = wiring.circuit([(f"y{place}", literal) for place, literal in enumerate(literals)])
    bits = all_bits(len(wiring.inputs))
    expected = [[meant(calls, row)[literal] for literal in literals] for row in bits]
    assert circuit.evaluate(bits).astype(int).tolist() == expected


@given(wirings(thresholds=False))
@settings(max_examples=examples(60), deadline=None)
def test_two_input_gates_compute_the_same(case: Drawn) -> None:
    wiring, literals, _ = case
    wide = wiring.circuit([(f"y{place}", literal) for place, literal in enumerate(literals)])
    bits = all_bits(len(wiring.inputs))
    assert np.array_equal(to_aiger(wide).evaluate(bits), wide.evaluate(bits))


def majority(count: int) -> WideCircuit:
    wiring = GateWiring([f"x{n}" for n in range(count)])
    return wiring.circuit([("most", wiring.at_least([2] * count, wiring.literals, count + 1))])


def test_sizes_are_counted() -> None:
    wiring = GateWiring(["a", "b", "c", "d"])
    a, b, c, d = wiring.literals
    both, none = wiring.all_of([a, b]), wiring.all_of([a ^ 1, c ^ 1, d ^ 1])
    wiring.all_of([c, d])  # no output needs it
    some = wiring.at_least([5, -8, 3], [both, none ^ 1, d], 4)
    size = wiring.circuit([("y", wiring.any_of([some ^ 1, both]))]).size
    assert (size.ands, size.ors, size.thresholds, size.depth, size.wires) == (2, 1, 1, 3, 2 + 3 + 3 + 2)
    assert size.nots == 5  # a, c, d, none, some
    assert size.gates == 9
    assert size.weight_bits == 4
    assert size.to_json()["gates"] == 9


def test_constants_and_single_wires_cost_nothing() -> None:
    wiring = GateWiring(["a", "b"])
    a, b = wiring.literals
    assert (wiring.all_of([]), wiring.any_of([])) == (TRUE, FALSE)
    assert (wiring.all_of([a, FALSE]), wiring.any_of([a, TRUE])) == (FALSE, TRUE)
    assert (wiring.all_of([a, TRUE, a]), wiring.any_of([FALSE, b])) == (a, b)
    assert (wiring.all_of([a, a ^ 1]), wiring.any_of([a, a ^ 1])) == (FALSE, TRUE)
    assert (wiring.at_least([1, -1], [a, b], -1), wiring.at_least([1, -1], [a, b], 2)) == (TRUE, FALSE)
    assert wiring.all_of([b, a]) == wiring.all_of([a, b])
    assert len(wiring.gates) == 1


def test_many_inputs_are_evaluated_in_batches() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (10_001, 9)).astype(bool)
    assert np.array_equal(majority(9).evaluate(bits)[:, 0], bits.sum(axis=1) >= 5)


def test_bad_bits_and_heavy_weights_are_refused() -> None:
    with pytest.raises(InputError, match=r"rows of 3 bits, got an array of shape \(2, 4\)"):
        majority(3).evaluate(np.zeros((2, 4), dtype=bool))
    with pytest.raises(BuildRefused, match=r"sum to 2\^53 or more"):
        GateWiring(["a"]).at_least([1 << 53], [2], 1)
    with pytest.raises(BuildRefused, match="has threshold gates"):
        to_aiger(majority(3))


def test_input_bits_are_one_hot_by_place() -> None:
    words = all_words(3, 2)
    assert len(words) == 9
    assert sorted(map(tuple, words.tolist())) == [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)]
    assert input_bits(np.array([[2, 1]]), 3).astype(int).tolist() == [[0, 1, 0, 1, 0, 0]]


def test_wide_gates_become_balanced_trees(tmp_path: object) -> None:
    wiring = GateWiring([f"x{n}" for n in range(9)])
    wide = wiring.circuit([("all", wiring.all_of(wiring.literals)), ("some", wiring.any_of(wiring.literals))])
    assert wide.size.depth == 1
    narrow = to_aiger(wide, "two trees")
    assert (narrow.and_gates, narrow.depth) == (16, 4)
    path = f"{tmp_path}/wide.aag"
    narrow.write(path)
    assert Circuit.read(path) == narrow
