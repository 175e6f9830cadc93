"""Circuits to build and test with: adders, multipliers, random ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.spec.circuit import Circuit


class Gates:
    """Gates under construction: equal gates are one, and constants cost nothing."""

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        self.literals = tuple(2 * variable for variable in range(1, len(inputs) + 1))
        self.gates: list[tuple[int, int]] = []
        self._known: dict[tuple[int, int], int] = {}

    def conjunction(self, a: int, b: int) -> int:
        """The literal of a AND b."""
        if a == b ^ 1 or 0 in (a, b):
            return 0
        if a == b or 1 in (a, b):
            return max(a, b)
        pair = (max(a, b), min(a, b))
        if pair not in self._known:
            self.gates.append(pair)
            self._known[pair] = 2 * (len(self.inputs) + len(self.gates))
        return self._known[pair]

    def disjunction(self, a: int, b: int) -> int:
        """The literal of a OR b."""
        return self.conjunction(a ^ 1, b ^ 1) ^ 1

    def difference(self, a: int, b: int) -> int:
        """The literal of a XOR b: three gates, of which a AND b is one."""
        return self.conjunction(self.conjunction(a, b) ^ 1, self.disjunction(a, b))

    def sum(self, a: int, b: int, carry: int) -> tuple[int, int]:
        """The two digits of a + b + carry, the low one first."""
        half = self.difference(a, b)
        return self.difference(half, carry), self.disjunction(self.conjunction(a, b), self.conjunction(half, carry))

    def circuit(self, outputs: Sequence[tuple[str, int]], *comment: str) -> Circuit:
        """The circuit with these outputs."""
        return Circuit(self.inputs, tuple(self.gates), tuple(outputs), comment)


def adder(bits: int) -> Circuit:
    """The sum of two numbers of so many bits, lowest bits first: a ripple of carries.

    >>> adder(8).and_gates
    52
    """
    made = Gates([f"{name}{bit}" for name in "ab" for bit in range(bits)])
    digits, carry = [], 0
    for a, b in zip(made.literals[:bits], made.literals[bits:], strict=True):
        digit, carry = made.sum(a, b, carry)
        digits.append(digit)
    return made.circuit(
        [(f"s{bit}", digit) for bit, digit in enumerate([*digits, carry])], f"{bits}-bit adder: s = a + b"
    )


def multiplier(bits: int) -> Circuit:
    """The product of two numbers of so many bits, lowest bits first: shifted rows added one after the other.

    >>> multiplier(4).and_gates
    84
    """
    made = Gates([f"{name}{bit}" for name in "ab" for bit in range(bits)])
    a, b = made.literals[:bits], made.literals[bits:]
    total = [0] * (2 * bits)
    for shift, by in enumerate(b):
        carry = 0
        for place, bit in enumerate(a, start=shift):
            total[place], carry = made.sum(total[place], made.conjunction(bit, by), carry)
        total[shift + bits] = carry
    outputs = [(f"p{bit}", digit) for bit, digit in enumerate(total)]
    return made.circuit(outputs, f"{bits}-bit multiplier: p = a * b")


def random_circuit(seed: int, inputs: int, gates: int, outputs: int) -> Circuit:
    """Gates over random literals, constants among them; the outputs are random literals, too."""
    rng = np.random.default_rng(seed)
    pairs = [tuple(rng.integers(2 * (1 + inputs + gate), size=2).tolist()) for gate in range(gates)]
    ends = rng.integers(2 * (1 + inputs + gates), size=outputs).tolist()
    return Circuit(tuple(f"x{n}" for n in range(inputs)), tuple(pairs), tuple((f"y{n}", e) for n, e in enumerate(ends)))
