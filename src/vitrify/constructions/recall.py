r"""Associative recall runs on one layer with one head where pairs are one symbol, and on two where they are two.

In the spirit of Arora et al. (2023, arXiv 2312.04927); the weights are our own derivation. Keys and values are points
on a circle; symbols that are no keys have none, and those that tell no value have none.

- *Fused*: the one head looks for the pair with its own key and copies the value. A pair finds itself, so there is
  always something to be found, and no sink.
- *Two symbols*: layer 1 copies the key of the symbol before. Layer 2 looks for the value whose key before is its own.
  Where there is none, it reads nothing from BOS.

| | fused | two symbols |
| --- | --- | --- |
| layers, heads | 1; 1 | 2; 2 |
| width | 7 | 12 |
| units | 0 | 0 |
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions._circles import readout, same, table
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.kit.heads import at_place, earlier
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, Builder, Network, Space
from vitrify.net.architecture import Output
from vitrify.net.spaces import Circle, Flag
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN
from vitrify.spec.tasks.recall import Recall


def recall(task: Recall, *, attention: AttentionKind = "softmax") -> Network:
    """A transformer that says the value of every key that it is asked about."""
    net = Builder(
        name=f"recall of {task.pairs} {'fused ' * task.fused}pairs, {attention}",
        inputs=(BEGIN, *task.alphabet),
        max_length=task.length,
        attention=attention,
    )
    keys, values = Circle(task.key_names), Circle(task.outputs)
    asks, says = np.arange(task.keys), np.arange(task.values)
    if task.fused:
        key_of = [-1, *asks, *np.repeat(asks, task.values)]
        value_of = [-1, *-np.ones_like(asks), *np.tile(says, task.keys)]
    else:
        key_of, value_of = [-1, *asks, *-np.ones_like(says)], [-1, *-np.ones_like(asks), *says]
    key = net.embed("key", keys, table(keys, np.array(key_of)))
    value = net.embed("value", values, table(values, np.array(value_of)))
    tells = net.embed("tells a value", Flag(), (np.array(value_of) >= 0).astype(float)[:, None])
    if task.fused:
        told = key
    else:
        told = at_place(net, earlier(net, 1), Affine.copy(key), Space("key before", keys))
    telling = Test(Affine.constant(1.0), Affine.copy(tells), 1.0)
    answer = select(
        net,
        [same(key, told, keys), telling],
        Affine.copy(value),
        Space("answer", values),
        sink="none" if task.fused else "default",
        shares=False,
    )
    return net.network(
        Output("transducer", task.outputs),
        readout(answer, values),
        {
            "construction": f"recall, {1 if task.fused else 2} layers",
            "attention": attention,
            "pairs": task.pairs,
            "source": "in the spirit of Arora et al. 2023, arXiv 2312.04927",
        },
        reuse=False,
    )


def sizes(task: Recall) -> dict[str, int]:
    """What the formulas promise."""
    layers, width = (1, 7) if task.fused else (2, 12)
    return {"layers": layers, "heads": layers, "d_model": width, "units": 0}


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Recall)
    return recall(spec, attention=settings.attention)


CONSTRUCTIONS = (
    Construction(
        "recall",
        Recall,
        "the value of every key, in one or two layers",
        _make,
        default=True,
        choices=("attention",),
        unproved="may go astray",
    ),
)
