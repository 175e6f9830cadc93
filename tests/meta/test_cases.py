"""The helpers that run many cases in one test lose none of them."""

from __future__ import annotations

import inspect
from itertools import combinations, product

import pytest

from cases import all_pairs, each, each_then_slow, in_turn, rest_slow

SIZES = [(2,), (1, 1), (2, 3), (3, 3, 3), (2, 3, 4, 2), (4, 3, 2, 5, 2), (1, 4, 1, 3)]


@each("sizes", SIZES, ids=str)
def test_every_value_and_every_pair_occurs_in_few_combinations(sizes: tuple[int, ...]) -> None:
    choices = [[f"{'abcde'[at]}{number}" for number in range(size)] for at, size in enumerate(sizes)]
    covering = all_pairs(*choices)
    assert covering == all_pairs(*choices), "the same every time"
    assert set(covering) <= set(product(*choices))
    assert len(set(covering)) == len(covering)
    for at, choice in enumerate(choices):
        assert {case[at] for case in covering} == set(choice)
    for i, j in combinations(range(len(choices)), 2):
        assert {(case[i], case[j]) for case in covering} == set(product(choices[i], choices[j]))
    largest = sorted(sizes, reverse=True)
    assert len(covering) <= largest[0] * (largest[1] if len(sizes) > 1 else 1) * 1.7


def test_all_cases_run_and_all_that_fail_are_listed() -> None:
    seen = []

    @each(("x", "y"), product(range(3), "ab"))
    def check(x: int, y: str) -> None:
        seen.append((x, y))
        assert x < 2, "too large"

    with pytest.raises(AssertionError, match="2 of 6 cases fail") as failed:
        check()
    assert seen == list(product(range(3), "ab"))
    assert str(failed.value).count("AssertionError: too large") == 2
    assert all(label in str(failed.value) for label in ("[x=2, y='a']", "[x=2, y='b']"))
    assert isinstance(failed.value.__cause__, AssertionError)


def test_fixtures_are_passed_on_and_errors_are_failures() -> None:
    @each("x", [1, 0], ids=lambda x: f"<{x}>")
    def check(folder: str, x: int) -> None:
        assert folder == "here"
        assert 1 / x

    assert list(inspect.signature(check).parameters) == ["folder"]
    with pytest.raises(AssertionError, match=r"\[x=<0>\] ZeroDivisionError"):
        check(folder="here")


def test_what_is_not_raised_is_a_failure_too_and_labels_may_be_listed() -> None:
    @each("x", [1, 0], ids=["one", "zero"])
    def check(x: int) -> None:
        with pytest.raises(ZeroDivisionError):
            assert 1 / x

    with pytest.raises(AssertionError, match=r"1 of 2 cases fail.*\n\[one\] Failed: DID NOT RAISE"):
        check()


def test_the_first_values_are_plain_and_the_rest_slow() -> None:
    one, two, three = rest_slow("abc", first=2)
    assert (one, two, three.values) == ("a", "b", ("c",))
    assert [mark.name for mark in three.marks] == ["slow"]


def test_no_case_and_marks_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one case"):
        each("x", [])
    with pytest.raises(TypeError, match="its cases have no marks"):
        each("x", rest_slow("abc", first=2))


def test_in_turn_every_value_is_in_the_first_group_and_every_pair_in_one() -> None:
    groups = in_turn("abcd", [1, 2, 3])
    assert groups[0] == [("a", 1), ("b", 2), ("c", 3), ("d", 1)]
    assert sorted(pair for group in groups for pair in group) == sorted(product("abcd", [1, 2, 3]))


def test_the_first_group_is_run_by_every_make_test_and_the_others_with_the_slow_tests() -> None:
    seen = []

    @each_then_slow("x, y", *in_turn("ab", [1, 2]))
    def check(folder: str, x: str, y: int) -> None:
        seen.append((folder, x, y))
        assert (x, y) != ("b", 1)

    assert list(inspect.signature(check).parameters) == ["folder", "group"]
    first, second = check.pytestmark[0].args[1]
    assert first == 0
    assert (second.values, [mark.name for mark in second.marks]) == ((1,), ["slow"])
    check(folder="here", group=0)
    assert seen == [("here", "a", 1), ("here", "b", 2)]
    with pytest.raises(AssertionError, match=r"1 of 2 cases fail"):
        check(folder="here", group=1)
