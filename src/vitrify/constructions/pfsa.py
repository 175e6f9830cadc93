r"""Probabilistic automata, nondeterministic ones too, run as bigram models that write their states down.

In the spirit of Nowak et al. (2024, arXiv 2406.14197); the weights are our own derivation. A transformer reads and
writes letters together with the states that they lead to. The next such pair depends on the last one only, so this is
the n-gram construction for $n = 2$: one layer, whose one head sees its own position only. The probability that the
letters of a string are written, whatever the states beside them, is the automaton's.

| for $P$ pairs of a letter and a state that it may lead to | formula |
| --- | --- |
| layers, heads | 1; 1 |
| units | $P + 1$, one for each pair and one for the beginning |
| width | $3(P + 1)$; beyond 64 tokens $2\lceil\log_2(P + 1)\rceil + P + 1$ |
| steps | one for each letter, and one for the end |

`states-in-turn` writes states, `/q`, and letters as tokens of their own, one after the other. A letter depends on the
state before it, and a state on the letter and the state before that: this is the n-gram construction for $n = 3$, one
layer of two heads, one of which attends to the previous position.

| for $S$ states, $L$ letters and $P$ pairs of a state and a letter that it may write | formula |
| --- | --- |
| layers, heads | 1; 2 |
| units | $S + P + 1$, one for each context, and one for the beginning |
| width | three codes of a token, the logits of $S + L + 1$ tokens, and the code of positions |
| steps | two for each letter, and two more |
"""

from __future__ import annotations

from dataclasses import replace

from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, Positions, construction
from vitrify.constructions.ngram import code_size, ngram, sizes_of_heads
from vitrify.kit.network import Network
from vitrify.kit.positions import CodeName
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton


def sizes(automaton: ProbabilisticAutomaton) -> DeclaredSizes:
    """Return all sizes; the width holds a token's code twice, and the logits."""
    tokens = len(automaton.tokens) + 1  # the pairs, and the beginning or the end
    return DeclaredSizes({"layers": 1, "heads": 1, "units": tokens, "d_model": 2 * code_size(tokens) + tokens})


@construction(
    "states-aloud",
    "a bigram model over letters with the states they lead to",
    sizes,
    default=True,
    certified=("to T", "every length"),
)
def pfsa(
    automaton: ProbabilisticAutomaton, *, attention: Attention = "softmax", max_length: MaxLength = 128
) -> Network:
    """Return a transformer that generates the strings of an automaton, with the states beside the letters."""
    return _described(automaton, attention, ngram(automaton.bigram, attention=attention, max_length=max_length))


def sizes_in_turn(automaton: ProbabilisticAutomaton, *, max_length: int, positions: CodeName) -> DeclaredSizes:
    """Return all sizes, those of the trigram model; of a bigram model if no letter has a probability."""
    return sizes_of_heads(automaton.trigram, max_length=max_length, positions=positions)


@construction(
    "states-in-turn",
    "a trigram model over states and letters in turn",
    sizes_in_turn,
    certified=("to T", "every length"),
)
def states_in_turn(
    automaton: ProbabilisticAutomaton,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength = 128,
    positions: Positions = "dyadic",
) -> Network:
    """Return a transformer that generates the strings of an automaton, with the state before each letter and last."""
    network = ngram(automaton.trigram, attention=attention, max_length=max_length, positions=positions)
    return _described(automaton, attention, network)


def _described(automaton: ProbabilisticAutomaton, attention: Attention, network: Network) -> Network:
    """Return a network under the name of the automaton that it was built from."""
    about = dict(network.about) | {
        "construction": "probabilistic automaton with a chain of thought",
        "states": len(automaton.states),
        "source": "in the spirit of Nowak et al. 2024, arXiv 2406.14197",
    }
    name = f"probabilistic automaton of {len(automaton.states)} states, {attention}"
    return replace(network, name=name, about=about)
