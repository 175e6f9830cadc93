r"""Protocols: two parties who each know a part of the input run a net together and count the bits they exchange.

What a net answers must not depend on who runs it, so a protocol's output is the net's, and a net that is right and
whose protocol is cheap would solve a game that is known to cost more.

| protocol | the net | Alice sends | bits |
| --- | --- | --- | --- |
| `Sums` | one layer; both know who asks | sums over her places | $H(m+1)(p + \lceil\log_2 N\rceil)$ |
| `Query` | one layer; Alice asks | queries, and what her place adds | $H k p$ (and $H(m+1)p$) |
| `Cut` | recurrent; Alice has the beginning | the state | $b$ per coordinate |

$N$ is the number of Alice's places, $k$ and $m$ are the sizes of a query and a value of one head. In `Query` what
comes out are the mixed values, which is the output of a unit of self-attention; in the others it is the net's answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from vitrify.bounds.games import Game
from vitrify.bounds.messages import Message, Transcript, read, write
from vitrify.bounds.quantised import Ints, Layer, OneLayer, sum_bits, total
from vitrify.bounds.quantised_recurrent import QuantisedRecurrent


class TwoParty(Protocol):
    """How a net is run by two parties on a game."""

    game: Game

    @property
    def bits(self) -> int:
        """The formula: bits that Alice sends."""
        ...

    def numbers(self, alice: Ints) -> Ints:
        """What Alice says for each of several inputs, as rows of integers."""
        ...

    def send(self, alice: Sequence[int]) -> Message:
        """Alice's message."""
        ...

    def finish(self, message: Message, bob: Any) -> Any:
        """What Bob makes of it: he sees the message and his own question, nothing else."""
        ...

    def direct(self, words: Ints) -> Any:
        """What the net says to whole words, run by one party."""
        ...


def play(protocol: TwoParty, alice: Sequence[int], bob: Any) -> Transcript:
    """One run: one message, one answer."""
    message = protocol.send(alice)
    return Transcript((message,), protocol.finish(message, bob))


class Sums:
    """Alice sends partial sums; Bob adds his own and reads the answer."""

    def __init__(self, model: Layer, game: Game) -> None:
        self.model, self.game = model, game
        self.symbol = int(game.words(game.numbered(0, 1), game.questions[0])[0, game.ask])
        self.added = model.added(self.symbol)
        self.width = sum_bits(model.bits, len(game.places))
        self.signed = ([True] * model.value_size + [False]) * model.heads

    @property
    def bits(self) -> int:
        """$H(m+1)(p + \\lceil\\log_2 N\\rceil)$."""
        return self.model.heads * (self.model.value_size + 1) * self.width

    def _sums(self, words: Ints, places: Sequence[int]) -> Ints:
        return total(self.added, self.model.padded(words), [self.model.pads + place for place in places])

    def numbers(self, alice: Ints) -> Ints:
        """Partial sums over Alice's places; what stands elsewhere does not enter."""
        words = self.game.words(alice, self.game.questions[0])
        return self._sums(words, self.game.places).reshape(len(words), -1)

    def send(self, alice: Sequence[int]) -> Message:
        """The sums, each in $p + \\lceil\\log_2 N\\rceil$ bits."""
        (row,) = self.numbers(np.atleast_2d(alice))
        return Message("Alice", f"{len(row)} partial sums", write(map(int, row), self.width))

    def finish(self, message: Message, bob: Any) -> Any:
        """Add what Bob's places and the pads bring, round once, read."""
        told = np.array(read(message.bits, self.width, self.signed)).reshape(1, self.model.heads, -1)
        words = self.game.words(self.game.numbered(0, 1), bob)  # Alice's places hold anything: they are not looked at
        own = self._sums(words, [*range(-self.model.pads, 0), *self.game.others])  # what stands in front he knows too
        return np.asarray(self.model.read(self.symbol, self.model.mix(told + own)))[0]

    def direct(self, words: Ints) -> Any:
        """The layer's own answers."""
        return self.model.run(words)


class Query:
    """Alice, who has the place that asks, sends its query, and what her place adds if heads look at it too."""

    def __init__(self, model: OneLayer, game: Game) -> None:
        self.model, self.game = model, game
        self.own = bool(np.isfinite(model.bias[:, model.ask]).any())
        extra = [*[True] * model.value_size, False] if self.own else []
        self.signed = ([True] * model.query_size + extra) * model.heads

    @property
    def bits(self) -> int:
        """$H k p$, and $H(m+1)p$ more if the place that asks is also attended to."""
        return len(self.signed) * self.model.bits

    def numbers(self, alice: Ints) -> Ints:
        """For every head its query, and what it adds itself."""
        symbols = self.game.alice(np.atleast_2d(alice))[:, -1]
        found = np.moveaxis(self.model.queries[:, symbols], 0, 1)
        if self.own:
            added = [self.model.summands(query)[:, self.model.ask, x] for query, x in zip(found, symbols, strict=True)]
            found = np.concatenate([found, np.array(added)], axis=2)
        return found.reshape(len(symbols), -1)

    def send(self, alice: Sequence[int]) -> Message:
        """The query, $p$ bits a number."""
        (row,) = self.numbers(np.atleast_2d(alice))
        return Message("Alice", f"a query: {len(row)} numbers", write(map(int, row), self.model.bits))

    def finish(self, message: Message, bob: Any) -> Any:
        """Attend with that query to all other places, and add what Alice said about hers."""
        told = np.array(read(message.bits, self.model.bits, self.signed)).reshape(self.model.heads, -1)
        words = self.game.words(self.game.numbered(0, 1), bob)  # Alice's place holds anything: it is not looked at
        others = [place for place in range(self.model.places) if place != self.model.ask]
        sums = self.model.sums(told[:, : self.model.query_size], words, others)
        if self.own:
            sums = sums + told[None, :, self.model.query_size :]
        return self.model.mix(sums)[0].ravel()

    def direct(self, words: Ints) -> Any:
        """Mixed values of the layer itself."""
        return self.model.mixed(words).reshape(len(words), -1)


class Cut:
    """Alice runs a recurrent net over the beginning and sends its state; Bob goes on from there."""

    def __init__(self, model: QuantisedRecurrent, game: Game) -> None:
        self.model, self.game = model, game

    @property
    def bits(self) -> int:
        """Bits of the state."""
        return self.model.state_bits

    def numbers(self, alice: Ints) -> Ints:
        """The state at the cut."""
        words = self.game.words(np.atleast_2d(alice), self.game.questions[0])
        return self.model.after(self.model.start(len(words)), words[:, : len(self.game.places)])[0]

    def send(self, alice: Sequence[int]) -> Message:
        """The state, coordinate by coordinate."""
        (row,) = self.numbers(np.atleast_2d(alice))
        return Message("Alice", f"a state of {len(row)} numbers", write(map(int, row), self.model.bits))

    def finish(self, message: Message, bob: Any) -> Any:
        """Go on from the state."""
        state = np.array([read(message.bits, self.model.bits, [True] * self.model.size)])
        return self._answer(state, np.array([self.game.bob(bob)]))[0]

    def direct(self, words: Ints) -> Any:
        """The net run over whole words."""
        cut = len(self.game.places)
        return self._answer(self.model.after(self.model.start(len(words)), words[:, :cut])[0], words[:, cut:])

    def _answer(self, state: Ints, rest: Ints) -> Any:
        """Logits at the end, or the symbols that the net goes on with by itself."""
        state, logits = self.model.after(state, rest)
        if not self.game.repeats:
            return logits
        said = []
        for _ in range(self.game.repeats):
            said.append(self.model.says(logits))
            state, logits = self.model.after(state, said[-1][:, None])
        return np.stack(said, axis=1)
