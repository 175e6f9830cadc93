"""Parity and majority: words as likely as they should be, and answers that counting gives."""

from __future__ import annotations

from itertools import product
from math import comb
from typing import Any

import jax
import numpy as np
import pytest

from exact_rows import asked, drawn, foretold, share
from vitrify.errors import InputError
from vitrify.sandboxes.kit.counted import BitSandbox
from vitrify.sandboxes.majority import Majority
from vitrify.sandboxes.parity import Parity


def right(sandbox: BitSandbox, word: str) -> str:
    ones, zeros = word.count("1"), word.count("0")
    return ["even", "odd"][ones % 2] if isinstance(sandbox, Parity) else ["no", "yes"][ones > zeros]


@pytest.mark.parametrize(("kind", "when"), [(Parity, "end"), (Parity, "all"), (Majority, "all")])
def test_answers_are_counted(kind: Any, when: Any) -> None:
    sandbox = kind(shortest=3, longest=11, scored=when)
    found = drawn(sandbox, 300)
    best = foretold(sandbox, found)
    for number, (symbols, answers) in enumerate(asked(sandbox, found)):
        word, _, blanks = "".join(symbols).partition("|")
        assert set(blanks) <= {"_"}
        assert 3 <= len(word) <= 11
        assert word.count("1") == found.latent["ones"][number]
        counted = {t: right(sandbox, word[:t]) for t in range(1, len(word) + 1)}
        assert answers == (counted if when == "all" else {len(word) + 1: counted[len(word)]})
        assert [sandbox.answers[best[number, t].argmax()] for t in answers] == [*answers.values()]


@pytest.mark.parametrize(("shortest", "longest", "fewest", "most"), [(1, 4, 0, None), (3, 4, 1, 2)])
def test_every_word_is_as_likely_as_it_should_be(shortest: int, longest: int, fewest: int, most: int | None) -> None:
    found = drawn(Parity(shortest, longest, fewest, most), 40_000)
    words = ["".join("01|_"[k] for k in row).partition("|")[0] for row in found.tokens.tolist()]
    wanted = {}
    for length in range(shortest, longest + 1):
        top = length if most is None else min(length, most)
        for bits in product("01", repeat=length):
            ones = bits.count("1")
            if fewest <= ones <= top:
                wanted["".join(bits)] = 1 / (top - fewest + 1) / comb(length, ones)
    assert {*words} == {*wanted}
    assert share([words.count(word) for word in wanted], [*wanted.values()]) > 1e-6


def test_the_number_of_ones_can_be_fixed_in_long_words() -> None:
    found = drawn(Parity(shortest=100, longest=120, min_ones=5, max_ones=5), 200)
    assert ((found.tokens == 1).sum(axis=1) == 5).all()
    assert found.targets.sum(axis=1).tolist() == [1] * 200


def test_whoever_knows_the_length_knows_how_often_answers_are_right() -> None:
    sandbox = Majority(shortest=6, longest=6)
    guess = np.exp(jax.jit(jax.vmap(sandbox.by_length))(drawn(sandbox, 2)))
    assert np.allclose(guess[:, 7], np.array([4 / 7, 3 / 7]))
    assert "length" not in Majority(scored="all").predictors()


def test_bad_parameters_are_all_named() -> None:
    with pytest.raises(InputError, match=r"shortest must be a whole number from 1 to 1,024, not 0; min_ones"):
        Parity(shortest=0, longest=4, min_ones=-1)
    with pytest.raises(
        InputError, match=r"longest must be at least shortest = 5, not 4; min_ones must be at most .* 5, not 6"
    ):
        Parity(shortest=5, longest=4, min_ones=6)
    with pytest.raises(InputError, match="min_ones must be at most shortest and max_ones, 2, not 3"):
        Parity(shortest=4, longest=4, min_ones=3, max_ones=2)
    with pytest.raises(InputError, match="max_ones must be a whole number of at least 0 or none"):
        Parity(max_ones=-1)
