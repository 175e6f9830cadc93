r"""Orbits of recurrent networks on words of one letter, in their own rounded arithmetic: what such a net can't count.

The states on $a, aa, aaa, \dots$ are finitely many floats, so from some length on they repeat. Let all layers be
diagonal recurrences whose factors and inputs are functions of what the layer reads. A coordinate of the first layer
follows one map $x \mapsto \mathrm{round}(\mathrm{round}(\lambda x) + b)$, which is monotone for $\lambda \ge 0$ and
antitone for $\lambda \le 0$, as rounding is monotone. The orbit of a monotone map on a finite chain ends in a fixed
point, that of an antitone map in a period of 1 or 2. The next layer is driven by what repeats with some period, and its
map over one period is monotone or antitone again. So a stack of $L$ layers ends in a period that divides $2^L$, and in
1 where no factor is negative. Lengths that differ by the period are then the same to the network: it can't count
modulo 3, and not modulo 2 without negative factors. Our own derivation; the limit for finite precision is that of
Grazzi et al. (2025, arXiv 2411.12537).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell, CellKind
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer import Block, Transformer
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights

MAX_STEPS = 1 << 16  # letters that are read until the states repeat
SCALE, FACTOR_SCALE = 0.4, 0.3  # of random weights; factors near 1 would take long to repeat


@dataclass(frozen=True)
class Orbit:
    """The states on words of one letter: all that follow `start` letters repeat with the `period`."""

    letter: str
    start: int
    period: int

    def confused(self, modulus: int) -> tuple[int, int] | None:
        """Return two lengths with the same state and different remainders; None if the period is a multiple.

        >>> Orbit("a", 5, 2).confused(3)
        (5, 7)
        """
        return (self.start, self.start + self.period) if self.period % modulus else None


def orbit(weights: Weights[Recurrent] | Weights[Transformer], letter: str, max_steps: int = MAX_STEPS) -> Orbit:
    """Return the orbit of recurrent layers, without heads and positions, on a letter that is read again and again."""
    net = weights.architecture
    cells = _cells(weights)
    cache, seen = Cache(), dict[bytes, int]()
    net.forward(weights.prepared, np.zeros((1, net.pads), dtype=np.int64), cache=cache)
    token = np.array([[net.inputs.index(letter)]])
    for length in range(max_steps + 1):
        parts = [np.asarray(cache.state(f"blocks.{block}.rec", np.zeros(0))) for block in cells]
        key = b"".join((part + 0.0).tobytes() for part in parts)  # + 0.0: no negative zeros
        if key in seen:
            return Orbit(letter, seen[key], length - seen[key])
        seen[key] = length
        cache.positions = net.pads  # nothing reads it
        net.forward(weights.prepared, token, cache=cache)
    raise InputError(f"the states do not repeat within {max_steps} letters {letter!r}: raise max_steps")


def _cells(weights: Weights[Recurrent] | Weights[Transformer]) -> Sequence[int]:
    """Return the blocks of a network that have a recurrent cell; refuse what its states do not determine."""
    net = weights.architecture
    if isinstance(net, Recurrent):
        cells: Sequence[int] = (0,)
        kinds = [net.cell.kind]
    else:
        positions = weights.arrays.get("pos_embed.W_pos", np.zeros(1))
        if any(block.heads for block in net.blocks) or net.formulas or np.any(positions):
            raise InputError("an orbit is of recurrent layers alone: this network has heads or positions")
        cells = [index for index, block in enumerate(net.blocks) if block.cell]
        kinds = [block.cell.kind for block in net.blocks if block.cell]
    if "lstm" in kinds:
        raise InputError("an orbit is of cells whose state is one vector, not of an LSTM")
    return cells


def random_stack(seed: int, kind: CellKind, layers: int, *, state: int = 3, width: int = 4) -> Weights[Transformer]:
    """Return a stack of recurrent layers and MLPs over the letters 0 and 1, with random weights and no positions."""
    net = Transformer(
        inputs=("<s>", "0", "1"),
        output=Output("recognizer", ("no", "yes"), accepting=("yes",)),
        max_length=1,
        d_model=width,
        blocks=(Block(units=4, cell=Cell(kind, state)),) * layers,
        name=f"random stack {seed}",
    )
    rng = np.random.default_rng(seed)
    scales = {name: FACTOR_SCALE if name.endswith(("W_A", "rec.b")) else SCALE for name in net.shapes()}
    arrays = {name: rng.normal(scale=scales[name], size=shape) for name, shape in net.shapes().items()}
    return Weights(net, {**arrays, "pos_embed.W_pos": np.zeros((2, width))}, about={"seed": seed})
