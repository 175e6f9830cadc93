r"""Two parties run a layer that thinks aloud: pointer chasing with a chain of thought.

A word has the entries of $g$ (Bob's), those of $f$ (Alice's), a start and what has been written so far, which both
know. For every token Alice sends her share of the sums, $H(m+1)(p + \lceil\log_2 n\rceil)$ bits, and Bob answers with
the token, $\lceil\log_2 n\rceil$ bits: $S$ steps cost $S$ times both. Pointer chasing in few rounds costs
$\Omega(n/\text{rounds})$ bits, so the number of steps grows at least like $\sqrt{n/(Hmp)}$; that constant is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.bounds.messages import Message, Transcript, read, write
from vitrify.bounds.quantised import Ints, OneLayer, sum_bits


@dataclass(frozen=True, eq=False)
class Chain:
    """A layer for each step: that of step $s$ reads $2n + 1 + s$ symbols and is asked at the last."""

    n: int
    layers: tuple[OneLayer, ...]

    @property
    def bits(self) -> int:
        """The formula: bits of all messages."""
        token = sum_bits(0, self.n)
        sums = [layer.heads * (layer.value_size + 1) * sum_bits(layer.bits, self.n) for layer in self.layers]
        return sum(sums) + token * len(self.layers)

    def alone(self, f: Sequence[int], g: Sequence[int], x: int) -> list[int]:
        """The tokens that are written when one party runs it."""
        word = [*g, *f, x]
        for layer in self.layers:
            word.append(int(np.argmax(layer.run([word])[0])))
        return word[2 * self.n + 1 :]

    def together(self, f: Sequence[int], g: Sequence[int], x: int) -> Transcript:
        """The same by two parties; Alice's words have zeros where Bob's entries are, and the other way round."""
        said: list[int] = []
        messages: list[Message] = []
        for layer in self.layers:
            asked = layer.queries[:, (said or [x])[-1]]
            messages.append(self._sums(layer, asked, [*[0] * self.n, *f, x, *said]))
            width, signed = sum_bits(layer.bits, self.n), ([True] * layer.value_size + [False]) * layer.heads
            told: Ints = np.array(read(messages[-1].bits, width, signed)).reshape(1, layer.heads, -1)
            others = [place for place in range(layer.places) if not self.n <= place < 2 * self.n]
            own = layer.sums(asked, [[*g, *[0] * self.n, x, *said]], others)
            token = int(np.argmax(layer.read((said or [x])[-1], layer.mix(told + own))[0]))
            messages.append(Message("Bob", "the next token", write([token], sum_bits(0, self.n))))
            said = [*said, read(messages[-1].bits, sum_bits(0, self.n), [False])[0]]
        return Transcript(tuple(messages), said)

    def _sums(self, layer: OneLayer, query: Ints, word: list[int]) -> Message:
        found = layer.sums(query, [word], range(self.n, 2 * self.n)).ravel()
        return Message("Alice", f"{found.size} partial sums", write(map(int, found), sum_bits(layer.bits, self.n)))
