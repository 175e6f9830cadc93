r"""Texts are copied by lookup in two layers: $n$ heads gather the last $n$ symbols, one finds them in the text.

In the spirit of Jelassi et al. (2024, arXiv 2402.01032); the weights are our own derivation. Symbols are points on a
circle, and BOS is the same point as the separator: what stands before the text is what stands before its copy.

- Layer 1 has the heads $h = 1 \dots n$, which copy the symbol $h$ positions back.
- Layer 2 attends to the position whose last $n$ symbols *before it* are the last $n$ symbols *up to here*, by the score
  $\sum_h c_{t-h+1} \cdot c_{j-h} / g$, and copies the symbol there, which is the next one. In a text without a repeated
  run of $n$ symbols there is one such place; before the copy begins there is none, and BOS is read.

| | formula |
| --- | --- |
| layers, heads | 2; $n + 1$ |
| width | $2n + 7$ |
| units | 0 |
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from vitrify.constructions._circles import readout, same
from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.heads.select import select
from vitrify.kit.network import Affine, Builder, Circle, Network, Output, Space
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.copying import Copying


def sizes(task: Copying) -> DeclaredSizes:
    """Return all sizes: they grow with the length n of runs alone."""
    n = task.gram
    return DeclaredSizes.of_layers((n, 1), (0, 0), 2 * n + 7)


@construction(
    "copying", "the next symbol of a copy, found by look-up", sizes, default=True, unproved="several keys may share"
)
def copying(task: Copying, *, attention: Attention = "softmax") -> Network:
    """Return a transformer of two layers that outputs the next symbol of a copy."""
    net = Builder(f"copying by runs of {task.gram}, {attention}", (BEGIN, *task.alphabet), task.length, attention)
    codes = Circle(task.alphabet)
    symbol = net.embed("symbol", codes, np.vstack([codes.codes[:1], codes.codes]))
    back = [symbol]
    for h in range(1, task.gram + 1):
        writes = Space(f"symbol {h} back", codes)
        back.append(at_position(net, earlier(net, h), Affine.copy(symbol), writes))
    void = Affine.of({net.bos: -codes.codes[:1]})  # a sink has no key
    tests = [same(here, Affine.copy(there) + void, codes) for here, there in pairwise(back)]
    answer = select(net, tests, Affine.copy(symbol), Space("next symbol", codes), shares=False)
    output = Output("transducer", task.outputs)
    facts = {"gram": task.gram}
    source = "in the spirit of Jelassi et al. 2024, arXiv 2402.01032"
    return net.network(output, readout(answer, codes), "copying by look-up", facts, source=source, reuse=False)
