"""Families of word-class languages: one to enlarge, and random ones."""

from __future__ import annotations

import numpy as np

from vitrify.spec.pattern_files import quoted
from vitrify.spec.patterns import WordPatterns


def waking_up(size: int) -> WordPatterns:
    """Who awoke when and in what state, with classes of `size` words; some words are in two classes.

    >>> [waking_up(size).window() for size in (2, 20)]
    [6, 6]
    """
    names = {name: [f"{name.lower()}{number}" for number in range(size)] for name in ("WHO", "HOUR", "STATE", "PLACE")}
    names["DRINK"] = [*names["STATE"][: size // 2], *(f"drink{number}" for number in range(size - size // 2))]
    patterns = [
        'WHO "awoke at" HOUR "and was too" STATE "for" PLACE',
        'WHO "was too" STATE "for" DRINK',
        'WHO "went to" PLACE "at" HOUR',
        'WHO "awoke"',
    ]
    return WordPatterns.of(names, patterns)


def random_patterns(seed: int, *, words: int = 5, classes: int = 3, patterns: int = 4, length: int = 5) -> WordPatterns:
    """Random classes (a word is in each with probability 0.4) and random patterns, some words in quotes.

    >>> random_patterns(0) == random_patterns(0)
    True
    """
    rng = np.random.default_rng(seed)
    vocabulary = [f"w{number}" for number in range(words)]
    inside = rng.random((classes, words)) < 0.4
    inside[np.arange(classes), rng.integers(words, size=classes)] = True
    members = {
        f"C{c}": tuple(w for w, held in zip(vocabulary, row, strict=True) if held) for c, row in enumerate(inside)
    }
    parts = [*members, *members, quoted(vocabulary[0]), quoted("x")]
    made = dict.fromkeys(
        tuple(parts[place] for place in rng.integers(len(parts), size=rng.integers(1, length + 1)))
        for _ in range(patterns)
    )
    used = {part for pattern in made for part in pattern}
    return WordPatterns(tuple((name, held) for name, held in members.items() if name in used), tuple(made))
