"""Tied nets that ignore a chain: the bound of the theorem, kernels by their λ, planted outcomes, and the nulls."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from cases import each
from vitrify.claims import tied_weights_ignore_chains_without_positive_correlation as claim
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import traps

TWO = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.2, 0.8], [0.7, 0.3]]])  # p + q = 0.5 and 1.5
dirichlet = partial(traps.dirichlet, np.random.default_rng(0))


def planted() -> tuple[Subject, Measured]:
    """Return a subject and measurements in which λ decides, and times are exactly those of its rate."""
    (subject,) = claim.subjects()
    rng, shape = np.random.default_rng(0), (2, len(subject.data["numbers"]), subject.data["each"])
    lambdas = np.sort(rng.uniform(-0.1, 0.1, shape))
    saved = np.where(lambdas > 0, 0.05, 0.0)
    arrays = {"λ": lambdas, "gap": np.full(shape, 0.1), "rivals": rng.random((3, *shape)) < 0.5}
    kept = ("no MLP", "no MLP, smaller start", "no MLP, large start", "MLP")
    arrays |= {f"{name}/saved": saved if name in kept else arrays["gap"] for name in traps.NETS}
    for name, ratio in zip(traps.TIMED, (1e2, 1e4), strict=True):
        arrays[f"{name}/time"] = np.where(lambdas > 0, np.log(ratio) / np.log1p(abs(lambdas)), 0.0)
    arrays |= {"Hessian": np.zeros((18, shape[1])), "Hessian of rivals": np.full((2, 18, shape[1]), 0.1)}
    total = traps.DRAWN // shape[1]
    arrays["counts"] = np.array([[total * part] * shape[1] for part in (0.5, 0.163, 0.025, 0.0015)], dtype=int)
    return subject, arrays


def test_two_states_are_a_trap_if_p_plus_q_is_above_one() -> None:
    p, q = TWO[:, 0, 1], TWO[:, 1, 0]
    np.testing.assert_allclose(traps.top(TWO), 2 * p * q / (p + q) ** 2 * (1 - p - q), atol=1e-15)
    np.testing.assert_array_equal(traps.rival_signs(TWO), [[False, True]] * 3)


@each("states", [2, 3, 5])
def test_stationary_distributions_and_null_vectors(states: int) -> None:
    kernels = dirichlet(states, 50)
    pi, c = traps.stationary(kernels), traps.covariance(kernels)
    np.testing.assert_allclose(np.einsum("ka,kab->kb", pi, kernels), pi, atol=1e-12)
    np.testing.assert_allclose([c.sum(axis=1), c.sum(axis=2)], 0, atol=1e-12)


@each("states", [3, 4])
def test_kernels_spread_their_lambda_evenly(states: int) -> None:
    lambdas = traps.top(traps.spread(7, states, 64))
    goals = np.linspace(traps.LOWEST[states], traps.HIGHEST, 65)
    assert abs(lambdas - (goals[1:] + goals[:-1]) / 2).max() < 0.01


def test_no_net_with_a_small_mlp_is_better_than_one_that_ignores_a_trap() -> None:
    """The theorem: with a Lipschitz constant of at most -λ/|C| the loss is at least H(π), whatever E and b."""
    rng, kernels = np.random.default_rng(1), dirichlet(3, 400)
    kernels = kernels[traps.top(kernels) < -0.005][:20]
    bounds = -traps.top(kernels) / np.linalg.norm(traps.covariance(kernels), ord=2, axis=(1, 2))
    lowest = []
    for pi, kernel, bound, alone in zip(
        traps.stationary(kernels), kernels, bounds, traps.entropies(kernels)[0], strict=True
    ):
        first, second = rng.normal(size=(4, 8)), rng.normal(size=(8, 4))
        second *= bound / (np.linalg.norm(first, ord=2) * np.linalg.norm(second, ord=2))
        for size in (0.01, 0.1, 1.0, 3.0):
            point = {"E": size * rng.normal(size=(3, 4)), "W_1": first, "W_2": second}
            point["b"] = np.log(pi) + size * rng.normal() * rng.normal(size=3)
            lowest.append(float(traps.expected_loss(point, pi, kernel)) - alone)
    assert len(lowest) >= 40
    assert min(lowest) > -1e-5  # float32


def test_an_escape_is_half_of_what_is_saved() -> None:
    assert traps.escape_times(np.array([[0.0, 0.0], [0.1, 0.0], [0.4, 0.2], [0.6, 1.0]])).tolist() == [2, 3]


def test_slopes_and_delays_of_planted_times() -> None:
    _, arrays = planted()
    timed = arrays["λ"] > traps.TIMED_FROM
    np.testing.assert_allclose(traps.time_slopes(arrays["λ"], arrays["λ"] ** -2.0, timed), -2)
    times = [arrays[f"{name}/time"] for name in traps.TIMED]
    np.testing.assert_allclose(traps.delays(arrays["λ"], times, timed), 1)


def test_statements_hold_where_lambda_decides_and_each_fails_on_its_null() -> None:
    subject, arrays = planted()
    assert set(claim.judge(subject, arrays).statements.values()) == {"holds"}
    for key, null in claim.CLAIM.nulls.items():
        for seed in range(10):
            verdicts = claim.judge(subject, null(subject, arrays, np.random.default_rng(seed))).statements
            assert {each for each, verdict in verdicts.items() if verdict != "holds"} == {key}


@pytest.mark.parametrize("name", ["no MLP", "MLP, large start", "untied"])
def test_training_on_the_expected_loss(name: str) -> None:
    """A tied net stays where p + q > 1; one with an MLP from a large start and an untied one save all they can."""
    curves = traps.saved(traps.NETS[name]._replace(steps=3000), TWO, 0)
    alone, rate = traps.entropies(TWO)
    assert curves[-1, 0] > 0.01
    assert abs(curves[-1, 1] - (0 if name == "no MLP" else (alone - rate)[1])) < 1e-6
