"""Gate: a space passes where a flag says so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.kit.network import Builder, Space, Units


Case = tuple[Space, int, Space, int]


def choose(net: Builder, cases: Sequence[Case], writes: Space) -> Space:
    r"""The sum of the values whose flag is 1: case $(f, k, x, s)$ passes $x$ from its coordinate $s$ on when $f_k = 1$.

    Each coordinate is $\mathrm{relu}(x + C(f_k - 1)) - \mathrm{relu}(-x + C(f_k - 1))$ with $C \ge |x|$: $x$ when $f_k = 1$, 0
    when $f_k = 0$. $C$ is twice the largest value, so that noise can't open a closed gate. Units: two per case and coordinate.
    """
    size = writes.size
    reads: dict[Space, list[tuple[int, np.ndarray]]] = {}
    bias, total = [], 2 * size * len(cases)
    limit = 2.0 * max(max(abs(x.kind.low), abs(x.kind.high)) for _, _, x, _ in cases)
    out = np.zeros((total, size))
    for place, (flag, coordinate, value, start) in enumerate(cases):
        at = 2 * size * place
        both = np.zeros((value.size, 2 * size))
        both[start : start + size] = np.hstack([np.eye(size), -np.eye(size)])
        opener = np.zeros((flag.size, 2 * size))
        opener[coordinate] = limit
        reads.setdefault(value, []).append((at, both))
        reads.setdefault(flag, []).append((at, opener))
        bias.append(np.full(2 * size, -limit))
        out[at : at + 2 * size] = np.vstack([np.eye(size), -np.eye(size)])
    matrices = []
    for space, pieces in reads.items():
        matrix = np.zeros((space.size, total))
        for at, piece in pieces:
            matrix[:, at : at + piece.shape[1]] += piece
        matrices.append((space, matrix))
    flags = dict.fromkeys(flag for flag, _, _, _ in cases)
    values = dict.fromkeys(value for _, _, value, _ in cases)
    return net.add(
        Units(
            name=f"choose: {writes.name}",
            reads_by=tuple(matrices),
            bias=np.concatenate(bias),
            writes_by=((writes, out),),
            margin=dict.fromkeys(values, limit / 4) | dict.fromkeys(flags, 0.125),
            gain=dict.fromkeys(values, 1.0) | dict.fromkeys(flags, limit),
        )
    )


def gate(net: Builder, flag: Space, value: Space, *, name: str | None = None) -> Space:
    """The space where the flag is 1, zeros where it is 0. Two units per coordinate."""
    return choose(net, [(flag, 0, value, 0)], Space(name or f"{value.name} if {flag.name}", value.kind))
