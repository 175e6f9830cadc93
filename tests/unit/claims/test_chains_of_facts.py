"""How long a curve rests at the guess, and how long its jump takes, on curves that are known."""

from __future__ import annotations

import numpy as np
import pytest

from vitrify.claims.chains_of_facts_are_guessed_before_they_are_followed import looked, rest_and_jump
from vitrify.sandboxes.catalogue import Row

STEPS = [0, 100, 600, 700, 1000]


def test_the_rest_ends_with_the_jump_and_the_jump_begins_with_the_last_guess() -> None:
    guess = np.log(2)
    loss = [guess + 1.0, guess, guess, 0.0, guess]  # what comes back after the jump is no rest
    rest, jump = rest_and_jump(STEPS, loss, [0.1, 0.5, 0.5, 1.0, 1.0], 2)
    assert rest == pytest.approx(10 + 500 + 100 * 0.1 / guess, abs=0.2)
    assert jump == pytest.approx(100 * (0.95 - 0.65) / 0.5, abs=0.2)


def test_who_never_follows_rests_to_the_end_and_does_not_jump() -> None:
    rest, jump = rest_and_jump(STEPS, [np.log(4)] * 5, [0.25, 0.25, 0.25, 0.6, 0.25], 4)
    assert rest == pytest.approx(1000, abs=0.2)
    assert jump == np.inf
    assert rest_and_jump(STEPS, [np.log(4) + 0.2] * 5, [0.25] * 5, 4)[0] == 0


def test_a_curve_that_broke_neither_rests_nor_jumps_from_there() -> None:
    rest, jump = rest_and_jump(STEPS, [2.0, np.log(4), np.nan, np.nan, np.nan], [0.25, 0.25, *[np.nan] * 3], 4)
    assert rest < 100
    assert jump == np.inf


def test_what_the_last_token_looks_at_is_the_end_of_one_step_and_all_of_the_next() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(9), size=(2, 2, 1, 9))  # [block, row, head, query, token]
    seen = {f"blocks.{block}.attn.hook_pattern": shares[block - 1] for block in (1, 2)}
    row = Row(np.zeros((2, 9)), np.zeros((2, 10)), np.zeros((2, 10)), {"steps": np.array([[0, 3], [1, 2]])})
    ends = (shares[0, 0, 0, 8, 1] + shares[0, 1, 0, 8, 3]) / 2
    steps = (shares[1, 0, 0, 8, 6:8].sum() + shares[1, 1, 0, 8, 4:6].sum()) / 2
    assert looked(1, None, None, row, seen) == pytest.approx(ends, rel=1e-5)
    assert looked(2, None, None, row, seen) == pytest.approx(steps, rel=1e-5)
