"""Codes of sets: products without rounding against fractions, and what each code promises about sets."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import ceil, exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cases import each
from vitrify.errors import BuildRefused
from vitrify.kit.set_codes import (
    MAX_OFF_SCORE,
    CodeOfSets,
    ExactScores,
    bits_of,
    exact_scores,
    min_gap_of_moments,
    products,
    set_code,
    to_integers,
    width_of,
)

EPS = 0.05
CODES: tuple[CodeOfSets, ...] = ("signs", "units", "superimposed", "moments", "trivial")
ACCURACY = EPS / (8 * 20)


def sets_of(length: int, size: int, count: int, seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return np.array([np.sort(rng.choice(length, size, replace=False)) for _ in range(count)])


def all_sets(length: int, size: int) -> NDArray[np.int64]:
    return np.array([*combinations(range(length), size)])


def slow_products(left: NDArray[np.float64], right: NDArray[np.float64]) -> list[list[Fraction]]:
    return [
        [sum((Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True)), Fraction(0)) for y in right.tolist()]
        for x in left.tolist()
    ]


numbers = st.one_of(
    st.floats(-4, 4), st.integers(-1000, 1000).map(float), st.integers(-4096, 4096).map(lambda n: n / 2**20)
)
rows = st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=4).map(lambda r: np.array(r))


@given(rows, rows)
def test_products_are_exact(left: NDArray[np.float64], right: NDArray[np.float64]) -> None:
    found, bits = products(left, right)
    assert [[Fraction(int(n), 2**bits) for n in row] for row in found] == slow_products(left, right)


@each("size", [2**20, 2**27, 2**29, 2**33, 2**52])
def test_products_of_numbers_of_every_length(size: int) -> None:
    rng = np.random.default_rng(0)
    left, right = (2 * rng.integers(size // 2, size, size=(3, 3)).astype(np.float64) + 1 for _ in range(2))
    found, bits = products(left, right)
    assert [[Fraction(int(n), 2**bits) for n in row] for row in found] == slow_products(left, right)


@given(rows)
def test_whole_numbers(array: NDArray[np.float64]) -> None:
    found, bits = to_integers(array)
    assert [Fraction(int(n), 2**bits) for n in found.ravel()] == [Fraction(x) for x in array.ravel().tolist()]
    assert bits == 0 or any(int(n) % 2 for n in found.ravel())  # no fewer bits would do


@each("code", CODES)
def test_inspection_is_what_fractions_say(code: CodeOfSets) -> None:
    sets = sets_of(20, 3, 5, seed=1)
    found = set_code(code, 20, sets, accuracy=ACCURACY)
    scores = slow_products(found.queries, found.keys)
    on = [row[j] for row, members in zip(scores, sets.tolist(), strict=True) for j in members]
    off = [row[j] for row, members in zip(scores, sets.tolist(), strict=True) for j in range(20) if j not in members]
    seen = found.exact_scores
    assert (seen.low, seen.high, seen.off) == (min(on), max(on), max([*off, Fraction(0)]))
    assert (seen.size, seen.others, seen.dimensions) == (3, 18, width_of(code, 20, 3, 5))
    assert found.keys.shape == (20, width_of(code, 20, 3, 5))


def test_an_inspection_counts_the_key_of_bos() -> None:
    seen = exact_scores(np.array([[1.0], [-3.0]]), np.array([[1.0]]), np.array([[0]]))
    assert (float(seen.low), float(seen.off), seen.others) == (1.0, 0.0, 2)


@each("worst", range(5))
def test_no_position_is_left_out(worst: int) -> None:
    for member in {*range(5)} - {worst}:
        scores = np.where(np.arange(5) == worst, 0.75, -np.arange(5.0))
        scores[member] = 1.0
        seen = exact_scores(np.eye(5), scores[None], np.array([[member]]))
        assert (float(seen.low), float(seen.off)) == (1.0, 0.75)


@each("code", CODES)
def test_the_error_bounds_every_softmax(code: CodeOfSets) -> None:
    sets = sets_of(24, 3, 40, seed=2)
    found = set_code(code, 24, sets, accuracy=ACCURACY)
    seen = found.exact_scores
    for beta in (4.0, 20.0, 1e5):
        scores = beta * np.column_stack([found.queries @ found.keys.T, np.zeros(len(sets))])
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        ideal = np.zeros_like(shares)
        np.put_along_axis(ideal, sets, 1 / 3, axis=1)
        assert np.abs(shares - ideal).sum(axis=1).max() <= seen.error(beta) + 1e-9


def test_the_error_is_the_formula() -> None:
    seen = ExactScores(Fraction(1), Fraction(11, 10), MAX_OFF_SCORE, size=4, others=9, dimensions=3, bound=2.0)
    assert seen.error(2.0) == pytest.approx(exp(0.2) - 1 + 2 * 9 / 4 * exp(-1.0))
    assert seen.error(2.0) > exp(0.2) - 1 + 2 * 9 / 4 * exp(-1.0) - 1e-15


@each("q", [2, 4, 8])
@each("seed", range(4))
def test_signs_of_full_width_have_certificates_and_narrow_ones_have_none(q: int, seed: int) -> None:
    sets = sets_of(256, q, 256, seed=100 + seed)
    assert width_of("signs", 256, q, 256) == ceil(19 * q * log(256))
    wide = set_code("signs", 256, sets, accuracy=ACCURACY, seed=seed).exact_scores
    assert wide.off <= MAX_OFF_SCORE
    assert max(abs(wide.low - 1), abs(wide.high - 1)) <= Fraction(ACCURACY)
    assert wide.error(20.0) <= EPS
    narrow = set_code("signs", 256, sets, accuracy=ACCURACY, width=ceil(3.6 * q * log(256)), seed=seed).exact_scores
    assert narrow.off > MAX_OFF_SCORE


@pytest.mark.parametrize("q", [2, 4, 8])
def test_linear_programs_need_a_sixth_of_the_width(q: int) -> None:
    sets = sets_of(256, q, 6, seed=q)
    seen = set_code("units", 256, sets, accuracy=ACCURACY).exact_scores
    assert seen.dimensions == ceil(3 * q * log(256)) < width_of("signs", 256, q, 256) / 6
    assert seen.off <= MAX_OFF_SCORE
    assert max(abs(seen.low - 1), abs(seen.high - 1)) <= Fraction(ACCURACY)
    assert seen.error(20.0) <= EPS


def test_a_linear_program_is_better_than_least_squares_with_the_same_keys() -> None:
    sets = sets_of(64, 3, 8, seed=0)
    found = set_code("units", 64, sets, accuracy=1e-6, width=24)
    chosen = found.keys[sets]
    squares = np.einsum(
        "smd,sm->sd", chosen, np.linalg.solve(chosen @ chosen.transpose(0, 2, 1), np.ones((8, 3, 1)))[..., 0]
    )
    assert found.exact_scores.off < exact_scores(found.keys, squares, sets).off


@each(("length", "q"), [(49, 2), (60, 2), (25, 3), (16, 1), (12, 4)])
def test_superimposed_and_trivial_codes_hold_for_all_sets(length: int, q: int) -> None:
    sets = all_sets(length, q)
    for code in ("superimposed", "trivial"):
        seen = set_code(code, length, sets, accuracy=ACCURACY).exact_scores
        assert seen.spread == 0
        assert seen.gap >= 1


@each(("length", "q"), [(8, 1), (12, 2), (12, 3), (16, 4)])
def test_moments_hold_for_all_sets(length: int, q: int) -> None:
    found = set_code("moments", length, all_sets(length, q), accuracy=ACCURACY)
    seen = found.exact_scores
    least = min_gap_of_moments(length, q)
    assert found.keys.shape[1] == 2 * q
    assert max(abs(seen.low - 1), abs(seen.high - 1)) < 1e-12
    assert 0 < least <= seen.gap
    assert float(seen.gap) < 40 * least  # a bound that is not idle


def test_moments_are_products_of_cosines() -> None:
    members, angles = [2, 5, 6], 2 * np.pi * np.arange(16) / 16
    found = set_code("moments", 16, np.array([members]), accuracy=ACCURACY)

    def product(theta: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.prod([1 - np.cos(theta - angles[j]) for j in members], axis=0))

    mean = product(2 * np.pi * np.arange(1000) / 1000).mean()
    assert np.allclose(found.queries @ found.keys.T, 1 - product(angles) / mean)


@pytest.mark.parametrize("code", ["signs", "units"])
def test_queries_have_the_stated_bits(code: CodeOfSets) -> None:
    sets = sets_of(30, 3, 5, seed=3)
    for accuracy in (1e-2, 1e-4):
        found = set_code(code, 30, sets, accuracy=accuracy)
        bits = bits_of(found.keys, accuracy)
        assert to_integers(found.queries)[1] <= bits
        assert np.abs(found.keys).sum(axis=1).max() * 2.0 ** -(bits + 1) <= accuracy
        assert max(abs(found.exact_scores.low - 1), abs(found.exact_scores.high - 1)) <= Fraction(accuracy) + Fraction(
            1, 10**9
        )


def test_draws_differ_and_come_again() -> None:
    sets = sets_of(30, 2, 3, seed=0)
    one, two, three = (set_code("signs", 30, sets, accuracy=1e-3, seed=seed).keys for seed in (0, 0, 1))
    assert (one == two).all()
    assert (one != three).any()


def test_keys_that_can_not_be_told_apart_have_no_queries() -> None:
    seen = set_code("signs", 40, sets_of(40, 3, 50, seed=0), accuracy=1e-3, width=2).exact_scores
    assert seen.gap <= 0


def test_unknown_codes_are_refused() -> None:
    with pytest.raises(
        BuildRefused, match="the codes of sets are signs, units, superimposed, moments, trivial, not 'x'"
    ):
        set_code("x", 4, np.array([[0]]), accuracy=0.1)  # type: ignore[arg-type]
