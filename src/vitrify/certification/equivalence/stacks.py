r"""Lemma: a recurrent network whose numbers each depend on one slot of the stack knows which brackets may come next.

A stack has $m \le D$ slots that have been used, with brackets of $k$ kinds $s = (s_1, \dots, s_m)$, of which the first
$d$ are open; a slot above them holds the last bracket that was there. There are far too many stacks, but each number of
the state depends on one slot at most. A *mode* is $d$, $m$, and whether the last bracket opened or closed (or nothing
was read). The lemma claims a code for every mode: each number of the state is constant, or a table of $s_i$ for one
slot $i$.

*Rows*: for each mode, stacks in which every two slots take all $k^2$ pairs of kinds: $s_i = (a + b i \bmod q) \bmod k$
for all $a, b < q$, with a prime $q \ge k$ and $q > D$. So a function of two slots that is known on the rows is known.

- The code of a mode is what the network holds on the rows after brackets that lead there: each number must be
  constant, or determined by one slot.
- *Step*: from the code of a mode, for every bracket that may come, the network's next state is the code of the next
  mode. A number of the next state reads those of the state with weights other than 0, so it depends on their slots; the
  new code depends on one. If these are two slots at most, all their kinds occur in the rows, where the step is run.
- *Answer*: the same for every logit and the bracket on top.

In between, a sum (and a gate or unit, which is a function of one sum) that depends on two slots at most is replaced by
what it is on the rows: constant, or determined by one slot. By induction over the brackets, the network holds the code
of the stack after every prefix of every word, and answers right, at every length. Numbers are exact as in
`recurrent.py`, which checks it on the rows: they hold all values that any number ever has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.recurrent import RecurrentMachine
from vitrify.certification.margins.values import Undecided
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.net.weights import has_architecture
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.ngrams.trie import END

MAX_ROWS = 1 << 14  # of stacks of one depth
MAX_STEPS = 1 << 20  # of rows
SAME = 1e-12  # numbers this near to each other are the same


class Mode(NamedTuple):
    """The number of brackets that are open, that of slots that have been used, and the last step."""

    open: int
    used: int
    last: Literal["begins", "opened", "closed"]


Slots = frozenset[int]  # on which a number depends, counted from 0, the lowest


@lemma(Dyck)
def slots_of_a_stack(case: SpecCase) -> SpecProof:
    """Prove that the state of a recurrent network is a code of the stack, number by number."""
    if not has_architecture(case.weights, Recurrent) or case.net.output.kind != "next":
        raise Undecided("the lemma is about recurrent networks that output the next brackets")
    proof = _StackProof(case)
    proof.run()
    checked = {"modes": len(proof.codes), "steps of rows": proof.steps}
    return SpecProof("slots of a stack", None, checked, exact=True)


class _StackProof:
    """The rows of all depths, and the code of every mode: the states on its rows, and the slots of their numbers."""

    def __init__(self, case: SpecCase) -> None:
        spec: Dyck = case.spec
        self.depth, self.kinds, self.steps = spec.depth, len(spec.brackets), 0
        self.machine = RecurrentMachine(case.weights)  # type: ignore[arg-type]  # the lemma has checked it
        if self.machine.net.cell.kind not in ("relu", "linear", "lstm"):
            raise Undecided("the numbers of other cells are not followed slot by slot")
        self.tie = case.oracle.TIE
        ids = case.net.input_ids
        self.opening, self.closing = (np.array([ids[pair[side]] for pair in spec.brackets]) for side in (0, 1))
        symbols = {symbol: index for index, symbol in enumerate(case.net.output.symbols)}
        self.says = [[symbols[pair[side]] for pair in spec.brackets] for side in (0, 1)]
        self.end = symbols[END]
        self.arrays = {name: np.asarray(dense(array)) for name, array in case.weights.arrays.items()}
        if (
            self.depth * (self.depth + 1) * (self.kinds + 1) * len(_rows(self.kinds, self.depth, self.depth))
            > MAX_STEPS
        ):
            raise Undecided(f"{self.kinds} kinds of brackets to depth {self.depth} are too many steps")
        self.rows = [_rows(self.kinds, depth, self.depth) for depth in range(self.depth + 1)]
        self._both = np.vstack([self.arrays[f"blocks.0.rec.{name}"] for name in ("W_A", "W_B")])
        self._reads: dict[int, list[list[int]]] = {}  # by the identity of a matrix
        self.codes: dict[Mode, tuple[Floats, list[Slots]]] = {}

    def run(self) -> None:
        """Check the answer in every mode, and every step from it."""
        first, logits = self.machine.start()
        self._learn(Mode(0, 0, "begins"), np.concatenate(first)[None], logits[None])
        for used, rows in enumerate(self.rows):
            opening, closing = self.opening[rows.T], self.closing[rows.T]  # tokens [slot, row]
            for depth in range(used + 1):
                down = [*opening, *closing[:depth:-1], *closing[depth : depth + 1]] if depth < used else [*opening]
                if depth < used:
                    self._learn(Mode(depth, used, "closed"), *self._read(down))
                if depth:
                    again = [*opening, *closing[: depth - 1 : -1], closing[depth - 1], opening[depth - 1]]
                    self._learn(Mode(depth, used, "opened"), *self._read(again if depth < used else [*opening]))
        for mode in list(self.codes):
            for kind in range(self.kinds if mode.open < self.depth else 0):
                self._check_step(mode, kind)
            if mode.open:
                self._check_step(mode, None)

    # The network

    def _stepped(self, states: Floats, tokens: Ints) -> tuple[Floats, Floats]:
        self.steps += len(states)
        parts = 2 if self.machine.net.cell.kind == "lstm" else 1
        after, logits = self.machine.batch(tuple(np.split(states, parts, axis=1)), tokens)
        return np.hstack(after), logits

    def _read(self, tokens: list[Ints]) -> tuple[Floats, Floats]:
        """Return the states and logits after some words, given as tokens [position][word]."""
        first, logits = self.machine.start()
        states = np.tile(np.concatenate(first), (len(tokens[0]), 1))
        for column in tokens:
            states, logits = self._stepped(states, column)
        return states, logits

    # Modes

    def _learn(self, mode: Mode, states: Floats, logits: Floats) -> None:
        """Take what the network holds on the rows of a mode for its code, and check the answers."""
        rows = self.rows[mode.used]
        every = frozenset(range(mode.used))
        slots = _own_slots(states, rows, [every] * states.shape[1])
        if any(len(each) > 1 for each in slots):
            raise Undecided("a number of the state depends on several slots of the stack")
        self.codes[mode] = states, slots
        self._check_answers(mode, logits)

    def _check_answers(self, mode: Mode, logits: Floats) -> None:
        (states, slots), rows = self.codes[mode], self.rows[mode.used]
        hidden = self.machine.net.cell.state
        states, slots = states[:, :hidden], slots[:hidden]
        if self.machine.net.units:
            w_in, b_in, w_out = (self.arrays[f"blocks.0.mlp.{name}"] for name in ("W_in", "b_in", "W_out"))
            units = np.maximum(states @ w_in + b_in, 0.0)
            slots = self._after(w_in, slots, units, rows)
            states = units @ w_out + self.arrays["blocks.0.mlp.b_out"]
            if (np.abs(w_out) @ np.abs(self.arrays["unembed.W_U"])).sum(axis=0).max() * SAME > self.tie / 2:
                raise Undecided("units of nearly the same value may make different answers")
            slots = self._after(w_out, slots, states, rows)
        top = frozenset({mode.open - 1}) if mode.open else frozenset[int]()
        for each in self._after(self.arrays["unembed.W_U"], slots, logits, rows):
            _need_two(each | top)
        right = np.zeros(logits.shape, dtype=bool)
        right[:, self.says[0]] = mode.open < self.depth
        if mode.open:
            right[np.arange(len(rows)), np.array(self.says[1])[rows[:, mode.open - 1]]] = True
        else:
            right[:, self.end] = True
        if ((logits > 0) != right).any() or not (np.abs(logits) > self.tie).all():
            raise Undecided(f"an answer at depth {mode.open} is wrong")

    def _check_step(self, mode: Mode, kind: int | None) -> None:
        """Check that an opening bracket of a kind, or the one that closes, leads from a code to the next one."""
        (states, slots), rows = self.codes[mode], self.rows[mode.used]
        if kind is None:
            token, stacks = self.closing[rows[:, mode.open - 1]], rows
            next_mode, new = Mode(mode.open - 1, mode.used, "closed"), frozenset[int]()
        else:
            token, new = np.full(len(rows), self.opening[kind]), frozenset({mode.open})
            stacks = np.delete(rows, mode.open, axis=1) if mode.open < mode.used else rows
            stacks = np.insert(stacks, mode.open, kind, axis=1)
            next_mode = Mode(mode.open + 1, stacks.shape[1], "opened")
        after, _ = self._stepped(states, token)
        expected, wanted = self._code(next_mode, stacks)
        if not (np.abs(after - expected) <= SAME).all():
            raise Undecided(f"a step from depth {mode.open} does not lead to the code of the next stack")
        x = self.arrays["embed.W_E"][token]
        read = frozenset({mode.open - 1}) if kind is None else frozenset[int]()
        given = [read if np.ptp(column) else frozenset[int]() for column in x.T]
        for own, other in zip(self._dependence(states, slots, x, given, rows), wanted, strict=True):
            _need_two(own | (other - new))  # the new bracket is known

    def _dependence(self, states: Floats, slots: list[Slots], x: Floats, given: list[Slots], rows: Ints) -> list[Slots]:
        """Return the slots that the numbers of the next state depend on, at most two each."""
        size, kind = self.machine.net.cell.state, self.machine.net.cell.kind
        sums = np.hstack([states[:, :size], x]) @ self._both + self.arrays.get("blocks.0.rec.b", 0.0)
        values = np.clip(sums, -1.0, 1.0) if kind == "lstm" else np.maximum(sums, 0.0) if kind == "relu" else sums
        of_gates = self._after(self._both, [*slots[:size], *given], values, rows)
        if kind != "lstm":
            return of_gates
        cells = [
            frozenset().union(slots[size + at], *(of_gates[gate * size + at] for gate in range(4)))
            for at in range(size)
        ]
        return [*cells, *cells]

    def _after(self, weight: Floats, slots: Sequence[Slots], values: Floats, rows: Ints) -> list[Slots]:
        """Return the slots that some functions of sums depend on: those of what a sum reads, as far as it shows."""
        read = [frozenset[int]().union(*(slots[at] for at in reads)) for reads in self._nonzero(weight)]
        for each in read:
            _need_two(each)
        return _own_slots(values, rows, read)

    def _nonzero(self, weight: Floats) -> list[list[int]]:
        """Return what each column of a matrix reads."""
        if id(weight) not in self._reads:
            self._reads[id(weight)] = [np.flatnonzero(column).tolist() for column in weight.T]
        return self._reads[id(weight)]

    def _code(self, mode: Mode, stacks: Ints) -> tuple[Floats, list[Slots]]:
        """Return the code of some stacks in a mode, and the slot of each of its numbers."""
        (states, slots), rows = self.codes[mode], self.rows[mode.used]
        expected = np.tile(states[:1], (len(stacks), 1))
        for number, each in enumerate(slots):
            for slot in each:
                table = np.zeros(self.kinds)
                table[rows[:, slot]] = states[:, number]
                expected[:, number] = table[stacks[:, slot]]
        return expected, slots


def _rows(kinds: int, depth: int, deepest: int) -> Ints:
    """Return stacks [row, slot] in which every two slots take all pairs of kinds."""
    prime = max(kinds, deepest + 1, 2)
    while any(prime % factor == 0 for factor in range(2, int(prime**0.5) + 1)):
        prime += 1
    if prime**2 > MAX_ROWS:
        raise Undecided(f"pairs of {kinds} kinds of brackets are too many rows")
    a, b, slot = np.meshgrid(np.arange(prime), np.arange(prime), np.arange(depth), indexing="ij")
    return np.unique(((a + b * slot) % prime % kinds).reshape(prime**2, depth), axis=0)


def _own_slots(values: Floats, rows: Ints, slots: list[Slots]) -> list[Slots]:
    """Return which of some slots each number [row, number] depends on: none, one that determines it, or all."""
    own = list(slots)
    same = np.ptp(values, axis=0) <= SAME
    for at, each in enumerate(slots):
        if same[at]:
            own[at] = frozenset()
        else:
            alone = (slot for slot in sorted(each) if _determined(values[:, at], rows[:, slot]))
            own[at] = next((frozenset({slot}) for slot in alone), each)
    return own


def _determined(values: Floats, kinds: Ints) -> bool:
    """Return whether rows with the same kind have the same value."""
    low, high = np.full(kinds.max() + 1, np.inf), np.full(kinds.max() + 1, -np.inf)
    np.minimum.at(low, kinds, values)
    np.maximum.at(high, kinds, values)
    return bool((high - low <= SAME).all())


def _need_two(slots: Slots) -> None:
    if len(slots) > 2:
        raise Undecided("a number depends on more than two slots of the stack")
