r"""Boolean circuits as and-inverter graphs; ASCII AIGER files, `.aag`.

A *literal* is $2v$ for the variable $v$ and $2v + 1$ for its negation; variable 0 is false. Variables $1 \dots I$ are
the inputs, and the gates follow, each the conjunction of two literals of variables before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Bools
from vitrify.errors import InputError
from vitrify.spec.computation.thought import Thinking
from vitrify.spec.formats.text import refuse_any
from vitrify.spec.kinds import Kind


@dataclass(frozen=True)
class Circuit(Thinking):
    """Inputs by name, gates as pairs of literals, outputs as names with literals.

    >>> xor = Circuit(("a", "b"), ((3, 5), (2, 4), (7, 9)), (("a⊕b", 10),))
    >>> xor.evaluate([[0, 0], [0, 1], [1, 0], [1, 1]]).astype(int).tolist()
    [[0], [1], [1], [0]]
    >>> xor.and_gates, xor.depth
    (3, 2)
    """

    inputs: tuple[str, ...]
    gates: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[str, int], ...]
    comment: tuple[str, ...] = ()
    suffix: ClassVar[str] = ".aag"

    def __post_init__(self) -> None:
        refuse_any(_problems(self))

    @classmethod
    def read(cls, path: str | Path) -> Circuit:
        """Read an `.aag` file; its gates may be in any order and have any numbers, and are put in order."""
        from vitrify.spec.computation.circuit_files import AigerFile

        return cls(*AigerFile(Path(path)).circuit())

    def to_text(self) -> str:
        """Return the `.aag` text; default names are left out."""
        first, count = 1 + len(self.inputs), len(self.gates)
        lines = [f"aag {first + count - 1} {len(self.inputs)} 0 {len(self.outputs)} {count}"]
        lines += [str(2 * variable) for variable in range(1, first)]
        lines += [str(literal) for _, literal in self.outputs]
        lines += [f"{2 * variable} {left} {right}" for variable, (left, right) in enumerate(self.gates, start=first)]
        lines += [f"i{index} {name}" for index, name in enumerate(self.inputs) if name != f"i{index}"]
        lines += [f"o{index} {name}" for index, (name, _) in enumerate(self.outputs) if name != f"o{index}"]
        lines += ["c", *self.comment] if self.comment else []
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def samples(cls) -> dict[str, Circuit]:
        return {"adder": adder(2), "random": random_circuit(1, 3, 12, 2), "constant": random_circuit(2, 0, 4, 1)}

    # Meaning

    def values(self, inputs: ArrayLike) -> Bools:
        """Return the value of every variable, [..., variable], for input bits [..., input]; variable 0 is false."""
        bits = np.asarray(inputs)
        if bits.ndim == 0 or bits.shape[-1] != len(self.inputs) or not np.isin(bits, (0, 1)).all():
            raise InputError(f"the circuit reads {len(self.inputs)} bits, each 0 or 1: {', '.join(self.inputs)}")
        first = 1 + len(self.inputs)
        by_variable = np.zeros((first + len(self.gates), *bits.shape[:-1]), dtype=bool)  # [variable, ...]
        by_variable[1:first] = np.moveaxis(bits.astype(bool), -1, 0)
        for variable, (left, right) in enumerate(self.gates, start=first):
            a, b = (by_variable[literal >> 1] ^ bool(literal & 1) for literal in (left, right))
            by_variable[variable] = a & b
        return np.moveaxis(by_variable, 0, -1)

    def evaluate(self, inputs: ArrayLike) -> Bools:
        """Return the outputs, [..., output], for input bits [..., input]."""
        literals = np.array([literal for _, literal in self.outputs], dtype=np.int64)
        return np.asarray(self.values(inputs)[..., literals >> 1] ^ (literals & 1).astype(bool))

    # As a chain of thought: the values of the gates, one after the other

    BITS: ClassVar[tuple[str, str]] = ("0", "1")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Symbols of inputs and values."""
        return self.BITS

    @property
    def written(self) -> tuple[str, ...]:
        """Symbols of values."""
        return self.BITS

    def prompt_length(self, words: Sequence[str]) -> int:
        """Return the number of input bits among some words; the values of gates follow them."""
        return min(len(words), len(self.inputs))

    def thought(self, prompt: Sequence[str], most: int) -> tuple[str, ...]:
        """Return the values of the first `most` gates, in order, for the bits of all inputs."""
        if len(prompt) < len(self.inputs):
            return ()
        values = self.values([self.BITS.index(bit) for bit in prompt])[1 + len(self.inputs) :]
        return tuple(self.BITS[value] for value in values[:most].astype(int).tolist())

    def prompts(self) -> Iterator[tuple[str, ...]]:
        """Yield every string of bits that is no longer than the list of inputs, short ones first."""
        return (bits for length in range(len(self.inputs) + 1) for bits in product(self.BITS, repeat=length))

    def draw_prompt(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return random bits, sometimes mostly zeros or mostly ones."""
        return tuple(self.BITS[bit] for bit in (rng.random(len(self.inputs)) < rng.random()).astype(int).tolist())

    def conclusion(self, prompt: Sequence[str], thought: Sequence[str]) -> dict[str, str]:
        """Return the outputs by name; those that the gates written so far do not determine are `unknown`."""
        bits = ["0", *prompt, *thought]
        pairs = [(name, e >> 1, e & 1) for name, e in self.outputs]
        return {
            name: self.BITS[self.BITS.index(bits[variable]) ^ negated] if variable < len(bits) else "unknown"
            for name, variable, negated in pairs
        }

    def missing(self, prompt: Sequence[str], thought: Sequence[str]) -> str:
        """Return how many values are written, if an output is still unknown."""
        unknown = [name for name, value in self.conclusion(prompt, thought).items() if value == "unknown"]
        written = f"{len(thought)} of {len(self.gates)} gates are written"
        return f"{written}, so that {', '.join(unknown)} can't be known" if unknown else ""

    @property
    def and_gates(self) -> int:
        """Number of gates."""
        return len(self.gates)

    @cached_property
    def depth(self) -> int:
        """Gates on the longest path from an input to an output; negations are free."""
        levels = [0] * (1 + len(self.inputs))
        for left, right in self.gates:
            levels.append(1 + max(levels[left >> 1], levels[right >> 1]))
        return max((levels[literal >> 1] for _, literal in self.outputs), default=0)


def _problems(circuit: Circuit) -> Iterator[str]:
    first = 1 + len(circuit.inputs)
    for variable, pair in enumerate(circuit.gates, start=first):
        for literal in pair:
            if not 0 <= literal < 2 * variable:
                yield f"the gate {2 * variable} reads {literal}, which is not defined before it"
    for name, literal in circuit.outputs:
        if not 0 <= literal < 2 * (first + len(circuit.gates)):
            yield f"the output {name} is the literal {literal}, which is not defined"
    for what, names in (("input", circuit.inputs), ("output", [name for name, _ in circuit.outputs])):
        for name, times in Counter(names).items():
            if times > 1:
                yield f"{times} {what}s are called {name!r}: give each its own name"
            if not name or "\n" in name:
                yield f"the name of an {what} is a line of text, not {name!r}"


class Gates:
    """Builder of a circuit: equal gates are shared, and constants cost nothing."""

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        self.literals = tuple(2 * variable for variable in range(1, len(inputs) + 1))
        self.gates: list[tuple[int, int]] = []
        self._known: dict[tuple[int, int], int] = {}

    def conjunction(self, a: int, b: int) -> int:
        """Return the literal of a AND b."""
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
        """Return the literal of a OR b."""
        return self.conjunction(a ^ 1, b ^ 1) ^ 1

    def difference(self, a: int, b: int) -> int:
        """Return the literal of a XOR b: three gates, of which a AND b is one."""
        return self.conjunction(self.conjunction(a, b) ^ 1, self.disjunction(a, b))

    def sum(self, a: int, b: int, carry: int) -> tuple[int, int]:
        """Return the two digits of a + b + carry, the low one first."""
        half = self.difference(a, b)
        return self.difference(half, carry), self.disjunction(self.conjunction(a, b), self.conjunction(half, carry))

    def circuit(self, outputs: Sequence[tuple[str, int]], *comment: str) -> Circuit:
        """Return the circuit with these outputs."""
        return Circuit(self.inputs, tuple(self.gates), tuple(outputs), comment)


def adder(bits: int) -> Circuit:
    """Return the ripple-carry adder of two `bits`-bit numbers, lowest bits first.

    >>> adder(8).and_gates
    52
    """
    gates = Gates([f"{name}{bit}" for name in "ab" for bit in range(bits)])
    digits, carry = [], 0
    for a, b in zip(gates.literals[:bits], gates.literals[bits:], strict=True):
        digit, carry = gates.sum(a, b, carry)
        digits.append(digit)
    return gates.circuit(
        [(f"s{bit}", digit) for bit, digit in enumerate([*digits, carry])], f"{bits}-bit adder: s = a + b"
    )


def multiplier(bits: int) -> Circuit:
    """Return the multiplier of two `bits`-bit numbers, lowest bits first: shifted rows are added one after the other.

    >>> multiplier(4).and_gates
    84
    """
    gates = Gates([f"{name}{bit}" for name in "ab" for bit in range(bits)])
    a, b = gates.literals[:bits], gates.literals[bits:]
    total = [0] * (2 * bits)
    for shift, by in enumerate(b):
        carry = 0
        for position, bit in enumerate(a, start=shift):
            total[position], carry = gates.sum(total[position], gates.conjunction(bit, by), carry)
        total[shift + bits] = carry
    outputs = [(f"p{bit}", digit) for bit, digit in enumerate(total)]
    return gates.circuit(outputs, f"{bits}-bit multiplier: p = a * b")


def random_circuit(seed: int, inputs: int, gates: int, outputs: int) -> Circuit:
    """Return a circuit of gates over random literals, constants included; the outputs are random literals too."""
    rng = np.random.default_rng(seed)
    pairs = [tuple(rng.integers(2 * (1 + inputs + gate), size=2).tolist()) for gate in range(gates)]
    ends = rng.integers(2 * (1 + inputs + gates), size=outputs).tolist()
    return Circuit(tuple(f"x{n}" for n in range(inputs)), tuple(pairs), tuple((f"y{n}", e) for n, e in enumerate(ends)))


KIND = Kind(Circuit, {".aag": "Boolean circuit"})
