"""Circuits: what they compute, against arithmetic and against plain recursion; their files."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError, SpecError
from vitrify.spec import read_spec
from vitrify.spec.computation.circuit import Circuit, Gates, adder, multiplier, random_circuit

EXAMPLES = Path(__file__).parents[3] / "examples"


def number(bits: np.ndarray) -> np.ndarray:
    return np.asarray(bits.astype(int) @ (1 << np.arange(bits.shape[-1])))


@each("bits", [1, 2, 3, 5])
def test_adders_add_and_multipliers_multiply(bits: int) -> None:
    inputs = np.array(list(product((0, 1), repeat=2 * bits)))
    a, b = number(inputs[:, :bits]), number(inputs[:, bits:])
    assert np.array_equal(number(adder(bits).evaluate(inputs)), a + b)
    assert np.array_equal(number(multiplier(bits).evaluate(inputs)), a * b)


def recursive(circuit: Circuit, literal: int, bits: list[int]) -> int:
    """A literal's value by the definition."""
    variable, negated = divmod(literal, 2)
    if variable == 0:
        value = 0
    elif variable <= len(bits):
        value = bits[variable - 1]
    else:
        left, right = circuit.gates[variable - 1 - len(bits)]
        value = min(recursive(circuit, left, bits), recursive(circuit, right, bits))
    return 1 - value if negated else value


@each("seed", range(8))
def test_values_and_depth_are_those_of_the_definition(seed: int) -> None:
    circuit = random_circuit(seed, inputs=1 + seed % 4, gates=9, outputs=3)
    inputs = np.random.default_rng(seed).integers(2, size=(2, 3, len(circuit.inputs)))
    found = circuit.evaluate(inputs)
    assert found.shape == (2, 3, 3)
    for place in np.ndindex(2, 3):
        assert [recursive(circuit, e, inputs[place].tolist()) for _, e in circuit.outputs] == found[place].tolist()

    def level(variable: int) -> int:
        gate = variable - 1 - len(circuit.inputs)
        return 0 if gate < 0 else 1 + max(level(literal >> 1) for literal in circuit.gates[gate])

    assert circuit.depth == max(level(literal >> 1) for _, literal in circuit.outputs)


def test_gates_are_shared_and_constants_are_free() -> None:
    made = Gates("ab")
    a, b = made.literals
    pairs = [(a, b), (b, a), (a, 1), (1, b), (a, 0), (0, 0), (1, 1), (a, a), (a, a + 1)]
    assert [made.conjunction(*pair) for pair in pairs] == [6, 6, a, b, 0, 0, 1, a, 0]
    assert len(made.gates) == 1


def test_files_read_back_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "some.aag"
    unnamed = Circuit(("i0", "i1"), ((5, 3),), (("o0", 7), ("o1", 0)))
    for circuit in (adder(8), multiplier(4), unnamed, *(random_circuit(s, s % 3, s, 2) for s in range(6))):
        circuit.write(path)
        text = path.read_bytes()
        again = Circuit.read(path)
        assert again == circuit
        again.write(path)
        assert path.read_bytes() == text
    assert read_spec(EXAMPLES / "adder8.aag") == adder(8)
    assert read_spec(EXAMPLES / "multiplier4.aag") == multiplier(4)


def test_gates_may_come_in_any_order_with_any_numbers(tmp_path: Path) -> None:
    path = tmp_path / "any.aag"
    path.write_text("aag 99 2 0 2 3\n40\n6\n13\n1\n12 9 10\n8 41 7\n10 40 6\no0 xor\ni1 b x\nc\n two\n\nlines\n")
    found = Circuit.read(path)
    assert found == Circuit(("i0", "b x"), ((3, 5), (2, 4), (7, 8)), (("xor", 11), ("o1", 1)), (" two", "", "lines"))


GOOD = "aag 3 2 0 1 1\n2\n4\n6\n6 2 5\ni0 a\nc\nhello\n"
BAD = {
    "empty": ("", [":1: the first line must say 'aag M I L O A' in whole numbers, says ''"]),
    "binary": (GOOD.replace("aag", "aig"), [":1: this is the binary form"]),
    "short header": (
        GOOD.replace("aag 3 2 0 1 1", "aag 3 2 0 1"),
        [":1: the first line must say .*says 'aag 3 2 0 1'"],
    ),
    "words": (GOOD.replace("aag 3", "aag three"), [":1: the first line must say"]),
    "latches": ("aag 3 2 1 1 0\n2\n4\n6 2\n6\n", [":1: the circuit has 1 latches: only circuits without memory"]),
    "more": (GOOD.replace("1 1\n", "1 1 0 2\n", 1), [":1: properties and constraints"]),
    "too few variables": (GOOD.replace("aag 3", "aag 2"), [r":1: M counts .* at least I \+ L \+ A = 3, is 2"]),
    "counts": (
        GOOD.replace("2 0 1 1", "1 0 1 2"),
        [":1: the header says 1 inputs and 1 outputs, but 3 lines", ":1: the header says 2 gates, but 1 lines"],
    ),
    "no lines": ("aag 1 1 0 0 0", [":1: the header says 1 inputs and 0 outputs, but 0 lines have one number"]),
    "two numbers": (
        GOOD.replace("6 2 5", "6 2"),
        [":1: the header says 1 gates, but 0", ":5: a line has one number .* or three .*, not 2"],
    ),
    "order": (
        "aag 3 2 0 1 1\n2\n6 2 5\n4\n6\n",
        [":4: inputs and outputs come before the gates", ":5: inputs and outputs come before the gates"],
    ),
    "strange": (GOOD.replace("i0 a", "hello\n-1\ni0"), [":6: a line holds numbers", ":7: a line", ":8: a line .*'i0'"]),
    "names": (
        GOOD.replace("i0 a", "i0 a\ni0 b\ni1 a\ni2 c\nl0 d\no1 e"),
        [
            ":7: i0 is named twice",
            ":8: two inputs are called 'a'",
            ":9: there is no i2: the header says 2 inputs",
            r":10: only inputs \(i\) and outputs \(o\) have names, not l0",
            ":11: there is no o1",
        ],
    ),
    "names first": ("aag 1 1 0 1 0\n2\ni0 a\n2\n", [":4: names come after all numbers"]),
    "literals": (
        "aag 4 2 0 2 2\n3\n2\n6\n9\n2 3 12\n7 0 1\n",
        [
            ":2: an input must be an even number from 2, is 3",
            ":4: 6 is not defined: no input and no gate is 6",
            ":5: 9 is not defined: no input and no gate is 8",
            ":6: 2 is defined twice, first in line 3",
            r":6: 12 is more than 2M \+ 1 = 9",
            ":7: the left of a gate must be an even number from 2, is 7",
        ],
    ),
    "constant": ("aag 2 2 0 0 0\n0\n2\n", [":2: an input must be an even number from 2, is 0"]),
    "cycle": ("aag 4 1 0 1 3\n2\n4\n4 2 6\n6 8 2\n8 5 3\n", [":6: the gate 8 depends on itself, by way of 4"]),
    "everything": (
        "aag 2 1 0 1 1\n2\n5\n4 2 7\ni1 x\n",
        [":4: 7 is more than 2M", ":5: there is no i1"],
    ),
    "itself": ("aag 2 1 0 1 1\n2\n4\n4 2 4\n", [":4: the gate 4 depends on itself, by way of 4"]),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines_all_at_once(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.aag"
    path.write_text(text, encoding="utf-8")
    for message in messages:
        with pytest.raises(SpecError, match=message):
            Circuit.read(path)
    with pytest.raises(SpecError) as caught:
        Circuit.read(path)
    assert len(caught.value.problems) == len(messages)


def test_values_are_checked_too(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match="the gate 4 reads 4, which is not defined before it\nthe output y is the literal 9"
    ):
        Circuit(("x",), ((4, 2),), (("y", 9),))
    with pytest.raises(SpecError, match=r"2 inputs are called 'x'.*\n.* an output is a line of text, not ''"):
        Circuit(("x", "x"), (), (("", 2),))
    with pytest.raises(SpecError, match=r"must end in \.aag"):
        Circuit.read(tmp_path / "x.aig")
    for bits in ([0, 1], [0, 1, 2], 1, [[1, 0, 1, 0]]):
        with pytest.raises(InputError, match="the circuit reads 3 bits, each 0 or 1: x0, x1, x2"):
            random_circuit(0, 3, 2, 1).evaluate(bits)
