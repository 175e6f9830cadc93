"""Norms over the dimensions of one space: what readers see, what noise does to it, and when dimensions are free."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cases import each
from tiny_nets import Word, built, held, letters, network
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.gadgets.signs import sign
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.margins import margins
from vitrify.kit.network import Affine, Builder, Norm, Space
from vitrify.net.explain import explain
from vitrify.net.spaces import Flag, Reals

TINY = (1.0, 1e-3, 1e-9, 1e-14)


def signed(values: tuple[float, ...], least: float = 1e-14) -> tuple[Builder, Space]:
    """A net whose letters are numbers, and their signs."""
    net = Builder("signs", letters(len(values)), 3)
    number = net.embed("number", Reals(("",), -2.0, 2.0), np.array([[0.0], *([v] for v in values)]))
    return net, sign(net, Affine.copy(number), least, name="sign")


@each("least", TINY)
def test_the_sign_of_the_smallest_number(least: float) -> None:
    net, found = signed((least, -least, 2.0))
    [rows] = held(built(net, found, need=1e-9), [(1, 2, 3)])
    np.testing.assert_array_equal(rows, [[0, 0], [1, -1], [-1, 1], [1, -1]])  # BOS has the number 0, and no sign


def test_readers_see_the_norm_and_others_the_pair() -> None:
    """Units after the first layer take the sign, those of the next one the number itself, and the end both in turn."""
    net, found = signed((0.25, -0.5))
    flag = Space("positive", Flag())
    steps(net, found, np.array([-1.0, 1.0]), [(flag, np.array([[0.0], [1.0]]))], name="flag")
    pair = next(op.source for op in net._operations if isinstance(op, Norm))
    weights = built(net, flag, pair)
    [rows] = held(weights, [(1, 2)])
    np.testing.assert_array_equal(rows[1:], [[1, 0.25, -0.25], [0, -0.5, 0.5]])
    architecture = weights.architecture
    assert architecture.groups[3] == (weights.labels.space("± sign").dims,)
    assert not any(architecture.groups[half] for half in (0, 1, 2, 4))
    assert "norm of ± sign" in str(explain(weights))


def test_both_at_once_is_refused() -> None:
    net, found = signed((0.25, -0.5))
    pair = next(op.source for op in net._operations if isinstance(op, Norm))
    with pytest.raises(ValueError, match="sign: a space is read through its norm or as it is"):
        built(net, found, pair)


def test_a_pair_is_erased_only_after_its_norm_was_read() -> None:
    """The MLP that sees the sign would take the sign away, not the number."""
    net, found = signed((0.25, -0.5))
    spaces, last = [found], found
    for number in range(6):
        flag = Space(f"flag {number}", Flag())
        read = Affine.of({last: np.eye(last.size)[:, :1]})
        points = np.array([-1.0, 1.0]) if last is found else np.array([0.0, 1.0])
        steps(net, read, points, [(flag, np.array([[0.0], [1.0]]))], name=flag.name)
        last = flag
        spaces.append(flag)
    weights = assemble(network(net, last, reuse=True))
    assert weights.architecture.d_model < 3 + len(spaces)  # dimensions are used again
    [rows] = held(weights, [(1, 2, 2)])
    np.testing.assert_allclose(rows[1:, 0], [1, 0, 0], atol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_noise_moves_a_norm_by_less_than_its_gain(size: int) -> None:
    rng = np.random.default_rng(size)
    least, inputs = 0.3, 40
    vectors = rng.normal(size=(inputs, size))
    vectors -= vectors.mean(axis=1, keepdims=True)
    vectors *= rng.uniform(1, 4, size=(inputs, 1)) * least / np.sqrt((vectors**2).mean(axis=1, keepdims=True))
    space = Space("v", Reals(tuple(map(str, range(size))), -9.0, 9.0))
    norm = Norm("unit", space, Space("u", Reals(tuple(map(str, range(size))), -3.0, 3.0)), least)

    def normed(table: np.ndarray) -> np.ndarray:
        net = Builder("norm", ("^", *map(str, range(inputs))), 1)
        held_by = net.embed("v", space.kind, np.vstack([np.zeros(size), table]))
        assert held_by == space
        weights = built(net, net.add(norm))
        return np.array([rows[1] for rows in held(weights, [(word,) for word in range(1, inputs + 1)])])

    exact = normed(vectors)
    np.testing.assert_allclose(exact, vectors / np.sqrt((vectors**2).mean(axis=1, keepdims=True)), atol=norm.error)
    noise = least / 2.01
    for kind in (rng.choice([-1.0, 1.0], size=vectors.shape), -np.sign(vectors), rng.uniform(-1, 1, vectors.shape)):
        off = np.abs(normed(vectors + noise * kind) - exact).max()
        assert off <= norm.gain[space] * noise + 2 * norm.error
    if size == 2:
        assert norm.gain[space] == 0.0
    else:
        assert norm.gain[space] == 2 * math.sqrt(size) / least


def test_a_number_that_errors_may_turn_round_is_refused() -> None:
    words: list[Word] = [(1,), (2,)]
    net, found = signed((1e-3, -1e-3), least=1e-3)
    assert [rows[1, 0] for rows in held(built(net, found), words)] == [1.0, -1.0]
    net, found = signed((1e-17, -1e-17), least=1e-17)
    with pytest.raises(BuildRefused, match="'unit: sign' needs '± sign' within 5e-18"):
        margins(network(net, found))
