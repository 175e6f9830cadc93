"""Position codes: the gap that each promises is the smallest lead that brute force finds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cases import each
from vitrify.kit.positions import ChosenPositions, CodeName, PositionCode, position_code

CODES: tuple[CodeName, ...] = ("dyadic", "quadratic", "sqrt")
LENGTHS = (1, 2, 3, 4, 5, 8, 9, 17, 64, 100, 200)


def leads(code: PositionCode, length: int, offset: int) -> NDArray[np.float64]:
    """For every query t, the lead of its right key (column 0, BOS, when t - offset < 1) over other causal ones."""
    features = code.table()
    match = code.match(offset)
    matched = (features @ match.query + match.bias) @ (features @ match.key).T
    scores = np.column_stack([features @ match.sink + match.level, matched])
    found = []
    for t in range(1, length + 1):
        row = scores[t - 1, : t + 1]
        right = max(t - offset, 0)
        found.append(row[right] - np.delete(row, right).max())
    return np.array(found)


def offsets_of(length: int) -> list[int]:
    return sorted({h for h in (1, 2, 3, length // 2, length - 1, length) if 1 <= h <= length})


@each("name", CODES)
@each("length", LENGTHS)
def test_the_gap_is_true_and_tight(name: CodeName, length: int) -> None:
    offsets = offsets_of(length)
    code = position_code(name, length, offsets)
    assert code.table().shape == (length, code.kind().size)
    for offset in offsets:
        assert leads(code, length, offset).min() == pytest.approx(code.match(offset).gap, rel=1e-6, abs=1e-13)


@each("name", CODES)
@each("length", [1, 2, 5, 17, 64])
def test_the_bound_holds_and_features_stay_in_range(name: CodeName, length: int) -> None:
    offsets = offsets_of(length)
    code = position_code(name, length, offsets)
    features, kind = code.table(), code.kind()
    assert features.min() >= kind.low
    assert features.max() <= kind.high
    for offset in offsets:
        match = code.match(offset)
        q = np.abs(features @ match.query + match.bias)
        k = np.abs(features @ match.key)
        products = np.tril(q @ k.T)  # causal keys only
        assert products.max() <= match.bound + 1e-9
        assert np.abs(features @ match.sink + match.level).max() <= match.bound + 1e-9


@pytest.mark.parametrize(("name", "gap"), [("dyadic", 1.0), ("quadratic", 0.5)])
def test_two_codes_have_gaps_that_do_not_shrink(name: CodeName, gap: float) -> None:
    assert all(position_code(name, length, [1]).match(1).gap == gap for length in LENGTHS)


def test_the_sqrt_gap_shrinks_like_the_cube() -> None:
    for length, slack in ((100, 0.02), (1000, 0.002), (10**4, 2e-4), (10**6, 1e-5)):
        assert position_code("sqrt", length, [1]).match(1).gap * 16 * length**3 == pytest.approx(1.0, rel=slack)


def test_dyadic_sizes() -> None:
    for length, reach, levels in (
        (1, 0, 1),
        (2, 1, 1),
        (3, 1, 2),
        (4, 3, 2),
        (4, 4, 3),
        (5, 1, 3),
        (8, 7, 3),
        (9, 1, 4),
    ):
        assert position_code("dyadic", length, [reach]).kind().size == 2 * levels - 1


def test_dyadic_features_are_exact_at_quarter_turns() -> None:
    features = position_code("dyadic", 8, [1]).table()
    assert np.array_equal(features[:, 0], [-1, 1] * 4)
    assert np.array_equal(features[:, 1], [0, -1, 0, 1] * 2)  # cos of a quarter turn per step
    assert np.array_equal(features[:, 2], [1, 0, -1, 0] * 2)  # sin


def test_sqrt_stores_the_code_of_every_offset_once() -> None:
    code = position_code("sqrt", 5, [2, 1, 2])
    assert code.kind().size == 6
    assert np.allclose(code.table()[:-1, 2:4], code.table()[1:, :2])  # the code of t+1
    assert np.allclose(code.table()[:-2, 4:6], code.table()[2:, :2])  # the code of t+2


def test_chosen_places_look_back_and_all_others_read_bos() -> None:
    length, offset, at = 7, 2, (3, 6, 7)
    code = ChosenPositions(length, at)
    features = np.eye(length + 1)  # of BOS and of the positions 1 to 7
    match = code.match(offset)
    key = features @ match.key
    for t in range(1, length + 1):
        scores = (features[t] @ match.query + match.bias) @ key.T
        scores[0] = features[t] @ match.sink + match.level
        right = t - offset if t in at else 0
        others = np.delete(scores[: t + 1], right)
        assert scores[right] - others.max() == pytest.approx(match.gap)
        assert np.abs(scores).max() <= match.bound
