"""Select: a head that attends to the positions where several tests hold at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vitrify.kit.heads.average import rounding_of_mean
from vitrify.kit.network import Affine, Builder, Space
from vitrify.net.transformer import Mask, Ties

Sink = Literal["default", "join", "none"]
Which = Literal["last", "first"]


@dataclass(frozen=True, eq=False)
class Test:
    """A test of a query and a key: their product is `top` where it holds, at most `top` - 1 elsewhere.

    The key must be zero at BOS, if BOS is a sink.
    """

    query: Affine
    key: Affine
    top: float


def select(
    net: Builder,
    tests: Sequence[Test],
    value: Affine,
    writes: Space,
    *,
    sink: Sink = "default",
    which: Which | None = None,
    mask: Mask = "causal",
    shares: bool = True,
    order: Affine | None = None,
    ranks: int = 0,
    name: str | None = None,
) -> Space:
    r"""Return the mean of a value over the positions where all tests hold, or the value at the last or first of them.

    The scores of the tests add up: $M = \sum \text{top}$ where all hold, at most $M - 1$ elsewhere. `sink` is the role
    of BOS: `default`, it scores $M - \tfrac12$ and is read where no position is selected; `join`, it scores $M$, as one
    more selected position; `none`, it has no role (a token is always selected, or all that can be read is the same).
    With `which`, hard attention breaks ties to the right or to the left; for other kinds the scores are multiplied by
    $T$ and the position is added or subtracted, so that two matches differ by at least 1, and any match beats any
    mismatch by at least 1. An `order`, from 1 to `ranks` at tokens and 0 at BOS, takes the place of the position; equal
    ranks share the weight. With `shares`, equal weights matter, so that queries and keys must be exact.
    """
    length = float(net.max_length if order is None else ranks)
    keys = [*(test.key for test in tests), *([] if order is None else [order])]
    positional = any(net.is_positional(space) for key in keys for space in key.spaces)
    total = sum(test.top for test in tests)
    query, key = Affine.constant(np.zeros(0)), Affine.constant(np.zeros(0))
    for test in tests:
        query, key = query.beside(test.query), key.beside(test.key)
    bound = float(np.dot(query.bound, key.bound))
    ties: Ties = "average"
    by_rank = which is not None and (order is not None or net.attention != "hard")
    if which is not None and not by_rank:
        ties = "right" if which == "last" else "left"
    if by_rank:
        sign = 1.0 if which == "last" else -1.0
        query = (query * length).beside(Affine.constant(sign))
        key = key.beside(Affine.of({net.index: [[1.0]]}) if order is None else order)
        level = length * total + (0.5 if which == "last" else -length - 0.5)
        bound = length * (bound + 1)
    else:
        level = total if sink == "join" else total - 0.5
    if sink != "none":
        query = query.beside(Affine.constant(level))
        key = key.beside(Affine.of({net.bos: [[1.0]]}))
        bound = max(bound, abs(level))
    return net.attend(
        name or f"select: {writes.name}",
        query=query,
        key=key,
        value=value,
        writes=writes,
        gap=1.0 if sink == "none" or (sink == "join" and which is None) else 0.5,
        bound=bound,
        mask=mask,
        ties=ties,
        error=rounding_of_mean(net, writes) if which is None or order is not None else 0.0,
        shares=shares and which is None,
        attends_to=(which if which and order is None else "all") if not positional else None,
    )


def copy_unless(net: Builder, off: Space, value: Space, *, name: str) -> Space:
    r"""Return the value at the position itself where a flag is 0, the value at BOS where it is 1: a gate by attention.

    The score of key $j$ for query $i$ is $j + (T + 1)\,\text{off}_i\,\text{bos}_j$: largest, by 1, at the last key,
    which is the position itself, and where the flag is 1 at BOS. Hard attention breaks ties to the right instead of
    adding $j$. The flag must be exact.
    """
    hard = net.attention == "hard"
    over = 1.0 if hard else net.max_length + 1.0
    query = Affine.of({off: [[over]]})
    key = Affine.of({net.bos: [[1.0]]})
    if not hard:
        query, key = query.beside(Affine.constant(1.0)), key.beside(Affine.of({net.index: [[1.0]]}))
    return net.attend(
        f"keep: {name}",
        query=query,
        key=key,
        value=Affine.copy(value),
        writes=Space(name, value.kind),
        gap=1.0,
        bound=over,
        ties="right" if hard else "average",
    )
