"""Real arithmetic: near-ties that floating point gets wrong, true ties, sparse products, and rules that are broken."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from any_nets import any_net, said
from cases import each
from near_ties import SLIGHT, A, B, chooser, router
from nets import copycat
from vitrify.certification.reals import cells as ball_cells
from vitrify.certification.reals import matrices as reals
from vitrify.certification.reals import nets as ball
from vitrify.certification.reals import steps as ball_steps
from vitrify.certification.reals.decide import Decided, StillOpen, decide
from vitrify.certification.reals.nets import Balls, RealNet, ball_logits
from vitrify.certification.reals.steps import OpenComparison
from vitrify.errors import InputError
from vitrify.net import attention, transformer_forward
from vitrify.net.architecture import Output
from vitrify.net.transformer import Block, Head, Ties, Transformer
from vitrify.net.weights import Weights


@each("word", [[A, B], [B, A], [A, A, B, A], [B, A, A]])
def test_a_lead_of_two_to_the_minus_80_is_seen(word: list[int]) -> None:
    net = chooser(Head("hard", ties="left"), SLIGHT)
    assert decide(net, word) == Decided(("b",), 53)
    found = said(net, word)[-1]
    assert (found[1] > found[0]) == (word[0] == B)  # floating point takes the leftmost of all: it sees a tie


@pytest.mark.parametrize(("ties", "answer"), [("left", ("a",)), ("right", ("b",)), ("average", ("a", "b"))])
def test_exact_ties_are_ties(ties: Ties, answer: tuple[str, ...]) -> None:
    assert decide(chooser(Head("hard", ties=ties), 0.0), [A, B]) == Decided(answer, 53)
    slight = chooser(Head("hard", ties=ties), SLIGHT)
    assert decide(slight, [A, B]) == Decided(("b",), 53)
    coarse = chooser(Head("hard", ties=ties, resolution=SLIGHT**2), SLIGHT)
    assert decide(coarse, [A, B]) == Decided(answer, 53)  # a lead of just the resolution is none
    fine = chooser(Head("hard", ties=ties, resolution=SLIGHT**2 * (1 - 2.0**-52)), SLIGHT)
    assert decide(fine, [A, B]) == Decided(("b",), 53)


@pytest.mark.parametrize("word", [[A, B], [B, A, A]])
def test_precision_is_raised_until_a_near_tie_is_decided(word: list[int]) -> None:
    net = chooser(Head("hard", ties="left"), SLIGHT, soft=True)
    assert decide(net, word) == Decided(("b",), 106)
    with pytest.raises(OpenComparison, match="head 0 of block 1, query 2"):
        ball_logits(net, [A, B], precision=53)
    still_open = decide(net, word, cap=53)
    assert isinstance(still_open, StillOpen)
    assert still_open.precision == 53


def test_a_tie_that_no_precision_can_prove_is_undecided() -> None:
    answer = decide(chooser(Head("hard", ties="left"), 0.0, soft=True), [A, B])
    assert isinstance(answer, StillOpen)
    assert "head 0 of block 1, query 2" in answer.where
    assert answer.precision == 53 << 6
    coarse = chooser(Head("hard", ties="left", resolution=1e-9), 0.0, soft=True)
    assert decide(coarse, [A, B]) == Decided(("a",), 53)


def test_a_router_sends_a_near_tie_to_the_right_expert() -> None:
    assert decide(router(SLIGHT), [1]) == Decided(("b",), 53)
    assert said(router(SLIGHT), [1])[-1].tolist() == [1.0, 0.0]  # floating point takes the first
    assert decide(router(0.0), [1]) == Decided(("a",), 53)


def test_a_set_of_next_symbols_has_those_above_zero() -> None:
    net = Transformer(("<s>", "a"), Output("next", ("x", "y", "z")), 2, 1)
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["unembed.b_U"][:] = [0.0, 2.0**-1000, -1.0]
    assert decide(Weights(net, arrays), [1]) == Decided(("y",), 53)


def test_positions_are_asked_one_by_one() -> None:
    net = RealNet(copycat())
    assert [decide(net, [A, B, A], position=place).symbols for place in (2, 3)] == [("a",), ("b",)]  # type: ignore[union-attr]
    assert net.logits([A, B]).mid.tolist() == [[0, 0], [0, 0], [1, 0]]


def test_the_balls_of_a_fraction_hold_it() -> None:
    """A third is no float64: its ball has a radius, and not a large one."""
    net = chooser(Head("hard", ties="average", mask="none"), 0.0)
    found = ball_logits(net, [A, B, B])
    assert 0 < found.rad[-1].max() < 1e-15
    for middle, radius, true in zip(found.mid[-1], found.rad[-1], (Fraction(1, 3), Fraction(2, 3)), strict=True):
        assert abs(Fraction(float(middle)) - true) <= Fraction(float(radius))


def test_a_fraction_and_a_ball_may_cancel() -> None:
    """A third by hard attention and a third by a softmax of equal scores: the difference is as narrow as was asked."""
    heads = (Head("hard", ties="average"), Head("softmax"))
    net = Transformer(("<s>", "a"), Output("transducer", ("x",)), 4, 2, (Block(heads, d_head=1, d_value=1),))
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][1, 0] = 1.0
    arrays["blocks.0.attn.W_V"][:, 0, 0] = 1.0
    arrays["blocks.0.attn.W_O"][:, 0, 1] = [1.0, -1.0]
    arrays["unembed.W_U"][1] = 1.0
    found = ball_logits(Weights(net, arrays), [1, 1], precision=212)
    assert found.rad[-1, 0] < 2.0**-200
    assert abs(found.mid[-1, 0]) <= found.rad[-1, 0]


@pytest.mark.parametrize("small", [1 << 15, -1])
def test_a_ball_around_zero_is_not_nothing(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reals, "SMALL", small)
    monkeypatch.setattr(reals, "FULL", 2.0)
    linear = reals.Linear(np.array([[2.0, 0.0]]))
    assert linear.sparse == (small < 0)
    for x in (reals.together(1, 1, [(fmpq(0), arb(0, 0.5))]), reals.together(1, 1, [(fmpq(1), arb(0, 0.5))])):
        (moved, still) = linear.of(x).entries()
        assert moved[1].contains(0.99)
        assert still == (fmpq(0), arb(0))


def test_inputs_that_a_net_does_not_read_are_refused() -> None:
    for word in ([3], [0], [A] * 9):
        with pytest.raises(InputError, match="reads"):
            ball_logits(copycat(), word)
    with pytest.raises(InputError, match="real arithmetic"):
        ball_logits(copycat().with_array("unembed.b_U", np.array([np.inf, 0.0])), [A])
    with pytest.raises(InputError, match="no symbol"):
        decide(Weights(Transformer(("<s>", "a"), Output("values", ("x",)), 1, 1), _zeros()), [1])


def _zeros() -> dict[str, Any]:
    return {name: np.zeros(s) for name, s in Transformer(("<s>", "a"), Output("values", ("x",)), 1, 1).shapes().items()}


@pytest.mark.parametrize("seed", range(1, 40, 3))
def test_large_empty_matrices_are_multiplied_entry_by_entry(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, given = any_net(seed)
    dense = RealNet(weights).logits(given, precision=212)
    monkeypatch.setattr(reals, "SMALL", -1)
    monkeypatch.setattr(reals, "FULL", 2.0)
    net = RealNet(weights)
    sparse = net.logits(given, precision=212)
    assert all(linear.sparse for linear in net._linear.values())
    assert np.array_equal(dense.mid, sparse.mid)
    assert np.allclose(dense.rad, sparse.rad, rtol=1e-6)


def test_a_sparse_net_answers_like_the_dense_one() -> None:
    assert np.array_equal(ball_logits(copycat(sparse=True), [A, B]).mid, ball_logits(copycat(), [A, B]).mid)


def test_products_of_fractions_and_balls() -> None:
    """Of (1/3 + ball) times (1/2 + ball) the exact part is 1/6, and the rest holds what the balls allow."""
    left = reals.together(1, 2, [(fmpq(1, 3), arb(0, 0.25)), (fmpq(1, 5), arb(0))])
    right = reals.together(2, 1, [(fmpq(1, 2), arb(0)), (fmpq(7), arb(0, 0.5))])
    ((exact, ball_part),) = (left @ right).entries()
    assert exact == fmpq(1, 6) + fmpq(7, 5)
    for a in (-0.25, 0.0, 0.25):
        for b in (-0.5, 0.0, 0.5):
            assert (arb(exact) + ball_part).contains((arb(fmpq(1, 3)) + a) * fmpq(1, 2) + fmpq(1, 5) * (arb(7) + b))
    assert (left + left).entries()[1] == (fmpq(2, 5), arb(0))


def test_an_open_sign_leaves_a_ball_from_zero() -> None:
    ((zero, ball_part), sure, none) = reals.relu(
        reals.together(1, 3, [(fmpq(0), arb(0, 0.5)), (fmpq(1), arb(0, 0.5)), (fmpq(-1), arb(0, 0.5))])
    ).entries()
    assert zero == 0
    assert ball_part.contains(0)
    assert ball_part.contains(0.5)
    assert ball_part < 1
    assert sure[0] == 1
    assert none == (fmpq(0), arb(0))


def test_long_denominators_are_cancelled() -> None:
    third = reals.together(1, 1, [(fmpq(1, 3), arb(0))])
    three = reals.exact(np.array([[3.0 * 2**300]]))
    tiny = reals.exact(np.array([[2.0**-300]]))
    product = third
    for _ in range(4):
        product = product @ three @ tiny @ third
    assert product.entries()[0][0] == fmpq(1, 3)
    assert product.denominator.bit_length() < 4 * reals.LONG


@each("seed", range(30))
def test_sparsemax_weights_hold_every_true_one(seed: int) -> None:
    """For scores anywhere in the balls, by the definition: the weights are a projection onto the simplex."""
    rng = np.random.default_rng(seed)
    middles = rng.integers(-4, 5, size=4) / 4
    wide = float(rng.choice([0.0, 1e-3, 0.2]))
    with ctx.workprec(106):
        found = ball_steps._sparsemax(
            [(fmpq(*float(s).as_integer_ratio()), arb(0, wide) if wide else arb(0)) for s in middles]
        )
        for _ in range(20):
            scores = middles + rng.uniform(-wide, wide, size=4)
            for (fraction, ball_part), weight in zip(found, projected(scores), strict=True):
                assert abs(arb(fraction) + ball_part - arb(weight)).lower() < 1e-12


def projected(scores: np.ndarray[Any, Any]) -> list[float]:
    """The projection onto the simplex, by bisection of the threshold."""
    low, high = scores.min() - 1, scores.max()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(scores - middle, 0).sum() > 1 else (low, middle)
    return [float(w) for w in np.maximum(scores - low, 0)]


def _swapped(real: Callable[..., Any]) -> Callable[..., Any]:
    other = {"left": "right", "right": "average", "average": "left"}

    def hardmax(head: Head, *rest: Any) -> Any:
        return real(Head(head.attention, head.mask, head.window, other[head.ties], head.resolution), *rest)  # type: ignore[arg-type]

    return hardmax


def _still(windows: reals.RealMatrix) -> reals.RealMatrix:
    return reals.ones(windows.shape[0]) @ windows.T.pick([0]).T


BROKEN: dict[str, tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "a key too few": (ball_steps, "keys_of", lambda real: lambda *given: real(*given)[:-1]),
    "no bias": (ball_steps, "_biased", lambda _: lambda entry, *_: entry),
    "weights without a sum of 1": (
        ball_steps,
        "_softmax",
        lambda real: lambda row: [(f, b * 1.001) for f, b in real(row)],
    ),
    "a threshold too high": (
        ball_steps,
        "_sparsemax",
        lambda real: lambda row: [(f * f, b) for f, b in real(row)],
    ),
    "other ties": (ball_steps, "_hardmax", _swapped),
    "the last expert": (ball, "first_best", lambda _: lambda row, _where: len(row) - 1),
    "a norm that forgets eps": (ball, "unit", lambda real: lambda v, _eps, *rest: real(v, 0.0, *rest)),
    "no relu": (ball, "relu", lambda _: lambda x: x),
    "no relu in a cell": (ball_cells, "relu", lambda _: lambda x: x),
    "a cell that keeps nothing": (ball_cells, "_turned", lambda _: lambda _cell, _arrays, h, *_: h.times(0.0)),
    "gates that are not smooth": (ball_cells, "_sigmoid", lambda real: lambda x: real(x) * 1.001),
    "windows that do not move": (
        ball,
        "_windows",
        lambda real: (
            lambda layer, x, h, w: reals.ones(real(layer, x, h, w).shape[0]) @ real(layer, x, h, w).T.pick([0]).T
        ),
    ),
}


def disagrees(seed: int) -> bool:
    """Whether the two forward passes disagree on a random net."""
    weights, given = any_net(seed)
    try:
        true, found = ball_logits(weights, given, precision=106), said(weights, given)
    except OpenComparison:
        return False
    return not np.allclose(true.mid, found, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, breaks = BROKEN[name]
    monkeypatch.setattr(module, function, breaks(getattr(module, function)))
    assert any(disagrees(seed) for seed in range(400))


def test_a_broken_forward_pass_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = attention.weigh
    monkeypatch.setattr(transformer_forward, "weigh", lambda *given: real(*given) * (1 + 1e-7))
    assert any(disagrees(seed) for seed in range(400))


def test_without_roundoff_balls_hold_less() -> None:
    """The balls of real arithmetic are narrower than the rounding of float64: they do not hold what it computes."""
    weights, given = next(
        (weights, given) for weights, given in map(any_net, range(1, 99)) if len(said(weights, given)) > 3
    )
    true, found = ball_logits(weights, given, precision=212), said(weights, given)
    wider = Balls(true.mid, true.rad + 1e-9)
    assert wider.holds(found)
    assert not Balls(true.mid + 1e-3, true.rad).holds(found)
