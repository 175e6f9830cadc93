r"""PARITY of words of $n$ letters by two layers of softmax attention whose weights do not depend on $n$.

In the spirit of Chiang & Cholak (2022, arXiv 2202.12172). There are $N = n + 1$ positions: BOS at 0, the letters at 1
to $n$; the position table, and nothing else, depends on $n$: it holds $j/N$ and $(-1)^j$. Let $k$ be the number of
ones.

- Layer 1 is uniform: every position gets $k/N$ and, from BOS, $1/N$. Three units make $I_j = \mathrm{relu}(\tfrac{k - j
  - 1}N) - 2\,\mathrm{relu}(\tfrac{k-j}N) + \mathrm{relu}(\tfrac{k-j+1}N)$, which is $1/N$ at $j = k$ and 0 elsewhere.
- Layer 2 has two heads, with the scores $-c(-1)^j$ and $c(-1)^j$: one prefers odd positions, the other even ones. Both
  average $I$, and the difference is positive iff $k$ is odd.

**Margin.** Let $P$ positions have the parity of $k$ and $Q$ the other one, $P + Q = N$. The margin of the answer is
$\frac1N\left(\frac{e^c}{Pe^c + Qe^{-c}} - \frac{e^{-c}}{Pe^{-c} + Qe^c}\right) = \frac{2Q\sinh 2c}{N(P^2 + Q^2 +
2PQ\cosh 2c)}$. That is $2\tanh(c)/N^2$ for even $N$, and for odd $N$ the same times $(1 \pm \tfrac1N)/(1 -
\tanh^2(c)/N^2)$. So the margin falls like $n^{-2}$, and there is a length beyond which the arithmetic can't carry it;
such nets are refused.

The net is for words of exactly $n$ letters, and its answer stands at every position. Letters that change the state of
the automaton count as ones.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from vitrify.constructions.catalogue import BuildRefused, DeclaredSizes, construction
from vitrify.constructions.log_depth import begin_symbol
from vitrify.kit.gadgets.steps import at_least
from vitrify.kit.heads.average import mean, weighted_mean
from vitrify.kit.network import Affine, Builder, Integers, MultiHot, Network, Output, Readout, Reals, Space
from vitrify.parameters import Help, Within
from vitrify.spec.automata.automaton import Automaton


def sizes(automaton: Automaton) -> DeclaredSizes:
    """Return the sizes, the same for every automaton and length."""
    del automaton
    return DeclaredSizes({"layers": 2, "heads": 3, "heads_per_layer": (1, 2), "units": 3, "d_model": 11})


@construction(
    "parity",
    "parity checks in two softmax layers, for one length",
    sizes,
    certified=("to T", "to T"),
    unproved="whose length is not known",
)
def parity(
    automaton: Automaton,
    c: float = 1.0,
    *,
    max_length: Annotated[int, Within(1), Help("letters of every word: there is one net per length")],
) -> Network:
    """Return a two-layer softmax transformer that outputs the state of a parity check after `max_length` letters."""
    if c <= 0:
        raise BuildRefused(f"c must be positive, got {c}")
    machine = automaton.reachable()
    flips = np.array([[float(flip)] for flip in changing(machine)])
    n_positions = max_length + 1
    inputs = (begin_symbol(automaton), *automaton.alphabet)
    net = Builder("parity, two layers", inputs, max_length, min_length=max_length)
    marked = np.hstack([np.vstack([[[0.0]], flips]), np.eye(len(inputs), 1)])
    marks = net.embed("marks", MultiHot(("changes", inputs[0])), marked)
    index = np.arange(1.0, n_positions)[:, None]
    at = net.embed_position("j/N", Reals(("j/N",), 0.0, 1.0), index / n_positions)
    sign = net.embed_position("(-1)^j", Integers(("±",), -1.0, 1.0), np.where(index % 2, -1.0, 1.0), np.ones((1, 1)))
    shares = mean(net, marks, mask="none", name="k/N and 1/N")
    ramps = Affine.of({shares: [[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0]], at: [[-1.0, -1.0, -1.0]]})
    rising = at_least(net, ramps, 0.0, Space("ramps", Reals(("k-j-1", "k-j", "k-j+1"), 0.0, 1.0)))
    here = Affine.of({rising: [[1.0], [-2.0], [1.0]]})
    odd, even = (
        weighted_mean(net, Affine.of({sign: [[score]]}), here, Space(name, Reals(("I",), 0.0, 1.0)), mask="none")
        for name, score in (("at odd positions", -c), ("at even positions", c))
    )
    half = np.array([[-0.5, 0.5] if machine.initial == 0 else [0.5, -0.5]])
    max_error = min(margin(max_length, c, k) for k in (0, 1)) / 4
    output = Output("class", machine.states, accepting=machine.accepting_states)
    readout = Readout(((odd, half), (even, -half)), np.zeros(2), {odd: max_error, even: max_error})
    source = "in the spirit of Chiang & Cholak 2022, arXiv 2202.12172"
    return net.network(output, readout, "parity, two layers", {"c": c}, source=source, reuse=False)


def changing(machine: Automaton) -> list[bool]:
    """Return which letters of a parity check change its state; refuse other automata with the reason."""
    reason = f"it has {len(machine.states)}" if len(machine.states) != 2 else ""
    for letter, (zero, one) in machine.maps().items() if not reason else ():
        if zero == one:
            reason = f"the letter {letter!r} leads from both to {machine.states[zero]!r}"
    if reason:
        raise BuildRefused(
            f"a parity check has two states, which every letter keeps or changes, but {reason}: build this automaton "
            "with --construction commutative, cascade or log-depth"
        )
    return [zero == 1 for zero, _ in machine.maps().values()]


def margin(length: int, c: float, ones: int) -> float:
    """Return the margin of the right answer on words of `length` letters with `ones` ones, by the formula above."""
    n_positions = length + 1
    odd = n_positions // 2
    same_parity, other_parity = (odd, n_positions - odd) if ones % 2 else (n_positions - odd, odd)
    spread = same_parity**2 + other_parity**2 + 2 * same_parity * other_parity * np.cosh(2 * c)
    return float(2 * other_parity * np.sinh(2 * c) / (n_positions * spread))
