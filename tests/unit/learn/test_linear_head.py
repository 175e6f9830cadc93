"""One linear head over one-hot tokens: its definition, its short way to the last answer, and what its flow keeps."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from at_once import first as first_of
from at_once import logits
from vitrify.claims.trials.facts import every_fact, relation_loss
from vitrify.learn.flow import flow
from vitrify.learn.measure import mean_loss
from vitrify.learn.models.linear_head import SAID, SCORES, LinearHeadFamily
from vitrify.sandboxes.facts import FactRecall

BOX = FactRecall(subjects=3, relations=2, per_relation=2, noise=2, length=5)
BARE = FactRecall(subjects=3, relations=2, per_relation=2, noise=0, length=3)


def started(box: FactRecall, **choices: Any) -> tuple[LinearHeadFamily, Any, dict[str, Any]]:
    family = LinearHeadFamily(start=0.5, spread=1.0, **choices)
    net = family.architecture(box)
    return family, net, first_of(family, net, 1)


def test_it_sums_up_what_tokens_say_by_their_scores_and_counting_them_is_the_same() -> None:
    family, net, first = started(BOX)
    row = jax.tree.map(np.asarray, jax.jit(jax.vmap(BOX.draw))(jax.random.split(jax.random.key(0), 6)))
    scores, said = np.asarray(first[SCORES])[0, :, 0], np.asarray(first[SAID])[0]
    tokens = row.tokens + 1  # BOS is an input that no row has
    wanted = np.array([[sum(scores[z] * said[z] for z in one[:end]) for end in range(1, 6)] for one in tokens])
    arrays = family.arrays(net, first)
    np.testing.assert_allclose(logits(family, net, BOX, arrays, row), wanted, rtol=1e-4, atol=1e-5)
    quick = logits(LinearHeadFamily(last=True), net, BOX, arrays, row)
    assert quick.shape == (6, 1, len(BOX.answers))
    np.testing.assert_allclose(quick, wanted[:, -1:], rtol=1e-4, atol=1e-5)


def test_numbers_start_alike_unless_a_spread_is_asked_for() -> None:
    net = LinearHeadFamily().architecture(BOX)
    assert {float(x) for array in LinearHeadFamily().first(net, jax.random.key(0)).values() for x in array.ravel()} == {
        np.float32(1e-5)
    }
    other = LinearHeadFamily(start=1.0, spread=0.5).first(net, jax.random.key(0))[SAID]
    assert abs(float(other.std()) - 0.5) < 0.15


@pytest.mark.slow
def test_the_flow_keeps_the_difference_of_squares_of_every_token() -> None:
    family, net, first = started(BARE, last=True)
    row = every_fact(BARE)
    found = flow(
        lambda point, _: mean_loss(family.logits(net, BARE, family.arrays(net, point), row), row),
        {name: np.asarray(array)[None] for name, array in first.items()},
        until=20.0,
        conserved={"kept": lambda p: (p[SAID][0] ** 2).sum(axis=-1) - p[SCORES][0, :, 0] ** 2},
    )
    assert found.losses[0, -1] < found.losses[0, 0] - 0.3
    assert found.drift["kept"] < 1e-7


def test_the_loss_of_a_relation_counts_all_of_its_answers_as_right() -> None:
    row = every_fact(BARE)
    logits = np.random.default_rng(0).normal(size=(6, 1, len(BARE.answers)))
    p = np.exp(logits[:, 0]) / np.exp(logits[:, 0]).sum(axis=1, keepdims=True)
    own = [[a.startswith(f"a{r[1:]}.") for a in BARE.answers] for _, r, _ in BARE.spec.facts]
    np.testing.assert_allclose(
        relation_loss(BARE, logits, row), -np.log((p * np.array(own)).sum(axis=1)).mean(), rtol=1e-5
    )
    assert [BARE.answers[a] for a in row.targets[:, -1]] == [a for _, _, a in BARE.spec.facts]
    assert [[BARE.symbols[t] for t in one] for one in row.tokens] == [[s, r, "<eos>"] for s, r, _ in BARE.spec.facts]
