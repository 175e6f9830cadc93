r"""Lemma "two stacks": a ReLU recurrence that holds a tape as two numbers writes the steps of a probabilistic machine.

A word is a run. Let $R$ code the symbols from the head of the machine to the right, and $L$ those left of it, the
nearest $\gamma_1$ first: $\sum_i \gamma_i b^{-i}$, where $\gamma$ is the index of a symbol, 0 for the blank, and $b$
the least power of two above the number $G$ of symbols. So the number of a stack with the top $r$ is in $[r/b,\ r/b +
(G-1)/(b(b-1))]$. After a step that wrote $s$, with the tops $r$ and $l$ before it, the numbers are

- right: $bR - r$ and $(L + s)/b$;
- none: $R + (s - r)/b$ and $L$;
- left: $(R + (s - r)/b + l)/b$ and $bL - l$.

Invariant: after a token of move $\mu$ the state consists of a unit vector of the machine's state; for each unit of the
move $\mu$, which belongs to one stack $S$ and has a threshold $c$, $\mathrm{relu}(S - c)$; and zeros. Instances:

1. After BOS there are the unit vector of the start state and zeros; both stacks are empty.
2. For tops $r, l$ no threshold lies inside the interval of its stack, so that the state is affine in $R$ and $L$. For
   every move of the last token (or none, after BOS), all $r, l$ and every token, what the stored weights add up is as
   a polynomial in $R$ and $L$ equal to $S' - c$ in the units of the token's move, with $S'$ as above; at most 0 in all
   other units wherever $R$ and $L$ may be; and the unit vector of the token's state.
3. For every such state, hidden units depend on neither $R$ nor $L$, and the logits give the distribution of the rules
   for the machine's state and $r$.

By induction this is right for every run in exact arithmetic. After $t$ steps both numbers are multiples of $b^{-t-1}$.
Weights are multiples of powers of two, so that every sum, in any order, consists of multiples of some power of two; it
is not rounded while the sum of their sizes is at most $2^{53}$ times that power. This is checked for each sum of the
cell and of the hidden units at the longest run that the network reads.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.machine_steps import parts_of
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.meanings import MeaningOracle
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.net.weights import has_architecture
from vitrify.spec.computation.probabilistic_turing import ProbabilisticTuringMachine
from vitrify.spec.computation.turing import MOVES

BITS = 53  # of float64
FINEST = 2.0**-12  # all weights but those of the logits are multiples of it, so that the sums of this proof are exact
MAX_WEIGHT, MAX_SUM = 2.0**10, 2.0**28
MAX_BASE = 64
STACKS = ("right of the head", "left of the head")
POLYNOMIAL = 3  # coefficients: of 1, R and L


class Unit(NamedTuple):
    """A unit of the state that belongs to a stack, 0 or 1, and a move; it holds relu(number - threshold)."""

    dim: int
    stack: int
    move: int
    threshold: float


@lemma(ProbabilisticTuringMachine)
def two_stacks(case: SpecCase) -> SpecProof:
    """Prove that a recurrent network writes the steps of a probabilistic machine."""
    weights, spec = case.weights, case.spec
    if not has_architecture(weights, Recurrent) or weights.architecture.cell.kind != "relu":
        raise Undecided("only simple recurrent nets hold stacks as numbers")
    stacks = _Stacks(case)
    checked = 0
    for move in (None, *sorted({move for _, move, _ in stacks.tokens})):
        symbols = range(1 if move is None else len(spec.symbols))
        for tops in product(symbols, symbols):
            held = stacks.held(move, tops)
            stacks.need_step(held, tops, 1 if move is None else POLYNOMIAL)
            stacks.need_answers(held, tops[0])
            checked += 1
    stacks.need_exact_sums(case.net.max_length)
    instances = {"moves and tops": checked, "tokens": len(stacks.tokens), "units": len(stacks.units)}
    return SpecProof("two stacks", case.net.max_length, instances, exact=True)


class _Stacks:
    """The arrays of a network, its tokens as (index of the symbol, move, state), and its units by stack and move.

    Which units belong to which stack and move is taken from the labels; all else from the weights.
    """

    def __init__(self, case: SpecCase) -> None:
        self.case, self.spec, net = case, case.spec, case.net
        spec = self.spec
        self.arrays = {name: np.asarray(dense(array)) for name, array in case.weights.arrays.items()}
        for name in ("embed.W_E", "blocks.0.rec.W_A", "blocks.0.rec.W_B", "blocks.0.mlp.W_in", "blocks.0.mlp.b_in"):
            array = self.arrays.get(name)
            if array is None or (array % FINEST).any() or np.abs(array).max(initial=0.0) > MAX_WEIGHT:
                raise Undecided(f"{name} is missing, or holds numbers that are no small multiples of 2^-12")
        if net.pads != 1 or net.inputs[1:] != spec.vocabulary:
            raise Undecided("the network reads other tokens than the steps of the machine")
        self.w_a = self.arrays["blocks.0.rec.W_A"]
        self.driven: Floats = self.arrays["embed.W_E"] @ self.arrays["blocks.0.rec.W_B"]
        if (np.abs(self.arrays["embed.W_E"]) @ np.abs(self.arrays["blocks.0.rec.W_B"])).max(initial=0.0) > MAX_SUM:
            raise Undecided("what drives the recurrence is too large")
        self.base = 1 << len(spec.symbols).bit_length()
        if self.base > MAX_BASE:
            raise Undecided(f"{len(spec.symbols)} symbols are too many for sums that are exact in the proof")
        parts = [parts_of(spec, token) for token in net.inputs[1:]]
        self.tokens = [(spec.symbols.index(symbol), move, state) for symbol, move, state in parts]
        dims = {label.name: label.dims for label in case.weights.labels.spaces if label.born == 1}
        self.states = np.array(dims.pop("state", ()), dtype=np.int64)
        named = {f"{name} after {move}": (stack, MOVES[move]) for stack, name in enumerate(STACKS) for move in MOVES}
        if not dims.keys() <= named.keys() or len(self.states) != len(spec.working):
            raise Undecided("the state has no two stacks and a unit for each state of the machine")
        self.units = [self._unit(dim, *named[name]) for name, some in dims.items() for dim in some]
        everything = sorted([*self.states.tolist(), *(unit.dim for unit in self.units)])
        if everything != list(range(len(self.w_a))):
            raise Undecided("labels do not name each unit of the state once")
        self._need_start()

    def _unit(self, dim: int, stack: int, move: int) -> Unit:
        """Return a unit, with the threshold that every token of its move gives it."""
        rows = [(row, symbol) for row, (symbol, moved, _) in enumerate(self.tokens, start=1) if moved == move]
        shares = {self._after(move, symbol, (0, 0))[stack][0] - self.driven[row, dim] for row, symbol in rows}
        threshold = shares.pop() if shares else 0.0
        if shares or threshold % FINEST or not 0 <= threshold <= 1:
            raise Undecided("a unit has no threshold from 0 to 1 that is the same for all tokens of its move")
        return Unit(dim, stack, move, threshold)

    def _after(self, move: int, symbol: int, tops: tuple[int, int]) -> Floats:
        """Return both numbers after a step as polynomials [stack, coefficient]."""
        (right, left), b = tops, self.base
        if move == MOVES["R"]:
            return np.array([[-right, b, 0.0], [symbol / b, 0.0, 1 / b]])
        if move == MOVES["L"]:
            return np.array([[(symbol - right) / b**2 + left / b, 1 / b, 0.0], [-left, 0.0, b]])
        return np.array([[(symbol - right) / b, 1.0, 0.0], [0.0, 0.0, 1.0]])

    def _need_start(self) -> None:
        """Check instance 1, and that the machine's state is that of the last token alone."""
        codes = np.eye(len(self.states))[[self.spec.working.index(q) for q in (self.spec.start, *self._next_states())]]
        stacks = [unit.dim for unit in self.units]
        if (self.driven[0, stacks] > 0).any() or self.w_a[self.states].any() or self.w_a[:, self.states].any():
            raise Undecided("after BOS the stacks are not empty, or units read the machine's state")
        if not np.array_equal(self.driven[:, self.states], codes):
            raise Undecided("a token does not write its state")

    def _next_states(self) -> list[str]:
        return [state for _, _, state in self.tokens]

    def held(self, move: int | None, tops: tuple[int, int]) -> Floats:
        """Return the state after a token of a move, but for the machine's state, as polynomials [coefficient, dim]."""
        polynomial = np.zeros((POLYNOMIAL, len(self.w_a)))
        reach = Fraction(len(self.spec.symbols) - 1, self.base * (self.base - 1))
        for unit in self.units:
            low = tops[unit.stack] / self.base
            if unit.move == move and unit.threshold <= low:
                polynomial[0, unit.dim], polynomial[1 + unit.stack, unit.dim] = -unit.threshold, 1.0
            elif unit.move == move and unit.threshold < Fraction(low) + reach:
                raise Undecided("a threshold lies between numbers with the same top")
        return polynomial

    def need_step(self, held: Floats, tops: tuple[int, int], terms: int) -> None:
        """Check instance 2 for a state and its tops; after BOS both numbers are 0, and 1 is the only term."""
        turned = held @ self.w_a
        corners = np.array(
            [[1.0, *ends] for ends in product(*((top / self.base, (top + 1) / self.base) for top in tops))]
        )
        for row, (symbol, move, _) in enumerate(self.tokens, start=1):
            total = turned.copy()
            total[0] += self.driven[row]
            after = self._after(move, symbol, tops)
            for unit in self.units:
                if unit.move != move:
                    right = (corners @ total[:, unit.dim] <= 0).all()
                else:
                    wanted = after[unit.stack] - np.eye(POLYNOMIAL)[0] * unit.threshold
                    right = np.array_equal(total[:terms, unit.dim], wanted[:terms])
                if not right:
                    raise Undecided(f"the token {self.case.net.inputs[row]!r} does not update the stacks")

    def need_answers(self, held: Floats, top: int) -> None:
        """Check instance 3 for a state and the symbol under the head."""
        arrays, oracle, spec = self.arrays, self.case.oracle, self.spec
        assert isinstance(oracle, MeaningOracle)
        read = held @ arrays["blocks.0.mlp.W_in"]
        if read[1:].any():
            raise Undecided("hidden units depend on more than the tops of the stacks")
        total = read[0] + arrays["blocks.0.mlp.W_in"][self.states] + arrays["blocks.0.mlp.b_in"]
        hidden = np.maximum(total, 0.0) @ arrays["blocks.0.mlp.W_out"] + arrays["blocks.0.mlp.b_out"]
        logits = hidden @ arrays["unembed.W_U"] + arrays["unembed.b_U"]
        known = oracle.rows([spec.following(state, spec.symbols[top]) for state in spec.working])
        if not (oracle.judged(known[None], logits[None]) <= oracle.tolerance()).all():
            raise Undecided(f"a step after reading {spec.symbols[top]!r} is not that of its rules")

    def need_exact_sums(self, steps: int) -> None:
        """Check that no sum of the cell in `steps` steps, and none of the hidden units after them, is rounded."""
        finest = float(self.base) ** -(steps + 1)
        constant = np.abs(self.driven).max(axis=0)
        for move in {unit.move for unit in self.units}:
            active = [unit.dim for unit in self.units if unit.move == move]
            thresholds = np.array([unit.threshold for unit in self.units if unit.move == move])
            _need_exact(self.w_a[active], constant, min(finest * self.base, _granule(thresholds)))
            w_in, b_in = self.arrays["blocks.0.mlp.W_in"], np.abs(self.arrays["blocks.0.mlp.b_in"])
            largest = np.abs(w_in[self.states]).max(axis=0)  # one of them is 1, the others 0
            _need_exact(w_in[active], b_in + largest, min(finest, _granule(thresholds)))


def _granule(numbers: Floats) -> float:
    """Return the largest power of two of which all numbers are multiples; 1 if they are 0."""
    nonzero = np.abs(numbers[numbers != 0])
    granule = 2.0 ** np.floor(np.log2(nonzero.min())) if len(nonzero) else 1.0
    while (nonzero % granule).any():
        granule /= 2
    return float(granule)


def _need_exact(matrix: Floats, constant: Floats, granule: float) -> None:
    """Refuse sums that may be rounded, of numbers from 0 to 1 that are multiples of a power of two."""
    for column, added in zip(matrix.T, constant.tolist(), strict=True):
        least = min(granule * _granule(column), _granule(np.array([added])))
        if np.abs(column).sum() + added > 2.0**BITS * least:
            raise Undecided("a sum may be rounded in float64 before the longest run ends")
