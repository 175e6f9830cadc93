r"""Recurrent nets at $b$ bits per coordinate of the state.

Between two positions the state is a row of signed integers of $b$ bits, each worth one `step`: after every symbol each
coordinate is rounded to the nearest of them and cut off at both ends. All else is computed without rounding; what a net
says after a symbol is read from the state before it is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.bounds.quantised import MOST_BITS, Floats, Ints, signed
from vitrify.errors import InputError
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights

KEPT = "blocks.0.rec"  # where a recurrent net keeps its state
WORDS, LENGTH = 64, 64  # random words that tell how large a state becomes


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


def quantise_recurrent(weights: Weights[Any], symbols: Sequence[str], bits: int, seed: int = 0) -> QuantisedRecurrent:
    """A recurrent net of any cell with its state at so many bits per coordinate, over some of its symbols.

    An LSTM keeps two rows, so that its state has twice as many coordinates. A coordinate's step is the largest size
    that it had on random words, over $2^{b-1} - 1$.
    """
    net = weights.architecture
    if not isinstance(net, Recurrent):
        raise InputError(f"this is about recurrent nets; the net is {net.tag}")
    unknown = [symbol for symbol in symbols if symbol not in net.input_ids]
    if unknown:
        raise InputError(f"the net does not read {', '.join(map(repr, unknown))}")
    ids = np.array([net.input_ids[symbol] for symbol in symbols])
    pair = net.cell.kind == "lstm"

    def run(state: Floats | None, tokens: Ints) -> tuple[Floats, Floats]:
        cache = Cache()
        if state is not None:
            cache.keep(KEPT, tuple(np.split(state, 2, axis=1)) if pair else state)
        logits = np.asarray(net.forward(weights.prepared, tokens, cache=cache))[:, -1]
        kept = cache.kept(KEPT, None)
        return (np.concatenate(kept, axis=1) if pair else np.asarray(kept)), logits

    first, _ = run(None, np.zeros((1, net.pads), dtype=np.int64))
    state, largest = np.repeat(first, WORDS, axis=0), np.abs(first[0])
    rng = np.random.default_rng(seed)
    for _ in range(min(net.max_length, LENGTH)):
        state, _ = run(state, rng.choice(ids, (WORDS, 1)))
        largest = np.maximum(largest, np.abs(state).max(axis=0))
    return QuantisedRecurrent(
        symbols=tuple(symbols),
        answers=net.output.symbols,
        bits=bits,
        first=first[0],
        step=np.where(largest > 0, largest, 1.0) / max((1 << (bits - 1)) - 1, 1),
        follow=lambda state, x: run(state, ids[x][:, None]),
    )
