r"""Turing machines run step by step by one set of weights: three attention layers that know no length.

In the spirit of Pérez et al. (2021) and Merrill and Sabharwal (2024, arXiv 2310.07923); the weights are our own
derivation. The tokens are those of `turing`: the input, then the steps, each a word (written symbol, move, next state).
Positions are given by a formula, $(t, t^2)$. Before each step

- layer 1 takes means of the moves and of the flag of BOS, over the positions up to here, $(H/(t+1), 1/(t+1))$, and
  over those before, $(W/t, 1/t)$. $H$ is the cell where the head of the machine stands, $W$ the one to which a step
  wrote.
- Layer 2 finds the whole numbers $H$ and $W$ from these fractions (`kit/heads/whole.py`). For a letter of the input the
  query is as if the fraction were 1: its $W$ is the last position before it, which is its cell.
- Layer 3 finds the last position whose $W$ is $H$, and copies the symbol; if there is none, it is BOS, whose symbol is
  the blank. A table of states and symbols writes the parts of the next step.

A step that halts is not read again, so decoding ends there. Nothing depends on the number of steps or on the length of
the input. In exact arithmetic the weights are right for all of them; in a format of $p$ significant bits for $T \le
2^{(p-4)/2} - 1$ symbols, input and steps together: 23,726,565 in float64, 1,023 in float32.

For $Q'$ states with rules, $Q$ to which some rule goes, $G$ symbols and $M$ different moves:

| | formula |
| --- | --- |
| layers, heads | 3; 2, 4 and 1 |
| units | 0, 0, $Q'G$ |
| width | $Q + Q' + 3G + M + 13$ |
| steps | those of the machine |
"""

from __future__ import annotations

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.turing import Tokens, embedded, marked, moves_of, next_states, next_step
from vitrify.kit.heads.average import mean
from vitrify.kit.heads.whole import ROUNDING, last_whole_match, longest_selection, whole_from_mean
from vitrify.kit.network import Affine, Builder, Network, Reals, Space
from vitrify.net.positions import FLOAT64_BITS
from vitrify.spec.computation.turing import TuringMachine
from vitrify.spec.ngrams.model import BEGIN

FLOAT32_BITS = 24
TESTED_STEPS = 128


def sizes(machine: TuringMachine) -> DeclaredSizes:
    """Return all sizes, none of which depends on a length."""
    states, working, symbols = len(next_states(machine)), len(machine.working), len(machine.symbols)
    width = states + working + 3 * symbols + len(moves_of(machine)) + 13
    return DeclaredSizes.of_layers((2, 4, 1), (0, 0, working * symbols), width)


@construction(
    "turing-any-length",
    "the next step of the machine, by one set of weights for all inputs and running times",
    sizes,
    certified=("to T", "to T"),
    unproved="numbers that are known only within bounds",
    attention="hard",
)
def any_length_turing(machine: TuringMachine, *, attention: Attention, max_length: MaxLength | None = None) -> Network:
    """Return a transformer whose weights run a machine on every input, for any number of steps.

    `max_length` is the length to which it is tested. It reads longer sequences, its weights are the same for all, and
    nobody need know whether the machine halts.
    """
    name = f"Turing machine of {len(machine.working)} states, step by step, at any length"
    net = Builder(
        name, (BEGIN, *machine.vocabulary), tested_length(machine.length, max_length), attention, rounding=ROUNDING
    )
    tokens, letter = embedded(net, machine), marked(net, machine, "letter")
    symbol_read = last_written(net, tokens, letter)
    construction, source = "Turing machine at any length", "Merrill and Sabharwal 2024, arXiv 2310.07923"
    return next_step(net, machine, tokens.state, symbol_read, construction, source, carried())


def last_written(net: Builder, tokens: Tokens, letter: Space | None = None) -> Space:
    """Return the symbol under the head of a machine, by three layers of heads; `letter` marks letters of its input."""
    moved = Affine.of({tokens.move: [[1.0, 0.0]], net.bos: [[0.0, 1.0]]})
    here = mean(net, moved, name="share of the cell", kind=Reals(("H/n", "1/n"), -1.0, 1.0))
    before = mean(net, moved, name="share of the cell written", kind=Reals(("W/n", "1/n"), -1.0, 1.0), mask="strict")
    cell = whole_from_mean(net, here, name="cell")
    written = whole_from_mean(net, before, ahead=letter, mask="strict", name="cell written")
    return last_whole_match(net, Affine.copy(cell), Affine.copy(written), tokens.symbol, name="symbol read")


def tested_length(longest_input: int, max_length: int | None) -> int:
    """Return the length to which a network is tested: `max_length`, by default that of the inputs and some steps."""
    tested, longest = max_length or longest_input + TESTED_STEPS, longest_selection(FLOAT64_BITS)
    if tested < longest_input:
        raise BuildRefused(f"--max-length must be at least the length of the inputs, {longest_input}, is {tested}")
    if tested > longest:
        raise BuildRefused(
            f"float64 carries this network up to --max-length {longest}, not {tested}: choose a shorter one"
        )
    return tested


def carried() -> dict[str, object]:
    """Return the longest sequences that formats carry."""
    return {
        f"longest in float{width}": longest_selection(bits) for width, bits in ((64, FLOAT64_BITS), (32, FLOAT32_BITS))
    }
