r"""Two layers with one head each compose two functions of any size, in a width of 10.

In the spirit of Peng, Narayanan and Papadimitriou (2024, arXiv 2402.08164), who show what one layer can't do; the
weights are our own derivation. Arguments and values are points on a circle, $c_0 \dots c_{n-1}$, with the gap $g = 1 -
\cos(2\pi/n)$ between equal and other ones; a role is $+1$ in entries of $g$, $-1$ in those of $f$.

- Layer 1 attends to the entry of $g$ whose argument is its own, by the score $c_q \cdot c_k / g + \text{role}$, and
  copies the value, $g(x)$ at the question.
- Layer 2 attends to the entry of $f$ whose argument is what layer 1 copied, and copies the value.

Where there is no such entry yet, both attend to BOS, whose value is 0.

| | formula |
| --- | --- |
| layers, heads | 2; 2 |
| width | $4 \cdot 2 + 2 = 10$ |
| units | 0 |

A number of $n$ values has two dimensions however large $n$ is, and its gap shrinks like $2\pi^2/n^2$: what grows is the
precision, by $2\log_2 n$ bits.
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions._circles import readout, same, table
from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, Builder, Circle, Integers, Network, Output, Space
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.composition import Composition


def sizes(task: Composition) -> DeclaredSizes:
    """Return the sizes, the same for functions of any size."""
    del task
    return DeclaredSizes.of_layers((1, 1), (0, 0), 10)


@construction(
    "composition",
    "f(g(x)) from their tables, two layers",
    sizes,
    default=True,
    unproved="several keys may share",
)
def composition(task: Composition, *, attention: Attention = "softmax") -> Network:
    """Return a transformer of two layers that answers $f(g(x))$ after the entries of $f$ and $g$ and the query $x$."""
    net = Builder(
        f"composition of functions of {task.size} values, {attention}", (BEGIN, *task.alphabet), task.length, attention
    )
    n, codes = task.size, Circle(task.outputs)
    indices, none = np.arange(n), np.full(1, -1)
    arguments = np.concatenate([none, np.tile(np.repeat(indices, n), 2), indices])
    values = np.concatenate([none, np.tile(indices, 2 * n), np.full(n, -1)])
    roles = np.repeat([0.0, 1.0, -1.0, 0.0], [1, n * n, n * n, n])
    argument = net.embed("argument", codes, table(codes, arguments))
    value = net.embed("value", codes, table(codes, values))
    role = net.embed("role", Integers(("r",), -1.0, 1.0), roles[:, None])
    argument_read = argument
    for sign, name in ((1.0, "g(x)"), (-1.0, "f(g(x))")):
        mine = Test(Affine.constant(1.0), Affine.copy(role, sign), 1.0)
        tests = [same(argument_read, argument, codes), mine]
        argument_read = select(net, tests, Affine.copy(value), Space(name, codes), shares=False)
    return net.network(
        Output("class", task.outputs),
        readout(argument_read, codes),
        "composition, two layers",
        {"size": task.size},
        source="in the spirit of Peng, Narayanan and Papadimitriou 2024, arXiv 2402.08164",
        reuse=False,
    )
