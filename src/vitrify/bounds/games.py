r"""Two-party games contained in tasks: which party knows which positions of a word, and the right answer.

In every game Alice knows some numbers and Bob a query about them; she sends him one message, from which he answers. A
layer that does the task gives such a message: what it passes on about her positions. Her numbers determine the symbols
at her positions, his query those at all others; the right answer depends on both. If two of her inputs lead to the same
message, some query (`question`) has different answers for them, so a message must have `needed` bits: the logarithm of
the number of her inputs.

| game | Alice | Bob | the word | the answer |
| --- | --- | --- | --- | --- |
| `index_game` | bits $y_1 \dots y_n$ | $i$ | $b_1 y_1 \dots b_n y_n\,?$ with $b_i = ?$, all others # | $y_i$ |
| `match3_game` | $n$ bits | $n$ bits | 1, then Alice's numbers, then Bob's | do three sum to 0 mod $M$ |
| `averaging_game` | $q$ bits | $q$ bits | signs of $2q$ positions, then the pointers | mean over the pointers |
| `composition_game` | $f$ | $g$ | entries of $g$, then of $f$, then $x$ | $f(g(x))$ |
| `recall_game` | values $v_1 \dots v_n$ | $i$ | $k_1 v_1 \dots k_n v_n k_i$ | $v_i$ |
| `pointer_game` | signs $z_1 \dots z_n$ | $i$ | $z_1 \dots z_n$, then a pointer to $i$ | $z_i$ |
| `copy_game` | $n$ symbols | nothing | the symbols, then a mark | the symbols again |
| `equality_game` | $x_1 \dots x_n$ | $y_1 \dots y_n$ | $x$, then $y$, then ? | is $x = y$ |
| `disjointness_game` | bits $x_1 \dots x_n$ | bits $y_1 \dots y_n$ | $x$, then $y$, then ? | is no $x_i = y_i = 1$ |
| `brackets_game` | $n$ opening brackets | $n$ closing ones | $o_1 c_1 \dots o_n c_n\,?$ | are they balanced |

The last three end with the symbol ?, at which the layer answers: it is the same for all inputs, so Alice knows with
which vector the layer attends to her positions there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import log2
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from vitrify.arrays import Ints
from vitrify.errors import InputError

Question: TypeAlias = Any  # Bob's query: a position, a sequence of symbols, or None, by the game
Label: TypeAlias = Any  # a right answer: a symbol, a word or a number

MAX_QUERIES = 256  # Bob's words that are listed


def _differ(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the first position at which two inputs differ."""
    return next(position for position, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)


@dataclass(frozen=True, eq=False)
class Game:
    """A game; each of Alice's `size` numbers has `choices` values, and symbols are indices into `symbols`.

    `alice` gives the symbols [batch, her positions] of inputs [batch, size], `bob` the symbols at all other positions;
    a layer answers at the position `ask`. `label` computes the right answer from both inputs, `truth` from the word, by
    the definition of the task. `question` returns a query with different answers for two inputs, by default the index
    of one of Alice's numbers; `questions` are all its values, or some if they are too many. If `repeats` is not 0, the
    net generates that many symbols.
    """

    name: str
    symbols: tuple[str, ...]
    size: int
    choices: int
    places: tuple[int, ...]
    alice: Callable[[Ints], Ints]
    bob: Callable[[Question], Sequence[int]]
    label: Callable[[Sequence[int], Question], Label]
    truth: Callable[[Sequence[int]], Label]
    question: Callable[[Sequence[int], Sequence[int]], Question] = _differ
    questions: tuple[Question, ...] = ()
    asks_first: bool = False
    repeats: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", self.questions or tuple(range(self.size)))

    @cached_property
    def length(self) -> int:
        """Length of a word."""
        return len(self.places) + len(self.bob(self.questions[0]))

    @property
    def ask(self) -> int:
        """Position of the query: the last one, or the first."""
        return 0 if self.asks_first else self.length - 1

    @property
    def needed(self) -> float:
        """Bits needed to tell all of Alice's inputs apart."""
        return self.size * log2(self.choices)

    @property
    def inputs(self) -> int:
        """Number of Alice's possible inputs."""
        return int(self.choices**self.size)

    @property
    def others(self) -> tuple[int, ...]:
        """Bob's positions."""
        return tuple(position for position in range(self.length) if position not in self.places)

    def words(self, alice: ArrayLike, bob: Question) -> Ints:
        """Return words [batch, length] for several inputs of Alice and one query."""
        alice = np.atleast_2d(np.asarray(alice, dtype=np.int64))
        words = np.zeros((len(alice), self.length), dtype=np.int64)
        words[:, list(self.places)] = self.alice(alice)
        words[:, list(self.others)] = np.asarray(self.bob(bob), dtype=np.int64)
        return words

    def spell(self, word: Iterable[int]) -> list[str]:
        """Return a word in symbols."""
        return [self.symbols[symbol] for symbol in word]

    def numbered(self, start: int, count: int) -> Ints:
        """Return `count` of Alice's inputs in counting order; the first number counts fastest."""
        remaining = np.arange(start, start + count)
        digits = np.zeros((count, self.size), dtype=np.int64)
        for index in range(self.size):
            remaining, digits[:, index] = np.divmod(remaining, self.choices)
        return digits


def _after_last(word: Sequence[int]) -> int:
    """Return the symbol after the last earlier occurrence of a word's last symbol."""
    return next(word[position + 1] for position in range(len(word) - 2, -1, -1) if word[position] == word[-1])


def index_game(size: int, symbols: Sequence[str] = ("#", "?", "0", "1")) -> Game:
    """Return INDEX as a task for an induction head: which symbol follows the last query symbol?"""
    if size < 1 or len(set(symbols)) != len(symbols) or len(symbols) < 3:
        raise InputError("INDEX needs at least one pair and a filler, a query symbol and values, all different")
    first = 2 if len(symbols) > 3 else 0  # with three symbols the filler is one of the two values
    values = [0, 2] if first == 0 else list(range(2, len(symbols)))

    return Game(
        name="induction",
        symbols=tuple(symbols),
        size=size,
        choices=len(values),
        places=tuple(range(1, 2 * size, 2)),
        alice=lambda y: np.asarray(values)[y],
        bob=lambda i: [int(position == i) for position in range(size)] + [1],
        label=lambda y, i: symbols[values[y[i]]],
        truth=lambda word: symbols[_after_last(word)],
    )


def match3_game(size: int) -> Game:
    """Return DISJ as Match3: $x_1 = 1$, Alice has $i + 2$ or 0 and Bob $M - i - 3$ or 0 at index $i$, $M = 2n + 4$.

    The answer is 1 iff the first number and two others (or the same twice) sum to 0 modulo $M$.
    """
    modulus = 2 * size + 4
    indices = np.arange(size)

    def bob(b: Sequence[int]) -> list[int]:
        return [1, *(modulus - i - 3 if b[i] else 0 for i in range(size))]

    return Game(
        name="match3",
        symbols=tuple(map(str, range(modulus))),
        asks_first=True,
        size=size,
        choices=2,
        places=tuple(range(1, size + 1)),
        alice=lambda a: np.where(a > 0, indices + 2, 0),
        bob=bob,
        label=lambda a, b: int(any(x and y for x, y in zip(a, b, strict=True))),
        truth=lambda word: int(
            any((word[0] + x + y) % modulus == 0 for x, y in combinations_with_replacement(map(int, word), 2))
        ),
        question=lambda a, c: _unit(size, _differ(a, c)),
        questions=tuple(_unit(size, index) for index in range(size)),
    )


def _unit(size: int, index: int) -> tuple[int, ...]:
    return tuple(int(other == index) for other in range(size))


def averaging_game(pointers: int) -> Game:
    """Return DISJ as $q$-sparse averaging: Alice points into pairs of positions, Bob has their signs.

    The last position points to the second of pair $i$ where $a_i = 1$, else to the first; the second of pair $i$ has
    the sign + where $b_i = 1$, every other position has −. The mean is −1 iff the sets are disjoint, else at least −1 +
    2/q.
    """
    if pointers > 12:
        raise InputError("every set of pointers is a symbol here: at most 12 pointers")
    powers = 1 << np.arange(pointers)

    def bob(b: Sequence[int]) -> list[int]:
        return [sign for bit in b for sign in (0, int(bool(bit)))]

    def truth(word: Sequence[int]) -> Fraction:
        chosen = [2 * pair + ((word[-1] - 2) >> pair & 1) for pair in range(pointers)]
        return Fraction(sum(2 * word[index] - 1 for index in chosen), pointers)

    return Game(
        name="sparse-averaging",
        symbols=("-", "+", *(format(number, f"0{pointers}b")[::-1] for number in range(1 << pointers))),
        size=pointers,
        choices=2,
        places=(2 * pointers,),
        alice=lambda a: 2 + (a * powers).sum(axis=1, keepdims=True),
        bob=bob,
        label=lambda a, b: -1 + Fraction(2 * sum(int(x and y) for x, y in zip(a, b, strict=True)), pointers),
        truth=truth,
        question=lambda a, c: _unit(pointers, _differ(a, c)),
        questions=tuple(_unit(pointers, index) for index in range(pointers)),
    )


def composition_game(size: int, x: int = 0) -> Game:
    """Return composition $f(g(x))$ for a public $x$: Faye (here: Alice) has $f$, Grace (here: Bob) has $g$."""
    return Game(
        name="composition",
        symbols=tuple(map(str, range(size))),
        size=size,
        choices=size,
        places=tuple(range(size, 2 * size)),
        alice=lambda f: f,
        bob=lambda g: [*g, x],
        label=lambda f, g: f[g[x]],
        truth=lambda word: word[size + word[word[-1]]],
        question=lambda f, h: (_differ(f, h),) * size,
        questions=tuple((index,) * size for index in range(size)),
    )


def recall_game(keys: Sequence[str], values: Sequence[str]) -> Game:
    """Return associative recall with one query: pairs of key and value, then a key."""
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
        places=tuple(range(2 * size)),
        alice=alice,
        bob=lambda i: [i],
        label=lambda v, i: values[v[i]],
        truth=lambda word: values[_after_last(word) - size],
    )


def pointer_game(size: int) -> Game:
    """Return sparse averaging with one pointer for a net that reads left to right: signs first, then a pointer."""
    return Game(
        name="sparse-averaging",
        symbols=("-", "+", *(f"→{index + 1}" for index in range(size))),
        size=size,
        choices=2,
        places=tuple(range(size)),
        alice=lambda z: z,
        bob=lambda i: [2 + i],
        label=lambda z, i: "-+"[z[i]],
        truth=lambda word: "-+"[word[word[-1] - 2]],
    )


def copy_game(length: int, letters: Sequence[str], mark: str) -> Game:
    """Return copying: some letters, a mark, and then the net generates the letters again."""
    return Game(
        name="copy",
        symbols=(*letters, mark),
        size=length,
        choices=len(letters),
        places=tuple(range(length)),
        alice=lambda s: s,
        bob=lambda _: [len(letters)],
        label=lambda s, _: tuple(letters[symbol] for symbol in s),
        truth=lambda word: tuple(letters[symbol] for symbol in word[:-1]),
        question=lambda _a, _b: None,
        questions=(None,),
        repeats=length,
    )


def _words_of(size: int, choices: int) -> tuple[tuple[int, ...], ...]:
    """Return all words of Bob's, or those with equal symbols and one other at most."""
    if choices**size <= MAX_QUERIES:
        return tuple(product(range(choices), repeat=size))
    return (*((choice,) * size for choice in range(choices)), *(_unit(size, index) for index in range(size)))


def equality_game(size: int, choices: int = 2) -> Game:
    """Return equality of two words of `size` symbols, one after the other: 1 if they are equal."""
    return Game(
        name="equality",
        symbols=(*map(str, range(choices)), "?"),
        size=size,
        choices=choices,
        places=tuple(range(size)),
        alice=lambda x: x,
        bob=lambda y: [*y, choices],
        label=lambda x, y: int(tuple(x) == tuple(y)),
        truth=lambda word: int(list(word[:size]) == list(word[size : 2 * size])),
        question=lambda x, _: tuple(x),
        questions=_words_of(size, choices),
    )


def disjointness_game(size: int) -> Game:
    """Return disjointness of two sets of `size` elements, given by their bits: 1 if no element is in both."""
    return Game(
        name="disjointness",
        symbols=("0", "1", "?"),
        size=size,
        choices=2,
        places=tuple(range(size)),
        alice=lambda x: x,
        bob=lambda y: [*y, 2],
        label=lambda x, y: int(not any(a and b for a, b in zip(x, y, strict=True))),
        truth=lambda word: int(all(word[i] + word[size + i] < 2 for i in range(size))),
        question=lambda a, c: _unit(size, _differ(a, c)),
        questions=_words_of(size, 2),
    )


def _balanced(word: Sequence[int]) -> int:
    """Return 1 if brackets, 0 and 1 to open and 2 and 3 to close, are balanced."""
    stack: list[int] = []
    for symbol in word:
        if symbol < 2:
            stack.append(symbol)
        elif not stack or stack.pop() != symbol - 2:
            return 0
    return int(not stack)


def brackets_game(size: int) -> Game:
    r"""Return equality as $\text{Dyck}_{2,1}$: Alice has the kinds of the opening brackets, Bob of the closing ones."""
    return Game(
        name="brackets",
        symbols=("(", "[", ")", "]", "?"),
        size=size,
        choices=2,
        places=tuple(range(0, 2 * size, 2)),
        alice=lambda x: x,
        bob=lambda y: [*(2 + bit for bit in y), 4],
        label=lambda x, y: int(tuple(x) == tuple(y)),
        truth=lambda word: _balanced(word[:-1]),
        question=lambda x, _: tuple(x),
        questions=_words_of(size, 2),
    )
