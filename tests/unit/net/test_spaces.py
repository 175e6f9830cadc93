"""Kinds of spaces: what they promise about sizes, codes, margins and distances, for every kind."""

from __future__ import annotations

import json
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from cases import each
from vitrify.errors import FolderError
from vitrify.net.spaces import (
    KINDS,
    Bits,
    Categorical,
    Circle,
    Flag,
    Integers,
    Kind,
    MultiHot,
    OneHot,
    Reals,
    decode,
    kind_from_json,
    kind_to_json,
)

Floats = NDArray[np.float64]


def names(count: int) -> tuple[str, ...]:
    return tuple(f"v{index}" for index in range(count))


CATEGORICAL: list[Categorical] = [
    kind(names(count), void) for kind in (OneHot, Bits) for count in (1, 2, 3, 4, 5, 8, 9) for void in (False, True)
]
NUMBERS: list[Kind] = [
    Circle(names(1)),
    Circle(names(5)),
    MultiHot(names(1)),
    MultiHot(names(3)),
    Flag(),
    Integers(("n", "m"), -2, 3),
    Integers(("n",), 0, 5),
    Reals(("x", "y"), -1.5, 2.0),
]
EVERY: list[Kind] = [*CATEGORICAL, *NUMBERS]


def legal(kind: Kind) -> Floats:
    """Every legal vector of a kind, or some of them if it has infinitely many."""
    if isinstance(kind, OneHot | Bits):
        return np.concatenate([kind.codes, np.zeros((int(kind.void), kind.size))])
    if isinstance(kind, Circle):
        return np.concatenate([kind.codes, np.zeros((1, 2))])
    steps = 1 if isinstance(kind, Flag | MultiHot | Integers) else 8
    values = np.linspace(kind.low, kind.high, round((kind.high - kind.low) * steps) + 1)
    return np.array(list(product(values, repeat=kind.size)))


def test_every_kind_is_here() -> None:
    assert {type(kind) for kind in EVERY} == set(KINDS.values())
    assert all(KINDS[kind.tag] is type(kind) for kind in EVERY)


@each("kind", EVERY, ids=repr)
def test_every_dimension_has_its_name_and_bounds(kind: Kind) -> None:
    vectors = legal(kind)
    assert len(kind.names) == len(set(kind.names)) == kind.size == vectors.shape[1]
    assert (vectors >= kind.low).all()
    assert (vectors <= kind.high).all()


@each(
    ("kind", "wanted"),
    [
        (Flag(), ("",)),
        (OneHot(("a", "b")), ("=a", "=b")),
        (MultiHot(("a", "b")), ("∋a", "∋b")),
        (Bits(("a", "b", "c")), (".bit0", ".bit1")),
        (Integers(("n", "m"), 0, 1), ("[n]", "[m]")),
        (Reals(("n",), 0, 1), ("[n]",)),
    ],
)
def test_names(kind: Kind, wanted: tuple[str, ...]) -> None:
    assert kind.names == wanted


@each(("count", "size"), [(1, 2), (2, 2), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_bits_take_the_logarithm(count: int, size: int) -> None:
    assert Bits(names(count)).size == size


@each("kind", CATEGORICAL, ids=repr)
def test_norm_and_gap_hold_for_all_pairs(kind: Categorical) -> None:
    products = kind.codes @ kind.codes.T
    assert (np.diag(products) == kind.norm).all()
    others = [products[v, w] for v, w in combinations(range(len(kind.values)), 2)]
    assert all(other <= kind.norm - kind.gap for other in others)
    assert kind.norm >= kind.gap  # no value at all, the zero vector, is a gap away too
    assert not others or max(others) == kind.norm - kind.gap  # the gap is not understated


@each("kind", EVERY, ids=repr)
def test_legal_vectors_do_not_deviate(kind: Kind) -> None:
    assert not kind.deviation(legal(kind)).any()
    assert kind.deviation(legal(kind)).shape == (len(legal(kind)),)
    assert kind.deviation(legal(kind)[None, None]).shape == (1, 1, len(legal(kind)))


@each("kind", EVERY, ids=repr)
def test_deviation_grows_outwards(kind: Kind) -> None:
    for vector in legal(kind)[[0, -1]]:
        for place in range(kind.size):
            if isinstance(kind, Reals) and vector[place] < kind.high:
                continue  # still legal a little above
            steps = np.repeat(vector[None], 4, axis=0)
            steps[:, place] += [0.1, 0.2, 0.3, 0.4]
            np.testing.assert_allclose(kind.deviation(steps), [0.1, 0.2, 0.3, 0.4])


@each(
    ("kind", "vector", "wanted"),
    [
        (Flag(), [0.6], 0.4),
        (Flag(), [-2.0], 2.0),
        (OneHot(("a", "b")), [0.75, 0.5], 0.5),
        (OneHot(("a", "b")), [0.0, 0.0], 1.0),
        (OneHot(("a", "b"), void=True), [0.25, 0.125], 0.25),
        (MultiHot(("a", "b")), [0.0, 0.0], 0.0),
        (MultiHot(("a", "b")), [0.75, 1.5], 0.5),
        (Bits(("a", "b", "c")), [0.0, 1.0], 1.0),
        (Bits(("a", "b", "c")), [-1.25, 1.0], 0.25),
        (Bits(("a", "b", "c"), void=True), [0.25, -0.375], 0.375),
        (Integers(("n", "m"), 0, 3), [1.25, 2.0], 0.25),
        (Integers(("n", "m"), 0, 3), [1.0, 5.25], 2.25),
        (Integers(("n", "m"), 0, 3), [-1.0, 1.0], 1.0),
        (Reals(("x", "y"), -1, 1), [0.3, 1.5], 0.5),
        (Reals(("x", "y"), -1, 1), [-3.0, 1.5], 2.0),
    ],
)
def test_deviation_by_hand(kind: Kind, vector: list[float], wanted: float) -> None:
    assert float(kind.deviation(np.array(vector))) == pytest.approx(wanted, abs=1e-15)


@each("kind", CATEGORICAL, ids=repr)
def test_codes_decode_to_their_values_under_noise(kind: Categorical) -> None:
    noise = np.random.default_rng(0).uniform(-0.4, 0.4, size=kind.codes.shape) / kind.size
    assert [decode(kind, code) for code in kind.codes + noise] == list(kind.values)
    assert decode(kind, np.zeros(kind.size)) is None


@each(
    ("kind", "vector", "wanted"),
    [
        (Flag(), [0.9], 1),
        (MultiHot(("a", "b", "c")), [0.9, 0.1, 1.2], ["a", "c"]),
        (MultiHot(("a",)), [0.0], []),
        (Integers(("n",), 0, 5), [3.2], 3),
        (Integers(("n", "m"), 0, 5), [3.2, 0.0], [3, 0]),
        (Integers(("n", "m"), 0, 5), [np.inf, 1.0], [np.inf, 1]),
        (Reals(("x",), 0, 5), [3.5], [3.5]),
        (Reals(("x", "y"), 0, 5), [3.5, 1.0], [3.5, 1.0]),
    ],
)
def test_numbers_decode_to_numbers(kind: Kind, vector: list[float], wanted: object) -> None:
    assert decode(kind, np.array(vector)) == wanted


@each("kind", EVERY, ids=repr)
def test_json_round_trip(kind: Kind) -> None:
    again = kind_from_json(json.loads(json.dumps(kind_to_json(kind))))
    assert again == kind
    assert hash(again) == hash(kind)
    assert eval(repr(kind)) == kind


@each(
    "data",
    [{}, {"kind": "colour"}, {"kind": "onehot"}, {"kind": "flag", "size": 2}, {"kind": ["flag"]}, "flag", 3, None],
)
def test_an_unknown_kind_is_refused(data: object) -> None:
    with pytest.raises(FolderError, match=r"must be one of flag, onehot, .*, not|is no (onehot|flag): "):
        kind_from_json(data)


@each("count", [1, 2, 3, 4, 5, 8, 32])
def test_a_line_cuts_each_point_of_a_circle_off_from_all_others(count: int) -> None:
    kind = Circle(names(count))
    products = kind.codes @ kind.codes.T
    assert np.abs(np.diag(products) - kind.norm).max() < 1e-12
    others = products[~np.eye(count, dtype=bool)]
    least = min([1.0, *(1 - others).tolist()])
    assert least >= min(kind.gap, kind.norm) - 1e-12
    if count > 1:
        assert (1 - others).min() == pytest.approx(kind.gap) == pytest.approx(1 - np.cos(2 * np.pi / count))
        assert kind.deviation(kind.codes * 0.9) == pytest.approx(0.1 * np.abs(kind.codes).max(axis=1))
    assert [decode(kind, code) for code in kind.codes] == list(kind.values)
    assert decode(kind, np.zeros(2)) is None


@each("tag", ["onehot", "multihot", "bits", "circle"])
def test_a_kind_has_at_least_one_value(tag: str) -> None:
    assert kind_from_json({"kind": tag, "values": ["a"]}).tag == tag
    with pytest.raises(FolderError, match=f"is no {tag}: it has no dimension or value"):
        kind_from_json({"kind": tag, "values": []})
