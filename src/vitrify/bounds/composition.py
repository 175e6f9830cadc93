r"""The harness for composition: how often one layer, or any strategy with as many bits, errs on $f(g(x))$.

$f$ and $g$ are random functions of $n$ things, $x$ is random; a word has the entries of $g$, then those of $f$, then
$x$. Whatever Faye tells in $B$ bits, Xavier errs with probability at least $R/(3n\log_2 n)$, $R = n\log_2 n - B$. Three
kinds of contestants try to beat that: layers as they are, the best reader of a layer's sums (who also knows $g$), and
strategies that use their bits without a layer.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import log2

import numpy as np
from numpy.typing import NDArray

from vitrify.bounds.games import composition_game
from vitrify.bounds.protocols import Sums
from vitrify.bounds.quantised import Ints, OneLayer
from vitrify.errors import InputError

CHUNK = 1 << 14
Answers = Callable[[Ints], NDArray[np.int64]]  # words [batch, 2n + 1] -> answers [batch]


def functions(n: int) -> Ints:
    """All functions of n things, one per row."""
    return np.array(list(product(range(n), repeat=n)), dtype=np.int64)


def layer_bits(model: OneLayer, n: int) -> int:
    """Bits that Faye sends when two parties run a layer: $H(m+1)(p + \\lceil\\log_2 n\\rceil)$."""
    return Sums(model, composition_game(n)).bits


def answers_of(model: OneLayer) -> Answers:
    """What a layer answers: the likeliest symbol."""
    return lambda words: np.asarray(model.run(words)).argmax(axis=1)


def measured(answers: Answers, n: int, cases: int | None = None, seed: int = 0) -> tuple[int, int]:
    """Wrong answers, and of how many: all $f$, $g$ and $x$, or so many random ones."""
    wrong = total = 0
    for words in _all_words(n) if cases is None else _random_words(n, cases, seed):
        x = words[:, -1]
        rows = np.arange(len(words))
        right = words[rows, n + words[rows, x]]
        wrong += int((answers(words) != right).sum())
        total += len(words)
    return wrong, total


def _all_words(n: int) -> list[Ints]:
    tables = functions(n)
    if len(tables) ** 2 * n > 1 << 20:
        raise InputError(f"all functions of {n} things are too many: say how many cases to draw")
    found = []
    for g in tables:
        for x in range(n):
            front, back = np.tile(g, (len(tables), 1)), np.full((len(tables), 1), x)
            found.append(np.concatenate([front, tables, back], axis=1))
    return [np.concatenate(found[at : at + 64]) for at in range(0, len(found), 64)]


def _random_words(n: int, cases: int, seed: int) -> list[Ints]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, n, (min(CHUNK, cases - at), 2 * n + 1)) for at in range(0, cases, CHUNK)]


def best_reader(messages: Ints, n: int) -> float:
    """The least error of any reader who gets Faye's message (a number for each $f$, in the order of `functions`).

    He knows $g$ and $x$, so that he is asked for $f(j)$ with $j$ uniform; he says what is commonest for the message.
    """
    tables = functions(n)
    _, kinds = np.unique(messages, return_inverse=True)
    right = 0
    for j in range(n):
        seen = np.zeros((kinds.max() + 1, n), dtype=np.int64)
        np.add.at(seen, (kinds.reshape(-1), tables[:, j]), 1)
        right += int(seen.max(axis=1).sum())
    return 1 - right / (n * len(tables))


def best_reader_of(model: OneLayer, n: int) -> float:
    """The least error of any reader of a layer's partial sums over $f$, on average over $x$."""
    errors = []
    for x in range(n):
        said = Sums(model, composition_game(n, x)).numbers(functions(n))
        _, kinds = np.unique(said, axis=0, return_inverse=True)
        errors.append(best_reader(kinds.reshape(-1), n))
    return float(np.mean(errors))


def table_strategy(n: int, bits: int) -> float:
    """The error of sending as many entries of $f$ as fit, and of the next one as much as is left."""
    full = min(n, int(bits / log2(n)))
    rest = 2.0 ** int(bits - full * log2(n)) if full < n else 0.0
    right = full + min(rest, n) / n + max(n - full - 1, 0) / n if full < n else n
    return 1 - right / n


def climbed(n: int, bits: int, steps: int = 2000, seed: int = 0) -> float:
    """The error of a message function found by changing one message at a time, from a random one, while it helps."""
    rng = np.random.default_rng(seed)
    messages = rng.integers(0, 1 << bits, n**n)
    error = best_reader(messages, n)
    for _ in range(steps):
        place = rng.integers(len(messages))
        old, messages[place] = messages[place], rng.integers(0, 1 << bits)
        tried = best_reader(messages, n)
        if tried <= error:
            error = tried
        else:
            messages[place] = old
    return error


def every_message(n: int, bits: int) -> float:
    """The least error over all message functions of so many bits; only for the smallest $n$."""
    if (1 << bits) ** (n**n) > 1 << 16:
        raise InputError(f"all messages of {bits} bits about functions of {n} things are too many")
    return min(best_reader(np.array(chosen), n) for chosen in product(range(1 << bits), repeat=n**n))


def storing_layer(n: int, value_size: int, bits: int) -> OneLayer:
    r"""A layer by hand that composes as often as it can: one head that brings $g(x)$ and some entries of $f$.

    The head looks alike at the entry of $g$ for $x$ and at the first $K$ entries of $f$, and nowhere else. Coordinate
    0 brings $g(x)$; every other has room for $s$ entries of $f$ as digits to base $n$. As the head divides by $K + 1$,
    the digits are written $K + 1$ times as large, so $(K+1)n^s < 2^{p-1}$. Where $g(x) \ge K$ it guesses.
    """
    half = 1 << (bits - 1)
    room = [(min(s * (value_size - 1), n), s) for s in range(1, bits + 1)]
    fits = [(min(kept, (half - 1) // n**s - 1), s) for kept, s in room]
    kept, digits = max([(kept, s) for kept, s in fits if kept > 0], default=(0, 1))
    if n * (kept + 1) >= half:
        raise InputError(f"{bits} bits do not hold g(x) for {n} things")
    places = 2 * n + 1
    queries = np.eye(n, dtype=np.int64)[None]
    keys = np.zeros((1, places, n, n), dtype=np.int64)
    values = np.zeros((1, places, n, value_size), dtype=np.int64)
    symbols = np.arange(n)
    for j in range(n):
        keys[0, j, :, j] = 1
        values[0, j, :, 0] = (kept + 1) * symbols
    for j in range(kept):
        keys[0, n + j] = 1
        values[0, n + j, :, 1 + j // digits] = (kept + 1) * symbols * n ** (j % digits)

    def read(_: int, mixed: Ints) -> Ints:
        there = mixed[:, 0, 0]
        stored = np.minimum(there, max(kept - 1, 0))
        digit = mixed[np.arange(len(mixed)), 0, np.minimum(1 + stored // digits, value_size - 1)]
        found = np.where(there < kept, digit // n ** (stored % digits) % n, 0)
        return np.eye(n, dtype=np.int64)[found]

    return OneLayer(
        symbols=tuple(map(str, range(n))),
        bits=bits,
        ask=2 * n,
        queries=queries,
        keys=keys,
        values=values,
        scale=np.array([2.0 * bits]),  # what is not looked at weighs e^-2p of the rest, which rounds to 0
        bias=np.zeros((1, places)),
        read=read,
    )
