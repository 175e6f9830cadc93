r"""Turing machines run step by step on a recurrence of two numbers and one attention layer.

In the spirit of Wen, Dang & Lyu (2024, arXiv 2402.18510), who show that recurrent nets with one attention layer do with
a chain of thought what recurrent nets alone can't; the weights are our own derivation. It is the net of `turing` with a
recurrent layer in the place of its first attention layer. The sequence is the input, then the steps, each a word
(written symbol, move, next state). Before each step

- the recurrent layer keeps two numbers: $c \leftarrow c + \text{move}$, the cell where the head stands, and
  $p \leftarrow p + 1$ at a letter of the input, its place there, which a step sets back to 0. An MLP writes the cell,
  and the one that was written to last, as codes of bits.
- The one attention head finds the last position that wrote to the cell $c$, and copies the symbol; if there is none, it
  is BOS, whose symbol is the blank. A table of states and symbols writes the parts of the next step.

The recurrence alone could not do it: its state would have to hold the tape. The head alone could not either: no
position knows where the head of the machine stands without adding up all moves.

For $T$ positions, $Q'$ states with rules, $Q$ to which some rule goes, $G$ symbols, $M$ different moves, and $B =
\lceil\log_2(2T+1)\rceil$ bits, at least 2:

| | formula |
| --- | --- |
| layers, heads | 2, the first recurrent; 0 and 1 |
| state | 2 numbers, whole and at most $T$ in size |
| units | $8T + 1$, then $Q'G$ |
| width | $Q + Q' + 3G + M + 2B + 7$ |
| steps | those of the machine |
"""

from __future__ import annotations

from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, construction
from vitrify.constructions.turing import embedded, marked, reading_length, stepping
from vitrify.constructions.turing import sizes as sizes_of_two_layers
from vitrify.kit.network import Affine, Builder, Network
from vitrify.kit.recurrence import running_sum
from vitrify.spec.computation.turing import TuringMachine
from vitrify.spec.ngrams.model import BEGIN


def sizes(machine: TuringMachine, *, max_length: int | None) -> DeclaredSizes:
    """Return all sizes: those of `turing` under softmax attention, with a recurrence instead of the first two heads."""
    two = sizes_of_two_layers(machine, attention="softmax", max_length=max_length)
    return DeclaredSizes({**two.exact, "heads_per_layer": (0, 1), "heads": 1, "attention_layers": 1})


@construction(
    "turing-hybrid",
    "the next step of the machine, by a recurrence and one attention layer",
    sizes,
    certified=("to T", "to T"),
)
def hybrid_turing(
    machine: TuringMachine, *, attention: Attention = "softmax", max_length: MaxLength | None = None
) -> Network:
    """Return a recurrent layer and one attention layer whose chain of thought is the steps of a machine."""
    length = reading_length(machine, max_length)
    name = f"Turing machine of {len(machine.working)} states, recurrence and one head, {attention}"
    net = Builder(name, (BEGIN, *machine.vocabulary), length, attention, void=True)
    tokens = embedded(net, machine)
    step, letter = marked(net, machine, "step"), marked(net, machine, "letter")
    always = Affine.of({letter: [[1.0]], step: [[1.0]]})
    reach = float(length)
    cell = running_sum(net, Affine.copy(tokens.move), ("c",), reach, carry=always, low=-reach, name="cell")
    place = running_sum(net, Affine.copy(letter), ("p",), reach, carry=Affine.copy(letter), name="place in the input")
    construction, source = "Turing machine, recurrence and one head", "Wen, Dang and Lyu 2024, arXiv 2402.18510"
    return stepping(net, machine, tokens, step, cell, place, construction, source)
