r"""Margins of attention: for every word at once, by how much the right keys lead, and what a head can therefore write.

The score of key $j$ with contents $b$ for query $i$ with contents $a$ is $s = \text{base}_{ia}(j) +
\text{contents}_{ia}(b)$. Whatever the word, the best score is at least the *floor* $\max_j \min_b s$. So a score that
can win is at least the floor, and the *gap* is the least distance from such a score to the next lower one that another
key can have at the same time. The word may end at the query, so later keys do not raise the floor. Errors move a score
by at most $\delta$; with the gap $g$ (after $\beta$) the losing keys together get at most $(n-1)e^{-(g-2\delta)}$ of
the weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.certify.margin_rounding import MOST, Way, astray, part_ties, sparse_moved
from vitrify.certify.margin_scores import Bools, Scores
from vitrify.certify.values import ROUNDOFF, Factor, Floats, Ints, Stretch, Undecided, distinct, is_unit_map, rows_of
from vitrify.net.attention import weigh
from vitrify.net.labels import Looks
from vitrify.net.sparse import dense

MOST_SCORES = 1 << 29  # scores that may be compared for one head
MOST_HELD = 1 << 22  # of them that are held at once
PAD, SEVERAL, NOBODY = -(1 << 40), -(2 << 40), -(3 << 40)  # no offsets: a pad is read, or it depends, or no key is seen


@dataclass(eq=False)
class Race:
    """Who wins: the least gap, whether winners with different values may tie, and which contents can win, by keys.

    `shared` says that several keys may win at once, whatever their values; `nobody` that a query may see no key.
    `offsets` [query] is how far back the winner is, where that does not depend on the word; `rise` and `fall` are the
    least and the most that the score grows from one token to the next with the same contents.
    """

    gap: float
    ties: bool
    winners: tuple[Bools, ...]
    offsets: Ints
    shared: bool = False
    nobody: bool = False
    rise: float = np.inf
    fall: float = -np.inf


def race(scores: Scores) -> Race:
    """Compare all scores that can meet: for every query, every key, and all contents of both.

    Queries whose races differ only in names are tried once. Names matter where different values tie: then all are.
    """
    found = _race(scores, scores.alike())
    if found.ties and any(keys.agreed.max() >= 0 for keys in scores.keys):
        return _race(scores, [np.array([number]) for number in range(len(scores.contents))])
    return found


def _race(scores: Scores, groups: list[Ints]) -> Race:
    entries = sum(len(keys.stretch) * len(keys.contents) for keys in scores.keys)
    if len(scores.queries) * len(groups) * entries > MOST_SCORES:
        raise Undecided(f"{len(scores.queries)} × {len(groups)} × {entries} scores are too many to compare")
    winners = tuple(np.zeros(len(keys.contents), dtype=bool) for keys in scores.keys)
    found = Race(np.inf, False, winners, np.full(len(scores.queries), NOBODY))
    ahead = [tuple(np.zeros(len(keys.contents), dtype=bool) for keys in scores.keys) for _ in groups]
    step = max(1, MOST_HELD // max(1, scores.count))
    for start in range(0, len(scores.queries), step):
        some = slice(start, min(start + step, len(scores.queries)))
        open_ = _clear(scores, found, ahead[0], some) if scores.fixed else np.arange(some.start, some.stop)
        if len(open_):
            _some(scores, found, groups, ahead, some, open_)
    for group, mine in zip(groups, ahead, strict=True):
        _rename(scores, found, mine, group)
    return found


def _clear(scores: Scores, found: Race, ahead: tuple[Bools, ...], some: slice) -> Ints:
    """Races that positions alone decide and that one key wins by more than rounding, all at once; those left over."""
    first, end = scores.queries.start + some.start, scores.queries.start + some.stop
    if scores.head.mask in ("none", "after"):
        return np.arange(some.start, some.stop)
    first = 0 if scores.head.window is None else first - scores.head.window + 1
    tables, owners = [], []
    for keys in scores.keys:
        of = slice(max(0, first - keys.stretch.start), max(0, end - keys.stretch.start))
        tables.append(scores.fixed_scores(keys, some, of))
        owners.append(keys.stretch.positions[of])
    whole, owner, row = np.hstack(tables), np.concatenate(owners), np.arange(some.stop - some.start)
    if not len(owner):
        return np.arange(some.start, some.stop)
    top, best = whole.argmax(axis=1), whole.max(axis=1)
    whole[row, top] = -np.inf
    with np.errstate(invalid="ignore"):
        lead = best - whole.max(axis=1)  # nan where no key is seen
    clear = lead > scores.rounding
    for number, table in enumerate(tables):
        if table.shape[1]:
            ahead[number][:] |= bool((table.max(axis=1) >= best - scores.rounding)[clear].any())
    with np.errstate(invalid="ignore"):
        steps = np.diff(tables[-1], axis=1)[clear]
    steps = steps[np.isfinite(steps)]
    found.rise = min(found.rise, float(steps.min(initial=np.inf)))
    found.fall = max(found.fall, float(steps.max(initial=-np.inf)))
    found.gap = min(found.gap, float(lead[clear].min(initial=np.inf)))
    back = np.where(owner[top] >= scores.keys[-1].stretch.start, scores.queries.positions[some] - owner[top], PAD)
    found.offsets[some] = np.where(clear, back, found.offsets[some])
    return np.asarray(some.start + np.flatnonzero(~clear))


def _some(
    scores: Scores, found: Race, groups: list[Ints], wins: list[tuple[Bools, ...]], some: slice, left: Ints
) -> None:
    """The races of some queries, those that are left, with all their contents."""
    allowed = [scores.allowed(keys, some) for keys in scores.keys]
    placed = [scores.by_place(keys, some) for keys in scores.keys]
    for group, ahead in zip(groups, wins, strict=True):
        query = scores.contents[group[0]]
        shifts = [keys.places @ query for keys in scores.keys]
        for i in left.tolist():
            runners, row = [], i - some.start
            for number, keys in enumerate(scores.keys):
                seen = np.flatnonzero(allowed[number][row])
                if len(seen):
                    base = (placed[number][row] + shifts[number])[seen]
                    runners.append((number, base, keys.contents @ (scores.places[i] + query), seen))
            found.nobody = found.nobody or not runners or scores.head.mask == "after"
            if runners:
                _meet(scores, found, ahead, i, runners)


def _rename(scores: Scores, found: Race, ahead: tuple[Bools, ...], group: Ints) -> None:
    """The contents that can win for the queries of a group, from those that can for its first: rank by rank."""
    for keys, wins, mine in zip(scores.keys, found.winners, ahead, strict=True):
        if len(group) == 1:
            wins |= mine
            continue
        order = np.argsort(scores.by_contents(keys)[group], axis=1, kind="stable")
        for row in order:
            wins[row[mine[order[0]]]] = True


def _meet(
    scores: Scores, found: Race, ahead: tuple[Bools, ...], i: int, runners: list[tuple[int, Floats, Floats, Ints]]
) -> None:
    """One race: a query with its contents against all keys with theirs; `ahead` collects the contents that can win."""
    slack = scores.rounding
    floor = -np.inf  # what the keys give that are always there: those up to the query
    for number, base, contents, seen in runners:
        last = scores.queries.start + i - scores.keys[number].stretch.start
        there = base if seen[-1] <= last else base[seen <= last]
        floor = max(floor, float(there.max(initial=-np.inf) + contents.min()))
    values, owners, agreed = [], [], []
    for number, base, contents, seen in runners:
        keys = scores.keys[number]
        ahead[number][base.max() + contents >= floor - slack] = True
        different, which = np.unique(contents, return_inverse=True)
        low, high = np.full(len(different), np.iinfo(np.int64).max), np.full(len(different), -1)
        np.minimum.at(low, which, keys.agreed)
        np.maximum.at(high, which, keys.agreed)
        table = base[:, None] + different[None]
        close = np.flatnonzero(table > floor - found.gap - slack)
        at, content = np.divmod(close, len(different))
        values.append(table.ravel()[close])
        owners.append(keys.stretch.start + seen[at])
        agreed.append(np.where(low == high, low, -1)[content])
    value, owner, says = np.concatenate(values), np.concatenate(owners), np.concatenate(agreed)
    order = np.argsort(-value, kind="stable")
    value, owner, says = value[order], owner[order], says[order]
    winning = int((value >= floor - slack).sum())
    here = np.unique(owner[:winning])
    place = int(scores.queries.start + i - here[0]) if here[0] >= scores.keys[-1].stretch.start else PAD
    place = place if len(here) == 1 else SEVERAL
    found.offsets[i] = place if found.offsets[i] in (NOBODY, place) else SEVERAL
    number, base, _, seen = runners[-1]
    if number == len(scores.keys) - 1 and len(seen) > 1:
        steps = np.diff(base)
        found.rise, found.fall = min(found.rise, float(steps.min())), max(found.fall, float(steps.max()))
    group = np.concatenate([[0], np.cumsum(np.diff(value) < -slack)])  # scores that are equal up to rounding
    first = np.searchsorted(group, np.arange(int(group[-1]) + 1))
    owned, says_low = (np.minimum.reduceat(x, first) for x in (owner, says))
    single = owned == np.maximum.reduceat(owner, first)
    harmless = single | ((says_low == np.maximum.reduceat(says, first)) & (says_low >= 0))
    candidates = int(group[winning - 1]) + 1
    found.shared = found.shared or not bool(single[:candidates].all())
    found.ties = found.ties or not bool(harmless[:candidates].all())
    found.gap = min(found.gap, _least(value[first], owned, single, candidates))


def _least(top: Floats, owned: Ints, single: Bools, candidates: int) -> float:
    """The least distance of the first scores, sorted downwards, to a lower one that another key has."""
    here, best = np.arange(candidates), np.inf
    for step in range(1, len(top)):
        here = here[here + step < len(top)]
        there = here + step
        other = ~(single[here] & single[there] & (owned[here] == owned[there]))
        best = min(best, float((top[here] - top[there])[other].min(initial=np.inf)))
        here = here[~other]  # a key does not compete with itself: look further
        if not len(here):
            break
    return best


@dataclass(frozen=True, eq=False)
class Written:
    """What a head adds: factors on some dimensions, a row [position, dims] that positions alone give, and the error."""

    factors: tuple[Factor, ...]
    places: Floats
    error: Floats
    leak: float = 0.0


def selected(
    name: str, scores: Scores, found: Race, value: Any, bias: Floats, dims: Ints, way: Way | None = None
) -> Written:
    """What a head that chooses its keys writes into dimensions, by the map `value` [stream, dims].

    `way` is how a format computes that.
    """
    leak, uneven = _astray(name, scores, found)
    spread = _spread(scores, value)
    passed = np.max([keys.stretch.moved(value) for keys in scores.keys], axis=0)
    error = passed + (leak + uneven) * (spread + 2 * passed) + 8 * ROUNDOFF * scores.count * (spread + 1)
    if way:
        one = scores.head.attention == "hard" and scores.head.ties != "average"  # of tied keys
        error = error + way.error(scores, leak, shared=found.shared and not one)
    here = np.zeros((len(scores.queries), len(dims)))
    ahead = [(keys, wins) for keys, wins in zip(scores.keys, found.winners, strict=True) if wins.any()]
    if not ahead:  # no key is ever seen
        return Written((), here, error, leak)
    if any(keys.values is None for keys, _ in ahead):
        return Written((_copied(name, [keys.stretch for keys, _ in ahead], value, bias, dims),), here, error, leak)
    nothing = [np.zeros((1, len(dims)))] if found.nobody else []
    sets = [distinct(np.vstack([v for v, w in zip(keys.values or (), wins, strict=True) if w])) for keys, wins in ahead]
    if not found.ties or (scores.head.attention == "hard" and scores.head.ties != "average"):
        return Written((Factor.of(name, dims, distinct(np.vstack([*sets, *nothing]))),), here, error, leak)
    if len(scores.keys[0].stretch) == 1 and all(len(points) == 1 for points in sets):
        count = np.arange(scores.count)[:, None]  # so many tokens share with the pad, or they are alone
        means = [sets[0]] if len(sets) == 1 else [(sets[0] + count * sets[1]) / (1 + count), sets[1]]
        return Written((Factor.of(name, dims, distinct(np.vstack([*means, *nothing]))),), here, error, leak)
    every = np.vstack([*sets, *nothing])
    return Written((Factor.box(name, dims, every.min(axis=0), every.max(axis=0)),), here, error, leak)


def _astray(name: str, scores: Scores, found: Race) -> tuple[float, float]:
    """The weight that losing keys can get, and what errors can move between winners with different values."""
    head, gap, delta = scores.head, found.gap, scores.delta
    if scores.arithmetic:
        leak, uneven = astray(name, scores, gap, found.ties)
    elif head.attention == "softmax":
        leak = (scores.count - 1) * float(np.exp(min(2 * delta - gap, 0.0))) if np.isfinite(gap) else 0.0
        uneven = float(np.expm1(min(2 * delta, 1.0))) if found.ties else 0.0
    elif head.attention == "sparsemax":
        if gap - 2 * delta < 1:
            raise Undecided(f"{name!r}: a lead of {gap - 2 * delta:.3g} is less than the 1 that sparsemax needs")
        leak, uneven = 0.0, 2 * delta * scores.count if found.ties else 0.0
    else:
        leak, uneven = 0.0, 0.0
        if np.isfinite(gap) and gap - 2 * delta <= head.resolution:
            raise Undecided(f"{name!r}: scores that differ by {gap:.3g} may count as equal")
        if 2 * delta > max(head.resolution, 4 * scores.rounding):
            raise Undecided(f"{name!r}: errors of {delta:.3g} may part keys that are tied")
    if leak + uneven >= 0.5:
        raise Undecided(f"{name!r}: {leak + uneven:.3g} of the weight may go astray (gap {gap:.3g}, error {delta:.3g})")
    return leak, uneven


def _spread(scores: Scores, value: Any) -> Floats:
    """How far apart two values can be, by dimension."""
    low, high = [], []
    for keys in scores.keys:
        least, most = keys.stretch.bounds()
        centre, radius = np.asarray((least + most) / 2 @ value), np.asarray((most - least) / 2 @ abs(value))
        low.append(centre - radius)
        high.append(centre + radius)
    return np.asarray(np.max(high, axis=0) - np.min(low, axis=0))


def _copied(name: str, winners: Sequence[Stretch], value: Any, bias: Floats, dims: Ints) -> Factor:
    """A copy of one large one-hot space: unit vectors go to unit vectors, or to nothing."""
    for stretch in winners:
        touched = stretch.touched(value)
        images = [rows_of(value, f.dims) if f.units else f.points @ rows_of(value, f.dims) for f in touched]
        moved = np.any(bias) or np.any(stretch.at_places(value, bias))
        if moved or len(touched) > 1 or not all(is_unit_map(image) for image in images):
            raise Undecided(f"{name!r} writes {len(bias)} numbers that are no copy of one-hots")
    return Factor.unit_vectors(name, dims, void=True)


def averaged(name: str, scores: Scores, value: Any, bias: Floats, dims: Ints, way: Way | None = None) -> Written:
    """What a head writes whose weights positions alone decide: sums of values with fixed weights."""
    from vitrify.certify.margin_sums import weighted

    if not scores.fixed:
        raise Undecided(f"{name!r} weighs its keys by what they hold")
    if scores.head.mask in ("none", "after"):
        raise Undecided(f"{name!r} averages over a word whose length is not known")
    if scores.head.window == 1:  # a single key: nothing is averaged
        return selected(name, scores, race(scores), value, bias, dims, way)
    tables = [
        scores.by_place(keys)
        + ((scores.places + scores.contents) @ keys.contents[0])[:, None]
        + (keys.places @ scores.contents[0])[None]
        for keys in scores.keys
    ]
    weight = weigh(scores.head, np.hstack(tables), np.hstack([scores.allowed(keys) for keys in scores.keys]))
    if (np.count_nonzero(weight, axis=1) <= 1).all():
        return selected(name, scores, race(scores), value, bias, dims, way)
    spread = _spread(scores, value)
    error = np.max([keys.stretch.moved(value) for keys in scores.keys], axis=0)
    soft = float(np.expm1(min(2 * scores.delta, MOST)))
    uneven = {"softmax": soft, "sparsemax": 2 * scores.delta * scores.count, "hard": 0.0}
    if way and scores.head.attention == "hard":
        part_ties(name, scores)
    elif scores.head.attention == "hard" and 2 * scores.delta > max(scores.head.resolution, 4 * scores.rounding):
        raise Undecided(f"{name!r}: errors of {scores.delta:.3g} may part keys that are tied")
    moved = uneven[scores.head.attention]
    moved = sparse_moved(scores) if way and scores.head.attention == "sparsemax" else moved
    error = error + moved * (spread + 2 * error) + 16 * ROUNDOFF * scores.count * (spread + 1)
    if way:
        error = error + way.error(scores, 0.0, shared=True, span=2 * (scores.largest + scores.delta))
    here, factors, at = np.zeros((len(scores.queries), len(dims))), [], 0
    for keys in scores.keys:
        share = weight[:, at : at + len(keys.stretch)]
        here += share @ np.asarray(dense(keys.stretch.at_places(value, bias)))
        at += len(keys.stretch)
        if keys.stretch.touched(value):
            for column, dim in enumerate(dims.tolist()):
                values = keys.stretch.contents(dense(value[:, [column]]))[:, 0]
                factor, off = weighted(name, share, values, dim)
                factors.append(factor)
                error[column] += off
    return Written(tuple(factors), here, error)


def looks(scores: Scores, found: Race) -> str:
    """Where a head that chooses its keys looks, in words."""
    if not scores.fixed:
        return "by contents" + (", shared" if found.ties else "")
    offsets = set(found.offsets.tolist()) - {NOBODY}
    back = sorted(offsets - {PAD})
    if not back:
        return "a pad" if offsets else "nowhere"
    if SEVERAL in back:
        return "several, by position"
    return (f"{back[0]} back" if len(back) == 1 else "by position") + (", else a pad" if PAD in offsets else "")


def check_looks(name: str, wanted: Looks, scores: Scores, found: Race) -> None:
    """Refuse a head that does not look where its label says."""
    slack = scores.rounding
    if isinstance(wanted, int):
        there = scores.queries.positions - wanted >= scores.keys[-1].stretch.start
        right = np.where(there, found.offsets == wanted, (found.offsets == PAD) | (found.offsets == NOBODY))
        if not right.all():
            at = int(scores.queries.positions[int(np.argmin(right))])
            raise Undecided(f"{name!r} does not look {wanted} back at position {at}")
        return
    level = found.fall <= slack and found.rise >= -slack
    alone = len(scores.keys[-1].stretch) < 2 or found.rise > found.fall  # never two tokens to compare
    if wanted == "all" or scores.head.ties != "average":
        ties = {"all": "average", "last": "right", "first": "left"}[wanted]
        right = level and scores.head.ties == ties
    else:
        right = found.rise > slack if wanted == "last" else found.fall < -slack
    if not right and not alone:
        raise Undecided(f"{name!r} does not prefer the {wanted} of equal matches everywhere")
