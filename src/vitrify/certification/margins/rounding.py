r"""Rounding of a head in a floating-point format: in its attention weights, and from values to residual stream.

The best key has weight $e^0 = 1$ before weights are divided by their sum, exactly. If no other key wins with it, the
others add up to the leak $L$. Each rounding on the way is then at most $u$ of the result, but also at most what it
would take to undo the step (1, the value itself, and the sum so far are numbers of the format), which is of the order
of $L$: a head that leaks nothing loses nothing, however many keys there are. Keys that share their weight lose up to
$\gamma$ of the number of keys.
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Arrays, Bools, Floats, Matrix
from vitrify.certification.margins.scores import Scores
from vitrify.certification.margins.values import ROUNDOFF, Stretch, Undecided, reads
from vitrify.certification.precision.formats import Format, column_sums, each, uneven
from vitrify.net.sparse import dense

MAX_EXPONENT = 500.0  # exponents are capped here: far too much weight leaks
MAX_SUM_ERROR = 0.25  # relative; a sum of weights that is further off is not divided by
EXPONENTIAL_ROUNDINGS = 16  # that an exponential and the steps around it count for


class ValuePath:
    """The way from the values of a head to the dimensions `dims` that it writes, and the sum over all heads of a block.

    It writes $x$ `value` + `bias` of a key with the residual stream $x$.
    """

    def __init__(self, arithmetic: Format, part: Arrays, all_heads: Matrix) -> None:
        """From the arrays of a head, and W_O of all heads of its block (`all_heads`)."""
        dims = np.flatnonzero(reads(part["W_O"].T))
        out = part["W_O"][:, dims]
        self.arithmetic, self.dims = arithmetic, dims
        self.value, self.bias = part["W_V"] @ out, np.asarray(part["b_V"] @ out)
        columns = [np.asarray(dense(all_heads[place][:, dims])) for place in range(all_heads.shape[0])]
        odd, low = (np.max(flags, axis=0) for flags in zip(*map(uneven, columns), strict=True))
        self.products = odd, low
        self.terms: Floats = np.sum([column_sums(each(c, lambda w: (w != 0).astype(float))) for c in columns], axis=0)
        self.w_v, self.b_v, self.w_o = part["W_V"], part["b_V"], np.asarray(dense(out))

    def error(self, scores: Scores, leak: float, *, shared: bool, span: float = 0.0) -> Floats:
        """Return the rounding error of each dimension that the head writes; `span` is the range of its scores."""
        fmt, count, value_error = self.arithmetic, scores.count, np.zeros(len(self.b_v))
        held = np.zeros(len(self.b_v))
        for keys in scores.keys:
            value_error = np.maximum(value_error, fmt.linear(keys.stretch, self.w_v, self.b_v, "values"))
            held = np.maximum(held, keys.stretch.reach(abs(self.w_v)) + np.abs(self.b_v))
        mixed = self._mixed(scores, leak, shared, span)
        z = value_error * (1 + mixed + 2 * leak) + mixed * held + (mixed > 0) * count * fmt.least * (1 + held)
        size, lost = (held + z) @ np.abs(self.w_o), (held + z) @ fmt.lost(self.w_o)
        fmt.fits(size, "outputs of heads")
        rounded = fmt.summed(size + lost, self.terms, self.products)
        rounded = rounded + (self.terms > 1) * 2 * ROUNDOFF * size  # the analysis multiplies W_V by W_O first
        return np.asarray(z @ np.abs(self.w_o) + lost + rounded)

    def _mixed(self, scores: Scores, leak: float, shared: bool, span: float) -> float:
        """Return the relative error of a mean of values."""
        fmt, count = self.arithmetic, scores.count
        long = float(fmt.gamma(count))
        general = np.inf
        if long <= MAX_SUM_ERROR:
            general = float(fmt.gamma(2 * count + EXPONENTIAL_ROUNDINGS + 2 * span)) / (1 - long)
        if not shared and scores.head.attention != "softmax":
            return 0.0  # one key has weight 1, exactly
        if not shared:
            spilled = 8 * leak * (1 + long)
            return min(general, spilled + min(2 * fmt.roundoff, spilled))
        if long > MAX_SUM_ERROR:
            raise Undecided(f"sums of {count} keys are too long for {fmt.name}")
        return general + (_sparsemax_moved(scores, 0.0) if scores.head.attention == "sparsemax" else 0.0)


def spilled(scores: Scores, behind: Floats) -> Floats:
    """Return the most weight of keys whose scores lie `behind` (by negative numbers) the best, relative to its own."""
    fmt = scores.arithmetic
    exponents = np.minimum((behind + 2 * scores.delta) * (1 - fmt.roundoff), MAX_EXPONENT)
    return np.asarray(np.exp(exponents) * (1 + EXPONENTIAL_ROUNDINGS * fmt.roundoff) + fmt.least)


def leaked_weight(
    name: str, scores: Scores, gap: float, apart: float | None, tail: float = np.inf
) -> tuple[float, float]:
    """Return the weight that losing keys can get, and the weight that can move between tied winners.

    `apart` is the largest difference of scores that are taken to be tied; None where it does not matter who wins.
    `tail` bounds the weight of all losing keys together, where it is known better than by their number and the gap.
    """
    fmt, head, delta, count = scores.arithmetic, scores.head, scores.delta, scores.count
    margin, leak, uneven = gap - 2 * delta, 0.0, 0.0
    if head.attention == "softmax":
        leak = min(float((count - 1) * spilled(scores, -np.array(gap))), tail) if np.isfinite(gap) else 0.0
        uneven = 0.0 if apart is None else _softmax_moved(scores, apart)
    elif head.attention == "sparsemax":
        sums = count * (2 * fmt.roundoff + float(fmt.gamma(count)))
        if margin < 1 or 1 - 1 / margin <= sums:
            raise Undecided(f"{name!r}: a margin of {margin:.3g} is less than the {1 + sums:.6g} that sparsemax needs")
        uneven = 0.0 if apart is None else _sparsemax_moved(scores, apart)
    else:
        rounded = _tie_rounding(scores)
        if np.isfinite(gap) and gap - rounded <= head.resolution:
            raise Undecided(f"{name!r}: {fmt.name} may treat scores that differ by {gap:.3g} as equal")
        if apart is not None and scores.noise > 0 and apart + rounded > head.resolution:
            raise Undecided(f"{name!r}: errors of {delta:.3g} may separate keys that are tied")
    if leak + uneven >= 0.5:
        raise Undecided(f"{name!r}: {leak + uneven:.3g} of the weight may leak (gap {gap:.3g}, error {delta:.3g})")
    return leak, uneven


def moved_weight(name: str, scores: Scores, table: Floats, allowed: Bools) -> float:
    """Return the weight that errors can move between keys whose scores `table` [query, key] positions alone decide."""
    if scores.head.attention == "softmax":
        return _softmax_moved(scores, 0.0)
    if scores.head.attention == "sparsemax":
        return _sparsemax_moved(scores, 0.0)
    behind = np.where(allowed, table, -np.inf).max(axis=1, keepdims=True) - table
    near = np.abs(behind - scores.head.resolution) <= _tie_rounding(scores)
    if scores.noise > 0 and (near & allowed).any():
        raise Undecided(f"{name!r}: errors of {scores.delta:.3g} may separate keys that are tied")
    return 0.0


def _softmax_moved(scores: Scores, apart: float) -> float:
    """Return the share by which a weight of a softmax may change."""
    moved = apart + 2 * scores.delta + EXPONENTIAL_ROUNDINGS * scores.arithmetic.roundoff
    return float(np.expm1(min(moved, MAX_EXPONENT)))


def _sparsemax_moved(scores: Scores, apart: float) -> float:
    """Return the weight of a sparsemax that errors of scores and the rounding of sums can move."""
    fmt, count = scores.arithmetic, scores.count
    slack = 8 * count * fmt.gamma(count + 8) + 2 * fmt.roundoff * (scores.largest + scores.delta)
    return 2 * count * float(apart + scores.delta + slack)


def _tie_rounding(scores: Scores) -> float:
    """Return by how much the difference of two scores, as a hard head compares it, may be off."""
    size = scores.largest + scores.delta + scores.head.resolution
    return 2 * scores.delta + 2 * scores.arithmetic.roundoff * size


def pads_fit(fmt: Format, pads: Stretch, part: Arrays) -> None:
    """Refuse a head whose queries or scores at the pads may be too large for a format."""
    query, key = (pads.reach(abs(part[f"W_{x}"])) + np.abs(part[f"b_{x}"]) for x in "QK")
    fmt.fits(query, "queries")
    fmt.fits(abs(part["beta"]) * query * np.maximum(key, 1.0), "scores")
    fmt.fits(float(abs(part["beta"]) * query @ key), "scores")


def embedding_error(fmt: Format, embed: Matrix, placed: Floats) -> Floats:
    """Return the error of token plus position embeddings: of storing them, and of adding where both are not 0."""
    lost = _largest(fmt.lost(embed)) + _largest(fmt.lost(placed))
    token, place = _largest(abs(embed)), _largest(np.abs(placed))
    size = token + place + lost
    fmt.fits(size, "the embedding")
    return np.where((token != 0) & (place != 0), lost + fmt.roundoff * size, lost)


def _largest(matrix: Matrix) -> Floats:
    """Return the largest entry of every column of a non-negative matrix."""
    return np.asarray(dense(matrix.max(axis=0))).ravel() if matrix.shape[0] else np.zeros(matrix.shape[1])
