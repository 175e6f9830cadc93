r"""Answers in real arithmetic: the precision is raised until the balls decide what a net says, or an end is reached.

An answer is decided when every comparison on the way is: which keys a hard head takes, which expert works, which
symbol leads. Fractions that are equal are known to be, so exact ties count as decided. What is still open with `CAP`
bits is said to be undecided, and where.

Whether an answer is *right* is asked of the oracle of the spec, and must not depend on where in the balls the logits
are. With $r$ the radii:

- an answer that is the leading symbol is judged with the leader lowered and all others raised by $r$: everywhere else
  in the balls the same symbol leads by more;
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
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from vitrify.certify.ball import BITS, Balls, RealNet
from vitrify.certify.ball_steps import Open, tied_best
from vitrify.certify.evidence import Evidence, Progress, Verdict
from vitrify.certify.points import PointExamination
from vitrify.certify.probability_oracles import NextTokenOracle, NextWordOracle
from vitrify.certify.reals import Reals
from vitrify.certify.words import WordExamination
from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Found = TypeVar("Found")
Case = tuple[Any, "Errors", Callable[["Judged | None"], dict[str, object]]]
Errors = Callable[[Floats], Floats]  # of logits: the distance of the answers from the right ones

CAP = 53 << 6  # bits
WORDS = 1 << 11  # where nobody says how far to go, all words of a length are tried up to this many
POINTS = 256  # of the inputs where not all can be tried
NARROW = 2.0**-48  # balls this narrow, relative to the largest logit or 1, tell an oracle nothing new


@dataclass(frozen=True)
class Decided:
    """What a net says in real arithmetic: the symbols that lead (several if they are exactly equal) or may come next.

    `precision` is the number of bits that it took.
    """

    symbols: tuple[str, ...]
    precision: int


@dataclass(frozen=True)
class Undecided:
    """An answer that `precision` bits leave open; `where` names the head, router or logit in question."""

    where: str
    precision: int


def decide(
    weights: Weights[Any] | RealNet, word: ArrayLike, *, position: int = -1, cap: int = CAP
) -> Decided | Undecided:
    """What a net says after a word (at the last position, unless said), decided in real arithmetic."""
    net = weights if isinstance(weights, RealNet) else RealNet(weights)
    if net.net.output.kind == "values":
        raise InputError("a net whose answers are numbers says no symbol: ask for its balls")

    def answer(precision: int) -> Decided:
        said = net.run(word, precision=precision)["hook_logits"]
        row = range(said.shape[0])[net.unread :][position]
        with ctx.workprec(precision):
            return Decided(_symbols(net.net.output, said, row), precision)

    return _raised(answer, cap)


def _raised(answer: Callable[[int], Found], cap: int) -> Found | Undecided:
    """The first answer that enough bits give, from few of them to many."""
    precision = BITS
    while True:
        try:
            return answer(precision)
        except Open as open_question:
            if 2 * precision > cap:
                return Undecided(str(open_question), precision)
            precision *= 2


def _symbols(output: Output, said: Reals, row: int) -> tuple[str, ...]:
    """The symbols that a row of logits names."""
    wide = said.shape[1]
    entries = said.entries()[row * wide : (row + 1) * wide]
    if output.kind != "next":
        best = tied_best(entries, "the logits")
        return tuple(symbol for place, symbol in enumerate(output.symbols) if place in best)
    found = []
    for symbol, (fraction, ball) in zip(output.symbols, entries, strict=True):
        if ball.is_zero():
            found += [symbol] * (fraction > 0)
            continue
        value = arb(fraction) + ball
        if not value > 0 and not value <= 0:
            raise Open(f"the logit of {symbol!r} may be above 0 or below")
        found += [symbol] * (value > 0)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Judged:
    """Logits and their distances from the right answers, each the largest anywhere in the balls; the bits it took.

    A distance is beyond the tolerance only where the net errs, up to the rounding of float64 with which oracles work.
    """

    logits: Floats
    distances: Floats
    precision: int


def judged(
    net: RealNet, word: ArrayLike, errors: Errors, tolerance: float, *, probabilities: bool = False, cap: int = CAP
) -> Judged | Undecided:
    """What the net says to one input, judged by a function of the logits.

    `probabilities` says whether the distances are differences of probabilities.
    """

    def answer(precision: int) -> Judged:
        balls = net.logits(word, precision=precision)
        worst = _farthest(net.net.output, errors, balls, probabilities)
        wrong = ~(worst <= tolerance)
        if wrong.any() and not _narrow(balls):
            raise Open(f"the answer at place {int(wrong.argmax())} may or may not be right")
        return Judged(balls.mid, worst, precision)

    return _raised(answer, cap)


def _narrow(balls: Balls) -> bool:
    """Whether more bits would tell an oracle that works in float64 nothing new."""
    largest = np.abs(balls.mid).max(axis=-1, initial=1.0, keepdims=True)
    return bool((balls.rad <= NARROW * largest).all())


def _farthest(output: Output, errors: Errors, balls: Balls, probabilities: bool) -> Floats:
    """The distance from the right answer that is the largest anywhere in the balls, at every place."""
    mid, rad = balls.mid, balls.rad
    if probabilities:
        return errors(mid) + _moved(output, mid, rad)
    if output.kind == "values":
        return errors(mid) + float(rad.max(initial=0.0))
    if output.kind == "next":
        corner = np.sign(mid) * np.maximum(np.nextafter(np.abs(mid) - rad, -np.inf), 0.0)
    else:
        low, high = np.nextafter(mid - rad, -np.inf), np.nextafter(mid + rad, np.inf)
        leads = np.arange(mid.shape[1]) == mid.argmax(axis=-1)[:, None]
        corner = np.where(rad > 0, np.where(leads, low, high), mid)
    worst: Floats = np.maximum(errors(mid), errors(corner))
    return worst


def _moved(output: Output, mid: Floats, rad: Floats) -> Floats:
    """How far a probability can be from the one at the midpoints, at most, [prefix]."""
    widest: Floats = rad.max(axis=-1, initial=0.0)
    if output.scores != "linear":
        with np.errstate(over="ignore"):
            far: Floats = np.expm1(widest) if output.scores == "log" else np.tanh(widest / 2)
        return far * (1 + 2.0**-40)
    moved, total = rad.sum(axis=-1), np.abs(mid.sum(axis=-1))
    least: Floats = np.where(total > moved, total - moved, np.nan)
    share = np.abs(mid).max(axis=-1, initial=0.0) / np.where(total > moved, total, np.nan)
    farthest: Floats = np.nan_to_num((widest + share * moved) / least * (1 + 2.0**-40), nan=np.inf)
    return farthest


def in_reals(
    weights: Weights[Any], questions: WordExamination | PointExamination, progress: Progress | None = None
) -> Evidence:
    """Examine a net in real arithmetic: on all short words, or at the first points that it is asked about."""
    start = time.perf_counter()
    asked, domain, method = _asked(questions)
    net, tolerance = RealNet(weights), questions.oracle.tolerance()
    probabilities = isinstance(questions.oracle, NextTokenOracle | NextWordOracle)
    worst, bits, done = 0.0, 0, 0
    verdict: Verdict = "holds"
    witness: dict[str, object] | None = None
    for given, errors, told in asked:
        found = judged(net, given, errors, tolerance, probabilities=probabilities)
        if isinstance(found, Undecided):
            verdict, witness, bits = "undecided", {**told(None), "undecided": found.where}, found.precision
            break
        worst, bits, done = max(worst, float(found.distances.max())), max(bits, found.precision), done + 1
        if not worst <= tolerance:
            verdict, witness = "fails", told(found)
            break
        if progress:
            progress(done, len(asked))
    return Evidence(
        verdict=verdict,
        method=f"{method} in reals",
        domain=f"{domain}, in real arithmetic",
        cases=done,
        witness=witness,
        declared={"largest error in real arithmetic": tolerance},
        measured={"largest error in real arithmetic": worst, "bits that decide every answer": bits},
        seconds=time.perf_counter() - start,
    )


def _asked(questions: WordExamination | PointExamination) -> tuple[list[Case], str, str]:
    """The inputs, each with the function that judges its logits and the one that tells of a mistake."""
    if isinstance(questions, PointExamination):
        first = questions.questions[0]
        points = first.inputs[:POINTS]
        exhaustive = first.method == "exhaustive" and len(points) == len(first.inputs)
        name = first.name if len(points) == len(first.inputs) else f"the first {len(points)} of: {first.name}"
        single = questions.net.reads != "rows"  # one row of logits is the answer, or a row for each position is

        def point(given: Floats) -> Case:
            def errors(logits: Floats) -> Floats:
                return questions.oracle.errors(given[None], logits[-1:] if single else logits[None])

            def told(found: Judged | None) -> dict[str, object]:
                if found is None:
                    return {"input": given.tolist()}
                return questions.oracle.witness(given, found.logits[-1] if single else found.logits)

            return given, errors, told

        return [point(given) for given in points], name, "exhaustive" if exhaustive else "sampled"
    domain, net = questions.short(WORDS), questions.net
    words = [word for some in domain.words for word in some]
    name, method = domain.name, domain.method
    if not words:  # all words of a length are too many already
        other = questions.domains[0]
        words = [word for some in other.words for word in some][:POINTS]
        name, method = f"the first {len(words)} of: {other.name}", "sampled"

    def case(word: Ids) -> Case:
        def errors(logits: Floats) -> Floats:
            found: Floats = questions.oracle.errors(word[None], logits[None])[0]
            return found

        def told(found: Judged | None) -> dict[str, object]:
            if found is None:
                return {"word": [net.inputs[i] for i in word]}
            wrong = int(np.argmax(~(found.distances <= questions.oracle.tolerance())))
            end = len(word) if net.looks_ahead else wrong
            return questions.oracle.witness(word[:end], found.logits[: end + 1])

        return word, errors, told

    return [case(word) for word in words], name, method
