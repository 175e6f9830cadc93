r"""Compile a net with hard attention, at one length, to a circuit of AND, OR and NOT gates of the net's depth.

In the spirit of Hao, Angluin and Frank (2022, arXiv 2204.06618); the circuit is our own derivation. One bit per
position and type is true iff that type occurs there (`activations.py` finds the types). With $\kappa$ for the key and
value of a type in a head, each block adds at most five levels:

1. OR: the key at $j$ is $\kappa$.
2. AND: $\kappa$ at $j$ wins the query $q$: it occurs there, and nothing that beats it occurs anywhere.
3. OR: some winner has the value $v$.
4. AND: the type at $i$ is $t$, and its heads copy $v_1, v_2, \dots$
5. OR: the type after the block is $t'$.

One more OR in front joins letters with the same vector, and one at the end gives the answer at the last position. So
the depth is at most $5L + 2$ for $L$ layers, whatever the length, and with a bounded number of types at each position
there are $O(n^2)$ gates and $O(n^3)$ wires.
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.activations import BlockContests, Contest, ExactNet, QueryKey, outcomes, possible, read_answer
from vitrify.bounds.gates import TRUE, Bits, GateWiring, NetCircuit, WideCircuit, answering, letters_wired, merged
from vitrify.bounds.supported import refuse_length
from vitrify.errors import BuildRefused
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_logits
from vitrify.net.weights import Weights
from vitrify.spec.computation.circuit import Circuit, Gates

BLOCK_DEPTH = 5  # circuit levels per block
LOGIT_TOLERANCE = 1e-9  # rounding errors of logits in float64


def hard_attention_circuit(exact: ExactNet, length: int) -> NetCircuit:
    """Return the circuit of a net with hard attention on words of one length, from its exact activations."""
    net = exact.net
    refuse_length(net, length)
    letters = len(net.inputs) - 1
    layers, stands = possible(exact, [(0,)] * net.pads + [tuple(range(1, letters + 1))] * length)
    wiring, first = letters_wired(net.inputs[1:], length, net.pads)
    kinds = [[(exact.embedded(token, at), bit) for token, bit in here.items()] for at, here in enumerate(first)]
    bits = merged(wiring, kinds)
    for index, layer in enumerate(layers):
        bits = _block(exact, wiring, layer, index, bits)
    types = [max(map(len, before)) for before in (*(layer.before for layer in layers), stands)]
    return answering(wiring, ((exact.answer(kind), bits[-1][kind]) for kind in stands[-1]), letters, types)


def _block(exact: ExactNet, wiring: GateWiring, layer: BlockContests, index: int, bits: Bits) -> Bits:
    """Return the bits of the types after a block."""
    copied = [_head(exact, wiring, index, head, contests, bits) for head, contests in enumerate(layer.contests)]
    after = []
    for position, here in enumerate(bits):
        cases: list[tuple[int, int]] = []
        for kind, literal in here.items() if position in layer.computed else ():
            query_keys = [exact.query_key(index, head, kind) for head in range(len(copied))]
            for values, new in outcomes(exact, layer, index, position, kind):
                wins = [copied[head][position][query_keys[head], value] for head, value in enumerate(values)]
                cases.append((new, wiring.all_of([literal, *wins])))
        after.append(cases)
    return merged(wiring, after)


def _head(
    exact: ExactNet, wiring: GateWiring, index: int, number: int, contests: list[dict[QueryKey, Contest]], bits: Bits
) -> list[dict[tuple[QueryKey, int], int]]:
    """Return, per position, by query and value, the literal that the head copies this value to this query there."""
    head = exact.head(index, number)
    keys = merged(wiring, [[(exact.query_key(index, number, kind)[1], bit) for kind, bit in at.items()] for at in bits])
    literals_at: list[dict[tuple[QueryKey, int], int]] = []
    for by_query in contests:
        here: dict[tuple[QueryKey, int], int] = {}
        for query, contest in by_query.items():
            if len(contest.values) == 1:
                here[query, contest.values[0]] = TRUE
                continue
            wins: dict[int, list[int]] = {value: [] for value in contest.values}
            for entry in contest.candidates:
                rivals_absent = [
                    keys[other.position][other.key] ^ 1
                    for other in contest.candidates
                    if other.position != entry.position
                    and (other.rank > entry.rank or (other.rank == entry.rank and other.order < entry.order))
                ]
                wins[head.value(entry.key)].append(wiring.all_of([keys[entry.position][entry.key], *rivals_absent]))
            here |= {(query, value): wiring.any_of(literals) for value, literals in wins.items()}
        literals_at.append(here)
    return literals_at


def difference(weights: Weights[SequenceArchitecture], circuit: NetCircuit, words: Ints) -> tuple[int, str] | None:
    """Return the index of the first word on which circuit and net differ, and a description; None if there is none."""
    net = weights.architecture
    logits = batch_logits(weights, np.pad(words, ((0, 0), (net.pads, 0))))[:, -1].tolist()
    for index, (logits_of_word, circuit_answer) in enumerate(zip(logits, circuit.run(words), strict=True)):
        answer = read_answer(net.output.kind, net.output.symbols, logits_of_word)
        if not _same(answer, circuit_answer):
            return index, f"the net says {answer}, the circuit {circuit_answer}"
    return None


def _same(left: object, right: object) -> bool:
    """Return True for the same symbols, or for logits that differ by no more than rounding."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return bool(np.allclose(left, right, rtol=LOGIT_TOLERANCE, atol=LOGIT_TOLERANCE))
    return left == right


def to_aiger(circuit: WideCircuit, *comment: str) -> Circuit:
    """Return the same circuit with two-input gates: each gate becomes a balanced tree, as AIGER files require.

    The depth is then no longer constant, but grows like the logarithm of the fan-in.
    """
    if any(gate.kind == "threshold" for gate in circuit.gates):
        raise BuildRefused("AIGER files hold AND gates and negations only; this circuit has threshold gates")
    gates = Gates(circuit.inputs)
    literals = [0, *gates.literals]

    def read(wire: int) -> int:
        return literals[wire >> 1] ^ (wire & 1)

    for gate in circuit.gates:
        flip = int(gate.kind == "or")  # an OR is the negation of an AND of negations
        level = [read(wire) ^ flip for wire in gate.wires]
        while len(level) > 1:
            odd = level[-1:] if len(level) % 2 else []
            level = [gates.conjunction(a, b) for a, b in zip(level[::2], level[1::2], strict=False)] + odd
        literals.append(level[0] ^ flip)
    return gates.circuit([(name, read(literal)) for name, literal in circuit.outputs], *comment)
