"""Legal values: what the parts of a space can add up to must be what its kind allows, coordinate by coordinate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.certify.values import Factor, Floats, Ints, Stretch, Undecided
from vitrify.net.labels import SpaceLabel

LEGAL = 1e-6  # how far a computed ideal value may be from a legal one, by the rounding of weights


def legal(label: SpaceLabel, stretch: Stretch, *, language: bool) -> tuple[Stretch, str | None]:
    """Refuse a space that may hold something else than its kind allows.

    Whole numbers that a language keeps within their range are cut to it; the note says so.
    """
    dims = np.array(label.dims)
    mine = [factor for factor in stretch.factors if np.isin(factor.dims, dims).any()]
    if label.kind.tag == "reals":
        return stretch, None
    if not all(factor.finite for factor in mine):
        raise Undecided(f"{label.name!r} may hold any number within bounds: several keys may share the weight")
    plain = [factor for factor in mine if not factor.units]
    mixed = _mixed(stretch, dims, mine)
    if stretch.name == "tokens":
        for factor in plain:
            own = np.flatnonzero(np.isin(factor.dims, dims) & ~np.isin(factor.dims, mixed))
            _check(label, factor.written_out()[:, own], whole=label.kind.tag == "circle" and len(own) == len(dims))
        _check_sums(label, stretch, mixed)
    if label.kind.tag == "integers" and language and not len(mixed):
        return _cut(label, stretch, plain)
    return stretch, None


def _mixed(stretch: Stretch, dims: Ints, mine: list[Factor]) -> Ints:
    """The dimensions in which several parts add up, or a part and what the position gives."""
    parts = np.zeros(stretch.places.shape[1], dtype=np.int64)
    for factor in mine:
        parts[factor.dims] += 1
    parts += stretch.places.any(axis=0)
    return dims[parts[dims] > 1] if len(mine) else dims[stretch.places[:, dims].any(axis=0)]


def _check_sums(label: SpaceLabel, stretch: Stretch, mixed: Ints) -> None:
    """The same where parts add up: all sums of one value of each."""
    groups = [mixed] if label.kind.tag == "circle" and len(mixed) else [mixed[[at]] for at in range(len(mixed))]
    for group in groups:
        pick = np.zeros((stretch.places.shape[1], len(group)))
        pick[group, np.arange(len(group))] = 1.0
        placed = np.unique(stretch.places[:, group], axis=0)
        sums = (stretch.contents(pick)[:, None] + placed[None]).reshape(-1, len(group))
        _check(label, sums, whole=len(group) == len(label.dims))


def _check(label: SpaceLabel, points: Floats, *, whole: bool) -> None:
    """Each coordinate of a code must be one that codes have, whatever the others are; a point must be on its circle."""
    if not points.size:
        return
    tag = label.kind.tag
    if tag == "circle":
        far = label.kind.deviation(points)[:, None] if whole else np.full((1, 1), np.inf)
    elif tag == "integers":
        if np.abs(points - np.round(points)).max(initial=0.0) > LEGAL:
            raise Undecided(f"{label.name!r} may hold numbers that are not whole")
        return
    else:
        codes = (-1.0, 0.0, 1.0) if tag == "bits" else (0.0, 1.0)
        far = np.min([np.abs(points - code) for code in codes], axis=0)
    if far.max(initial=0.0) > LEGAL:
        bad = np.round(points[int(far.max(axis=1).argmax())], 6).tolist()
        raise Undecided(f"{label.name!r} may hold {bad}, which is no legal value")


def _cut(label: SpaceLabel, stretch: Stretch, plain: list[Factor]) -> tuple[Stretch, str | None]:
    """Whole numbers within the range that the label gives, where a language keeps them there."""
    low, high, factors, note = label.kind.low, label.kind.high, [], None
    for factor in stretch.factors:
        new = factor
        if factor in plain:
            points = factor.written_out()
            inside = ((points >= low - LEGAL) & (points <= high + LEGAL)).all(axis=1)
            if not inside.any():
                raise Undecided(f"{label.name!r} never holds a number between {low:g} and {high:g}")
            if not inside.all():
                note = f"{label.name!r} stays between {low:g} and {high:g}"
                new = Factor.of(factor.name, factor.dims, points[inside])
        factors.append(new)
    return replace(stretch, factors=tuple(factors)), note
