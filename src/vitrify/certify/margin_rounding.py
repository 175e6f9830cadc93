r"""What a format does to a head: how far its weights stray, and what is lost on the way from values to the stream.

The best key has weight $e^0 = 1$ before weights are divided by their sum, exactly. If no other key wins with it, the
others add up to the leak $L$. Each rounding on the way is then at most $u$ of the result, but also at most what it
would take to undo the step (1, the value itself, and the sum so far are numbers of the format), which is of the order
of $L$: a head that leaks nothing loses nothing, however many keys there are. Keys that share their weight lose up to
$\gamma$ of the number of keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.certify.formats import Format, column_sums, each, uneven
from vitrify.certify.margin_scores import Scores
from vitrify.certify.values import Floats, Ints, Stretch, Undecided
from vitrify.net.sparse import dense

MOST = 500.0  # exponents are cut off here: far too much weight goes astray
LONG = 0.25  # relative error beyond which a sum of weights is not divided by
EXPONENTIAL = 16  # roundings that an exponential and the steps around it count for


@dataclass(frozen=True, eq=False)
class Way:
    """From the values of a head to dimensions: its maps, and how the products of all heads of a block are added up."""

    arithmetic: Format
    w_v: Any
    b_v: Floats
    w_o: Floats
    terms: Floats
    products: tuple[Floats, Floats]

    @classmethod
    def of(cls, arithmetic: Format, part: Mapping[str, Any], every: Any, dims: Ints) -> Way:
        """From the arrays of one head, and W_O of all heads of its block."""
        columns = [np.asarray(dense(every[place][:, dims])) for place in range(every.shape[0])]
        odd, low = (np.max(flags, axis=0) for flags in zip(*map(uneven, columns), strict=True))
        terms = np.sum([column_sums(each(c, lambda w: (w != 0).astype(float))) for c in columns], axis=0)
        return cls(arithmetic, part["W_V"], part["b_V"], np.asarray(dense(part["W_O"][:, dims])), terms, (odd, low))

    def error(self, scores: Scores, leak: float, *, shared: bool, span: float = 0.0) -> Floats:
        """What rounding adds to each dimension that the head writes; `span` is how far apart scores are that count."""
        found, count, own = self.arithmetic, scores.count, np.zeros(len(self.b_v))
        held = np.zeros(len(self.b_v))
        for keys in scores.keys:
            own = np.maximum(own, found.linear(keys.stretch, self.w_v, self.b_v, "values"))
            held = np.maximum(held, keys.stretch.reach(abs(self.w_v)) + np.abs(self.b_v))
        mixed = self._mixed(scores, leak, shared, span)
        z = own * (1 + mixed + 2 * leak) + mixed * held + (mixed > 0) * count * found.least * (1 + held)
        size, lost = (held + z) @ np.abs(self.w_o), (held + z) @ found.lost(self.w_o)
        found.fits(size, "what heads write")
        return np.asarray(z @ np.abs(self.w_o) + lost + found.summed(size + lost, self.terms, self.products))

    def _mixed(self, scores: Scores, leak: float, shared: bool, span: float) -> float:
        """The relative error of a mean of values."""
        found, count = self.arithmetic, scores.count
        long = float(found.gamma(count))
        usual = float(found.gamma(2 * count + EXPONENTIAL + 2 * span)) / (1 - long) if long <= LONG else np.inf
        if not shared and scores.head.attention != "softmax":
            return 0.0  # one key has weight 1, exactly
        if not shared:
            spilled = 8 * leak * (1 + long)
            return min(usual, spilled + min(2 * found.roundoff, spilled))
        if long > LONG:
            raise Undecided(f"sums of {count} keys are too long for {found.name}")
        return usual + (sparse_moved(scores) if scores.head.attention == "sparsemax" else 0.0)


def astray(name: str, scores: Scores, gap: float, ties: bool) -> tuple[float, float]:
    """The weight that losing keys can get in a format, and what can move between winners with different values."""
    found, head, delta, count = scores.arithmetic, scores.head, scores.delta, scores.count
    assert found is not None
    u, lead = found.roundoff, gap - 2 * delta
    if head.attention == "softmax":
        one = np.exp(min(-lead * (1 - u), MOST)) * (1 + EXPONENTIAL * u) + found.least
        uneven = np.expm1(min(2 * delta + EXPONENTIAL * u, MOST)) if ties else 0.0
        return float((count - 1) * one) if np.isfinite(gap) else 0.0, float(uneven)
    if head.attention == "sparsemax":
        sums = count * (2 * u + found.gamma(count))
        if lead < 1 or 1 - 1 / lead <= sums:
            raise Undecided(f"{name!r}: a lead of {lead:.3g} is not enough for sparsemax in {found.name}")
        return 0.0, sparse_moved(scores) if ties else 0.0
    rounded = 2 * u * (scores.largest + delta + head.resolution)
    if np.isfinite(gap) and lead - rounded <= head.resolution:
        raise Undecided(f"{name!r}: {found.name} may take scores that differ by {gap:.3g} for equal")
    if ties:
        part_ties(name, scores)
    return 0.0, 0.0


def sparse_moved(scores: Scores) -> float:
    """How much weight of a sparsemax errors of scores and the rounding of sums can move."""
    found, count = scores.arithmetic, scores.count
    assert found is not None
    slack = 8 * count * found.gamma(count + 8) + 2 * found.roundoff * (scores.largest + scores.delta)
    return 2 * count * float(scores.delta + slack)


def part_ties(name: str, scores: Scores) -> None:
    """Refuse a hard head whose tied keys a format may tell apart; where nothing is rounded, nothing is."""
    found, resolution = scores.arithmetic, scores.head.resolution
    assert found is not None
    far = 2 * scores.delta + 2 * found.roundoff * (scores.largest + scores.delta + resolution)
    if scores.noise > 0 and far > resolution:
        raise Undecided(f"{name!r}: {found.name} may tell keys apart that are tied")


def pads_fit(found: Format, pads: Stretch, part: Mapping[str, Any]) -> None:
    """Refuse a head whose queries or scores at the pads may be too large for a format."""
    query, key = (pads.reach(abs(part[f"W_{x}"])) + np.abs(part[f"b_{x}"]) for x in "QK")
    found.fits(query, "queries")
    found.fits(abs(part["beta"]) * query * np.maximum(key, 1.0), "scores")
    found.fits(float(abs(part["beta"]) * query @ key), "scores")


def embedding_error(found: Format, embed: Any, placed: Floats) -> Floats:
    """What a format loses of the sums of rows of two tables: in storing them, and in adding where both are not 0."""
    lost = _largest(found.lost(embed)) + _largest(found.lost(placed))
    token, place = _largest(abs(embed)), _largest(np.abs(placed))
    size = token + place + lost
    found.fits(size, "the embedding")
    return np.where((token != 0) & (place != 0), lost + found.roundoff * size, lost)


def _largest(matrix: Any) -> Floats:
    """The largest entry of every column of a matrix without negative ones."""
    return np.asarray(dense(matrix.max(axis=0))).ravel() if matrix.shape[0] else np.zeros(matrix.shape[1])
