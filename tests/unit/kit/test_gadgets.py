"""Every MLP gadget: its values on all inputs, what noise does to them, and how many units it costs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cases import each
from tiny_nets import EXACT, ROUNDING, Floats, evaluate
from vitrify.kit.gadgets.any_of import any_of
from vitrify.kit.gadgets.compose import int_compose
from vitrify.kit.gadgets.extremes import minimum
from vitrify.kit.gadgets.gate import Case, choose, gate
from vitrify.kit.gadgets.steps import cpwl, digits, int_lookup, snap, step, steps
from vitrify.kit.gadgets.table import ANY, table
from vitrify.kit.network import Affine, Builder, Space, Units
from vitrify.net.spaces import Bits, Categorical, Flag, Integers, Kind, MultiHot, OneHot, Reals
from vitrify.net.weights import Weights

BELOW = 0.999  # noise just below a margin


def units(weights: Weights) -> int:
    return sum(block.units for block in weights.architecture.blocks)


def operation(gadget: Callable[[Builder], object]) -> Units:
    """The units that a gadget adds."""
    net = Builder("gadget", ("^", "a"), 1)
    gadget(net)
    (found,) = (op for op in net._operations if isinstance(op, Units))
    return found


def signs(like: NDArray[Any], seed: int) -> Floats:
    """Random noise of the largest size in every coordinate."""
    return np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), size=like.shape)


# --- table -----------------------------------------------------------------------------------------------------------

SPACES: dict[str, tuple[Kind, ...]] = {
    "one-hot": (OneHot(("a", "b", "c")),),
    "bits": (Bits(("a", "b", "c", "d", "e")),),
    "two one-hots": (OneHot(("a", "b")), OneHot(("x", "y", "z"))),
    "mixed": (Bits(("a", "b", "c")), OneHot(("x", "y")), Flag()),
    "one bit": (Bits(("a", "b")),),
}


def codes(kind: Kind) -> Floats:
    """The code of each value; a flag has the values 0 and 1."""
    return np.array([[0.0], [1.0]]) if isinstance(kind, Flag) else kind.codes  # type: ignore[union-attr]


def all_inputs(kinds: tuple[Kind, ...]) -> NDArray[np.int64]:
    return np.array(list(product(*(range(len(codes(kind))) for kind in kinds))))


def patterns_of(kinds: tuple[Kind, ...]) -> NDArray[np.int64]:
    """All patterns, `ANY` included."""
    return np.array(list(product(*([ANY, *range(len(codes(kind)))] for kind in kinds))))


def noisy_table(
    kinds: tuple[Kind, ...], patterns: NDArray[np.int64], outputs: Floats, snapped: bool, noise: float
) -> tuple[Floats, Weights, Units]:
    values = all_inputs(kinds)
    rows = [codes(kind)[values[:, place]] for place, kind in enumerate(kinds)]
    rows = [row + noise * signs(row, seed=place) for place, row in enumerate(rows)]
    writes = Space("out", Reals(tuple("xyz"), -1e4, 1e4))
    kept: list[Units] = []

    def gadget(net: Builder, *spaces: Space) -> Space:
        constant = np.array([1.0, 0.0, -2.0])
        out = table(net, spaces, patterns, writes, outputs, constant=constant, snap=snapped, matches=len(patterns))
        kept.extend(op for op in net._operations if isinstance(op, Units))
        return out

    found, weights = evaluate(list(zip(kinds, rows, strict=True)), gadget)
    return found, weights, kept[0]


def agreeing(kinds: tuple[Kind, ...], patterns: NDArray[np.int64], outputs: Floats) -> Floats:
    """The sum of the rows that agree, by the definition."""
    return np.array(
        [
            np.array([1.0, 0.0, -2.0])
            + sum(
                (
                    row
                    for pattern, row in zip(patterns, outputs, strict=True)
                    if all(p in (ANY, v) for p, v in zip(pattern, values, strict=True))
                ),
                start=np.zeros(3),
            )
            for values in all_inputs(kinds)
        ]
    )


@each("snapped", [False, True])
@each("kinds", SPACES.values(), ids=SPACES)
def test_table_adds_up_the_rows_that_agree(kinds: tuple[Kind, ...], snapped: bool) -> None:
    patterns = patterns_of(kinds)
    outputs = np.random.default_rng(0).integers(-9, 10, (len(patterns), 3)).astype(float)
    expected = agreeing(kinds, patterns, outputs)
    found, weights, op = noisy_table(kinds, patterns, outputs, snapped, 0.0)
    assert np.abs(found - expected).max() < EXACT
    assert units(weights) == op.count == len(patterns) * (2 if snapped else 1)
    margin = min(op.margin.values())
    assert len(set(op.margin.values())) == len(set(op.gain.values())) == 1
    for seed_noise in (BELOW * margin, 0.3 * margin):
        found, _, _ = noisy_table(kinds, patterns, outputs, snapped, seed_noise)
        off = np.abs(found - expected).max()
        if snapped:
            assert set(op.gain.values()) == {0.0}
            assert off < 1e-9
        else:
            assert 0 < off <= sum(op.gain.values()) * seed_noise


@pytest.mark.parametrize("kind", [OneHot(("a", "b")), Bits(("a", "b", "c", "d")), Flag()])
def test_the_margin_of_a_snapped_table_is_no_larger_than_it_may_be(kind: Kind) -> None:
    """Noise that pulls every coordinate towards another value: harmless below the margin, harmful soon after."""
    code = codes(kind)
    target, other = code[-1], code[0]
    pattern = np.array([[len(code) - 1]])

    def at(noise: float) -> float:
        row = target + noise * np.sign(other - target)
        found, _ = evaluate(
            [(kind, row[None])], lambda net, x: table(net, [x], pattern, Space("y", Flag()), np.ones((1, 1)), snap=True)
        )
        return float(found[0, 0])

    op = operation(
        lambda net: table(
            net,
            [net.embed("x", kind, np.zeros((2, kind.size)))],
            pattern,
            Space("y", Flag()),
            np.ones((1, 1)),
            snap=True,
        )
    )
    (margin,) = op.margin.values()
    assert at(BELOW * margin) == pytest.approx(1.0, abs=EXACT)
    assert at(1.1 * margin) < 0.99


@pytest.mark.parametrize("kind", [OneHot(("a", "b")), Bits(("a", "b", "c", "d"))])
def test_noise_below_the_margin_wakes_no_row_that_disagrees(kind: Categorical) -> None:
    """Without a snap, too: the wrong value, pulled towards the right one in every coordinate."""
    pattern, wrong, right = np.array([[1]]), kind.codes[0], kind.codes[1]

    def gadget(net: Builder, x: Space) -> Space:
        return table(net, [x], pattern, Space("y", Flag()), np.ones((1, 1)))

    op = operation(lambda net: gadget(net, net.embed("x", kind, np.zeros((2, kind.size)))))
    (margin,) = op.margin.values()
    rows = np.array([wrong + noise * margin * np.sign(right) for noise in (BELOW, 1.1 * 2)])
    quiet, awake = evaluate([(kind, rows)], gadget)[0][:, 0]
    assert quiet == 0
    assert awake > 0


def test_void_spaces_agree_with_nothing() -> None:
    writes = Space("y", Reals(("y",), 0.0, 9.0))
    for kind in (OneHot(("a", "b")), Bits(("a", "b")), Bits(("a", "b", "c"))):
        patterns = np.arange(len(kind.values))[:, None]
        outputs = np.ones((len(patterns), 1))
        for snapped in (False, True):
            if kind.size == 1 and snapped and isinstance(kind, Bits):
                continue  # a void bit is half way between the two values: a snapped table can't tell
            void = np.zeros((1, kind.size))
            found, _ = evaluate(
                [(kind, void)], lambda net, x, s=snapped, p=patterns, o=outputs: table(net, [x], p, writes, o, snap=s)
            )
            assert found[0, 0] == 0.0


@pytest.mark.parametrize("snapped", [False, True])
def test_a_table_may_write_a_second_space_with_the_same_units(snapped: bool) -> None:
    kind, patterns = OneHot(("a", "b", "c")), np.array([[0], [1], [ANY]])
    first, second = np.array([[1.0], [2.0], [4.0]]), np.array([[0.0, 5.0], [-7.0, 0.0], [0.0, 0.0]])

    def gadget(net: Builder, x: Space) -> list[Space]:
        one, two = Space("one", Reals(("x",), 0.0, 9.0)), Space("two", Reals(("y", "z"), -9.0, 9.0))
        table(net, [x], patterns, one, first, also=(two, second), snap=snapped)
        return [one, two]

    found, weights = evaluate([(kind, np.eye(3))], gadget)
    assert found.tolist() == [[5.0, 0.0, 5.0], [6.0, -7.0, 0.0], [4.0, 0.0, 0.0]]
    assert units(weights) == (6 if snapped else 3)
    made = operation(lambda net: gadget(net, net.embed("x", kind, np.zeros((2, 3)))))
    assert set(made.gain.values()) == {0.0 if snapped else 7.0 * 2.0}  # the largest output of either space


def test_table_reads_categories_only() -> None:
    net = Builder("table", ("^", "a"), 1)
    number = net.embed("number", Integers(("n",), 0.0, 1.0), np.zeros((2, 1)))
    with pytest.raises(TypeError, match="number is not categorical"):
        table(net, [number], np.array([[0]]), Space("y", Flag()), np.ones((1, 1)))


def test_rows_keep_their_names() -> None:
    def gadget(net: Builder, snapped: bool) -> Space:
        x = net.embed("x", OneHot(("a", "b")), np.zeros((2, 2)))
        outputs = np.ones((2, 1))
        return table(net, [x], np.array([[0], [1]]), Space("y", Flag()), outputs, snap=snapped, rows=("a", "b"))

    assert operation(lambda net: gadget(net, False)).rows == ("a", "b")
    assert operation(lambda net: gadget(net, True)).rows == ("a", "b", "a (cut)", "b (cut)")


# --- functions of one number -----------------------------------------------------------------------------------------


def test_steps_through_uneven_points() -> None:
    points = np.array([-1.0, 0.0, 0.5, 3.0, 4.0])
    values = np.array([[1.0, 0.0], [1.0, 0.0], [-2.0, 1.0], [5.0, 1.0], [5.0, 1.0]])
    out = Space("y", Reals(("u", "v"), -9.0, 9.0))
    kind = Reals(("other", "x"), -1.0, 4.0)

    def gadget(net: Builder, x: Space) -> Space:
        return steps(net, x, points, [(out, values)], name="steps", coordinate=1)[0]

    op = operation(lambda net: gadget(net, net.embed("x", kind, np.zeros((2, 2)))))
    assert op.count == 4  # two jumps: 0 → 0.5 and 0.5 → 3
    assert list(op.margin.values()) == [0.125]
    assert list(op.gain.values()) == [0.0]
    for noise in (0.0, BELOW * 0.125, -BELOW * 0.125):
        rows = np.column_stack([np.linspace(-1, 4, 5), points + noise])
        found, weights = evaluate([(kind, rows)], gadget)
        assert np.abs(found - values).max() < EXACT
        assert units(weights) == 4


@pytest.mark.parametrize(
    ("kind", "margin"), [(OneHot(("a", "b", "c")), 0.25), (Flag(), 0.25), (Bits(("a", "b", "c")), 0.5)]
)
def test_snap_removes_noise(kind: Kind, margin: float) -> None:
    ideal = codes(kind)
    for seed, noise in enumerate((0.0, BELOW * margin, BELOW * margin)):
        found, weights = evaluate([(kind, ideal + noise * signs(ideal, seed=seed))], snap)
        assert np.abs(found - ideal).max() < EXACT
        assert units(weights) == 2 * kind.size
    if kind.low == 0:
        assert np.abs(evaluate([(kind, ideal * 0 + BELOW * margin)], snap)[0]).max() < EXACT  # void stays void
    far, _ = evaluate([(kind, ideal + 1.2 * margin * np.sign(0.5 * (kind.low + kind.high) - ideal))], snap)
    assert np.abs(far - ideal).max() > 0.05
    op = operation(lambda net: snap(net, net.embed("x", kind, np.zeros((2, kind.size)))))
    assert list(op.margin.values()) == [margin]


def test_numbers_have_nothing_to_snap_to() -> None:
    net = Builder("snap", ("^", "a"), 1)
    with pytest.raises(TypeError, match="number has no exact codes to snap to"):
        snap(net, net.embed("number", Integers(("n",), 0.0, 1.0), np.zeros((2, 1))))


def test_some_is_the_bit_of_a_sum() -> None:
    """Three counts of two spaces in two groups: the second and third, and all of them."""
    pairs = [(a, b, c) for a in range(3) for b in range(3) for c in range(2)]
    first, second = (
        np.array([[a, b] for a, b, _ in pairs], dtype=float),
        np.array([[c] for *_, c in pairs], dtype=float),
    )
    kinds = Integers(("a", "b"), 0.0, 2.0), Integers(("c",), 0.0, 1.0)
    wanted = np.array([[min(1, b + c), min(1, a + b + c)] for a, b, c in pairs], dtype=float)

    def gadget(net: Builder, x: Space, y: Space) -> Space:
        groups = {x: np.array([[0.0, 1.0], [1.0, 1.0]]), y: np.array([[1.0, 1.0]])}
        return any_of(net, groups, Space("bits", MultiHot(("two", "three"))), rows=("two", "three"))

    op = operation(lambda net: gadget(net, *(net.embed(k.labels[0], k, np.zeros((2, k.size))) for k in kinds)))
    margin = 0.25 / 3
    assert set(op.margin.values()) == {margin}
    assert op.count == 4
    assert op.rows == ("two", "two (cut)", "three", "three (cut)")
    for noise in (0.0, -BELOW * margin, BELOW * margin):
        found, _ = evaluate([(kinds[0], first + noise), (kinds[1], second + noise)], gadget)
        assert np.abs(found - wanted).max() < EXACT
    found, _ = evaluate([(kinds[0], first + 1.2 * margin), (kinds[1], second + 1.2 * margin)], gadget)
    assert np.abs(found - wanted).max() > 0.05


def test_step_is_exact_outside_its_grid() -> None:
    x = np.array([-3.0, 0.4, 0.5, 0.5625, 0.875, 1.0, 1.0625, 7.0])[:, None]
    found, weights = evaluate([(Reals(("x",), -3.0, 7.0), x)], lambda net, s: step(net, s, 1.0, 0.5, name="big"))
    assert found[:, 0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert units(weights) == 2


@each("function", [lambda n: n % 3, lambda n: float(n > 2), lambda n: -n * n, lambda _: 7])
@each("span", [(0, 6), (-4, 3), (2, 2)])
def test_int_lookup_of_any_function(function: Callable[[int], float], span: tuple[int, int]) -> None:
    numbers = np.arange(span[0], span[1] + 1)
    kind = Integers(("m", "n"), float(span[0]), float(span[1]))
    out = Space("y", Reals(("f", "-f"), -99.0, 99.0))

    def gadget(net: Builder, x: Space) -> Space:
        return int_lookup(net, x, lambda n: np.array([function(n), -function(n)], dtype=float), out, coordinate=1)

    expected = np.array([[function(n), -function(n)] for n in numbers.tolist()], dtype=float)
    changes = int(np.any(np.diff(expected, axis=0), axis=1).sum())
    for noise in (0.0, BELOW / 4, -BELOW / 4):
        found, weights = evaluate([(kind, np.column_stack([numbers[::-1], numbers + noise]))], gadget)
        assert np.abs(found - expected).max() < EXACT
        assert units(weights) == max(2 * changes, 1)  # a constant keeps one idle unit, so that its block has an MLP


@each("kind", [OneHot(("a", "b")), Bits(("a", "b", "c"))])
@each("places", [1, 2, 3, 4])
def test_digits_come_apart(kind: Categorical, places: int) -> None:
    choices = np.array(list(product((kind.low, kind.high), repeat=places)))  # the same digits in every coordinate …
    choices = np.stack([choices, choices[::-1]], axis=2)  # … but the other way round in the second: [row, place, coord]
    mixture = (choices * 3.0 ** -np.arange(places)[:, None]).sum(axis=1)
    margin = (kind.high - kind.low) * 3.0 ** -(places - 1) / 4
    names = [f"digit {i}" for i in range(places)]
    mixed = Reals(("x", "y"), -2.0, 2.0)

    def gadget(net: Builder, x: Space) -> tuple[Space, ...]:
        return digits(net, x, 3.0, names, kind)

    op = operation(lambda net: gadget(net, net.embed("x", mixed, np.zeros((2, 2)))))
    assert list(op.margin.values()) == [pytest.approx(margin)]
    assert op.count == 2 * 2 * (2**places - 1)
    for seed, noise in enumerate((0.0, BELOW * margin, BELOW * margin)):
        found, _ = evaluate([(mixed, mixture + noise * signs(mixture, seed=seed))], gadget)
        assert np.abs(found - choices.reshape(len(choices), -1)).max() < 1e-9


def test_cpwl_interpolates_and_is_constant_outside() -> None:
    points, values = np.array([-1.0, 0.0, 1.0, 3.0, 4.0]), np.array([2.0, 0.0, 1.0, 3.0, 3.0])
    x = np.linspace(-3, 6, 37)
    writes = Space("y", Reals(("y",), 0.0, 3.0))

    def gadget(net: Builder, s: Space) -> Space:
        return cpwl(net, s, points, values, writes)

    found, weights = evaluate([(Reals(("x",), -3.0, 6.0), x[:, None])], gadget)
    assert np.abs(found[:, 0] - np.interp(x, points, values)).max() < ROUNDING
    assert units(weights) == 3  # the slope changes at -1, 0 and 3
    op = operation(lambda net: gadget(net, net.embed("x", Reals(("x",), -3.0, 6.0), np.zeros((2, 1)))))
    assert list(op.gain.values()) == [2.0]


def test_constants_are_written_without_units_to_carry_them() -> None:
    writes = Space("y", Reals(("y",), 0.0, 9.0))
    kind = Reals(("x",), 0.0, 1.0)
    found, _ = evaluate(
        [(kind, np.array([[0.0], [1.0]]))],
        lambda net, s: cpwl(net, s, np.array([0.0, 1.0]), np.array([5.0, 5.0]), writes),
    )
    assert found.tolist() == [[5.0], [5.0]]


# --- gates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("low", [-2.0, 0.0])
def test_gate_passes_where_the_flag_says_so(low: float) -> None:
    numbers = np.array([low, 0.0, 0.3, 1.0, 3.0])
    values = np.array([[x, y] for x in numbers for y in numbers for _ in range(2)])
    flags = np.array([[float(i % 2)] for i in range(len(values))])
    kind = Reals(("x", "y"), low, 3.0)
    found, weights = evaluate([(Flag(), flags), (kind, values)], gate)
    assert np.abs(found - flags * values).max() < EXACT
    assert units(weights) == (4 if low < 0 else 2)
    net = Builder("gate", ("^", "a"), 1)
    given = net.embed("f", Flag(), np.zeros((2, 1))), net.embed("x", kind, np.zeros((2, 2)))
    gate(net, *given)
    (op,) = (o for o in net._operations if isinstance(o, Units))
    assert op.gain[given[0]] == 6.0
    assert op.gain[given[1]] == 1.0
    for seed in range(3):
        noise = (
            BELOW * op.margin[given[0]] * signs(flags, seed),
            BELOW * op.margin[given[1]] * signs(values, seed),
        )
        found, _ = evaluate([(Flag(), flags + noise[0]), (kind, values + noise[1])], gate)
        closed = flags[:, 0] == 0
        assert np.abs(found[closed]).max() == 0  # noise can't open a closed gate
        most = sum(op.gain[s] * op.margin[s] for s in given)
        assert np.abs(found - flags * values).max() <= most
        small = 0.1
        found, _ = evaluate([(Flag(), flags + small * noise[0]), (kind, values + small * noise[1])], gate)
        assert np.abs(found - flags * values).max() <= small * most + EXACT


def test_choose_adds_up_the_open_cases() -> None:
    clock, kind = OneHot(("0", "1", "2")), Integers(("p", "q"), -3.0, 5.0)
    out = Space("y", Integers(("u", "v", "w"), -3.0, 5.0))
    values = np.array([[a, b] for a in (-3.0, 0.0, 5.0) for b in (-1.0, 4.0)])
    for turn in range(3):

        def gadget(net: Builder, c: Space, x: Space, other: Space) -> Space:
            cases = [Case(c, 0, x, [0, 1], [2, 0]), Case(c, 1, other, [1], [1]), Case(c, 2, x, [0], [0])]
            return choose(net, cases, out)

        flags = np.tile(clock.codes[turn], (len(values), 1))
        found, weights = evaluate([(clock, flags), (kind, values), (kind, -values[::-1] / 2)], gadget)
        expected = np.zeros((len(values), 3))
        if turn == 0:
            expected[:, [2, 0]] = values
        elif turn == 1:
            expected[:, 1] = -values[::-1, 1] / 2
        else:
            expected[:, 0] = values[:, 0]
        assert np.abs(found - expected).max() < EXACT
        assert units(weights) == 2 * 4


# --- composition -----------------------------------------------------------------------------------------------------


def composed(f: Floats, g: Floats, n: int, values: list[list[int]] | None = None) -> tuple[Floats, Weights]:
    first = Integers(tuple(f"q{q}" for q in range(f.shape[1])), 0.0, n - 1.0)
    then = Integers(tuple(f"q{q}" for q in range(n)), 0.0, n - 1.0)
    return evaluate([(first, f), (then, g)], lambda net, a, b: int_compose(net, a, b, name="gf", values=values))


def maps(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of maps of n points: all of them up to 3, some of them beyond."""
    if n <= 3:
        every = list(product(range(n), repeat=n))
        pairs = np.array(list(product(every, every)))
        return pairs[:, 0], pairs[:, 1]
    draw = np.random.default_rng(n)
    return draw.integers(0, n, (300, n)), draw.integers(0, n, (300, n))


@each("n", [1, 2, 3, 7])
def test_int_compose_is_composition(n: int) -> None:
    f, g = maps(n)
    expected = np.take_along_axis(g, f, axis=1)
    found, weights = composed(f.astype(float), g.astype(float), n)
    assert np.abs(found - expected).max() < EXACT
    assert units(weights) == 2 * n * (n - 1) + 1
    noise = 0.2499 * signs(f, seed=n)
    found, _ = composed(f + noise, g.astype(float), n)
    assert np.abs(found - expected).max() < 1e-9  # an error of the first map vanishes
    error = 0.2 * signs(g, seed=n + 1)
    found, _ = composed(f + noise, g + error, n)
    assert np.abs(found - expected - np.take_along_axis(error, f, axis=1)).max() < 1e-9  # one of the second passes once


def test_int_compose_restricted_to_the_values_that_occur() -> None:
    n, values = 5, [[0, 3], [2], [4, 1, 3]]
    f = np.array(list(product(*values)))
    g = np.random.default_rng(1).integers(0, n, (len(f), n))
    found, weights = composed(f.astype(float), g.astype(float), n, values)
    assert np.abs(found - np.take_along_axis(g, f, axis=1)).max() < EXACT
    assert units(weights) == 2 * (1 + 0 + 2) + 3  # two per jump, one for each of the lowest values 0, 2 and 1
    noise = 0.2499 * signs(f, seed=5)
    assert np.abs(composed(f + noise, g.astype(float), n, values)[0] - np.take_along_axis(g, f, axis=1)).max() < 1e-9


def test_int_compose_wants_maps() -> None:
    net = Builder("compose", ("^", "a"), 1)
    small = net.embed("f", Integers(("0", "1"), 0.0, 1.0), np.zeros((2, 2)))
    large = net.embed("g", Integers(("0", "1"), 0.0, 2.0), np.zeros((2, 2)))
    other = net.embed("h", OneHot(("0", "1")), np.zeros((2, 2)))
    for first, then in ((small, large), (other, small), (small, other)):
        with pytest.raises(TypeError, match="must hold whole numbers, the second a map of its 2 coordinates"):
            int_compose(net, first, then, name="gf")


# --- minimum ---------------------------------------------------------------------------------------------------------


def test_minimum_of_linear_functions() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, size=(50, 2)), rng.uniform(-2, 2, size=(50, 1))
    m, n, k = np.array([[1.0, -2.0], [0.5, 1.0]]), np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[1.0, -1.0]])
    writes = Space("least", Reals(("p", "q"), -20.0, 20.0))

    def gadget(net: Builder, a: Space, b: Space) -> Space:
        left, right = Affine.of({a: m}, [0.5, -8.0]), Affine.of({a: n, b: k}, [0.0, 1.0])
        return minimum(net, left, right, writes)

    given: list[tuple[Kind, Floats]] = [(Reals(("x", "y"), -2.0, 2.0), x), (Reals(("z",), -2.0, 2.0), y)]
    found, weights = evaluate(given, gadget)
    expected = np.minimum(x @ m + [0.5, -8.0], x @ n + y @ k + [0.0, 1.0])
    assert np.abs(found - expected).max() < ROUNDING
    assert units(weights) == 4
    made = operation(
        lambda net: gadget(net, *(net.embed(f"x{i}", kd, np.zeros((2, kd.size))) for i, (kd, _) in enumerate(given)))
    )
    assert list(made.gain.values()) == [3.0, 1.0]  # the largest sum of a column on either side
    for seed in range(20):  # noise passes no more than that
        noisy = [(kd, v + 0.01 * signs(v, seed=seed + i)) for i, (kd, v) in enumerate(given)]
        assert np.abs(evaluate(noisy, gadget)[0] - expected).max() <= 0.01 * 4.0 + ROUNDING
