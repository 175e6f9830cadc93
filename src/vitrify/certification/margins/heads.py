r"""Margins of attention: for every word at once, the margin of the right keys, and what a head can therefore write.

The score of key $j$ with contents $b$ for query $i$ with contents $a$ is $s = \text{base}_{ia}(j) +
\text{contents}_{ia}(b)$. Whatever the word, the best score is at least the *floor* $\max_j \min_b s$. So a score that
can win is at least the floor, and the *gap* is the least distance from such a score to the next lower one that another
key can have at the same time. The word may end at the query, so later keys do not raise the floor. Errors move a score
by at most $\delta$; with the gap $g$ (after $\beta$) the losing keys together get at most $(n-1)e^{-(g-2\delta)}$ of
the weight; where positions alone decide the scores, at most the sum of $e^{-(g_j-2\delta)}$ over the distances $g_j$
of all their scores. What a run rounds on the way is in `rounding.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Bools, Floats, Ints, Matrix
from vitrify.certification.margins.rounding import ValuePath, leaked_weight, moved_weight, spilled
from vitrify.certification.margins.scores import MAX_VALUE_SIZE, Scores
from vitrify.certification.margins.values import Stretch, Undecided, ValueFactor, distinct, is_unit, rows_of
from vitrify.net.attention import weigh
from vitrify.net.labels import AttendsTo
from vitrify.net.sparse import dense

MAX_SCORES = 1 << 29  # compared for one head; more are refused
MAX_SCORES_HELD = 1 << 22  # in memory at once
ALIKE_ROUNDINGS = 16  # by which a difference of scores may differ between queries that are compared once
PAD, SEVERAL, NO_KEY = (-(1 << 40), -(2 << 40), -(3 << 40))  # a pad wins; it varies; no key is visible


@dataclass(eq=False)
class Selection:
    """Keys that a head selects: the smallest gap, whether winners of different value may tie, the contents that win.

    `shared`: several keys may win at once, whatever their values. `no_key`: some query may see no key. `apart` is the
    largest difference of scores that are taken to be tied.
    `offsets` [query] is how far back the winner is, where that does not depend on the word. `rise` and `fall` are the
    smallest and the largest growth of the score from one token to the next with the same contents. `tail` is the most
    weight that losing keys can get together, where positions alone decide which key wins.
    """

    gap: float
    ties: bool
    winners: tuple[Bools, ...]
    offsets: Ints
    shared: bool = False
    no_key: bool = False
    apart: float = 0.0
    rise: float = np.inf
    fall: float = -np.inf
    tail: float = 0.0


def selection_of(scores: Scores) -> Selection:
    """Compare all scores that can meet: for every query, every key, and all contents of both.

    Queries whose comparisons differ only by a renaming are tried once. Where different values tie, all are tried.
    """
    groups = scores.alike()
    selection = _selection(scores, groups)
    if len(groups) < len(scores.contents):  # queries of one group have the same scores only up to rounding
        selection.gap -= ALIKE_ROUNDINGS * scores.rounding
        selection.apart += ALIKE_ROUNDINGS * scores.rounding
    if selection.ties and any(keys.agreed.max() >= 0 for keys in scores.keys):
        return _selection(scores, [np.array([number]) for number in range(len(scores.contents))])
    return selection


def _selection(scores: Scores, groups: list[Ints]) -> Selection:
    entries = sum(len(keys.stretch) * len(keys.contents) for keys in scores.keys)
    if len(scores.queries) * len(groups) * entries > MAX_SCORES:
        raise Undecided(f"{len(scores.queries)} × {len(groups)} × {entries} scores are too many to compare")
    winners = tuple(np.zeros(len(keys.contents), dtype=bool) for keys in scores.keys)
    selection = Selection(np.inf, False, winners, np.full(len(scores.queries), NO_KEY))
    ahead = [tuple(np.zeros(len(keys.contents), dtype=bool) for keys in scores.keys) for _ in groups]
    step = max(1, MAX_SCORES_HELD // max(1, sum(len(keys.stretch) for keys in scores.keys)))
    for start in range(0, len(scores.queries), step):
        some = slice(start, min(start + step, len(scores.queries)))
        open_ = (
            _decide_by_position(scores, selection, ahead[0], some) if scores.fixed else np.arange(some.start, some.stop)
        )
        if len(open_):
            selection.tail = np.inf
            _decide_by_contents(scores, selection, groups, ahead, some, open_)
    for group, mine in zip(groups, ahead, strict=True):
        _rename(scores, selection, mine, group)
    return selection


def _decide_by_position(scores: Scores, selection: Selection, ahead: tuple[Bools, ...], some: slice) -> Ints:
    """Decide the queries for which positions alone select one key, by more than rounding; return the other queries."""
    first, end = scores.queries.start + some.start, scores.queries.start + some.stop
    if scores.head.mask in ("none", "after"):
        return np.arange(some.start, some.stop)
    first = 0 if scores.head.window is None else first - scores.head.window + 1
    tables, owners = [], []
    for keys in scores.keys:
        of = slice(max(0, first - keys.stretch.start), max(0, end - keys.stretch.start))
        tables.append(scores.fixed_scores(keys, some, of))
        owners.append(keys.stretch.positions[of])
    scored, owner, row = np.hstack(tables), np.concatenate(owners), np.arange(some.stop - some.start)
    if not len(owner):
        return np.arange(some.start, some.stop)
    top, best = scored.argmax(axis=1), scored.max(axis=1)
    scored[row, top] = -np.inf
    with np.errstate(invalid="ignore"):
        margin = best - scored.max(axis=1)  # nan where no key is visible
        losing = spilled(scores, scored - best[:, None]).sum(axis=1)
    clear = margin > scores.rounding
    selection.tail = max(selection.tail, float(losing[clear].max(initial=0.0)))
    for number, table in enumerate(tables):
        if table.shape[1]:
            ahead[number][:] |= bool((table.max(axis=1) >= best - scores.rounding)[clear].any())
    with np.errstate(invalid="ignore"):
        steps = np.diff(tables[-1], axis=1)[clear]
    steps = steps[np.isfinite(steps)]
    selection.rise = min(selection.rise, float(steps.min(initial=np.inf)))
    selection.fall = max(selection.fall, float(steps.max(initial=-np.inf)))
    selection.gap = min(selection.gap, float(margin[clear].min(initial=np.inf)))
    back = np.where(owner[top] >= scores.keys[-1].stretch.start, scores.queries.positions[some] - owner[top], PAD)
    selection.offsets[some] = np.where(clear, back, selection.offsets[some])
    return np.asarray(some.start + np.flatnonzero(~clear))


def _decide_by_contents(
    scores: Scores, selection: Selection, groups: list[Ints], wins: list[tuple[Bools, ...]], some: slice, left: Ints
) -> None:
    """Compare the scores of the queries that are left, with all their contents."""
    allowed = [scores.allowed(keys, some) for keys in scores.keys]
    placed = [scores.by_position(keys, some) for keys in scores.keys]
    for group, ahead in zip(groups, wins, strict=True):
        query = scores.contents[group[0]]
        shifts = [keys.places @ query for keys in scores.keys]
        for i in left.tolist():
            candidates_by_keys, row = [], i - some.start
            for number, keys in enumerate(scores.keys):
                seen = np.flatnonzero(allowed[number][row])
                if len(seen):
                    base = (placed[number][row] + shifts[number])[seen]
                    candidates_by_keys.append((number, base, keys.contents @ (scores.places[i] + query), seen))
            selection.no_key = selection.no_key or not candidates_by_keys or scores.head.mask == "after"
            if candidates_by_keys:
                _compare(scores, selection, ahead, i, candidates_by_keys)


def _rename(scores: Scores, selection: Selection, ahead: tuple[Bools, ...], group: Ints) -> None:
    """Transfer the contents that can win from the first query of a group to the others, rank by rank."""
    for keys, wins, mine in zip(scores.keys, selection.winners, ahead, strict=True):
        if len(group) == 1:
            wins |= mine
            continue
        order = np.argsort(scores.by_contents(keys)[group], axis=1, kind="stable")
        for row in order:
            wins[row[mine[order[0]]]] = True


def _compare(
    scores: Scores,
    selection: Selection,
    ahead: tuple[Bools, ...],
    i: int,
    candidates_by_keys: list[tuple[int, Floats, Floats, Ints]],
) -> None:
    """Compare all keys for one query and its contents; `ahead` collects the contents of keys that can win."""
    slack = scores.rounding
    floor = -np.inf  # the score that the keys up to the query, which are always there, reach at least
    for number, base, contents, seen in candidates_by_keys:
        last = scores.queries.start + i - scores.keys[number].stretch.start
        there = base if seen[-1] <= last else base[seen <= last]
        floor = max(floor, float(there.max(initial=-np.inf) + contents.min()))
    values, owners, agreed = [], [], []
    for number, base, contents, seen in candidates_by_keys:
        keys = scores.keys[number]
        ahead[number][base.max() + contents >= floor - slack] = True
        different, which = np.unique(contents, return_inverse=True)
        low, high = np.full(len(different), np.iinfo(np.int64).max), np.full(len(different), -1)
        np.minimum.at(low, which, keys.agreed)
        np.maximum.at(high, which, keys.agreed)
        table = base[:, None] + different[None]
        close = np.flatnonzero(table > floor - selection.gap - slack)
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
    selection.offsets[i] = place if selection.offsets[i] in (NO_KEY, place) else SEVERAL
    number, base, _, seen = candidates_by_keys[-1]
    if number == len(scores.keys) - 1 and len(seen) > 1:
        steps = np.diff(base)
        selection.rise = min(selection.rise, float(steps.min()))
        selection.fall = max(selection.fall, float(steps.max()))
    group = np.concatenate([[0], np.cumsum(np.diff(value) < -slack)])  # scores that are equal up to rounding
    first = np.searchsorted(group, np.arange(int(group[-1]) + 1))
    owned, says_low = (np.minimum.reduceat(x, first) for x in (owner, says))
    single = owned == np.maximum.reduceat(owner, first)
    harmless = single | ((says_low == np.maximum.reduceat(says, first)) & (says_low >= 0))
    candidates = int(group[winning - 1]) + 1
    lowest = value[np.append(first[1:], len(value))[:candidates] - 1]
    selection.apart = max(selection.apart, float((value[first[:candidates]] - lowest).max()))
    selection.shared = selection.shared or not bool(single[:candidates].all())
    selection.ties = selection.ties or not bool(harmless[:candidates].all())
    selection.gap = min(selection.gap, _least(value[first], owned, single, candidates))


def _least(top: Floats, owned: Ints, single: Bools, candidates: int) -> float:
    """The least distance of the first scores, sorted downwards, to a lower one that another key has."""
    here, best = np.arange(candidates), np.inf
    for step in range(1, len(top)):
        here = here[here + step < len(top)]
        there = here + step
        other = ~(single[here] & single[there] & (owned[here] == owned[there]))
        best = min(best, float((top[here] - top[there])[other].min(initial=np.inf)))
        here = here[~other]  # a key does not compete with itself: take the next one
        if not len(here):
            break
    return best


@dataclass(frozen=True, eq=False)
class Written:
    """Output of a head: factors on some dimensions, what positions alone give [position, dims], and the error."""

    factors: tuple[ValueFactor, ...]
    places: Floats
    error: Floats
    leak: float = 0.0


def selected(name: str, scores: Scores, selection: Selection, path: ValuePath) -> Written:
    """Return what a head that selects its keys writes."""
    dims = path.dims
    apart = selection.apart if selection.ties else None
    leak, uneven = leaked_weight(name, scores, selection.gap, apart, selection.tail)
    spread = _spread(scores, path.value)
    passed = np.max([keys.stretch.moved(path.value) for keys in scores.keys], axis=0)
    one = scores.head.attention == "hard" and scores.head.ties != "average"  # one of the tied keys wins
    error = passed + (leak + uneven) * (spread + 2 * passed)
    error = error + path.error(scores, leak, shared=selection.shared and not one)
    here = np.zeros((len(scores.queries), len(dims)))
    ahead = [(keys, wins) for keys, wins in zip(scores.keys, selection.winners, strict=True) if wins.any()]
    if not ahead:  # no key is ever visible
        return Written((), here, error, leak)
    if any(keys.values is None for keys, _ in ahead):
        winners = [keys.stretch for keys, _ in ahead]
        if len(dims) <= MAX_VALUE_SIZE and not selection.ties and not selection.no_key:
            return Written(_each_copied(name, winners, path), here, error, leak)
        return Written((_copied(name, winners, path),), here, error, leak)
    nothing = [np.zeros((1, len(dims)))] if selection.no_key else []
    sets = [distinct(np.vstack([v for v, w in zip(keys.values or (), wins, strict=True) if w])) for keys, wins in ahead]
    if not selection.ties or one:
        return Written((ValueFactor.of(name, dims, distinct(np.vstack([*sets, *nothing]))),), here, error, leak)
    if len(scores.keys[0].stretch) == 1 and all(len(points) == 1 for points in sets):
        count = np.arange(scores.count)[:, None]  # tokens that share the weight with the pad, or among themselves
        means = [sets[0]] if len(sets) == 1 else [(sets[0] + count * sets[1]) / (1 + count), sets[1]]
        return Written((ValueFactor.of(name, dims, distinct(np.vstack([*means, *nothing]))),), here, error, leak)
    every = np.vstack([*sets, *nothing])
    return Written((ValueFactor.box(name, dims, every.min(axis=0), every.max(axis=0)),), here, error, leak)


def _spread(scores: Scores, value: Matrix) -> Floats:
    """Return the largest distance of two values, by dimension."""
    low, high = [], []
    for keys in scores.keys:
        least, most = keys.stretch.bounds()
        center, radius = np.asarray((least + most) / 2 @ value), np.asarray((most - least) / 2 @ abs(value))
        low.append(center - radius)
        high.append(center + radius)
    return np.asarray(np.max(high, axis=0) - np.min(low, axis=0))


def _each_copied(name: str, winners: Sequence[Stretch], path: ValuePath) -> tuple[ValueFactor, ...]:
    """Return a factor for each dimension that a head writes, taken to be independent."""
    factors = []
    for column, dim in zip(np.asarray(dense(path.value)).T[:, :, None], path.dims.tolist(), strict=True):
        placed = [distinct(stretch.at_places(column, np.zeros(1))) for stretch in winners]
        pairs = zip(placed, winners, strict=True)
        sums = np.vstack([(each[:, None] + stretch.contents(column)).reshape(-1, 1) for each, stretch in pairs])
        factors.append(ValueFactor.of(name, [dim], distinct(sums) + path.bias[path.dims == dim]))
    return tuple(factors)


def _copied(name: str, winners: Sequence[Stretch], path: ValuePath) -> ValueFactor:
    """Return the factor of a head that copies one large one-hot space: unit vectors map to unit vectors, or to 0."""
    value, bias = path.value, path.bias
    for stretch in winners:
        touched = stretch.touched(value)
        images = [rows_of(value, f.dims) if f.units else f.points @ rows_of(value, f.dims) for f in touched]
        moved = np.any(bias) or np.any(stretch.at_places(value, bias))
        if moved or len(touched) > 1 or not all(is_unit(image) for image in images):
            raise Undecided(f"{name!r} writes {len(bias)} numbers that are no copy of one-hots")
    return ValueFactor.unit_vectors(name, path.dims, void=True)


def averaged(name: str, scores: Scores, path: ValuePath) -> Written:
    """Return what a head writes whose weights depend on positions alone: sums of values with fixed weights."""
    from vitrify.certification.margins.sums import weighted

    if not scores.fixed:
        raise Undecided(f"{name!r} weighs its keys by their contents")
    if scores.head.mask in ("none", "after"):
        raise Undecided(f"{name!r} averages over a word whose length is not known")
    if scores.head.window == 1:  # a single key: nothing is averaged
        return selected(name, scores, selection_of(scores), path)
    tables = [
        scores.by_position(keys)
        + ((scores.places + scores.contents) @ keys.contents[0])[:, None]
        + (keys.places @ scores.contents[0])[None]
        for keys in scores.keys
    ]
    table, allowed = np.hstack(tables), np.hstack([scores.allowed(keys) for keys in scores.keys])
    weight = weigh(scores.head, table, allowed)
    if (np.count_nonzero(weight, axis=1) <= 1).all():
        return selected(name, scores, selection_of(scores), path)
    value, dims = path.value, path.dims
    error = np.max([keys.stretch.moved(value) for keys in scores.keys], axis=0)
    error = error + moved_weight(name, scores, table, allowed) * (_spread(scores, value) + 2 * error)
    error = error + path.error(scores, 0.0, shared=True, span=2 * (scores.largest + scores.delta))
    here, factors, at = np.zeros((len(scores.queries), len(dims))), [], 0
    for keys in scores.keys:
        share = weight[:, at : at + len(keys.stretch)]
        here += share @ np.asarray(dense(keys.stretch.at_places(value, path.bias)))
        at += len(keys.stretch)
        if keys.stretch.touched(value):
            for column, dim in enumerate(dims.tolist()):
                values = keys.stretch.contents(dense(value[:, [column]]))[:, 0]
                factor, off = weighted(name, share, values, dim)
                factors.append(factor)
                error[column] += off
    return Written(tuple(factors), here, error)


def target_of(scores: Scores, selection: Selection) -> str:
    """Describe where a head that selects its keys attends to."""
    if not scores.fixed:
        return "by contents" + (", shared" if selection.ties else "")
    offsets = set(selection.offsets.tolist()) - {NO_KEY}
    back = sorted(offsets - {PAD})
    if not back:
        return "a pad" if offsets else "nowhere"
    if SEVERAL in back:
        return "several, by position"
    return (f"{back[0]} back" if len(back) == 1 else "by position") + (", else a pad" if PAD in offsets else "")


def check_target(name: str, wanted: AttendsTo, scores: Scores, selection: Selection) -> None:
    """Refuse a head that does not attend to the position that its label names."""
    slack = scores.rounding
    if isinstance(wanted, int):
        there = scores.queries.positions - wanted >= scores.keys[-1].stretch.start
        right = np.where(there, selection.offsets == wanted, (selection.offsets == PAD) | (selection.offsets == NO_KEY))
        if not right.all():
            at = int(scores.queries.positions[int(np.argmin(right))])
            raise Undecided(f"{name!r} does not attend {wanted} back at position {at}")
        return
    level = selection.fall <= slack and selection.rise >= -slack
    alone = len(scores.keys[-1].stretch) < 2 or selection.rise > selection.fall  # never two tokens to compare
    if wanted == "all" or scores.head.ties != "average":
        ties = {"all": "average", "last": "right", "first": "left"}[wanted]
        right = level and scores.head.ties == ties
    else:
        right = selection.rise > slack if wanted == "last" else selection.fall < -slack
    if not right and not alone:
        raise Undecided(f"{name!r} does not prefer the {wanted} of equal matches everywhere")
