r"""LogSum: the logarithm of a sum of exponentials, by attention alone.

The beginning-of-sequence pads serve as keys: pad 0 is a *sink* whose score is 0, pad $r$ stands for summand $r$ and
gets the score $x_r - c$. With the value 1 at all but the sink, a softmax head writes $\frac{\sum_r e^{x_r - c}}{1 +
\sum_r e^{x_r - c}} = \sigma(L - c)$, where $L = \log \sum_r e^{x_r}$ is the result to compute. (Tokens score far below
and have no weight.) This is used twice:

- *A first guess.* $h \sum_k \sigma(L - c_k)$ over thresholds $c_k$ with spacing $h$ is the trapezoidal rule for
  $\int \sigma(L - c)\,dc$, so it grows like $L$ itself: by Poisson's summation it is off by at most
  $\sum_{m \ge 1} 2\pi / \sinh(2\pi^2 m/h)$, plus what is cut off at the ends. With $h = 4$ that is 0.12 in all.
- *Refinement.* $y \mapsto y - 2 + 4\,\sigma(L - y)$ is Halley's iteration for $e^y = e^L$: an error $\delta$ becomes
  $\delta - 2\tanh(\delta/2) \approx \delta^3/12$. Two of them turn 0.12 into $1.9 \cdot 10^{-13}$.

$L$ moves no further than the summand that moves most, so errors of the summands are never multiplied.

*An empty sum* is represented, too: the logarithm of 0 is a number near `floor`, by one more threshold far below all
others with a jump from `floor` up to the least possible $L$. All other logarithms must be at most 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import BuildRefused
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Attend, Bank, Builder, Flag, OneHot, Reals, Space

THRESHOLD_SPACING = 4.0
LADDER_OVERHANG = 2.0  # how far the thresholds reach beyond the range of L
JUMP_ERROR = 0.005  # error that the jump at the lowest threshold may add
HALLEY_STEPS = 2
SINK_MARGIN = 44.0  # score of the sink over tokens and unused pads
MAX_ABOVE_FLOOR = 5.0  # how far above the floor the logarithm of 0 may be
MIN_BELOW_OTHERS = 39.0  # how far below every other logarithm it must be
MAX_STEP_ERROR = 1e-6  # allowed error of the estimate before the last step
MAX_GUESS_SLOPE = 1.2  # of the first guess as a function of L


@dataclass(frozen=True)
class Pads:
    """The pads as keys: a flag for the sink, and a one-hot of the summand a pad stands for; both are 0 at tokens."""

    sink: Space
    summand: Space


def alternatives(net: Builder, max_summands: int) -> Pads:
    """Return the pads as keys of up to `max_summands` summands, in order; pad 0 is the sink."""
    if net.attention != "softmax":
        raise BuildRefused(f"exponentials and logarithms need softmax attention, not {net.attention}: use soft")
    if net.pads != max_summands + 1:
        raise ValueError(f"{max_summands} summands need {max_summands + 1} pads, the network has {net.pads}")
    kind = OneHot(tuple(str(r) for r in range(1, max_summands + 1)), void=True)
    pads, tokens = np.eye(max_summands + 1), np.zeros((net.max_length, max_summands + 1))
    return Pads(
        sink=net.embed_position("sink", Flag(), tokens[:, :1], pads=pads[:, :1]),
        summand=net.embed_position("summand", kind, tokens[:, 1:], pads=pads[:, 1:]),
    )


def floor_below(low: float, max_summands: int) -> float:
    """Return a floor so low that 0 is negligible in sums of up to `max_summands` terms with logarithms >= `low`."""
    return float(math.floor(low - MIN_BELOW_OTHERS - MAX_ABOVE_FLOOR - math.log(max_summands)))


def ladder(low: float, high: float) -> Floats:
    """Return the thresholds for a logarithm in a range, without that of the jump."""
    steps = math.ceil((high - low + 2 * LADDER_OVERHANG) / THRESHOLD_SPACING)
    return low - LADDER_OVERHANG + THRESHOLD_SPACING * np.arange(steps + 1.0)


def jump(low: float, high: float, floor: float) -> tuple[float, float]:
    """Return the threshold of the jump from the floor, and its height."""
    rise = float(ladder(low, high)[0]) - THRESHOLD_SPACING / 2 - floor
    return low - math.log(rise / JUMP_ERROR), rise


def guessed(x: Floats, low: float, high: float, floor: float) -> Floats:
    """Return the first guess as a function of the true logarithm x."""
    at, rise = jump(low, high, floor)
    stairs: Floats = _sigmoid(x[..., None] - ladder(low, high)).sum(axis=-1)
    return floor + rise * _sigmoid(x - at) + THRESHOLD_SPACING * stairs


def stepped(x: Floats, y: Floats) -> Floats:
    """Return one step of Halley's iteration from the estimate y, for the true logarithm x."""
    return y - 2 + 4 * _sigmoid(x - y)


def _sigmoid(x: Floats) -> Floats:
    half: Floats = np.tanh(x / 2)
    return (1 + half) / 2


def first_error() -> float:
    """Return a bound on the error of the first guess."""
    # the ninth is below 1e-18
    waves = (2 * math.pi / math.sinh(2 * math.pi**2 * m / THRESHOLD_SPACING) for m in range(1, 9))
    ends = 2 * THRESHOLD_SPACING * math.exp(-LADDER_OVERHANG) / math.expm1(THRESHOLD_SPACING)
    return sum(waves) + ends + JUMP_ERROR


def halley(error: float) -> float:
    """Return the error after a step of Halley's iteration, from that before it."""
    return error - 2 * math.tanh(error / 2) if error > 1e-4 else error**3 / 12


def thresholds(low: float, high: float) -> int:
    """Return the number of thresholds for a logarithm in a range, that of the jump included."""
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
    """Return $\\log \\sum_r e^{x_r}$ for several sums at once, each given as the map to its summands' logarithms $x_r$.

    `ranges` are the bounds of each logarithm when the sum is not 0. The exact contents of the intermediate spaces are
    `guessed` and `stepped`; the last space holds the logarithm itself. Where a sum is 0, they are only promised to be
    low, with the same errors. Heads: `thresholds` + `HALLEY_STEPS` per sum, and one more for each step. Layers: 1 +
    `HALLEY_STEPS`.
    """
    bank = _Bank(net, tuple(sums), pads, floor, name, tuple(labels))
    estimate = bank.guess(ranges)
    for step in range(1, HALLEY_STEPS + 1):
        estimate = bank.better(estimate, step)
    return estimate


@dataclass(frozen=True, eq=False)
class _Bank:
    """The sums, pads and floor that the guess and the refinement steps share."""

    net: Builder
    sums: tuple[Affine, ...]
    pads: Pads
    floor: float
    name: str
    labels: tuple[str, ...]

    def _head(self, index: int, threshold: float | Space, low: float, rise: float, writes: Space) -> Attend:
        r"""Return the head that writes $\text{low} + \text{rise} \cdot \sigma(L - c)$; $c$ is a number or in a space.

        One more query feature raises the keys of the sink and of the summands above all others.
        """
        terms, max_summands = self.sums[index], self.pads.summand.size
        parts = {space: np.pad(matrix, ((0, 0), (0, 1))) for space, matrix in terms.parts}
        bias = np.append(terms.bias, SINK_MARGIN)
        if isinstance(threshold, Space):
            parts[threshold] = np.zeros((threshold.size, len(bias)))
            parts[threshold][index, :-1] = -1.0
        else:
            bias[:-1] -= threshold
        from scipy.sparse import csr_array

        own = np.eye(max_summands, terms.size)  # which pad stands for which of its summands
        taken = own.sum(axis=1, keepdims=True)
        return Attend(
            name=f"{writes.name}: {self.labels[index]}",
            query=Affine.of(parts, bias),
            key=Affine.of({self.pads.summand: np.hstack([own, taken]), self.pads.sink: np.eye(len(bias))[-1:]}),
            value=Affine.of({self.pads.summand: rise * taken}, [low]),
            writes=writes,
            attention="softmax",
            out=csr_array(([1.0], ([0], [index])), shape=(1, writes.size)),
        )

    def guess(self, ranges: Sequence[tuple[float, float]]) -> Space:
        """Return the first guess, which is the floor where a sum is 0."""
        ladders = [ladder(low, high) for low, high in ranges]
        top = max(float(steps[-1]) + THRESHOLD_SPACING / 2 for steps in ladders)
        writes = Space(f"{self.name}, guessed", Reals(self.labels, self.floor, top))
        heads = []
        for index, ((low, high), steps) in enumerate(zip(ranges, ladders, strict=True)):
            at, rise = jump(low, high, self.floor)
            heads.append(self._head(index, at, self.floor, rise, writes))
            heads += [self._head(index, float(c), 0.0, THRESHOLD_SPACING, writes) for c in steps]
        passes = tuple(terms * MAX_GUESS_SLOPE for terms in self.sums)
        return self._add(writes, heads, passes, top - 2 * self.floor)

    def better(self, guess: Space, step: int) -> Space:
        """Return the estimate after one step of Halley's iteration."""
        kind = Reals(self.labels, guess.kind.low - 2, guess.kind.high + 2)
        writes = Space(self.name if step == HALLEY_STEPS else f"{self.name}, step {step}", kind)
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
        heads = [itself, *(self._head(index, guess, -2.0, 4.0, writes) for index in range(len(self.sums)))]
        if step < HALLEY_STEPS:  # neither moves by more than what it reads
            return self._add(writes, heads, tuple(head.query for head in heads[1:]), 4.0)
        error = first_error()
        for _ in range(step - 1):
            error = halley(error)
        return self._add(writes, heads, self.sums, 4.0, halley(error + MAX_STEP_ERROR), {guess: MAX_STEP_ERROR})

    def _add(
        self,
        writes: Space,
        heads: Sequence[Attend],
        passes: tuple[Affine, ...],
        rise: float,
        error: float = 0.0,
        margin: Mapping[Space, float] = MappingProxyType({}),
    ) -> Space:
        """Add the bank; its error includes other keys' weights, summands that are 0, and rounding."""
        positions = self.net.max_length + self.net.pads
        queries = [head.query for head in heads if head.window is None]
        scores = max(float((query.terms + 8) * (query.bound.max() + SINK_MARGIN)) for query in queries)
        largest = max(abs(writes.kind.low), abs(writes.kind.high))
        rounding = UNIT_ROUNDOFF * (scores + (positions + 8) * (rise + 2) + 4 * largest)
        other_keys = positions * math.exp(-SINK_MARGIN) * rise
        truncation = error + other_keys + MAX_GUESS_SLOPE * math.exp(-MIN_BELOW_OTHERS)  # and summands that are 0
        bank = Bank(f"log of sums: {writes.name}", tuple(heads), writes, passes, truncation, rounding, margin)
        return self.net.add(bank)
