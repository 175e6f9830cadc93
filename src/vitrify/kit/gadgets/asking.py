"""Asking: hidden units that ask what some spaces hold, made by themselves, for an expert or a router to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitrify.kit.network import Space, Units


@dataclass(frozen=True, eq=False)
class Question:
    """One hidden unit: which values, by their numbers, each of some one-hot spaces should hold.

    It is 1 iff each space holds one of its values; with `count`, the number of spaces that do.
    """

    name: str
    asks: Mapping[Space, Sequence[int]]
    count: bool = False


def asking(
    name: str,
    questions: Sequence[Question],
    writes: Space,
    outputs: NDArray[np.float64],
    *,
    constant: NDArray[np.float64] | None = None,
    matches: int = 1,
) -> Units:
    r"""Units that write the sum of the output rows [question, space] of the questions that say yes.

    With $c$ the number of spaces that hold an asked-for value, of $k$, a question is $\mathrm{relu}(1 - 2(k - c))$: 1
    when all do, and 0 with a whole unit to spare when one does not, so that noise leaves it at exactly 0. A counting
    one is $\mathrm{relu}(c)$, and passes noise on. `matches` is how many of the others can say yes at once. Units: one
    per question.
    """
    from scipy.sparse import coo_array, csr_array

    slope = np.array([1.0 if question.count else 2.0 for question in questions])
    asked = np.array([len(question.asks) for question in questions])
    entries: dict[Space, list[tuple[int, int]]] = {}
    for unit, question in enumerate(questions):
        for space, values in question.asks.items():
            entries.setdefault(space, []).extend((value, unit) for value in values)
    reads, gain = [], {}
    counts = np.array([question.count for question in questions])
    size = abs(outputs).max(axis=1)
    reach = np.zeros(len(questions))  # how far an error of 1 in all coordinates moves a unit
    for space, pairs in entries.items():
        at, units = np.array(pairs).T
        matrix = csr_array(coo_array((slope[units], (at, units)), shape=(space.size, len(questions))))
        moved = matrix.sum(axis=0)
        reads.append((space, matrix))
        reach += moved
        decided = matches * (moved * size)[~counts].max(initial=0.0)
        gain[space] = float(decided + (moved[counts] @ abs(outputs[counts])).max(initial=0.0))
    margin = 1.0 / float(reach[~counts].max(initial=1.0))
    return Units(
        name=name,
        reads_by=tuple(reads),
        bias=np.where(counts, 0.0, 1.0 - 2.0 * asked),
        writes_by=((writes, outputs),),
        constants=() if constant is None else ((writes, constant),),
        margin=dict.fromkeys(gain, margin),
        gain=gain,
        rows=tuple(question.name for question in questions),
    )
