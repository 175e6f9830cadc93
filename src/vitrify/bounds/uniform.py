r"""A generator of threshold circuits in logarithmic space: it writes one wire after the other, from a few counters.

`tc0.py` finds the types that can occur, and remembers them all. The circuits here are larger and need no search: every
vector of the grid is a type at every position. Types, values and positions are then numbers, and whether two gates are
wired, with which weight, follows from their names by arithmetic on $O(1)$ numbers of $O(\log n)$ bits. So a family of
such circuits is uniform in logarithmic space (L-uniform), if the grid has $O(\log n)$ bits and the net no table of
positions. Merrill and Sabharwal (2023, arXiv 2207.00729 [S]) prove that for their arithmetic.

A gate is a tuple: ("type", block, position, type) is an OR, true iff the type occurs there before the block; ("level",
block, position, type, head, coordinate, level) is a threshold gate with the threshold 0, true iff the query of that
type reads at least that level; ("case", block, position, type, output) is an AND; ("answer", number) is an OR.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.activations import read_answer
from vitrify.bounds.fixed_point import FixedNet
from vitrify.bounds.gates import FALSE, TRUE, NetCircuit, answering, letters_wired
from vitrify.bounds.supported import refuse_length
from vitrify.errors import BuildRefused
from vitrify.net.attention import allowed_keys

Gate = tuple[Hashable, ...]
Wire = tuple[Gate, Gate, int]
"""The gate that reads, the gate or letter that it reads, and the weight; -1 negates what an AND gate reads."""

Wires = Generator[Wire, None, None]
TRUE_WIRE: Gate = ("true",)
MAX_WIRES = 1 << 24  # of a circuit that is collected: minutes, and a few gigabytes
INPUTS = ("self", "fixed", "net", "here")  # variables that hold what the generators read


@dataclass(frozen=True)
class GeneratorState:
    """Numbers that a suspended generator holds, and the bits of the longest one."""

    numbers: int
    bits: int


@dataclass(frozen=True, eq=False)
class UniformCircuit:
    """The circuit of a softmax net in finite precision on words of one length, as a stream of wires."""

    fixed: FixedNet
    length: int

    def __post_init__(self) -> None:
        net, grid = self.fixed.net, self.fixed.grid
        refuse_length(net, self.length)
        if self.fixed.hard or grid.significant is not None:
            raise BuildRefused("uniform circuits are of softmax attention whose sums are rounded once")
        if self.fixed.has_positions:
            raise BuildRefused(
                "a table of positions can't be computed in logarithmic space: take a net without positions"
            )

    @property
    def gates(self) -> int:
        """Number of threshold and AND gates, by a closed formula."""
        net, values, total = self.fixed.net, self.values, 0
        for index, block in enumerate(net.blocks):
            positions = net.pads + self.length if index + 1 < len(net.blocks) else 1
            coordinates = len(block.heads) * block.d_value
            total += positions * values**net.d_model * (coordinates * (values - 1) + values**coordinates)
        return total

    @property
    def declared(self) -> int:
        """Bits of the longest number that the generator holds: a vector of a type, of all outputs, or a weight."""
        net, grid = self.fixed.net, self.fixed.grid
        widest = max([net.d_model, *(len(block.heads) * block.d_value for block in net.blocks)])
        return max(widest * grid.bits, 2 * grid.score + grid.bits + 2, (net.pads + self.length).bit_length())

    @property
    def values(self) -> int:
        """Number of values of one number on the grid."""
        return (2 * self.fixed.grid.top << self.fixed.grid.fraction) + 1

    @property
    def least(self) -> int:
        """The least number on the grid."""
        return -(self.fixed.grid.top << self.fixed.grid.fraction)

    def vector(self, number: int, width: int) -> Ints:
        """Return the vector whose digits, from the last, make up a number."""
        return np.array([number // self.values**place % self.values + self.least for place in range(width)])

    def number(self, vector: Ints) -> int:
        """Return the number of a vector."""
        return sum((int(digit) - self.least) * self.values**place for place, digit in enumerate(vector))

    def wires(self) -> Wires:
        """Yield all wires; between two of them the generators hold a fixed number of counters, and nothing else."""
        fixed, net = self.fixed, self.fixed.net
        for position in range(net.pads + self.length):
            for token in range(1) if position < net.pads else range(1, len(net.inputs)):
                kind = self.number(fixed.embedded(np.array(token), np.array(position)))
                yield ("type", 0, position, kind), ("letter", position, token), 1
        for block in range(len(net.blocks)):
            start = net.pads + self.length - 1 if block + 1 == len(net.blocks) else 0
            for position in range(start, net.pads + self.length):
                for kind in range(self.values**net.d_model):
                    for head in range(len(net.blocks[block].heads)):
                        yield from self._levels(block, position, kind, head)
                    yield from self._cases(block, position, kind)
        for kind in range(self.values**net.d_model):
            logits = fixed.logits(self.vector(kind, net.d_model)).tolist()
            answer = read_answer(net.output.kind, net.output.symbols, logits)
            yield ("answer", answer), ("type", len(net.blocks), net.pads + self.length - 1, kind), 1

    def _levels(self, block: int, position: int, kind: int, head: int) -> Wires:
        """Yield the wires of the threshold gates of one query: its output is at least each level."""
        fixed, net = self.fixed, self.fixed.net
        query = ("level", block, position, kind, head)
        q = fixed.query_key_value(block, head, self.vector(kind, net.d_model))[0]
        empty = True
        for key in range(net.pads + self.length):
            if not allowed_keys(net.blocks[block].heads[head], np.array([position]), np.array([key]))[0, 0]:
                continue
            empty = False
            for other in range(self.values**net.d_model):
                _, k, v = fixed.query_key_value(block, head, self.vector(other, net.d_model))
                score = fixed.scores(block, head, q[None], k[None], np.array([[position - key]]))
                weight = int(fixed.powers(score)[0, 0])
                for coordinate in range(net.blocks[block].d_value):
                    for level in range(1, self.values):
                        term = weight * (2 * (int(v[coordinate]) - level - self.least) + 1)
                        yield (*query, coordinate, level), ("type", block, key, other), term
        for coordinate in range(net.blocks[block].d_value if empty else 0):
            for level in range(1, self.values):  # without a key the output is 0
                yield (*query, coordinate, level), TRUE_WIRE, 1 - 2 * (level + self.least)

    def _cases(self, block: int, position: int, kind: int) -> Wires:
        """Yield the wires of the gates that say what the heads bring to a type, and which type follows."""
        net, x = self.fixed.net, self.vector(kind, self.fixed.net.d_model)
        here, width = net.blocks[block], net.blocks[block].d_value
        for output in range(self.values ** (len(here.heads) * width)):
            case = ("case", block, position, kind, output)
            yield case, ("type", block, position, kind), 1
            brought = self.vector(output, len(here.heads) * width)
            for place in range(len(brought)):
                level = int(brought[place]) - self.least
                gate = ("level", block, position, kind, place // width, place % width)
                if level > 0:
                    yield case, (*gate, level), 1
                if level + 1 < self.values:
                    yield case, (*gate, level + 1), -1
            after = self.fixed.after(block, x, [brought[h * width : (h + 1) * width] for h in range(len(here.heads))])
            yield ("type", block + 1, position, self.number(after)), case, 1


def memory(wires: Wires) -> GeneratorState:
    """Return what a suspended generator of wires holds: the numbers in the frames of it and of those it delegates to.

    The net, which it reads, is not counted; its loops hold no other numbers than these and their bounds.
    """
    numbers: list[int] = []
    generator: Any = wires
    while generator is not None:
        values = [each for name, each in generator.gi_frame.f_locals.items() if name not in INPUTS]
        for value in values:
            numbers += map(int, filter(lambda part: not isinstance(part, str), np.ravel(np.array(value, dtype=object))))
        generator = generator.gi_yieldfrom
    return GeneratorState(len(numbers), max((abs(number).bit_length() for number in numbers), default=0))


def collected(uniform: UniformCircuit) -> tuple[NetCircuit, int]:
    """Return the circuit that the wires make up, and the number of its threshold and AND gates before any is shared."""
    net = uniform.fixed.net
    if uniform.gates * (net.pads + uniform.length) * uniform.values**net.d_model > MAX_WIRES:
        raise BuildRefused(f"the circuit may have more than {MAX_WIRES} wires: read them one by one, or a shorter word")
    read: dict[Gate, list[tuple[Gate, int]]] = {}
    for target, source, weight in uniform.wires():
        read.setdefault(target, []).append((source, weight))
    wiring, letters = letters_wired(net.inputs[1:], uniform.length, net.pads)
    literals: dict[Gate, int] = {TRUE_WIRE: TRUE}
    literals |= {("letter", at, token): bit for at, here in enumerate(letters) for token, bit in here.items()}
    kinds = {"type": 0, "level": 1, "case": 2, "answer": 3}
    blocks = len(net.blocks)
    for gate in sorted(read, key=lambda gate: (blocks if gate[0] == "answer" else gate[1], kinds[str(gate[0])])):
        wires = [(literals.get(source, FALSE), weight) for source, weight in read[gate]]
        if gate[0] == "level":
            literals[gate] = wiring.at_least([weight for _, weight in wires], [wire for wire, _ in wires], 0)
        else:
            join = wiring.all_of if gate[0] == "case" else wiring.any_of
            literals[gate] = join(wire ^ (weight < 0) for wire, weight in wires)
    answers = [(gate[1], literal) for gate, literal in literals.items() if gate[0] == "answer"]
    return answering(wiring, answers, len(net.inputs) - 1, [uniform.values**net.d_model] * (blocks + 1)), sum(
        gate[0] in ("level", "case") for gate in read
    )
