r"""Lemma: product of states where heads count. A count is remembered by what the network can still tell of it.

A head that averages with the same weight $\lambda$ for every letter at every position writes a count: $\lambda$ times
the sum of its values. The machine of `attention.py` remembers such a sum, and there are as many memories as sums.
Let coordinate $j$ of the count be $s$. Where nothing but units reads it, each of which reads nothing else, the rest of
the network sees only $g_j(s)$, what these units write. If $g_j(s) = g_j(s + p)$ for all $s \ge i$ with $s + p \le M$,
then sums of the same *class* ($s$ if $s < i$, else $i + (s - i) \bmod p$) are read alike, and are so after any more
letters, as long as no sum exceeds $M$. So memories with the same classes have the same future. Checked instances:

| instance | statement |
| --- | --- |
| positions | the weight of a letter, and what pads add, are the same at every position |
| counts | $g_j(s) = g_j(s + p)$, for all $s$ from $i$ to $M - p$ |
| pairs of states, steps | as in the product of states: the answer is right at every pair (memory, state of the spec) |
| largest counts | no walk of $T$ letters through the memories adds up to more than $M$ |

Values that are added are whole numbers, none of them negative. All of it is read off the weights.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.equivalence.attention import AttentionMachine, Keys, MachineMemory, shares
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, follow, lemma
from vitrify.certification.equivalence.ideal import HeadRule, Ideal
from vitrify.certification.equivalence.product import search
from vitrify.certification.margins.values import Undecided
from vitrify.spec.kinds import Spec

VALUE_ERROR = 1e-6  # counts and values of units are this near to their ideal ones
MAX_PERIOD = 1 << 8  # of what is read of a count
MAX_VALUES = 1 << 27  # of units that read one coordinate of a count


@lemma(Spec)
def counters(case: SpecCase) -> SpecProof:
    """Search all pairs of states of network and spec, with the counts of the network by their classes."""
    machine = CountingMachine(case.ideal)
    assert case.proof is not None
    follow(case, machine, case.proof.max_length, case.proof.error or 0.0)
    result = search(machine, case.oracle, case.states, case.net.inputs[1:])
    if result.witness is not None:
        return SpecProof("product of states", None, witness=result.witness)
    walks = machine.need_ranges()
    return SpecProof(
        "product of states, counts by their classes",
        machine.longest,
        {
            "pairs of states": result.pairs,
            "steps": result.steps,
            "positions": len(machine.counters) * case.ideal.longest,
            "counts": sum(len(counter.reads) for each in machine.counters.values() for counter in each.parts),
            "largest counts": walks,
        },
    )


@dataclass(frozen=True, eq=False)
class CountPart:
    """One coordinate of a count: read modulo `period` from `start` on, up to `limit`; `reads` numbers all $g_j(s)$."""

    start: int
    period: int
    limit: float
    reads: Ints

    def classes(self, number: int) -> int:
        return number if number < self.start else self.start + (number - self.start) % self.period


@dataclass(frozen=True, eq=False)
class CountingHead:
    """A head that counts: the weight of a letter, and the coordinates of its count by their dimensions."""

    rule: HeadRule
    share: float
    dims: Ints
    parts: tuple[CountPart, ...]


class CountingMachine(AttentionMachine):
    """The ideal of a causal transformer, letter by letter, with counts by their classes."""

    def __init__(self, ideal: Ideal) -> None:
        super().__init__(ideal)
        self.longest = ideal.longest
        self.counters: dict[int, CountingHead] = {}
        self._memories: dict[Hashable, int] = {}  # numbers of memories
        self._steps: list[tuple[int, int, list[int]]] = []  # from memory to memory, with what it adds to all counts
        self._added: list[int] = []
        number, constant, base = 0, *_constant_letters(ideal)
        for index, block in enumerate(ideal.blocks):
            for at, rule in enumerate(block.heads):
                if rule.averages and rule.window is None and rule.head.window != 1:
                    self.counters[number] = _counter(ideal, index, at, constant, base)
                number += 1
            constant, base = _constant_after(ideal, index, constant, base)
        if not self.counters:
            raise Undecided("no head counts")

    def key(self, memory: MachineMemory) -> Hashable:
        period = self.ideal.place_period
        time = memory.length if period is None else memory.length % period
        return time, super().key(memory)[1]  # type: ignore[index]

    def need_ranges(self) -> int:
        """Check that no word adds up to more than the classes of a count are known for; return the checked steps."""
        checked, column = 0, 0
        if not self._steps:  # no letter
            return 0
        steps = np.array([step[:2] for step in self._steps], dtype=np.int64).reshape(-1, 2)
        added = np.array([step[2] for step in self._steps])
        for counter in self.counters.values():
            letters = self.ideal.longest - (counter.rule.head.mask == "strict")
            for part in counter.parts:
                if letters * int(added[:, column].max(initial=0)) > part.limit:
                    checked += letters * len(steps)
                    if _most(steps, added[:, column], len(self._memories), letters) > part.limit:
                        raise Undecided(f"a count may exceed {part.limit:.0f}, up to which it is known how it is read")
                column += 1
        return checked

    def _step(self, memory: MachineMemory, token: int) -> tuple[MachineMemory, Floats]:
        self._added = []
        after, logits = super()._step(memory, token)
        start, end = (self._memories.setdefault(self.key(each), len(self._memories)) for each in (memory, after))
        self._steps.append((start, end, self._added))
        return after, logits

    def _read(self, head: HeadRule, x: Floats, memory: MachineMemory, number: int, at: int) -> tuple[Keys, Floats]:
        entries, value = super()._read(head, x, memory, number, at)
        counter = self.counters.get(number)
        if counter is None:
            return entries, value
        before = memory.heads[number][0].value if memory.heads[number] else np.zeros_like(value)
        old, new = (_whole(total[counter.dims] * counter.share) for total in (before, entries[0].value))
        if (new < old).any():
            raise Undecided("a count that falls is not followed")
        self._added += (new - old).tolist()
        classes = [part.classes(count) for part, count in zip(counter.parts, new.tolist(), strict=True)]
        return (entries[0]._replace(number=(0, self._number(np.array(classes, dtype=float)))),), value


def _whole(numbers: Floats) -> Ints:
    if np.abs(numbers - np.round(numbers)).max(initial=0.0) > VALUE_ERROR:
        raise Undecided("a head adds up numbers that are not whole")
    return np.round(numbers).astype(np.int64)


def _most(steps: Ints, added: Ints, nodes: int, letters: int) -> int:
    """Return the largest sum along a walk of at most so many steps from node 0."""
    best = np.full(nodes, np.iinfo(np.int64).min // 2)
    best[0] = 0
    for _ in range(letters):
        after = best.copy()
        np.maximum.at(after, steps[:, 1], best[steps[:, 0]] + added)
        if np.array_equal(after, best):
            break
        best = after
    return int(best.max())


def _constant_letters(ideal: Ideal) -> tuple[Bools, Floats]:
    """Return the dimensions that are the same for all letters, and what they hold."""
    rows = ideal.embed[1:] + ideal.steady
    if not len(rows):
        return np.ones(rows.shape[1], dtype=bool), ideal.steady
    return np.ptp(rows, axis=0) == 0, rows[0]


def _written(rule: HeadRule) -> Bools:
    """Return the dimensions that a head can write."""
    others = (rule.v_places, rule.pad_values, rule.b_v[None])
    return np.asarray(np.any(rule.v, axis=0) | np.any([np.any(other, axis=0) for other in others], axis=0))


def _constant_after(ideal: Ideal, index: int, constant: Bools, base: Floats) -> tuple[Bools, Floats]:
    """Return the constant dimensions after a block: those that it erases or does not write."""
    block, constant, base = ideal.blocks[index], constant.copy(), base.copy()
    for rule in block.heads:
        constant &= ~_written(rule)
    if block.units:
        _, _, w_out, b_out = block.units
        constant[block.gone], base[block.gone] = True, 0.0
        constant &= ~np.any(w_out, axis=0)
        base = base + b_out
    return constant, base


def _counter(ideal: Ideal, index: int, at: int, constant: Bools, base: Floats) -> CountingHead:
    """Return what is read of a head's count; `constant` dimensions hold `base` before its block."""
    heads = ideal.blocks[index].heads
    rule = heads[at]
    query, key = (np.where(constant, base, 0.0) @ matrix for matrix in (rule.q, rule.k))
    if np.any(rule.q[~constant]) or np.any(rule.k[~constant]) or not rule.separate(key[None], query):
        raise Undecided("a mean whose weights depend on contents is no count")
    pads = rule.pad_scores(query)
    means, weights = zip(*(shares(rule, key, query, t, pads[t]) for t in range(ideal.longest)), strict=True)
    weights = weights[rule.head.mask == "strict" :] or (1.0,)  # at first, a strict head sees no letter
    if np.ptp(weights) > VALUE_ERROR * min(weights) / ideal.longest or np.ptp(means, axis=0).max() > VALUE_ERROR:
        raise Undecided("the weight of a letter depends on its position")
    dims = np.flatnonzero(np.any(rule.v, axis=0) | (rule.b_v != 0) | np.any(rule.v_places, axis=0))
    if any(np.any(_written(other)[dims]) for other in heads if other is not rule):
        raise Undecided("two heads add to the same count")
    if not constant[dims].all() or np.any(ideal.places[index][:, dims]):
        raise Undecided("a count is added to something else")
    offset = base + means[0]
    parts = tuple(_part(ideal, index, dim, float(offset[dim])) for dim in dims.tolist())
    return CountingHead(rule, float(weights[0]), dims, parts)


def _part(ideal: Ideal, index: int, dim: int, offset: float) -> CountPart:
    """Return how units read a coordinate of a count, in whole numbers above an offset; nothing else may read it."""
    units = ideal.blocks[index].units
    _need_unread_after(ideal, index, dim)
    used = np.flatnonzero(units[0][dim]) if units else np.zeros(0, dtype=np.int64)
    if not len(used):
        return CountPart(0, 1, np.inf, np.zeros(1, dtype=np.int64))
    w_in, b_in, w_out, _ = units
    if (np.count_nonzero(w_in[:, used], axis=0) > 1).any():
        raise Undecided("a unit reads more than one coordinate of a count")
    slope, bias, out = w_in[dim, used], b_in[used] + w_in[dim, used] * offset, w_out[used]
    last = max(0, int(np.ceil((-bias / slope).max())))  # from here on, no unit is switched on or off
    out = out[:, np.any(out, axis=0)]
    if (last + 2) * (len(used) + out.shape[1]) > MAX_VALUES:
        raise Undecided(f"more than {MAX_VALUES:,} values of units that read a count")
    read = np.maximum(np.arange(last + 2.0)[:, None] * slope + bias, 0.0) @ out
    settled = bool(np.abs(read[-1] - read[-2]).max(initial=0.0) <= VALUE_ERROR**2)
    _, ids = np.unique(np.round(read[:-1] / VALUE_ERROR), axis=0, return_inverse=True)
    ids = ids.ravel()
    choices = []
    for period in range(1, min(MAX_PERIOD, last + 1) + 1):
        differ = np.flatnonzero(ids[period:] != ids[:-period])
        choices.append((int(differ[-1]) + 1 if len(differ) else 0, period))
    start, period = min(choices, key=lambda pair: (sum(pair), pair[1]))
    return CountPart(start, period, np.inf if settled and period == 1 else last, ids)


def _need_unread_after(ideal: Ideal, index: int, dim: int) -> None:
    """Refuse a dimension that is read after a block before it is erased."""
    if dim in ideal.blocks[index].gone:
        return
    for block in ideal.blocks[index + 1 :]:
        reads = [matrix for rule in block.heads for matrix in (rule.q, rule.k, rule.v)]
        if any(np.any(matrix[dim]) for matrix in (*reads, *block.units[:1])):
            raise Undecided("a count is read by more than the units of its block")
        if dim in block.gone:
            return
    if np.any(ideal.w_u[dim]):
        raise Undecided("a count is read by more than the units of its block")
