r"""Any finite automaton becomes a transformer of $\lceil \log_2 T \rceil$ layers that gives the state at every letter.

In the spirit of Liu et al. (2023, arXiv 2210.10749), theorem 1. A letter is a map of the states; the state after a
word is the composition of its letters' maps, applied to the initial state. Position $t$ holds, before layer $l$, the
map of the letters $t - 2^l + 1 \dots t$ as a vector of whole numbers. Layer $l$ fetches the map of $2^l$ places back
(the identity before the first letter) and composes. After $\lceil \log_2 T \rceil$ layers every prefix of at most $T$
letters is covered.

| | formula |
| --- | --- |
| layers, heads | $\lceil \log_2 T \rceil$, one head each |
| units per layer | at most $2n(n-1) + 1$ to compose and $2n$ to erase, $n$ states |
| width | $2n + 2\lceil \log_2 T \rceil$: two maps, the position code and the BOS flag |

The last layer only follows the initial state; an automaton of one state needs no layer. Width grows with $T$ through
the position code alone, because the dimensions of a map are used again as soon as it has been composed. Units that no
word of $2^l$ letters could switch are left out of layer $l$.
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import int_compose
from vitrify.kit.heads import shift
from vitrify.kit.network import Builder, Network, Readout, Space
from vitrify.kit.positions import CodeName, position_code
from vitrify.net.architecture import Output
from vitrify.net.spaces import Integers
from vitrify.net.transformer import AttentionKind
from vitrify.spec.automaton import Automaton


def log_depth(
    automaton: Automaton,
    *,
    attention: AttentionKind = "softmax",
    max_length: int = 128,
    positions: CodeName = "dyadic",
) -> Network:
    """A transformer whose output after every letter is the automaton's state."""
    if max_length < 1:
        raise BuildRefused(f"--max-length must be at least 1, got {max_length}")
    states = len(automaton.states)
    layers = layers_for(max_length) if states > 1 else 0
    net = Builder(
        name=f"automaton of {states} states, log depth, {attention}",
        inputs=(begin_symbol(automaton), *automaton.alphabet),
        max_length=max_length,
        attention=attention,
    )
    maps = np.vstack([np.arange(states), automaton.table.T]).astype(float)
    kind = Integers(automaton.states, 0.0, states - 1.0)
    newest = net.embed("map 0", kind, maps)
    if layers:
        code = position_code(positions, max_length, [2**layer for layer in range(layers)])
        place = net.place("position", code.kind(), code.table())
    for layer in range(layers):
        last = layer == layers - 1
        starts = [automaton.initial] if last else range(states)
        values = [_within(automaton, start, 2**layer) for start in starts]
        only = ([automaton.initial], Integers((automaton.initial_state,), 0.0, kind.high)) if last else None
        older = shift(net, newest, 2**layer, code, place, name=f"older map {layer}", only=only)
        newest = int_compose(net, older, newest, name=f"map {layer + 1}", values=values)
    start = 0 if layers else automaton.initial
    return net.network(
        Output("recogniser", automaton.states, accepting=automaton.accepting_states),
        nearest_state(newest, start, states),
        {
            "construction": "log-depth automaton",
            "attention": attention,
            "positions": positions,
            "states": states,
            "letters": len(automaton.alphabet),
            "source": "in the spirit of Liu et al. 2023, arXiv 2210.10749",
        },
    )


def layers_for(max_length: int) -> int:
    """How many doublings cover a word: the least l with 2^l at least its length."""
    return (max_length - 1).bit_length()


def sizes(automaton: Automaton, max_length: int) -> dict[str, int]:
    """What the formulas promise for the dyadic position code, two states and two layers or more."""
    n, layers = len(automaton.states), layers_for(max_length)
    return {
        "layers": layers,
        "heads": layers,
        "d_model": 2 * n + 2 * layers,
        "most_units_per_layer": 2 * n * n + 1,
    }


def _within(automaton: Automaton, start: int, letters: int) -> list[int]:
    """The states that words of at most so many letters lead to."""
    found, edge = {start}, {start}
    for _ in range(letters):
        edge = {target for state in edge for target in automaton.transitions[state]} - found
        found |= edge
        if not edge:
            break
    return sorted(found)


def nearest_state(space: Space, coordinate: int, states: int) -> Readout:
    r"""The state whose number is nearest: $-(x-s)^2$ up to a term without $s$ is $2sx - s^2$, linear in $x$."""
    numbers = np.arange(float(states))
    matrix = np.zeros((space.size, states))
    matrix[coordinate] = 2 * numbers
    return Readout(((space, matrix),), -(numbers**2), {space: 0.25})


def begin_symbol(automaton: Automaton) -> str:
    """A name for the beginning of a word that is no letter."""
    name = "<s>"
    while name in automaton.alphabet:
        name = f"<{name}>"
    return name


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Automaton)
    return log_depth(
        spec,
        attention=settings.attention,
        max_length=settings.max_length or 128,
        positions=settings.positions or "dyadic",
    )


CONSTRUCTIONS = (
    Construction(
        "log-depth",
        Automaton,
        "any automaton in ⌈log₂ T⌉ layers",
        _make,
        default=True,
        choices=("attention", "max_length", "positions"),
        certified="proved",
    ),
)
