r"""Any finite automaton runs on one layer, applied $\lceil\log_2 T\rceil$ times, at a temperature without $T$.

In the spirit of Merrill and Sabharwal (2025, arXiv 2503.03961); the weights are our own derivation. As in `log_depth`,
position $t$ holds a map of the states: before round $r$, that of the letters $t - 2^r + 1 \dots t$. All rounds have the
same weights, so the distance is no weight but a number $s$ in the residual stream, 1 at first. In each round

- a head attends to the position $p = t - s$. Position $j$ has the key $(j, j^2)$, BOS is position 0. The query $(2p,
  -1)$ scores $2pj - j^2 = p^2 - (j - p)^2$: the key $\delta$ away is $\delta^2$ behind. If $p \le 0$, BOS wins.
- an MLP composes the map that stands there with the position's own, and doubles $s$.

Under softmax at the inverse temperature $\beta$ all other keys together get at most $2 \sum_{\delta \ge 1} e^{-\beta
\delta^2} < 2 e^{-\beta} / (1 - e^{-3\beta})$ of the weight, however many they are. Maps hold numbers below $n = |Q|$,
so $\beta \ge \ln(16(n-1))$ keeps the error within $1/7$, and composition removes errors below $1/4$.

| | formula |
| --- | --- |
| layers stored, heads | 1, 1 |
| rounds | $\lceil\log_2 T\rceil$, at least 1 |
| units | at most $2n^2 + 3$: $2n(n-1) + 1$ to compose, 1 to double $s$, $2n + 1$ to erase |
| width | $2n + 3$: two maps, $t$, $t^2$ and $s$ |

No weight depends on $T$: a longer table of positions $(t, t^2)$ and more rounds are all that longer words need.
Rounding stays below the gap as long as $T \le 2^{(b-5)/2}$ for $b$ bits of mantissa: 724 in float32, $2^{24}$ in
float64.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import numpy as np

from vitrify.constructions.catalogue import Attention, DeclaredSizes, MaxLength, construction
from vitrify.constructions.log_depth import begin_symbol, layers_for, nearest_state, reachable
from vitrify.kit.gadgets.compose import int_compose
from vitrify.kit.margins import round_up
from vitrify.kit.network import Affine, Builder, Integers, Network, Output, Space
from vitrify.spec.automata.automaton import Automaton


def sizes(automaton: Automaton) -> DeclaredSizes:
    """Return all sizes, none of which depends on the length."""
    n = len(automaton.states)
    return DeclaredSizes(exact={"layers": 1, "heads": 1, "d_model": 2 * n + 3}, at_most={"units": 2 * n * n + 3})


@construction("looped", "any automaton by one layer in ⌈log₂ T⌉ rounds", sizes, certified=("to T", "to T"))
def looped(automaton: Automaton, *, attention: Attention = "softmax", max_length: MaxLength = 128) -> Network:
    """Return a transformer of one layer, run in a loop, whose output after every letter is the automaton's state."""
    states, loops = len(automaton.states), rounds(max_length)
    name = f"automaton of {states} states, one layer in a loop, {attention}"
    net = Builder(name, (begin_symbol(automaton), *automaton.alphabet), max_length, attention)
    kind = Integers(automaton.states, 0.0, states - 1.0)
    own = net.embed("map", kind, np.vstack([np.arange(states), automaton.table.T]).astype(float))
    far = Integers(("s",), 0.0, 2.0**loops)
    distance = net.embed("distance", far, np.ones((len(net.inputs), 1)))
    older = net.attend(
        "read at the distance",
        query=Affine.of({net.index: [[2.0, 0.0]], distance: [[-2.0, 0.0]]}, [0.0, -1.0]),
        key=Affine.of({net.index: [[1.0, 0.0]], net.square: [[0.0, 1.0]]}),
        value=Affine.copy(own),
        writes=Space("older map", kind),
        gap=1.0,
        bound=3.0 * max_length**2,
        **(temperature(states) if attention == "softmax" else {}),
    )
    values = [reachable(automaton, state, states) for state in range(states)]
    both = int_compose(net, older, own, name="map of twice as many letters", values=values)
    doubled = Space("twice the distance", far)
    net.units("double the distance", Affine.of({distance: [[2.0]]}), doubled, np.eye(1), gain={distance: 2.0})
    output = Output("recognizer", automaton.states, accepting=automaton.accepting_states)
    facts = {"states": states, "letters": len(automaton.alphabet), "rounds": loops}
    source = "in the spirit of Merrill and Sabharwal 2025, arXiv 2503.03961"
    readout = nearest_state(both, automaton.initial, states)
    made = net.network(output, readout, "automaton, one layer in a loop", facts, source=source, reuse=False)
    return replace(made, loops=loops, carries=((own, both), (distance, doubled)))


def rounds(max_length: int) -> int:
    """Return how often the layer runs."""
    return max(1, layers_for(max_length))


def temperature(states: int) -> dict[str, float]:
    """Return the inverse temperature of the softmax, and the error of a map that it leaves."""
    largest = max(states - 1, 1)
    beta = round_up(log(16 * largest))
    return {"beta": beta, "shortfall": 2 * largest * exp(-beta) / -np.expm1(-3 * beta), "noise": 0.0}
