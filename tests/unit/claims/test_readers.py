"""Losses of readers of a hierarchy, against a list of all its strings."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

from at_once import logits
from vitrify.claims import limited_context_networks_reach_the_exact_losses_of_a_hierarchy as claim
from vitrify.claims.trials.trial import run_trial
from vitrify.claims.trials.views import built_distance, every_leaf, exact_losses, next_leaf, reader
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.hierarchy import HierarchySandbox

BOX = HierarchySandbox(v=3, m=2, L=2, mode="last", grammars=2, levels=False)
UNTRAINED = Recipe(steps=0, test_examples=4096, evals_per_doubling=0)
SEEDS = (3, 5)


def strings(box: HierarchySandbox) -> Any:
    """Every derivation's leaves: all are equally probable."""
    low, high = box.rules
    sides = [high[root, p] for root in range(box.roots) for p in range(box.m)]
    return np.array(
        [(*low[left, p], *low[right, q]) for left, right in sides for p, q in product(range(box.m), repeat=2)]
    )


def loss(said: Any, targets: Any) -> Any:
    """The cross-entropy [question]."""
    logp = np.asarray(jax.nn.log_softmax(said))
    return -np.take_along_axis(logp, targets[..., None], axis=-1)[..., 0].mean(axis=0)


def started(family: Any, net: Any, seed: int) -> Any:
    """All first arrays of a seed."""
    key = jax.random.key(seed, impl="threefry2x32")
    return jax.jit(lambda: family.arrays(net, family.first(net, key)))()


@pytest.mark.slow
def test_losses_at_the_last_leaf_are_those_over_all_strings() -> None:
    family = HierarchicalFamily(channels=8)
    trial = reader(BOX, family, UNTRAINED, (1, 3), SEEDS)
    above, exactly = run_trial(trial, None).final("kl"), exact_losses(BOX, (1, 3), 2)
    net = family.architecture(wide := replace(BOX, widest=3))
    for window, exact, learned in zip((1, 3), exactly, exactly + above, strict=True):
        for grammar, seed in enumerate(SEEDS):
            own = replace(wide, grammar=grammar, window=window)
            leaves, arrays = strings(own), started(family, net, seed)
            tokens = np.where(np.arange(3) < 3 - window, 3, leaves[:, :-1])
            said = logits(family, net, own, arrays, Example(tokens, leaves, np.ones(leaves.shape), {}))
            assert np.isclose(learned[grammar], loss(said, leaves[:, -1:])[0], atol=0.02)
            assert np.isclose(exact[grammar], own.plateaus()[{1: 1, 3: 2}[window]])


@pytest.mark.slow
def test_losses_at_every_leaf_are_those_over_all_strings() -> None:
    family = TransformerFamily(layers=1, heads=2, d_model=8, units=8)
    exact, learned, without = every_leaf(run_trial(next_leaf(BOX, family, UNTRAINED, SEEDS), None))
    net = family.architecture(replace(BOX, mode="next"))
    for grammar, seed in enumerate(SEEDS):
        own = replace(BOX, mode="next", grammar=grammar)
        leaves, arrays = strings(own), started(family, net, seed)
        row = Example(leaves[:, :-1], leaves, np.ones(leaves.shape), {})
        said = logits(family, net, own, arrays, row)
        assert np.allclose(learned[grammar], loss(said, leaves), atol=0.02)
        assert np.allclose(exact[grammar], np.asarray(own.floor()), atol=1e-6)
        assert np.isclose(without[grammar, -1], replace(own, mode="last").plateaus()[-2], atol=0.03)
        assert np.allclose(without[grammar, :2], exact[grammar, :2], atol=1e-6)


def planted(subject: Any) -> dict[str, Any]:
    """Measurements in which every net is 0.2 % above the exact loss, and views are worth what they may be."""
    arrays: dict[str, Any] = {"stairs": np.tile([2.4, 1.4, 0.55, 0.25, 0.17], (16, 1)), "built": np.zeros((16, 16))}
    for name in subject.trials:
        if name == "next":
            exact = np.linspace(2.4, 0.2, 8)[None].repeat(16, axis=0)
            arrays |= {"next/exact": exact, "next/learned": 1.002 * exact, "next/without": exact + 0.1}
            continue
        exact = np.array([{1: 1.4, 2: 1.1, 3: 0.55, 7: 0.25, 15: 0.17}[w] for w in subject.trials[name].axes["window"]])
        exact = exact[:, None].repeat(16, axis=1)
        arrays |= {f"{name}/exact": exact, f"{name}/less": 1.02 * exact, f"{name}/kl": 0.002 * exact[..., None]}
    return arrays


def test_statements_hold_where_they_are_planted_and_nulls_are_rejected() -> None:
    for subject in claim.large():
        arrays, rng = planted(subject), np.random.default_rng(0)
        verdicts = claim.judge(subject, arrays).statements
        assert set(verdicts.values()) == {"holds"}
        for key in verdicts:
            assert claim.judge(subject, claim.CLAIM.nulls[key](subject, arrays, rng)).statements[key] == "fails"


def test_built_nets_are_at_the_exact_loss() -> None:
    assert built_distance(BOX, 2, 8).max() < 1e-12
