"""What the programs in `examples/` mean, in plain Python: the answer after the empty word, and at every position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
Word = Sequence[str]
CLOSES = {")": "(", "]": "["}


def nested(word: Word) -> bool:
    stack: list[str] = []
    for bracket in word:
        if bracket not in CLOSES:
            stack.append(bracket)
        elif not stack or stack.pop() != CLOSES[bracket]:
            return False
    return not stack


def balanced(word: Word) -> bool:
    return all(nested([bracket for bracket in word if bracket in pair]) for pair in ("()", "[]"))


def at_ends(holds: Callable[[Word], Any]) -> Callable[[Word], list[Any]]:
    return lambda word: [holds(word[: end + 1]) for end in range(len(word))]


def added(word: Word) -> list[int]:
    """Return the digits of a sum of numbers in base 3, by whole numbers."""
    numbers = [sum(int(symbol.split("+")[part]) * 3**at for at, symbol in enumerate(word)) for part in (0, 1)]
    return [sum(numbers) // 3**at % 3 for at in range(len(word))]


def third(word: Word) -> list[int]:
    found = [at for at, symbol in enumerate(word) if symbol == "a"]
    return [found[2] if len(found) > 2 else -1] * len(word)


MEANS: dict[str, Callable[[Word], list[Any]]] = {
    "balanced": at_ends(nested),
    "reverse": lambda word: [*reversed(word)],
    "sort_by_frequency": lambda word: sorted(word, key=lambda symbol: -list(word).count(symbol)),
    "pattern": at_ends(lambda word: list(word[-3:]) == ["a", "b", "a"]),
    "most_frequent": lambda word: [max(dict.fromkeys(word), key=list(word).count)] * len(word),
    "dyck": at_ends(nested),
    "pairs_balanced": at_ends(balanced),
    "addition": added,
    "kth_occurrence": third,
}
EMPTY = {"pattern": False, "dyck": True, "pairs_balanced": True}
