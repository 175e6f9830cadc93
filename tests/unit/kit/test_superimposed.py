"""Superimposed codes: fields, agreements against all products, every set, widths against trivial codes and the law."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from cases import each
from vitrify.kit.set_codes import DIMENSIONS_PER_Q_LN_N, min_gap_of_moments, width_of
from vitrify.kit.superimposed import CodeSize, _products, code_size, confused, max_agreement, superimposed_keys


def agreement(keys: np.ndarray) -> int:
    gram = keys @ keys.T
    np.fill_diagonal(gram, 0)
    return int(gram.max(initial=0))


@each("order", [2, 3, 4, 5, 7, 8, 11, 16, 32])
def test_fields_have_inverses_and_the_laws_of_multiplication(order: int) -> None:
    times = _products(order)
    one = np.arange(order)
    assert (times == times.T).all()
    assert (times[1] == one).all()
    assert not times[0].any()
    assert (np.sort(times[1:], axis=1) == one).all()  # every number but 0 divides every other
    assert (times[times[:, :, None], one] == times[one[:, None, None], times[None]]).all()
    if order & order - 1 == 0:
        assert (times[:, one[:, None] ^ one] == times[:, :, None] ^ times[:, None]).all()


@each(("length", "q"), [(1, 1), (5, 1), (10, 1), (49, 2), (64, 4), (200, 3), (256, 8), (1000, 2), (1024, 8), (4096, 4)])
def test_two_keys_share_less_than_one_block_for_each_digit(length: int, q: int) -> None:
    size = code_size(length, q)
    keys = superimposed_keys(length, size)
    assert keys.shape == (length, size.width)
    assert (keys.reshape(length, size.points, size.order).sum(axis=2) == 1).all()
    assert max_agreement(keys) == agreement(keys) <= size.digits - 1
    assert size.points > q * (size.digits - 1)
    other, members = confused(keys, q) if length > q else (0, [])
    if length > q:
        assert other not in members
        assert len({*members}) == q
        assert keys[other] @ np.minimum(1, keys[members].sum(axis=0)) == q * agreement(keys) == size.points - 1


def test_every_set_of_a_small_code() -> None:
    for length, q in ((20, 2), (14, 3)):
        size = CodeSize(2 * q + 1, 8, 3) if q == 3 else CodeSize(5, 4, 3)
        keys = superimposed_keys(length, size)
        for some in combinations(range(length), q):
            scores = keys @ np.minimum(1, keys[list(some)].sum(axis=0))
            assert (np.flatnonzero(scores == size.points) == some).all()
            assert (np.delete(scores, some) <= q * (size.digits - 1)).all()


def test_one_block_less_and_a_sum_without_a_clip_are_wrong() -> None:
    keys = superimposed_keys(4096, code_size(4096, 4))
    fewer = keys[:, :-16]
    other, members = confused(fewer, 4)
    assert fewer[other] @ np.minimum(1, fewer[members].sum(axis=0)) == fewer[0].sum()
    some = [other, *members[:3]]
    assert np.ptp(keys[some] @ keys[some].sum(axis=0)) >= 4  # the members of a set would score differently


@each(("q", "widest"), [(2, 77), (4, 153), (8, 289)])
def test_no_trivial_code_is_narrower_at_4096_positions(q: int, widest: int) -> None:
    m = code_size(4096, q).width
    assert m <= widest
    for sets in (4096, comb(4096, q)):  # one-hot where sets are many, a dimension for each where they are few
        assert m < width_of("trivial", 4096, q, sets) == 4096
    assert min_gap_of_moments(4096, q) < 1e-10  # 2q dimensions, but no gap that float64 resolves after the exponential
    assert m < DIMENSIONS_PER_Q_LN_N["signs"] * q * np.log(4096)


@each(("length", "widths"), [(256, (35, 72, 144)), (1024, (49, 99, 272)), (65536, (99, 208, 697))])
def test_widths_over_a_sweep(length: int, widths: tuple[int, ...]) -> None:
    """At most those of the least prime (Kautz and Singleton): 35, 85, 153; 49, 99, 289; 99, 221, 697."""
    assert tuple(code_size(length, q).width for q in (2, 4, 8)) == widths


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 4, 8])
def test_the_code_of_65536_positions(q: int) -> None:
    size = code_size(65_536, q)
    assert max_agreement(superimposed_keys(65_536, size)) == size.digits - 1


def test_what_is_no_code_has_no_agreement() -> None:
    keys = superimposed_keys(30, code_size(30, 2))
    for broken in (2 * keys, keys[:, ::-1] + keys, np.vstack([keys, 0 * keys[:1]]), np.zeros((2, 2))):
        assert max_agreement(broken) is None
    assert max_agreement(np.array([[1.0, 0.0], [1.0, 0.0]])) == 1
