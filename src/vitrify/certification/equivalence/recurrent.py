r"""A recurrent network as a machine: its state, bit by bit, for every length.

The states that words lead to are finitely many where the arithmetic is exact: all weights and states are multiples of
$2^{-k}$ so small that no sum of products is rounded, in whatever order it is taken. An LSTM is exact where all its
gates are saturated: a sigmoid is then 0 or 1, a tanh of a gate -1, 0 or 1, whatever the last bits of its argument.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.margins.values import Undecided
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights

FRACTION_BITS = 12  # of weights and states
MAX_SUM = 2.0 ** (52 - 2 * FRACTION_BITS)  # of the sizes of products of two such numbers, without rounding
SATURATED = 40.0  # arguments beyond which sigmoid and tanh are 0 or ±1 in float64, with room for rounding
EXACT_CELLS = ("linear", "relu", "diagonal", "householder", "full", "lstm")

State = tuple[Floats, ...]


class RecurrentMachine:
    """The state of a recurrent network after a word."""

    longest: int | None = None

    def __init__(self, weights: Weights[Recurrent]) -> None:
        self.weights, self.net = weights, weights.architecture
        if self.net.cell.kind not in EXACT_CELLS:
            raise Undecided(f"the states of a cell of kind {self.net.cell.kind!r} are rounded")
        arrays = {name: np.asarray(dense(weights.arrays[name])) for name in ("embed.W_E", "blocks.0.rec.W_B")}
        arrays["blocks.0.rec.W_A"] = np.asarray(dense(weights.arrays["blocks.0.rec.W_A"]))
        self.arrays = arrays
        if self.net.cell.kind != "lstm":
            for name, array in arrays.items():
                _need_exact(array, name)
            self._bound = _largest_sum(self.net, arrays)

    def start(self) -> tuple[State, Floats]:
        tokens = np.zeros((1, self.net.pads), dtype=np.int64)
        cache = Cache()
        logits = self.net.forward(self.weights.prepared, tokens, cache=cache)
        return self._held(cache)[0], logits[0, -1]

    def steps(self, memories: Sequence[State], tokens: Sequence[int]) -> tuple[list[State], Floats]:
        cache = Cache()
        stacked = tuple(np.stack(part) for part in zip(*memories, strict=True))
        cache.set_state("blocks.0.rec", stacked if len(stacked) > 1 else stacked[0])
        if self.net.cell.kind == "lstm":
            self._need_saturated(stacked[0], np.asarray(tokens))
        cache.positions = 1
        logits = self.net.forward(self.weights.prepared, np.asarray(tokens, dtype=np.int64)[:, None], cache=cache)
        return self._held(cache), logits[:, -1]

    def key(self, memory: State) -> Hashable:
        return tuple(np.round(part, 9).tobytes() if self.net.cell.kind == "lstm" else part.tobytes() for part in memory)

    def letter(self, token: int) -> Hashable:
        return bytes(self.arrays["embed.W_E"][token].tobytes())

    def _held(self, cache: Cache) -> list[State]:
        carry = cache.state("blocks.0.rec", np.zeros(0))
        parts = carry if isinstance(carry, tuple) else (carry + 0.0,)  # + 0.0: no negative zeros
        exact = parts[-1]  # the state, or the cells of an LSTM
        _need_exact(exact, "the state")
        if self.net.cell.kind != "lstm" and np.abs(exact).max(initial=0.0) * self._bound > MAX_SUM:
            raise Undecided("the state grows beyond what float64 holds exactly")
        return [tuple(part[at] for part in parts) for at in range(len(exact))]

    def _need_saturated(self, hidden: Floats, tokens: Floats) -> None:
        """Refuse gates of an LSTM that are not saturated."""
        x = self.arrays["embed.W_E"][tokens]
        driven = x @ self.arrays["blocks.0.rec.W_B"] + np.asarray(self.weights.arrays["blocks.0.rec.b"])
        gates = hidden @ self.arrays["blocks.0.rec.W_A"] + driven
        size = self.net.cell.state
        zero = np.zeros_like(gates, dtype=bool)
        zero[:, 2 * size : 3 * size] = gates[:, 2 * size : 3 * size] == 0  # nothing to write
        if not ((np.abs(gates) > SATURATED) | zero).all():
            raise Undecided("a gate of the LSTM is not saturated, so that its states are rounded")


def _need_exact(array: Floats, name: str) -> None:
    scaled = array * 2.0**FRACTION_BITS
    if not np.array_equal(scaled, np.round(scaled)):
        raise Undecided(f"{name} holds numbers that are no multiples of 2^-{FRACTION_BITS}: sums may be rounded")


def _largest_sum(net: Recurrent, arrays: dict[str, Floats]) -> float:
    """Return a bound on the sum of sizes in one step, for a state and inputs of size 1; factors multiply it."""
    read = np.abs(arrays["embed.W_E"]).sum(axis=1).max(initial=1.0)
    transition, driven = np.abs(arrays["blocks.0.rec.W_A"]), np.abs(arrays["blocks.0.rec.W_B"])
    size = float(transition.sum(axis=-2).max(initial=1.0)) * max(1.0, float(read)) + float(driven.sum(axis=0).max())
    if net.cell.kind == "householder":
        size = (1 + float(read * transition.max(initial=0.0)) ** 2 * net.cell.state) ** net.cell.factors
    return size * max(1.0, float(read))
