r"""Probabilistic Turing machines run on a simple recurrent net: two stacks as numbers, a few bits for each step.

In the spirit of Nowak et al. (2024, arXiv 2406.14197), who show that ReLU recurrent nets with a chain of thought
represent every distribution of a probabilistic machine at a precision linear in the number of steps; the weights are
our own derivation. A token is a step, as for `probabilistic-turing`. The tape is two stacks: the symbols left of the
head, the nearest on top, and those from the head to the right. A stack of symbols $\gamma_1, \gamma_2, \dots$, the top
first, is the number $\sum_i \gamma_i b^{-i}$ in the base $b$, the least power of two above $G$, where the blank is the
digit 0: the blanks at the far end are there for nothing, and a stack is never empty.

The top of a stack $S$ is a sum of steps, $\gamma_1 = \sum_{k=1}^{G-1} [S \ge k/b]$. Below $k/b$ the largest possible
number is $k/b - (b - G)/(b(b-1))$; with a power of two $w$ of at most that distance,

$$[S \ge k/b] = \big(\mathrm{relu}(S - k/b + w) - \mathrm{relu}(S - k/b)\big)/w .$$

The state holds $S$ and these two units for each $k$, of both stacks. So what the next step does to the stacks is linear
in the state: with the symbol $s$ that it writes, the tops $r$ and $l$, and the numbers $R$ and $L$,

| move | right of the head, with the cell under it | left of the head |
| --- | --- | --- |
| right | $bR - r$ | $(L + s)/b$ |
| none | $R + (s - r)/b$ | $L$ |
| left | $(R + (s - r)/b + l)/b$ | $bL - l$ |

Each move has units of its own, which the token of another move holds at 0 by adding $-2$. One layer of hidden units
finds the state and the symbol under the head; it selects the logits as in `probabilistic-turing`.

**Precision.** After $t$ steps both numbers are multiples of $b^{-t-1}$: a step costs $\log_2 b$ bits. All weights
before the logits are powers of two or small multiples, so that no sum is rounded while $b^{T-1}\,(b + 2b^2 + 2(G-1)(b +
1)/w) \le 2^p$ in a format of $p$ significant bits. Longer runs than float64 carries so are refused.

For $Q$ states with rules, $G$ symbols of the tape and $M$ different moves of steps that do not halt:

| | formula |
| --- | --- |
| state | $2M(2G - 1) + Q$ |
| hidden units | $QG$ |
| steps | those of the machine; for two or three symbols, up to 24 or 23 in float64 |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.any_length_turing import FLOAT32_BITS
from vitrify.constructions.catalogue import BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.probabilistic_turing import case_names, facts, log_probabilities
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell
from vitrify.net.labels import Labels, SpaceLabel, UnitsLabel
from vitrify.net.positions import FLOAT64_BITS
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import OneHot, Reals
from vitrify.net.weights import Weights
from vitrify.spec.computation.probabilistic_turing import ProbabilisticTuringMachine
from vitrify.spec.computation.turing import MOVES
from vitrify.spec.ngrams.model import BEGIN

CLOSED = -2.0  # added to the units of other moves: what they would hold is at most 1
MAX_STATE = 1 << 12  # numbers; all of them are read by each other
RIGHT, LEFT = range(2)  # the stacks


class Code(NamedTuple):
    """The numbers of a code of stacks of `symbols`: base, and width of the steps that find the top."""

    symbols: int
    base: int
    width: float

    @classmethod
    def of(cls, symbols: int) -> Code:
        """Return the code with the least base.

        >>> Code.of(2), Code.of(3)
        (Code(symbols=2, base=4, width=0.125), Code(symbols=3, base=4, width=0.0625))
        """
        base = 1 << symbols.bit_length()
        inverse = -(-base * (base - 1) // (base - symbols))  # of the distance, rounded up
        return cls(symbols, base, 1.0 / (1 << (inverse - 1).bit_length()))

    def steps_within(self, bits: int) -> int:
        """Return the number of steps that a format of so many significant bits carries without rounding.

        >>> [Code.of(2).steps_within(bits) for bits in (53, 24, 11, 8)]
        [24, 9, 3, 1]
        """
        b = self.base
        once = b + 2 * b**2 + int(2 * (self.symbols - 1) * (b + 1) / self.width)
        steps = 0
        while b**steps * once <= 1 << bits:
            steps += 1
        return steps


def sizes(machine: ProbabilisticTuringMachine) -> DeclaredSizes:
    """Return all sizes, none of which depends on a length; the width is the state."""
    return DeclaredSizes.of_layers((0,), (len(machine.working) * len(machine.symbols),), state_size(machine))


def state_size(machine: ProbabilisticTuringMachine) -> int:
    """Return the number of dimensions of the state."""
    return 2 * len(moves_read(machine)) * (2 * len(machine.symbols) - 1) + len(machine.working)


def moves_read(machine: ProbabilisticTuringMachine) -> tuple[str, ...]:
    """Return the moves of steps after which the machine continues."""
    return tuple(m for m in MOVES if any(rule.move == m and rule.to not in machine.halt for rule in machine.rules))


@construction(
    "probabilistic-turing-rnn",
    "the distribution of the next step, by a simple recurrent net with two stacks as numbers",
    sizes,
    certified=("to T", "to T"),
)
def probabilistic_turing_recurrent(
    machine: ProbabilisticTuringMachine, *, max_length: MaxLength | None = None
) -> Weights[Recurrent]:
    """Return a simple recurrent net that generates the runs of a machine; by default as long as float64 carries."""
    code, logits = Code.of(len(machine.symbols)), log_probabilities(machine)
    longest, wanted = code.steps_within(FLOAT64_BITS), max_length or 1
    if wanted > longest:
        raise BuildRefused(
            f"float64 carries the stacks of {code.symbols} symbols for {longest} steps, not {wanted}: choose a "
            "shorter --max-length, or --construction probabilistic-turing"
        )
    if state_size(machine) > MAX_STATE:
        size = state_size(machine)
        raise BuildRefused(f"the state has {size:,} numbers, more than {MAX_STATE:,}: choose probabilistic-turing")
    state = _State(machine, code)
    cases = len(machine.working) * code.symbols
    net = Recurrent(
        inputs=(BEGIN, *machine.vocabulary),
        output=Output("lm", machine.written),
        max_length=max_length or longest,
        d_embed=len(machine.vocabulary) + 1,
        cell=Cell("relu", state.size),
        units=cases,
        d_out=cases,
        name=f"probabilistic Turing machine of {len(machine.working)} states, two stacks as numbers",
    )
    reads, bias = state.cases()
    arrays = {
        "embed.W_E": np.eye(net.d_embed),
        "blocks.0.rec.W_A": state.transition(),
        "blocks.0.rec.W_B": state.drives(),
        "blocks.0.mlp.W_in": reads,
        "blocks.0.mlp.b_in": bias,
        "blocks.0.mlp.W_out": np.eye(cases),
        "blocks.0.mlp.b_out": np.zeros(cases),
        "unembed.W_U": logits,
        "unembed.b_U": np.zeros(len(machine.written)),
    }
    about = {
        "construction": "probabilistic Turing machine, two stacks as numbers",
        **facts(machine),
        "base": code.base,
        "bits per step": code.base.bit_length() - 1,
        "longest in float64": longest,
        "longest in float32": code.steps_within(FLOAT32_BITS),
        "source": "in the spirit of Nowak et al. 2024, arXiv 2406.14197",
    }
    return Weights(net, arrays, state.labels(net), about)


class _State:
    """The state of the net: for each stack and move its number and two units for each step, then the machine's state.

    `number` and `top` are vectors [stack, state] with which the state is multiplied.
    """

    def __init__(self, machine: ProbabilisticTuringMachine, code: Code) -> None:
        self.machine, self.code, self.moves = machine, code, moves_read(machine)
        self.each = 2 * code.symbols - 1  # units of a stack for one move
        self.size = 2 * len(self.moves) * self.each + len(machine.working)
        self.number, self.top = np.zeros((2, self.size)), np.zeros((2, self.size))
        for stack in (RIGHT, LEFT):
            for move in range(len(self.moves)):
                at = self.start(stack, move)
                self.number[stack, at] = 1.0
                self.top[stack, at + 1 : at + self.each : 2] = 1.0 / code.width
                self.top[stack, at + 2 : at + self.each : 2] = -1.0 / code.width

    def start(self, stack: int, move: int) -> int:
        """Return the first unit of a stack for a move."""
        return (stack * len(self.moves) + move) * self.each

    def stacks_after(self, move: str) -> tuple[Floats, Floats, tuple[float, float]]:
        """Return the stacks after a move as maps of the state, and what the index of the written symbol adds."""
        (right, left), (top, top_left), b = self.number, self.top, self.code.base
        if move == "R":
            return b * right - top, left / b, (0.0, 1 / b)
        if move == "L":
            return (right - top / b + top_left) / b, b * left - top_left, (1 / b**2, 0.0)
        return right - top / b, left, (1 / b, 0.0)

    def units(self, stack: int, move: int) -> list[tuple[int, float]]:
        """Return the units of a stack for a move, with what they add to the number before it is cut at 0."""
        k, b = np.arange(1, self.code.symbols), self.code.base
        ramps = np.stack([self.code.width - k / b, -k / b], axis=1).ravel().tolist()
        return list(enumerate([0.0, *ramps], self.start(stack, move)))

    def transition(self) -> Floats:
        """Return the matrix [state, next state]."""
        matrix = np.zeros((self.size, self.size))
        for number, move in enumerate(self.moves):
            *stacks, _ = self.stacks_after(move)
            for stack, column in enumerate(stacks):
                for unit, _ in self.units(stack, number):
                    matrix[:, unit] = column
        return matrix

    def drives(self) -> Floats:
        """Return what tokens add to the next state [token, state]; BOS begins with empty stacks in the start state."""
        machine = self.machine
        matrix = np.zeros((len(machine.vocabulary) + 1, self.size))
        states = self.size - len(machine.working)
        matrix[1:, :states] = CLOSED
        matrix[0, states + machine.working.index(machine.start)] = 1.0
        for token, step in enumerate(machine.vocabulary, start=1):
            symbol, move, state, *_ = step.split(",")
            matrix[token, states + machine.working.index(state)] = 1.0
            *_, shares = self.stacks_after(move)
            for stack, share in enumerate(shares):
                for unit, offset in self.units(stack, self.moves.index(move)):
                    matrix[token, unit] = share * machine.symbols.index(symbol) + offset
        return matrix

    def cases(self) -> tuple[Floats, Floats]:
        """Return weights and biases of a unit for each state and symbol under the head."""
        symbols, working = self.code.symbols, len(self.machine.working)
        steps = np.zeros((self.size, symbols + 1))  # [top ≥ k], but for k = 0
        for move in range(len(self.moves)):
            at = self.start(RIGHT, move)
            for k in range(1, symbols):
                steps[[at + 2 * k - 1, at + 2 * k], k] = 1.0 / self.code.width, -1.0 / self.code.width
        reads = np.tile(steps[:, :-1] - steps[:, 1:], working)
        reads[self.size - working :] += np.repeat(np.eye(working), symbols, axis=1)
        return reads, np.tile(np.where(np.arange(symbols) == 0, 0.0, -1.0), working)

    def labels(self, net: Recurrent) -> Labels:
        """Return the names of all parts."""
        machine, code = self.machine, self.code
        spaces = [SpaceLabel("step", OneHot(net.inputs), tuple(range(net.d_embed)), 0, 0)]
        steps = [f"{name} {k}" for k in range(1, code.symbols) for name in ("before", "from")]
        for stack, name in ((RIGHT, "right of the head"), (LEFT, "left of the head")):
            for number, move in enumerate(self.moves):
                kind = Reals(("number", *steps), 0.0, 1.0)
                dims = tuple(range(self.start(stack, number), self.start(stack, number) + self.each))
                spaces.append(SpaceLabel(f"{name} after {move}", kind, dims, 1, 1))
        states = tuple(range(self.size - len(machine.working), self.size))
        spaces.append(SpaceLabel("state", OneHot(machine.working), states, 1, 1))
        names = case_names(machine)
        spaces.append(SpaceLabel("state and symbol", OneHot(names), tuple(range(len(names))), 2, 2))
        return Labels(
            tuple(spaces), (), (UnitsLabel("state and symbol", 0, 0, net.units, ("state and symbol",), names),)
        )
