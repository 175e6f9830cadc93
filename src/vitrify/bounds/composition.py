r"""Error of one attention layer, and of other strategies with as many bits, on composing random functions, $f(g(x))$.

$f$ and $g$ are random functions from $n$ elements to $n$ elements, $x$ is random; a word has the entries of $g$, then
those of $f$, then $x$. One party, Faye, knows $f$ and $x$ and sends $B$ bits. Whoever answers from these bits, $g$ and
$x$ errs with probability at least $R/(3n\log_2 n)$ with $R = n\log_2 n - B > 0$ (`calculators.composition`). Here the
error of three kinds of strategies is measured: layers with their own readout, the best decoder of a layer's partial
sums over $f$ (numerators and denominators of its attention averages, summed over the entries of $f$ only), and messages
that no layer computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import log2

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.games import composition_game
from vitrify.bounds.protocols import PartialSums
from vitrify.bounds.quantized import MAX_BITS, OneLayer
from vitrify.errors import InputError

CHUNK = 1 << 14  # random words per batch
Answers = Callable[[Ints], Ints]  # words [batch, 2n + 1] -> answers [batch]


def functions(n: int) -> Ints:
    """Return all functions from n elements to n elements as tables, one per row."""
    return np.array(list(product(range(n), repeat=n)), dtype=np.int64)


def layer_bits(model: OneLayer, n: int) -> int:
    """Return the bits of partial sums of $H$ heads of size $m$ at $p$ bits: $H(m+1)(p + \\lceil\\log_2 n\\rceil)$."""
    return PartialSums(model, composition_game(n)).bits


def answers_of(model: OneLayer) -> Answers:
    """Return the function that maps words to a layer's most likely symbols."""
    return lambda words: np.asarray(model.run(words)).argmax(axis=1)


def measured(answers: Answers, n: int, cases: int | None = None, seed: int = 0) -> tuple[int, int]:
    """Return the number of wrong answers and of cases: all $f$, $g$ and $x$, or `cases` random ones."""
    wrong = total = 0
    rng, starts = np.random.default_rng(seed), range(0, cases or 0, CHUNK)
    drawn = (rng.integers(0, n, (min(CHUNK, (cases or 0) - at), 2 * n + 1)) for at in starts)
    for words in _all_words(n) if cases is None else drawn:
        x = words[:, -1]
        index = np.arange(len(words))
        right = words[index, n + words[index, x]]
        wrong += int((answers(words) != right).sum())
        total += len(words)
    return wrong, total


def _all_words(n: int) -> Iterator[Ints]:
    tables = functions(n)
    if len(tables) ** 2 * n > 1 << 20:
        raise InputError(f"all functions of {n} elements are too many: give the number of cases to draw")
    for g in tables:
        x = np.repeat(np.arange(n), len(tables))
        yield np.column_stack([np.tile(g, (len(x), 1)), np.tile(tables, (n, 1)), x])


def best_reader(messages: Ints, n: int) -> float:
    """Return the least error of any decoder of messages: an integer for each $f$, in the order of `functions`.

    The decoder knows $g$ and $x$, so the query is $f(j)$ with $j$ uniform; it answers with the most frequent value.
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
    """Return the least error of any decoder of a layer's partial sums over $f$, averaged over $x$."""
    errors = []
    for x in range(n):
        messages = PartialSums(model, composition_game(n, x)).numbers(functions(n))
        _, kinds = np.unique(messages, axis=0, return_inverse=True)
        errors.append(best_reader(kinds.reshape(-1), n))
    return float(np.mean(errors))


def table_strategy(n: int, bits: int) -> float:
    """Return the error of sending as many entries of $f$ as fit, and part of the next one in the remaining bits."""
    full = min(n, int(bits / log2(n)))
    values_left = 2.0 ** int(bits - full * log2(n)) if full < n else 0.0
    right = full + min(values_left, n) / n + max(n - full - 1, 0) / n if full < n else n
    return 1 - right / n


def climbed(n: int, bits: int, steps: int = 2000, seed: int = 0) -> float:
    """Return the error of a message function improved by hill climbing, one random message at a time."""
    rng = np.random.default_rng(seed)
    messages = rng.integers(0, 1 << bits, n**n)
    error = best_reader(messages, n)
    for _ in range(steps):
        index = rng.integers(len(messages))
        old, messages[index] = messages[index], rng.integers(0, 1 << bits)
        tried = best_reader(messages, n)
        if tried <= error:
            error = tried
        else:
            messages[index] = old
    return error


def every_message(n: int, bits: int) -> float:
    """Return the least error over all message functions of `bits` bits; only for the smallest $n$."""
    if (1 << bits) ** (n**n) > 1 << 16:
        raise InputError(f"all messages of {bits} bits about functions of {n} elements are too many")
    return min(best_reader(np.array(chosen), n) for chosen in product(range(1 << bits), repeat=n**n))


def capacity(n: int, value_size: int, bits: int) -> tuple[int, int]:
    """Return the entries $K$ of $f$ that `storing_layer` holds, and the digits $s$ in a coordinate."""
    capacities = [(min(s * (value_size - 1), n), s) for s in range(1, bits + 1)]
    fits = [(min(entries, ((1 << (bits - 1)) - 1) // n**s - 1), s) for entries, s in capacities]
    return max([(entries, s) for entries, s in fits if entries > 0], default=(0, 1))


def best_storing(n: int, total: int) -> tuple[int, int]:
    """Return value size and bits of the storing layer of at most `total` bits that holds the most entries of $f$."""
    sizes = [(total // bits, bits) for bits in range(2, MAX_BITS + 1) if total // bits > 0]
    hold = [
        (value_size, bits) for value_size, bits in sizes if n * (capacity(n, value_size, bits)[0] + 1) < 1 << (bits - 1)
    ]
    if not hold:
        raise InputError(f"{total} bits do not hold g(x) for {n} elements")
    return max(hold, key=lambda size: capacity(n, *size)[0])


def storing_error(n: int, entries: int) -> float:
    """Return the error of a layer that stores entries of $f$ and guesses the others: $(1 - K/n)(1 - 1/n)$."""
    return (1 - entries / n) * (1 - 1 / n)


def storing_layer(n: int, value_size: int, bits: int) -> OneLayer:
    r"""Return a hand-built layer that is right if $g(x) < K$: one head copies $g(x)$ and the first $K$ entries of $f$.

    The head attends equally to the entry of $g$ for $x$ and to the first $K$ entries of $f$, and nowhere else.
    Coordinate 0 holds $g(x)$; every other one holds $s$ entries of $f$ as digits to base $n$. As the head divides by
    $K + 1$, the digits are written $K + 1$ times as large, so $(K+1)n^s < 2^{p-1}$. Where $g(x) \ge K$ the answer is 0.
    $p$ is `bits`.
    """
    stored_entries, digits = capacity(n, value_size, bits)
    if n * (stored_entries + 1) >= 1 << (bits - 1):
        raise InputError(f"{bits} bits do not hold g(x) for {n} elements")
    positions = 2 * n + 1
    queries = np.eye(n, dtype=np.int64)[None]
    keys = np.zeros((1, positions, n, n), dtype=np.int64)
    values = np.zeros((1, positions, n, value_size), dtype=np.int64)
    symbols = np.arange(n)
    for j in range(n):
        keys[0, j, :, j] = 1
        values[0, j, :, 0] = (stored_entries + 1) * symbols
    for j in range(stored_entries):
        keys[0, n + j] = 1
        values[0, n + j, :, 1 + j // digits] = (stored_entries + 1) * symbols * n ** (j % digits)

    def read(_: int, mixed: Ints) -> Ints:
        image = mixed[:, 0, 0]
        stored = np.minimum(image, max(stored_entries - 1, 0))
        digit = mixed[np.arange(len(mixed)), 0, np.minimum(1 + stored // digits, value_size - 1)]
        answer = np.where(image < stored_entries, digit // n ** (stored % digits) % n, 0)
        return np.eye(n, dtype=np.int64)[answer]

    return OneLayer(
        symbols=tuple(map(str, range(n))),
        bits=bits,
        ask=2 * n,
        queries=queries,
        keys=keys,
        values=values,
        scale=np.array([2.0 * bits]),  # keys with score 0 weigh e^-2p times those with score 1, which rounds to 0
        bias=np.zeros((1, positions)),
        read=read,
    )
