"""Which values expressions of a program can have."""

from __future__ import annotations

import pytest

from vitrify.spec.program import Expr, apply, choose, count, expression, indices, tokens
from vitrify.spec.program_values import Domain, Values


def domain(root: Expr, length: int = 9) -> Domain:
    values = Values(root, ("a", "b"), length, True)
    assert not values.problems
    return values[values.root]


@pytest.mark.parametrize(
    ("root", "value"),
    [
        (expression(1) < 2, True),
        (expression(3) <= 2, False),
        (apply("not", expression(2) > 1), False),
        (choose(expression(0) < 0, 1, 2), 2),
        (choose(True, 1, 2) + 3, 4),
        (expression(7) % 4, 3),
    ],
)
def test_constants_have_one_value(root: Expr, value: object) -> None:
    assert domain(root) == (value,)


def test_a_known_condition_leaves_one_side() -> None:
    assert domain(choose(expression(1) > 0, indices, 100)) == tuple(range(9))
    assert domain(choose(tokens == "a", indices, 100)) == (*range(9), 100)


@pytest.mark.parametrize("length", [3, 2_000])
def test_sums_of_numbers_in_a_row_need_no_table(length: int) -> None:
    a, b = count(tokens == "a"), count(tokens == "b")
    assert domain(a + b, length) == tuple(range(2 * length + 1))
    assert domain(a - b - 1, length) == tuple(range(-length - 1, length))
    assert domain(1 - indices, length) == tuple(range(2 - length, 2))


def test_sums_of_other_numbers_are_exact() -> None:
    assert domain(2 * indices + 5, 3) == (5, 7, 9)
    assert domain(2 * indices - 2 * indices, 3) == (-4, -2, 0, 2, 4)
