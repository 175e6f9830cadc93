"""Readers of a hierarchy and how far their losses are from the exact ones: of few leaves, of every leaf, built ones.

A loss is the exact one of the grammar, plus the mean divergence of what the reader says from the exact distribution: it
has the same mean as the loss on rows, without the chance in their answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.constructions.grammar_unambiguous import unambiguous
from vitrify.kit import assemble
from vitrify.learn.measure import divergence, log_probabilities
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import PIECE, TEST_SEED
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.net.run import encode, logits
from vitrify.net.run import log_probabilities as log_probabilities_of
from vitrify.sandboxes.catalogue import rows
from vitrify.sandboxes.hierarchy import Hierarchy
from vitrify.spec.grammars import random_hierarchy

Losses = tuple[Any, Any]  # exact ones and learned ones


@dataclass(frozen=True)
class Reader:
    """A family of networks, how they are trained, and how many of the last leaves they are told, if not all."""

    family: Family
    recipe: Recipe
    windows: tuple[int, ...] = ()


@cache
def told_losses(reader: Reader, box: Hierarchy, seeds: tuple[int, ...]) -> dict[int, Losses]:
    """For each window, the losses [member] at the last leaf after training; all windows are one program."""
    wide = replace(box, widest=max(reader.windows))
    axes = {"window": reader.windows, "grammar,seed": list(enumerate(seeds))}
    runs = train(reader.family, wide, axes=axes, recipe=reader.recipe)
    found = {}
    for at, window in enumerate(reader.windows):
        exact = np.array([replace(box, grammar=number).stair(window) for number in range(len(seeds))])
        own = runs[at * len(seeds) : (at + 1) * len(seeds)]
        found[window] = exact, exact + np.array([run.last["kl"] for run in own])
    return found


@cache
def every_leaf(reader: Reader, box: Hierarchy, seeds: tuple[int, ...]) -> Losses:
    """The losses [member, leaf] of a reader that is trained on every next leaf."""
    box, family = replace(box, mode="next"), reader.family
    runs = train(family, box, axes={"grammar,seed": list(enumerate(seeds))}, recipe=reader.recipe)
    net = family.architecture(box)

    @jax.jit
    def far(arrays: Mapping[str, Array], grammar: Array) -> Array:
        own = replace(box, grammar=grammar)

        def piece(start: Array) -> Array:
            row = rows(own, TEST_SEED, "test", start, PIECE)
            said = log_probabilities(family.logits(net, own, arrays, row))
            return divergence(jax.vmap(own.optimal)(row), said).mean(axis=0)

        return jax.lax.map(piece, jnp.arange(0, reader.recipe.test_rows, PIECE, dtype=jnp.uint32)).mean(axis=0)

    above = [np.asarray(far(dict(run.weights.arrays), jnp.float32(g))) for g, run in enumerate(runs)]
    exact = np.array([replace(box, grammar=number).floor() for number in range(len(seeds))])
    return exact, exact + np.array(above)


@cache
def built_distance(box: Hierarchy, members: int, count: int) -> Any:
    """How far the Bayes predictor built for each grammar is from the exact loss, in its worst row: [member, leaf]."""
    found = []
    for number in range(members):
        own = replace(box, grammar=number)
        grammar = random_hierarchy(box.v, box.m, box.s, box.L, seed=box.task + number, classes=box.roots)
        weights = assemble(unambiguous(grammar))
        net = weights.architecture
        place = {word: at for at, word in enumerate(net.output.symbols)}
        leaves = own.reference(np.random.default_rng(number), count)[1]
        sentences = [[box.words[leaf] for leaf in row] for row in leaves]
        said = logits(weights, [encode(net, sentence) for sentence in sentences])
        far = np.zeros(box.leaves)
        for sentence, scores in zip(sentences, said, strict=True):
            logq, laws = log_probabilities_of(net.output, scores), grammar.next_word_probs_along(sentence)
            exact = np.log([float(law[word]) for law, word in zip(laws, sentence, strict=False)])
            there = logq[np.arange(box.leaves), [place[word] for word in sentence]]
            far = np.maximum(far, np.abs(exact - there))
        found.append(far)
    return np.array(found)
