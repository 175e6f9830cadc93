r"""Pigeonhole refuter: two inputs that a small net can't tell apart although their right answers differ.

Alice's message determines the net's output. She has $2^{\text{needed}}$ inputs; if her message has fewer bits, two of
them collide, and a question that tells them apart makes two words with one output and two right answers. A collision
may also exist where none is forced, so the search runs in any case: first among inputs, then, if the message is
additive, by lattice reduction (`lattice.py`). That none is found says nothing about the net.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.games import Label
from vitrify.bounds.lattice import SUBSETS, LatticeSearch, equal_messages
from vitrify.bounds.protocols import TwoParty

MAX_TRIES = 1 << 16  # inputs tried by default
CHUNK = 1024  # inputs per batch


@dataclass(frozen=True)
class Refutation:
    """Two words with the same output and different right answers, confirmed by running the net."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    answers: tuple[Label, Label]
    output: tuple[float, ...]


@dataclass(frozen=True)
class Search:
    """Result of a refuter: `message` bits against `needed` ones, the number of inputs tried, a refutation or None.

    `lattice` is the search by lattice reduction, if one was made.
    """

    task: str
    message: int
    needed: float
    tries: int
    refutation: Refutation | None
    lattice: LatticeSearch | None = None

    @property
    def forced(self) -> bool:
        """Return True if two inputs must collide by counting."""
        return self.message < self.needed

    def __str__(self) -> str:
        sizes = f"a message has {self.message} bits, {self.needed:.4g} are needed to tell all inputs apart"
        lattice = f", then by lattice reduction ({self.lattice})" if self.lattice else ""
        if self.refutation is None:
            if self.forced:
                return f"{sizes}: a collision is forced, but not found among {self.tries} inputs{lattice}; try more"
            return f"{sizes}: no collision forced, and none found among {self.tries} inputs{lattice}"
        how = "a collision is forced" if self.forced else "no collision forced, yet one was found"
        return f"{sizes}: {how}, after {self.tries} inputs{lattice}"


def refute(
    protocol: TwoParty,
    tries: int = MAX_TRIES,
    seed: int = 0,
    subsets: int = SUBSETS,
    seconds: float | None = None,
) -> Search:
    """Search for two of Alice's inputs with one message, and confirm with the net itself that they refute it.

    `subsets` of her numbers are tried by lattice reduction, or as many as `seconds` allow.
    """
    game, seen, tried = protocol.game, dict[bytes, Ints](), 0
    for batch in _inputs(protocol, tries, seed):
        for alice, message in zip(batch, protocol.numbers(batch), strict=True):
            tried += 1
            before = seen.setdefault(message.tobytes(), alice)
            if not np.array_equal(before, alice):
                pair = before, alice
                return Search(game.name, protocol.bits, game.needed, tried, _checked(protocol, *pair))
    lattice = None if tried == game.inputs else equal_messages(protocol, subsets, seconds, seed)
    refutation = _checked(protocol, *lattice.pair) if lattice and lattice.pair else None
    return Search(game.name, protocol.bits, game.needed, tried, refutation, lattice)


def _checked(protocol: TwoParty, *pair: Ints) -> Refutation:
    """Return the refutation by two inputs, after running the net on both words."""
    game, (first, second) = protocol.game, (alice.tolist() for alice in pair)
    question = game.question(first, second)
    words = game.words([first, second], question)
    outputs = np.asarray(protocol.direct(words))
    answers = game.label(first, question), game.label(second, question)
    if not np.array_equal(outputs[0], outputs[1]) or answers[0] == answers[1]:
        raise AssertionError(f"equal messages, but not a refutation: {words.tolist()} {outputs.tolist()} {answers}")
    one, other = (tuple(game.spell(word)) for word in words)
    return Refutation(one, other, answers, tuple(map(float, np.ravel(outputs[0]))))


def _inputs(protocol: TwoParty, tries: int, seed: int) -> Iterator[Ints]:
    """Yield Alice's inputs, each once: all, or as many as must collide, or random ones if these are too many."""
    game = protocol.game
    enough = min(game.inputs, (1 << min(protocol.bits, 62)) + 1)
    if enough <= tries:
        for start in range(0, enough, CHUNK):
            yield game.numbered(start, min(CHUNK, enough - start))
        return
    rng = np.random.default_rng(seed)
    for start in range(0, tries, CHUNK):
        yield rng.integers(0, game.choices, (min(CHUNK, tries - start), game.size))
