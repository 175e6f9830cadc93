"""The chain of bits in closed form, against sums over strings, finite differences and a net with one more number."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cases import each
from vitrify.learn import bit_chain
from vitrify.learn.landscape import float64, strings
from vitrify.net.architecture import Output
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.sandboxes.markov import Markov

CHAINS = [(0.2, 0.3), (0.5, 0.8), (0.9, 0.9), (0.3, 0.9), (0.8, 0.1)]


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with float64():
        yield


def test_strings_are_weighted_as_the_sandbox_weights_them() -> None:
    listed = strings(Markov(0.2, 0.3, length=4))
    for p, q in ((0.2, 0.3), (0.5, 0.8)):
        np.testing.assert_allclose(
            bit_chain.weighted(listed, p, q).weight, strings(Markov(p, q, length=4)).weight, atol=1e-12
        )


@each(("p", "q"), CHAINS)
def test_the_best_bias_is_the_best_and_nothing_overflows(p: float, q: float) -> None:
    for a in (-3.0, -0.5, 0.0, 0.7, 4.0):
        zero = float(bit_chain.best(jnp.float64(a), p, q))
        tried = zero + np.linspace(-2, 2, 401)
        assert np.argmin(np.asarray(bit_chain.costs(tried, tried + a, p, q))) == 200
    far = jnp.array([-600.0, 600.0])
    assert np.isfinite(np.asarray(jax.vmap(jax.grad(bit_chain.profile), (0, None, None))(far, p, q))).all()


@each(("p", "q"), CHAINS)
def test_slopes_of_the_profile_are_its_differences(p: float, q: float) -> None:
    for a in (-2.0, 0.0, 1.5):
        slope = float(jax.grad(bit_chain.profile)(jnp.float64(a), p, q))
        apart = [float(bit_chain.profile(jnp.float64(a + step), p, q)) for step in (1e-5, -1e-5)]
        assert abs(slope - (apart[0] - apart[1]) / 2e-5) < 1e-9
        one = float(bit_chain.best(jnp.float64(a), p, q)) + a
        assert abs(slope - bit_chain.ones(p, q) * (1 / (1 + np.exp(-one)) - (1 - q))) < 1e-12


def test_energies_and_basins_at_points_that_are_known() -> None:
    assert bit_chain.energy(0.0, bit_chain.CRITICAL) == pytest.approx(bit_chain.SADDLE)
    w = np.linspace(-3, -0.01, 50)
    np.testing.assert_allclose(bit_chain.energy(bit_chain.separatrix(w), w), np.full(50, bit_chain.SADDLE), atol=1e-12)
    e, w = np.array([0.1, 0.1, 0.1, 2.0, 2.0]), np.array([1.0, -0.5, -1.0, -0.5, -1.0])
    assert bit_chain.trapped(e, w, 0.2, 0.3).tolist() == [False, False, True, False, False]
    assert bit_chain.trapped(e, w, 0.5, 0.8).tolist() == [True, True, False, False, False]


def test_a_head_that_sees_only_its_own_token_adds_its_number_to_the_contrast() -> None:
    """The variant with a third number, as a net: A = e² (1 + 2w|w|) (1 + a)."""
    e, a = 0.8, 0.6
    block = Block((Head(window=1),), 2, 2, 8)
    net = Transformer(("<s>", "0", "1"), Output("lm", ("0", "1")), 3, 2, (block,), pads=0)
    for w in (0.9, -1.3):
        alpha, units = np.full(2, 0.5**0.5), np.full(8, 0.5**0.5)
        arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
        arrays |= {"embed.W_E": np.outer([0, 0, e], alpha), "pos_embed.W_pos": np.tile(-e / 2 * alpha, (3, 1))}
        arrays |= {"blocks.0.attn.W_V": a * np.eye(2)[None], "blocks.0.attn.W_O": np.eye(2)[None]}
        arrays |= {"blocks.0.mlp.W_in": np.outer(abs(w) * alpha, units)}
        arrays |= {"blocks.0.mlp.W_out": np.outer(units, w * alpha)}
        arrays["unembed.W_U"] = np.outer(e * alpha, [0, 1])
        logits = net.forward(arrays, np.array([[1, 2, 1]]))[0, :, 1]
        expected = e**2 * float(bit_chain.gain(jnp.float64(w))) * (1 + a)
        np.testing.assert_allclose([logits[1] - logits[0], logits[1] - logits[2]], expected, atol=1e-12)
