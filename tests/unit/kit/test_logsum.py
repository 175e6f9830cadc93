"""Logarithms of sums by attention: against SciPy, within the proved error, and what 0 and rounding do to them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from cases import each
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.gadgets.steps import at_least
from vitrify.kit.heads.logsum import (
    MAX_ABOVE_FLOOR,
    MAX_GUESS_SLOPE,
    Pads,
    alternatives,
    first_error,
    floor_below,
    guessed,
    halley,
    log_sum,
    stepped,
    thresholds,
)
from vitrify.kit.margins import margins
from vitrify.kit.network import Affine, Bank, Builder, Network, Readout, Space
from vitrify.net.architecture import Output
from vitrify.net.inference import trace
from vitrify.net.spaces import Reals
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]

LOW, HIGH = -30.0, 0.0
ROWS = ((0, 1, 2, 3, 4, 5), (4, 5), (2, 3, 4))  # the coordinates that each sum adds
FLOOR = floor_below(LOW - 4, 6)


@cache
def numbers() -> Floats:
    """Logarithms [token, coordinate]: spread, equal, extreme, and some that stand for 0."""
    rng = np.random.default_rng(0)
    table = rng.uniform(LOW - 2, HIGH - 2, size=(60, 6))
    table[:20] = rng.uniform(-1, 1, size=(20, 6)) - rng.uniform(2, -LOW - 2, size=(20, 1))
    table[20] = HIGH - np.log(6)
    table[21] = LOW - 2
    table[22:40][rng.random((18, 6)) < 0.6] = FLOOR
    table[40] = FLOOR
    return table


def range_of(rows: tuple[int, ...]) -> tuple[float, float]:
    present = numbers()[:, rows][numbers()[:, rows] > FLOOR]
    sums = logsumexp(numbers()[:, rows], axis=1)
    return float(present.min()), float(sums.max())


def network(attention: AttentionKind = "softmax") -> Network:
    table = np.vstack([np.full((1, 6), FLOOR), numbers()])
    net = Builder("sums", ["<s>", *(f"w{i}" for i in range(len(table) - 1))], 4, attention, pads=7)
    x = net.embed("x", Reals(tuple("abcdef"), FLOOR, 0.0), table)
    pads = alternatives(net, 6)
    y = log_sum(
        net,
        [Affine.of({x: np.eye(6)[:, list(rows)]}) for rows in ROWS],
        [range_of(rows) for rows in ROWS],
        pads,
        floor=FLOOR,
        name="y",
        labels=["all", "two", "three"],
    )
    out = at_least(net, Affine.copy(y, 1.0), FLOOR, Space("out", y.kind))
    readout = Readout(((out, np.eye(3)),), np.zeros(3), {out: 1e-9})
    return net.network(Output("values", ("all", "two", "three")), readout, reuse=False)


@cache
def weights() -> Weights:
    return assemble(network())


def held(name: str) -> Floats:
    """What a space holds after each word, read by itself at the first place."""
    found = [trace(weights(), [word]).space(name)[-1] for word in weights().architecture.inputs[1:]]
    return np.array(found)


def meant(name: str, exact: Floats) -> Floats:
    """What each step is meant to hold, from the exact logarithms [token, sum]."""
    if name in ("y", "out"):
        return exact
    ranges = [range_of(rows) for rows in ROWS]
    guesses = np.stack([guessed(exact[:, i], *ranges[i], FLOOR) for i in range(len(ROWS))], axis=1)
    return guesses if name == "y, guessed" else stepped(exact, guesses)


@pytest.mark.long
@each("name", ["y, guessed", "y, step 1", "y", "out"])
def test_every_step_is_within_its_proved_error(name: str) -> None:
    exact = np.stack([logsumexp(numbers()[:, rows], axis=1) for rows in ROWS], axis=1)
    there = np.stack([(numbers()[:, rows] > FLOOR).any(axis=1) for rows in ROWS], axis=1)
    off = np.abs(held(name) - meant(name, exact))[there].max()
    assert 0 < off <= weights().labels.space(name).error < 1e-12
    wide = np.abs(held(name) - exact)[there].max()  # of the logarithm itself
    first = first_error()
    least, most = {"y, guessed": (0.05, first), "y, step 1": (1e-5, halley(first))}.get(name, (0, 1e-12))
    assert least < wide <= most
    assert held(name)[~there].max() <= FLOOR + MAX_ABOVE_FLOOR


def test_the_error_of_the_first_guess_is_a_true_bound_and_a_tight_one() -> None:
    for low, high in ((-3.0, -3.0), (-11.0, -0.5), (-100.0, 0.0)):
        x = np.linspace(low, high, 5000)
        guess = guessed(x, low, high, low - 60)
        assert np.abs(guess - x).max() <= first_error()
        steepest = np.abs(np.diff(guess) / np.diff(x)).max() if high > low else 0.0
        assert steepest <= MAX_GUESS_SLOPE
    assert np.abs(guess - x).max() >= 0.7 * first_error()
    assert steepest >= 1.1
    assert guessed(np.array([-np.inf]), low, high, -170.0) == -170.0


def test_halley_is_what_the_formula_says() -> None:
    for error in (1.0, 0.1, 2e-4, 9e-5):
        step = error - 2 * np.tanh(error / 2)
        assert halley(error) == pytest.approx(step, rel=1e-5)
    assert halley(1e-9) < 1e-27


def test_heads_and_layers_are_those_of_the_formula() -> None:
    size = weights().sizes
    assert size.layers == 3
    assert size.heads == sum(thresholds(*range_of(rows)) + 2 for rows in ROWS) + 2
    assert size.units == 3


def test_errors_of_summands_add_up_along_a_row_and_not_over_rows() -> None:
    """An error of the summands passes once: with three sums and six coordinates it is still one coordinate's."""
    built = network()
    bank = built.operations[-2]
    assert isinstance(bank, Bank)
    x = built.embedded[0][0]
    guess = next(space for space in bank.reads if space.name == "y, step 1")
    doubled = replace(bank, passes=(Affine.of({x: np.ones((6, 1))}),))
    assert bank.passes[0].error_bound({x: 1e-3, guess: 1.0}) == 1e-3
    assert doubled.passes[0].error_bound({x: 1e-3}) == pytest.approx(6e-3)
    assert set(bank.margin) == {guess}
    assert margins(built).errors[bank.writes] == bank.truncation + bank.error


def test_errors_of_summands_pass_on_to_the_sum_once() -> None:
    net = Builder("twice", ["<s>", "a"], 2, pads=3)
    x = net.embed("x", Reals(("a", "b"), -60.0, 0.0), np.array([[-60.0, -60.0], [-1.0, -2.0]]))
    pads = alternatives(net, 2)
    y = log_sum(net, [Affine.copy(x)] * 2, [(-2.0, 0.0)] * 2, pads, floor=-60.0, name="y", labels=["1", "2"])
    z = log_sum(net, [Affine.copy(y)], [(-2.0, 0.0)], pads, floor=-60.0, name="z", labels=["1"])
    made = net.network(Output("values", ("z",)), Readout(((z, np.eye(1)),), np.zeros(1), {z: 1e-9}), reuse=False)
    first, second = (op for op in made.operations if isinstance(op, Bank) and op.writes in (y, z))
    errors = margins(made).errors
    assert errors[y] == first.truncation + first.error > 1e-14
    assert errors[z] == pytest.approx(second.truncation + second.error + errors[y], rel=1e-12, abs=0.0)


def test_single_precision_is_refused_where_it_cannot_do() -> None:
    with pytest.raises(BuildRefused, match=r"or float64$"):
        assemble(network(), arithmetic="float32")


def test_refusals() -> None:
    with pytest.raises(BuildRefused, match="softmax attention, not hard"):
        network("hard")
    with pytest.raises(ValueError, match="3 summands need 4 pads"):
        alternatives(Builder("few", ["<s>", "a"], 2, pads=2), 3)


def test_pads_stand_for_summands_in_order() -> None:
    net = Builder("pads", ["<s>", "a"], 2, pads=4)
    pads = alternatives(net, 3)
    assert isinstance(pads, Pads)
    assert (pads.sink.size, pads.summand.size) == (1, 3)
