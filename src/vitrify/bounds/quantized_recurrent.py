r"""Recurrent nets at $b$ bits per coordinate of the state.

Between two positions the state is a vector of signed integers of $b$ bits, in units of `step`: after every symbol each
coordinate is rounded to the nearest integer and clipped. All else is computed without rounding; the logits after a
symbol are read from the state before it is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.bounds.quantized import MAX_BITS, signed
from vitrify.errors import InputError
from vitrify.net.architecture import Architecture
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights

STATE_NAME = "blocks.0.rec"  # name of the state in the cache
N_WORDS, WORD_LENGTH = 64, 64  # random words on which the range of the state is measured


@dataclass(frozen=True, eq=False)
class QuantizedRecurrent:
    """A recurrence over `symbols`: `follow` maps states [batch, size] and symbols [batch] to states and logits.

    Logits are over `answers`; `first_logits` are those before any symbol, where they are known. `follow` works on plain
    numbers: states are multiplied by `step` [size] before, and rounded to it after.
    """

    symbols: tuple[str, ...]
    answers: tuple[str, ...]
    bits: int
    first: Floats
    step: Floats
    follow: Callable[[Floats, Ints], tuple[Floats, Floats]]
    first_logits: Floats | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MAX_BITS:
            raise InputError(f"a quantized state has from 1 to {MAX_BITS} bits per coordinate, not {self.bits}")

    @property
    def size(self) -> int:
        """Number of coordinates of the state."""
        return len(self.step)

    def start(self, batch: int) -> Ints:
        """Return the state before any symbol."""
        return np.repeat(signed(self.first / self.step, self.bits)[None], batch, axis=0)

    def after(self, state: Ints, words: Ints) -> tuple[Ints, Floats]:
        """Return the state [batch, size] after symbols [batch, length], and the logits [batch, out] after the last.

        Equal rows are computed once, and one by one, so that no answer depends on the rest of the batch.
        """
        logits = np.zeros((len(state), len(self.answers)))
        for position in range(words.shape[1]):
            rows, back = np.concatenate([state, words[:, position : position + 1]], axis=1), np.zeros(1, dtype=np.int64)
            if len(rows) > 1:
                rows, back = np.unique(rows, axis=0, return_inverse=True)
            outputs = [self.follow(row[None, :-1] * self.step, row[-1:]) for row in rows]
            back = back.reshape(-1)
            state = signed(np.concatenate([following for following, _ in outputs]) / self.step, self.bits)[back]
            logits = np.concatenate([row_logits for _, row_logits in outputs])[back]
        return state, logits

    def likeliest(self, logits: Floats) -> Ints:
        """Return the likeliest answers as symbols to continue with."""
        known = [self.symbols.index(answer) if answer in self.symbols else 0 for answer in self.answers]
        return np.asarray(np.array(known)[logits.argmax(axis=1)], dtype=np.int64)


def random_recurrent(
    symbols: Sequence[str], answers: Sequence[str], *, size: int, bits: int, seed: int = 0
) -> QuantizedRecurrent:
    """Return a recurrence with random weights, $h' = \\tanh(hA + B_x)$, and a random readout."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(size, size)) / np.sqrt(size), rng.normal(size=(len(symbols), size))
    out = rng.normal(size=(size, len(answers)))

    def follow(h: Floats, x: Ints) -> tuple[Floats, Floats]:
        h = np.tanh(h @ a + b[x])
        return h, h @ out

    return QuantizedRecurrent(
        symbols=tuple(symbols),
        answers=tuple(answers),
        bits=bits,
        first=np.zeros(size),
        step=np.full(size, 2.0 / (1 << bits)),
        follow=follow,
        first_logits=np.zeros(len(answers)),
    )


def quantize_recurrent(
    weights: Weights[Architecture], symbols: Sequence[str], bits: int, seed: int = 0
) -> QuantizedRecurrent:
    """Return a recurrent net of any cell with `bits` bits per coordinate of its state, over some of its symbols.

    The state of an LSTM has two vectors, so twice as many coordinates. The step of a coordinate is its largest absolute
    value on random words, over $2^{b-1} - 1$.
    """
    net = weights.architecture
    if not isinstance(net, Recurrent):
        raise InputError(f"the net must be recurrent; it is {net.tag}")
    unknown = [symbol for symbol in symbols if symbol not in net.input_ids]
    if unknown:
        raise InputError(f"the net does not read {', '.join(map(repr, unknown))}")
    ids = np.array([net.input_ids[symbol] for symbol in symbols])
    pair = net.cell.kind == "lstm"

    def run(state: Floats | None, tokens: Ints) -> tuple[Floats, Floats]:
        cache = Cache()
        if state is not None:
            cache.set_state(STATE_NAME, tuple(np.split(state, 2, axis=1)) if pair else state)
        logits = np.asarray(net.forward(weights.prepared, tokens, cache=cache))[:, -1]
        state_after = cache.state(STATE_NAME, None)
        return (np.concatenate(state_after, axis=1) if pair else np.asarray(state_after)), logits

    first, first_logits = run(None, np.zeros((1, net.pads), dtype=np.int64))
    state, largest = np.repeat(first, N_WORDS, axis=0), np.abs(first[0])
    rng = np.random.default_rng(seed)
    for _ in range(min(net.max_length, WORD_LENGTH)):
        state, _ = run(state, rng.choice(ids, (N_WORDS, 1)))
        largest = np.maximum(largest, np.abs(state).max(axis=0))
    return QuantizedRecurrent(
        symbols=tuple(symbols),
        answers=net.output.symbols,
        bits=bits,
        first=first[0],
        step=np.where(largest > 0, largest, 1.0) / max((1 << (bits - 1)) - 1, 1),
        follow=lambda state, x: run(state, ids[x][:, None]),
        first_logits=first_logits[0],
    )
