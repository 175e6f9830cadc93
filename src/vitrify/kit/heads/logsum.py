r"""LogSum: the logarithm of a sum of exponentials, by attention alone.

The beginning-of-sequence pads serve as keys: pad 0 is a *sink* whose score is 0, pad $r$ stands for summand $r$ and
gets the score $x_r - c$. With the value 1 at all but the sink, a softmax head writes $\frac{\sum_r e^{x_r - c}}{1 +
\sum_r e^{x_r - c}} = \sigma(L - c)$, where $L = \log \sum_r e^{x_r}$ is what is wanted. (Tokens score far below and
take no part.) Two uses of that:

- *A first guess.* $h \sum_k \sigma(L - c_k)$ over thresholds $c_k$ with spacing $h$ is the trapezoidal rule for
  $\int \sigma(L - c)\,dc$, so it grows like $L$ itself: by Poisson's summation it is off by at most
  $\sum_{m \ge 1} 2\pi / \sinh(2\pi^2 m/h)$, plus what is cut off at the ends. With $h = 4$ that is 0.12 in all.
- *Better ones.* $y \mapsto y - 2 + 4\,\sigma(L - y)$ is Halley's iteration for $e^y = e^L$: an error $\delta$ becomes
  $\delta - 2\tanh(\delta/2) \approx \delta^3/12$. Two of them turn 0.12 into $1.9 \cdot 10^{-13}$.

$L$ moves no further than the summand that moves most, so errors of the summands are never multiplied.

*Nothing at all* is a number too: a weight of 0 has a logarithm near `floor`, by one more threshold far below all others
with a jump from `floor` up to the least possible $L$. Logarithms of weights that are not 0 must be at most 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import BuildRefused
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Attend, Bank, Builder, Space
from vitrify.net.spaces import Flag, OneHot, Reals

Floats = NDArray[np.float64]

STRIDE = 4.0  # between thresholds
EDGE = 2.0  # how far they reach beyond the range of L
JUMP = 0.005  # what the jump at the lowest threshold may add to the error
STEPS = 2  # of Halley's iteration
LEAD = 44.0  # of the sink over tokens and over pads that take no part
ABSENT = 5.0  # how far above the floor the logarithm of 0 may come out
NEGLIGIBLE = 39.0  # how far below every other logarithm it must stay
SLACK = 1e-6  # how far the number before the last step may be from what it is meant to be
SLOPE = 1.2  # of the first guess at most, as a function of what it guesses


@dataclass(frozen=True)
class Pads:
    """The pads as keys: the flag of the sink, and a one-hot of the summand that a pad stands for; tokens have none."""

    sink: Space
    summand: Space


def alternatives(net: Builder, most: int) -> Pads:
    """The pads as keys of up to so many summands, in order; pad 0 is the sink."""
    if net.attention != "softmax":
        raise BuildRefused(f"exponentials and logarithms need softmax attention, not {net.attention}: use soft")
    if net.pads != most + 1:
        raise ValueError(f"{most} summands need {most + 1} pads, the network has {net.pads}")
    kind = OneHot(tuple(str(r) for r in range(1, most + 1)), void=True)
    pads, tokens = np.eye(most + 1), np.zeros((net.max_length, most + 1))
    return Pads(
        sink=net.place("sink", Flag(), tokens[:, :1], pads=pads[:, :1]),
        summand=net.place("summand", kind, tokens[:, 1:], pads=pads[:, 1:]),
    )


def floor_below(low: float, most: int) -> float:
    """A floor for sums of up to so many summands whose logarithms are at least `low`: 0 weighs nothing beside them."""
    return float(math.floor(low - NEGLIGIBLE - ABSENT - math.log(most)))


def ladder(low: float, high: float) -> Floats:
    """The thresholds for a logarithm in a range, but that of the jump."""
    return low - EDGE + STRIDE * np.arange(math.ceil((high - low + 2 * EDGE) / STRIDE) + 1.0)


def jump(low: float, high: float, floor: float) -> tuple[float, float]:
    """Where the jump from the floor is, and how high."""
    rise = float(ladder(low, high)[0]) - STRIDE / 2 - floor
    return low - math.log(rise / JUMP), rise


def guessed(x: Floats, low: float, high: float, floor: float) -> Floats:
    """The first guess as a function of what it guesses."""
    at, rise = jump(low, high, floor)
    stairs: Floats = _sigmoid(x[..., None] - ladder(low, high)).sum(axis=-1)
    return floor + rise * _sigmoid(x - at) + STRIDE * stairs


def stepped(x: Floats, y: Floats) -> Floats:
    """One step of Halley's iteration from y, as a function of what it is to be."""
    return y - 2 + 4 * _sigmoid(x - y)


def _sigmoid(x: Floats) -> Floats:
    half: Floats = np.tanh(x / 2)
    return (1 + half) / 2


def first_error() -> float:
    """How far the first guess can be off."""
    waves = (2 * math.pi / math.sinh(2 * math.pi**2 * m / STRIDE) for m in range(1, 9))  # the ninth is below 1e-18
    ends = 2 * STRIDE * math.exp(-EDGE) / math.expm1(STRIDE)
    return sum(waves) + ends + JUMP


def halley(error: float) -> float:
    """The error after a step of Halley's iteration, from that before it."""
    return error - 2 * math.tanh(error / 2) if error > 1e-4 else error**3 / 12


def thresholds(low: float, high: float) -> int:
    """How many thresholds a sum takes whose logarithm lies in a range, the one of the jump included."""
    return len(ladder(low, high)) + 1


def log_sum(
    net: Builder,
    sums: Sequence[Affine],
    ranges: Sequence[tuple[float, float]],
    pads: Pads,
    *,
    floor: float,
    name: str,
    labels: Sequence[str],
) -> Space:
    """The logarithm of $\\sum_r e^{x_r}$ for several sums at once, each given as the map to its summands' logarithms.

    What the spaces of the guess and of the first step are meant to hold is `guessed` and `stepped`; the last one is
    meant to hold the logarithm itself. Where a sum is 0 all of them are only promised to be low, and their errors are
    those of the others.
    `ranges` says where each logarithm lies when the sum is not 0. Heads: `thresholds` and `STEPS` per sum, and one more
    for each step; layers: one and `STEPS`.
    """
    bank = _Bank(net, tuple(sums), pads, floor, name, tuple(labels))
    found = bank.guess(ranges)
    for step in range(1, STEPS + 1):
        found = bank.better(found, step)
    return found


class _Bank:
    """What the steps share."""

    def __init__(
        self, net: Builder, sums: tuple[Affine, ...], pads: Pads, floor: float, name: str, labels: tuple[str, ...]
    ) -> None:
        self.net, self.sums, self.pads, self.floor, self.name, self.labels = net, sums, pads, floor, name, labels
        self.positions = net.max_length + net.pads

    def _head(self, place: int, threshold: float | Space, low: float, rise: float, writes: Space) -> Attend:
        r"""The head that writes $\text{low} + \text{rise} \cdot \sigma(L - c)$, $c$ a number or held by a space.

        One more feature lifts the keys that take part above all others.
        """
        terms, most = self.sums[place], self.pads.summand.size
        parts = {space: np.pad(matrix, ((0, 0), (0, 1))) for space, matrix in terms.parts}
        bias = np.append(terms.bias, LEAD)
        if isinstance(threshold, Space):
            parts[threshold] = np.zeros((threshold.size, len(bias)))
            parts[threshold][place, :-1] = -1.0
        else:
            bias[:-1] -= threshold
        from scipy.sparse import csr_array

        own = np.eye(most, terms.size)  # the pads of its summands
        taken = own.sum(axis=1, keepdims=True)
        return Attend(
            name=f"{writes.name}: {self.labels[place]}",
            query=Affine.of(parts, bias),
            key=Affine.of({self.pads.summand: np.hstack([own, taken]), self.pads.sink: np.eye(len(bias))[-1:]}),
            value=Affine.of({self.pads.summand: rise * taken}, [low]),
            writes=writes,
            attention="softmax",
            out=csr_array(([1.0], ([0], [place])), shape=(1, writes.size)),
        )

    def guess(self, ranges: Sequence[tuple[float, float]]) -> Space:
        """The first guess, and the floor where a sum is 0."""
        ladders = [ladder(low, high) for low, high in ranges]
        top = max(float(steps[-1]) + STRIDE / 2 for steps in ladders)
        writes = Space(f"{self.name}, guessed", Reals(self.labels, self.floor, top))
        heads = []
        for place, ((low, high), steps) in enumerate(zip(ranges, ladders, strict=True)):
            at, rise = jump(low, high, self.floor)
            heads.append(self._head(place, at, self.floor, rise, writes))
            heads += [self._head(place, float(c), 0.0, STRIDE, writes) for c in steps]
        passes = tuple(terms * SLOPE for terms in self.sums)
        return self._add(writes, heads, passes, top - 2 * self.floor)

    def better(self, guess: Space, step: int) -> Space:
        """One step of Halley's iteration, from a guess whose error is known."""
        kind = Reals(self.labels, guess.kind.low - 2, guess.kind.high + 2)
        writes = Space(self.name if step == STEPS else f"{self.name}, step {step}", kind)
        itself = Attend(
            name=f"{writes.name}: what was guessed",
            query=Affine.of({}, [0.0]),
            key=Affine.of({}, [0.0]),
            value=Affine.copy(guess),
            writes=writes,
            attention="softmax",
            window=1,
            bias=np.zeros(1),
        )
        heads = [self._head(place, guess, -2.0, 4.0, writes) for place in range(len(self.sums))]
        if step < STEPS:  # neither moves by more than what it reads
            return self._add(writes, [itself, *heads], tuple(head.query for head in heads), 4.0)
        error = first_error()
        for _ in range(step - 1):
            error = halley(error)
        return self._add(writes, [itself, *heads], self.sums, 4.0, halley(error + SLACK), {guess: SLACK})

    def _add(
        self,
        writes: Space,
        heads: list[Attend],
        passes: tuple[Affine, ...],
        rise: float,
        error: float = 0.0,
        margin: Mapping[Space, float] = MappingProxyType({}),
    ) -> Space:
        """The bank, with what keys that take no part, summands that are 0, and rounding add to its error."""
        strangers = self.positions * math.exp(-LEAD) * rise
        nothing = SLOPE * math.exp(-NEGLIGIBLE)
        scores = max(
            float((head.query.terms + 8) * (head.query.bound.max() + LEAD)) for head in heads if head.window is None
        )
        rounding = UNIT_ROUNDOFF * (scores + (self.positions + 8) * (rise + 2) + 4 * _size(writes))
        return self.net.add(
            Bank(
                name=f"log of sums: {writes.name}",
                heads=tuple(heads),
                writes=writes,
                passes=passes,
                truncation=error + strangers + nothing,
                error=rounding,
                margin=margin,
            )
        )


def _size(space: Space) -> float:
    return max(abs(space.kind.low), abs(space.kind.high))
