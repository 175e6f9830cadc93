r"""Two layers with one head each tell of two words of any length if they are equal, and if they are disjoint as sets.

In the spirit of Bhattamishra, Hahn, Blunsom and Kanade (2024, arXiv 2406.09347), who show what one layer and
recurrences can't do; the weights are our own derivation. Let $x$ and $y$ have $n$ symbols, numbers from 0.

- Layer 1: position $t > n$ reads the number $n$ positions before it, by its index. With $d = x_i - y_i$, the flag $h$
  of the second half and the number $C$ of symbols, units write the clash $s(d - C(1 - h)) + s(-d - C(1 - h))$, where
  $s(z) = \mathrm{relu}(2z - \tfrac12) - \mathrm{relu}(2z - \tfrac32)$ is 0 up to $z = \tfrac14$ and 1 from
  $\tfrac34$: it is 1 iff $d \ne 0$. For sets it is $s(x_i + y_i + h - 2)$.
- Layer 2: `?` attends to the clashes, whose score is 1; BOS scores ½. It reads 1 from any symbol and 0 from BOS.

| | formula |
| --- | --- |
| layers, heads | 2; 2 |
| width | 8 |
| units | 4, for sets 2 |
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, Builder, Flag, Integers, Network, Output, Readout, Space
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.comparison import Comparison


def sizes(task: Comparison) -> DeclaredSizes:
    """Return the sizes, the same for words of any length over any number of symbols."""
    return DeclaredSizes.of_layers((1, 1), (4 if task.relation == "equality" else 2, 0), 8)


@construction("comparison", "two words compared, in two layers", sizes, default=True, certified=("to T", "to T"))
def comparison(task: Comparison, *, attention: Attention = "softmax") -> Network:
    """Return a transformer of two layers that answers whether two words are equal, or disjoint as sets."""
    n, top = task.size, float(task.symbols - 1)
    net = Builder(f"{task.relation} of {n} symbols, {attention}", (BEGIN, *task.alphabet), task.length, attention)
    codes = np.array([0, *range(task.symbols), 0], dtype=float)[:, None]
    number = net.embed("number", Integers(("x",), 0.0, top), codes)
    places = np.arange(1, task.length + 1)
    later = net.embed_position("second half", Flag(), ((places > n) & (places <= 2 * n)).astype(float)[:, None])
    before = at_position(net, earlier(net, n), Affine.copy(number), Space(f"number {n} back", number.kind))
    clash = _clash(net, task, before, number, later)
    answer = select(
        net,
        [Test(Affine.constant(1.0), Affine.copy(clash), 1.0)],
        Affine.of({net.bos: [[-1.0]]}, [1.0]),
        Space("a clash", Flag()),
        shares=False,
    )
    return net.network(
        Output("class", task.outputs),
        Readout(((answer, np.array([[4.0, 0.0]])),), np.array([0.0, 2.0]), {answer: 0.25}),
        "comparison, two layers",
        {"relation": task.relation, "size": n},
        source="in the spirit of Bhattamishra, Hahn, Blunsom and Kanade 2024, arXiv 2406.09347",
        reuse=False,
    )


def _clash(net: Builder, task: Comparison, before: Space, number: Space, later: Space) -> Space:
    """Return the flag of positions of y whose symbol clashes with that of x; errors below an eighth disappear."""
    if task.relation == "disjointness":
        tests = [Affine.copy(before) + Affine.copy(number) + Affine.copy(later) + Affine.constant(-2.0)]
    else:
        closed = Affine.of({later: [[float(task.symbols)]]}, [-float(task.symbols)])
        tests = [Affine.copy(before, sign) + Affine.copy(number, -sign) + closed for sign in (1.0, -1.0)]
    reads = Affine.constant(np.zeros(0))
    for test in tests:
        for start in (0.5, 1.5):
            reads = reads.beside(test * 2.0 + Affine.constant(-start))
    margin = dict.fromkeys((before, number, later), 0.125 / (task.symbols + 2))
    name = "both are 1" if task.relation == "disjointness" else "symbols differ"
    return net.units(name, reads, Space("clash", Flag()), np.array([[1.0], [-1.0]] * len(tests)), margin=margin)
