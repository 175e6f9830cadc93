"""Weights as text: linear maps between named spaces, and the condition under which a hidden unit is active."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Floats
from vitrify.net.labels import Labels
from vitrify.net.spaces import Flag, Kind, MultiHot, OneHot
from vitrify.net.transformer import Groups

ROUNDING = 1e-12  # relative to the largest weight of the same sum: below it, a weight counts as zero
SHOWN_TERMS = 6  # terms printed of one sum


@dataclass(frozen=True)
class Source:
    """A named space of the residual stream at one moment; a dimension without a name is a space by itself."""

    name: str
    kind: Kind | None
    dims: tuple[int, ...]

    def coordinate(self, at: int) -> str:
        """Return the name of one dimension: `token=a`, `index`."""
        if self.kind is None or self.kind.size == 1:
            single = self.kind.names[0] if isinstance(self.kind, OneHot | MultiHot) else ""
            return self.name + single
        return self.name + self.kind.names[at]


def sources(labels: Labels, width: int, moment: int, normed: Groups = ()) -> list[Source]:
    """Return the spaces of the residual stream at a moment; the groups in `normed` are read through a layer norm."""
    living = [s for s in labels.spaces if s.born <= moment <= s.dies]
    named = [Source(f"norm of {s.name}" if s.dims in normed else s.name, s.kind, s.dims) for s in living]
    taken = {dim for s in living for dim in s.dims}
    return named + [Source(f"dimension {dim}", None, (dim,)) for dim in range(width) if dim not in taken]


def number(value: float, digits: int = 4) -> str:
    """Return a weight in a few characters."""
    return f"{value:.{digits}g}".replace("-", "−")


def signed(value: float) -> str:
    """Return a weight with its sign."""
    return f"+{number(value)}" if value > 0 else number(value)


def added(terms: Sequence[tuple[str, float]], bias: float = 0.0, limit: int | None = SHOWN_TERMS) -> str:
    """Return a sum of named terms, as `2·token=a − bos + 0.5`; of a long one only the largest terms."""
    largest = max((abs(weight) for _, weight in terms), default=0.0)
    real = [(name, weight) for name, weight in terms if abs(weight) > ROUNDING * largest]
    order = sorted(real, key=lambda term: -abs(term[1]))[:limit] if limit and len(real) > limit else real
    text = ""
    for name, weight in [*order, *([("", bias)] if abs(bias) > ROUNDING * max(largest, 1e-300) or not real else [])]:
        size = number(abs(weight))
        body = size if not name else name if size == "1" else f"{size}·{name}"
        text += (" − " if weight < 0 else " + ") + body if text else ("−" if weight < 0 else "") + body
    return text + (f" … and {len(real) - len(order)} more terms" if len(order) < len(real) else "")


def terms_of(column: Floats, spaces: Sequence[Source]) -> list[tuple[str, float]]:
    """Return the non-zero entries of a vector over the residual stream, by name."""
    return [(s.coordinate(at), float(column[dim])) for s in spaces for at, dim in enumerate(s.dims) if column[dim]]


def copied(matrix: Floats, bias: Floats, inputs: Sequence[Source], outputs: Sequence[Source]) -> list[str]:
    """Return a linear map [in, out] as lines: one for each space that is copied, else one for each coordinate."""
    lines: list[str] = []
    for target in outputs:
        part = matrix[:, list(target.dims)]
        read = [s for s in inputs if np.abs(part[list(s.dims)]).max(initial=0.0) > ROUNDING]
        constant = bias[list(target.dims)]
        if not read and not constant.any():
            continue
        if len(read) == 1 and len(read[0].dims) == len(target.dims):
            block = part[list(read[0].dims)]
            factor = block[0, 0]
            if factor and np.allclose(block, factor * np.eye(len(block)), rtol=0, atol=ROUNDING) and not constant.any():
                lines.append(f"{target.name} ← {'' if factor == 1 else number(factor) + '·'}{read[0].name}")
                continue
        pieces = [terms_of(part[:, at], inputs) for at in range(len(target.dims))]
        ends = [target.coordinate(at).removeprefix(target.name) for at in range(len(target.dims))]
        same = (
            [{read[0].name + end: 1.0} == dict(terms) for end, terms in zip(ends, pieces, strict=True)] if read else []
        )
        if len(same) > 1 and all(same) and not constant.any():
            lines.append(f"{target.name} ← {read[0].name} where it is {listed([end.strip('=∋[]') for end in ends])}")
            continue
        lines += [f"{target.name}{end} ← {added(pieces[at], float(constant[at]))}" for at, end in enumerate(ends)]
    return lines


def worked(column: Floats, bias: float, spaces: Sequence[Source]) -> tuple[str, float | None]:
    """Return the condition under which a hidden unit is active, with its value there, or else its formula and None.

    There is a condition if the unit reads only bits, and is positive only where each of them has its best value.
    """
    ramp = f"relu({added(terms_of(column, spaces), bias)})"
    conditions: list[str] = []
    total, losses = bias, []
    for s in spaces:
        weights = column[list(s.dims)]
        if not weights.any():
            continue
        if not isinstance(s.kind, Flag | OneHot | MultiHot):
            return ramp, None
        if not isinstance(s.kind, OneHot):  # each bit by itself
            conditions += [s.coordinate(at) for at in np.flatnonzero(weights > 0).tolist()]
            absent = np.flatnonzero(weights < 0).tolist()
            if len(absent) == len(weights) > 1:
                conditions.append(f"nothing in {s.name}")
            elif absent:
                conditions.append(f"not {listed([s.coordinate(at) for at in absent])}")
            total += float(weights[weights > 0].sum())
            losses += np.abs(weights[weights != 0]).tolist()
            continue
        options = [*weights.tolist(), *([0.0] if s.kind.void else [])]
        best = max(options)
        worse = [w for w in options if w < best - ROUNDING]
        total += best
        if not worse:
            continue
        losses.append(best - max(worse))
        names = [s.kind.values[at] for at, w in enumerate(weights.tolist()) if w >= best - ROUNDING]
        others = [s.kind.values[at] for at, w in enumerate(weights.tolist()) if w < best - ROUNDING]
        if best == 0.0 or (not s.kind.void and len(names) > max(len(others), SHOWN_TERMS)):
            conditions.append(f"{s.name} ≠ {listed(others)}")
        else:
            conditions.append(f"{s.name} = {listed(names)}")
    if not conditions or total <= 0 or any(total - loss > ROUNDING for loss in losses):
        return ramp, None
    return " and ".join(conditions), total


def listed(names: Sequence[str]) -> str:
    """Return a list of values as text, shortened if it is long."""
    shown = ", ".join(names[:SHOWN_TERMS]) + (f" … {len(names) - SHOWN_TERMS} more" if len(names) > SHOWN_TERMS else "")
    return shown if len(names) == 1 else "{" + shown + "}"


def runs(dims: Sequence[int]) -> str:
    """Return sorted numbers as ranges: 0–3, 7."""
    ranges: list[list[int]] = []
    for dim in sorted(dims):
        if ranges and dim == ranges[-1][1] + 1:
            ranges[-1][1] = dim
        else:
            ranges.append([dim, dim])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in ranges)
