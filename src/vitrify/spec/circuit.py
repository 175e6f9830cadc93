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
from numpy.typing import ArrayLike, NDArray

from vitrify.errors import InputError, SpecError
from vitrify.spec.display import Displayed

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Circuit(Displayed):
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
        problems = list(_problems(self))
        if problems:
            raise SpecError(problems)

    @classmethod
    def read(cls, path: str | Path) -> Circuit:
        """The circuit of an `.aag` file, its variables in the order of their making."""
        from vitrify.spec.circuit_files import read_aiger

        return read_aiger(Path(path))

    def write(self, path: str | Path) -> None:
        """Write an `.aag` file that reads back as this value."""
        from vitrify.spec.circuit_files import aiger_text

        Path(path).write_text(aiger_text(self), encoding="utf-8", newline="\n")

    # What it means

    def values(self, inputs: ArrayLike) -> Bools:
        """The value of every variable, [..., variable], for input bits [..., input]; variable 0 is false."""
        given = np.asarray(inputs)
        if given.ndim == 0 or given.shape[-1] != len(self.inputs) or not np.isin(given, (0, 1)).all():
            raise InputError(f"the circuit reads {len(self.inputs)} bits, each 0 or 1: {', '.join(self.inputs)}")
        first = 1 + len(self.inputs)
        found = np.zeros((first + len(self.gates), *given.shape[:-1]), dtype=bool)  # a variable's values lie together
        found[1:first] = np.moveaxis(given.astype(bool), -1, 0)
        for variable, (left, right) in enumerate(self.gates, start=first):
            found[variable] = (found[left >> 1] ^ bool(left & 1)) & (found[right >> 1] ^ bool(right & 1))
        return np.moveaxis(found, 0, -1)

    def evaluate(self, inputs: ArrayLike) -> Bools:
        """The outputs, [..., output], for input bits [..., input]."""
        literals = np.array([literal for _, literal in self.outputs], dtype=np.int64)
        found: Bools = self.values(inputs)[..., literals >> 1] ^ (literals & 1).astype(bool)
        return found

    # As a chain of thought: the values of the gates, one after the other

    BITS: ClassVar[tuple[str, str]] = ("0", "1")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The symbols of inputs and of values."""
        return self.BITS

    @property
    def written(self) -> tuple[str, ...]:
        """The symbols of values."""
        return self.BITS

    def prompt_length(self, words: Sequence[str]) -> int:
        """The inputs come first, then the gates."""
        return min(len(words), len(self.inputs))

    def thought(self, prompt: Sequence[str], most: int) -> tuple[str, ...]:
        """The values of the first gates, in order, for the bits of all inputs."""
        if len(prompt) < len(self.inputs):
            return ()
        values = self.values([self.BITS.index(bit) for bit in prompt])[1 + len(self.inputs) :]
        return tuple(self.BITS[value] for value in values[:most].astype(int).tolist())

    def prompts(self) -> Iterator[tuple[str, ...]]:
        """All rows of bits, up to one for each input."""
        return (bits for length in range(len(self.inputs) + 1) for bits in product(self.BITS, repeat=length))

    def draw_prompt(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Random bits, sometimes mostly zeros or mostly ones."""
        return tuple(self.BITS[bit] for bit in (rng.random(len(self.inputs)) < rng.random()).astype(int).tolist())

    def conclusion(self, prompt: Sequence[str], thought: Sequence[str]) -> dict[str, str]:
        """The outputs that the inputs and the gates written so far tell, by name."""
        bits = ["0", *prompt, *thought]
        known = [(name, literal) for name, literal in self.outputs if literal >> 1 < len(bits)]
        return {name: self.BITS[self.BITS.index(bits[e >> 1]) ^ (e & 1)] for name, e in known}

    @property
    def and_gates(self) -> int:
        """How many gates there are."""
        return len(self.gates)

    @cached_property
    def depth(self) -> int:
        """Gates on the longest way from an input to an output; negations are free."""
        levels = [0] * (1 + len(self.inputs))
        for left, right in self.gates:
            levels.append(1 + max(levels[left >> 1], levels[right >> 1]))
        return max((levels[literal >> 1] for _, literal in self.outputs), default=0)


def _problems(circuit: Circuit) -> Iterator[str]:
    """Every broken rule of a circuit."""
    first = 1 + len(circuit.inputs)
    for variable, pair in enumerate(circuit.gates, start=first):
        for literal in pair:
            if not 0 <= literal < 2 * variable:
                yield f"the gate {2 * variable} reads {literal}, which is not made before it"
    for name, literal in circuit.outputs:
        if not 0 <= literal < 2 * (first + len(circuit.gates)):
            yield f"the output {name} is the literal {literal}, which nothing makes"
    for what, names in (("input", circuit.inputs), ("output", [name for name, _ in circuit.outputs])):
        yield from _odd_names(what, names)


def _odd_names(what: str, names: Sequence[str]) -> Iterator[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{times} {what}s are called {name!r}: give each its own name"
        if not name or "\n" in name:
            yield f"the name of an {what} is a line of text, not {name!r}"
