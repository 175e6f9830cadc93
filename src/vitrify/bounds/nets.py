"""Refuting a net of a folder: the game of a task in the net's own symbols, the net at a few bits, and the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.bounds.games import Game, index_game
from vitrify.bounds.protocols import Sums
from vitrify.bounds.quantise import answer, attention_block, quantise, unrounded
from vitrify.bounds.refute import Search, refute
from vitrify.errors import InputError
from vitrify.net.weights import Weights

TASKS = ("induction",)
MOST_PAIRS = 64


@dataclass(frozen=True)
class NetSearch:
    """What a refuter found about a net: the search, what the net is at `bits` bits, and what it says to both inputs."""

    net: str
    bits: int
    pairs: int
    search: Search
    quantised: tuple[str, ...] = ()
    unrounded: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        found, search = self.search.refutation, self.search
        pair = None
        if found is not None:
            pair = [
                {"input": list(word), "answer": right, "quantised": said, "net": itself}
                for word, right, said, itself in zip(
                    (found.first, found.second), found.answers, self.quantised, self.unrounded, strict=True
                )
            ]
        return {
            "net": self.net,
            "task": search.task,
            "bits": self.bits,
            "pairs": self.pairs,
            "message_bits": search.message,
            "needed_bits": search.needed,
            "forced": search.forced,
            "tries": search.tries,
            "refutation": pair,
            "says": str(search),
        }


def refute_net(
    weights: Weights[Any], task: str, *, bits: int = 8, pairs: int | None = None, tries: int = 1 << 16, seed: int = 0
) -> NetSearch:
    """Try to break a net with one attention layer, quantised to some bits, on a task."""
    if task not in TASKS:
        raise InputError(f"no task is called {task!r}; there are: {', '.join(TASKS)}")
    attention_block(weights)
    game = induction_in(weights, pairs)
    protocol = Sums(quantise(weights, game.symbols, game.length, bits), game)
    search = refute(protocol, tries, seed)
    name, output = weights.architecture.name, weights.architecture.output
    if search.refutation is None:
        return NetSearch(name, bits, game.size, search)
    words = (search.refutation.first, search.refutation.second)
    said = answer(output, np.array(search.refutation.output))
    return NetSearch(name, bits, game.size, search, (said, said), tuple(unrounded(weights, words)))


def induction_in(weights: Weights[Any], pairs: int | None) -> Game:
    """INDEX in symbols that a net reads and says; as many pairs as it has room for unless said."""
    net = weights.architecture
    room = (net.max_length - 1) // 2
    size = min(room, MOST_PAIRS) if pairs is None else pairs
    if not 1 <= size <= room:
        raise InputError(f"the net reads {net.max_length} symbols: there is room for 1 to {room} pairs, not {size}")
    symbols = _symbols(net.inputs[1:], net.output.symbols)
    return index_game(size, symbols)


def _symbols(reads: Sequence[str], says: Sequence[str]) -> tuple[str, ...]:
    """A filler, a query symbol and two values that the net can say; the filler is a value if there are but three."""
    both = [symbol for symbol in reads if symbol in says and not symbol.startswith("<")]
    if len(both) < 2 or len(reads) < 3:
        shown = " ".join(says[:8]) + (" …" if len(says) > 8 else "")
        raise InputError(
            "induction asks for a symbol of the input: the net must read three symbols and say two of them, "
            f"but it says: {shown}"
        )
    others = [symbol for symbol in reads if symbol not in both[:2]]
    if len(others) > 1:
        return others[1], others[0], both[0], both[1]
    return both[0], others[0], both[1]
