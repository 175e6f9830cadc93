"""The most frequent letter and sums of digits: answers that Python counts, and letters as likely as they should be."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from exact_rows import asked, drawn, foretold, share
from vitrify.errors import InputError
from vitrify.sandboxes.digit_sum import DigitSum
from vitrify.sandboxes.kit.counted import Letters
from vitrify.sandboxes.most_frequent import MostFrequent


def right(sandbox: Letters, word: list[str]) -> str:
    if isinstance(sandbox, DigitSum):
        return str(sum(map(int, word)) % sandbox.states)
    return min(sandbox.symbols[:-2], key=lambda letter: (-word.count(letter), letter))


@pytest.mark.parametrize("sandbox", [MostFrequent(4, 2, 9), DigitSum(5, 2, 9), DigitSum(2, 3, 3)])
def test_answers_are_counted_at_the_separator_and_nowhere_else(sandbox: Any) -> None:
    found = drawn(sandbox, 300)
    best = foretold(sandbox, found)
    for number, (symbols, answers) in enumerate(asked(sandbox, found)):
        at = symbols.index("|")
        assert sandbox.shortest <= at <= sandbox.longest
        assert at == found.latent["length"][number]
        assert {*symbols[at + 1 :]} <= {"_"}
        assert answers == {at + 1: right(sandbox, symbols[:at])}
        assert sandbox.answers[best[number, at + 1].argmax()] == answers[at + 1]


def test_every_number_of_a_letter_is_as_likely() -> None:
    """A law that is uniform among all laws makes every split of a word into numbers of letters equally likely."""
    found = drawn(MostFrequent(3, 6, 6), 30_000)
    splits = Counter(tuple((row == letter).sum() for letter in range(3)) for row in found.tokens)
    assert len(splits) == 28
    assert share([*splits.values()], [1] * 28) > 1e-6


def test_bad_parameters_are_all_named() -> None:
    with pytest.raises(InputError, match=r"states must be a whole number from 2 to 64, not 1; shortest must be"):
        DigitSum(states=1, shortest=0, longest=4)
    with pytest.raises(InputError, match="longest must be at least shortest = 5, not 4"):
        DigitSum(shortest=5, longest=4)
