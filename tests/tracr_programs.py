"""What programs of Tracr mean, in plain Python: the oracle of `examples/tracr/library.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Word = Sequence[Any]


@dataclass(frozen=True)
class Case:
    """Symbols, the longest word, what is right after a word; `legal` are the words on which the program has values."""

    symbols: Sequence[Any]
    means: Callable[[Word], list[Any]]
    length: int = 8
    legal: Callable[[Word], bool] = lambda _: True
    figure: tuple[int, int] | None = None

    def __str__(self) -> str:
        return self.means.__name__


def share(word: Word, symbol: str, end: int) -> Fraction:
    return Fraction(sum(other == symbol for other in word[: end + 1]), end + 1)


def balances(word: Word, pair: str) -> list[Fraction]:
    return [share(word, pair[0], end) - share(word, pair[1], end) for end in range(len(word))]


def dyck(*pairs: str) -> Callable[[Word], list[bool]]:
    def means(word: Word) -> list[bool]:
        good = True
        for opening, closing in map(tuple, pairs):
            height = 0
            for symbol in word:
                height += (symbol == opening) - (symbol == closing)
                good &= height >= 0
            good &= height == 0
        return [good] * len(word)

    return means


def aba(word: Word) -> list[bool | None]:
    return [None if at < 2 else list(word[at - 2 : at + 1]) == list("aba") for at in range(len(word))]


def by_frequency(word: Word) -> list[Any]:
    return sorted(word, key=lambda symbol: -word.count(symbol))


def places(word: Word) -> range:
    return range(len(word))


CASES: dict[str, Case] = {
    "length": Case("abc", lambda w: [len(w)] * len(w)),
    "reverse": Case("abc", lambda w: list(reversed(w))),
    "histogram": Case("abc", lambda w: [w.count(x) for x in w]),
    "count_a": Case("abc", lambda w: [w.count("a")] * len(w)),
    "rare": Case("abc", lambda w: [sum(w.count(x) <= 2 for x in w)] * len(w)),
    "share_a": Case("abc", lambda w: [share(w, "a", end) for end in places(w)]),
    "pair_balance": Case("()x", lambda w: balances(w, "()")),
    "dyck1": Case("()", dyck("()")),
    "shuffle_dyck2": Case("()[]", dyck("()", "[]")),
    "shuffle_dyck3": Case("()[]{}", dyck("()", "[]", "{}"), length=6),
    "previous": Case("abc", lambda w: [None, *w[:-1]]),
    "two_back": Case("abc", lambda w: [None, None, *w][: len(w)]),
    "detect_aba": Case("abc", aba),
    "sort_different": Case((1, 2, 3, 4, 5, 6), sorted, 6, lambda w: len({*w}) == len(w)),
    "sort": Case((1, 2, 4), sorted),
    "sort_by_frequency": Case("abc", by_frequency),
    "is_new": Case("abc", lambda w: [w[at] not in w[:at] for at in places(w)]),
    "is_last": Case("abc", lambda w: [w[at] not in w[at + 1 :] for at in places(w)]),
    "others": Case("abc", lambda w: [sum(j < i or w[j] != w[i] for j in places(w)) for i in places(w)]),
    "doubled": Case("abc", lambda w: [None, *(w[at] == w[at - 1] for at in range(1, len(w)))]),
    "three_arguments": Case((1, 2, 3), lambda w: [(w[at] * at + len(w)) % 5 for at in places(w)]),
}
