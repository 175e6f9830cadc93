"""Plateaus of planted loss curves, and the nulls that have none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.claims import in_context_markov_chains_are_learned_in_stages as claim
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import plateaus

LEVELS = {"uniform": 1.1, "unigram": 1.0, "bigram": 0.85}


def planted() -> tuple[Subject, Measured]:
    """Return a subject and curves of eight runs that go through the three stages of the claim, with some noise."""
    (subject,) = claim.subjects()
    trial = subject.trials["chains"]
    steps = np.array(trial.recipe.eval_steps())
    at, rng = np.log1p(steps), np.random.default_rng(0)
    shape = len(trial.seeds), len(steps)
    early, late = (1 / (1 + np.exp(-(at - middle) / 0.06)) for middle in (np.log(15), np.log(100)))
    loss = 1.1 - 0.1 * early - 0.15 * late + rng.normal(0, 1e-4, shape)
    kl = {
        "kl": 0.2 - 0.08 * early - 0.11 * late,
        "kl.unigram": 0.12 - 0.11 * early + 0.09 * late,
        "kl.uniform": 0.001 + 0.12 * early + 0.08 * late,
    }
    floors = {"floor": LEVELS["bigram"], "floor.unigram": LEVELS["unigram"], "floor.uniform": LEVELS["uniform"]}
    arrays = {f"chains/{name}": np.broadcast_to(each, shape) for name, each in (kl | floors | {"step": steps}).items()}
    previous = np.stack([0.05 + 0.9 * late, np.full(len(steps), 0.1)], axis=-1)
    arrays |= {"chains/loss": loss, "chains/previous": np.broadcast_to(previous, (*shape, 2))}
    return replace(subject, trials={"chains": trial}), {**arrays, "chains/lengths": np.full(shape[0], shape[1])}


def test_planted_stages_hold_and_each_statement_is_rejected_on_its_null() -> None:
    subject, arrays = planted()
    assert set(claim.judge(subject, arrays).statements.values()) == {"holds"}
    for key, null in claim.CLAIM.nulls.items():
        rng = np.random.default_rng(0)
        verdicts = [claim.judge(subject, null(subject, arrays, rng)).statements for _ in range(5)]
        assert {each[key] for each in verdicts} == {"fails"}, key


def test_a_smooth_fall_keeps_its_ends_and_the_time_of_its_arrival() -> None:
    subject, arrays = planted()
    loss = plateaus.smooth(subject, arrays, np.random.default_rng(0))["chains/loss"]
    np.testing.assert_allclose(loss[:, [0, -1]], arrays["chains/loss"][:, [0, -1]], atol=2e-3)
    assert abs(np.diff(loss, axis=1)).max() < 0.05


def test_middles_are_found_between_measurements() -> None:
    steps, curves = [0, 1, 3], np.array([[0.0, 0.25, 1.0]])
    np.testing.assert_allclose(plateaus.middle_of_rise(steps, curves), [np.log(2) + np.log(2) / 3])
    found = plateaus.middle_of_fall(steps, 1 - curves, [{"one": 0.4, "two": 0.6}], "one", "two")
    np.testing.assert_allclose(found, [np.log(2) + np.log(2) / 3])
    np.testing.assert_array_equal(plateaus.reached(steps, curves, 0.9), [3])
