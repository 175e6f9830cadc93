r"""Brackets of bounded depth run on an LSTM that keeps every slot of the stack where it is, in $D(\log k + 1)$ cells.

In the spirit of Hewitt et al. (2020, arXiv 2010.07515), by weights of our own. For each depth $d$ there is a cell that
says whether slot $d$ is taken, $u_d \in \{0, 1\}$, and one for each of the $B = \lceil\log_2 k\rceil$ bits of the kind
of the bracket in it, $v_{d,b} = \pm 1$. Nothing moves: a slot is taken by an opening bracket where the one below is
taken and it is not, and set free by a closing one where the one above is free.

| gate | of $u_d$ | of $v_{d,b}$ |
| --- | --- | --- |
| input | opens and $u_{d-1}$ and not $u_d$ | the same |
| forget (1 keeps) | opens or $u_{d+1}$ | not the input gate |
| new value | 1 | the bit of the bracket |
| output | open | open |

Each is $\pm 50$ at least, where $\sigma$ and $\tanh$ are 0 and $\pm 1$ to the last bit, so cells are whole numbers at
any length, and $h = \tanh(c)$ is 0 or $\pm\tanh(1)$, which readers divide by. A ReLU unit for each slot and bit is 1
where the slot is the top and the bit 1, and the logits are linear in their sums, as in `recurrent_dyck`.

| | formula |
| --- | --- |
| cells | $D(B + 1)$; the paper's LSTM has $3D\lceil\log_2 k\rceil - D$ and, as far as we know, no units behind it |
| width | $2D(B + 1)$: the cells and what they show |
| units | $DB + 2$ |
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import DeclaredSizes, MaxLength, construction
from vitrify.constructions.dyck import reading_length
from vitrify.constructions.recurrent_dyck import bits_of_kinds, closing, count_bits
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell
from vitrify.net.labels import Labels, SpaceLabel, UnitsLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import Integers, MultiHot, Reals
from vitrify.net.weights import Weights
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.ngrams.model import BEGIN, END

GATE_SCALE = 100.0  # half of it saturates every gate
TANH_ONE = float(np.tanh(1.0))  # what a cell of 1 shows


def sizes(language: Dyck) -> DeclaredSizes:
    """Return all sizes, by the depth and the bits of a kind; the width counts every cell twice."""
    bits, depth = count_bits(language), language.depth
    return DeclaredSizes.of_layers((0,), (depth * bits + 2,), 2 * depth * (bits + 1))


@construction(
    "dyck-lstm",
    "which brackets may come next, by a stack in the cells of an LSTM",
    sizes,
    certified=("every length", "every length"),
)
def dyck_lstm(language: Dyck, *, max_length: MaxLength | None = None) -> Weights[Recurrent]:
    """Return an LSTM that outputs which brackets may come next, by the stack in its cells."""
    kinds, depth = len(language.brackets), language.depth
    signs = 2.0 * bits_of_kinds(kinds) - 1.0
    bits = signs.shape[1]
    net = Recurrent(
        inputs=(BEGIN, *language.vocabulary),
        output=Output("next", (*language.vocabulary, END)),
        max_length=reading_length(language, max_length),
        d_embed=1 + bits,
        cell=Cell("lstm", depth * (bits + 1)),
        units=depth * bits + 2,
        d_out=bits + 2,
        name=f"stack of brackets of {kinds} kinds to depth {depth}, lstm",
    )
    arrays: dict[str, Floats] = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][1::2] = np.hstack([np.ones((kinds, 1)), signs])
    arrays |= _gates(depth, bits)
    arrays["blocks.0.mlp.W_in"], arrays["blocks.0.mlp.b_in"], arrays["blocks.0.mlp.W_out"] = _top(depth, bits)
    arrays["unembed.W_U"][: bits + 1, 1:-1:2], arrays["unembed.b_U"][1:-1:2] = closing(signs)
    arrays["unembed.W_U"][bits + 1, :-1:2] = arrays["unembed.W_U"][0, -1] = -1.0
    arrays["unembed.b_U"][::2] = 0.5
    about = {"construction": "stack of brackets, LSTM", "kinds": kinds, "depth": depth}
    about["source"] = "in the spirit of Hewitt et al. 2020, arXiv 2010.07515"
    return Weights(net, arrays, _labels(depth, bits), about)


def _gates(depth: int, bits: int) -> dict[str, Floats]:
    """Return the weights of the gates of all cells: first those of the flags, then the bits of each slot."""
    state = depth * (bits + 1)
    seen, driven = np.zeros((state, 4, state)), np.zeros((1 + bits, 4, state))  # gates: input, forget, new, output
    bias = np.zeros((4, state))
    bias[3] = GATE_SCALE
    for d in range(depth):
        own = [d, *range(depth + d * bits, depth + (d + 1) * bits)]
        for gate, sign, members in ((0, 1.0, own), (1, -1.0, own[1:])):
            seen[d, gate, members] = -sign / TANH_ONE
            if d:
                seen[d - 1, gate, members] = sign / TANH_ONE
            driven[0, gate, members] = sign
            bias[gate, members] = -sign * GATE_SCALE * (1.5 if d else 0.5)
        driven[0, 1, d] = 1.0
        bias[1, d] = -GATE_SCALE / 2
        if d + 1 < depth:
            seen[d + 1, 1, d] = 1 / TANH_ONE
        bias[2, d] = GATE_SCALE
        driven[1:, 2, own[1:]] = np.eye(bits)
    return {
        "blocks.0.rec.W_A": GATE_SCALE * seen.reshape(state, 4 * state),
        "blocks.0.rec.W_B": GATE_SCALE * driven.reshape(1 + bits, 4 * state),
        "blocks.0.rec.b": bias.ravel(),
    }


def _top(depth: int, bits: int) -> tuple[Floats, Floats, Floats]:
    """Return the units that read the bits of the top slot, and whether the first and the last slot are taken."""
    state, units = depth * (bits + 1), depth * bits + 2
    into, bias, out = np.zeros((state, units)), np.zeros(units), np.zeros((units, bits + 2))
    for d in range(depth):
        for b in range(bits):
            unit = d * bits + b
            into[depth + unit, unit] = 1.0
            into[d, unit] = 2.0
            if d + 1 < depth:
                into[d + 1, unit] = -2.0
            bias[unit], out[unit, 1 + b] = -2.0, 1.0
    into[0, -2] = into[depth - 1, -1] = out[-2, 0] = out[-1, -1] = 1.0
    return into / TANH_ONE, bias, out


def _labels(depth: int, bits: int) -> Labels:
    names = tuple(f"bit {b}" for b in range(bits))
    spaces = [SpaceLabel("opening bracket", Integers(("opens", *names), -1.0, 1.0), tuple(range(1 + bits)), 0, 0)]
    taken = Reals(tuple(f"slot {d + 1}" for d in range(depth)), 0.0, 1.0)
    spaces.append(SpaceLabel("taken", taken, tuple(range(depth)), 1, 1))
    for d in range(depth if bits else 0):
        dims = tuple(range(depth + d * bits, depth + (d + 1) * bits))
        spaces.append(SpaceLabel(f"slot {d + 1}", Reals(names, -1.0, 1.0), dims, 1, 1))
    top = MultiHot(("taken", *names, "full"))
    spaces.append(SpaceLabel("top of the stack", top, tuple(range(bits + 2)), 2, 2))
    rows = (*(f"slot {d + 1}, {name}" for d in range(depth) for name in names), "taken", "full")
    return Labels(tuple(spaces), (), (UnitsLabel("top", 0, 0, depth * bits + 2, ("top of the stack",), rows),))
