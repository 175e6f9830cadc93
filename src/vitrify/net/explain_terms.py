"""Weights in words: linear maps between named spaces, and what makes a hidden unit work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitrify.net.labels import Labels
from vitrify.net.spaces import Flag, Kind, MultiHot, OneHot
from vitrify.net.transformer import Groups

Floats = NDArray[np.float64]
SMALL = 1e-12  # of the largest weight beside it: rounding, not meaning
LONG = 6  # terms of one sum


@dataclass(frozen=True)
class Source:
    """A space as it stands in the stream at one moment; dimensions without a name are spaces of their own."""

    name: str
    kind: Kind | None
    dims: tuple[int, ...]

    def coordinate(self, at: int) -> str:
        """One dimension by name: `token=a`, `index`."""
        if self.kind is None or self.kind.size == 1:
            single = self.kind.names[0] if isinstance(self.kind, OneHot | MultiHot) else ""
            return self.name + single
        return self.name + self.kind.names[at]


def sources(labels: Labels, width: int, moment: int, normed: Groups = ()) -> list[Source]:
    """What the stream holds at a moment, dimension by dimension; some groups of dimensions are seen through a norm."""
    living = [s for s in labels.spaces if s.born <= moment <= s.dies]
    named = [Source(f"norm of {s.name}" if s.dims in normed else s.name, s.kind, s.dims) for s in living]
    taken = {dim for s in living for dim in s.dims}
    return named + [Source(f"dimension {dim}", None, (dim,)) for dim in range(width) if dim not in taken]


def number(value: float, digits: int = 4) -> str:
    """A weight in a few characters."""
    return f"{value:.{digits}g}".replace("-", "−")


def signed(value: float) -> str:
    """A weight with its sign."""
    return f"+{number(value)}" if value > 0 else number(value)


def added(terms: Sequence[tuple[str, float]], bias: float = 0.0, limit: int | None = LONG) -> str:
    """A sum of named terms: `2·token=a − bos + 0.5`; a long one keeps its largest terms."""
    largest = max((abs(weight) for _, weight in terms), default=0.0)
    real = [(name, weight) for name, weight in terms if abs(weight) > SMALL * largest]
    order = sorted(real, key=lambda term: -abs(term[1]))[:limit] if limit and len(real) > limit else real
    text = ""
    for name, weight in [*order, *([("", bias)] if abs(bias) > SMALL * max(largest, 1e-300) or not real else [])]:
        size = number(abs(weight))
        body = size if not name else name if size == "1" else f"{size}·{name}"
        text += (" − " if weight < 0 else " + ") + body if text else ("−" if weight < 0 else "") + body
    return text + (f" … and {len(real) - len(order)} more terms" if len(order) < len(real) else "")


def terms_of(column: Floats, spaces: Sequence[Source]) -> list[tuple[str, float]]:
    """The non-zero entries of a vector over the stream, by name."""
    return [(s.coordinate(at), float(column[dim])) for s in spaces for at, dim in enumerate(s.dims) if column[dim]]


def copied(matrix: Floats, bias: Floats, given: Sequence[Source], made: Sequence[Source]) -> list[str]:
    """A linear map [in, out] in words: whole spaces where they are copied, else a line for each coordinate."""
    lines: list[str] = []
    for target in made:
        part = matrix[:, list(target.dims)]
        read = [s for s in given if np.abs(part[list(s.dims)]).max(initial=0.0) > SMALL]
        constant = bias[list(target.dims)]
        if not read and not constant.any():
            continue
        if len(read) == 1 and len(read[0].dims) == len(target.dims):
            block = part[list(read[0].dims)]
            factor = block[0, 0]
            if factor and np.allclose(block, factor * np.eye(len(block)), rtol=0, atol=SMALL) and not constant.any():
                lines.append(f"{target.name} ← {'' if factor == 1 else number(factor) + '·'}{read[0].name}")
                continue
        pieces = [terms_of(part[:, at], given) for at in range(len(target.dims))]
        ends = [target.coordinate(at).removeprefix(target.name) for at in range(len(target.dims))]
        same = (
            [{read[0].name + end: 1.0} == dict(terms) for end, terms in zip(ends, pieces, strict=True)] if read else []
        )
        if len(same) > 1 and all(same) and not constant.any():
            lines.append(f"{target.name} ← {read[0].name} where it is {listed([end.strip('=∋[]') for end in ends])}")
            continue
        for at in range(len(target.dims)):
            lines.append(f"{target.coordinate(at)} ← {added(terms_of(part[:, at], given), float(constant[at]))}")
    return lines


def worked(column: Floats, bias: float, spaces: Sequence[Source]) -> tuple[str, float | None]:
    """When a hidden unit works: a conjunction with the height that it then has, or the ramp itself.

    It is a conjunction if nothing but bits is read and the unit is above zero only where each of them is at its best.
    """
    ramp = f"relu({added(terms_of(column, spaces), bias)})"
    wishes: list[str] = []
    total, losses = bias, []
    for s in spaces:
        weights = column[list(s.dims)]
        if not weights.any():
            continue
        if not isinstance(s.kind, Flag | OneHot | MultiHot):
            return ramp, None
        exclusive = isinstance(s.kind, OneHot)
        if not exclusive:  # each bit by itself
            wishes += [s.coordinate(at) for at in np.flatnonzero(weights > 0).tolist()]
            absent = np.flatnonzero(weights < 0).tolist()
            if len(absent) == len(weights) > 1:
                wishes.append(f"nothing in {s.name}")
            elif absent:
                wishes.append(f"not {listed([s.coordinate(at) for at in absent])}")
            total += float(weights[weights > 0].sum())
            losses += np.abs(weights[weights != 0]).tolist()
            continue
        options = [*weights.tolist(), *([0.0] if s.kind.void else [])]  # type: ignore[union-attr]
        best = max(options)
        rest = [w for w in options if w < best - SMALL]
        if not rest:
            total += best
            continue
        total += best
        losses.append(best - max(rest))
        names = [s.kind.values[at] for at, w in enumerate(weights.tolist()) if w >= best - SMALL]  # type: ignore[union-attr]
        others = [s.kind.values[at] for at, w in enumerate(weights.tolist()) if w < best - SMALL]  # type: ignore[union-attr]
        if best == 0.0 or (not s.kind.void and len(names) > max(len(others), LONG)):  # type: ignore[union-attr]
            wishes.append(f"{s.name} ≠ {listed(others)}")
        else:
            wishes.append(f"{s.name} = {listed(names)}")
    if not wishes or total <= 0 or any(total - loss > SMALL for loss in losses):
        return ramp, None
    return " and ".join(wishes), total


def listed(names: Sequence[str]) -> str:
    """Some values, the first few of many."""
    shown = ", ".join(names[:LONG]) + (f" … {len(names) - LONG} more" if len(names) > LONG else "")
    return shown if len(names) == 1 else "{" + shown + "}"
