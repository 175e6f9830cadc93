r"""PARITY by one set of weights for words of every length: nothing depends on the length $n$, the positions neither.

Positions are given by formulas of $t = 0, \dots, n$; BOS is $t = 0$. Let $k$ be the number of letters that change the
state, and $N = n + 1$. The weights are our own derivations.

**Hard attention** (`parity-by-position`), causal, in two layers. Layer 1 is uniform and gives $a = k/(i+1)$ and $b =
1/(i+1)$ at position $i$. Layer 2 has the query $(2a, -b)$ and the key $(t, t^2)$: the score $b(2kt - t^2)$ is largest
at $t = k \le i$ alone, by $b$ or more. It copies $t \bmod 2$. The answer stands at every position.

**Softmax** (`parity-any-length`) without a mask. Chiang & Cholak (2022, arXiv 2202.12172) take two layers and positions
that depend on $n$, $t/n$; Kozachinskiy & Steifer (2025, arXiv 2501.02535) take three layers and positions that do not.
Ours are $\ln t$, $\ln(t+1)$ and $t \bmod 2$, and two layers suffice for margins that vanish:

- Layer 1 has two heads, for $s = t$ and $s = t + 1$. Letters score 0 and BOS $\ln(s/2)$, so that BOS has the weight
  $s/(s+2n)$ and each letter twice as much as BOS at $s = 1$. With the values ½ for a letter that counts and −1 for BOS
  they give $f(s) = (k - s)/(s + 2n)$. Four units make $h_t = \mathrm{relu}\,f(t) - \mathrm{relu}\,f(t+1)$ with the
  sign $(-1)^t$; one more keeps $u = 1/(1 + 2n)$, the weight of BOS at BOS.
- Layer 2 is uniform: $x = \frac1N\big(\sum_t (-1)^t h_t - \tfrac34 u\big)$ at every position; $x > 0$ iff $k$ is odd.

**Margin.** $h_t = 0$ for $t \ge k$. Up to there $h_t = f(t) - f(t+1) = (k+2n)/((t+2n)(t+1+2n))$ is positive,
decreasing and convex. So the sum $S$ is at least $\frac12(h_0 + h_{k-1}) \ge u$ for odd $k$: with $m = k + 2n - 1$ it
is $\frac u2(\frac m{2n} + \frac{2n+1}m + \frac1{2n})$. It is 0 for $k = 0$. For even $k \ge 2$ it is at least 0 and
at most $h_0 - \frac12 h_1 - \frac12 h_{k-1}$, which grows with $k$ and at $k = n$ is at most $\frac u2$, because
$(n-2)(n-3) \ge 0$. Hence $|x| \ge u/4N = 1/(4(n+1)(2n+1))$ for all $n$ and $k$, with the right sign.

| `finish` | layers | what follows | lead $\ell$ of the right answer |
| --- | --- | --- | --- |
| `none` | 2 | logits $\pm x/2$ | $\lvert x\rvert \ge 1/(4(n+1)(2n+1))$ |
| `norm` | 2 | logits $\pm c$ by a layer norm over $(x, -x)$ alone | $2c$, cross-entropy $\ln(1 + e^{-2c})$: constant |
| `attention` | 3 | a head that weighs BOS against the letters by $16 N^3 x$ | above 0.98, towards 1 with $n$ |

For `attention`, a further head of layer 1 finds $N^3$ at the last position; leaks of $e^{-4}$ make it smaller by 2 %.

**Rounding.** Weights of a head are a sum of $N$ terms away from exact, so that $f$ is off by about $2Nu$ in a format
of unit roundoff $u$, and $x$ by $10Nu$ at most. The net reads sequences as long as $128 N^3 u \le 1$: 41,284 letters in
float64, 49 in float32. Under hard attention $16 N^2 u \le 1$ suffices (`kit/heads/whole.py`): 23,726,565 and 1,023.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.log_depth import begin_symbol
from vitrify.constructions.parity import changing
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.heads.average import NO_WEIGHT, mean
from vitrify.kit.heads.whole import ROUNDING
from vitrify.kit.network import Affine, Builder, Flag, Integers, MultiHot, Network, Norm, Output, Readout, Reals, Space
from vitrify.parameters import Help, Within
from vitrify.spec.automata.automaton import Automaton

SOFT_ROUNDING = 128  # the factor of $N^3 u$
THRESHOLD = 0.75  # of the alternating sum, in multiples of u: between 1/2 and 1
SHARPNESS = 16.0  # of the third layer, for $N^3 x$
LAST = 4.0  # difference of scores between neighbors, for the head that finds the last position
SOURCE = "in the spirit of Chiang & Cholak 2022, arXiv 2202.12172"


def hard_sizes(automaton: Automaton) -> DeclaredSizes:
    """Return the sizes, the same for every automaton and length."""
    del automaton
    return DeclaredSizes.of_layers((1, 1), (0, 0), 8)


def soft_sizes(automaton: Automaton, *, finish: str) -> DeclaredSizes:
    """Return the sizes, the same for every automaton and length."""
    del automaton
    if finish == "attention":
        return DeclaredSizes.of_layers((3, 1, 1), (5, 2, 0), 15)
    return DeclaredSizes.of_layers((2, 1), (5, 0), 11 if finish == "norm" else 10)


@construction(
    "parity-by-position",
    "parity checks at every length, in two layers of hard attention",
    hard_sizes,
    certified=("to T", "to T"),
    unproved="numbers that are known only within bounds",
    attention="hard",
)
def parity_by_position(automaton: Automaton, *, attention: Attention, max_length: MaxLength = 128) -> Network:
    """Return a transformer of hard attention that outputs the state of a parity check after every letter."""
    machine, net, marks = _started(automaton, max_length, attention, ROUNDING, 2)
    shares = mean(net, marks, name="k/n and 1/n")
    odd = _odd(net)
    answer = net.attend(
        "position k",
        query=Affine.of({shares: [[2.0, 0.0], [0.0, -1.0]]}),
        key=Affine.of({net.index: [[1.0, 0.0]], net.square: [[0.0, 1.0]]}),
        value=Affine.copy(odd),
        writes=Space("parity", Flag()),
        beta=1.0,
    )
    output = Output("recognizer", machine.states, accepting=machine.accepting_states)
    return _finished(net, machine, output, answer, 1.0, -0.5, 0.2)


@construction(
    "parity-any-length",
    "parity checks at every length, in two or three softmax layers",
    soft_sizes,
    certified=("to T", "to T"),
    unproved="whose length is not known",
    attention="softmax",
)
def any_length_parity(
    automaton: Automaton,
    *,
    attention: Attention,
    finish: Annotated[
        Literal["none", "norm", "attention"], Help("what makes the margin the same at all lengths")
    ] = "none",
    c: Annotated[float, Within(0.001, 1e6), Help("logit of the right state behind a norm")] = 1.0,
    max_length: MaxLength = 128,
) -> Network:
    """Return a softmax transformer that outputs the state of a parity check after the whole word, at every position."""
    machine, net, marks = _started(automaton, max_length, attention, SOFT_ROUNDING, 3)
    x = _mean_of_steps(net, _steps(net, marks), both=finish == "norm")
    longest = net.longest + net.pads
    least = 1 / (8.0 * longest**2)
    output = Output("class", machine.states, accepting=machine.accepting_states)
    if finish == "none":
        return _finished(net, machine, output, x, 0.5, 0.0, least / 2)
    if finish == "norm":
        sign = net.add(Norm("sign of x", x, Space("sign", Reals(("+", "-"), -1.0, 1.0)), least))
        return _finished(net, machine, output, sign, c, 0.0, 0.2)
    return _finished(net, machine, output, _weighed(net, x, marks), -1.0, 0.5, 0.2)


def _started(
    automaton: Automaton, max_length: int, attention: Attention, rounding: int, power: int
) -> tuple[Automaton, Builder, Space]:
    """Return the parity check, a builder, and the space of the flags of letters that change the state and of BOS."""
    machine = automaton.reachable()
    flips = np.array(changing(machine), dtype=float)
    inputs = (begin_symbol(automaton), *automaton.alphabet)
    net = Builder("parity, any length", inputs, max_length, attention, rounding=rounding, rounding_power=power)
    if max_length > net.longest:
        raise BuildRefused(
            f"float64 carries this network up to --max-length {net.longest}, not {max_length}: choose a shorter one"
        )
    table = np.stack([np.append(0.0, flips), np.eye(len(inputs))[0]], axis=1)
    return machine, net, net.embed("marks", MultiHot(("changes", inputs[0])), table)


def _odd(net: Builder) -> Space:
    return net.embed_formula("odd", Flag(), np.array([[0.0], [1.0]]), "polynomial of t mod 2")


def _steps(net: Builder, marks: Space) -> Affine:
    """Return the map $(-1)^t h_t$, less the threshold at BOS, after layer 1 and its units."""
    odd = _odd(net)
    high = float(np.log(net.longest + net.pads))
    bos = Affine.of({marks: [[0.0], [1.0]]})
    differences, weight = [], None
    for name, coefficients in (("t", [[0.0], [1.0]]), ("t+1", [[1.0], [1.0]])):
        logarithm = net.embed_formula(
            f"ln {name}", Reals((f"ln {name}",), 0.0, high), np.array(coefficients), "logarithm"
        )
        first = name == "t"
        query = Affine.of({logarithm: [[1.0]]}, [-np.log(2.0)]) + (bos * NO_WEIGHT if first else Affine.constant(0.0))
        values = np.array([[0.5, 0.0], [-1.0, 1.0]])[:, : 1 if first else 2]
        labels = (f"f({name})",) if first else (f"f({name})", "weight of BOS")
        read = net.attend(
            f"k against {name}",
            query=query,
            key=bos,
            value=Affine.of({marks: values}),
            writes=Space(f"k against {name}", Reals(labels, -1.0, 1.0)),
            mask="none",
            beta=1.0,
            error=2 * UNIT_ROUNDOFF * (net.longest + 2 * high + 8),
        )
        differences.append(Affine.of({read: np.eye(read.size)[:, :1]}))
        weight = Affine.of({read: np.eye(read.size)[:, -1:]})
    assert weight is not None
    here, after = differences
    even_off, odd_off = Affine.of({odd: [[-1.0]]}), Affine.of({odd: [[1.0]]}, [-1.0])
    reads = here + even_off
    for part in (after + even_off, here + odd_off, after + odd_off, weight + bos + Affine.constant(-1.0)):
        reads = reads.beside(part)
    out = np.array([[1.0], [-1.0], [-1.0], [1.0], [-THRESHOLD]])
    steps = net.units("steps", reads, Space("± step", Reals(("± step",), -1.0, 1.0)), out, passes=(here, after, weight))
    return Affine.copy(steps)


def _mean_of_steps(net: Builder, steps: Affine, *, both: bool) -> Space:
    """Return the mean $x$ of the steps over all positions; with `both`, as $(x, -x)$."""
    value = steps @ np.array([[1.0, -1.0]]) if both else steps
    return mean(net, value, mask="none", name="x", kind=Reals(("x", "-x")[: value.size], -1.0, 1.0))


def _weighed(net: Builder, x: Space, marks: Space) -> Space:
    r"""Return the weight of BOS against all letters, where BOS scores $-16 N^3 x$: near 1 iff $x < 0$."""
    bos = Affine.of({marks: [[0.0], [1.0]]})
    cubes = net.embed_formula(
        "(t+1)³", Integers(("(t+1)³",), 1.0, float(net.longest + 1) ** 3), np.array([[1.0], [3.0], [3.0], [1.0]])
    )
    cube = net.attend(
        "last position",
        query=Affine.constant(LAST),
        key=Affine.copy(net.index),
        value=Affine.copy(cubes),
        writes=Space("N³", Reals(("N³",), 0.0, cubes.kind.high)),
        mask="none",
        beta=1.0,
    )
    signed = Affine.of({x: [[1.0, -1.0]]}, [-1.0, -1.0]) + bos @ np.ones((1, 2))
    at_bos = net.units("x at BOS", signed, Space("x at BOS", Reals(("x",), -1.0, 1.0)), np.array([[1.0], [-1.0]]))
    return net.attend(
        "BOS against letters",
        query=Affine.of({cube: [[-SHARPNESS]]}),
        key=Affine.copy(at_bos),
        value=bos,
        writes=Space("even", Reals(("even",), 0.0, 1.0)),
        mask="none",
        beta=1.0,
    )


def _finished(
    net: Builder, machine: Automaton, output: Output, answer: Space, scale: float, shift: float, error: float
) -> Network:
    """Return the network whose logits are $\\pm$ `scale` times the answer plus `shift`, + for a changed state."""
    signs = np.array([[-1.0, 1.0] if machine.initial == 0 else [1.0, -1.0]])
    matrix = np.zeros((answer.size, 2))
    matrix[0] = scale * signs[0]
    readout = Readout(((answer, matrix),), shift * signs[0], {answer: error})
    return net.network(output, readout, "parity at any length", source=SOURCE, reuse=False)
