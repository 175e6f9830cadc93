"""Losses of readers of a hierarchy, against a list of all its strings."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import jax
import numpy as np

from vitrify.claims._readers import Reader, built_distance, every_leaf, told_losses
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.catalogue import Row
from vitrify.sandboxes.hierarchy import Hierarchy

BOX = Hierarchy(v=3, m=2, L=2, mode="last", grammars=2, levels=False)
UNTRAINED = Recipe(steps=0, test_rows=4096, marks=0)
SEEDS = (3, 5)


def strings(box: Hierarchy) -> Any:
    """Every derivation's leaves: all are equally probable."""
    low, high = box.rules
    sides = [high[root, p] for root in range(box.roots) for p in range(box.m)]
    return np.array(
        [(*low[left, p], *low[right, q]) for left, right in sides for p, q in product(range(box.m), repeat=2)]
    )


def loss(logits: Any, targets: Any) -> Any:
    """The cross-entropy [question]."""
    logp = np.asarray(jax.nn.log_softmax(logits))
    return -np.take_along_axis(logp, targets[..., None], axis=-1)[..., 0].mean(axis=0)


def test_losses_at_the_last_leaf_are_those_over_all_strings() -> None:
    family = HierarchicalFamily(channels=8)
    found = told_losses(Reader(family, UNTRAINED, (1, 3)), BOX, SEEDS)
    net = family.architecture(wide := replace(BOX, widest=3))
    for window, (exact, learned) in found.items():
        for grammar, seed in enumerate(SEEDS):
            own = replace(wide, grammar=grammar, window=window)
            leaves, arrays = strings(own), family.first(net, jax.random.key(seed, impl="threefry2x32"))
            tokens = np.where(np.arange(3) < 3 - window, 3, leaves[:, :-1])
            said = family.logits(net, own, arrays, Row(tokens, leaves, np.ones(leaves.shape), {}))
            assert np.isclose(learned[grammar], loss(said, leaves[:, -1:])[0], atol=0.02)
            assert np.isclose(exact[grammar], own.plateaus()[{1: 1, 3: 2}[window]])


def test_losses_at_every_leaf_are_those_over_all_strings() -> None:
    family = TransformerFamily(layers=1, heads=2, d_model=8, units=8)
    exact, learned = every_leaf(Reader(family, UNTRAINED), BOX, SEEDS)
    net = family.architecture(replace(BOX, mode="next"))
    for grammar, seed in enumerate(SEEDS):
        own = replace(BOX, mode="next", grammar=grammar)
        leaves, start = strings(own), family.first(net, jax.random.key(seed, impl="threefry2x32"))
        row = Row(leaves[:, :-1], leaves, np.ones(leaves.shape), {})
        said = family.logits(net, own, family.arrays(net, start), row)
        assert np.allclose(learned[grammar], loss(said, leaves), atol=0.02)
        assert np.allclose(exact[grammar], np.asarray(own.floor()), atol=1e-6)


def test_built_nets_are_at_the_exact_loss() -> None:
    assert built_distance(BOX, 2, 8).max() < 1e-12
