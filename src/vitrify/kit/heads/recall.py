"""Recall: heads that attend to the one token of a kind and write the vector stored for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Floats
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.network import Affine, Attend, Bank, Builder, Space


@dataclass(frozen=True, eq=False)
class Store:
    """Codes [token, code] of some tokens, and the vector stored for each [token, space]."""

    name: str
    codes: Floats
    contents: Floats


def recall(net: Builder, code: Space, kinds: Space, stores: Sequence[Store], writes: Space) -> Space:
    r"""Return the sum, over all stores, of the vector stored for the one visible token of that store (0 if none).

    `kinds` holds the number of the store that a token belongs to as a one-hot vector, which is void at BOS and at
    tokens of no store. Head $h$ gives these tokens the score 1, all others 0, and BOS, whose code is zero, ½: the gap
    is ½. With the codes $E$ of a store's $n$ tokens as rows, independent of each other, the value $e_s E^{+}$ of
    token $s$ is the unit vector of its index, and the output matrix has the contents as rows. So a head's value has as
    many dimensions as its store has tokens.
    """
    largest = max((float(np.abs(store.contents).max(initial=0.0)) for store in stores), default=0.0)
    heads, error = [], 0.0
    for number, store in enumerate(stores):
        coordinates = np.linalg.pinv(store.codes)
        heads.append(
            Attend(
                name=f"recall: {store.name}",
                query=Affine.constant([1.0, 0.5]),
                key=Affine.of({kinds: np.outer(np.eye(kinds.size)[number], [1.0, 0.0]), net.bos: [[0.0, 1.0]]}),
                value=Affine.of({code: coordinates}),
                writes=writes,
                attention=net.attention,
                gap=0.5,
                bound=1.0,
                out=store.contents,
            )
        )
        spread = float(np.linalg.norm(coordinates, 2) * np.linalg.norm(store.codes, 2))  # how much rounding grows
        products = (code.size + 8) * len(store.codes) * spread
        error += 4 * UNIT_ROUNDOFF * (net.max_length + net.pads + products) * largest
    bank = Bank(
        name=f"recall: {writes.name}",
        heads=tuple(heads),
        writes=writes,
        passes=tuple(head.written for head in heads),
        truncation=0.0,
        error=error,
    )
    return net.add(bank)
