r"""Pointer chasing with a chain of thought: two parties run a layer that writes intermediate tokens.

A word has the entries of $g$ (Bob's), those of $f$ (Alice's), a start and the tokens written so far; both know the last
two. For every token Alice sends her share of the sums, $H(m+1)(p + \lceil\log_2 n\rceil)$ bits, and Bob answers with
the token, $\lceil\log_2 n\rceil$ bits: $S$ steps cost $S$ times both. Pointer chasing in few rounds costs
$\Omega(n/\text{rounds})$ bits, so the number of steps grows at least like $\sqrt{n/(Hmp)}$; that constant is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vitrify.bounds.games import composition_game
from vitrify.bounds.messages import Message, Transcript, read, write
from vitrify.bounds.protocols import PartialSums
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
            game = replace(composition_game(self.n), bob=lambda _: [*g, x, *tokens])
            protocol = PartialSums(layer, game)
            messages.append(protocol.send(f))
            token = int(np.argmax(protocol.finish(messages[-1], None)))
            messages.append(Message("Bob", "the next token", write([token], sum_bits(0, self.n))))
            tokens.extend(read(messages[-1].bits, sum_bits(0, self.n), [False]))
        return Transcript(tuple(messages), tokens)
