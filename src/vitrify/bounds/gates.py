r"""Circuits of gates that read any number of wires: AND, OR, weighted threshold gates, and free negation.

A *literal* is $2v$ for the variable $v$ and $2v + 1$ for its negation, as in AIGER files; literal 0 is false and 1 is
true. Variables $1 \dots I$ are the inputs, and the gates follow. A threshold gate says whether $\sum_k w_k x_k \ge
\theta$, for whole $w_k$ and $\theta$. Depth counts gates on the longest way from an input to an output; a negation adds
nothing to it, but its gates are counted: one for each variable that some gate reads negated.

Circuits without threshold gates, of constant depth and polynomial size, are those of AC⁰; with them, those of TC⁰.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import BuildRefused, InputError

Kind = Literal["and", "or", "threshold"]
Bools = NDArray[np.bool_]
Bits = list[dict[int, int]]  # for each position the literal of every type, or key, that may stand there

FALSE, TRUE = 0, 1
LARGEST = 1 << 53  # sums of weights below it are exact in floating-point numbers
BATCH = 1 << 12  # inputs that are evaluated together


@dataclass(frozen=True)
class Gate:
    """One gate: its kind and the literals that it reads; a threshold gate has a weight for each, and the least sum."""

    kind: Kind
    wires: tuple[int, ...]
    weights: tuple[int, ...] = ()
    least: int = 0


@dataclass(frozen=True)
class Size:
    """What a circuit costs; `weight_bits` is the length of its largest weight or threshold, in binary digits."""

    ands: int
    ors: int
    nots: int
    thresholds: int
    wires: int
    depth: int
    weight_bits: int

    @property
    def gates(self) -> int:
        """Gates of all kinds."""
        return self.ands + self.ors + self.nots + self.thresholds

    def to_json(self) -> dict[str, int]:
        """The costs by name, the number of gates first."""
        return {"gates": self.gates, **asdict(self)}


@dataclass(frozen=True, eq=False)
class WideCircuit:
    """Named inputs, gates of any fan-in, and outputs as names with literals."""

    inputs: tuple[str, ...]
    gates: tuple[Gate, ...]
    outputs: tuple[tuple[str, int], ...]

    def evaluate(self, bits: Bools) -> Bools:
        """The outputs [..., output] for input bits [input case, input], all cases at once."""
        given = np.asarray(bits, dtype=bool)
        if given.ndim != 2 or given.shape[1] != len(self.inputs):
            raise InputError(f"the circuit reads rows of {len(self.inputs)} bits, got an array of shape {given.shape}")
        parts = [self._batch(given[start : start + BATCH]) for start in range(0, len(given), BATCH)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.outputs)), dtype=bool)

    def _batch(self, bits: Bools) -> Bools:
        """Rows of packed bits, one for each literal in turn; threshold gates with the same wires are one product."""
        first, cases = 1 + len(self.inputs), len(bits)
        packed = np.zeros((first + len(self.gates), -(-cases // 8)), dtype=np.uint8)
        packed[1:first] = np.packbits(bits.T, axis=1)

        def read(wires: tuple[int, ...]) -> NDArray[np.uint8]:
            literals = np.array(wires, dtype=np.int64)
            rows: NDArray[np.uint8] = packed[literals >> 1] ^ (255 * (literals & 1)).astype(np.uint8)[:, None]
            return rows

        variable = first
        for (kind, wires), run in groupby(self.gates, key=lambda gate: (gate.kind, gate.wires)):
            alike = list(run)
            rows = read(wires)
            if kind == "threshold":
                on = np.unpackbits(rows, axis=1, count=cases).astype(np.float64)
                sums = np.array([gate.weights for gate in alike], dtype=np.float64) @ on
                packed[variable : variable + len(alike)] = np.packbits(
                    sums >= np.array([[gate.least] for gate in alike]), axis=1
                )
            else:
                reduce = np.bitwise_and.reduce if kind == "and" else np.bitwise_or.reduce
                packed[variable : variable + len(alike)] = reduce(rows, axis=0)
            variable += len(alike)
        ends = read(tuple(literal for _, literal in self.outputs))
        return np.unpackbits(ends, axis=1, count=cases).astype(bool).T

    @property
    def size(self) -> Size:
        """Gates by kind, wires, depth, and the largest weight."""
        first = 1 + len(self.inputs)
        levels = [0] * (first + len(self.gates))
        for variable, gate in enumerate(self.gates, start=first):
            levels[variable] = 1 + max((levels[wire >> 1] for wire in gate.wires), default=0)
        read = [wire for gate in self.gates for wire in gate.wires] + [literal for _, literal in self.outputs]
        weights = [number for gate in self.gates for number in (*gate.weights, gate.least)]
        count = {kind: sum(gate.kind == kind for gate in self.gates) for kind in ("and", "or", "threshold")}
        return Size(
            ands=count["and"],
            ors=count["or"],
            nots=len({wire for wire in read if wire & 1 and wire > TRUE}),
            thresholds=count["threshold"],
            wires=sum(len(gate.wires) for gate in self.gates),
            depth=max((levels[literal >> 1] for _, literal in self.outputs), default=0),
            weight_bits=max((abs(weight).bit_length() for weight in weights), default=0),
        )


class Wiring:
    """Gates under construction: equal gates are one, and constants and single wires cost nothing.

    >>> made = Wiring(["a", "b", "c"])
    >>> a, b, c = made.literals
    >>> two = made.at_least([1, 1, 1], [a, b, c], 2)
    >>> circuit = made.circuit([("exactly two", made.all_of([two, made.all_of([a, b, c]) ^ 1]))])
    >>> circuit.evaluate(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 0]]))[:, 0].tolist()
    [True, False, False]
    >>> circuit.size
    Size(ands=2, ors=0, nots=1, thresholds=1, wires=8, depth=2, weight_bits=2)
    """

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        self.literals = tuple(2 * variable for variable in range(1, len(self.inputs) + 1))
        self.gates: list[Gate] = []
        self._known: dict[Gate, int] = {}

    def all_of(self, literals: Iterable[int]) -> int:
        """The literal that is true iff all of these are."""
        wires = set(literals) - {TRUE}
        if FALSE in wires or any(wire ^ 1 in wires for wire in wires):
            return FALSE
        if len(wires) < 2:
            return next(iter(wires), TRUE)
        return self._gate(Gate("and", tuple(sorted(wires))))

    def any_of(self, literals: Iterable[int]) -> int:
        """The literal that is true iff one of these is."""
        wires = set(literals) - {FALSE}
        if TRUE in wires or any(wire ^ 1 in wires for wire in wires):
            return TRUE
        if len(wires) < 2:
            return next(iter(wires), FALSE)
        return self._gate(Gate("or", tuple(sorted(wires))))

    def at_least(self, weights: Sequence[int], literals: Sequence[int], least: int) -> int:
        """The literal that is true iff the weights of the true ones among these literals sum to `least` or more."""
        if sum(map(abs, weights)) + abs(least) >= LARGEST:
            raise BuildRefused("a threshold gate has weights of 53 bits or more in sum: take fewer bits for the scores")
        least -= sum(weight for weight, literal in zip(weights, literals, strict=True) if literal == TRUE)
        kept = [(weight, literal) for weight, literal in zip(weights, literals, strict=True) if literal > TRUE]
        weights, literals = [weight for weight, _ in kept], [literal for _, literal in kept]
        low, high = (sum(sign * max(sign * weight, 0) for weight in weights) for sign in (-1, 1))
        if low >= least or high < least:
            return TRUE if low >= least else FALSE
        return self._gate(Gate("threshold", tuple(literals), tuple(weights), least))

    def _gate(self, gate: Gate) -> int:
        if gate not in self._known:
            self.gates.append(gate)
            self._known[gate] = 2 * (len(self.inputs) + len(self.gates))
        return self._known[gate]

    def circuit(self, outputs: Sequence[tuple[str, int]]) -> WideCircuit:
        """The circuit with these outputs, without the gates that none of them needs."""
        first = 1 + len(self.inputs)
        needed = {literal >> 1 for _, literal in outputs}
        for variable in range(first + len(self.gates) - 1, first - 1, -1):
            if variable in needed:
                needed |= {wire >> 1 for wire in self.gates[variable - first].wires}
        kept = [variable for variable in range(first, first + len(self.gates)) if variable in needed]
        number = {variable: variable for variable in range(first)}
        number |= {variable: place for place, variable in enumerate(kept, start=first)}

        def renumbered(literal: int) -> int:
            return 2 * number[literal >> 1] + (literal & 1)

        gates = (self.gates[variable - first] for variable in kept)
        return WideCircuit(
            self.inputs,
            tuple(Gate(g.kind, tuple(map(renumbered, g.wires)), g.weights, g.least) for g in gates),
            tuple((name, renumbered(literal)) for name, literal in outputs),
        )


@dataclass(frozen=True, eq=False)
class NetCircuit:
    """A net on words of one length as a circuit: an input for each place and letter, an output for each answer."""

    circuit: WideCircuit
    answers: tuple[Hashable, ...]
    letters: int
    types: int  # the most that may stand at one position

    def say(self, words: NDArray[np.int64]) -> list[Hashable]:
        """The answer to every word [word, place] of tokens from 1; None where not exactly one output is true."""
        found = self.circuit.evaluate(input_bits(words, self.letters))
        return [self.answers[int(row.argmax())] if row.sum() == 1 else None for row in found]


def merged(wiring: Wiring, parts: Sequence[Sequence[tuple[int, int]]]) -> Bits:
    """For each position the types with the literals that say so, gathered by type."""
    found: Bits = []
    for here in parts:
        literals: dict[int, list[int]] = {}
        for kind, literal in here:
            literals.setdefault(kind, []).append(literal)
        found.append({kind: wiring.any_of(those) for kind, those in literals.items()})
    return found


def letters_wired(symbols: Sequence[str], length: int) -> tuple[Wiring, list[Mapping[int, int]]]:
    """A wiring with one input for each place of a word and letter, and for each place the literal of every letter.

    Letters are numbered from 1, as a net's tokens are. Of the inputs of a place exactly one is true.
    """
    wiring = Wiring([f"{symbol}@{place}" for place in range(1, length + 1) for symbol in symbols])
    width = len(symbols)
    places = [wiring.literals[width * place : width * (place + 1)] for place in range(length)]
    return wiring, [dict(enumerate(literals, start=1)) for literals in places]


def input_bits(words: NDArray[np.int64], letters: int) -> Bools:
    """The input bits [word, place × letter] of words of tokens from 1 to `letters`."""
    bits: Bools = (words[:, :, None] == np.arange(1, letters + 1)).reshape(len(words), -1)
    return bits


def all_words(letters: int, length: int) -> NDArray[np.int64]:
    """All words of one length, as tokens from 1 [word, place]."""
    return np.indices((letters,) * length).reshape(length, letters**length).T.astype(np.int64) + 1
