"""The scores of a head, for all contents of queries and keys: by position, by contents, and their largest error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Arrays, Bools, Floats, Ints, Matrix
from vitrify.certification.margins.values import ROUNDOFF, Stretch, Undecided, distinct
from vitrify.certification.precision.formats import Format
from vitrify.net.attention import allowed_keys
from vitrify.net.sparse import dense
from vitrify.net.transformer import Head

MAX_CONTENTS = 1 << 13  # contents of a query or a key
ALL = slice(None)
MAX_VALUE_SIZE = 1 << 11  # larger value vectors are not enumerated


@dataclass(frozen=True, eq=False)
class Keys:
    """All keys of a stretch: vectors by position, contents, and the values that go with each contents.

    `values` is None where they are too long or too many to be written out. `agreed` numbers the one value of a
    contents, wherever the key is; -1 where there is not just one.
    """

    stretch: Stretch
    places: Floats
    contents: Floats
    values: tuple[Floats, ...] | None
    agreed: Ints

    @classmethod
    def of(
        cls, stretch: Stretch, w_k: Floats, b_k: Floats, value: Matrix, b_v: Floats, known: dict[bytes, int]
    ) -> Keys:
        """From the maps to keys and to values; `known` numbers the values of all keys of a head."""
        places, width = stretch.at_places(w_k, b_k), w_k.shape[1]
        try:
            if value.shape[1] > MAX_VALUE_SIZE:
                raise Undecided("values are too long to be written out")
            both = stretch.contents(np.hstack([w_k, dense(value)]), most=8 * MAX_CONTENTS)
        except Undecided:
            contents = stretch.contents(w_k, most=MAX_CONTENTS)
            return cls(stretch, places, contents, None, np.full(len(contents), -1))
        placed = distinct(np.asarray(stretch.at_places(dense(value), b_v)))
        contents, group = np.unique(both[:, :width], axis=0, return_inverse=True)
        group = group.ravel()
        if len(contents) > MAX_CONTENTS:
            raise Undecided(f"{len(contents)} contents of a key are too many to compare")
        order = np.argsort(group, kind="stable")
        split = np.split(both[order, width:], np.flatnonzero(np.diff(group[order])) + 1)
        values = tuple(distinct((rows[:, None] + placed[None]).reshape(-1, value.shape[1])) for rows in split)
        agreed = [known.setdefault(rows.tobytes(), len(known)) if len(rows) == 1 else -1 for rows in values]
        return cls(stretch, places, contents, values, np.array(agreed))


class Scores:
    """The scores of a head for one stretch of queries, times beta; `delta` is how far errors can move one.

    Scores that differ by no more than `rounding` are taken to be tied. `noise` is `delta` without the rounding of the
    last sums of this analysis: where it is 0, a run rounds nothing.
    """

    def __init__(
        self,
        head: Head,
        part: Arrays,
        queries: Stretch,
        stretches: Sequence[Stretch],
        value: Matrix,
        b_v: Floats,
        arithmetic: Format,
    ) -> None:
        """From the arrays of one head: W_Q, b_Q, W_K, b_K, beta, and b_rel or None; and its map to values."""
        self.head, self.queries, self.arithmetic = head, queries, arithmetic
        beta, w_q, w_k = part["beta"], dense(part["W_Q"]), dense(part["W_K"])
        self.places: Floats = queries.at_places(w_q, part["b_Q"]) * beta
        self.contents: Floats = queries.contents(w_q, most=MAX_CONTENTS) * beta
        size, moved = (
            np.abs(self.places).max(axis=0) + np.abs(self.contents).max(axis=0),
            abs(beta) * queries.moved(w_q),
        )
        own = abs(beta) * arithmetic.linear(queries, part["W_Q"], part["b_Q"], "queries")
        moved = moved + own + arithmetic.times(beta) * (size + moved + own)
        moved = moved + arithmetic.least * (moved > 0)
        keys, delta, largest, rounded = [], 0.0, 0.0, 0.0
        known: dict[bytes, int] = {}
        for stretch in stretches:
            stretch_keys = Keys.of(stretch, w_k, part["b_K"], value, b_v, known)
            k_size = np.abs(stretch_keys.places).max(axis=0) + np.abs(stretch_keys.contents).max(axis=0)
            k_moved = stretch.moved(w_k) + arithmetic.linear(stretch, part["W_K"], part["b_K"], "keys")
            rounded = max(rounded, _rounded(arithmetic, size + moved, k_size + k_moved))
            keys.append(stretch_keys)
            delta = max(delta, float(moved @ k_size + size @ k_moved + moved @ k_moved))
            largest = max(largest, float(size @ k_size))
        self.keys = tuple(keys)
        self.bias: Floats | None = None if head.window is None else part["b_rel"]
        if self.bias is not None:
            largest += float(np.abs(self.bias).max(initial=0.0))
            lost = float(arithmetic.lost(self.bias).max(initial=0.0))
            rounded += lost + arithmetic.roundoff * (largest + delta + rounded)
        arithmetic.fits(largest + delta + rounded, "scores")
        rounding = 4 * ROUNDOFF * (w_q.shape[1] + 4) * largest
        self.delta, self.noise = float(delta + rounded + rounding), float(delta + rounded)
        self.rounding, self.largest = float(4 * rounding), float(largest)

    @property
    def fixed(self) -> bool:
        """Return whether positions alone decide the scores."""
        return len(self.contents) == 1 and all(len(keys.contents) == 1 for keys in self.keys)

    def fixed_scores(self, keys: Keys, some: slice, of: slice) -> Floats:
        """The scores [query, key] where positions alone decide them; -inf where a key is not seen."""
        scores = self.by_position(keys, some, of) + ((self.places[some] + self.contents) @ keys.contents[0])[:, None]
        scores += (keys.places[of] @ self.contents[0])[None]
        return np.where(self.allowed(keys, some, of), scores, -np.inf)

    @property
    def count(self) -> int:
        """Return the largest number of keys that a query sees; the sums of a sparsemax also run over all others."""
        count = sum(len(keys.stretch) for keys in self.keys)
        return count if self.head.window is None or self.head.attention == "sparsemax" else min(count, self.head.window)

    def allowed(self, keys: Keys, some: slice = ALL, of: slice = ALL) -> Bools:
        """Which of some keys [query, key] some queries see."""
        return np.asarray(allowed_keys(self.head, self.queries.positions[some], keys.stretch.positions[of]))

    def by_position(self, keys: Keys, some: slice = ALL, of: slice = ALL) -> Floats:
        """The part of the scores [query, key] that positions alone give, of some queries and some keys."""
        scores = self.places[some] @ keys.places[of].T
        if self.bias is not None:
            offset = self.queries.positions[some, None] - keys.stretch.positions[None, of]
            scores = scores + self.bias[np.clip(offset, 0, len(self.bias) - 1)]
        return scores

    def alike(self) -> list[Ints]:
        """The contents of the query by number, those together whose races differ only in the names of the contents."""
        ranked = []
        for keys in self.keys:
            by_position, by_query = self.places @ keys.contents.T, self.contents @ keys.places.T
            if not _separable(by_position, self.rounding) or not _separable(by_query, self.rounding):
                return [np.array([number]) for number in range(len(self.contents))]
            ranked.append(np.sort(self.by_contents(keys), axis=1) + by_query[:, :1])
        relative = np.hstack(ranked)
        relative = np.round((relative - relative.max(axis=1, keepdims=True)) / max(4 * self.rounding, 1e-300))
        _, group = np.unique(relative, axis=0, return_inverse=True)
        return [np.flatnonzero(group.ravel() == number) for number in range(int(group.max()) + 1)]

    def by_contents(self, keys: Keys) -> Floats:
        """The part of the scores [contents of the query, contents of the key] that contents alone give."""
        return np.asarray(self.contents @ keys.contents.T + self.places[:1] @ keys.contents.T)


def _rounded(arithmetic: Format, query: Floats, key: Floats) -> float:
    """Return the rounding error of a product of a query and a key of these sizes."""
    both = query * key
    terms = np.array(float(np.count_nonzero(both)))
    return float(arithmetic.summed(both.sum(), terms, (np.ones(()), np.ones(()))))


def _separable(table: Floats, slack: float) -> bool:
    """Return whether a table is a sum of a function of the row and one of the column."""
    rest = table - table[:1] - table[:, :1] + table[:1, :1]
    return bool(np.abs(rest).max(initial=0.0) <= slack)
