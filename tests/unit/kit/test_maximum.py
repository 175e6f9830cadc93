"""The maximum head and the affine pieces before it: exact under hard attention, within a bound that is reached."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import lambertw

from tiny_nets import KINDS
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.gadgets.affine import AffineCase, affine_where
from vitrify.kit.heads.maximum import SEPARATION, maximum, shortfall
from vitrify.kit.margins import margins
from vitrify.kit.network import Builder, Readout
from vitrify.net.architecture import Output
from vitrify.net.attention import weigh
from vitrify.net.inference import outputs, trace
from vitrify.net.spaces import MultiHot, Reals
from vitrify.net.transformer import AttentionKind, Head
from vitrify.net.weights import Weights


def largest_of(
    pieces: list[list[float]], attention: AttentionKind, beta: float, positions: int, need: float = 1.0
) -> Weights:
    """max_j (a_j x + b_j) for x in [-1, 1], with more positions than pieces."""
    net = Builder("max", ("x",), positions, attention, reads="vector")
    given = net.numbers("given", -1.0, 1.0)
    other = net.embed_position("other", MultiHot(tuple(map(str, range(positions)))), 1 - np.eye(positions))
    cases = [AffineCase([(other, j)], np.array([a]), b, 0, f"piece {j}") for j, (a, b) in enumerate(pieces)]
    computed = affine_where(net, [given], cases, ("y",), apart=SEPARATION[attention] / beta, name="pieces")
    kind = Reals(("y",), -10.0, 10.0)
    out = maximum(net, computed, 0, kind, rivals=len(pieces) - 1, beta=beta, name="largest")
    return assemble(net.network(Output("values", ("y",)), Readout(((out, np.eye(1)),), np.zeros(1), {out: need})))


@pytest.mark.long
@pytest.mark.parametrize("attention", KINDS)
@given(st.lists(st.lists(st.integers(-8, 8), min_size=2, max_size=2), min_size=1, max_size=4))
def test_it_takes_the_largest_within_its_bound(attention: AttentionKind, pieces: list[list[int]]) -> None:
    a, b = np.array(pieces, dtype=float).T
    beta = 1.0 if attention == "hard" else 50.0
    weights = largest_of([[float(x) for x in piece] for piece in pieces], attention, beta, 6)
    x = np.linspace(-1, 1, 101)
    want = (a * x[:, None] + b).max(axis=1)
    short = want - outputs(weights, x[:, None])[:, 0]
    assert short.min() >= -1e-12
    assert short.max() <= shortfall(attention, len(pieces) - 1, 6 - len(pieces)) / beta + 1e-12
    assert weights.labels.space("largest").error + 1e-12 >= short.max()


def shortfall_of(gaps: np.ndarray, attention: AttentionKind) -> float:
    scores = np.concatenate([[0.0], -np.abs(gaps)])[None, None]
    w = weigh(Head(attention=attention, mask="none"), scores, np.ones_like(scores, dtype=bool))[0, 0]
    return float(w[1:] @ np.abs(gaps))


def _gained(gaps: np.ndarray, attention: AttentionKind) -> float:
    return -shortfall_of(gaps, attention)


@pytest.mark.parametrize("rivals", [1, 2, 4])
def test_the_bounds_are_the_worst_cases(rivals: int) -> None:
    """Equal gaps reach the bound, and no search from anywhere finds gaps that exceed it."""
    rng = np.random.default_rng(rivals)
    worst_gaps: dict[AttentionKind, float] = {"softmax": 1 + float(lambertw(rivals / np.e).real), "sparsemax": 0.5}
    for attention, worst in worst_gaps.items():
        limit = shortfall(attention, rivals, 0)
        assert shortfall_of(np.full(rivals, worst), attention) == pytest.approx(limit, rel=1e-12)
        for start in rng.uniform(0, 4, size=(10, rivals)):
            found = minimize(_gained, start, args=(attention,), method="Nelder-Mead")
            assert -found.fun <= limit * (1 + 1e-12)


@pytest.mark.parametrize("attention", ["softmax", "sparsemax"])
def test_keys_that_are_apart_add_next_to_nothing(attention: AttentionKind) -> None:
    apart = SEPARATION[attention]
    for others, gap in product((1, 10, 1000), (0.3, 1.0, 1.278)):
        scores = -np.concatenate([[0.0, gap], np.full(others, apart)])[None, None]
        w = weigh(Head(attention=attention, mask="none"), scores, np.ones_like(scores, dtype=bool))[0, 0]
        assert -float(w @ scores[0, 0]) <= shortfall(attention, 1, others)
    assert shortfall("softmax", 1, 1000) - shortfall("softmax", 1, 0) < 1e-12


def test_an_inverse_temperature_of_its_own_is_kept_and_its_error_is_added() -> None:
    weights = largest_of([[1.0, 0.0], [-1.0, 0.0]], "softmax", 12.3, 2)
    (head,) = weights.labels.heads
    assert weights.arrays["blocks.1.attn.beta"].tolist() == [12.3]
    assert head.beta_min == 12.3
    assert head.tolerance == pytest.approx(shortfall("softmax", 1, 0) / 12.3)
    with pytest.raises(BuildRefused, match=r"'largest' within 0\.01"):
        largest_of([[1.0, 0.0], [-1.0, 0.0]], "softmax", 12.3, 2, need=0.01)


@pytest.mark.parametrize("attention", KINDS)
def test_errors_pass_once_through_a_maximum_and_times_the_steepness_through_pieces(attention: AttentionKind) -> None:
    """Two maxima, then pieces that add them up: the error is the joint one, not the sum over both spaces."""
    net = Builder("two", ("x",), 2, attention, reads="vector")
    given, beta, kind = net.numbers("given", -1.0, 1.0), 40.0, Reals(("y",), -2.0, 2.0)
    other = net.embed_position("other", MultiHot(("0", "1")), 1 - np.eye(2))
    cases = [AffineCase([(other, j)], np.array([1.0 - 2 * j]), 0.0, i) for i in range(2) for j in range(2)]
    first = affine_where(net, [given], cases, ("a", "b"), apart=SEPARATION[attention] / beta, name="first")
    heads = [maximum(net, first, i, kind, rivals=1, beta=beta, name=f"max {i}") for i in range(2)]
    steep = [AffineCase([(other, j)], np.array([3.0 - 3 * j, 3.0 * j]), 0.0, 0) for j in range(2)]
    second = affine_where(net, heads, steep, ("c",), apart=SEPARATION[attention] / beta, margin=1.0, name="second")
    last = maximum(net, second, 0, Reals(("y",), -9.0, 9.0), rivals=1, beta=beta, name="last")
    made = net.network(Output("values", ("y",)), Readout(((last, np.eye(1)),), np.zeros(1), {last: 9.0}))
    errors = margins(made).errors
    one = shortfall(attention, 1, 0) / beta
    assert errors[heads[0]] == pytest.approx(one, abs=1e-13)
    assert errors[second] == pytest.approx(3 * one, abs=1e-12)
    assert errors[last] == pytest.approx(4 * one, abs=1e-12)


def test_an_affine_piece_stands_where_no_flag_bars_it() -> None:
    net = Builder("pieces", ("x", "y"), 3, "hard", reads="vector")
    given = net.numbers("given", -2.0, 2.0)
    other = net.embed_position("other", MultiHot(("0", "1", "2")), 1 - np.eye(3))
    cases = [
        AffineCase([(other, 0)], np.array([1.0, 2.0]), 0.5, 0, "first"),
        AffineCase([(other, 1)], np.array([-1.0, 0.0]), 0.0, 0, "second"),
        AffineCase([(other, 1)], np.array([3.0, 1.0]), -4.0, 1, "third"),
    ]
    out = affine_where(net, [given], cases, ("a", "b"), apart=2.0, name="pieces")
    weights = assemble(net.network(Output("values", ("a", "b")), Readout(((out, np.eye(2)),), np.zeros(2), {out: 1.0})))
    (units,) = (label for label in weights.labels.units if label.name != "erase")
    assert units.unit_names == ("first", "second", "third")
    for x, y in product((-2.0, 0.3, 2.0), repeat=2):
        table = trace(weights, [str(x), str(y)]).space("pieces")
        want = np.array([[x + 2 * y + 0.5, np.nan], [-x, 3 * x + y - 4], [np.nan, np.nan]])
        np.testing.assert_allclose(table[np.isfinite(want)], want[np.isfinite(want)], atol=1e-14)
        floor = table[2]  # two below the least that any piece can be, and a little
        assert table[0, 1] == floor[1]
        np.testing.assert_allclose(floor, [-5.5 - 2.0, -12.0 - 2.0], rtol=1e-6)
        assert (floor < [-7.5, -14.0]).all()


def test_margins_of_pieces_keep_closed_gates_closed() -> None:
    """Values that are off by the margin, and beyond their range, change no gate."""
    net = Builder("pieces", ("x",), 2, "hard", reads="vector")
    given = net.numbers("given", -1.0, 1.0)
    other = net.embed_position("other", MultiHot(("0", "1")), 1 - np.eye(2))
    cases = [AffineCase([(other, j)], np.array([5.0]), 0.0, 0) for j in range(1)]
    out = affine_where(net, [given], cases, ("a",), margin=0.25, name="pieces")
    weights = assemble(net.network(Output("values", ("a",)), Readout(((out, np.eye(1)),), np.zeros(1), {})))
    both = weights.architecture.forward(weights.prepared, np.array([[1.25], [-1.25], [1.3]]))[..., 0]
    np.testing.assert_allclose(both[:, 0], [6.25, -6.25, 6.5])
    np.testing.assert_allclose(both[:2, 1], [-6.25, -6.25], rtol=1e-6)
    assert both[2, 1] > both[0, 1]  # further out the gate does open
