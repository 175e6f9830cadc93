"""Losses of readers of a hierarchy, against a list of all its strings."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

from at_once import logits
from vitrify.claims.trials.hierarchies import built_distance, every_leaf, next_leaf, reader, reader_losses
from vitrify.claims.trials.trial import run_trial
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
    trial = reader(BOX, family, UNTRAINED, (1, 3))
    found = reader_losses(run_trial(replace(trial, axes={**trial.axes, "grammar,seed": list(enumerate(SEEDS))}), None))
    net = family.architecture(wide := replace(BOX, widest=3))
    for window, (exact, learned) in found.items():
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
    trial = next_leaf(BOX, family, UNTRAINED)
    exact, learned = every_leaf(run_trial(replace(trial, axes={"grammar,seed": list(enumerate(SEEDS))}), None))
    net = family.architecture(replace(BOX, mode="next"))
    for grammar, seed in enumerate(SEEDS):
        own = replace(BOX, mode="next", grammar=grammar)
        leaves, arrays = strings(own), started(family, net, seed)
        row = Example(leaves[:, :-1], leaves, np.ones(leaves.shape), {})
        said = logits(family, net, own, arrays, row)
        assert np.allclose(learned[grammar], loss(said, leaves), atol=0.02)
        assert np.allclose(exact[grammar], np.asarray(own.floor()), atol=1e-6)


def test_built_nets_are_at_the_exact_loss() -> None:
    assert built_distance(BOX, 2, 8).max() < 1e-12
