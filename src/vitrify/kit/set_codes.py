r"""Codes of sets: a key for every position and a query for every set, with product 1 on the set and less off it.

With keys $u_j$, the query of a set $y$ of $q$ positions is a vector $w_y$ whose products with the keys are the same on
the set, and less by a gap $g$ elsewhere. For $N$ positions and $S$ sets:

| code | keys | queries | dimensions $m$ | gap, relative to the score on the set | proved for |
| --- | --- | --- | --- | --- | --- |
| `signs` | random signs | least squares | $\lceil 19\,q \ln N\rceil$ | $\tfrac12$ | the sets checked |
| `units` | random unit vectors | linear program | $\lceil 3\,q \ln N\rceil$ | $\tfrac12$ | the sets checked |
| `superimposed` | words of a Reed–Solomon code | clipped sum of keys | $\min_r n_r p_r$ | $\tfrac1{n}$ | all sets |
| `moments` | $\cos$ and $\sin$ of $2\pi kj/N$, $k \le q$ | Fourier series | $2q$ | tiny | all sets |
| `trivial` | one-hot, or one dimension per set | the set | $\min(N, S)$ | 1 | all sets; the sets listed |

Least squares is $w_y = U_y^\top (U_y U_y^\top)^{-1} 1$; the linear program finds the least $s$ with scores of at most
$s$ off the set; the series is that of $1 - P/P_0$ below, at the angles $\theta_j = 2\pi j/N$. `superimposed` is derived
in `vitrify.kit.superimposed`. **Moments.** $P(\theta) = \prod_{j \in y} (1 - \cos(\theta - \theta_j))$ with the mean
$P_0$ is 0 on $y$ and positive elsewhere, and $P_0 \le \binom{2q}{q}/2^q$ by Hölder's inequality, so that the gap is at
least $2^q\binom{2q}{q}^{-1} \prod (1 - \cos\tfrac{2\pi d}N)$ over the $q$ nearest positions, $d = 1, 1, 2, 2, \dots$

Random codes prove nothing about sets that were not checked. `exact_scores` checks the sets of a code without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, comb, log, log2
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Float, Floats, Int, Ints
from vitrify.errors import BuildRefused
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.superimposed import code_size, superimposed_keys

Sets = Ints  # [set, member], positions from 0
IntegerArray = NDArray[np.int64 | np.object_]  # Python integers where int64 is too short
CodeOfSets = Literal["signs", "units", "superimposed", "moments", "trivial"]
RANDOM: tuple[CodeOfSets, ...] = ("signs", "units")

MAX_OFF_SCORE = Fraction(1, 2)
DIMENSIONS_PER_Q_LN_N = {"signs": 19.0, "units": 3.0}
KEY_BITS = 20  # fractional bits of unit vectors
MAX_QUERY_COORDINATE = 8.0  # in the linear program
MANTISSA_BITS = 53
INT64_BITS = 62  # of a sum that int64 holds


@dataclass(frozen=True)
class ExactScores:
    """Bounds of the scores of all queries and keys, without rounding: least and largest on the set, largest off it.

    `size` is the number of keys in a set, `others` of those outside; `bound` limits the sums of absolute products.
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
        r"""Return a bound on the error of a softmax mean of vectors of norm 1: $e^{\beta\delta} - 1 + 2\ell$.

        Members of a set have weights in the ratio $e^{\beta\delta}$ at most, $\delta$ the spread; all other keys share
        $\ell \le \tfrac{n}{q} e^{-\beta g}$. Rounded upwards by ball arithmetic.
        """
        from flint import arb, fmpq

        spread, gap = (arb(fmpq(x.numerator, x.denominator)) for x in (self.spread, self.gap))
        leak = arb(fmpq(self.others, self.size)) * (-arb(beta) * gap).exp()
        total = (arb(beta) * spread).exp() - 1 + 2 * leak
        return float(np.nextafter(float(total.upper()), np.inf))

    def rounding(self, beta: float) -> float:
        """Return what rounding of the scores in float64 adds to the error."""
        return 4 * beta * UNIT_ROUNDOFF * (self.dimensions + 2) * self.bound


@dataclass(frozen=True, eq=False)
class SetCode:
    """Keys of the positions, some sets of positions (from 0), and the query of each set."""

    name: CodeOfSets
    keys: Float[np.ndarray, "position dimension"]
    sets: Int[np.ndarray, "set member"]
    queries: Float[np.ndarray, "set dimension"]

    @cached_property
    def exact_scores(self) -> ExactScores:
        return exact_scores(self.keys, self.queries, self.sets)


def exact_scores(
    keys: Float[np.ndarray, "position dimension"],
    queries: Float[np.ndarray, "set dimension"],
    sets: Int[np.ndarray, "set member"],
) -> ExactScores:
    """Return bounds of the scores of all keys for all sets, exactly; one more key is zero, as that of BOS is."""
    scores, bits = products(queries, keys)
    on = np.take_along_axis(scores, sets, axis=1)
    off = np.ones(scores.shape, dtype=bool)
    np.put_along_axis(off, sets, values=False, axis=1)
    return ExactScores(
        low=fraction(on.min(), bits),
        high=fraction(on.max(), bits),
        off=fraction(max([0, *scores[off]]), bits),
        size=sets.shape[1],
        others=len(keys) + 1 - sets.shape[1],
        dimensions=keys.shape[1],
        bound=float((np.abs(queries) @ np.abs(keys).T).max(initial=0.0)),
    )


def min_gap_of_moments(length: int, sparsity: int) -> float:
    """Return a lower bound on the gap of `moments` for every set, rounded downwards by ball arithmetic."""
    from flint import arb, fmpq

    gap = arb(fmpq(2**sparsity, comb(2 * sparsity, sparsity)))
    for d in range(sparsity):
        gap *= 1 - (2 * arb.pi() * fmpq(d // 2 + 1, length)).cos()
    return float(np.nextafter(float(gap.lower()), -np.inf))


# The codes


def set_code(
    name: CodeOfSets, length: int, sets: Sets, *, accuracy: float, width: int | None = None, seed: int = 0
) -> SetCode:
    """Return a code for the given sets; queries are rounded so that scores move by at most `accuracy`."""
    if name not in get_args(CodeOfSets):
        raise BuildRefused(f"the codes of sets are {', '.join(get_args(CodeOfSets))}, not {name!r}")
    sparsity = sets.shape[1]
    if name == "moments":
        angles = 2 * np.pi * np.outer(np.arange(length), np.arange(1, sparsity + 1)) / length
        keys = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        return SetCode(name, keys, sets, _moment_queries(length, sets))
    if name == "trivial":
        members = np.zeros((len(sets), length))
        np.put_along_axis(members, sets, 1.0, axis=1)
        one_hot = length <= len(sets)
        keys, queries = (np.eye(length), members) if one_hot else (members.T, np.eye(len(sets)))
        return SetCode(name, keys, sets, queries)
    if name == "superimposed":
        keys = superimposed_keys(length, code_size(length, sparsity))
        return SetCode(name, keys, sets, np.minimum(keys[sets].sum(axis=1), 1.0))
    rng = np.random.default_rng(seed)
    size = width_of(name, length, sparsity, len(sets)) if width is None else width
    keys = rng.choice([-1.0, 1.0], (length, size)) if name == "signs" else _unit_vectors(rng, length, size)
    queries = _programmed(keys, sets) if name == "units" else _least_squares(keys, sets)
    step = 2.0 ** -bits_of(keys, accuracy)
    return SetCode(name, keys, sets, np.round(queries / step) * step)


def bits_of(keys: Floats, accuracy: float) -> int:
    r"""Return the fractional bits $b$ of queries for an accuracy of scores of $\max_j \|u_j\|_1 2^{-b-1}$."""
    return max(0, ceil(log2(np.abs(keys).sum(axis=1).max() / (2 * accuracy))))


def width_of(name: CodeOfSets, length: int, sparsity: int, sets: int) -> int:
    """Return the dimensions of a code of a number of sets by its formula."""
    if name == "moments":
        return 2 * sparsity
    if name == "trivial":
        return min(length, sets)
    if name == "superimposed":
        return code_size(length, sparsity).width
    return max(1, ceil(DIMENSIONS_PER_Q_LN_N[name] * sparsity * log(length)))


def _unit_vectors(rng: np.random.Generator, length: int, size: int) -> Floats:
    keys = rng.standard_normal((length, size))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    return np.round(keys * 2.0**KEY_BITS) / 2.0**KEY_BITS


def _least_squares(keys: Floats, sets: Sets) -> Floats:
    chosen = keys[sets]  # [set, member, dimension]
    gram = chosen @ chosen.transpose(0, 2, 1)
    if (np.linalg.matrix_rank(gram) < sets.shape[1]).any():
        return np.zeros((len(sets), keys.shape[1]))  # no query will do, and `exact_scores` shows it
    combined: Floats = chosen * np.linalg.solve(gram, np.ones((*sets.shape, 1)))
    return np.asarray(combined.sum(axis=1))


def _programmed(keys: Floats, sets: Sets) -> Floats:
    from scipy.optimize import linprog

    size = keys.shape[1]
    queries = np.zeros((len(sets), size))
    for number, members in enumerate(sets):
        off = np.delete(keys, members, axis=0)
        solution = linprog(
            np.eye(size + 1)[-1],
            A_ub=np.column_stack([off, -np.ones(len(off))]),
            b_ub=np.zeros(len(off)),
            A_eq=np.column_stack([keys[members], np.zeros(len(members))]),
            b_eq=np.ones(len(members)),
            bounds=[(-MAX_QUERY_COORDINATE, MAX_QUERY_COORDINATE)] * size + [(0.0, 1.0)],
            method="highs",
        )
        if solution.x is not None:
            queries[number] = solution.x[:-1]
    return queries


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


# Products without rounding: floats are binary fractions, and so are sums of products


def to_integers(array: Floats) -> tuple[IntegerArray, int]:
    r"""Return integers $n$ and the least $b$ with $x = n / 2^b$; Python integers where int64 is too short.

    >>> to_integers(np.array([0.5, -1.25, 3.0]))
    (array([ 2, -5, 12]), 2)
    """
    ratios = [number.as_integer_ratio() for number in array.ravel().tolist()]
    bits = max((denominator.bit_length() - 1 for _, denominator in ratios), default=0)
    integers = [numerator << bits + 1 - denominator.bit_length() for numerator, denominator in ratios]
    short = max(map(abs, integers), default=0) < 2**INT64_BITS
    return np.array(integers, dtype=np.int64 if short else object).reshape(array.shape), bits


def products(left: Float[np.ndarray, "row n"], right: Float[np.ndarray, "column n"]) -> tuple[IntegerArray, int]:
    r"""Return $\text{left}\,\text{right}^\top$ exactly, as integers over $2^b$.

    >>> numerators, bits = products(np.array([[0.1, 0.2]]), np.array([[3.0, -1.0]]))
    >>> Fraction(numerators[0, 0], 2**bits) == 3 * Fraction(0.1) - Fraction(0.2)
    True
    """
    a, abits = to_integers(left)
    b, bbits = to_integers(right)
    largest = int(abs(a).max(initial=1)) * int(abs(b).max(initial=1)) * left.shape[1]
    if largest < 2**MANTISSA_BITS:  # every partial sum is a whole number that a float holds
        return np.rint(a.astype(np.float64) @ b.astype(np.float64).T).astype(np.int64), abits + bbits
    if largest < 2**INT64_BITS:
        return a.astype(np.int64) @ b.astype(np.int64).T, abits + bbits
    return a.astype(object) @ b.astype(object).T, abits + bbits


def fraction(number: int | np.integer, bits: int) -> Fraction:
    """Return an integer over a power of 2."""
    return Fraction(int(number), 2**bits)
