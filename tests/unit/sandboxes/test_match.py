"""Match2 and Match3: answers as the task specs have them, and as many matches as are planted."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from exact_rows import asked, drawn, foretold, share, told
from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.sandboxes.match import Match
from vitrify.spec.tasks.match2 import Match2
from vitrify.spec.tasks.match3_bigram import Match3Bigram
from vitrify.spec.tasks.match3_local import Match3Local

TASKS = {
    "match2": Match2(modulus=50, length=14),
    "match3-bigram": Match3Bigram(modulus=50, length=14),
    "match3-local": Match3Local(modulus=50, length=14, reach=3),
}


@pytest.mark.parametrize("task", [*TASKS])
def test_answers_are_those_of_the_task(task: Any) -> None:
    sandbox = Match(task, modulus=50, length=14, reach=3)
    found = drawn(sandbox, 200)
    best = foretold(sandbox, found)
    for number, (word, answers) in enumerate(asked(sandbox, found)):
        assert answers == told(TASKS[task].answers(word))
        assert [sandbox.answers[k] for k in best[number, 1:].argmax(axis=1)] == [*answers.values()]
    tokens, targets = reference(sandbox, np.random.default_rng(1), 100)
    for row, right in zip(tokens.tolist(), targets[:, 1:].tolist(), strict=True):
        assert [sandbox.answers[k] for k in right] == TASKS[task].answers([*map(str, row)])


@pytest.mark.parametrize("task", [*TASKS])
def test_both_answers_are_common_for_a_large_modulus(task: Any) -> None:
    sandbox = Match(task, modulus=60_000, length=40)
    found = drawn(sandbox, 200)
    assert 0.12 < found.targets[:, 1:].mean() < 0.6
    assert abs(found.latent["planted"].mean() - 0.4) < 5 * np.sqrt(0.24 / 8000)


def test_rows_are_as_likely_as_they_should_be() -> None:
    """All ways to draw three numbers and to plant, for each task."""
    for task in TASKS:
        sandbox = Match(task, modulus=2, length=3, reach=1, planted=0.5)  # type: ignore[arg-type]
        wanted = dict.fromkeys(product(range(2), repeat=3), 0.0)
        choices: dict[str, list[list[tuple[int, ...]]]] = {
            "match2": [[(j,) for j in range(3)]] * 3,
            "match3-bigram": [[(0, 1), (1, 2)]] * 3,
            "match3-local": [[*product(near, repeat=2)] for near in ((0, 1), (0, 1, 2), (1, 2))],
        }
        pairs = choices[task]
        for before in product(range(2), repeat=3):
            each = []
            for i in range(3):
                chances = [0.5 * (before[i] == x) for x in range(2)]
                for places in pairs[i]:
                    chances[-sum(before[j] for j in places) % 2] += 0.5 / len(pairs[i])
                each.append(chances)
            for row in wanted:
                wanted[row] += prod(chances[x] for chances, x in zip(each, row, strict=True)) / 8
        rows = [*map(tuple, drawn(sandbox, 40_000).tokens.tolist())]
        assert share([rows.count(row) for row in wanted], [*wanted.values()]) > 1e-6


def test_bad_parameters_are_all_named() -> None:
    with pytest.raises(
        InputError, match=r"modulus .*; length .*; reach must be .* from 1 to 64, not 0; planted must be"
    ):
        Match("match3-local", modulus=1, length=1, reach=0, planted=1.5)
    with pytest.raises(InputError, match="reach must be below length = 3, not 3"):
        Match("match3-local", length=3, reach=3)
