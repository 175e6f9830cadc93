r"""Any finite automaton becomes a transformer of $\lceil \log_2 T \rceil$ layers that gives the state at every letter.

In the spirit of Liu et al. (2023, arXiv 2210.10749), theorem 1. A letter is a map of the states; the state after a
word is the composition of its letters' maps, applied to the initial state. Position $t$ holds, before layer $l$, the
map of the letters $t - 2^l + 1 \dots t$ as a vector of whole numbers. Layer $l$ fetches the map of $2^l$ places back
(the identity before the first letter) and composes. After $\lceil \log_2 T \rceil$ layers every prefix of at most $T$
letters is covered.

| | formula |
| --- | --- |
| layers, heads | $\lceil \log_2 T \rceil$, one head each |
| units per layer, $n$ states | at most $2n(n-1) + 1$ to compose, $2n$ to erase the two old maps |
| width | $2n + 2\lceil \log_2 T \rceil$: two maps, the position code and the BOS flag |

The last layer only follows the initial state; an automaton of one state needs no layer. Width grows with $T$ through
the position code alone, because the dimensions of a map are used again as soon as it has been composed. Units that no
word of $2^l$ letters could switch are left out of layer $l$.
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, Positions, construction
from vitrify.kit.gadgets.compose import int_compose
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Builder, Integers, Network, Output, Readout, Space
from vitrify.kit.positions import CodeName, dimensions, position_code
from vitrify.spec.automata.automaton import Automaton


def layers_for(max_length: int) -> int:
    """Return how many doublings cover a word: the least l with 2^l at least its length."""
    return (max_length - 1).bit_length()


def sizes(automaton: Automaton, *, max_length: int, positions: CodeName) -> DeclaredSizes:
    """Return depth and width exactly, and a bound of the units."""
    n = len(automaton.states)
    layers = layers_for(max_length) if n > 1 else 0
    maps = n + min(layers, 1) + (layers > 1) * (n - 1)  # the last layer reads the older map at one state only
    code = dimensions(positions, max_length, [2**layer for layer in range(layers)]) + 1 if layers else 0
    return DeclaredSizes(
        exact={"layers": layers, "heads": layers, "d_model": maps + code},
        at_most={"units": layers * (2 * n * n + 1), "units_per_layer": (2 * n * n + 1,) * layers},
    )


@construction("log-depth", "any automaton in ⌈log₂ T⌉ layers", sizes, default=True, certified=("to T", "to T"))
def log_depth(
    automaton: Automaton,
    *,
    attention: Attention = "softmax",
    max_length: MaxLength = 128,
    positions: Positions = "dyadic",
) -> Network:
    """Return a transformer whose output after every letter is the automaton's state."""
    states = len(automaton.states)
    layers = layers_for(max_length) if states > 1 else 0
    name = f"automaton of {states} states, log depth, {attention}"
    net = Builder(name, (begin_symbol(automaton), *automaton.alphabet), max_length, attention)
    maps = np.vstack([np.arange(states), automaton.table.T]).astype(float)
    kind = Integers(automaton.states, 0.0, states - 1.0)
    newest = net.embed("map 0", kind, maps)
    if layers:
        code = position_code(positions, max_length, [2**layer for layer in range(layers)])
        position = net.embed_position("position", code.kind(), code.table())
    for layer in range(layers):
        last = layer == layers - 1
        starts = [automaton.initial] if last else range(states)
        values = [reachable(automaton, start, 2**layer) for start in starts]
        only = ([automaton.initial], Integers((automaton.initial_state,), 0.0, kind.high)) if last else None
        older = shift(net, newest, 2**layer, code, position, name=f"older map {layer}", only=only)
        newest = int_compose(net, older, newest, name=f"map {layer + 1}", values=values)
    start = 0 if layers else automaton.initial
    output = Output("recognizer", automaton.states, accepting=automaton.accepting_states)
    facts = {"positions": positions, "states": states, "letters": len(automaton.alphabet)}
    source = "in the spirit of Liu et al. 2023, arXiv 2210.10749"
    return net.network(output, nearest_state(newest, start, states), "log-depth automaton", facts, source=source)


def reachable(automaton: Automaton, start: int, letters: int) -> list[int]:
    """Return the states that words of at most `letters` letters lead to."""
    reached, edge = {start}, {start}
    for _ in range(letters):
        edge = {target for state in edge for target in automaton.transitions[state]} - reached
        reached |= edge
        if not edge:
            break
    return sorted(reached)


def nearest_state(space: Space, coordinate: int, states: int) -> Readout:
    r"""Return the readout of the state $s$ nearest to $x$: $-(x-s)^2$ is, up to a term without $s$, $2sx - s^2$."""
    numbers = np.arange(float(states))
    matrix = np.zeros((space.size, states))
    matrix[coordinate] = 2 * numbers
    return Readout(((space, matrix),), -(numbers**2), {space: 0.25})  # |x - s| may be 0.25: a tie is at 0.5


def begin_symbol(automaton: Automaton) -> str:
    """Return a name for the BOS token that is no letter."""
    name = "<s>"
    while name in automaton.alphabet:
        name = f"<{name}>"
    return name
