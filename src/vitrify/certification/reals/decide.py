r"""Answers in real arithmetic: the precision is raised until balls decide what a net answers, or a limit is reached.

An answer is decided when every comparison on the way is: which keys a hard head takes, which expert works, which
symbol has the largest logit. Equal fractions are recognized, so exact ties count as decided. A comparison that is still
open with `MAX_BITS` bits makes the answer undecided, and is named.

Whether an answer is *right* is asked of the oracle of the spec, and must not depend on where in the balls the logits
are. With $r$ the radii:

- an answer that is the symbol of the largest logit is judged with that logit lowered and all others raised by $r$:
  everywhere else in the balls its margin is larger;
- a set of next symbols with every logit moved by $r$ towards 0;
- numbers and probabilities at the midpoints, with the farthest that the balls can take them added to the distance: $r$
  for numbers and $e^r - 1$ for logarithms of probabilities; $\tanh(r/2)$ for a softmax, as the odds of a symbol are
  off by a factor of at most $e^{2r}$; and for weights $w$ that are divided by their sum $S$, with $R$
  the sum of the radii, $(r + R\,\max|w|/S) / (S - R)$.

The oracle itself compares in floating point, with tolerances far above its rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from vitrify.arrays import Floats, Ints
from vitrify.certification.checks.points import PointCheck
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.evidence import CaseKind, Domain, Evidence, Method, Progress, Quantity, Verdict
from vitrify.certification.reals.matrices import RealMatrix
from vitrify.certification.reals.nets import BITS, Balls, RealNet
from vitrify.certification.reals.steps import OpenComparison, tied_best
from vitrify.errors import InputError
from vitrify.net.architecture import Architecture, Output, SequenceArchitecture
from vitrify.net.weights import Weights

Answer = TypeVar("Answer")
Case = tuple[ArrayLike, "Errors", Callable[["Judged | None"], dict[str, object]]]
Errors = Callable[[Floats], Floats]  # of logits: the distance of the answers from the right ones

MAX_BITS = 53 << 6  # bits
MAX_WORDS = 1 << 11  # by default, all words of a length are tried up to this many
MAX_POINTS = 256  # inputs, where not all can be tried
NARROW_RADIUS = 2.0**-48  # balls this narrow, relative to the largest logit or 1, tell an oracle nothing new


@dataclass(frozen=True)
class Decided:
    """Answer of a net in real arithmetic: the symbols with the largest logit (several if tied) or that may come next.

    `precision` is the number of bits that it took.
    """

    symbols: tuple[str, ...]
    precision: int


@dataclass(frozen=True)
class StillOpen:
    """An answer that `precision` bits leave open; `where` names the head, router or logit in question."""

    where: str
    precision: int


def decide(
    weights: Weights[SequenceArchitecture] | RealNet, word: ArrayLike, *, position: int = -1, cap: int = MAX_BITS
) -> Decided | StillOpen:
    """Decide in real arithmetic what a net answers after a word, by default at the last position."""
    net = weights if isinstance(weights, RealNet) else RealNet(weights)
    if net.net.output.kind == "values":
        raise InputError("a net whose answers are numbers has no symbols to decide: use ball_logits")

    def answer(precision: int) -> Decided:
        logits = net.run(word, precision=precision)["hook_logits"]
        index = range(logits.shape[0])[net.unread :][position]
        with ctx.workprec(precision):
            return Decided(_symbols(net.net.output, logits, index), precision)

    return _with_enough_bits(answer, cap)


def _with_enough_bits(answer: Callable[[int], Answer], cap: int) -> Answer | StillOpen:
    """Return the first answer that the precision decides, doubling its bits up to `cap`."""
    precision = BITS
    while True:
        try:
            return answer(precision)
        except OpenComparison as open_question:
            if 2 * precision > cap:
                return StillOpen(str(open_question), precision)
            precision *= 2


def _symbols(output: Output, logits: RealMatrix, index: int) -> tuple[str, ...]:
    """Return the symbols that the logits at one position select."""
    wide = logits.shape[1]
    entries = logits.entries()[index * wide : (index + 1) * wide]
    if output.kind != "next":
        best = tied_best(entries, "the logits")
        return tuple(symbol for place, symbol in enumerate(output.symbols) if place in best)
    positive = []
    for symbol, (fraction, ball) in zip(output.symbols, entries, strict=True):
        if ball.is_zero():
            positive += [symbol] * (fraction > 0)
            continue
        value = arb(fraction) + ball
        if not value > 0 and not value <= 0:
            raise OpenComparison(f"the logit of {symbol!r} may be above 0 or below")
        positive += [symbol] * (value > 0)
    return tuple(positive)


@dataclass(frozen=True, eq=False)
class Judged:
    """Logits and their distances from the right answers, each the largest anywhere in the balls; the bits it took.

    A distance is beyond the tolerance only where the net errs, up to the rounding of float64 with which oracles work.
    """

    logits: Floats
    distances: Floats
    precision: int


def judged(
    net: RealNet, word: ArrayLike, errors: Errors, tolerance: float, *, probabilities: bool = False, cap: int = MAX_BITS
) -> Judged | StillOpen:
    """Run the net on one input and judge its logits by `errors`.

    `probabilities` says whether the distances are differences of probabilities.
    """

    def answer(precision: int) -> Judged:
        balls = net.logits(word, precision=precision)
        worst = _farthest(net.net.output, errors, balls, probabilities)
        wrong = ~(worst <= tolerance)
        if wrong.any() and not _narrow(balls):
            raise OpenComparison(f"the answer at position {int(wrong.argmax())} may or may not be right")
        return Judged(balls.mid, worst, precision)

    return _with_enough_bits(answer, cap)


def _narrow(balls: Balls) -> bool:
    """Return whether the balls are so narrow that more bits change nothing for an oracle in float64."""
    largest = np.abs(balls.mid).max(axis=-1, initial=1.0, keepdims=True)
    return bool((balls.rad <= NARROW_RADIUS * largest).all())


def _farthest(output: Output, errors: Errors, balls: Balls, probabilities: bool) -> Floats:
    """Return the largest distance from the right answer anywhere in the balls, at every position."""
    mid, rad = balls.mid, balls.rad
    if probabilities:
        return errors(mid) + _moved(output, mid, rad)
    if output.kind == "values":
        return errors(mid) + float(rad.max(initial=0.0))
    if output.kind == "next":
        corner = np.sign(mid) * np.maximum(np.nextafter(np.abs(mid) - rad, -np.inf), 0.0)
    else:
        low, high = np.nextafter(mid - rad, -np.inf), np.nextafter(mid + rad, np.inf)
        best = np.arange(mid.shape[1]) == mid.argmax(axis=-1)[:, None]
        corner = np.where(rad > 0, np.where(best, low, high), mid)
    return np.asarray(np.maximum(errors(mid), errors(corner)))


def _moved(output: Output, mid: Floats, rad: Floats) -> Floats:
    """Return the largest distance of a probability from the one at the midpoints, [prefix]."""
    widest: Floats = rad.max(axis=-1, initial=0.0)
    if output.scores != "linear":
        with np.errstate(over="ignore"):
            far: Floats = np.expm1(widest) if output.scores == "log" else np.tanh(widest / 2)
        return far * (1 + 2.0**-40)
    moved, total = rad.sum(axis=-1), np.abs(mid.sum(axis=-1))
    least: Floats = np.where(total > moved, total - moved, np.nan)
    share = np.abs(mid).max(axis=-1, initial=0.0) / np.where(total > moved, total, np.nan)
    return np.asarray(np.nan_to_num((widest + share * moved) / least * (1 + 2.0**-40), nan=np.inf))


def in_reals(
    weights: Weights[Architecture], check: WordCheck | PointCheck, progress: Progress | None = None
) -> Evidence:
    """Check a net in real arithmetic: on all short words, or at the first points of its check."""
    start = time.perf_counter()
    cases, domain, total = _cases(check)
    net, tolerance = RealNet(weights), check.oracle.tolerance()
    probabilities = check.net.output.kind == "lm"
    worst, bits, done = 0.0, 0, 0
    verdict: Verdict = "holds"
    witness: dict[str, object] | None = None
    for word, errors, describe in cases:
        answer = judged(net, word, errors, tolerance, probabilities=probabilities)
        if isinstance(answer, StillOpen):
            verdict, witness, bits = "undecided", {**describe(None), "undecided": answer.where}, answer.precision
            break
        worst, bits, done = max(worst, float(answer.distances.max())), max(bits, answer.precision), done + 1
        if not worst <= tolerance:
            verdict, witness = "fails", describe(answer)
            break
        if progress:
            progress(done, len(cases))
    quantities = (
        Quantity("largest error in real arithmetic", worst, tolerance, "<="),
        Quantity("bits that decide every answer", bits),
    )
    return Evidence(
        verdict=verdict,
        cases=round(done / max(len(cases), 1) * total),
        domains=(replace(domain, arithmetic="reals"),),
        quantities=quantities,
        witness=witness,
        seconds=time.perf_counter() - start,
    )


def _cases(check: WordCheck | PointCheck) -> tuple[list[Case], Domain, int]:
    """Return the inputs, their domain, and the number of answers.

    Each input comes with the function that judges its logits and the one that describes a mistake.
    """
    if isinstance(check, PointCheck):
        first = check.batches[0]
        points = first.inputs[:MAX_POINTS]
        domain = replace(first, inputs=points).domain
        if len(points) < len(first.inputs):
            domain = replace(domain, method=Method.SAMPLED)
        single = check.net.reads != "rows"  # the answer is the last logits, not those of each position

        def point(vector: Floats) -> Case:
            def errors(logits: Floats) -> Floats:
                return check.oracle.errors(vector[None], logits[-1:] if single else logits[None])

            def describe(answer: Judged | None) -> dict[str, object]:
                if answer is None:
                    return {"input": vector.tolist()}
                return check.oracle.witness(vector, answer.logits[-1] if single else answer.logits)

            return vector, errors, describe

        return [point(vector) for vector in points], domain, len(points)
    batch, net = check.short(MAX_WORDS), check.net
    words = [word for some in batch.words for word in some]
    domain, total = batch.domain, batch.cases
    if not words:  # all words of a length are too many already
        other = check.batches[0]
        words = [word for some in other.words for word in some][:MAX_POINTS]
        lengths, total = [len(word) for word in words], sum(len(word) + 1 for word in words)
        kind = CaseKind.FIRST_WORDS if other.domain.covers_lengths else other.domain.kind
        domain = Domain(kind, Method.SAMPLED, len(words), min(lengths), max(lengths))

    def case(word: Ints) -> Case:
        def errors(logits: Floats) -> Floats:
            return np.asarray(check.oracle.errors(word[None], logits[None])[0])

        def describe(answer: Judged | None) -> dict[str, object]:
            if answer is None:
                return {"word": [net.inputs[i] for i in word]}
            wrong = int(np.argmax(~(answer.distances <= check.oracle.tolerance())))
            end = len(word) if net.looks_ahead else wrong
            return check.oracle.witness(word[:end], answer.logits[: end + 1])

        return word, errors, describe

    return [case(word) for word in words], domain, total
