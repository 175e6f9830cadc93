"""Indicators: hidden units that test which values some spaces hold, for an expert or a router to contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Floats
from vitrify.kit.network import Space, Units


@dataclass(frozen=True, eq=False)
class Indicator:
    """One hidden unit, which tests whether each one-hot space holds one of the values `accepts` gives by index.

    It is 1 iff all of them do; with `count`, it is the number of spaces that do.
    """

    name: str
    accepts: Mapping[Space, Sequence[int]]
    count: bool = False


def indicators(
    name: str,
    tests: Sequence[Indicator],
    writes: Space,
    outputs: Floats,
    *,
    constant: Floats | None = None,
    matches: int = 1,
) -> Units:
    r"""Return units that write the sum of the output rows [test, space] of the tests that are 1.

    Let $c$ of the $k$ spaces of a test hold an accepted value. Its unit is $\mathrm{relu}(1 - 2(k - c))$: 1 when all
    do, and 0 when one does not, at least 1 below the threshold, so that noise leaves it at exactly 0. A counting test
    is $\mathrm{relu}(c)$ and passes noise on. `matches` is how many of the others can be 1 at once. Units: one per
    test.
    """
    from scipy.sparse import coo_array, csr_array

    slope = np.array([1.0 if test.count else 2.0 for test in tests])
    spaces_tested = np.array([len(test.accepts) for test in tests])
    entries: dict[Space, list[tuple[int, int]]] = {}
    for unit, test in enumerate(tests):
        for space, values in test.accepts.items():
            entries.setdefault(space, []).extend((value, unit) for value in values)
    reads, gain = [], {}
    counts = np.array([test.count for test in tests])
    size = abs(outputs).max(axis=1)
    reach = np.zeros(len(tests))  # how far an error of 1 in all coordinates moves a unit
    for space, pairs in entries.items():
        at, units = np.array(pairs).T
        matrix = csr_array(coo_array((slope[units], (at, units)), shape=(space.size, len(tests))))
        slopes = matrix.sum(axis=0)
        reads.append((space, matrix))
        reach += slopes
        decided = matches * (slopes * size)[~counts].max(initial=0.0)
        gain[space] = float(decided + (slopes[counts] @ abs(outputs[counts])).max(initial=0.0))
    margin = 1.0 / float(reach[~counts].max(initial=1.0))
    return Units(
        name=name,
        reads_by=tuple(reads),
        bias=np.where(counts, 0.0, 1.0 - 2.0 * spaces_tested),
        writes_by=((writes, outputs),),
        constants=() if constant is None else ((writes, constant),),
        margin=dict.fromkeys(gain, margin),
        gain=gain,
        rows=tuple(test.name for test in tests),
    )
