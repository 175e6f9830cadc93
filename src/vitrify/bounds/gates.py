r"""Circuits of gates that read any number of wires: AND, OR, weighted threshold gates, and negation.

A *literal* is $2v$ for the variable $v$ and $2v + 1$ for its negation, as in AIGER files; literal 0 is false and 1 is
true. Variables $1 \dots I$ are the inputs, and the gates follow. A threshold gate is true iff $\sum_k w_k x_k \ge
\theta$, for integers $w_k$ and $\theta$. Depth counts gates on the longest path from an input to an output, without
NOT; the number of gates counts a NOT for each variable that some gate or output reads negated.

Families of such circuits of constant depth and polynomial size define AC⁰ without threshold gates, TC⁰ with them.
`ac0.py` and `tc0.py` write networks as circuits. A *type* is one of the finitely many vectors that the residual stream
of such a network may hold at a position (see `activations.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Literal, TypeVar

import numpy as np

from vitrify.arrays import Bools, Ints
from vitrify.errors import BuildRefused, InputError

K = TypeVar("K", bound=Hashable)
Kind = Literal["and", "or", "threshold"]
Bits = list[dict[int, int]]  # per position: number of a type (or token) -> literal that it occurs there

FALSE, TRUE = 0, 1
MAX_WEIGHT_SUM = 1 << 53  # sums of weights below it are exact in float64
BATCH = 1 << 10  # inputs evaluated together
MAX_GATES = 1 << 20  # of a circuit: a few gigabytes


@dataclass(frozen=True)
class WideGate:
    """One gate: its kind and the literals it reads; a threshold gate also has weights and the threshold `least`."""

    kind: Kind
    wires: tuple[int, ...]
    weights: tuple[int, ...] = ()
    least: int = 0


@dataclass(frozen=True)
class Size:
    """Size of a circuit; `weight_bits` is the length of its largest weight or threshold in bits."""

    ands: int
    ors: int
    nots: int
    thresholds: int
    wires: int
    depth: int
    weight_bits: int

    @property
    def gates(self) -> int:
        """Number of gates of all kinds."""
        return self.ands + self.ors + self.nots + self.thresholds

    def to_json(self) -> dict[str, int]:
        """Return the sizes by name, the number of gates first."""
        return {"gates": self.gates, **asdict(self)}


@dataclass(frozen=True, eq=False)
class WideCircuit:
    """Named inputs, gates of any fan-in, and outputs as names with literals."""

    inputs: tuple[str, ...]
    gates: tuple[WideGate, ...]
    outputs: tuple[tuple[str, int], ...]

    def evaluate(self, bits: Bools) -> Bools:
        """Return the outputs [case, output] for input bits [case, input]."""
        bits = np.asarray(bits, dtype=bool)
        if bits.ndim != 2 or bits.shape[1] != len(self.inputs):
            raise InputError(f"the circuit reads rows of {len(self.inputs)} bits, got an array of shape {bits.shape}")
        parts = [self._batch(bits[start : start + BATCH]) for start in range(0, len(bits), BATCH)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.outputs)), dtype=bool)

    def _batch(self, bits: Bools) -> Bools:
        """Evaluate one row per variable; adjacent threshold gates on the same wires are one product."""
        values = np.zeros((1 + len(self.inputs) + len(self.gates), len(bits)), dtype=bool)
        values[1 : 1 + len(self.inputs)] = bits.T

        def read(wires: tuple[int, ...]) -> Bools:
            literals = np.array(wires, dtype=np.int64)
            return np.asarray(values[literals >> 1] ^ (literals & 1).astype(bool)[:, None])

        variable = 1 + len(self.inputs)
        for (kind, wires), run in groupby(self.gates, key=lambda gate: (gate.kind, gate.wires)):
            alike, rows = list(run), read(wires)
            if kind == "threshold":
                sums = np.array([gate.weights for gate in alike], dtype=np.float64) @ rows
                results = sums >= np.array([[gate.least] for gate in alike])
            else:
                results = np.asarray(rows.all(axis=0) if kind == "and" else rows.any(axis=0))
            values[variable : variable + len(alike)] = results
            variable += len(alike)
        return read(tuple(literal for _, literal in self.outputs)).T

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


class GateWiring:
    """Builder of a circuit: equal gates are shared; constants, and AND or OR of a single wire, cost nothing.

    >>> wiring = GateWiring(["a", "b", "c"])
    >>> a, b, c = wiring.literals
    >>> two = wiring.at_least([1, 1, 1], [a, b, c], 2)
    >>> circuit = wiring.circuit([("exactly two", wiring.all_of([two, wiring.all_of([a, b, c]) ^ 1]))])
    >>> circuit.evaluate(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 0]]))[:, 0].tolist()
    [True, False, False]
    >>> circuit.size
    Size(ands=2, ors=0, nots=1, thresholds=1, wires=8, depth=2, weight_bits=2)
    """

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        self.literals = tuple(2 * variable for variable in range(1, len(self.inputs) + 1))
        self.gates: list[WideGate] = []
        self._known: dict[WideGate, int] = {}

    def all_of(self, literals: Iterable[int]) -> int:
        """Return the literal that is true iff all of these are."""
        return self._join("and", set(literals), TRUE)

    def any_of(self, literals: Iterable[int]) -> int:
        """Return the literal that is true iff at least one of these is."""
        return self._join("or", set(literals), FALSE)

    def _join(self, kind: Kind, literals: set[int], neutral: int) -> int:
        wires = literals - {neutral}
        if neutral ^ 1 in wires or any(wire ^ 1 in wires for wire in wires):
            return neutral ^ 1
        if len(wires) < 2:
            return next(iter(wires), neutral)
        return self._gate(WideGate(kind, tuple(sorted(wires))))

    def at_least(self, weights: Sequence[int], literals: Sequence[int], least: int) -> int:
        """Return the literal that is true iff the weights of the true literals sum to `least` or more."""
        if sum(map(abs, weights)) + abs(least) >= MAX_WEIGHT_SUM:
            raise BuildRefused("weights and threshold of a gate sum to 2^53 or more: take smaller scores or digits")
        least -= sum(weight for weight, literal in zip(weights, literals, strict=True) if literal == TRUE)
        pairs = [(weight, literal) for weight, literal in zip(weights, literals, strict=True) if literal > TRUE]
        weights, literals = [weight for weight, _ in pairs], [literal for _, literal in pairs]
        low, high = (sum(sign * max(sign * weight, 0) for weight in weights) for sign in (-1, 1))
        if low >= least or high < least:
            return TRUE if low >= least else FALSE
        return self._gate(WideGate("threshold", tuple(literals), tuple(weights), least))

    def _gate(self, gate: WideGate) -> int:
        if gate not in self._known:
            if len(self.gates) == MAX_GATES:
                raise BuildRefused(
                    f"the circuit has more than {MAX_GATES} gates: take a shorter word or a coarser grid"
                )
            self.gates.append(gate)
            self._known[gate] = 2 * (len(self.inputs) + len(self.gates))
        return self._known[gate]

    def circuit(self, outputs: Sequence[tuple[str, int]]) -> WideCircuit:
        """Return the circuit with these outputs, without gates that no output needs."""
        first = 1 + len(self.inputs)
        needed = {literal >> 1 for _, literal in outputs}
        for variable in range(first + len(self.gates) - 1, first - 1, -1):
            if variable in needed:
                needed |= {wire >> 1 for wire in self.gates[variable - first].wires}
        used = [variable for variable in range(first, first + len(self.gates)) if variable in needed]
        number = {variable: variable for variable in range(first)}
        number |= {variable: index for index, variable in enumerate(used, start=first)}

        def renumbered(literal: int) -> int:
            return 2 * number[literal >> 1] + (literal & 1)

        gates = (self.gates[variable - first] for variable in used)
        return WideCircuit(
            self.inputs,
            tuple(WideGate(g.kind, tuple(map(renumbered, g.wires)), g.weights, g.least) for g in gates),
            tuple((name, renumbered(literal)) for name, literal in outputs),
        )


@dataclass(frozen=True, eq=False)
class NetCircuit:
    """A net on words of one length as a circuit: an input per position and letter, an output per answer."""

    circuit: WideCircuit
    answers: tuple[Hashable, ...]
    letters: int
    types: tuple[int, ...]  # largest number of types at one position, before each block and after the last

    def run(self, words: Ints) -> list[Hashable]:
        """Return the answer to every word [word, position] of tokens from 1; None unless exactly one output is true."""
        outputs = self.circuit.evaluate(input_bits(words, self.letters))
        return [self.answers[int(row.argmax())] if row.sum() == 1 else None for row in outputs]


def merged(wiring: GateWiring, positions: Sequence[Sequence[tuple[K, int]]]) -> list[dict[K, int]]:
    """Return for each position its types, each with one literal, the OR of those that it has in the pairs there."""
    return [any_of_each(wiring, pairs) for pairs in positions]


def any_of_each(wiring: GateWiring, pairs: Iterable[tuple[K, int]]) -> dict[K, int]:
    """Return for each key the literal that is true iff at least one of its literals is."""
    literals: dict[K, list[int]] = {}
    for key, literal in pairs:
        literals.setdefault(key, []).append(literal)
    return {key: wiring.any_of(alternatives) for key, alternatives in literals.items()}


def letters_wired(symbols: Sequence[str], length: int, pads: int) -> tuple[GateWiring, Bits]:
    """Return a wiring with one input per position and letter, and per position the literal of every token.

    Letters are numbered from 1, as a net's tokens are; the pads in front hold token 0. Exactly one
    input of a position is true.
    """
    wiring = GateWiring([f"{symbol}@{position}" for position in range(1, length + 1) for symbol in symbols])
    width = len(symbols)
    positions = [wiring.literals[width * position : width * (position + 1)] for position in range(length)]
    return wiring, [{0: TRUE}] * pads + [dict(enumerate(literals, start=1)) for literals in positions]


def answering(
    wiring: GateWiring, answers: Iterable[tuple[Hashable, int]], letters: int, types: Iterable[int]
) -> NetCircuit:
    """Return the circuit with one output per answer, true where one of its literals is."""
    literals = any_of_each(wiring, answers)
    outputs = [(str(answer) or "nothing", literal) for answer, literal in literals.items()]
    return NetCircuit(wiring.circuit(outputs), tuple(literals), letters, tuple(types))


def input_bits(words: Ints, letters: int) -> Bools:
    """Return the input bits [word, position × letter] of words of tokens from 1 to `letters`."""
    return np.asarray((words[:, :, None] == np.arange(1, letters + 1)).reshape(len(words), -1))


def all_words(letters: int, length: int) -> Ints:
    """Return all words of one length, as tokens from 1 [word, position]."""
    return np.indices((letters,) * length).reshape(length, letters**length).T.astype(np.int64) + 1
