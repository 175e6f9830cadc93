r"""Turing machines run step by step: two attention layers write one step of the machine after the other.

In the spirit of Pérez et al. (2021) and Merrill and Sabharwal (2024, arXiv 2310.07923); the weights are our own
derivation. The sequence is the input, then the steps, each a word (written symbol, move, next state). Before each step

- layer 1 sums the moves so far, which is the cell $c$ where the head stands. A second head gives the cell that a symbol
  went to: a step wrote where the head stood before it moved; the letter at position $t$ of the input counts as
  written to the cell $t - 1$. An MLP writes both cells as codes of bits.
- Layer 2 finds the last position that wrote to the cell $c$, and copies the symbol; if there is none, it is BOS, whose
  symbol is the blank. A table of states and symbols writes the parts of the next step.

A step that halts is not read again, so decoding ends there.

For $T$ positions, $Q'$ states with rules, $Q$ to which some rule goes, $G$ symbols, $M$ different moves, and $B =
\lceil\log_2(2T+1)\rceil$ bits, at least 2:

| | formula |
| --- | --- |
| layers, heads | 2; 2 and 1 |
| units | $8T + 1$, then $Q'G$ |
| width | $Q + Q' + 3G + M + 2B + 7$, one less under hard attention (which counts behind $T$ pads) |
| steps | those of the machine |
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.kit.gadgets.steps import int_lookup, steps
from vitrify.kit.gadgets.table import table
from vitrify.kit.heads.average import count
from vitrify.kit.heads.match import recent_match
from vitrify.kit.heads.select import copy_unless
from vitrify.kit.network import Affine, AttentionKind, Builder, Network, Output, Readout, Space
from vitrify.net.spaces import Bits, Flag, Integers, MultiHot, OneHot
from vitrify.spec.computation.turing import MOVES, OneTapeMachine, TuringMachine
from vitrify.spec.ngrams.model import BEGIN


class Tokens(NamedTuple):
    """The spaces a token embeds: a step's next state, symbol and move; a letter has the start state and no move."""

    state: Space
    symbol: Space
    move: Space


def sizes(machine: TuringMachine, *, attention: AttentionKind, max_length: int | None) -> DeclaredSizes:
    """Return all sizes: codes of the 2T + 1 cells, a table of states and symbols."""
    length = reading_length(machine, max_length)
    states, working, symbols = len(next_states(machine)), len(machine.working), len(machine.symbols)
    bits = max(2, (2 * length).bit_length())
    width = states + working + 3 * symbols + len(moves_of(machine)) + 2 * bits + (6 if attention == "hard" else 7)
    return DeclaredSizes.of_layers((2, 1), (8 * length + 1, working * symbols), width)


@construction(
    "turing",
    "the next step of the machine, in two attention layers",
    sizes,
    default=True,
    certified=("to T", "to T"),
)
def turing(machine: TuringMachine, *, attention: Attention = "softmax", max_length: MaxLength | None = None) -> Network:
    """Return a transformer of two attention layers whose chain of thought is the steps of a machine."""
    length = reading_length(machine, max_length)
    name = f"Turing machine of {len(machine.working)} states, step by step, {attention}"
    net = Builder(
        name, (BEGIN, *machine.vocabulary), length, attention, pads=length if attention == "hard" else 1, void=True
    )
    tokens, step = embedded(net, machine), marked(net, machine, "step")
    reach = float(length)
    cell = count(net, Affine.copy(tokens.move), ("c",), reach, low=-reach, abs_total=reach, name="cell")
    letter = copy_unless(net, step, net.index, name="place in the input")
    construction, source = "Turing machine, step by step", "Merrill and Sabharwal 2024, arXiv 2310.07923"
    return stepping(net, machine, tokens, step, cell, letter, construction, source)


def embedded(net: Builder, machine: OneTapeMachine) -> Tokens:
    """Embed the tokens of a machine; return their spaces."""
    taken = [step.split(",")[:3] for step in machine.vocabulary[len(machine.alphabet) :]]
    read = [(symbol, "", machine.start) for symbol in (machine.blank, *machine.alphabet)]  # BOS, and the letters
    read += [(symbol, move, state) for symbol, move, state in taken]
    symbols = OneHot(machine.symbols)
    state = net.embed("state", OneHot(machine.working), _codes(machine.working, [q for _, _, q in read]))
    symbol = net.embed("symbol", symbols, _codes(machine.symbols, [s for s, _, _ in read]))
    moves = np.array([[MOVES.get(move, 0.0)] for _, move, _ in read])
    move = net.embed("move", Integers(("m",), -1.0, 1.0), moves)
    return Tokens(state, symbol, move)


def marked(net: Builder, machine: TuringMachine, flag: Literal["step", "letter"]) -> Space:
    """Embed the flag of steps, or of letters; return its space."""
    token = np.arange(len(net.inputs))
    steps = token > len(machine.alphabet)
    return net.embed(flag, Flag(), (steps if flag == "step" else (token > 0) & ~steps)[:, None].astype(float))


def stepping(
    net: Builder,
    machine: TuringMachine,
    tokens: Tokens,
    step: Space,
    cell: Space,
    letter: Space,
    construction: str,
    source: str,
) -> Network:
    """Return the net that writes the next step.

    `step` marks steps; `cell` is the cell of the machine's head; `letter` the position of a letter in the input, 0 at
    steps.
    """
    length = net.max_length
    state, symbol, move = tokens
    cells = Bits(tuple(map(str, range(-length, length + 1))))
    here = int_lookup(net, cell, lambda c: cells.codes[c + length], Space("code of the cell", cells))
    went = Affine.of({cell: [[1.0]], move: [[-1.0]], letter: [[1.0]], step: [[1.0]], net.bos: [[1.0]]}, [-1.0])
    written = Space("code of the cell written", Bits(cells.values, void=True))
    steps(net, went, np.arange(-length, length + 1.0), [(written, cells.codes)], name=f"whole numbers: {written.name}")
    symbol_read = recent_match(net, here, written, symbol, name="symbol read")

    return next_step(net, machine, state, symbol_read, construction, source)


def next_step(
    net: Builder,
    machine: TuringMachine,
    state: Space,
    symbol_read: Space,
    construction: str,
    source: str,
    about: Mapping[str, object] = MappingProxyType({}),
) -> Network:
    """Return the net that writes the step of the rule for a state and a symbol; `about` are further facts of it."""
    parts = MultiHot((*machine.symbols, *moves_of(machine), *next_states(machine)))
    rows = [(rule, *_parts(machine, rule.step)) for rule in machine.rules]
    patterns = np.array([(machine.working.index(r.state), machine.symbols.index(r.read)) for r, *_ in rows])
    outputs = np.array([sum(np.eye(parts.size)[part] for part in some) for _, *some in rows])
    names = [f"{rule.state} reads {rule.read}: {rule.write} {rule.move} {rule.to}" for rule, *_ in rows]
    following = table(net, [state, symbol_read], patterns, Space("next step", parts), outputs, rows=names)
    logits = np.zeros((parts.size, len(machine.written)))
    for column, text in enumerate(machine.written):
        logits[list(_parts(machine, text)), column] = 1.0
    output = Output("class", machine.written)
    readout = Readout(((following, logits),), np.zeros(len(machine.written)), {following: 0.125})
    facts = {"states": len(machine.working), "symbols": len(machine.symbols), **about}
    return net.network(output, readout, construction, facts, source=f"in the spirit of {source}", reuse=False)


def reading_length(machine: TuringMachine, max_length: int | None) -> int:
    """Return the number of symbols that are read: `max_length`, by default the input and all steps but the last."""
    if max_length is not None and max_length < machine.length:
        raise BuildRefused(f"--max-length must be at least the length of the inputs, {machine.length}, is {max_length}")
    return max_length or max(1, machine.length + machine.limit - 1)


def _codes(values: tuple[str, ...], held: list[str]) -> Floats:
    return np.eye(len(values))[[values.index(value) for value in held]]


def moves_of(machine: OneTapeMachine) -> tuple[str, ...]:
    """Return the moves of some rule."""
    return tuple(move for move in MOVES if any(rule.move == move for rule in machine.rules))


def next_states(machine: TuringMachine) -> tuple[str, ...]:
    """Return the states that some rule goes to."""
    return tuple(dict.fromkeys(rule.to for rule in machine.rules))


def _parts(machine: TuringMachine, step: str) -> tuple[int, int, int]:
    """Return the indices of the parts of a step among those of all steps."""
    symbol, move, state = step.split(",")
    symbols, moves, states = machine.symbols, moves_of(machine), next_states(machine)
    first = len(symbols) + len(moves)
    return symbols.index(symbol), len(symbols) + moves.index(move), first + states.index(state)
