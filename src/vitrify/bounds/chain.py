r"""Pointer chasing with a chain of thought: two parties run a layer that writes intermediate tokens.

A word has the entries of $g$ (Bob's), those of $f$ (Alice's), a start and the tokens written so far; both know the last
two. For every token Alice sends her share of the sums, $H(m+1)(p + \lceil\log_2 n\rceil)$ bits, and Bob answers with
the token, $\lceil\log_2 n\rceil$ bits: $S$ steps cost $S$ times both. Pointer chasing in few rounds costs
$\Omega(n/\text{rounds})$ bits, so the number of steps grows at least like $\sqrt{n/(Hmp)}$; that constant is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.messages import Message, Transcript, read, write
from vitrify.bounds.quantized import OneLayer, sum_bits


@dataclass(frozen=True, eq=False)
class ChainOfThought:
    """One layer per step: the layer of step $s$ reads $2n + 1 + s$ symbols and answers at the last."""

    n: int
    layers: tuple[OneLayer, ...]

    @property
    def bits(self) -> int:
        """Bits of all messages, by the formula."""
        token = sum_bits(0, self.n)
        sums = [layer.heads * (layer.value_size + 1) * sum_bits(layer.bits, self.n) for layer in self.layers]
        return sum(sums) + token * len(self.layers)

    def alone(self, f: Sequence[int], g: Sequence[int], x: int) -> list[int]:
        """Return the tokens that are written when one party runs the layers."""
        word = [*g, *f, x]
        for layer in self.layers:
            word.append(int(np.argmax(layer.run([word])[0])))
        return word[2 * self.n + 1 :]

    def together(self, f: Sequence[int], g: Sequence[int], x: int) -> Transcript:
        """Return the transcript of two parties; each has zeros where the other's entries are."""
        tokens: list[int] = []
        messages: list[Message] = []
        for layer in self.layers:
            query = layer.queries[:, (tokens or [x])[-1]]
            messages.append(self._sums(layer, query, [*[0] * self.n, *f, x, *tokens]))
            width, signed = sum_bits(layer.bits, self.n), ([True] * layer.value_size + [False]) * layer.heads
            alice_sums: Ints = np.array(read(messages[-1].bits, width, signed)).reshape(1, layer.heads, -1)
            others = [position for position in range(layer.places) if not self.n <= position < 2 * self.n]
            bob_sums = layer.sums(query, [[*g, *[0] * self.n, x, *tokens]], others)
            token = int(np.argmax(layer.read((tokens or [x])[-1], layer.mix(alice_sums + bob_sums))[0]))
            messages.append(Message("Bob", "the next token", write([token], sum_bits(0, self.n))))
            tokens = [*tokens, read(messages[-1].bits, sum_bits(0, self.n), [False])[0]]
        return Transcript(tuple(messages), tokens)

    def _sums(self, layer: OneLayer, query: Ints, word: list[int]) -> Message:
        sums = layer.sums(query, [word], range(self.n, 2 * self.n)).ravel()
        return Message("Alice", f"{sums.size} partial sums", write(map(int, sums), sum_bits(layer.bits, self.n)))
