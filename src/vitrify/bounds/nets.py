"""Refutation of a saved net: a two-party game in the net's own symbols, the net at a few bits, and the search.

| task | net | game |
| --- | --- | --- |
| `induction` | one attention layer | INDEX |
| | recurrent | recall: keys with one of two values each, then a key |
| `copy` | recurrent | letters, a mark, and the letters again |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Floats
from vitrify.bounds.games import Game, copy_game, index_game, recall_game
from vitrify.bounds.protocols import Cut, PartialSums
from vitrify.bounds.quantize import attention_block, quantize
from vitrify.bounds.quantized_recurrent import quantize_recurrent
from vitrify.bounds.refute import Search, refute
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.net.architecture import Output, SequenceArchitecture
from vitrify.net.inference import logits
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights, has_architecture

TASKS = ("induction", "copy")
MAX_GAME_SIZE = 64  # pairs or letters, by default


@dataclass(frozen=True)
class NetSearch:
    """Result of a refuter on a net: the search, its bits, and the answers of the net to both inputs.

    `size` counts pairs, or letters to copy; `quantized` is the answer of the quantized net to both inputs, `unrounded`
    the answers of the net itself.
    """

    net: str
    bits: int
    size: int
    search: Search
    quantized: str = ""
    unrounded: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """Return plain JSON data."""
        refutation, search, pair = self.search.refutation, self.search, None
        if refutation is not None:
            triples = zip((refutation.first, refutation.second), refutation.answers, self.unrounded, strict=True)
            pair = [
                {"input": list(word), "answer": right if isinstance(right, str) else " ".join(right)}
                | {"quantized": self.quantized, "net": unrounded}
                for word, right, unrounded in triples
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
            "log2_det": None if search.lattice is None else search.lattice.log2_det,
            "refutation": pair,
            "says": str(search),
        }


def refute_net(
    weights: Weights[SequenceArchitecture],
    task: str,
    *,
    bits: int = 8,
    size: int | None = None,
    tries: int = 1 << 16,
    seed: int = 0,
    seconds: float | None = None,
) -> NetSearch:
    """Search for two inputs that a net with one attention layer, or a recurrent net, confuses at `bits` bits."""
    net = weights.architecture
    if task not in TASKS:
        raise InputError(f"no task is called {task!r}; there are: {', '.join(TASKS)}")
    protocol: PartialSums | Cut
    if isinstance(net, Recurrent):
        game = _game(net, task, size)
        protocol = Cut(quantize_recurrent(weights, game.symbols, bits), game)
    else:
        attention_block(weights)
        assert has_architecture(weights, Transformer)
        if task != "induction":
            raise InputError(f"{task} is a task for recurrent nets; for a net with one attention layer use induction")
        game = _game(net, task, size)
        protocol = PartialSums(quantize(weights, game.symbols, game.length, bits), game)
    search = refute(protocol, tries, seed, seconds=seconds)
    refutation = search.refutation
    if refutation is None:
        return NetSearch(net.name, bits, game.size, search)
    spelled = " ".join(game.spell(map(int, refutation.output))) if game.repeats else ""
    quantized = spelled or answer(net.output, np.array(refutation.output))
    full = tuple(unrounded(weights, word, game.repeats) for word in (refutation.first, refutation.second))
    return NetSearch(net.name, bits, game.size, search, quantized, full)


def _game(net: SequenceArchitecture, task: str, size: int | None) -> Game:
    """Return the game of a task in a net's symbols, by default as large as fits.

    INDEX and recall have two values. In recall every other symbol may be a key. In INDEX the filler is one of the
    values if the net reads only three symbols. Copying uses two letters, and a third symbol as the mark.
    """
    values, others = _symbols(net, task)
    recall = isinstance(net, Recurrent) and task == "induction"
    largest = min((net.max_length - 1) // 2, len(others) if recall else net.max_length)
    chosen = min(largest, MAX_GAME_SIZE) if size is None else size
    if not 1 <= chosen <= largest:
        raise InputError(
            f"the net reads {len(net.inputs) - 1} different symbols, {net.max_length} at most: "
            f"the size must be from 1 to {largest}, not {chosen}"
        )
    if recall:
        return recall_game(others[:chosen], values)
    if task == "copy":
        return copy_game(chosen, values, others[0])
    filler, digits = (others[1], values) if len(others) > 1 else (values[0], values[1:])
    return index_game(chosen, (filler, others[0], *digits))


def _symbols(net: SequenceArchitecture, task: str) -> tuple[list[str], list[str]]:
    """Return two symbols that the net both reads and outputs, and all others that it reads."""
    reads, outputs = net.inputs[1:], net.output.symbols
    both = [symbol for symbol in reads if symbol in outputs and not symbol.startswith("<")][:2]
    if len(both) < 2 or len(reads) < 3:
        shown = " ".join(outputs[:8]) + (" …" if len(outputs) > 8 else "")
        raise InputError(
            f"{task} answers with input symbols: the net must read three symbols and output two of them, "
            f"but it outputs: {shown}"
        )
    return both, [symbol for symbol in reads if symbol not in both]


def answer(output: Output, logits: Floats) -> str:
    """Return the symbol, or the set of symbols, that logits stand for."""
    if output.kind == "next":
        legal = [symbol for symbol, logit in zip(output.symbols, logits, strict=True) if logit > 0]
        return " ".join(legal) or "(nothing)"
    return output.symbols[int(np.argmax(logits))]


def unrounded(weights: Weights[SequenceArchitecture], word: Sequence[str], repeats: int = 0) -> str:
    """Return the answer of the net itself at the end of a word, in float64, or `repeats` greedily generated symbols."""
    net, generated = weights.architecture, list[str]()
    while True:
        ids = [net.input_ids[symbol] for symbol in (*word, *generated)]
        (rows,) = logits(weights, [ids])
        if not repeats:
            return answer(net.output, rows[-1])
        generated.append(net.output.symbols[int(np.argmax(rows[-1]))])
        if len(generated) == repeats or generated[-1] not in net.input_ids:
            return " ".join(generated)
