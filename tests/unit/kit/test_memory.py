"""Memories: the three rules against their definitions, and what they recall against a plain search."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vitrify.kit.memory import Rule, random_codes, recall_margins, store

Floats = NDArray[np.float64]


def drawn(count: int, outputs: int, dimension: int, seed: int = 0) -> tuple[Floats, NDArray[np.int64], Floats]:
    rng = np.random.default_rng(seed)
    right = rng.integers(outputs, size=count)
    return random_codes(rng, count, dimension), right, random_codes(rng, outputs, dimension)


def recalled(keys: Floats, memory: Floats, answers: Floats) -> list[int]:
    """The best answer to each key, one score at a time."""
    return [max(range(len(answers)), key=lambda y: float(key @ memory @ answers[y])) for key in keys]


def test_random_codes_are_of_length_one_and_nearly_orthogonal() -> None:
    codes = random_codes(np.random.default_rng(1), 300, 400)
    products = codes @ codes.T
    assert np.allclose(np.diag(products), 1.0)
    assert abs(products[~np.eye(300, dtype=bool)]).max() < 0.35
    assert abs(codes.mean()) < 0.001


def test_the_sum_of_associations() -> None:
    keys, right, answers = drawn(7, 3, 5)
    summed = sum(np.outer(key, answers[y]) for key, y in zip(keys, right, strict=True))
    assert np.allclose(store(keys, right, answers, "hebbian"), summed)


def test_least_squares_is_exact_where_keys_are_independent_and_else_the_best() -> None:
    keys, right, answers = drawn(6, 4, 8)
    assert np.allclose(keys @ store(keys, right, answers, "least squares"), answers[right])
    keys, right, answers = drawn(30, 4, 8)
    memory = store(keys, right, answers, "least squares")
    error = ((keys @ memory - answers[right]) ** 2).sum()
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = memory + 1e-3 * rng.standard_normal(memory.shape)
        assert ((keys @ other - answers[right]) ** 2).sum() > error


@pytest.mark.parametrize("rule", ["hebbian", "least squares", "fitted"])
def test_leads_say_what_is_recalled(rule: Rule) -> None:
    keys, right, answers = drawn(60, 9, 12, seed=3)
    memory = store(keys, right, answers, rule)
    found = recall_margins(keys @ memory, right, answers)
    assert [bool(lead > 0) for lead in found] == [
        a == b for a, b in zip(recalled(keys, memory, answers), right, strict=True)
    ]
    for number in (0, 17, 59):
        scores = keys[number] @ memory @ answers.T
        assert np.isclose(found[number], scores[right[number]] - np.delete(scores, right[number]).max())


def test_fitting_recalls_what_the_others_do_not() -> None:
    keys, right, answers = drawn(100, 100, 32)
    right = np.arange(100)
    shares = {
        rule: np.mean(np.array(recalled(keys, store(keys, right, answers, rule), answers)) == right)
        for rule in ("hebbian", "least squares", "fitted")
    }
    assert shares["hebbian"] < 0.95
    assert shares["least squares"] < 0.95
    assert shares["fitted"] == 1.0
    assert np.isclose(recall_margins(keys @ store(keys, right, answers, "fitted"), right, answers).min(), 1.0)


def test_what_can_not_be_recalled_is_not() -> None:
    keys = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])  # on a line, on one side: all get the same answer
    right, answers = np.array([0, 1, 0]), np.eye(2)
    found = recall_margins(keys @ store(keys, right, answers, "fitted"), right, answers)
    assert found.min() <= 0


def test_one_answer_leads_by_as_much_as_one_likes() -> None:
    keys, right, answers = drawn(5, 1, 4)
    memory = store(keys, right, answers, "fitted")
    assert np.isfinite(memory).all()
    assert np.isinf(recall_margins(keys @ memory, right, answers)).all()
