r"""The pigeonhole refuter: two inputs that a small net can't tell apart although they have different answers.

Alice's message decides what the net says. She has $2^{\text{needed}}$ inputs; if her message has fewer bits, two of
them collide, and a question that tells them apart makes two words with one output and two right answers. A collision
may well come sooner, so the search goes on where none is forced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.bounds.protocols import TwoParty
from vitrify.bounds.quantised import Ints

TRIES = 1 << 16  # inputs that are tried, unless said
CHUNK = 1024


@dataclass(frozen=True)
class Refutation:
    """Two words with the same output and different right answers, found after so many tries, and checked by the net."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    answers: tuple[Any, Any]
    output: tuple[float, ...]


@dataclass(frozen=True)
class Search:
    """What a refuter found: `message` bits against `needed` ones, how many inputs it tried, a refutation or none."""

    task: str
    message: int
    needed: float
    tries: int
    refutation: Refutation | None

    @property
    def forced(self) -> bool:
        """Whether two inputs must collide."""
        return self.message < self.needed

    def __str__(self) -> str:
        sizes = f"a message has {self.message} bits, {self.needed:.4g} are needed to tell all inputs apart"
        if self.refutation is None:
            if self.forced:
                return f"{sizes}: a collision is forced, but {self.tries} inputs did not show one; try more"
            return f"{sizes}: no collision forced, and none found among {self.tries} inputs"
        how = "a collision is forced" if self.forced else "no collision forced, yet one was found"
        return f"{sizes}: {how}, after {self.tries} inputs"


def refute(protocol: TwoParty, tries: int = TRIES, seed: int = 0) -> Search:
    """Look for two of Alice's inputs with one message, and check by the net itself that they refute it."""
    game, seen, tried = protocol.game, dict[bytes, Ints](), 0
    for batch in _inputs(protocol, tries, seed):
        for row, said in zip(batch, protocol.numbers(batch), strict=True):
            tried += 1
            before = seen.setdefault(said.tobytes(), row)
            if not np.array_equal(before, row):
                found = _checked(protocol, before.tolist(), row.tolist())
                return Search(game.name, protocol.bits, game.needed, tried, found)
    return Search(game.name, protocol.bits, game.needed, tried, None)


def _checked(protocol: TwoParty, first: list[int], second: list[int]) -> Refutation:
    """The refutation that two inputs make, after the net has been run on both words."""
    game = protocol.game
    question = game.question(first, second)
    words = game.words([first, second], question)
    outputs = np.asarray(protocol.direct(words))
    answers = game.label(first, question), game.label(second, question)
    if not np.array_equal(outputs[0], outputs[1]) or answers[0] == answers[1]:
        raise AssertionError(f"equal messages, but not a refutation: {words.tolist()} {outputs.tolist()} {answers}")
    one, other = (tuple(game.spell(word)) for word in words)
    return Refutation(one, other, answers, tuple(map(float, np.ravel(outputs[0]))))


def _inputs(protocol: TwoParty, tries: int, seed: int) -> Iterator[Ints]:
    """Alice's inputs, each once: all of them, or as many as must collide, or random ones if these are too many."""
    game = protocol.game
    enough = min(game.inputs, (1 << min(protocol.bits, 62)) + 1)
    if enough <= tries:
        for start in range(0, enough, CHUNK):
            yield game.numbered(start, min(CHUNK, enough - start))
        return
    rng = np.random.default_rng(seed)
    for start in range(0, tries, CHUNK):
        yield rng.integers(0, game.choices, (min(CHUNK, tries - start), game.size))
