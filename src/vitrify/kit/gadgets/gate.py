"""Gate: a space passes where a flag is 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.kit.network import Affine, Builder, Space


@dataclass(frozen=True)
class Case:
    """Copy coordinates `sources` of a value to `targets` of the output where coordinate `bit` of the flag is 1."""

    flag: Space
    bit: int
    value: Space
    sources: Sequence[int]
    targets: Sequence[int]


def choose(net: Builder, cases: Sequence[Case], writes: Space) -> Space:
    r"""Return the sum of the values whose flag is 1.

    Each coordinate $x$ is $\mathrm{relu}(x + C(f - 1)) - \mathrm{relu}(-x + C(f - 1))$ with $C \ge |x|$: $x$ when the
    flag $f$ is 1, 0 when it is 0. $C$ is twice the largest value, so that noise can't open a closed gate. Values that
    are never negative do without the second unit. Units: one or two per case and coordinate.
    """
    limit = 2.0 * max(max(abs(case.value.kind.low), abs(case.value.kind.high)) for case in cases)
    signs = (1.0, -1.0) if any(case.value.kind.low < 0 for case in cases) else (1.0,)
    rows = [
        (case, source, target, sign)
        for case in cases
        for source, target in zip(case.sources, case.targets, strict=True)
        for sign in signs
    ]
    matrices = {space: np.zeros((space.size, len(rows))) for case in cases for space in (case.value, case.flag)}
    out = np.zeros((len(rows), writes.size))
    for unit, (case, source, target, sign) in enumerate(rows):
        matrices[case.value][source, unit] += sign
        matrices[case.flag][case.bit, unit] += limit
        out[unit, target] = sign
    flags = dict.fromkeys(case.flag for case in cases)
    values = dict.fromkeys(case.value for case in cases)
    return net.units(
        f"choose: {writes.name}",
        Affine.of(matrices, np.full(len(rows), -limit)),
        writes,
        out,
        margin=dict.fromkeys(values, limit / 4) | dict.fromkeys(flags, 0.125),
        gain=dict.fromkeys(values, 1.0) | dict.fromkeys(flags, limit),
    )


def gate(net: Builder, flag: Space, value: Space, *, name: str | None = None) -> Space:
    """Return the value where the flag is 1, zeros where it is 0. One or two units per coordinate."""
    dims = range(value.size)
    return choose(net, [Case(flag, 0, value, dims, dims)], Space(name or f"{value.name} if {flag.name}", value.kind))
