"""Clauses: sums of conjunctions and of numbers that pass gates, on all inputs and under noise."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tiny_nets import EXACT, Floats, evaluate
from vitrify.kit.gadgets.clauses import Clause, clauses
from vitrify.kit.network import Builder, Space, Units
from vitrify.net.spaces import Bits, Circle, Flag, Integers, Kind, MultiHot, OneHot, Reals
from vitrify.net.weights import Weights

BELOW = 0.999  # noise just below a margin
SET, LETTER, POINT, BIT, NUMBER = (
    MultiHot(("p", "q")),
    OneHot(("a", "b", "c"), void=True),
    Circle(tuple("uvwxyz")),
    Flag(),
    Integers(("n", "m"), 0.0, 3.0),
)
KINDS: tuple[Kind, ...] = (SET, LETTER, POINT, BIT, NUMBER)


def inputs() -> list[Floats]:
    """Every combination of values: sets, a letter or none, a point or none, a flag, two numbers."""
    sets = np.array(list(product((0.0, 1.0), repeat=2)))
    letters = np.vstack([LETTER.codes, np.zeros(3)])
    points = np.vstack([POINT.codes, np.zeros(2)])
    flags = np.array([[0.0], [1.0]])
    numbers = np.array([[0.0, 2.0], [3.0, 1.0]])
    chosen = list(product(sets, letters, points, flags, numbers))
    return [np.array([row[place] for row in chosen]) for place in range(len(KINDS))]


ROWS: list[tuple[list[tuple[int, int]], int, tuple[int, int] | None, float]] = [
    ([(0, 0)], 0, None, 1.0),
    ([(0, 0), (0, 1)], 0, None, 2.0),
    ([(1, 2), (2, 4), (3, 0)], 1, None, 1.0),
    ([(2, 1)], 1, None, 3.0),
    ([(0, 1), (2, 5)], 2, (4, 0), 1.0),
    ([(1, 0)], 2, (4, 1), 2.0),
    ([], 2, (4, 1), 1.0),
]


def holds(given: list[Floats], place: int, value: int) -> Floats:
    kind = KINDS[place]
    if isinstance(kind, OneHot | Circle):
        return np.asarray(np.abs(given[place] - kind.codes[value]).max(axis=1) < 1e-9, dtype=float)
    return given[place][:, value]


def expected(
    given: list[Floats], rows: list[tuple[list[tuple[int, int]], int, tuple[int, int] | None, float]]
) -> Floats:
    out = np.zeros((len(given[0]), 3))
    for asked, target, value, weight in rows:
        share = np.ones(len(out)) if value is None else given[value[0]][:, value[1]]
        for place, wanted in asked:
            share = share * holds(given, place, wanted)
        out[:, target] += weight * share
    return out


def run(
    given: list[Floats], rows: list[tuple[list[tuple[int, int]], int, tuple[int, int] | None, float]], *, snap: bool
) -> tuple[Floats, Weights, Units, tuple[Space, ...]]:
    kept: list[Units] = []
    read: list[tuple[Space, ...]] = []

    def gadget(net: Builder, *spaces: Space) -> Space:
        made = [
            Clause(
                tuple((spaces[place], value) for place, value in asked),
                target,
                None if value is None else (spaces[value[0]], value[1]),
                weight,
            )
            for asked, target, value, weight in rows
        ]
        out = clauses(net, made, Space("out", Reals(tuple("xyz"), 0.0, 99.0)), snap=snap)
        kept.extend(op for op in net._operations if isinstance(op, Units))
        read.append(spaces)
        return out

    found, weights = evaluate(list(zip(KINDS, given, strict=True)), gadget)
    return found, weights, kept[0], read[0]


@pytest.mark.parametrize("snap", [False, True])
def test_clauses_on_every_input(snap: bool) -> None:
    rows = [row for row in ROWS if not (snap and row[2])]
    given = inputs()
    found, weights, op, _ = run(given, rows, snap=snap)
    assert np.abs(found - expected(given, rows)).max() < EXACT
    assert op.count == len(rows) * (2 if snap else 1)
    assert weights.architecture.blocks[0].units == op.count


@pytest.mark.parametrize("seed", range(3))
def test_noise_below_the_margin_vanishes_when_snapped(seed: int) -> None:
    rows = [row for row in ROWS if not row[2]]
    given = inputs()
    _, _, op, spaces = run(given, rows, snap=True)
    rng = np.random.default_rng(seed)
    noisy = [
        x + BELOW * op.margin.get(s, 0.0) * rng.choice([-1.0, 1.0], size=x.shape)
        for s, x in zip(spaces, given, strict=True)
    ]
    found, _, _, _ = run(noisy, rows, snap=True)
    assert np.abs(found - expected(given, rows)).max() < EXACT
    assert all(op.gain[space] == 0 for space in op.reads)


@pytest.mark.parametrize("seed", range(3))
def test_noise_grows_by_no_more_than_the_gain(seed: int) -> None:
    given = inputs()
    _, _, op, spaces = run(given, ROWS, snap=False)
    rng = np.random.default_rng(seed)
    size = [BELOW * min(op.margin.get(s, 0.0), 1.0) for s in spaces]
    noisy = [x + e * rng.choice([-1.0, 1.0], size=x.shape) for e, x in zip(size, given, strict=True)]
    found, _, _, _ = run(noisy, ROWS, snap=False)
    most = sum(op.gain.get(s, 0.0) * e for s, e in zip(spaces, size, strict=True))
    assert np.abs(found - expected(given, ROWS)).max() <= most
    gates = [row for row in ROWS if row[2] and row[0]]
    closed = expected(given, [(asked, 0, None, 1.0) for asked, _, _, _ in gates])[:, 0] == 0
    found, _, _, _ = run(noisy, gates, snap=False)
    assert np.abs(found[closed]).max() == 0  # noise can't open a closed gate


def test_the_gain_is_reached() -> None:
    """Where all rows of a target hold, an error of every coordinate counts once for each time it is asked for."""
    given = inputs()
    _, _, op, spaces = run(given, ROWS, snap=False)
    small = 1e-3
    for place, most in ((0, 1 + 2 * 2 * 2), (4, 1 + 2 + 1)):
        noisy = [x + small * (number == place) for number, x in enumerate(given)]
        found, _, _, _ = run(noisy, ROWS, snap=False)
        assert np.abs(found - expected(given, ROWS)).max() == pytest.approx(small * most)
        assert op.gain[spaces[place]] == most


def test_points_of_a_circle_are_written_whole() -> None:
    kind = OneHot(("a", "b", "c"))
    out = Space("out", Circle(("x", "y", "z")))

    def gadget(net: Builder, letter: Space) -> Space:
        return clauses(net, [Clause(((letter, k),), (k + 1) % 3) for k in range(3)], out, snap=True)

    found, _ = evaluate([(kind, kind.codes)], gadget)
    assert np.abs(found - Circle(("x", "y", "z")).codes[[1, 2, 0]]).max() < EXACT


def test_errors_of_several_points_of_a_circle_add_up() -> None:
    kind, units = OneHot(("a", "b", "c")), list[Units]()
    noisy = kind.codes + np.array([[-1e-3, 1e-3, 0.0]])

    def gadget(net: Builder, letter: Space) -> Space:
        out = clauses(net, [Clause(((letter, k),), k) for k in range(3)], Space("out", Circle(("x", "y", "z"))))
        units.extend(op for op in net._operations if isinstance(op, Units))
        return out

    found, _ = evaluate([(kind, noisy)], gadget)
    (gain,) = units[0].gain.values()
    assert np.abs(found - Circle(("x", "y", "z")).codes).max() <= gain * 1e-3


def test_numbers_are_not_asked_for_and_not_snapped() -> None:
    net = Builder("bad", ("^", "a"), 1)
    number, bits = net.embed("n", NUMBER, np.zeros((2, 2))), net.embed("b", Bits(tuple("abc")), np.ones((2, 2)))
    out = Space("out", NUMBER)
    with pytest.raises(TypeError, match="n holds numbers"):
        clauses(net, [Clause(((number, 0),), 0)], out)
    with pytest.raises(ValueError, match="no exact values to snap to"):
        clauses(net, [Clause(((bits, 0),), 0, (number, 0))], out, snap=True)
