r"""Games of two parties that hide in tasks: who knows which places of a word, and what the answer is.

In every game Alice knows some numbers and Bob a question about them. What she knows decides the symbols at her places,
his question those at all others; the right answer depends on both. If two of her inputs lead to the same message, there
is a question that tells them apart (`question`), so a message must have `needed` bits: the logarithm of the number of
her inputs.

| game | Alice | Bob | the word | the answer |
| --- | --- | --- | --- | --- |
| `index_game` | bits $y_1 \dots y_n$ | $i$ | $b_1 y_1 \dots b_n y_n\,?$ with $b_i = ?$, all others # | $y_i$ |
| `match3_game` | $n$ bits | $n$ bits | 1, then Alice's numbers, then Bob's | do three sum to 0 mod $M$ |
| `averaging_game` | $q$ bits | $q$ bits | signs of $2q$ places, then the pointers | mean over the pointers |
| `composition_game` | $f$ | $g$ | entries of $g$, then of $f$, then $x$ | $f(g(x))$ |
| `recall_game` | values $v_1 \dots v_n$ | $i$ | $k_1 v_1 \dots k_n v_n k_i$ | $v_i$ |
| `pointer_game` | signs $z_1 \dots z_n$ | $i$ | $z_1 \dots z_n$, then a pointer to $i$ | $z_i$ |
| `copy_game` | $n$ symbols | nothing | the symbols, then a mark | the symbols again |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import log2
from typing import Any

import numpy as np

from vitrify.bounds.quantised import Ints
from vitrify.errors import InputError


@dataclass(frozen=True, eq=False)
class Game:
    """A game: `choices` are what each of Alice's `size` numbers may be; symbols are numbers into `symbols`.

    `alice` gives the symbols [batch, her places] of inputs [batch, size], `bob` the symbols at all other places; the
    symbol at the place `ask` is the question that a layer answers. `label` says the right answer from what the two
    know, `truth` from the word, by the definition of the task. A net that `repeats` goes on by itself for so long.
    """

    name: str
    symbols: tuple[str, ...]
    size: int
    choices: int
    length: int
    places: tuple[int, ...]
    ask: int
    alice: Callable[[Ints], Ints]
    bob: Callable[[Any], Sequence[int]]
    label: Callable[[Sequence[int], Any], Any]
    truth: Callable[[Sequence[int]], Any]
    question: Callable[[Sequence[int], Sequence[int]], Any]
    questions: tuple[Any, ...]
    repeats: int = 0

    @property
    def needed(self) -> float:
        """Bits that tell all of Alice's inputs apart."""
        return self.size * log2(self.choices)

    @property
    def inputs(self) -> int:
        """How many inputs Alice may have."""
        return int(self.choices**self.size)

    @property
    def others(self) -> tuple[int, ...]:
        """Bob's places."""
        return tuple(place for place in range(self.length) if place not in self.places)

    def words(self, alice: Any, bob: Any) -> Ints:
        """Whole words [batch, length] for several inputs of Alice and one question."""
        alice = np.atleast_2d(np.asarray(alice, dtype=np.int64))
        words = np.zeros((len(alice), self.length), dtype=np.int64)
        words[:, list(self.places)] = self.alice(alice)
        words[:, list(self.others)] = np.asarray(self.bob(bob), dtype=np.int64)
        return words

    def spell(self, word: Any) -> list[str]:
        """A word in symbols."""
        return [self.symbols[symbol] for symbol in word]

    def numbered(self, start: int, count: int) -> Ints:
        """So many of Alice's inputs in counting order: the first number counts fastest."""
        rest = np.arange(start, start + count)
        digits = np.zeros((count, self.size), dtype=np.int64)
        for place in range(self.size):
            rest, digits[:, place] = np.divmod(rest, self.choices)
        return digits


def _differ(first: Sequence[int], second: Sequence[int]) -> int:
    """The first place at which two inputs differ."""
    return next(place for place, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)


def _after_last(word: Sequence[int]) -> int:
    """What follows the last earlier occurrence of a word's last symbol."""
    return next(word[place + 1] for place in range(len(word) - 2, -1, -1) if word[place] == word[-1])


def _pairs(word: Sequence[int]) -> Iterator[tuple[int, int]]:
    return combinations_with_replacement([int(number) for number in word], 2)


def index_game(size: int, symbols: Sequence[str] = ("#", "?", "0", "1")) -> Game:
    """INDEX as a question to an induction head: what stands behind the last query symbol?"""
    if size < 1 or len(set(symbols)) != len(symbols) or len(symbols) < 3:
        raise InputError("INDEX needs at least one pair and a filler, a query symbol and values, all different")
    first = 2 if len(symbols) > 3 else 0  # with three symbols the filler is one of the two values
    values = [0, 2] if first == 0 else list(range(2, len(symbols)))

    return Game(
        name="induction",
        symbols=tuple(symbols),
        size=size,
        choices=len(values),
        length=2 * size + 1,
        places=tuple(range(1, 2 * size, 2)),
        ask=2 * size,
        alice=lambda y: np.asarray(values)[y],
        bob=lambda i: [int(place == i) for place in range(size)] + [1],
        label=lambda y, i: symbols[values[y[i]]],
        truth=lambda word: symbols[_after_last(word)],
        question=_differ,
        questions=tuple(range(size)),
    )


def match3_game(size: int) -> Game:
    """DISJ as Match3: $x_1 = 1$, Alice has $i + 2$ or 0 and Bob $M - i - 3$ or 0 at place $i$, $M = 2n + 4$.

    The answer is whether the first number and two others (or the same twice) sum to 0 modulo $M$.
    """
    modulus = 2 * size + 4
    where = np.arange(size)

    def bob(b: Sequence[int]) -> list[int]:
        return [1, *(modulus - i - 3 if b[i] else 0 for i in range(size))]

    return Game(
        name="match3",
        symbols=tuple(map(str, range(modulus))),
        size=size,
        choices=2,
        length=2 * size + 1,
        places=tuple(range(1, size + 1)),
        ask=0,
        alice=lambda a: np.where(a > 0, where + 2, 0),
        bob=bob,
        label=lambda a, b: int(any(x and y for x, y in zip(a, b, strict=True))),
        truth=lambda word: int(any((word[0] + x + y) % modulus == 0 for x, y in _pairs(word))),
        question=lambda a, c: _unit(size, _differ(a, c)),
        questions=tuple(_unit(size, place) for place in range(size)),
    )


def _unit(size: int, place: int) -> tuple[int, ...]:
    return tuple(int(other == place) for other in range(size))


def averaging_game(pointers: int) -> Game:
    """DISJ as $q$-sparse averaging: Alice points into pairs of places, Bob has their signs.

    The last place points to the second of pair $i$ where $a_i = 1$, else to the first; the second of pair $i$ has the
    sign + where $b_i = 1$, every other place has −. The mean is −1 iff the sets are disjoint, else at least −1 + 2/q.
    """
    if pointers > 12:
        raise InputError("every set of pointers is a symbol here: at most 12 pointers")
    powers = 1 << np.arange(pointers)

    def bob(b: Sequence[int]) -> list[int]:
        return [sign for bit in b for sign in (0, int(bool(bit)))]

    def truth(word: Sequence[int]) -> Fraction:
        chosen = [2 * pair + ((word[-1] - 2) >> pair & 1) for pair in range(pointers)]
        return Fraction(sum(2 * word[place] - 1 for place in chosen), pointers)

    return Game(
        name="sparse-averaging",
        symbols=("-", "+", *(format(number, f"0{pointers}b")[::-1] for number in range(1 << pointers))),
        size=pointers,
        choices=2,
        length=2 * pointers + 1,
        places=(2 * pointers,),
        ask=2 * pointers,
        alice=lambda a: 2 + (a * powers).sum(axis=1, keepdims=True),
        bob=bob,
        label=lambda a, b: -1 + Fraction(2 * sum(int(x and y) for x, y in zip(a, b, strict=True)), pointers),
        truth=truth,
        question=lambda a, c: _unit(pointers, _differ(a, c)),
        questions=tuple(_unit(pointers, place) for place in range(pointers)),
    )


def composition_game(size: int, x: int = 0) -> Game:
    """Composition $f(g(x))$ for an $x$ that everybody knows: Faye (here: Alice) has $f$, Grace (here: Bob) has $g$."""
    return Game(
        name="composition",
        symbols=tuple(map(str, range(size))),
        size=size,
        choices=size,
        length=2 * size + 1,
        places=tuple(range(size, 2 * size)),
        ask=2 * size,
        alice=lambda f: f,
        bob=lambda g: [*g, x],
        label=lambda f, g: f[g[x]],
        truth=lambda word: word[size + word[word[-1]]],
        question=lambda f, h: (_differ(f, h),) * size,
        questions=tuple((place,) * size for place in range(size)),
    )


def recall_game(keys: Sequence[str], values: Sequence[str]) -> Game:
    """Associative recall with one question: pairs of key and value, then a key."""
    size, count = len(keys), len(values)
    if len({*keys, *values}) != size + count or size < 1 or count < 2:
        raise InputError("recall needs keys and at least two values, all different")

    def alice(v: Ints) -> Ints:
        named = np.broadcast_to(np.arange(size), v.shape)
        return np.stack([named, size + v], axis=2).reshape(len(v), -1)

    return Game(
        name="recall",
        symbols=(*keys, *values),
        size=size,
        choices=count,
        length=2 * size + 1,
        places=tuple(range(2 * size)),
        ask=2 * size,
        alice=alice,
        bob=lambda i: [i],
        label=lambda v, i: values[v[i]],
        truth=lambda word: values[_after_last(word) - size],
        question=_differ,
        questions=tuple(range(size)),
    )


def pointer_game(size: int) -> Game:
    """Sparse averaging with one pointer for a net that reads from left to right: signs first, then a pointer."""
    return Game(
        name="sparse-averaging",
        symbols=("-", "+", *(f"→{place + 1}" for place in range(size))),
        size=size,
        choices=2,
        length=size + 1,
        places=tuple(range(size)),
        ask=size,
        alice=lambda z: z,
        bob=lambda i: [2 + i],
        label=lambda z, i: "-+"[z[i]],
        truth=lambda word: "-+"[word[word[-1] - 2]],
        question=_differ,
        questions=tuple(range(size)),
    )


def copy_game(length: int, letters: Sequence[str], mark: str) -> Game:
    """Copying: some letters, a mark, and then the net repeats the letters by itself."""
    return Game(
        name="copy",
        symbols=(*letters, mark),
        size=length,
        choices=len(letters),
        length=length + 1,
        places=tuple(range(length)),
        ask=length,
        alice=lambda s: s,
        bob=lambda _: [len(letters)],
        label=lambda s, _: tuple(letters[symbol] for symbol in s),
        truth=lambda word: tuple(letters[symbol] for symbol in word[:-1]),
        question=lambda _a, _b: None,
        questions=(None,),
        repeats=length,
    )
