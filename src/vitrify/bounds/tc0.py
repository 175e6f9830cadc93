r"""Compile a transformer in finite precision, at one length, to a circuit of constant depth.

In the spirit of Merrill and Sabharwal (2023, arXiv 2207.00729), Merrill, Sabharwal and Smith (2022, arXiv 2106.16213),
and Strobl (2023); the circuit is our own derivation for the arithmetic of `fixed_point.py`. One bit per position and
type is true iff that type occurs there. For a query $q$ let the type $u$ at $j$ have weight $w = 2^{s + S}$ and value
$v$. The rounded output of the head is at least $\theta$ iff $\sum_j w_j (2 v_j + 1 - 2\theta) \ge 0$: *one* threshold
gate over the bits of the types. Each block adds three levels:

1. threshold: for each position, query, coordinate and $\theta$, the output is at least $\theta$;
2. AND: the type is $t$, and each coordinate is at least $\theta$ but not $\theta + 1$;
3. OR: the type after the block is $t'$.

One more OR in front joins letters with the same vector, and one at the end gives the answer at the last position, so
the depth is at most $3L + 2$ for $L$ layers, whatever the length. Types and weights do not depend on the length either,
so that there are $O(n)$ gates and $O(n^2)$ wires; with $O(\log n)$ bits of precision (`logarithmic`) there are
$n^{O(d)}$ types, and the size is still a polynomial.

**Hard attention that averages ties.** A score is the best one if a type with it occurs, and none with a higher one: an
OR and an AND. For each score that may be the best, the keys within the resolution have weight 1, so that the same
threshold gate adds them up and divides; an AND with the best score and an OR join the cases: six levels for each block.
Values must be rounded to $O(\log n)$ bits, as in the sources. Exact rationals are not $n^{O(1)}$ many: of the means
$\frac1n \sum_i \frac1i \sum_{j \le i} x_j$ of two layers there are $2^n$ for $n \le 11$ bits.

**Sums that are rounded after every addition.** They need no threshold gates: see `rounded_sums.py`.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.activations import MAX_TYPES, Numbered, read_answer
from vitrify.bounds.fixed_point import FixedNet
from vitrify.bounds.gates import (
    FALSE,
    TRUE,
    Bits,
    GateWiring,
    NetCircuit,
    answering,
    any_of_each,
    letters_wired,
    merged,
)
from vitrify.bounds.rounded_sums import LEVEL_DEPTH, rounded_means
from vitrify.bounds.supported import refuse_length
from vitrify.errors import BuildRefused
from vitrify.net.attention import allowed_keys

BLOCK_DEPTH = 3  # circuit levels per block: sums rounded once under softmax
BEST_DEPTH = 3  # further levels for the best score of hard attention, if a sum takes one level

Cases = dict[int, tuple[int, int]]  # possible values of a coordinate, each with two literals whose AND says so
HeadOutputs = dict[int, list[Cases]]  # by query, for each coordinate


def finite_precision_circuit(fixed: FixedNet, length: int) -> NetCircuit:
    """Return the circuit of a net in finite precision on words of one length."""
    net = fixed.net
    refuse_length(net, length)
    types: Numbered[tuple[int, ...]] = Numbered()
    wiring, first = letters_wired(net.inputs[1:], length, net.pads)
    kinds = []
    for at, here in enumerate(first):
        vectors = fixed.embedded(np.array([*here]), np.array(at)).tolist()
        kinds.append([(types.number(tuple(x)), bit) for x, bit in zip(vectors, here.values(), strict=True)])
    bits = merged(wiring, kinds)
    max_types = [max(map(len, bits))]
    for index in range(len(net.blocks)):
        last = index + 1 == len(net.blocks)
        bits = _block(fixed, wiring, types, index, bits, range(len(bits) - 1 if last else 0, len(bits)))
        max_types.append(max(map(len, bits)))
    answers = []
    for kind, literal in bits[-1].items():
        logits = fixed.logits(np.array(types.values[kind])).tolist()
        answers.append((read_answer(net.output.kind, net.output.symbols, logits), literal))
    return answering(wiring, answers, len(net.inputs) - 1, max_types)


def depth_bound(fixed: FixedNet) -> int:
    """Return the largest depth that a circuit of a net may have, at any length."""
    block = BLOCK_DEPTH + BEST_DEPTH * fixed.hard
    if fixed.grid.significant is not None:  # one sum for the weights, one for the products, and their cases
        block = LEVEL_DEPTH * fixed.grid.partial_sums + 1 + 2 * fixed.hard
    return block * len(fixed.net.blocks) + 2


def _block(
    fixed: FixedNet, wiring: GateWiring, types: Numbered[tuple[int, ...]], index: int, bits: Bits, working: range
) -> Bits:
    """Return the bits of the types after a block, at the positions in `working`."""
    heads = [_Head(fixed, types, index, head_number, bits) for head_number in range(len(fixed.net.blocks[index].heads))]
    after: list[list[tuple[int, int]]] = [[] for _ in bits]
    for position in working:
        outputs = [head.outputs(wiring, position) for head in heads]
        for kind, literal in bits[position].items():
            coordinates = [
                each for head_number, head in enumerate(heads) for each in outputs[head_number][head.query_of[kind]]
            ]
            if np.prod([len(each) for each in coordinates], initial=1.0) * len(bits[position]) > MAX_TYPES:
                raise BuildRefused(
                    f"the heads of block {index} have more than {MAX_TYPES} outputs: take a coarser grid"
                )
            cases = list(product(*(each.items() for each in coordinates)))
            numbers = np.array([[number for number, _ in case] for case in cases], dtype=np.int64)
            parts = np.split(numbers, np.cumsum([head.width for head in heads])[:-1], axis=1) if heads else []
            x = np.array([types.values[kind]] * len(cases), dtype=np.int64)
            for row, case in zip(fixed.after(index, x, parts).tolist(), cases, strict=True):
                wires = [wire for _, literals in case for wire in literals]
                after[position].append((types.number(tuple(row)), wiring.all_of([literal, *wires])))
    return merged(wiring, [[(kind, literal) for kind, literal in here if literal != FALSE] for here in after])


class _Head:
    """One head on the types that may occur before its block."""

    def __init__(self, fixed: FixedNet, types: Numbered[tuple[int, ...]], block: int, place: int, bits: Bits) -> None:
        self.fixed, self.block, self.place, self.bits = fixed, block, place, bits
        kinds = list(dict.fromkeys(kind for here in bits for kind in here))
        x = np.array([types.values[kind] for kind in kinds], dtype=np.int64)
        queries, self._keys, self._values = fixed.query_key_value(block, place, x)
        self.width = self._values.shape[1]
        self._row = {kind: row for row, kind in enumerate(kinds)}
        self._queries, numbers = np.unique(queries, axis=0, return_inverse=True)
        self.query_of = dict(zip(kinds, numbers.ravel().tolist(), strict=True))
        positions = np.arange(len(bits))
        self._allowed = allowed_keys(fixed.net.blocks[block].heads[place], positions, positions)

    def outputs(self, wiring: GateWiring, at: int) -> HeadOutputs:
        """Return, per query at a position and coordinate, the possible outputs with their literals."""
        fixed, there = self.fixed, np.flatnonzero(self._allowed[at])
        literals = [literal for j in there for literal in self.bits[j].values()]
        rows = [self._row[kind] for j in there for kind in self.bits[j]]
        positions = np.array([j for j in there for _ in self.bits[j]], dtype=np.int64)
        by_query: HeadOutputs = {}
        for query in dict.fromkeys(self.query_of[kind] for kind in self.bits[at]):
            if not len(there):
                by_query[query] = [{0: (TRUE, TRUE)}] * self.width
                continue
            q = self._queries[query : query + 1]
            scores = fixed.scores(self.block, self.place, q, self._keys[rows], (at - positions)[None])[0]
            if not fixed.hard:
                by_query[query] = self._mean(wiring, fixed.powers(scores), rows, positions, literals)
                continue
            cases = []
            for best, wins in _best_scores(wiring, scores.tolist(), positions, literals).items():
                weights = fixed.tied(self.block, self.place, scores, np.array(best))
                cases.append((wins, self._mean(wiring, weights, rows, positions, literals)))
            by_query[query] = _joined(wiring, cases)
        return by_query

    def _mean(
        self, wiring: GateWiring, weights: Ints, rows: list[int], positions: Ints, literals: list[int]
    ) -> list[Cases]:
        """Return, per coordinate, the possible values of the weighted mean of the types in these rows."""
        values = self._values[rows]
        if self.fixed.grid.significant is None:
            return [_numbers(wiring, weights, column, positions, literals) for column in values.T]
        return rounded_means(wiring, self.fixed.grid, weights, values, positions, literals)


def _best_scores(wiring: GateWiring, scores: list[int], positions: Ints, literals: list[int]) -> dict[int, int]:
    """Return the scores that may be the best, each with the literal that it is."""
    occurs = any_of_each(wiring, zip(scores, literals, strict=True))
    least: dict[int, int] = {}
    for position, score in zip(positions.tolist(), scores, strict=True):
        least[position] = min(score, least.get(position, score))
    floor = max(least.values())
    return {
        score: wiring.all_of([literal, *(occurs[above] ^ 1 for above in occurs if above > score)])
        for score, literal in occurs.items()
        if score >= floor
    }


def _joined(wiring: GateWiring, cases: list[tuple[int, list[Cases]]]) -> list[Cases]:
    """Return the possible values per coordinate, from those in each of some cases, exactly one of which is true."""
    if len(cases) == 1:
        return cases[0][1]
    coordinates = []
    for parts in zip(*(values for _, values in cases), strict=True):
        pairs = [
            (number, wiring.all_of([literal, *wires]))
            for (literal, _), values in zip(cases, parts, strict=True)
            for number, wires in values.items()
        ]
        coordinates.append({number: (literal, TRUE) for number, literal in any_of_each(wiring, pairs).items()})
    return coordinates


def _numbers(wiring: GateWiring, weights: Ints, values: Ints, positions: Ints, literals: list[int]) -> Cases:
    """Return the possible values of one coordinate of a mean, with their literals.

    Exactly one type occurs at each position. So a level is always reached if the least summands of all positions reach
    it, and never reached if the greatest do not.
    """
    starts = np.flatnonzero(np.diff(positions, prepend=-1))
    reached = {}  # levels that are reached in some cases only
    seen = values[weights > 0]
    low, high = int(seen.min()), int(seen.max())
    for level in range(low + 1, high + 1):
        terms = weights * (2 * values + 1 - 2 * level)
        if np.minimum.reduceat(terms, starts).sum() >= 0:
            low = level
        elif np.maximum.reduceat(terms, starts).sum() < 0:
            high = min(high, level - 1)
        else:
            reached[level] = wiring.at_least(terms.tolist(), literals, 0)
    reached |= {low: TRUE}
    return {level: (reached[level], reached.get(level + 1, FALSE) ^ 1) for level in range(low, high + 1)}
