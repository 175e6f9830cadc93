r"""Two layers with one head each compose two functions of any size, in a width of 10.

In the spirit of Peng, Narayanan and Papadimitriou (2024, arXiv 2402.08164), who show what one layer can't do; the
weights are our own derivation. Arguments and values are points on a circle, $c_0 \dots c_{n-1}$, with the gap $g = 1 -
\cos(2\pi/n)$ between equal and other ones; a role is $+1$ in entries of $g$, $-1$ in those of $f$.

- Layer 1 looks for the entry of $g$ whose argument is its own, by the score $c_q \cdot c_k / g + \text{role}$, and
  copies the value, $g(x)$ at the question.
- Layer 2 looks for the entry of $f$ whose argument is what layer 1 copied, and copies the value.

Where there is no such entry yet, both read nothing from BOS.

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
from vitrify.constructions.catalogue import Construction, Settings
from vitrify.kit.heads.select import Test, select
from vitrify.kit.network import Affine, Builder, Network, Space
from vitrify.net.architecture import Output
from vitrify.net.spaces import Circle, Integers
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN
from vitrify.spec.tasks.composition import Composition


def composition(task: Composition, *, attention: AttentionKind = "softmax") -> Network:
    """A transformer of two layers that answers a question about two functions in a row."""
    net = Builder(
        name=f"composition of functions of {task.size} values, {attention}",
        inputs=(BEGIN, *task.alphabet),
        max_length=task.length,
        attention=attention,
    )
    n, codes = task.size, Circle(task.outputs)
    every, none = np.arange(n), np.full(1, -1)
    arguments = np.concatenate([none, np.tile(np.repeat(every, n), 2), every])
    values = np.concatenate([none, np.tile(every, 2 * n), np.full(n, -1)])
    roles = np.repeat([0.0, 1.0, -1.0, 0.0], [1, n * n, n * n, n])
    argument = net.embed("argument", codes, table(codes, arguments))
    value = net.embed("value", codes, table(codes, values))
    role = net.embed("role", Integers(("r",), -1.0, 1.0), roles[:, None])
    found = argument
    for sign, name in ((1.0, "g(x)"), (-1.0, "f(g(x))")):
        mine = Test(Affine.constant(1.0), Affine.copy(role, sign), 1.0)
        tests = [same(found, argument, codes), mine]
        found = select(net, tests, Affine.copy(value), Space(name, codes), shares=False)
    return net.network(
        Output("class", task.outputs),
        readout(found, codes),
        {
            "construction": "composition, two layers",
            "attention": attention,
            "size": task.size,
            "source": "in the spirit of Peng, Narayanan and Papadimitriou 2024, arXiv 2402.08164",
        },
        reuse=False,
    )


SIZES = {"layers": 2, "heads": 2, "d_model": 10, "units": 0}


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Composition)
    return composition(spec, attention=settings.attention)


CONSTRUCTIONS = (
    Construction(
        "composition",
        Composition,
        "f(g(x)) from their tables, two layers",
        _make,
        default=True,
        choices=("attention",),
        certified="sampled",
        unproved="several keys may share",
    ),
)
