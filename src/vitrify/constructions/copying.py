r"""Texts are copied by look-up on two layers: $n$ heads gather the last $n$ symbols, one finds them in the text.

In the spirit of Jelassi et al. (2024, arXiv 2402.01032); the weights are our own derivation. Symbols are points on a
circle, and BOS is the same point as the separator: what stands before the text is what stands before its copy.

- Layer 1 has the heads $h = 1 \dots n$, which copy the symbol $h$ places back.
- Layer 2 looks for the place whose last $n$ symbols *before it* are the last $n$ symbols *up to here*, by the score
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
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.kit.heads import at_place, earlier
from vitrify.kit.heads.select import select
from vitrify.kit.network import Affine, Builder, Network, Space
from vitrify.net.architecture import Output
from vitrify.net.spaces import Circle
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN
from vitrify.spec.tasks.copying import Copying


def copying(task: Copying, *, attention: AttentionKind = "softmax") -> Network:
    """A transformer of two layers that says the next symbol of a copy."""
    net = Builder(
        name=f"copying by runs of {task.gram}, {attention}",
        inputs=(BEGIN, *task.alphabet),
        max_length=task.length,
        attention=attention,
    )
    codes = Circle(task.alphabet)
    symbol = net.embed("symbol", codes, np.vstack([codes.codes[:1], codes.codes]))
    back = [symbol]
    for h in range(1, task.gram + 1):
        writes = Space(f"symbol {h} back", codes)
        back.append(at_place(net, earlier(net, h), Affine.copy(symbol), writes))
    void = Affine.of({net.bos: -codes.codes[:1]})  # a sink has no key
    tests = [same(here, Affine.copy(there) + void, codes) for here, there in pairwise(back)]
    answer = select(net, tests, Affine.copy(symbol), Space("next symbol", codes), shares=False)
    return net.network(
        Output("transducer", task.outputs),
        readout(answer, codes),
        {
            "construction": "copying by look-up",
            "attention": attention,
            "gram": task.gram,
            "source": "in the spirit of Jelassi et al. 2024, arXiv 2402.01032",
        },
        reuse=False,
    )


def sizes(task: Copying) -> dict[str, int]:
    """What the formulas promise."""
    return {"layers": 2, "heads": task.gram + 1, "d_model": 2 * task.gram + 7, "units": 0}


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Copying)
    return copying(spec, attention=settings.attention)


CONSTRUCTIONS = (
    Construction(
        "copying",
        Copying,
        "the next symbol of a copy, found by look-up",
        _make,
        default=True,
        choices=("attention",),
        unproved="may go astray",
    ),
)
