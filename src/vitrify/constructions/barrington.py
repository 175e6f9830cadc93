r"""A formula of depth $D$ by two layers in a loop, $2D$ times: Barrington's theorem and the product of permutations.

The loop is in the spirit of Merrill & Sabharwal (2025, arXiv 2503.03961), by whom $\log n$ depth suffices for regular
languages; the permutations are those of Barrington (1989). The weights are our own derivation.

A formula of depth $D$ in AND and OR is a product of at most $4^D$ permutations of five points, each chosen by the value
of one variable (`spec/computation/barrington.py`). The $n$ tokens of the bits are followed by $4^D$ padding tokens, one
for each instruction; positions hold the address $a$ of its variable and its permutations $g_0$, $g_1$, as vectors of
whole numbers. Tokens that are left over hold the identity. Each round has two layers:

1. A head reads the bit $x$ at the address, as the key of position $j$ is $(j, j^2)$ and the query $(2a, -1)$. Units
   replace the permutation $m$ at the position by $m + x(g_1 - g_0)$ in the first round, when $m = g_0$ and a number $s$
   in the residual stream is 1; later $s \ge 2$ closes them.
2. A head reads the permutation at the distance $s$, and units compose it with that at the position and double $s$, as
   in `looped`.

After $r$ rounds a position holds the product of the last $2^r$ permutations, and after $2D$ rounds the last one that of
all $4^D$: a 5-cycle that takes point 0 to 1 if the formula is true, else the identity. Neither weights nor temperatures
depend on the formula; positions do. For $u = 2x - \tfrac12$, which is at least 1 or at most 0 for a bit that is off by
less than $\tfrac14$, units $\mathrm{relu}(d + 4 + 8(u - 1)) - \mathrm{relu}(4 + 8(u - 1))$ are $d$ or 0 for $|d| \le
4$: errors of the bit vanish.

| | formula |
| --- | --- |
| layers stored, heads in each | 2; 1 and 1 |
| rounds | $2D$, at least 1 |
| tokens | $n + 4^D$ |
| units in each | 11; 59: 41 to compose, 1 to double $s$, 17 to erase |
| width | 26 |
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.constructions.catalogue import Attention, DeclaredSizes, construction
from vitrify.constructions.looped import temperature
from vitrify.kit.gadgets.compose import int_compose
from vitrify.kit.network import Affine, Builder, Flag, Integers, Network, Output, Readout, Space
from vitrify.spec.computation.barrington import IDENTITY, Instruction, program
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.formula_value import FormulaValue

POINTS = tuple(map(str, IDENTITY))
CLOSED = 32.0  # what each unit of s beyond 1 subtracts: more than a bit and a difference can add


def sizes(task: FormulaValue) -> DeclaredSizes:
    """Return the sizes, none of which depends on the formula."""
    del task
    return DeclaredSizes.of_layers((1, 1), (11, 59), 26)


@construction(
    "barrington",
    "a Boolean formula of depth D as a product of 4^D permutations, two layers in a loop",
    sizes,
    default=True,
    certified=("to T", "to T"),
)
def barrington(task: FormulaValue, *, attention: Attention = "softmax") -> Network:
    """Return a transformer of two layers, run in a loop, that outputs the value of a formula."""
    bits, longest = len(task.variables), task.length
    loops = max(1, 2 * task.depth)
    name = f"formula of {bits} variables and depth {task.depth}, {attention}"
    net = Builder(name, (BEGIN, *task.alphabet), longest, attention)
    bit = net.embed("bit", Flag(), np.array([[0.0], [0.0], [1.0], [0.0]]))
    far = Integers(("s",), 0.0, 2.0**loops)
    distance = net.embed("distance", far, np.ones((len(net.inputs), 1)))
    instructions = program(task.node)
    rows = [Instruction("", IDENTITY, IDENTITY)] * longest
    rows[bits : bits + len(instructions)] = instructions
    addresses = np.array([[task.variables.index(row.variable) + 1 if row.variable else 0] for row in rows])
    address = net.embed_position("address", Integers(("a",), 0.0, float(bits)), addresses.astype(float))
    kind, zero = Integers(POINTS, 0.0, 4.0), np.array([row.if_zero for row in rows], dtype=float)
    current = net.embed_position("permutation", kind, zero, pads=np.array([IDENTITY], dtype=float))
    change = np.array([row.if_one for row in rows]) - zero
    difference = net.embed_position("g₁ - g₀", Integers(POINTS, -4.0, 4.0), change)
    value = _at(net, "bit of the variable", Affine.of({address: [[1.0]]}), bit, 1)
    letter = Space("chosen permutation", kind)
    closed, one = Affine.of({value: [[16.0]], distance: [[-CLOSED]]}, [CLOSED - 8.0]), np.eye(5)
    net.units(
        "choose by the bit",
        Affine.of({current: one}, np.ones(5))
        .beside(Affine.of({difference: one}) + closed @ np.ones((1, 5)))
        .beside(closed),
        letter,
        np.vstack([one, one, -np.ones((1, 5))]),
        -np.ones(5),
        margin={value: 0.25},
        gain={current: 1.0},
    )
    older = _at(net, "read at the distance", Affine.of({net.index: [[1.0]], distance: [[-1.0]]}), letter, 4)
    both = int_compose(net, older, letter, name="permutation of twice as many instructions")
    doubled = Space("twice the distance", far)
    last = Affine.of({distance: [[2.0]], older: np.zeros((5, 1))})  # in the layer that reads `older`, like `both`
    net.units("double the distance", last, doubled, np.eye(1), gain={distance: 2.0})
    image = np.zeros((5, 2))
    image[0, 1] = 1.0
    network = net.network(
        Output("class", task.outputs),
        Readout(((both, image),), np.array([0.5, 0.0]), {both: 0.25}),
        "formula by Barrington's theorem, two layers in a loop",
        {"depth": task.depth, "instructions": len(instructions), "rounds": loops},
        source="in the spirit of Barrington 1989, and of Merrill and Sabharwal 2025, arXiv 2503.03961",
        reuse=False,
    )
    return replace(network, loops=loops, carries=((current, both), (distance, doubled)))


def _at(net: Builder, name: str, position: Affine, value: Space, largest: int) -> Space:
    """Return a value up to `largest` at the position with a given index, as in `looped`; that at BOS for 0 and less."""
    return net.attend(
        name,
        query=position @ np.array([[2.0, 0.0]]) + Affine.constant([0.0, -1.0]),
        key=Affine.of({net.index: [[1.0, 0.0]], net.square: [[0.0, 1.0]]}),
        value=Affine.copy(value),
        writes=Space(name, value.kind),
        gap=1.0,
        bound=3.0 * net.max_length**2,
        **(temperature(largest + 1) if net.attention == "softmax" else {}),
    )
