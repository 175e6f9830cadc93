r"""A softmax transformer in finite precision, at one length, becomes a circuit with threshold gates of constant depth.

In the spirit of Merrill and Sabharwal (2023, arXiv 2207.00729) and Strobl (2023); the circuit is our own derivation for
the arithmetic of `fixed_point.py`. One bit for each position and type says whether that type stands there. For a query
$q$ let the type $u$ at $j$ have weight $w = 2^{s + S}$ and value $v$. What the head brings, rounded, is at least
$\theta$ iff $\sum_j w_j (2 v_j + 1 - 2\theta) \ge 0$: *one* threshold gate over the bits of the types. Each block adds
three levels:

1. threshold: for each position, query, coordinate and $\theta$, what is brought is at least $\theta$;
2. AND: the type is $t$, and each coordinate is at least $\theta$ but not $\theta + 1$;
3. OR: the type after the block is $t'$.

An OR before joins letters that share a vector, and one behind gives the answer at the last position, so the depth is at
most $3L + 2$ for $L$ layers, whatever the length. Types and weights do not depend on the length either, so that there
are $O(n)$ gates and $O(n^2)$ wires; with $O(\log n)$ bits of precision there are $n^{O(d)}$ types, and the size is
still a polynomial.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from vitrify.bounds.activations import MOST_TYPES, Answer, Numbered, read_answer
from vitrify.bounds.fixed_point import FixedNet, Ints
from vitrify.bounds.gates import FALSE, TRUE, Bits, NetCircuit, Wiring, letters_wired, merged
from vitrify.bounds.plain import refuse_length
from vitrify.errors import BuildRefused
from vitrify.net.attention import allowed_keys

LEVELS = 3  # of a block

Says = dict[int, tuple[int, int]]  # the numbers that a coordinate may be, each with two literals that say so
Brought = dict[int, list[Says]]  # by query, for each coordinate


def finite_precision_circuit(fixed: FixedNet, length: int) -> NetCircuit:
    """The circuit of a net in finite precision on words of one length."""
    net = fixed.net
    refuse_length(net, length)
    types = Numbered()
    wiring, places = letters_wired(net.inputs[1:], length)
    first = [{0: TRUE}] * net.pads + places
    bits = merged(
        wiring,
        [
            [(types.number(_row(fixed.embedded(np.array(token), np.array(at)))), bit) for token, bit in here.items()]
            for at, here in enumerate(first)
        ],
    )
    most = max(map(len, bits))
    for index in range(len(net.blocks)):
        last = index + 1 == len(net.blocks)
        bits = _block(fixed, wiring, types, index, bits, range(len(bits) - 1 if last else 0, len(bits)))
        most = max(most, *map(len, bits))
    said: dict[Answer, list[int]] = {}
    for kind, literal in bits[-1].items():
        logits = fixed.logits(np.array(types.values[kind])).tolist()
        said.setdefault(read_answer(net.output.kind, net.output.symbols, logits), []).append(literal)
    circuit = wiring.circuit([(str(answer) or "nothing", wiring.any_of(literals)) for answer, literals in said.items()])
    return NetCircuit(circuit, tuple(said), len(net.inputs) - 1, most)


def _row(x: Ints) -> tuple[int, ...]:
    return tuple(x.tolist())


def _block(fixed: FixedNet, wiring: Wiring, types: Numbered, index: int, bits: Bits, working: range) -> Bits:
    """The bits of the types after a block, at the positions that matter."""
    heads = [_Head(fixed, types, index, place, bits) for place in range(len(fixed.net.blocks[index].heads))]
    after: list[list[tuple[int, int]]] = [[] for _ in bits]
    for at in working:
        brought = [head.brought(wiring, at) for head in heads]
        for kind, literal in bits[at].items():
            coordinates = [each for place, head in enumerate(heads) for each in brought[place][head.query_of[kind]]]
            if np.prod([len(each) for each in coordinates], initial=1.0) * len(bits[at]) > MOST_TYPES:
                raise BuildRefused(f"block {index} may bring more than {MOST_TYPES} vectors: take a coarser grid")
            cases = list(product(*(each.items() for each in coordinates)))
            numbers = np.array([[number for number, _ in case] for case in cases], dtype=np.int64)
            parts = np.split(numbers, np.cumsum([head.width for head in heads])[:-1], axis=1) if heads else []
            x = np.array([types.values[kind]] * len(cases), dtype=np.int64)
            for row, case in zip(fixed.after(index, x, parts).tolist(), cases, strict=True):
                wires = [wire for _, says in case for wire in says]
                after[at].append((types.number(tuple(row)), wiring.all_of([literal, *wires])))
    return merged(wiring, [[(kind, literal) for kind, literal in here if literal != FALSE] for here in after])


class _Head:
    """One head on the types that may stand before its block."""

    def __init__(self, fixed: FixedNet, types: Numbered, block: int, place: int, bits: Bits) -> None:
        self.fixed, self.block, self.place, self.bits = fixed, block, place, bits
        kinds = list(dict.fromkeys(kind for here in bits for kind in here))
        x = np.array([types.values[kind] for kind in kinds], dtype=np.int64)
        queries, self._keys, self._values = fixed.asked(block, place, x)
        self.width = self._values.shape[1]
        self._row = {kind: row for row, kind in enumerate(kinds)}
        self._queries, numbers = np.unique(queries, axis=0, return_inverse=True)
        self.query_of = dict(zip(kinds, numbers.ravel().tolist(), strict=True))
        positions = np.arange(len(bits))
        self._allowed = allowed_keys(fixed.net.blocks[block].heads[place], positions, positions)

    def brought(self, wiring: Wiring, at: int) -> Brought:
        """For each query at a position and each coordinate, the numbers that may be brought and what says so."""
        there = np.flatnonzero(self._allowed[at])
        literals = [literal for j in there for literal in self.bits[j].values()]
        rows = [self._row[kind] for j in there for kind in self.bits[j]]
        places = np.array([j for j in there for _ in self.bits[j]], dtype=np.int64)
        found: Brought = {}
        for query in dict.fromkeys(self.query_of[kind] for kind in self.bits[at]):
            if not len(there):
                found[query] = [{0: (TRUE, TRUE)}] * self.width
                continue
            q = self._queries[query : query + 1]
            scores = self.fixed.scores(self.block, self.place, q, self._keys[rows], (at - places)[None])
            weights = self.fixed.powers(scores)[0]
            found[query] = [
                _numbers(wiring, weights, self._values[rows, coordinate], places, literals)
                for coordinate in range(self.width)
            ]
        return found


def _numbers(wiring: Wiring, weights: Ints, values: Ints, places: Ints, literals: list[int]) -> Says:
    """The numbers that one coordinate of a mean may be, with the literals that say so.

    At each place one type stands, so that a level is reached for sure if even the least summands of all places reach
    it, and never if the greatest don't.
    """
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    reached = {}  # the levels that are neither sure nor impossible
    low, high = int(values.min()), int(values.max())
    for level in range(int(values.min()) + 1, int(values.max()) + 1):
        terms = weights * (2 * values + 1 - 2 * level)
        if np.minimum.reduceat(terms, starts).sum() >= 0:
            low = level
        elif np.maximum.reduceat(terms, starts).sum() < 0:
            high = min(high, level - 1)
        else:
            reached[level] = wiring.at_least(terms.tolist(), literals, 0)
    reached |= {low: TRUE}
    return {level: (reached[level], reached.get(level + 1, FALSE) ^ 1) for level in range(low, high + 1)}
