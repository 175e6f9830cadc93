r"""Codes of sets: a key for every position and a query for every set, whose product is 1 on the set and less off it.

With keys $u_j$, the query of a set $y$ of $q$ positions is a vector $w_y$ with $u_j \cdot w_y = 1$ for $j \in y$ and at
most $\tfrac12$ elsewhere. For $N$ positions:

| code | keys | queries | dimensions $m$ | holds for |
| --- | --- | --- | --- | --- |
| `signs` | random signs | least squares | $\lceil 19\,q \ln N\rceil$ | sets looked at |
| `units` | random unit vectors | linear program | $\lceil 3\,q \ln N\rceil$ | sets looked at |
| `coherent` | Reed–Solomon words, one-hot digits | least squares | $\min_k n_k p_k$ | all sets |
| `moments` | $\cos$ and $\sin$ of $2\pi kj/N$, $k \le q$ | Fourier series | $2q$ | all sets, tiny gap |

Least squares is $w_y = U_y^\top (U_y U_y^\top)^{-1} 1$; the linear program finds the least $s$ with scores of at most
$s$ off the set; the series is that of $1 - P/P_0$ below, at the angles $\theta_j = 2\pi j/N$. **Coherent.** Two of
$p^k$ polynomials of degree below $k$ agree on at most $k-1$ of $n$ points, so unit keys have products of at most $\mu
= (k-1)/n$, and off the set $|u_i \cdot w_y| \le q\mu/(1-(q-1)\mu)$, which is below
$\tfrac12$ for $n_k = (3q-1)(k-1)+1$; $p_k$ is the least prime with $p \ge n$ and $p^k \ge N$. For $k = 1$ keys are
one-hot, with $p = N$. **Moments.** $P(\theta) = \prod_{j \in y} (1 - \cos(\theta - \theta_j))$ with the mean $P_0$ is 0
on $y$ and positive elsewhere, and $P_0 \le \binom{2q}{q}/2^q$ by Hölder's inequality, so that the gap is at least
$2^q\binom{2q}{q}^{-1} \prod (1 - \cos\tfrac{2\pi d}N)$ over the $q$ nearest positions, $d = 1, 1, 2, 2, \dots$

Random codes prove nothing about sets that nobody looked at. What a code promises is checked by `inspect`, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, comb, log, log2
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import BuildRefused
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.exact import fraction, products

Floats = NDArray[np.float64]
Sets = NDArray[np.int64]  # [set, member], positions from 0
CodeOfSets = Literal["signs", "units", "coherent", "moments"]

HALF = Fraction(1, 2)
PER_LOG = {"signs": 19.0, "units": 3.0}  # dimensions over q ln N
KEY_BITS = 20  # fractional bits of unit vectors
LARGEST_QUERY = 8.0  # a coordinate that the linear program may use


@dataclass(frozen=True)
class Inspection:
    """What queries and keys say to each other, without rounding: the least and largest score on, the largest off.

    `others` is how many keys are off a set, `size` how many are on; `bound` limits the sums of absolute products.
    """

    low: Fraction
    high: Fraction
    off: Fraction
    size: int
    others: int
    dimensions: int
    bound: float

    @property
    def gap(self) -> Fraction:
        return self.low - self.off

    @property
    def spread(self) -> Fraction:
        return self.high - self.low

    def error(self, beta: float) -> float:
        r"""How far a softmax is from the mean of vectors of norm 1, at most: $e^{\beta\delta} - 1 + 2\ell$.

        Members of a set have weights in the ratio $e^{\beta\delta}$ at most, $\delta$ the spread; all other keys share
        $\ell \le \tfrac{n}{q} e^{-\beta g}$. Rounded upwards by ball arithmetic.
        """
        from flint import arb, fmpq

        spread, gap = (arb(fmpq(x.numerator, x.denominator)) for x in (self.spread, self.gap))
        leak = arb(fmpq(self.others, self.size)) * (-arb(beta) * gap).exp()
        total = (arb(beta) * spread).exp() - 1 + 2 * leak
        return float(np.nextafter(float(total.upper()), np.inf))

    def rounding(self, beta: float) -> float:
        """What rounding of the scores in float64 adds."""
        return 4 * beta * UNIT_ROUNDOFF * (self.dimensions + 2) * self.bound


@dataclass(frozen=True, eq=False)
class SetCode:
    """Keys [position, dimension] and the queries [set, dimension] of some sets."""

    name: CodeOfSets
    keys: Floats
    sets: Sets
    queries: Floats

    @cached_property
    def inspection(self) -> Inspection:
        return inspect(self.keys, self.queries, self.sets)


def inspect(keys: Floats, queries: Floats, sets: Sets) -> Inspection:
    """The scores of all keys for all sets, exactly; one more key is zero, as that of BOS is."""
    scores, bits = products(queries, keys)
    on = np.take_along_axis(scores, sets, axis=1)
    off = np.ones(scores.shape, dtype=bool)
    np.put_along_axis(off, sets, values=False, axis=1)
    return Inspection(
        low=fraction(on.min(), bits),
        high=fraction(on.max(), bits),
        off=fraction(max([0, *scores[off]]), bits),
        size=sets.shape[1],
        others=len(keys) + 1 - sets.shape[1],
        dimensions=keys.shape[1],
        bound=float((np.abs(queries) @ np.abs(keys).T).max(initial=0.0)),
    )


def coherence(keys: Floats) -> Fraction:
    """The largest product of two different keys over the least square of one, exactly, all pairs looked at."""
    found, bits = products(keys, keys)
    squares = found.diagonal().copy()
    apart = found.copy()
    np.fill_diagonal(apart, 0)
    return fraction(abs(apart).max(initial=0), bits) / fraction(squares.min(), bits)


def off_every_set(mu: Fraction, sparsity: int) -> Fraction | None:
    """The largest score off any set of so many keys whose coherence is given; None where it proves nothing."""
    rest = 1 - (sparsity - 1) * mu
    return sparsity * mu / rest if rest > 0 else None


def least_gap_of_moments(length: int, sparsity: int) -> float:
    """The gap that moments have for every set, at least; rounded downwards by ball arithmetic."""
    from flint import arb, fmpq

    gap = arb(fmpq(2**sparsity, comb(2 * sparsity, sparsity)))
    for d in range(sparsity):
        gap *= 1 - (2 * arb.pi() * fmpq(d // 2 + 1, length)).cos()
    return float(np.nextafter(float(gap.lower()), -np.inf))


# The four codes


def set_code(
    name: CodeOfSets, length: int, sets: Sets, *, accuracy: float, width: int | None = None, seed: int = 0
) -> SetCode:
    """A code for these sets; queries are rounded so that scores move by at most `accuracy`."""
    if name not in get_args(CodeOfSets):
        raise BuildRefused(f"the codes of sets are {', '.join(get_args(CodeOfSets))}, not {name!r}")
    sparsity = sets.shape[1]
    if name == "moments":
        return SetCode(name, _moment_keys(length, sparsity), sets, _moment_queries(length, sets))
    if name == "coherent":
        keys = _reed_solomon(length, *reed_solomon(length, sparsity))
    else:
        rng = np.random.default_rng(seed)
        size = width_of(name, length, sparsity) if width is None else width
        keys = rng.choice([-1.0, 1.0], (length, size)) if name == "signs" else _unit_vectors(rng, length, size)
    queries = _programmed(keys, sets) if name == "units" else _least_squares(keys, sets)
    step = 2.0 ** -bits_of(keys, accuracy)
    return SetCode(name, keys, sets, np.round(queries / step) * step)


def bits_of(keys: Floats, accuracy: float) -> int:
    r"""Fractional bits of queries that move scores by at most the accuracy: $\max_j \|u_j\|_1 2^{-b-1}$."""
    return max(0, ceil(log2(np.abs(keys).sum(axis=1).max() / (2 * accuracy))))


def width_of(name: CodeOfSets, length: int, sparsity: int) -> int:
    """The dimensions of a code by its formula."""
    if name == "moments":
        return 2 * sparsity
    if name == "coherent":
        points, prime, _ = reed_solomon(length, sparsity)
        return points * prime
    return max(1, ceil(PER_LOG[name] * sparsity * log(length)))


def reed_solomon(length: int, sparsity: int) -> tuple[int, int, int]:
    """Points, prime and digits of the narrowest code whose coherence is low enough for all sets."""
    choices = [(1, length, 1)]
    for digits in range(2, max(2, length.bit_length()) + 1):
        points = (3 * sparsity - 1) * (digits - 1) + 1
        prime = next(p for p in range(max(points, 2), 2 * max(points, length) + 2) if p**digits >= length and _prime(p))
        choices.append((points, prime, digits))
    return min(choices, key=lambda choice: choice[0] * choice[1])


def _reed_solomon(length: int, points: int, prime: int, digits: int) -> Floats:
    numbers = np.arange(length)
    values = np.zeros((length, points), dtype=np.int64)
    for power in range(digits):
        values = (values + (numbers // prime**power % prime)[:, None] * np.arange(points) ** power) % prime
    return np.eye(prime)[values].reshape(length, points * prime)


def _prime(number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))


def _unit_vectors(rng: np.random.Generator, length: int, size: int) -> Floats:
    keys = rng.standard_normal((length, size))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    return np.round(keys * 2.0**KEY_BITS) / 2.0**KEY_BITS


def _least_squares(keys: Floats, sets: Sets) -> Floats:
    chosen = keys[sets]  # [set, member, dimension]
    gram = chosen @ chosen.transpose(0, 2, 1)
    if (np.linalg.matrix_rank(gram) < sets.shape[1]).any():
        return np.zeros((len(sets), keys.shape[1]))  # no query will do, and the inspection says so
    combined: Floats = chosen * np.linalg.solve(gram, np.ones((*sets.shape, 1)))
    queries: Floats = combined.sum(axis=1)
    return queries


def _programmed(keys: Floats, sets: Sets) -> Floats:
    from scipy.optimize import linprog

    size = keys.shape[1]
    queries = np.zeros((len(sets), size))
    for number, members in enumerate(sets):
        off = np.delete(keys, members, axis=0)
        found = linprog(
            np.eye(size + 1)[-1],
            A_ub=np.column_stack([off, -np.ones(len(off))]),
            b_ub=np.zeros(len(off)),
            A_eq=np.column_stack([keys[members], np.zeros(len(members))]),
            b_eq=np.ones(len(members)),
            bounds=[(-LARGEST_QUERY, LARGEST_QUERY)] * size + [(0.0, 1.0)],
            method="highs",
        )
        if found.x is not None:
            queries[number] = found.x[:-1]
    return queries


def _moment_keys(length: int, sparsity: int) -> Floats:
    angles = 2 * np.pi * np.outer(np.arange(length), np.arange(1, sparsity + 1)) / length
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def _moment_queries(length: int, sets: Sets) -> Floats:
    queries = []
    for members in sets:
        series = np.ones(1, dtype=complex)  # coefficients of e^{ikθ}, the middle one for k = 0
        for turn in np.exp(2j * np.pi * members / length):
            series = np.convolve(series, [-turn / 2, 1.0, -turn.conjugate() / 2])
        middle = sets.shape[1]
        above = series[middle + 1 :] / series[middle].real
        queries.append(np.concatenate([-2 * above.real, 2 * above.imag]))
    return np.array(queries)
