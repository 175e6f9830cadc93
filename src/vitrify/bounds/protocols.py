r"""Protocols: two parties who each know a part of the input run a net together, and the bits they send are counted.

A protocol has the same output as the net. So a net that is right and whose protocol is cheap would solve a game that is
known to cost more bits, which is impossible.

| protocol | the net | Alice sends | bits |
| --- | --- | --- | --- |
| `PartialSums` | one layer; both know the query | sums over her positions | $H(m+1)(p + \lceil\log_2 N\rceil)$ |
| `Query` | one layer; Alice has the query | queries, and the summands of her position | $H k p$ (and $H(m+1)p$) |
| `Cut` | recurrent; Alice has the prefix | the state | $b$ per coordinate |
| `ChainOfThought` | a layer per written token | sums; Bob the token | per token, both |

$N$ is the number of Alice's positions, $k$ and $m$ are the sizes of a query and a value of one head. The output of
`Query` are the mixed values, that is, the output of self-attention; the output of the others is the net's answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vitrify.arrays import Array, Ints
from vitrify.bounds.games import Game, Question, composition_game
from vitrify.bounds.quantized import OneLayer, sum_bits, total
from vitrify.bounds.quantized_recurrent import QuantizedRecurrent
from vitrify.errors import InputError


@dataclass(frozen=True)
class Message:
    """A message: its sender, a description of its content, and its bits as a string."""

    sender: str
    what: str
    bits: str

    def __post_init__(self) -> None:
        if set(self.bits) - {"0", "1"}:
            raise InputError(f"a message is made of zeros and ones, not {self.bits!r}")

    def __len__(self) -> int:
        return len(self.bits)


@dataclass(frozen=True)
class Transcript:
    """All messages of one run of a protocol, and its output."""

    messages: tuple[Message, ...]
    output: Array

    @property
    def bits(self) -> int:
        """Bits sent by all parties together."""
        return sum(map(len, self.messages))

    def sent_by(self, party: str) -> int:
        """Return the bits sent by one party."""
        return sum(len(message) for message in self.messages if message.sender == party)


def write(numbers: Iterable[int], width: int) -> str:
    """Return integers as a string of bits, `width` bits each, negative ones in two's complement.

    >>> write([3, -1], 4)
    '00111111'
    """
    parts = []
    for number in numbers:
        if not -(1 << (width - 1)) <= number < 1 << width:
            raise InputError(f"{number} does not fit {width} bits")
        parts.append(format(number % (1 << width), f"0{width}b"))
    return "".join(parts)


def read(bits: str, width: int, signed: Sequence[bool]) -> list[int]:
    """Return the integers that `write` wrote; `signed` says which of them may be negative.

    >>> read("00111111", 4, [True, True]), read("00111111", 4, [True, False])
    ([3, -1], [3, 15])
    """
    if len(bits) != width * len(signed):
        raise InputError(f"{len(signed)} numbers of {width} bits do not make {len(bits)} bits")
    numbers = []
    for index, negative in enumerate(signed):
        number = int(bits[index * width : (index + 1) * width], 2)
        numbers.append(number - (1 << width) if negative and number >> (width - 1) else number)
    return numbers


class TwoParty(ABC):
    """A net that two parties run on a game: Alice sends integers of `width` bits, Bob answers.

    `signed` marks the integers that may be negative, `content` describes them.
    """

    game: Game
    width: int
    signed: Sequence[bool]
    content: str

    @property
    def bits(self) -> int:
        """Bits that Alice sends, by the formula."""
        return self.width * len(self.signed)

    @abstractmethod
    def numbers(self, alice: Ints) -> Ints:
        """Return Alice's message for each of several inputs, as rows of integers."""

    def send(self, alice: Sequence[int]) -> Message:
        (row,) = self.numbers(np.atleast_2d(alice))
        return Message("Alice", self.content.format(len(row)), write(map(int, row), self.width))

    def read(self, message: Message) -> Ints:
        """Return the integers of a message."""
        return np.array(read(message.bits, self.width, self.signed))

    @abstractmethod
    def finish(self, message: Message, bob: Question) -> Array:
        """Return Bob's answer from the message and his own query alone."""

    @abstractmethod
    def direct(self, words: Ints) -> Array:
        """Return the answers of the net to complete words, run by one party."""


def play(protocol: TwoParty, alice: Sequence[int], bob: Question) -> Transcript:
    """Run a protocol once: one message, one answer."""
    message = protocol.send(alice)
    return Transcript((message,), protocol.finish(message, bob))


class PartialSums(TwoParty):
    r"""Alice sends partial sums, $H(m+1)(p + \lceil\log_2 N\rceil)$ bits; Bob adds his own and reads the answer."""

    content = "{} partial sums"

    def __init__(self, model: OneLayer, game: Game) -> None:
        self.model, self.game = model, game
        self.symbol = int(game.words(game.numbered(0, 1), game.questions[0])[0, game.ask])
        self.added = model.added(self.symbol)
        self.width = sum_bits(model.bits, len(game.places))
        self.signed = ([True] * model.value_size + [False]) * model.heads

    def _sums(self, words: Ints, positions: Sequence[int]) -> Ints:
        return total(self.added, self.model.padded(words), [self.model.pads + position for position in positions])

    def numbers(self, alice: Ints) -> Ints:
        """Return partial sums over Alice's positions; symbols elsewhere do not enter."""
        words = self.game.words(alice, self.game.questions[0])
        return self._sums(words, self.game.places).reshape(len(words), -1)

    def finish(self, message: Message, bob: Question) -> Array:
        """Add the sums of Bob's positions and the pads, round once, and read the answer."""
        alice_sums = self.read(message).reshape(1, self.model.heads, -1)
        words = self.game.words(self.game.numbered(0, 1), bob)  # Alice's positions may hold anything: they are not read
        bob_sums = self._sums(words, [*range(-self.model.pads, 0), *self.game.others])  # Bob knows the pads too
        return np.asarray(self.model.read(self.symbol, self.model.mix(alice_sums + bob_sums)))[0]

    def direct(self, words: Ints) -> Array:
        return self.model.run(words)


class Query(TwoParty):
    """Alice, who has the querying position, sends its query, $H k p$ bits.

    If heads attend to her position too, she also sends its summands, $H(m+1)p$ bits more.
    """

    content = "a query: {} numbers"

    def __init__(self, model: OneLayer, game: Game) -> None:
        self.model, self.game, self.width = model, game, model.bits
        self.own = bool(np.isfinite(model.bias[:, model.ask]).any())
        extra = [*[True] * model.value_size, False] if self.own else []
        self.signed = ([True] * model.query_size + extra) * model.heads

    def numbers(self, alice: Ints) -> Ints:
        """Return for every head its query, and the summands of Alice's position."""
        symbols = self.game.alice(np.atleast_2d(alice))[:, -1]
        numbers = np.moveaxis(self.model.queries[:, symbols], 0, 1)
        if self.own:
            added = [
                self.model.summands(query)[:, self.model.ask, x] for query, x in zip(numbers, symbols, strict=True)
            ]
            numbers = np.concatenate([numbers, np.array(added)], axis=2)
        return numbers.reshape(len(symbols), -1)

    def finish(self, message: Message, bob: Question) -> Array:
        """Attend with that query to all other positions, and add Alice's summands."""
        received = self.read(message).reshape(self.model.heads, -1)
        words = self.game.words(self.game.numbered(0, 1), bob)  # Alice's position may hold anything: it is not read
        others = [position for position in range(self.model.places) if position != self.model.ask]
        sums = self.model.sums(received[:, : self.model.query_size], words, others)
        if self.own:
            sums = sums + received[None, :, self.model.query_size :]
        return self.model.mix(sums)[0].ravel()

    def direct(self, words: Ints) -> Array:
        """Return the mixed values of the layer itself."""
        return self.model.mixed(words).reshape(len(words), -1)


class Cut(TwoParty):
    """Alice runs a recurrent net over the prefix and sends its state; Bob continues from there."""

    content = "a state of {} numbers"

    def __init__(self, model: QuantizedRecurrent, game: Game) -> None:
        self.model, self.game = model, game
        self.width, self.signed = model.bits, [True] * model.size

    def numbers(self, alice: Ints) -> Ints:
        words = self.game.words(np.atleast_2d(alice), self.game.questions[0])
        return self.model.after(self.model.start(len(words)), words[:, : len(self.game.places)])[0]

    def finish(self, message: Message, bob: Question) -> Array:
        return self._answer(self.read(message)[None], np.array([self.game.bob(bob)]))[0]

    def direct(self, words: Ints) -> Array:
        cut = len(self.game.places)
        return self._answer(self.model.after(self.model.start(len(words)), words[:, :cut])[0], words[:, cut:])

    def _answer(self, state: Ints, suffix: Ints) -> Array:
        """Return the logits at the end, or the symbols that the net generates."""
        state, logits = self.model.after(state, suffix)
        if not self.game.repeats:
            return logits
        generated = []
        for _ in range(self.game.repeats):
            generated.append(self.model.likeliest(logits))
            state, logits = self.model.after(state, generated[-1][:, None])
        return np.stack(generated, axis=1)


@dataclass(frozen=True, eq=False)
class ChainOfThought:
    r"""Pointer chasing: two parties run a layer that writes intermediate tokens, one layer per step.

    The layer of step $s$ reads $2n + 1 + s$ symbols and answers at the last: the entries of $g$ (Bob's), those of $f$
    (Alice's), a start and the tokens written so far; both know the last two. For every token Alice sends her share of
    the sums, $H(m+1)(p + \lceil\log_2 n\rceil)$ bits, and Bob answers with the token, $\lceil\log_2 n\rceil$ bits: $S$
    steps cost $S$ times both. Pointer chasing in few rounds costs $\Omega(n/\text{rounds})$ bits, so the number of
    steps grows at least like $\sqrt{n/(Hmp)}$; that constant is unknown.
    """

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
