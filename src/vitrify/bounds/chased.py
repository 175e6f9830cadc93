r"""Pointer chasing by a chain of thought: two functions with one transcript and different right answers.

The task is to follow pointers $x, g(x), f(g(x)), g(f(g(x))) \dots$ for $k$ hops, and the answer is the last token that
is written. Alice has $f$; for each token she sends her sums (`protocols.ChainOfThought`). If all her messages for $f$
and $f'$ are equal, then so are all tokens, and the net is wrong on one of the two where their right answers differ.

That the transcript has fewer bits than $f$, $n \log_2 n$, forces such pairs $f \ne f'$, but not different answers: a
transcript is about one question, and `lookup_chain` answers it by reading about $k/2$ entries of $f$. So counting bits
refutes no chain by itself; `refute_chain` searches for pairs whose pointers part. Where it tries all functions, it is
complete for one $g$ and one start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.games import Game, Question, composition_game
from vitrify.bounds.protocols import ChainOfThought, PartialSums
from vitrify.bounds.quantized import OneLayer
from vitrify.errors import InputError

CHUNK = 1 << 12  # functions per batch

Function = tuple[int, ...]


@dataclass(frozen=True)
class ChainSearch:
    """Result of a search for functions $f$ with one transcript, for one $g$ and start.

    `bits` of the transcript, `needed` to tell all functions apart, `tries` functions tried; `alike`: two functions with
    one transcript, `refutation`: two of them whose right answers differ; None where there are none.
    """

    bits: int
    needed: float
    tries: int
    alike: tuple[Function, Function] | None
    refutation: tuple[Function, Function] | None


def followed(f: Sequence[int], g: Sequence[int], x: int, hops: int) -> int:
    """Return where pointers lead after some hops.

    >>> followed((2, 0, 1), (1, 2, 0), 0, 2)  # g(0) = 1, f(1) = 0
    0
    """
    for hop in range(hops):
        x = f[x] if hop % 2 else g[x]
    return x


def lookup_chain(n: int, steps: int, bits: int, dropped: int = 0) -> ChainOfThought:
    """Return a chain of one head that follows one pointer at each step.

    Values are the elements without their last `dropped` binary digits, in numbers of `bits` bits.
    """
    half = 1 << (bits - 1)
    if (n - 1) >> dropped >= half:
        raise InputError(f"{n} elements less {dropped} digits do not fit signed numbers of {bits} bits")
    return ChainOfThought(n, tuple(_lookup(n, step, bits, dropped) for step in range(steps)))


def _lookup(n: int, step: int, bits: int, dropped: int) -> OneLayer:
    """Return the layer of a step: it attends to the entry of g, or of f, at the last token."""
    positions, symbols = 2 * n + 1 + step, np.arange(n)
    keys = np.zeros((1, positions, n, n), dtype=np.int64)
    values = np.zeros((1, positions, n, 1), dtype=np.int64)
    for entry in range(n):
        keys[0, n * (step % 2) + entry, :, entry] = 1
    values[0, :, :, 0] = symbols >> dropped

    def read(_: int, mixed: Ints) -> Ints:
        return np.asarray(np.eye(n, dtype=np.int64)[np.clip(mixed[:, 0, 0] << dropped, 0, n - 1)])

    return OneLayer(
        symbols=tuple(map(str, symbols)),
        bits=bits,
        ask=positions - 1,
        queries=np.eye(n, dtype=np.int64)[None],
        keys=keys,
        values=values,
        scale=np.array([2.0 * bits]),  # other keys weigh e^-2p times as much, which rounds to 0
        bias=np.zeros((1, positions)),
        read=read,
    )


def transcripts(chain: ChainOfThought, functions: Ints, g: Sequence[int], x: int) -> tuple[Ints, list[bytes]]:
    """Return the tokens [function, step] and all of Alice's messages, for some functions f."""
    tokens = np.zeros((len(functions), 0), dtype=np.int64)
    sent = [b""] * len(functions)
    for layer in chain.layers:
        column = np.zeros((len(functions), 1), dtype=np.int64)
        for before in np.unique(tokens, axis=0).tolist():
            same = np.flatnonzero((tokens == before).all(axis=1))
            game = replace(composition_game(chain.n), bob=partial(_bobs, [*g, x, *before]))
            rows = PartialSums(layer, game).numbers(functions[same])
            column[same, 0] = np.asarray(layer.run(game.words(functions[same], None))).argmax(axis=1)
            for at, row in zip(same.tolist(), rows, strict=True):
                sent[at] += row.astype(np.int64).tobytes()
        tokens = np.hstack([tokens, column])
    return tokens, sent


def _bobs(symbols: list[int], _: Question) -> list[int]:
    """Return Bob's symbols, whatever the question of the game is: g, the start and the tokens so far."""
    return symbols


def refute_chain(
    chain: ChainOfThought, hops: int, g: Sequence[int], x: int, tries: int = CHUNK, seed: int = 0
) -> ChainSearch:
    """Search all functions if they are no more than `tries`, else random ones, and confirm with the chain itself."""
    game = composition_game(chain.n)
    seen: dict[tuple[bytes, bytes], dict[int, Function]] = {}
    tried, alike = 0, None
    for batch in _functions(game, tries, seed):
        tokens, sent = transcripts(chain, batch, g, x)
        for row, written, message in zip(batch.tolist(), tokens, sent, strict=True):
            f = tuple(row)
            tried += 1
            answers = seen.setdefault((message, written.tobytes()), {})
            other = next((before for before in answers.values() if before != f), None)
            alike = alike or ((other, f) if other else None)
            answers.setdefault(followed(f, g, x, hops), f)
            if len(answers) > 1:
                first, second = list(answers.values())[:2]
                if chain.alone(first, g, x) != chain.alone(second, g, x):
                    raise AssertionError(f"equal messages, but other tokens: {first}, {second}")
                return ChainSearch(chain.bits, game.needed, tried, alike, (first, second))
    return ChainSearch(chain.bits, game.needed, tried, alike, None)


def _functions(game: Game, tries: int, seed: int) -> Iterator[Ints]:
    """Yield all functions in batches, or random ones if they are too many."""
    count, rng = min(game.inputs, tries), np.random.default_rng(seed)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        yield game.numbered(start, size) if game.inputs <= tries else rng.integers(game.choices, size=(size, game.size))
