"""The beginnings of a language's sentences, from what may come next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

Words = tuple[str, ...]


def beginnings(following: Callable[[Words], Iterable[str]], longest: int | None = None) -> Iterator[Words]:
    """Every beginning of a sentence once, short ones first, each made when it is asked for.

    `following` gives the words that may come after a beginning, in the order in which they are to be tried.

    >>> list(beginnings(lambda words: ["a", "b"] if len(words) < 1 else []))
    [(), ('a',), ('b',)]
    """
    yield ()
    level: list[Words] = [()]
    while level and (longest is None or len(level[0]) < longest):
        longer: list[Words] = []
        for words in level:
            for word in following(words):
                longer.append((*words, word))
                yield longer[-1]
        level = longer
