r"""PARITY of words of $n$ letters by two layers of softmax attention whose weights do not depend on $n$.

In the spirit of Chiang & Cholak (2022, arXiv 2202.12172). There are $N = n + 1$ positions: BOS at 0, the letters at 1
to $n$; the position table, and nothing else, depends on $n$: it holds $j/N$ and $(-1)^j$. Let $k$ be the number of
ones.

- Layer 1 is uniform: everybody learns $k/N$ and, from BOS, $1/N$. Three units make $I_j = \mathrm{relu}(\tfrac{k - j -
  1}N) - 2\,\mathrm{relu}(\tfrac{k-j}N) + \mathrm{relu}(\tfrac{k-j+1}N)$, which is $1/N$ at $j = k$ and 0 elsewhere.
- Layer 2 has two heads, with the scores $-c(-1)^j$ and $c(-1)^j$: one prefers odd positions, the other even ones. Both
  average $I$, and the difference is positive iff $k$ is odd.

**The law.** Let $P$ positions have the parity of $k$ and $Q$ the other one, $P + Q = N$. The right answer leads by
$\frac1N\left(\frac{e^c}{Pe^c + Qe^{-c}} - \frac{e^{-c}}{Pe^{-c} + Qe^c}\right) = \frac{2Q\sinh 2c}{N(P^2 + Q^2 +
2PQ\cosh 2c)}$. That is $2\tanh(c)/N^2$ for even $N$, and for odd $N$ the same times $(1 \pm \tfrac1N)/(1 -
\tanh^2(c)/N^2)$. So the margin falls like $n^{-2}$, and there is a length beyond which the arithmetic can't carry it;
such nets are refused.

The net is for words of exactly $n$ letters, and its answer stands at every position. Letters that change the state of
the automaton count as ones.

Sizes: 2 layers, $1 + 2$ heads, 3 units, width 11, for every $n$.
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.log_depth import begin_symbol
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import at_least
from vitrify.kit.heads import mean, weighted_mean
from vitrify.kit.network import Affine, Builder, Network, Readout, Space
from vitrify.net.architecture import Output
from vitrify.net.spaces import Integers, MultiHot, Reals
from vitrify.spec.automaton import Automaton


def parity(automaton: Automaton, length: int, c: float = 1.0) -> Network:
    """A softmax transformer of two layers that tells the state of a parity check after words of so many letters."""
    if length < 1 or c <= 0:
        raise BuildRefused(f"the length must be at least 1 and c positive, got {length} and {c}")
    machine = automaton.reachable()
    flips = np.array([[float(flip)] for flip in changing(machine)])
    number = length + 1
    inputs = (begin_symbol(automaton), *automaton.alphabet)
    net = Builder("parity, two layers", inputs, length, min_length=length)
    marked = np.hstack([np.vstack([[[0.0]], flips]), np.eye(len(inputs), 1)])
    marks = net.embed("marks", MultiHot(("changes", inputs[0])), marked)
    places = np.arange(1.0, number)[:, None]
    at = net.place("j/N", Reals(("j/N",), 0.0, 1.0), places / number)
    sign = net.place("(-1)^j", Integers(("±",), -1.0, 1.0), np.where(places % 2, -1.0, 1.0), np.ones((1, 1)))
    shares = mean(net, marks, mask="none", name="k/N and 1/N")
    ramps = Affine.of({shares: [[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0]], at: [[-1.0, -1.0, -1.0]]})
    rising = at_least(net, ramps, 0.0, Space("ramps", Reals(("k-j-1", "k-j", "k-j+1"), 0.0, 1.0)))
    here = Affine.of({rising: [[1.0], [-2.0], [1.0]]})
    odd, even = (
        weighted_mean(net, Affine.of({sign: [[score]]}), here, Space(name, Reals(("I",), 0.0, 1.0)), mask="none")
        for name, score in (("at odd positions", -c), ("at even positions", c))
    )
    half = np.array([[-0.5, 0.5] if machine.initial == 0 else [0.5, -0.5]])
    need = min(lead(length, c, k) for k in (0, 1)) / 4
    return net.network(
        Output("class", machine.states, accepting=machine.accepting_states),
        Readout(((odd, half), (even, -half)), np.zeros(2), {odd: need, even: need}),
        {
            "construction": "parity, two layers",
            "attention": "softmax",
            "c": c,
            "source": "in the spirit of Chiang & Cholak 2022, arXiv 2202.12172",
        },
        reuse=False,
    )


def changing(machine: Automaton) -> list[bool]:
    """Which letters of a parity check change its state; other automata are refused with the reason."""
    reason = f"it has {len(machine.states)}" if len(machine.states) != 2 else ""
    for letter, (zero, one) in machine.maps().items() if not reason else ():
        if zero == one:
            reason = f"the letter {letter!r} leads from both to {machine.states[zero]!r}"
    if reason:
        raise BuildRefused(
            f"a parity check has two states, which every letter keeps or changes, but {reason}: build this automaton "
            "with --shape commutative, cascade or log-depth"
        )
    return [zero == 1 for zero, _ in machine.maps().values()]


def lead(length: int, c: float, ones: int) -> float:
    """The law: how far the right answer leads on words of so many letters with so many ones."""
    number = length + 1
    odd = number // 2
    own, others = (odd, number - odd) if ones % 2 else (number - odd, odd)
    spread = own**2 + others**2 + 2 * own * others * np.cosh(2 * c)
    return float(2 * others * np.sinh(2 * c) / (number * spread))


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Automaton)
    if settings.attention != "softmax":
        raise BuildRefused("the two layers for PARITY rest on the spread of a softmax: leave --attention out")
    if settings.max_length is None:
        raise BuildRefused("this shape has one net per length: say with --max-length how many letters words have")
    return parity(spec, settings.max_length)


CONSTRUCTIONS = (
    Construction(
        "parity",
        Automaton,
        "parity checks in two softmax layers, for one length",
        _make,
        unproved="whose length is not known",
    ),
)
