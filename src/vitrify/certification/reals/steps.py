"""The steps of a network that are no matrix product, on fractions and balls: attention, routers, layer norm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import isqrt
from operator import add

from flint import arb, fmpq

from vitrify.certification.reals.matrices import NOTHING, Entry, RealMatrix, together
from vitrify.net.transformer import Head

HALF = arb(0.5)  # a weight whose ball has this radius or more, or is not finite, gets the ball [0, 1] instead


class OpenComparison(Exception):
    """A comparison that the balls leave open; the message says where."""


def keys_of(head: Head, query: int, length: int) -> list[int]:
    """The keys that a query may look at."""
    first, last = 0, length
    if head.mask == "causal":
        last = query + 1
    elif head.mask == "strict":
        last = query
    elif head.mask == "after":
        first = query + 1
    if head.window is not None:
        first, last = max(first, query - head.window + 1), min(last, query + 1)
    return list(range(first, last))


def pattern(head: Head, q: RealMatrix, k: RealMatrix, bias: Sequence[float] | None, where: str) -> RealMatrix:
    """Return the weights [query, key] of a head; `q` has its inverse temperature, and only windows have a bias."""
    length = q.shape[0]
    entries = (q @ k.T).entries()
    found: list[Entry] = [(fmpq(0), NOTHING)] * (length * length)
    for query in range(length):
        keys = keys_of(head, query, length)
        row = [entries[query * length + key] for key in keys]
        if bias is not None:
            row = [_biased(entry, bias[query - key]) for entry, key in zip(row, keys, strict=True)]
        for key, weight in zip(keys, _weights(head, row, f"{where}, query {query}"), strict=True):
            found[query * length + key] = weight
    return together(length, length, found)


def _biased(entry: Entry, bias: float) -> Entry:
    return entry[0] + fmpq(*bias.as_integer_ratio()), entry[1]


def _weights(head: Head, row: list[Entry], where: str) -> list[Entry]:
    if len(row) < 2:
        return [(fmpq(1), NOTHING)] * len(row)
    if head.attention == "softmax":
        return _softmax(row)
    if head.attention == "sparsemax":
        return _sparsemax(row)
    return _hardmax(head, row, where)


def _softmax(row: list[Entry]) -> list[Entry]:
    scores = [arb(fraction) + ball for fraction, ball in row]
    best = max((score.mid() for score in scores), key=float)
    grown = [(score - best).exp() for score in scores]
    total = reduce(add, grown)
    weights = [weight / total for weight in grown]
    return [(fmpq(0), weight if weight.rad() < HALF else arb(HALF, HALF)) for weight in weights]


def _sparsemax(row: list[Entry]) -> list[Entry]:
    r"""$\max(s_j - \tau, 0)$ with sum 1, exactly for the midpoints; see `ball.py` for how far the true one may be."""
    middles = [fraction + _fraction(ball.mid()) for fraction, ball in row]
    slack = max(_fraction(ball.rad().upper()) for _, ball in row)
    ordered = sorted(middles, reverse=True)
    total, tau = fmpq(0), fmpq(0)
    for rank, score in enumerate(ordered, start=1):
        if 1 + rank * score <= total + score:
            break
        total += score
        tau = (total - 1) / rank
    weights = []
    for score in middles:
        if score - tau <= -2 * slack:
            weights.append((fmpq(0), NOTHING))
        else:
            weight = max(score - tau, fmpq(0))
            weights.append((weight, arb(0, arb(2 * slack).upper()) if slack else NOTHING))
    if sum(1 for weight, ball in weights if weight != 0 or not ball.is_zero()) == 1:  # one key has all the weight
        return [(fmpq(int(weight != 0)), NOTHING) for weight, _ in weights]
    return weights


def _fraction(number: arb) -> fmpq:
    """A ball without radius as the fraction that it is."""
    return number.fmpq()


def _hardmax(head: Head, row: list[Entry], where: str) -> list[Entry]:
    """Equal weights of all keys that are tied with the best, or all of it on the first or last of them."""
    resolution = fmpq(*head.resolution.as_integer_ratio())
    tied = [_within(row, key, resolution) for key in range(len(row))]
    order = range(len(row) - 1, -1, -1) if head.ties == "right" else range(len(row))
    chosen = []
    for key in order:
        if tied[key] is None:
            raise OpenComparison(f"{where}: key {key} may or may not be tied with the best")
        if tied[key]:
            chosen.append(key)
            if head.ties != "average":
                break
    share = fmpq(1, len(chosen))
    return [(share if key in chosen else fmpq(0), NOTHING) for key in range(len(row))]


def _within(row: list[Entry], key: int, resolution: fmpq) -> bool | None:
    """Return whether no entry is more than the resolution above that of the key; None where the balls leave it open."""
    sure = True
    for other in range(len(row)):
        if other == key:
            continue
        ahead = row[other][0] - row[key][0] - resolution
        ball = row[other][1] - row[key][1]
        if ball.is_zero():
            if ahead > 0:
                return False
        elif arb(ahead) + ball > 0:
            return False
        elif not arb(ahead) + ball <= 0:
            sure = False
    return True if sure else None


def first_best(row: list[Entry], where: str) -> int:
    """The first of the largest entries."""
    for key in range(len(row)):
        tied = _within(row, key, fmpq(0))
        if tied is None:
            raise OpenComparison(f"{where}: {key} may or may not be the best")
        if tied:
            return key
    raise AssertionError("one of them is the largest")


def tied_best(row: list[Entry], where: str) -> set[int]:
    """All of the largest entries, which are exactly equal."""
    tied = [_within(row, key, fmpq(0)) for key in range(len(row))]
    if None in tied:
        raise OpenComparison(f"{where}: {tied.index(None)} may or may not be the best")
    return {key for key, best in enumerate(tied) if best}


def unit(values: list[Entry], eps: float, where: str) -> list[Entry]:
    """The values with mean 0 and variance 1 (with eps under the root); zeros where they are all equal."""
    size = len(values)
    under = fmpq(*eps.as_integer_ratio())
    if all(ball.is_zero() for _, ball in values):
        mean = reduce(add, (fraction for fraction, _ in values)) / size
        centered = [fraction - mean for fraction, _ in values]
        variance = reduce(add, (c * c for c in centered)) / size + under
        if variance == 0:
            return [(fmpq(0), NOTHING)] * size
        root = fmpq(isqrt(int(variance.p)), isqrt(int(variance.q)))
        if root * root == variance:
            return [(c / root, NOTHING) for c in centered]
        return [(fmpq(0), arb(c) / arb(variance).sqrt() if c != 0 else NOTHING) for c in centered]
    numbers = [arb(fraction) + ball for fraction, ball in values]
    middle = reduce(add, numbers) / size
    away = [x - middle for x in numbers]
    spread = reduce(add, (c * c for c in away)) / size + arb(under)
    if not spread > 0:
        raise OpenComparison(f"{where}: it may or may not vary")
    return [(fmpq(0), c / spread.sqrt()) for c in away]
