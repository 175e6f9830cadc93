r"""Turing machines run step by step on a recurrence of five whole numbers and one attention head, at any length.

In the spirit of Wen, Dang & Lyu (2024, arXiv 2402.18510), as `turing-hybrid`; the weights are our own derivation. No
position and no length enters. The sequence is the input, then the steps, each a word (written symbol, move, next
state). Before each step

- the recurrent layer carries $(H, H^2, p, p^2, 1)$, where $H$ is the cell of the machine's head and $p - 1$ the cell
  that was written to last. The token selects a matrix: a step with the move $m$ gives $H + m$, $H^2 + 2mH + m^2$, and
  $H + 1$, $H^2 + 2H + 1$ in the place of $p$ and $p^2$; a letter of the input gives $p + 1$ and $p^2 + 2p + 1$.
- The one attention head finds the last position whose $p - 1$ is $H$, and copies the symbol; if there is none, it is
  BOS, whose symbol is the blank. A table of states and symbols writes the parts of the next step.

All numbers are whole and all sums exact, at $T$ symbols up to $4T^2$: that is less than $2^{52}$ for the 23,726,565
symbols that the net reads in float64.

For $Q'$ states with rules, $Q$ to which some rule goes, $G$ symbols and $M$ different moves:

| | formula |
| --- | --- |
| layers, heads | 2, the first recurrent; 0 and 1 |
| state | 5 numbers |
| units | 0, $Q'G$ |
| width | $Q + Q' + 3G + M + 10$ |
| steps | those of the machine |
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.any_length_turing import carried, tested_length
from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, construction
from vitrify.constructions.turing import embedded, marked, moves_of, next_states, next_step
from vitrify.kit.heads.whole import ROUNDING, last_whole_match
from vitrify.kit.network import Affine, Builder, Flag, Integers, Network, Space
from vitrify.kit.recurrence import Recur
from vitrify.spec.computation.turing import TuringMachine
from vitrify.spec.ngrams.model import BEGIN

STATE = 5
CELL, CELL_SQUARED, PLACE, PLACE_SQUARED, ONE = range(STATE)


def sizes(machine: TuringMachine) -> DeclaredSizes:
    """Return all sizes, none of which depends on a length."""
    states, working, symbols = len(next_states(machine)), len(machine.working), len(machine.symbols)
    width = states + working + 3 * symbols + len(moves_of(machine)) + 10
    both = DeclaredSizes.of_layers((0, 1), (0, working * symbols), width)
    return DeclaredSizes({**both.exact, "attention_layers": 1})


@construction(
    "turing-hybrid-any-length",
    "the next step of the machine, by a recurrence of five numbers and one head, the same for all lengths",
    sizes,
    certified=("to T", "to T"),
    unproved="margins are not worked out",
    attention="hard",
)
def any_length_hybrid_turing(
    machine: TuringMachine, *, attention: Attention, max_length: MaxLength | None = None
) -> Network:
    """Return a recurrent layer and one attention layer that run a machine on every input, for any number of steps."""
    name = f"Turing machine of {len(machine.working)} states, recurrence and one head, at any length"
    net = Builder(
        name, (BEGIN, *machine.vocabulary), tested_length(machine.length, max_length), attention, rounding=ROUNDING
    )
    tokens, letter = embedded(net, machine), marked(net, machine, "letter")
    steps = np.arange(len(net.inputs))[:, None] > len(machine.alphabet)
    step = net.embed("step", Flag(), steps.astype(float))
    moves = net.embed("moves", Flag(), np.array([[move != ""] for move in _moves(net)], dtype=float))
    counts = net.add(_counts(net, tokens.move, moves, letter, step))
    place = Affine.of({counts: _matrix(2, (PLACE, 0, 1.0), (PLACE, 1, -2.0), (PLACE_SQUARED, 1, 1.0))}, [-1.0, 1.0])
    written = net.at_tokens(place)
    cell = Affine.of({counts: _matrix(2, (CELL, 0, 1.0), (CELL_SQUARED, 1, 1.0))})
    symbol_read = last_whole_match(net, cell, written, tokens.symbol, name="symbol read")
    construction, source = "Turing machine, recurrence and one head, at any length", "Wen, Dang and Lyu 2024"
    return next_step(net, machine, tokens.state, symbol_read, construction, f"{source}, arXiv 2402.18510", carried())


def _moves(net: Builder) -> list[str]:
    """Return the move of every token, empty where the head stays."""
    parts = [token.split(",") for token in net.inputs]
    return [each[1].replace("S", "") if len(each) == 3 else "" for each in parts]


def _matrix(columns: int, *entries: tuple[int, int, float]) -> Floats:
    """Return a matrix with a row for each number of the state, from its entries."""
    matrix = np.zeros((STATE, columns))
    for row, column, value in entries:
        matrix[row, column] = value
    return matrix


def _transition(*entries: tuple[int, int, float]) -> Floats:
    """Return a matrix of the state, its rows one after the other."""
    return _matrix(STATE, *entries).reshape(1, -1)


def _counts(net: Builder, move: Space, moves: Space, letter: Space, step: Space) -> Recur:
    """Return the recurrence of both cells and their squares."""
    longest = float(net.longest)
    kind = Integers(("H", "H²", "p", "p²", "1"), -longest, (longest + 1) ** 2)
    stays = [(CELL, CELL, 1.0), (CELL_SQUARED, CELL_SQUARED, 1.0), (ONE, ONE, 1.0)]
    onward = [(PLACE, PLACE, 1.0), (PLACE_SQUARED, PLACE_SQUARED, 1.0), (PLACE, PLACE_SQUARED, 2.0)]
    here = [(CELL, PLACE, 1.0), (CELL_SQUARED, PLACE_SQUARED, 1.0), (CELL, PLACE_SQUARED, 2.0)]
    next_to = [(ONE, PLACE, 1.0), (ONE, PLACE_SQUARED, 1.0)]
    scale = {
        letter: _transition(*stays, *onward, *next_to),
        step: _transition(*stays, *here, *next_to),
        move: _transition((ONE, CELL, 1.0), (CELL, CELL_SQUARED, 2.0)),
        moves: _transition((ONE, CELL_SQUARED, 1.0)),
    }
    drives = Affine.of({net.bos: np.eye(STATE)[[ONE]]})
    return Recur("cells", Affine.of(scale), drives, Space("cells", kind), error_gain=0.0, full=True)
