r"""Brackets of bounded depth run on a simple recurrent net whose state is the stack itself, in $O(D \log k)$ units.

In the spirit of Hewitt et al. (2020, arXiv 2010.07515), by weights of our own. The stack has $D$ slots, the top first;
a slot holds a flag, 1 where it is taken, and the $B = \lceil\log_2 k\rceil$ bits of the bracket's kind, 0 where it is
free. An opening bracket moves every slot one place down and writes the first, a closing one moves every slot one place
up. For every number of a slot there are two ReLU units, of which one at most is not 0, and whose sum it is:

- *pushed* $\leftarrow \mathrm{relu}(\text{the slot above} - [\text{closes}])$, in slot 1 the new bracket itself;
- *popped* $\leftarrow \mathrm{relu}(\text{the slot below} - [\text{opens}])$, none in slot $D$.

The logits are linear in the state: $\tfrac12$ less the flag of slot $D$ for opening brackets, $\tfrac12 - o$ with the
flag $o$ of slot 1 for the end of the word, and with its bits $x_b$ for a closing bracket
$\sum_b \pm(2x_b - o) + o - B - \tfrac12$, by the signs of its kind: $\tfrac12$ for the one that is next, at most
$-\tfrac12$ for all others. All numbers are whole or halves, so nothing is rounded at any length.

| | formula |
| --- | --- |
| state | $(2D - 1)(B + 1)$; the paper's net has $6D\lceil\log_2 k\rceil - 2D$ units |
| embedding | $B + 2$: closes, opens, the bits of an opening bracket |
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import DeclaredSizes, MaxLength, construction
from vitrify.constructions.dyck import reading_length
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import Flag, MultiHot
from vitrify.net.weights import Weights
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.ngrams.model import BEGIN, END


def count_bits(language: Dyck) -> int:
    """Return $B$, the bits that tell the kinds of brackets apart."""
    return (len(language.brackets) - 1).bit_length()


def sizes(language: Dyck) -> DeclaredSizes:
    """Return all sizes: the width is the state."""
    return DeclaredSizes.of_layers((0,), (0,), (2 * language.depth - 1) * (count_bits(language) + 1))


@construction(
    "dyck-elman",
    "which brackets may come next, by a stack in the state of a simple recurrent net",
    sizes,
    certified=("every length", "every length"),
)
def dyck_elman(language: Dyck, *, max_length: MaxLength | None = None) -> Weights[Recurrent]:
    """Return a simple recurrent net that outputs which brackets may come next, by the stack in its state."""
    kinds, depth = len(language.brackets), language.depth
    codes = np.hstack([np.ones((kinds, 1)), bits_of_kinds(kinds)])
    size = codes.shape[1]  # numbers of a slot
    pushed = [slice(slot * size, (slot + 1) * size) for slot in range(depth)]
    popped = [slice((depth + slot) * size, (depth + slot + 1) * size) for slot in range(depth - 1)]
    state = (2 * depth - 1) * size
    moves, drives = np.zeros((state, state)), np.zeros((1 + size, state))
    drives[1:, pushed[0]] = np.eye(size)
    for units, sign, older in [(pushed[slot], 0, slot - 1) for slot in range(1, depth)] + [
        (popped[slot], 1, slot + 1) for slot in range(depth - 1)
    ]:
        drives[sign, units] = -1.0
        for source in (*pushed[older : older + 1], *popped[older : older + 1]):
            moves[source, units] = np.eye(size)
    net = Recurrent(
        inputs=(BEGIN, *language.vocabulary),
        output=Output("next", (*language.vocabulary, END)),
        max_length=reading_length(language, max_length),
        d_embed=1 + size,
        cell=Cell("relu", state),
        name=f"stack of brackets of {kinds} kinds to depth {depth}, elman",
    )
    embedded = np.zeros((1 + 2 * kinds, 1 + size))
    embedded[1::2, 1:] = codes
    embedded[2::2, 0] = float(depth > 1)  # where there is one slot, whatever does not open empties it
    arrays = {"embed.W_E": embedded, "blocks.0.rec.W_A": moves, "blocks.0.rec.W_B": drives} | _readout(codes, depth)
    about = {"construction": "stack of brackets", "kinds": kinds, "depth": depth}
    about["source"] = "in the spirit of Hewitt et al. 2020, arXiv 2010.07515"
    return Weights(net, arrays, _labels(size, pushed, popped), about)


def bits_of_kinds(kinds: int) -> Floats:
    """The numbers of the kinds in binary [kind, bit]; one kind needs no bit."""
    return np.asarray((np.arange(kinds)[:, None] >> np.arange((kinds - 1).bit_length()) & 1).astype(np.float64))


def closing(signs: Floats) -> tuple[Floats, float]:
    """Logits of closing brackets, by the signs of their kinds, from the flag and the bits of the first slot."""
    return np.vstack([1.0 - signs.sum(axis=1), 2.0 * signs.T]), -0.5 - signs.shape[1]


def _readout(codes: Floats, depth: int) -> dict[str, Floats]:
    """Logits of brackets and of the end from the state: positive where they may come next."""
    kinds, size = codes.shape
    slots = np.zeros((depth, size, 2 * kinds + 1))
    slots[-1, 0, :-1:2] = -1.0
    slots[0, 0, -1] = -1.0
    bias = np.full(2 * kinds + 1, 0.5)
    slots[0, :, 1::2], bias[1::2] = closing(2.0 * codes[:, 1:] - 1.0)
    return {"unembed.W_U": np.concatenate([*slots, *slots[:-1]]), "unembed.b_U": bias}


def _labels(size: int, pushed: list[slice], popped: list[slice]) -> Labels:
    slot = MultiHot(("taken", *(f"bit {b}" for b in range(size - 1))))
    opening = MultiHot(("opens", *slot.values[1:]))
    spaces = [
        SpaceLabel("closes", Flag(), (0,), 0, 0),
        SpaceLabel("opening bracket", opening, tuple(range(1, 1 + size)), 0, 0),
    ]
    for how, slots in (("pushed", pushed), ("popped", popped)):
        for number, dims in enumerate(slots, start=1):
            spaces.append(SpaceLabel(f"slot {number} {how}", slot, tuple(range(dims.start, dims.stop)), 1, 1))
    return Labels(tuple(spaces))
