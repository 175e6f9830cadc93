r"""Boolean circuits run gate by gate: one layer with two heads writes the value of one gate at each step.

In the spirit of Li et al. (2024, arXiv 2402.12875) and Feng et al. (2023, arXiv 2305.15408); the weights are our own
derivation. The sequence is the $n$ input bits, then the values of the $A$ gates in order, so the variable $v$ stands at
position $v$, and BOS is the variable 0, which is false. The position before a gate's holds what the net is told about
it: the ±1 codes of the addresses of its two operands, and whether they are negated.

- Two heads look up the two operands: the score of position $j$ is $c_{\text{address}} \cdot c_j$, which is $B$ at the
  right one and at most $B - 2$ elsewhere. Positions that come before no gate look at themselves.
- One unit for each way to negate: of four, each fires for one pair of operand values.

| with $T = n + A - 1$ positions and $B = \max(2, \lceil\log_2(T + 1)\rceil)$ | formula |
| --- | --- |
| layers, heads | 1; 2 |
| units | as many as there are ways to negate among the gates, at most 4 |
| width | $3B + 6$ |
| steps | $A$, one for each gate |
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, construction
from vitrify.kit.gadgets.table import table
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, Bits, Builder, Flag, Kind, Network, Output, Readout, Space
from vitrify.spec.computation.circuit import Circuit
from vitrify.spec.ngrams.model import BEGIN


def sizes(circuit: Circuit) -> DeclaredSizes:
    """Return all sizes: B bits for each of three addresses, one unit for each way to negate."""
    bits = max(2, _length(circuit).bit_length())
    return DeclaredSizes({"layers": 1, "heads": 2, "units": len(negations(circuit)), "d_model": 3 * bits + 6})


@construction(
    "circuit",
    "the value of one gate at each step, in one attention layer",
    sizes,
    default=True,
    certified=("to T", "to T"),
)
def circuit_by_steps(circuit: Circuit, *, attention: Attention = "softmax") -> Network:
    """Return a transformer of one layer whose chain of thought is the values of a circuit's gates."""
    if not circuit.gates:
        raise BuildRefused("a circuit without gates leaves nothing to write step by step")
    inputs, length = len(circuit.inputs), _length(circuit)
    title = f"circuit of {circuit.and_gates} gates, step by step, {attention}"
    net = Builder(title, (BEGIN, *circuit.vocabulary), length, attention)
    value = net.embed("value", Flag(), np.array([[0.0], [0.0], [1.0]]))
    addresses_code = Bits(tuple(map(str, range(length + 1))))
    own = _placed(net, "position", addresses_code, addresses_code.codes)
    read, negated = [], []
    for name, literals in zip(("left", "right"), np.array(circuit.gates).T, strict=True):
        addresses, flags = np.arange(length + 1), np.zeros((length + 1, 1))
        addresses[inputs : inputs + len(literals)] = literals >> 1
        flags[inputs : inputs + len(literals), 0] = literals & 1
        address = _placed(net, f"{name} address", addresses_code, addresses_code.codes[addresses])
        negated.append(_placed(net, f"{name} negated", Flag(), flags))
        same = Test(Affine.copy(address, 0.5), Affine.copy(own), addresses_code.norm / 2)
        read.append(select(net, [same], Affine.copy(value), Space(f"{name} operand", Flag()), sink="none"))
    ways = np.array(negations(circuit))
    rows = [
        " and ".join(f"{'not ' * no}{name}" for no, name in zip(way, ("left", "right"), strict=True)) for way in ways
    ]
    outputs = np.ones((len(ways), 1))
    gate = table(net, [*read, *negated], np.hstack([1 - ways, ways]), Space("gate", Flag()), outputs, rows=rows)
    output = Output("class", circuit.written)
    readout = Readout(((gate, np.array([[0.0, 1.0]])),), np.array([0.5, 0.0]), {gate: 0.25})
    facts = {"gates": circuit.and_gates, "depth": circuit.depth}
    source = "in the spirit of Li et al. 2024, arXiv 2402.12875"
    return net.network(output, readout, "circuit, gate by gate", facts, source=source, reuse=False)


def _length(circuit: Circuit) -> int:
    """Return the number of symbols that are read: all but the last gate's."""
    return max(1, len(circuit.inputs) + circuit.and_gates - 1)


def _placed(net: Builder, name: str, kind: Kind, rows: Floats) -> Space:
    """Return a space set by the position, BOS included."""
    return net.embed_position(name, kind, rows[1:], pads=rows[0])


def negations(circuit: Circuit) -> list[tuple[int, int]]:
    """Return the distinct ways in which gates negate their operands."""
    return sorted({(left & 1, right & 1) for left, right in circuit.gates})
