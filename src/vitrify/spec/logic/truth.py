"""Task of a network whose spec has a truth value at every position of a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from vitrify.spec.kinds import Answer, Meaning


def truths(alphabet: tuple[str, ...], holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> dict[str, Meaning]:
    """Return `True` or `False` at every position; there is no answer before the first letter.

    `holds` takes words as indices of letters [word, position].
    """

    def after(word: Sequence[str]) -> list[Answer]:
        letters = np.array([[alphabet.index(letter) for letter in word]], dtype=np.int64)
        return [None, *map(str, holds(letters)[0].tolist())]

    return {"transducer": Meaning("symbol", alphabet, ("False", "True"), after)}
