"""Sparse means and matches worked out on text, by trying everything, without vitrify's own answers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from vitrify.spec.computation.matching import Matching
from vitrify.spec.tasks.match2 import Match2
from vitrify.spec.tasks.match3_bigram import Match3Bigram
from vitrify.spec.tasks.match3_local import Match3Local

MATCHING: tuple[Matching, ...] = (
    Match2(2, 6),
    Match2(5, 6),
    Match2(12, 9),
    Match3Bigram(2, 6),
    Match3Bigram(4, 6),
    Match3Bigram(9, 9),
    Match3Local(2, 6, reach=1),
    Match3Local(3, 6, reach=2),
    Match3Local(4, 6, reach=1),
    Match3Local(9, 9, reach=3),
)


def matched(task: Matching, word: Sequence[str]) -> list[str]:
    """Every choice of the others is tried."""
    x, places = [int(symbol) for symbol in word], range(len(word))
    found = []
    for i in places:
        if isinstance(task, Match2):
            sums = [x[i] + x[j] for j in places]
        elif isinstance(task, Match3Bigram):
            sums = [x[i] + x[j] + x[j + 1] for j in places[:-1]]
        else:
            assert isinstance(task, Match3Local)
            near = [j for j in places if abs(i - j) <= task.reach]
            sums = [x[i] + x[j] + x[k] for j, k in product(near, near)]
        found.append("yes" if any(total % task.modulus == 0 for total in sums) else "no")
    return found


def averaged(word: Sequence[str], dimensions: int) -> list[list[Fraction]]:
    """The mean over each set, in fractions, from the text of the symbols."""
    held: list[list[int]] = []
    for symbol in word:
        text = symbol.partition("@")[0]
        held.append([int(f"{text[-1]}1") if f"{k + 1}" == text[:-1] else 0 for k in range(dimensions)])
    found = []
    for symbol in word:
        places = [int(text) - 1 for text in symbol.partition("@")[2].split(",")]
        found.append([Fraction(sum(held[place][k] for place in places), len(places)) for k in range(dimensions)])
    return found
