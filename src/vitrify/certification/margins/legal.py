"""Legal values: each coordinate of a space must have a value that its kind allows, and a circle a point on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.margins.values import Stretch, Undecided, ValueFactor
from vitrify.net.labels import SpaceLabel

LEGAL_TOLERANCE = 1e-6  # distance of a computed ideal value from a legal one, by the rounding of weights


def legal(label: SpaceLabel, stretch: Stretch, *, language: bool) -> tuple[Stretch, str | None]:
    """Raise `Undecided` if a space may hold, at a token, a coordinate that its kind does not allow.

    Integers must be whole. If inputs are words of a language, they are assumed to stay within the range of their label:
    other values are dropped, and the note that is returned says so.
    """
    dims = np.array(label.dims, dtype=np.int64)
    factors_here = stretch.factors_of(dims)
    if label.kind.tag == "reals":
        return stretch, None
    if not all(factor.finite for factor in factors_here):
        raise Undecided(f"{label.name!r} may hold any number within bounds: several keys may share the weight")
    plain = [factor for factor in factors_here if not factor.units]
    mixed = _mixed(stretch, dims, factors_here)
    if stretch.name == "tokens":
        for factor in plain:
            own = np.flatnonzero(np.isin(factor.dims, dims) & ~np.isin(factor.dims, mixed))
            _check(label, factor.written_out()[:, own], complete=label.kind.tag == "circle" and len(own) == len(dims))
        _check_sums(label, stretch, mixed)
    if label.kind.tag == "integers" and language and not len(mixed):
        return _restricted(label, stretch, plain)
    return stretch, None


def _mixed(stretch: Stretch, dims: Ints, factors_here: list[ValueFactor]) -> Ints:
    """Return the dimensions where factors and the position embedding add up; without factors, all that it sets."""
    parts = np.zeros(stretch.places.shape[1], dtype=np.int64)
    for factor in factors_here:
        parts[factor.dims] += 1
    parts += stretch.places.any(axis=0)
    return dims[parts[dims] > 1] if len(factors_here) else dims[stretch.places[:, dims].any(axis=0)]


def _check_sums(label: SpaceLabel, stretch: Stretch, mixed: Ints) -> None:
    """Check all sums of one value of each factor, in the dimensions where they add up."""
    groups = [mixed] if label.kind.tag == "circle" and len(mixed) else [mixed[[at]] for at in range(len(mixed))]
    for group in groups:
        pick = np.zeros((stretch.places.shape[1], len(group)))
        pick[group, np.arange(len(group))] = 1.0
        placed = np.unique(stretch.places[:, group], axis=0)
        sums = (stretch.contents(pick)[:, None] + placed[None]).reshape(-1, len(group))
        _check(label, sums, complete=len(group) == len(label.dims))


def _check(label: SpaceLabel, points: Floats, *, complete: bool) -> None:
    """Refuse points with a coordinate that no code has; bits may also be 0, for no value."""
    if not points.size:
        return
    tag = label.kind.tag
    if tag == "circle":
        far = label.kind.deviation(points)[:, None] if complete else np.full((1, 1), np.inf)
    elif tag == "integers":
        if np.abs(points - np.round(points)).max(initial=0.0) > LEGAL_TOLERANCE:
            raise Undecided(f"{label.name!r} may hold numbers that are not whole")
        return
    else:
        codes = (-1.0, 0.0, 1.0) if tag == "bits" else (0.0, 1.0)
        far = np.min([np.abs(points - code) for code in codes], axis=0)
    if far.max(initial=0.0) > LEGAL_TOLERANCE:
        bad = np.round(points[int(far.max(axis=1).argmax())], 6).tolist()
        raise Undecided(f"{label.name!r} may hold {bad}, which is no legal value")


def _restricted(label: SpaceLabel, stretch: Stretch, plain: list[ValueFactor]) -> tuple[Stretch, str | None]:
    """Drop the integers outside the range of their label, which words of the language are assumed never to reach."""
    low, high, factors, note = label.kind.low, label.kind.high, [], None
    for factor in stretch.factors:
        new = factor
        if factor in plain:
            points = factor.written_out()
            own = points[:, np.isin(factor.dims, label.dims)]  # a factor may have dimensions of other spaces, too
            inside = ((own >= low - LEGAL_TOLERANCE) & (own <= high + LEGAL_TOLERANCE)).all(axis=1)
            if not inside.any():
                raise Undecided(f"{label.name!r} never holds a number between {low:g} and {high:g}")
            if not inside.all():
                note = f"{label.name!r} stays between {low:g} and {high:g}"
                new = ValueFactor.of(factor.name, factor.dims, points[inside])
        factors.append(new)
    return replace(stretch, factors=tuple(factors)), note
