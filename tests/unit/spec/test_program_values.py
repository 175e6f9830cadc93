"""Which values expressions of a program can have."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec.programs.expression import (
    Expr,
    aggregate,
    apply,
    choose,
    count,
    expression,
    indices,
    select,
    tokens,
)
from vitrify.spec.programs.program import Program
from vitrify.spec.programs.values import Domain, Values


def domain(root: Expr, length: int = 9) -> Domain:
    values = Values(root, ("a", "b"), length, True)
    assert not values.problems
    return values[values.root]


@each(
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
def test_sums_need_no_table(length: int) -> None:
    a, b = count(tokens == "a"), count(tokens == "b")
    assert domain(a + b, length) == tuple(range(2 * length + 1))
    assert domain(a - b - 1, length) == tuple(range(-length - 1, length))
    assert domain(1 - indices, length) == tuple(range(2 - length, 2))


@each("factors", [(2, 3), (2, -2), (-5, 1), (10**9, 1), (1, Fraction(1, 3))])
def test_sums_are_those_of_all_pairs(factors: tuple[int, Fraction | int]) -> None:
    a, b = [factors[0] * i for i in range(5)], [factors[1] * i for i in range(6)]
    x, y = factors[0] * indices, apply("*", apply("min", count(tokens == "a"), 5), factors[1])
    assert domain(x + y, 5) == tuple(sorted({p + q for p in a for q in b}))
    assert domain(x - y, 5) == tuple(sorted({p - q for p in a for q in b}))


def test_a_python_function_that_fails_is_named_also_where_others_read_its_values() -> None:
    """The search for ambiguous aggregates runs the parts that have no problem, and no others."""
    digit = apply(lambda token: int(token), tokens)
    after = apply(lambda value, token: (value, token) == (1, "1"), digit, tokens)
    other = aggregate(select(indices, indices - 1), apply(lambda token: token == "1", tokens), default=False)
    with pytest.raises(SpecError, match=r"fails on '\?'"):
        Program(after & other, ("1", "?"), 5)
