"""Gradient flow against closed forms: a quadratic loss, and basins of the reduced loss on a Markov chain."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from exact_rows import exact_means
from vitrify.errors import InputError
from vitrify.learn.flow import Slice, flow, portrait
from vitrify.learn.landscape import population_loss, strings
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.sandboxes.markov import Markov

CHAINS = ((0.2, 0.3), (0.5, 0.8), (0.9, 0.9), (0.1, 0.1))
SADDLE = -(1 + np.log(2)) / 2  # the energy at e = 0, w = -1/√2


def reduced(theta: dict[str, Any], chain: Any) -> Any:
    """The loss of the low-rank one-layer transformer in e and w, after its bias was chosen best."""
    p, q = chain[..., 0], chain[..., 1]
    e, w = theta["e"], theta["w"]
    one, gain = p / (p + q), e**2 * (1 + 2 * w * jnp.abs(w))
    root = jnp.sqrt((p - q) ** 2 + 4 * p * q * jnp.exp(gain))
    # of the two ways to write the positive root, the one that subtracts nothing
    u = jnp.where(p >= q, (p - q + root) / (2 * q * jnp.exp(gain)), 2 * p / (root + q - p))
    f0 = jnp.log(u)
    f1, soft = f0 + gain, jax.nn.softplus
    return one * (q * soft(f1) + (1 - q) * soft(-f1)) + (1 - one) * (p * soft(-f0) + (1 - p) * soft(f0))


def energy(theta: dict[str, Any]) -> Any:
    e, w = theta["e"], theta["w"]
    return e**2 - (w**2 + jnp.sign(w) * jnp.log(jnp.abs(w)))


def trapped(p: float, q: float, e: float, w: float) -> bool:
    """Whether theory says that the flow from (e, w) ends at the loss of the unigram."""
    low, edge = e**2 - (w**2 + np.sign(w) * np.log(abs(w))) < SADDLE, -1 / np.sqrt(2)
    if p + q < 1:
        return bool(w < edge and low)
    return bool(w >= 0 or (w > edge and low))


def entropy(p: float) -> float:
    return float(-p * np.log(p) - (1 - p) * np.log(1 - p))


@pytest.mark.slow
def test_the_basins_of_the_reduced_loss_are_those_of_theory_and_its_energy_is_kept() -> None:
    starts = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    chains = np.array([CHAINS[i % 4] for i in range(60)])
    found = flow(reduced, {"e": starts[:, 0], "w": starts[:, 1]}, chains, conserved={"energy": energy})
    assert found.resting.all()
    assert found.drift["energy"] <= 1e-6
    wrong = []
    for (p, q), (e, w), end in zip(chains, starts, found.losses[:, -1], strict=True):
        one = p / (p + q)
        unigram, rate = entropy(one), (1 - one) * entropy(p) + one * entropy(q)
        assert min(abs(end - unigram), abs(end - rate)) <= 1e-6
        if (abs(end - unigram) <= 1e-6) != trapped(p, q, e, w):
            wrong.append((p, q, e, w))
    assert not wrong
    assert 10 <= sum(trapped(*chain, *start) for chain, start in zip(chains, starts, strict=True)) <= 50
    assert (np.diff(found.losses, axis=1) <= 1e-12).all()


@pytest.mark.slow
def test_a_quadratic_loss_flows_as_its_closed_form_says() -> None:
    rng = np.random.default_rng(1)
    turn, values = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.array([0.5, 1.0, 4.0])
    matrix, first = turn @ np.diag(values) @ turn.T, rng.normal(size=(2, 3))
    found = flow(
        lambda x, m: x["y"] @ m @ x["y"] / 2,
        {"y": first},
        np.stack([matrix, matrix / 2]),
        until=100.0,
        saves=20,
        conserved={"not at all": lambda x: x["y"][0]},
    )
    for start, speed in enumerate((1.0, 0.5)):
        decay = np.exp(-speed * np.outer(found.times[start], values))
        np.testing.assert_allclose(found.points["y"][start], (decay * (first[start] @ turn)) @ turn.T, atol=1e-7)
    assert found.resting.all()
    assert (found.times[:, -1] < 100).all()
    assert found.drift["not at all"] > 0.1
    assert found.points["y"].dtype == np.float64


TILTED = Slice({"y": np.array([0.0, 0.0, 1.0])}, {"y": np.array([2.0, 0.0, 0.0])}, {"y": np.array([1.0, 1.0, 0.0])})


def bowl(x: dict[str, Any], weights: Any) -> Any:
    return (x["y"] ** 2 * weights).sum() / 2


def test_a_portrait_is_the_field_within_the_slice() -> None:
    drawn = portrait(bowl, TILTED, [-1.0, 0.0, 1.0], [0.0, 2.0], data=np.array([1.0, 3.0, 5.0]))
    assert drawn.loss.shape == (2, 3)
    assert drawn.loss[1, 2] == pytest.approx((16 + 3 * 4 + 5) / 2)  # at (4, 2, 1)
    np.testing.assert_allclose(drawn.flow[1, 2], [1.0, -6.0])  # -(4, 6) = 1·(2, 0) - 6·(1, 1)
    assert drawn.leaving[0, 1] == pytest.approx(1.0)  # at the origin all of the gradient points out
    np.testing.assert_allclose(drawn.leaving[1, 2], 5 / np.sqrt(16 + 36 + 25))
    assert drawn.paths.shape == (0, 1, 2)


@pytest.mark.slow
def test_the_paths_of_a_portrait_lead_where_the_flow_goes() -> None:
    drawn = portrait(bowl, TILTED, [0.0], [0.0], [(1.0, 0.0), (0.0, 1.0)], np.array([1.0, 3.0, 5.0]), until=10.0)
    np.testing.assert_allclose(drawn.paths[:, 0], [[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(drawn.paths[:, -1], 0.0, atol=1e-4)
    assert drawn.ends.max() <= 1e-8


def test_without_diffrax_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diffrax", None)
    with pytest.raises(InputError, match=r"vitrify\[flow\]"):
        flow(lambda x, _: x, np.zeros(1))


@pytest.mark.slow
def test_a_flow_whose_time_is_over_does_not_rest() -> None:
    first = np.random.default_rng(1).normal(size=(2, 3))
    short = flow(lambda x, _: x["y"] @ x["y"], {"y": first}, until=0.1, saves=3)
    assert not short.resting.any()
    np.testing.assert_allclose(short.ends["y"], first * np.exp(-0.2), rtol=1e-8)
    np.testing.assert_allclose(short.times[:, -1], 0.1)


@pytest.mark.slow
def test_a_transformer_flows_down_the_exact_loss_of_its_sandbox() -> None:
    box, family = Markov(0.2, 0.3, 4), TransformerFamily(layers=1, heads=1, d_model=2, units=2, norm=False)
    keys = jax.random.split(jax.random.key(1), 2)
    starts = jax.vmap(lambda key: family.first(family.architecture(box), key))(keys)
    row = jax.tree.map(lambda x: np.stack([x, x]), strings(box))
    found = flow(population_loss(family, box), starts, row, until=300.0, saves=10)
    floor = exact_means(box, np.zeros((16, 4, 2)), strings(box))["floor"]
    assert (np.diff(found.losses, axis=1) <= 1e-10).all()
    assert (found.losses >= floor - 1e-12).all()
    assert (found.losses[:, -1] - floor <= 0.05).all()
