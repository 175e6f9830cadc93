r"""A recurrent network as a machine: its state, bit by bit, for every length.

The states that words lead to are finitely many where the arithmetic is exact: no sum of products is rounded, in
whatever order it is taken, because all weights and states are whole numbers (or, in cells that multiply a state once,
multiples of $2^{-12}$) of moderate size. An LSTM is exact where its gates are saturated: a sigmoid is then 0 or 1, and
the tanh of a gate -1 or 1, whatever the last bits of its argument.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.margins.values import Undecided
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights

FRACTION_BITS = 12  # of weights and states, where a state is multiplied once
ONE_PRODUCT = ("linear", "relu", "lstm")  # kinds of cells that multiply a state once
MAX_SUM = 2.0**52  # of the sizes of whole numbers, without rounding
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
        names = ("embed.W_E", "blocks.0.rec.W_B", "blocks.0.rec.W_A")
        self.arrays = {name: np.asarray(dense(weights.arrays[name])) for name in names}
        self._bits = FRACTION_BITS if self.net.cell.kind in ONE_PRODUCT else 0
        if self.net.cell.kind != "lstm":
            for name, array in self.arrays.items():
                self._need_exact(array, name)
            self._bound = _largest_sum(self.net, self.arrays)

    def start(self) -> tuple[State, Floats]:
        tokens = np.zeros((1, self.net.pads), dtype=np.int64)
        cache = Cache()
        logits = self.net.forward(self.weights.prepared, tokens, cache=cache)
        return tuple(part[0] for part in self._held(cache)), logits[0, -1]

    def steps(self, memories: Sequence[State], tokens: Sequence[int]) -> tuple[list[State], Floats]:
        stacked = tuple(np.stack(part) for part in zip(*memories, strict=True))
        parts, logits = self.batch(stacked, np.asarray(tokens, dtype=np.int64))
        return [tuple(part[at] for part in parts) for at in range(len(tokens))], logits

    def batch(self, states: State, tokens: Ints) -> tuple[State, Floats]:
        """Return the states [word, …] after one more token each, and the logits [word, symbol] there."""
        cache = Cache()
        cache.set_state("blocks.0.rec", states if len(states) > 1 else states[0])
        if self.net.cell.kind == "lstm":
            self._need_saturated(states[0], tokens)
        cache.positions = 1
        logits = self.net.forward(self.weights.prepared, tokens[:, None], cache=cache)
        return self._held(cache), logits[:, -1]

    def key(self, memory: State) -> Hashable:
        return tuple(np.round(part, 9).tobytes() if self.net.cell.kind == "lstm" else part.tobytes() for part in memory)

    def letter(self, token: int) -> Hashable:
        return bytes(self.arrays["embed.W_E"][token].tobytes())

    def _held(self, cache: Cache) -> State:
        carry = cache.state("blocks.0.rec", np.zeros(0))
        parts = carry if isinstance(carry, tuple) else (carry + 0.0,)  # + 0.0: no negative zeros
        exact = parts[-1]  # the state, or the cells of an LSTM
        self._need_exact(exact, "the state")
        largest = max(1.0, float(np.abs(exact).max(initial=0.0)))
        if self.net.cell.kind != "lstm" and largest * self._bound > MAX_SUM / 4**self._bits:
            raise Undecided("the state grows beyond what float64 holds exactly")
        return parts

    def _need_saturated(self, hidden: Floats, tokens: Ints) -> None:
        """Refuse gates of an LSTM that are not saturated."""
        x = self.arrays["embed.W_E"][tokens]
        driven = x @ self.arrays["blocks.0.rec.W_B"] + np.asarray(self.weights.arrays["blocks.0.rec.b"])
        gates = hidden @ self.arrays["blocks.0.rec.W_A"] + driven
        size = self.net.cell.state
        fixed = np.abs(gates) > SATURATED
        closed = gates[:, :size] < -SATURATED  # where nothing is written, whatever it would be
        fixed[:, 2 * size : 3 * size] |= closed
        if not fixed.all():
            raise Undecided("a gate of the LSTM is not saturated, so that its states are rounded")

    def _need_exact(self, array: Floats, name: str) -> None:
        scaled = array * 2.0**self._bits
        if not np.array_equal(scaled, np.round(scaled)):
            raise Undecided(f"{name} holds numbers that are no multiples of {2.0**-self._bits:g}: sums may be rounded")


def _largest_sum(net: Recurrent, arrays: dict[str, Floats]) -> float:
    """Return a bound on the sum of sizes in one step, for a state and inputs of size 1; factors multiply it."""
    read = np.abs(arrays["embed.W_E"]).sum(axis=1).max(initial=1.0)
    transition, driven = np.abs(arrays["blocks.0.rec.W_A"]), np.abs(arrays["blocks.0.rec.W_B"])
    size = float(transition.sum(axis=-2).max(initial=1.0)) * max(1.0, float(read)) + float(driven.sum(axis=0).max())
    if net.cell.kind == "householder":
        size = (1 + float(read * transition.max(initial=0.0)) ** 2 * net.cell.state) ** net.cell.factors
    return size * max(1.0, float(read))
