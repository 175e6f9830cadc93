"""Retrieval tasks worked out on text, one position at a time, without vitrify's own answers."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.spec.tasks.catalogue import Task
from vitrify.spec.tasks.composition import Composition
from vitrify.spec.tasks.copying import Copying
from vitrify.spec.tasks.k_hop import KHop
from vitrify.spec.tasks.recall import Recall

TASKS: tuple[Task, ...] = (
    Composition(3),
    Copying(symbols=3, size=9, gram=2),
    KHop(hops=1, symbols=3, length=12),
    KHop(hops=6, symbols=3, length=16),
    Recall(keys=4, values=3, pairs=3, queries=3, fused=False),
    Recall(keys=4, values=3, pairs=3, queries=3, fused=True),
)


def hop(word: Sequence[str], place: int) -> int | None:
    """The place behind the last earlier occurrence of the symbol at a place (from 0)."""
    earlier = [j for j in range(place) if word[j] == word[place]]
    return earlier[-1] + 1 if earlier else None


def hopped(word: Sequence[str], hops: int) -> list[str]:
    """The symbol so many hops from each place."""
    found = []
    behind: list[int | None] = [hop(word, place) for place in range(len(word))]
    for start in range(len(word)):
        place: int | None = start
        for _ in range(hops):
            place = None if place is None else behind[place]
        found.append("(none)" if place is None else word[place])
    return found


def composed(word: Sequence[str]) -> str:
    """f(g(x)) of a whole word, by looking entries up as text."""
    x = word[-1].removeprefix("x=")
    (inner,) = [symbol.split("=")[1] for symbol in word if symbol.startswith(f"g{x}=")]
    (outer,) = [symbol.split("=")[1] for symbol in word if symbol.startswith(f"f{inner}=")]
    return outer


def recalled(word: Sequence[str]) -> list[str | None]:
    """The value behind the first occurrence of each key that came before."""
    text = [part for symbol in word for part in symbol.split("=")]
    fused = [symbol for symbol in word if "=" in symbol]
    found: list[str | None] = []
    for place, symbol in enumerate(word):
        earlier = symbol[0] == "k" and "=" not in symbol and (symbol in word[:place] or bool(fused))
        found.append(text[text.index(symbol) + 1] if earlier else None)
    return found


def copied(word: Sequence[str], gram: int) -> list[str | None]:
    """From the last separator on, the symbol of the text that comes next, and a separator at its end."""
    joined = "".join(word)
    text, _, rest = joined.partition("|" * gram)
    if len(text) == len(joined):
        return [None] * len(word)
    return [None] * (len(joined) - len(rest) - 1) + [*(text + "|")[: len(rest) + 1]]


def right(task: Task, word: Sequence[str]) -> list[str | None]:
    """What must be answered at each place of a well-formed word."""
    if isinstance(task, KHop):
        return [*hopped(word, task.hops)]
    if isinstance(task, Composition):
        return [None] * (len(word) - 1) + [composed(word)]
    if isinstance(task, Recall):
        return recalled(word)
    assert isinstance(task, Copying)
    return copied(word, task.gram)
