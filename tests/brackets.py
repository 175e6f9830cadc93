"""Brackets worked out without vitrify: by deleting neighbours that belong together, and by listing words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))


def height(word: str) -> int | None:
    """How deep a well-nested word is, by deleting all innermost pairs again and again; None if it is not well nested.

    Only pairs that stand side by side at the beginning of a round are deleted in it.
    """
    rounds = 0
    while word:
        kept, at = "", 0
        while at < len(word):
            if (word[at], word[at + 1 : at + 2]) in PAIRS:
                at += 2
            else:
                kept, at = kept + word[at], at + 1
        if kept == word:
            return None
        word, rounds = kept, rounds + 1
    return rounds


def is_inside(word: str, depth: int) -> bool:
    """Whether a word is well nested and not too deep."""
    deep = height(word)
    return deep is not None and deep <= depth


def completions(history: str, kinds: int, depth: int) -> frozenset[str]:
    """What may come next, by trying every bracket and all ways to close what is open then."""
    letters = [bracket for pair in PAIRS[:kinds] for bracket in pair]
    closing = [pair[1] for pair in PAIRS[:kinds]]
    allowed = {
        letter
        for letter in letters
        if any(
            is_inside(history + letter + "".join(rest), depth)
            for size in range(depth + 1)
            for rest in product(closing, repeat=size)
        )
    }
    return frozenset(allowed | ({"</s>"} if is_inside(history, depth) else set()))


def all_texts(letters: Sequence[str], longest: int) -> list[str]:
    """All words up to a length."""
    return ["".join(word) for size in range(longest + 1) for word in product(letters, repeat=size)]
