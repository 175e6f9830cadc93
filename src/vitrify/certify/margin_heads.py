r"""Margins of attention: for every word at once, by how much the right keys lead, and what a head can therefore write.

The score of key $j$ with contents $b$ for query $i$ with contents $a$ is $s = \text{base}_{ia}(j) +
\text{contents}_{ia}(b)$. Whatever the word, the best score is at least the *floor* $\max_j \min_b s$. So a score that
can win is at least the floor, and the *gap* is the least distance from such a score to the next lower one that another
key can have at the same time. Errors move a score by at most $\delta$; with the gap $g$ (after $\beta$) all losing keys
together get at most $(n-1)e^{-(g-2\delta)}$ of the weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.values import Factor, Floats, Stretch, Undecided, distinct, is_unit_map, rows_of, sums
from vitrify.net.attention import allowed_keys, weigh
from vitrify.net.sparse import dense, is_sparse
from vitrify.net.transformer import Head

U = 2.0**-53
MOST_SCORES = 1 << 29  # scores that may be compared for one head
FEW_KEYS = 10  # weighted sums of so few keys are gone through one by one
LARGE = 1 << 11  # vectors longer than this are not written out


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of a head for one stretch of queries: base [query, contents of the query, key], contents of keys."""

    head: Head
    queries: Stretch
    keys: tuple[Stretch, ...]
    q_places: Floats
    q_contents: Floats
    k_places: tuple[Floats, ...]
    k_contents: tuple[Floats, ...]
    bias: Floats | None
    delta: float
    rounding: float
    largest: float

    @classmethod
    def of(cls, head: Head, part: dict[str, Any], queries: Stretch, keys: Sequence[Stretch]) -> Scores:
        """From the arrays of one head: W_Q, b_Q, W_K, b_K, beta, and b_rel or None."""
        beta = abs(part["beta"])
        w_q, w_k = dense(part["W_Q"]) * part["beta"], dense(part["W_K"])
        q_places = queries.at_places(w_q, part["b_Q"] * part["beta"])
        q_contents = queries.contents(w_q, most=1 << 12)
        q_size = np.abs(q_places).max(axis=0) + np.abs(q_contents).max(axis=0)
        q_moved = queries.moved(w_q)
        k_places, k_contents, delta, largest = [], [], 0.0, 0.0
        for stretch in keys:
            places, contents = stretch.at_places(w_k, part["b_K"]), stretch.contents(w_k, most=1 << 12)
            size, moved = np.abs(places).max(axis=0) + np.abs(contents).max(axis=0), stretch.moved(w_k)
            k_places.append(places)
            k_contents.append(contents)
            delta = max(delta, float(q_moved @ size + q_size @ moved + q_moved @ moved))
            largest = max(largest, float(q_size @ size))
        bias = None if head.window is None else part["b_rel"]
        largest += 0.0 if bias is None else float(np.abs(bias[np.isfinite(bias)]).max(initial=0.0))
        rounding = 4 * U * (w_q.shape[1] + 4) * largest + U * beta
        return cls(
            head, queries, tuple(keys), q_places, q_contents, tuple(k_places), tuple(k_contents), bias,
            delta + rounding, 4 * rounding, largest,
        )  # fmt: skip

    @property
    def fixed(self) -> bool:
        """Whether the scores depend on positions alone, up to a term that all keys of a query share."""
        return len(self.q_contents) == 1 and all(len(contents) == 1 for contents in self.k_contents)

    def allowed(self, stretch: Stretch) -> NDArray[np.bool_]:
        """Which keys [query, key] of a stretch the queries see."""
        positions = self.queries.start + np.arange(len(self.queries))
        return np.asarray(allowed_keys(self.head, positions, stretch.start + np.arange(len(stretch))))

    def by_place(self, number: int) -> Floats:
        """The part of the scores [query, key] that positions alone give."""
        stretch = self.keys[number]
        scores = self.q_places @ self.k_places[number].T
        if self.bias is not None:
            rows = self.queries.start + np.arange(len(self.queries))
            offset = rows[:, None] - (stretch.start + np.arange(len(stretch)))[None]
            scores = scores + self.bias[np.clip(offset, 0, len(self.bias) - 1)]
        return scores

    def queries_to_try(self) -> Floats:
        """Contents of the query that lead to different races; those that shift or rename all scores alike are one."""
        if len(self.q_contents) == 1:
            return self.q_contents
        tables = []
        for places, contents in zip(self.k_places, self.k_contents, strict=True):
            by_place, by_query = self.q_places @ contents.T, self.q_contents @ places.T
            if not _separable(by_place, self.rounding) or not _separable(by_query, self.rounding):
                return self.q_contents
            row = np.sort(self.q_contents @ contents.T + by_place[:1], axis=1)
            tables.append(row + by_query[:, :1] - by_query[:1, :1])
        whole = np.hstack(tables)
        whole = whole - whole.max(axis=1, keepdims=True)
        _, first = np.unique(np.round(whole / max(self.rounding, 1e-300) / 4), axis=0, return_index=True)
        return self.q_contents[np.sort(first)]

    def races(self) -> Iterator[tuple[int, list[tuple[Floats, Floats, NDArray[np.int64]]]]]:
        """For every query and contents: base by key, contents, and numbers of the keys, stretch by stretch."""
        tried = self.queries_to_try()
        entries = sum(len(k) * len(c) for k, c in zip(self.k_places, self.k_contents, strict=True))
        if len(self.queries) * len(tried) * entries > MOST_SCORES:
            raise Undecided(f"{len(self.queries)} × {len(tried)} × {entries} scores are too many to compare")
        allowed = [self.allowed(stretch) for stretch in self.keys]
        placed = [self.by_place(number) for number in range(len(self.keys))]
        for query in tried:
            shifts = [places @ query for places in self.k_places]
            for i in range(len(self.queries)):
                race = []
                for number, stretch in enumerate(self.keys):
                    seen = np.flatnonzero(allowed[number][i])
                    if len(seen):
                        contents = np.unique(self.k_contents[number] @ (self.q_places[i] + query))
                        base = placed[number][i, seen] + shifts[number][seen]
                        race.append((base, contents, stretch.start + seen))
                yield i, race


def _separable(table: Floats, slack: float) -> bool:
    """Whether a table is a sum of a function of the row and one of the column."""
    rest = table - table[:1] - table[:, :1] + table[:1, :1]
    return bool(np.abs(rest).max(initial=0.0) <= slack)


@dataclass(frozen=True, eq=False)
class Race:
    """What was found about who wins: the least gap, whether winners may tie, and which keys can win, by stretch."""

    gap: float
    ties: bool
    winners: tuple[bool, ...]
    offsets: frozenset[int]


def race(scores: Scores) -> Race:
    """Compare all scores that can meet."""
    gap, ties, winners, offsets = np.inf, False, [False] * len(scores.keys), set()
    slack = scores.rounding
    edges = [stretch.start + len(stretch) for stretch in scores.keys]
    for i, stretches in scores.races():
        if not stretches:
            continue
        floor = max(float(base.max() + contents.min()) for base, contents, _ in stretches)
        values, owners = [], []
        for base, contents, keys in stretches:
            table = base[:, None] + contents[None]
            close = table > floor - (gap if np.isfinite(gap) else np.inf) - slack
            values.append(table[close])
            owners.append(np.broadcast_to(keys[:, None], table.shape)[close])
        value, owner = np.concatenate(values), np.concatenate(owners)
        order = np.argsort(-value, kind="stable")
        value, owner = value[order], owner[order]
        winning = value >= floor - slack
        here = np.unique(owner[winning])
        for number, edge in enumerate(edges):
            winners[number] = winners[number] or bool(((here < edge) & (here >= scores.keys[number].start)).any())
        if len(here) == 1:
            offsets.add(int(scores.queries.start + i - here[0]) if here[0] >= scores.keys[-1].start else -1)
        else:
            offsets.add(-2)
        least, tied = _least_gap(value, owner, int(winning.sum()), slack)
        gap, ties = min(gap, least), ties or tied
    return Race(float(gap), ties, tuple(winners), frozenset(offsets))


def _least_gap(value: Floats, owner: NDArray[np.int64], winning: int, slack: float) -> tuple[float, bool]:
    """The least distance of a winning score (the first ones, sorted downwards) to a lower one of another key."""
    if len(value) < 2:
        return np.inf, False
    group = np.concatenate([[0], np.cumsum(np.diff(value) < -slack)])  # scores that are equal up to rounding
    count = int(group[-1]) + 1
    first = np.searchsorted(group, np.arange(count))
    top = value[first]
    lowest_owner = np.minimum.reduceat(owner, first)
    single = lowest_owner == np.maximum.reduceat(owner, first)
    candidates = int(group[winning - 1]) + 1
    tied = bool((~single[:candidates]).any())
    best = np.inf
    for step in range(1, count):
        here, there = np.arange(candidates), np.arange(candidates) + step
        inside = there < count
        if not inside.any():
            break
        here, there = here[inside], there[inside]
        others = ~(single[here] & single[there] & (lowest_owner[here] == lowest_owner[there]))
        if others.any():
            best = min(best, float((top[here] - top[there])[others].min()))
        if others.all() or (not others.any() and step > count):
            break
    return best, tied


@dataclass(frozen=True, eq=False)
class Written:
    """What a head adds to a stretch: factors on some dimensions, a fixed row for every position, and the error."""

    factors: tuple[Factor, ...]
    places: Floats  # [position, dims]
    error: Floats  # [dims]


def selected(name: str, scores: Scores, found: Race, value: Any, bias: Floats, dims: Floats) -> tuple[Written, float]:
    """What a head that chooses its keys writes into dimensions, by the map `value` [stream, dims]; and its leak."""
    head, gap, delta = scores.head, found.gap, scores.delta
    keys = sum(len(stretch) for stretch in scores.keys)
    width = len(bias)
    spread = _spread(scores.keys, value)
    error = np.max([stretch.moved(value) for stretch in scores.keys], axis=0)
    uneven = 0.0
    if head.attention == "softmax":
        leak = (keys - 1) * float(np.exp(-(gap - 2 * delta))) if np.isfinite(gap) else 0.0
        uneven = float(np.expm1(2 * delta)) if found.ties else 0.0
    elif head.attention == "sparsemax":
        if gap - 2 * delta < 1:
            raise Undecided(f"{name!r}: a lead of {gap - 2 * delta:.3g} is less than the 1 that sparsemax needs")
        leak, uneven = 0.0, 2 * delta * keys if found.ties else 0.0
    else:
        if np.isfinite(gap) and gap - 2 * delta <= head.resolution or found.ties and 2 * delta > head.resolution:
            raise Undecided(f"{name!r}: errors of {delta:.3g} may change who wins by {gap:.3g}")
        leak = 0.0
    if leak + uneven >= 0.5:
        raise Undecided(f"{name!r}: {leak + uneven:.3g} of the weight may go astray (gap {gap:.3g}, error {delta:.3g})")
    error = error + (leak + uneven) * (spread + 2 * error) + 8 * U * keys * (spread + 1)
    winners = [stretch for stretch, wins in zip(scores.keys, found.winners, strict=True) if wins]
    zero = np.zeros((len(scores.queries), width))
    if not winners:
        return Written((), zero, error), leak
    single = not found.ties or (head.attention == "hard" and head.ties != "average")
    if not single:
        return Written(tuple(_averages(name, winners, value, bias, dims, keys)), zero, error), leak
    if width > LARGE:
        return Written((_large(name, winners, value, bias, dims),), zero, error), leak
    points = [_values(stretch, value, bias) for stretch in winners]
    return Written((Factor.of(name, dims, distinct(np.vstack(points))),), zero, error), leak


def _values(stretch: Stretch, value: Any, bias: Floats) -> Floats:
    """All values that a key of a stretch can have."""
    return sums([distinct(np.asarray(dense(stretch.at_places(value, bias)))), stretch.contents(value)], len(bias))


def _spread(keys: Sequence[Stretch], value: Any) -> Floats:
    """How far apart two values can be, by dimension."""
    low, high = [], []
    for stretch in keys:
        least, most = stretch.bounds()
        size = abs(value)
        middle, half = (least + most) / 2, (most - least) / 2
        centre, radius = np.asarray(middle @ value), np.asarray(half @ size)
        low.append(centre - radius)
        high.append(centre + radius)
    return np.asarray(np.max(high, axis=0) - np.min(low, axis=0))


def _large(name: str, winners: Sequence[Stretch], value: Any, bias: Floats, dims: Floats) -> Factor:
    """A copy of one large one-hot space: unit vectors go to unit vectors, or to nothing."""
    void = False
    for stretch in winners:
        touched = stretch.touched(value)
        if np.any(bias) or np.any(stretch.at_places(value, bias)):
            raise Undecided(f"{name!r} writes {len(bias)} numbers, which are too many to go through")
        for factor in touched:
            rows = rows_of(value, factor.dims)
            image = rows if factor.units else factor.points @ rows
            if len(touched) > 1 or not is_unit_map(image):
                raise Undecided(f"{name!r} writes {len(bias)} numbers that are not a copy of one-hots")
        void = True
    return Factor.unit_vectors(name, dims, void=void)  # type: ignore[arg-type]


def _averages(
    name: str, winners: Sequence[Stretch], value: Any, bias: Floats, dims: Floats, keys: int
) -> Iterator[Factor]:
    """Means of the values of several winners: known where a token has one value and a pad another, else a box."""
    sets = [_values(stretch, value, bias) for stretch in winners]
    if sum(len(stretch) for stretch in winners[:-1]) <= 1 and all(len(points) == 1 for points in sets):
        if len(sets) == 1:
            yield Factor.of(name, dims, sets[0])  # type: ignore[arg-type]
            return
        count = np.arange(keys)[:, None]
        yield Factor.of(name, dims, distinct(np.vstack([(sets[0] + count * sets[1]) / (1 + count), sets[1]])))  # type: ignore[arg-type]
        return
    every = np.vstack(sets)
    yield Factor.box(name, dims, every.min(axis=0), every.max(axis=0))  # type: ignore[arg-type]


def averaged(name: str, scores: Scores, value: Any, bias: Floats, dims: Floats) -> Written:
    """What a head writes whose weights only positions decide: sums of values with fixed weights."""
    if not scores.fixed:
        raise Undecided(f"{name!r} weighs its keys by what they hold")
    head = scores.head
    allowed = np.hstack([scores.allowed(stretch) for stretch in scores.keys])
    points = [scores.by_place(number) for number in range(len(scores.keys))]
    shifts = [
        np.asarray((scores.q_places + scores.q_contents) @ contents[0] + scores.q_contents @ places.T)
        if False
        else (scores.q_places + scores.q_contents[0]) @ contents[0]
        for contents, places in zip(scores.k_contents, scores.k_places, strict=True)
    ]
    table = np.hstack(
        [
            point + shift[:, None] + (places @ scores.q_contents[0])[None]
            for point, shift, places in zip(points, shifts, scores.k_places, strict=True)
        ]
    )
    weight = weigh(head, table, allowed)
    keys = table.shape[1]
    spread = _spread(scores.keys, value)
    error = np.max([stretch.moved(value) for stretch in scores.keys], axis=0)
    if head.attention == "softmax":
        uneven = float(np.expm1(2 * scores.delta))
    elif head.attention == "sparsemax":
        uneven = 2 * scores.delta * keys
    else:
        uneven = 0.0
        if 2 * scores.delta > head.resolution and head.resolution:
            raise Undecided(f"{name!r}: errors of {scores.delta:.3g} may change which keys are tied")
    error = error + uneven * (spread + 2 * error) + 16 * U * keys * (spread + 1)
    given, at = np.zeros((len(scores.queries), len(bias))), 0
    token: Stretch | None = None
    for stretch in scores.keys:
        share = weight[:, at : at + len(stretch)]
        given += share @ np.asarray(dense(stretch.at_places(value, bias)))
        if stretch.touched(value):
            if token is not None:
                raise Undecided(f"{name!r} adds up values of two sorts of positions")
            token, mine = stretch, share
        at += len(stretch)
    if token is None:
        return Written((), given, error)
    factors = []
    for column in range(len(bias)):
        chosen = token.contents(value[:, [column]] if not is_sparse(value) else dense(value[:, [column]]))[:, 0]
        factors.append(_weighted(name, mine, chosen, np.array([dims[column]])))  # type: ignore[arg-type]
    return Written(tuple(factors), given, error)


def _weighted(name: str, weight: Floats, values: Floats, dim: NDArray[np.int64]) -> Factor:
    """All sums of one value per key, times the keys' weights, for any query."""
    low = float((weight.sum(axis=1) * values.min()).min()) if values.min() < 0 else float(weight.sum(1).min() * values.min())
    high = float((weight.sum(axis=1) * values.max()).max()) if values.max() > 0 else float(weight.sum(1).min() * values.max())
    low, high = min(low, float((weight.sum(axis=1) * values.min()).min())), max(high, float((weight.sum(axis=1) * values.max()).max()))
    if len(values) == 1:
        return Factor.of(name, dim, distinct((weight.sum(axis=1) * values[0])[:, None]))
    used = weight > 0
    rows = {tuple(np.sort(row[mask]).tolist()) for row, mask in zip(weight, used, strict=True)}
    if max(map(len, rows)) <= FEW_KEYS:
        points = [sums([w * values[:, None] for w in row], 1) for row in rows]
        return Factor.of(name, dim, distinct(np.vstack(points)))
    equal = {len(row): (row[0], row[-1]) for row in rows if row}
    grains = np.array([least for least, _ in equal.values()])
    if all(most - least <= 1e-9 * most for least, most in equal.values()) and np.ptp(grains) <= 1e-9 * grains.max():
        grain = float(np.median(grains))
        steps = grain * (values - values.min())
        unit = float(steps[steps > 0].min())
        if np.abs(steps / unit - np.round(steps / unit)).max() <= 1e-9:
            first = grain * values.min()
            most = max(equal)
            points_of = []
            for count in sorted({*equal, 0}):
                points_of.append(count * first + unit * np.arange(round(count * (values.max() - values.min()) * grain / unit) + 1))
            if most * len(points_of) < 1 << 26:
                whole = np.concatenate(points_of)
                near = np.round(whole / unit)
                if np.abs(whole / unit - near).max() <= 1e-6:
                    whole = near * unit if abs(unit - round(unit)) > 1e-9 else near * round(unit)
                return Factor.of(name, dim, np.unique(whole)[:, None])
    return Factor.box(name, dim, np.array([low]), np.array([high]))
