r"""Associative recall runs on one layer with one head if a pair is one symbol, on two layers if it is two.

In the spirit of Arora et al. (2023, arXiv 2312.04927); the weights are our own derivation. Keys and values are points
on a circle; a symbol that is no key has key 0, one that is no value has value 0.

- *Fused*: the one head attends to the pair with its own key and copies the value. A pair matches itself, so there is
  always a match, and no sink is needed.
- *Two symbols*: layer 1 copies the key of the previous symbol. Layer 2 attends to the value whose previous key is its
  own. Where there is none, it attends to BOS, whose value is 0.

| | fused | two symbols |
| --- | --- | --- |
| layers, heads | 1; 1 | 2; 2 |
| width | 7 | 12 |
| units | 0 | 0 |
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions._circles import readout, same, table
from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.heads.select import Sink, Test, select
from vitrify.kit.network import Affine, Builder, Circle, Flag, Network, Output, Space
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.recall import Recall


def sizes(task: Recall) -> DeclaredSizes:
    """Return all sizes, which depend on nothing but whether pairs are one symbol."""
    layers, width = (1, 7) if task.fused else (2, 12)
    return DeclaredSizes({"layers": layers, "heads": layers, "d_model": width, "units": 0})


@construction(
    "recall", "the value of every key, in one or two layers", sizes, default=True, unproved="several keys may share"
)
def recall(task: Recall, *, attention: Attention = "softmax") -> Network:
    """Return a transformer that outputs the value of every queried key."""
    name = f"recall of {task.pairs} {'fused ' * task.fused}pairs, {attention}"
    net = Builder(name, (BEGIN, *task.alphabet), task.length, attention)
    keys, values = Circle(task.key_names), Circle(task.outputs)
    key_range, value_range = np.arange(task.keys), np.arange(task.values)
    if task.fused:
        key_of = [-1, *key_range, *np.repeat(key_range, task.values)]
        value_of = [-1, *-np.ones_like(key_range), *np.tile(value_range, task.keys)]
    else:
        key_of, value_of = [-1, *key_range, *-np.ones_like(value_range)], [-1, *-np.ones_like(key_range), *value_range]
    key = net.embed("key", keys, table(keys, np.array(key_of)))
    value = net.embed("value", values, table(values, np.array(value_of)))
    value_flag = net.embed("tells a value", Flag(), (np.array(value_of) >= 0).astype(float)[:, None])
    if task.fused:
        match_key = key
    else:
        match_key = at_position(net, earlier(net, 1), Affine.copy(key), Space("key before", keys))
    has_value = Test(Affine.constant(1.0), Affine.copy(value_flag), 1.0)
    tests, written = [same(key, match_key, keys), has_value], Space("answer", values)
    sink: Sink = "none" if task.fused else "default"
    answer = select(net, tests, Affine.copy(value), written, sink=sink, shares=False)
    return net.network(
        Output("transducer", task.outputs),
        readout(answer, values),
        f"recall, {1 if task.fused else 2} layers",
        {"pairs": task.pairs},
        source="in the spirit of Arora et al. 2023, arXiv 2312.04927",
        reuse=False,
    )
