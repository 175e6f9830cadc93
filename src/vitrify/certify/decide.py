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
  for numbers and $e^r - 1$ for logarithms of probabilities; $e^{2r} - 1$ for a softmax, as each term and the sum of all
  are off by a factor of at most $e^r$; and for weights $w$ that are divided by their sum $S$, with $R$
  the sum of the radii, $(r + R\,\max|w|/S) / (S - R)$.

The oracle itself compares in floating point, with tolerances far above its rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from vitrify.certify.ball import BITS, Balls, RealNet
from vitrify.certify.ball_steps import Open, tied_best
from vitrify.certify.oracles import Oracle
from vitrify.certify.probability_oracles import NextTokenOracle, NextWordOracle
from vitrify.certify.reals import Reals
from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Found = TypeVar("Found")

CAP = 53 << 6  # bits
NARROW = 2.0**-48  # balls this narrow, relative to what they hold, have nothing more to tell an oracle in float64


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


def judged(net: RealNet, oracle: Oracle, word: Ids, *, cap: int = CAP) -> tuple[Floats, Floats] | Undecided:
    """Logits and distances from the right answers, [prefix]: beyond the tolerance only where a net errs for certain.

    Certain up to the rounding of float64, with which the oracle compares.
    """

    def answer(precision: int) -> tuple[Floats, Floats]:
        balls = net.logits(word, precision=precision)
        worst = _farthest(net.net.output, oracle, word, balls)
        if (worst > oracle.tolerance()).any() and not _narrow(balls):
            raise Open(f"the distance after {int(np.argmax(worst > oracle.tolerance()))} tokens")
        return balls.mid, worst

    return _raised(answer, cap)


def _narrow(balls: Balls) -> bool:
    return bool((balls.rad <= NARROW * np.abs(balls.mid) + 2.0**-1000).all())


def _farthest(output: Output, oracle: Oracle, word: Ids, balls: Balls) -> Floats:
    """The distance from the right answer that is the largest anywhere in the balls, [prefix]."""
    mid, rad = balls.mid, balls.rad
    if isinstance(oracle, NextTokenOracle | NextWordOracle):
        return _errors(oracle, word, mid) + _moved(output, mid, rad)
    if output.kind == "values":
        return _errors(oracle, word, mid) + rad.max(axis=-1, initial=0.0)
    if output.kind == "next":
        return _errors(oracle, word, np.sign(mid) * np.maximum(np.nextafter(np.abs(mid) - rad, -np.inf), 0.0))
    low, high = np.nextafter(mid - rad, -np.inf), np.nextafter(mid + rad, np.inf)
    leads = np.arange(mid.shape[1]) == mid.argmax(axis=-1)[:, None]
    corner = np.where(rad > 0, np.where(leads, low, high), mid)
    return np.maximum(_errors(oracle, word, mid), _errors(oracle, word, corner))


def _errors(oracle: Oracle, word: Ids, logits: Floats) -> Floats:
    found: Floats = oracle.errors(word[None], logits[None])[0]
    return found


def _moved(output: Output, mid: Floats, rad: Floats) -> Floats:
    """How far a probability can be from the one at the midpoints, at most, [prefix]."""
    widest: Floats = rad.max(axis=-1, initial=0.0)
    if output.scores != "linear":
        with np.errstate(over="ignore"):
            far: Floats = np.expm1(widest if output.scores == "log" else 2 * widest)
        return far * (1 + 2.0**-40)
    moved, total = rad.sum(axis=-1), np.abs(mid.sum(axis=-1))
    least: Floats = np.where(total > moved, total - moved, np.nan)
    share = np.abs(mid).max(axis=-1, initial=0.0) / np.where(total > moved, total, np.nan)
    return np.nan_to_num((widest + share * moved) / least * (1 + 2.0**-40), nan=np.inf)
