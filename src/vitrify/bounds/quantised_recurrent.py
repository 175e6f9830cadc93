r"""Recurrent nets at $b$ bits per coordinate of the state.

Between two positions the state is a row of signed integers of $b$ bits, each worth one `step`: after every symbol each
coordinate is rounded to the nearest of them and cut off at both ends. All else is computed without rounding; what a net
says after a symbol is read from the state before it is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.bounds.quantised import MOST_BITS, Floats, Ints, signed
from vitrify.errors import InputError


@dataclass(frozen=True, eq=False)
class QuantisedRecurrent:
    """A recurrence over `symbols`: `follow` takes states [batch, size] and symbols [batch] to states and logits.

    Logits are over `answers`. `follow` works on plain numbers: states are multiplied by `step` [size] before, and
    rounded to it after.
    """

    symbols: tuple[str, ...]
    answers: tuple[str, ...]
    bits: int
    first: Floats
    step: Floats
    follow: Callable[[Floats, Ints], tuple[Floats, Floats]]

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MOST_BITS:
            raise InputError(f"a quantised state has from 1 to {MOST_BITS} bits per coordinate, not {self.bits}")

    @property
    def size(self) -> int:
        """Coordinates of the state."""
        return len(self.step)

    @property
    def state_bits(self) -> int:
        """Bits of the whole state."""
        return self.bits * self.size

    def start(self, batch: int) -> Ints:
        """The state before any symbol."""
        return np.repeat(signed(self.first / self.step, self.bits)[None], batch, axis=0)

    def after(self, state: Ints, words: Ints) -> tuple[Ints, Floats]:
        """The state [batch, size] after more symbols [batch, length], and the logits [batch, out] after the last.

        Equal rows are followed once and one by one, so that no answer depends on what else is in the batch.
        """
        logits = np.zeros((len(state), len(self.answers)))
        for place in range(words.shape[1]):
            rows, back = np.concatenate([state, words[:, place : place + 1]], axis=1), np.zeros(1, dtype=np.int64)
            if len(rows) > 1:
                rows, back = np.unique(rows, axis=0, return_inverse=True)
            found = [self.follow(row[None, :-1] * self.step, row[-1:]) for row in rows]
            back = back.reshape(-1)
            state = signed(np.concatenate([following for following, _ in found]) / self.step, self.bits)[back]
            logits = np.concatenate([said for _, said in found])[back]
        return state, logits

    def says(self, logits: Floats) -> Ints:
        """The likeliest answer, as a symbol to go on with."""
        known = [self.symbols.index(answer) if answer in self.symbols else 0 for answer in self.answers]
        return np.asarray(np.array(known)[logits.argmax(axis=1)], dtype=np.int64)


def random_recurrent(
    symbols: Sequence[str], answers: Sequence[str], *, size: int, bits: int, seed: int = 0
) -> QuantisedRecurrent:
    """A recurrence with random weights, $h' = \\tanh(hA + B_x)$, and a random readout."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(size, size)) / np.sqrt(size), rng.normal(size=(len(symbols), size))
    out = rng.normal(size=(size, len(answers)))

    def follow(h: Floats, x: Ints) -> tuple[Floats, Floats]:
        h = np.tanh(h @ a + b[x])
        return h, h @ out

    return QuantisedRecurrent(
        symbols=tuple(symbols),
        answers=tuple(answers),
        bits=bits,
        first=np.zeros(size),
        step=np.full(size, 2.0 / (1 << bits)),
        follow=follow,
    )
