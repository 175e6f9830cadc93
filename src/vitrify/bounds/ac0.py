r"""A net with hard attention, at one length, becomes a circuit of AND, OR and NOT gates whose depth is the net's.

In the spirit of Hao, Angluin and Frank (2022, arXiv 2204.06618); the circuit is our own derivation. One bit for each
position and type says whether that type stands there (`activations.py` finds the types). With $\kappa$ for what a head
sees of a type, its key and value, each block adds at most five levels:

1. OR: the key at $j$ is $\kappa$.
2. AND: $\kappa$ at $j$ wins the query $q$: it stands there, and nothing that beats it stands anywhere.
3. OR: some winner brings the value $v$.
4. AND: the type at $i$ is $t$, and its heads bring $v_1, v_2, \dots$
5. OR: the type after the block is $t'$.

An OR before joins letters that share a vector, and one behind gives the answer at the last position. So the depth is at
most $5L + 2$ for $L$ layers, whatever the length, and with a bounded number of types at each position there are
$O(n^2)$ gates and $O(n^3)$ wires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.bounds.activations import Answer, Asked, Contest, ExactNet, Layer, outcomes, possible, read_answer
from vitrify.bounds.gates import TRUE, Bits, NetCircuit, WideCircuit, Wiring, letters_wired, merged
from vitrify.bounds.plain import refuse_length
from vitrify.errors import BuildRefused
from vitrify.net.run import batch_logits
from vitrify.net.weights import Weights
from vitrify.spec.circuit import Circuit
from vitrify.spec.circuits import Gates

LEVELS = 5  # of a block
ROUNDING = 1e-9  # logits of a net that is run in floating-point numbers


def hard_attention_circuit(exact: ExactNet, length: int) -> NetCircuit:
    """The circuit of a net with hard attention on words of one length, by way of its exact activations."""
    net = exact.net
    refuse_length(net, length)
    letters = len(net.inputs) - 1
    layers, stands = possible(exact, [(0,)] * net.pads + [tuple(range(1, letters + 1))] * length)
    wiring, places = letters_wired(net.inputs[1:], length)
    first: Sequence[Mapping[int, int]] = [{0: TRUE}] * net.pads + places
    bits = merged(
        wiring, [[(exact.embedded(token, at), bit) for token, bit in here.items()] for at, here in enumerate(first)]
    )
    for index, layer in enumerate(layers):
        bits = _block(exact, wiring, layer, index, bits)
    said: dict[Answer, list[int]] = {}
    for kind in stands[-1]:
        said.setdefault(exact.answer(kind), []).append(bits[-1][kind])
    circuit = wiring.circuit([(str(answer) or "nothing", wiring.any_of(literals)) for answer, literals in said.items()])
    most = max(len(kinds) for before in (*(layer.before for layer in layers), stands) for kinds in before)
    return NetCircuit(circuit, tuple(said), letters, most)


def _block(exact: ExactNet, wiring: Wiring, layer: Layer, index: int, bits: Bits) -> Bits:
    """The bits of the types after a block."""
    brought = [_head(exact, wiring, index, place, contests, bits) for place, contests in enumerate(layer.contests)]
    after = []
    for position, here in enumerate(bits):
        cases: list[tuple[int, int]] = []
        for kind, literal in here.items() if position in layer.asking else ():
            asked = [exact.asked(index, place, kind) for place in range(len(brought))]
            for values, new in outcomes(exact, layer, index, position, kind):
                wins = [brought[place][position][asked[place], value] for place, value in enumerate(values)]
                cases.append((new, wiring.all_of([literal, *wins])))
        after.append(cases)
    return merged(wiring, after)


def _head(
    exact: ExactNet, wiring: Wiring, index: int, place: int, contests: list[dict[Asked, Contest]], bits: Bits
) -> list[dict[tuple[Asked, int], int]]:
    """For each position, by query and value, the literal that the head brings this value to this query there."""
    head = exact.head(index, place)
    keys = merged(wiring, [[(exact.asked(index, place, kind)[1], bit) for kind, bit in at.items()] for at in bits])
    found: list[dict[tuple[Asked, int], int]] = []
    for by_query in contests:
        here: dict[tuple[Asked, int], int] = {}
        for query, contest in by_query.items():
            if len(contest.values) == 1:
                here[query, contest.values[0]] = TRUE
                continue
            wins: dict[int, list[int]] = {value: [] for value in contest.values}
            for entry in contest.candidates:
                beaten = [
                    keys[other.position][other.key] ^ 1
                    for other in contest.candidates
                    if other.position != entry.position
                    and (other.rank > entry.rank or (other.rank == entry.rank and other.order < entry.order))
                ]
                wins[head.value(entry.key)].append(wiring.all_of([keys[entry.position][entry.key], *beaten]))
            here |= {(query, value): wiring.any_of(literals) for value, literals in wins.items()}
        found.append(here)
    return found


def difference(weights: Weights[Any], made: NetCircuit, words: NDArray[np.int64]) -> tuple[int, str] | None:
    """The first word on which circuit and net, run as it is, differ, and how; None if there is no such word."""
    net = weights.architecture
    logits = batch_logits(weights, np.pad(words, ((0, 0), (net.pads, 0))))[:, -1].tolist()
    for place, (row, said) in enumerate(zip(logits, made.say(words), strict=True)):
        answer = read_answer(net.output.kind, net.output.symbols, row)
        if not _same(answer, said):
            return place, f"the net says {answer}, the circuit {said}"
    return None


def _same(left: Answer, right: Answer) -> bool:
    """Whether two answers are one: the same symbols, or logits that differ by no more than rounding."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return bool(np.allclose(left, right, rtol=ROUNDING, atol=ROUNDING))
    return left == right


def to_aiger(circuit: WideCircuit, *comment: str) -> Circuit:
    """The same circuit of gates with two inputs: each gate becomes a balanced tree, as AIGER files ask for.

    The depth is then no longer constant, but grows like the logarithm of the fan-in.
    """
    if any(gate.kind == "threshold" for gate in circuit.gates):
        raise BuildRefused("AIGER files hold AND gates and negations only; this circuit has threshold gates")
    made = Gates(circuit.inputs)
    literals = [0, *made.literals]

    def read(wire: int) -> int:
        return literals[wire >> 1] ^ (wire & 1)

    for gate in circuit.gates:
        flip = int(gate.kind == "or")  # an OR is the negation of an AND of negations
        level = [read(wire) ^ flip for wire in gate.wires]
        while len(level) > 1:
            odd = level[-1:] if len(level) % 2 else []
            level = [made.conjunction(a, b) for a, b in zip(level[::2], level[1::2], strict=False)] + odd
        literals.append(level[0] ^ flip)
    return made.circuit([(name, read(literal)) for name, literal in circuit.outputs], *comment)
