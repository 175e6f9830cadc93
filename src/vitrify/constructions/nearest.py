r"""Two layers with one head each find the nearest of any number of points, and answer with its label.

In the spirit of Bhattamishra, Hahn, Blunsom and Kanade (2024, arXiv 2406.09347); the weights are our own derivation.
Points are $c_0 \dots c_{M-1}$ on a circle. The product of two falls with their distance, by at least $1 -
\cos(2\pi/M)$ for every step; let $g$ be the smaller of that and of the least product that is not 0.

- Layer 1: every position copies the point of the position before it, 0 where that is a label or BOS.
- Layer 2: a point with the code $c$ attends by the score $c \cdot c'/g + (1 + 2/g)\,\ell$, where $c'$ is what layer 1
  has copied and $\ell$ the flag of labels. Any label scores higher than any other position by at least 1, and of two
  labels the one whose point is nearer. Hard attention breaks ties to the right; else scores are multiplied by the
  length $T$, and the position is added. The head copies the label; points and BOS have the label `(none)`.

| | formula |
| --- | --- |
| layers, heads | 2; 2 |
| width | 11 |
| units | 0 |

What grows with $M$ is the precision: scores are up to $3T/g \approx 3TM^2/20$.
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions._circles import readout, table
from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.network import Affine, Builder, Circle, Flag, Network, Output, Space
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.nearest import Nearest


def sizes(task: Nearest) -> DeclaredSizes:
    """Return the sizes, the same for any number of points, labels and pairs."""
    del task
    return DeclaredSizes.of_layers((1, 1), (0, 0), 11)


@construction("nearest", "the label of the nearest point, two layers", sizes, default=True, certified=("to T", "to T"))
def nearest(task: Nearest, *, attention: Attention = "softmax") -> Network:
    """Return a transformer of two layers that answers, at every point, with the label of the nearest earlier one."""
    name = f"nearest of {task.pairs} points, {attention}"
    net = Builder(name, (BEGIN, *task.alphabet), task.length, attention)
    points, labels = Circle(task.point_names), Circle(task.outputs)
    of_token = np.repeat([-1, 0, -1], [1, task.points, task.labels])
    of_token[1 : 1 + task.points] = np.arange(task.points)
    point = net.embed("point", points, table(points, of_token))
    label = net.embed("label", labels, labels.codes[np.maximum(np.arange(len(net.inputs)) - task.points, 0)])
    is_label = net.embed("is a label", Flag(), np.repeat([0.0, 1.0], [1 + task.points, task.labels])[:, None])
    before = at_position(net, earlier(net, 1), Affine.copy(point), Space("point before", points))
    products = np.abs(points.codes[:, 0])
    steep = 1 / min(points.gap, products[products > 0].min())
    query = Affine.copy(point, steep).beside(Affine.constant(1 + 2 * steep))
    key, hard, length = Affine.copy(before).beside(Affine.copy(is_label)), attention == "hard", float(task.length)
    if not hard:
        query, key = (query * length).beside(Affine.constant(1.0)), key.beside(Affine.copy(net.index))
    answer = net.attend(
        "the nearest point",
        query=query,
        key=key,
        value=Affine.copy(label),
        writes=Space("label of the nearest", labels),
        gap=1.0,
        bound=1 + 3 * steep if hard else length * (2 + 3 * steep),
        ties="right" if hard else "average",
    )
    return net.network(
        Output("transducer", task.outputs),
        readout(answer, labels),
        "nearest, two layers",
        {"pairs": task.pairs},
        source="in the spirit of Bhattamishra, Hahn, Blunsom and Kanade 2024, arXiv 2406.09347",
        reuse=False,
    )
