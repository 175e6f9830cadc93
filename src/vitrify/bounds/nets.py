"""Refuting a net of a folder: the game of a task in the net's own symbols, the net at a few bits, and the search.

| task | net | game |
| --- | --- | --- |
| `induction` | one attention layer | INDEX |
| | recurrent | recall: keys with one of two values each, then a key |
| `copy` | recurrent | letters, a mark, and the letters again |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.bounds.games import Game, copy_game, index_game, recall_game
from vitrify.bounds.protocols import Cut, Sums
from vitrify.bounds.quantise import attention_block, quantise
from vitrify.bounds.quantised import Floats
from vitrify.bounds.quantised_recurrent import quantise_recurrent
from vitrify.bounds.refute import Search, refute
from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.recurrent import Recurrent
from vitrify.net.run import logits
from vitrify.net.weights import Weights

TASKS = ("induction", "copy")
MOST = 64  # pairs or letters, unless said


@dataclass(frozen=True)
class NetSearch:
    """What a refuter found about a net: the search, the bits it has, and what it says to both inputs.

    `size` counts pairs, or letters to copy; `quantised` is what the net says to both, `unrounded` what it says itself.
    """

    net: str
    bits: int
    size: int
    search: Search
    quantised: str = ""
    unrounded: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        found, search = self.search.refutation, self.search
        pair = None
        if found is not None:
            rows = zip((found.first, found.second), found.answers, self.unrounded, strict=True)
            pair = [
                {
                    "input": list(word),
                    "answer": right if isinstance(right, str) else " ".join(right),
                    "quantised": self.quantised,
                    "net": itself,
                }
                for word, right, itself in rows
            ]
        return {
            "net": self.net,
            "task": search.task,
            "bits": self.bits,
            "size": self.size,
            "message_bits": search.message,
            "needed_bits": search.needed,
            "forced": search.forced,
            "tries": search.tries,
            "refutation": pair,
            "says": str(search),
        }


def refute_net(
    weights: Weights[Any], task: str, *, bits: int = 8, size: int | None = None, tries: int = 1 << 16, seed: int = 0
) -> NetSearch:
    """Try to break a net with one attention layer, or a recurrent one, at some bits on a task."""
    net = weights.architecture
    if task not in TASKS:
        raise InputError(f"no task is called {task!r}; there are: {', '.join(TASKS)}")
    protocol: Sums | Cut
    if isinstance(net, Recurrent):
        game = (_recall if task == "induction" else _copying)(weights, size)
        protocol = Cut(quantise_recurrent(weights, game.symbols, bits), game)
    else:
        attention_block(weights)
        if task != "induction":
            raise InputError(f"{task} is asked of recurrent nets; a net with one attention layer takes induction")
        game = _index(weights, size)
        protocol = Sums(quantise(weights, game.symbols, game.length, bits), game)
    search = refute(protocol, tries, seed)
    found = search.refutation
    if found is None:
        return NetSearch(net.name, bits, game.size, search)
    said = " ".join(game.spell(map(int, found.output))) if game.repeats else answer(net.output, np.array(found.output))
    own = tuple(unrounded(weights, word, game.repeats) for word in (found.first, found.second))
    return NetSearch(net.name, bits, game.size, search, said, own)


def _index(weights: Weights[Any], size: int | None) -> Game:
    """INDEX with two values; the filler is one of them if the net reads but three symbols."""
    values, others = _symbols(weights, "induction")
    filler = others[1] if len(others) > 1 else values[0]
    rest = values if len(others) > 1 else values[1:]
    return index_game(_room(weights, size, (weights.architecture.max_length - 1) // 2), (filler, others[0], *rest))


def _recall(weights: Weights[Any], size: int | None) -> Game:
    """Recall with two values; every other symbol may be a key."""
    values, others = _symbols(weights, "induction")
    room = min((weights.architecture.max_length - 1) // 2, len(others))
    return recall_game(others[: _room(weights, size, room)], values)


def _copying(weights: Weights[Any], size: int | None) -> Game:
    """Copying of two letters; any third symbol is the mark."""
    values, others = _symbols(weights, "copy")
    return copy_game(_room(weights, size, (weights.architecture.max_length - 1) // 2), values, others[0])


def _room(weights: Weights[Any], size: int | None, room: int) -> int:
    """How many pairs or letters: as many as there is room for, unless said."""
    chosen = min(room, MOST) if size is None else size
    if not 1 <= chosen <= room:
        net = weights.architecture
        raise InputError(
            f"the net reads {len(net.inputs) - 1} different symbols, {net.max_length} at most: "
            f"there is room for a size of 1 to {room}, not {chosen}"
        )
    return chosen


def _symbols(weights: Weights[Any], task: str) -> tuple[list[str], list[str]]:
    """Two symbols that the net reads and says, and all others that it reads."""
    reads, says = weights.architecture.inputs[1:], weights.architecture.output.symbols
    both = [symbol for symbol in reads if symbol in says and not symbol.startswith("<")][:2]
    if len(both) < 2 or len(reads) < 3:
        shown = " ".join(says[:8]) + (" …" if len(says) > 8 else "")
        raise InputError(
            f"{task} asks for symbols of the input: the net must read three symbols and say two of them, "
            f"but it says: {shown}"
        )
    return both, [symbol for symbol in reads if symbol not in both]


def answer(output: Output, row: Floats) -> str:
    """The symbol, or the set of symbols, that logits say."""
    if output.kind == "next":
        said = [symbol for symbol, logit in zip(output.symbols, row, strict=True) if logit > 0]
        return " ".join(said) or "(nothing)"
    return output.symbols[int(np.argmax(row))]


def unrounded(weights: Weights[Any], word: Sequence[str], repeats: int = 0) -> str:
    """What the net itself says at the end of a word, in float64; or what it goes on with, its likeliest symbol each."""
    net, said = weights.architecture, list[str]()
    while True:
        ids = [net.input_ids[symbol] for symbol in (*word, *said)]
        (found,) = logits(weights, [ids])
        if not repeats:
            return answer(net.output, found[-1])
        said.append(net.output.symbols[int(np.argmax(found[-1]))])
        if len(said) == repeats or said[-1] not in net.input_ids:
            return " ".join(said)
