r"""Networks trained on a random hierarchy: losses by training set, limited views, and the exact stairs.

A learner is trained on $P$ sequences; its loss is the least test loss of the run (early stopping). Stair $l$ is the
exact loss of the best predictor that sees the last $s^l - 1$ leaves, from `Hierarchy.plateaus()` of the same grammar. A
learner has taken step $l$ where its loss is half-way between stairs $l - 1$ and $l$.

A reader sees only the last leaves. Its loss is the exact loss for that view plus the mean KL divergence of its
predictions: this has the same mean as the test loss, without the noise of the sampled answers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Floats
from vitrify.claims.trials.ladders import reached
from vitrify.claims.trials.trial import Trained, Trial
from vitrify.constructions.grammar_unambiguous import unambiguous
from vitrify.kit import assemble
from vitrify.learn.measure import divergence, log_probabilities
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import PIECE, TEST_SEED
from vitrify.learn.recipe import Recipe
from vitrify.net.inference import encode, logits
from vitrify.net.inference import log_probabilities as log_probabilities_of
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.hierarchy import HierarchySandbox
from vitrify.spec.grammars.families import random_hierarchy

RUNGS = 9  # loss levels between two steps at which an exponent is fitted
SEEDS = range(8)

Learner: TypeAlias = tuple[Family, Recipe]


def last_leaf(v: int, m: int, L: int) -> HierarchySandbox:
    """Return the sandbox of eight grammars in which the last leaf is predicted."""
    return HierarchySandbox(v=v, m=m, L=L, mode="last", grammars=8, levels=False)


def learner(
    box: HierarchySandbox, family: Family, recipe: Recipe, sizes: Sequence[int], seeds: Sequence[int] = SEEDS
) -> Trial:
    """Return the trial [size, member] over training sets of several sizes; each member has its seed and grammar."""
    members = [(number % box.grammars, seed) for number, seed in enumerate(seeds)]
    return Trial(box, family, recipe, seeds, axes={"train_examples": sizes, "grammar,seed": members})


def least_losses(nets: Trained) -> Array:
    """Return the least test loss [member, size]: the exact optimum plus the least excess on the same sequences."""
    excess = np.nanmin(nets.curves("excess"), axis=-1).T
    return excess + stairs(nets.trial.sandbox, len(excess))[:, -1:]


def stairs(box: HierarchySandbox, members: int) -> Floats:
    """Return the exact losses [member, level] of the grammar of every member."""
    return np.array([replace(box, grammar=number % box.grammars).plateaus() for number in range(members)])


def middles(stair: Array) -> Array:
    """Return the losses [step] half-way between stairs 0 and 1, 1 and 2, …"""
    return (stair[:-1] + stair[1:]) / 2


def steps_taken(sizes: Sequence[float], losses: Array, stair: Array) -> list[float]:
    """Return the sizes at which a loss is half-way down each step; infinite where it never is."""
    return [reached(sizes, losses, level) for level in middles(stair)]


def flattest(sizes: Sequence[float], losses: Array, stair: Array) -> float:
    """Return the loss at the flattest segment of a curve between its second and third step, or NaN."""
    above, below = middles(stair)[1:3]
    segments = [
        ((losses[at - 1] - losses[at]) / np.log(sizes[at] / sizes[at - 1]), (losses[at - 1] + losses[at]) / 2)
        for at in range(1, len(sizes))
        if above >= losses[at - 1] and losses[at] >= below
    ]
    return float(min(segments)[1]) if segments else math.nan


def expected_rows(box: HierarchySandbox) -> dict[str, list[float]]:
    """Return the training sequences at which each architecture is expected to take step 1, 2, …, L."""
    scale, levels = box.v / (1 - box.m / box.v ** (box.s - 1)), range(1, box.L + 1)
    shared, apart = [level + (level > 1) for level in levels], [2 * level - 1 for level in levels]
    powers = {"convolution": shared, "transformer": apart}
    return {name: [scale * float(box.m) ** power for power in own] for name, own in powers.items()}


def exponent(sizes: Sequence[float], losses: Array, stair: Array) -> float:
    r"""Return $\beta$ of loss $-$ optimum $\sim P^{-\beta}$ between the middles of the second and the third step."""
    middle, floor = middles(stair), stair[-1]
    rungs = np.geomspace(middle[1] - floor, middle[2] - floor, RUNGS)
    at = np.log([reached(sizes, losses, floor + rung) for rung in rungs])
    return float(-np.polyfit(at, np.log(rungs), 1)[0]) if np.isfinite(at).all() else math.nan


def reader(box: HierarchySandbox, family: Family, recipe: Recipe, windows: Sequence[int]) -> Trial:
    """Return the trial [window, member] of nets that see only the last leaves, each member with its grammar."""
    axes = {"window": windows, "grammar,seed": list(enumerate(SEEDS))}
    return Trial(replace(box, widest=max(windows)), family, recipe, SEEDS, axes=axes)


def reader_losses(nets: Trained) -> dict[int, tuple[Array, Array]]:
    """Return the exact and the learned losses [member] at the last leaf after training, by window."""
    box, windows, kl = nets.trial.sandbox, nets.trial.axes["window"], nets.final("kl")
    exact = [np.array([replace(box, grammar=g).stair(window) for g in range(kl.shape[1])]) for window in windows]
    return {window: (own, own + above) for window, own, above in zip(windows, exact, kl, strict=True)}


def stair_levels(box: HierarchySandbox, windows: Collection[int], missing: int) -> dict[int, int]:
    """Return the stair level for each window; the window of level 2 may lack some leaves (for the saboteur)."""
    views = {level: int(box.s**level) - 1 for level in range(1, box.L + 1)}
    views[2] -= missing if views[2] - missing in windows else 0
    return {window: level for level, window in views.items() if window in windows}


def next_leaf(box: HierarchySandbox, family: Family, recipe: Recipe) -> Trial:
    """Return the trial [member] of nets that predict every next leaf."""
    members = {"grammar,seed": list(enumerate(SEEDS))}
    return Trial(replace(box, mode="next"), family, recipe, SEEDS, axes=members)


def every_leaf(nets: Trained) -> tuple[Array, Array]:
    """Return the exact and the learned losses [member, leaf] of nets that were trained on every next leaf."""
    box, family, count = nets.trial.sandbox, nets.trial.family, nets.trial.recipe.test_examples
    net = family.architecture(box)

    @jax.jit
    def far(arrays: Mapping[str, Array], grammar: Array) -> Array:
        own = replace(box, grammar=grammar)

        def piece(start: Array) -> Array:
            row = examples(own, TEST_SEED, "test", start, PIECE)
            logp = log_probabilities(family.logits(net, own, arrays, row))
            return divergence(jax.vmap(own.optimal)(row), logp).mean(axis=0)

        return jax.lax.map(piece, jnp.arange(0, count, PIECE, dtype=jnp.uint32)).mean(axis=0)

    above = [np.asarray(far(dict(run.weights.arrays), jnp.float32(g))) for g, run in enumerate(nets.runs)]
    exact = np.array([replace(box, grammar=number).floor() for number in range(len(above))])
    return exact, exact + np.array(above)


@cache
def built_distance(box: HierarchySandbox, members: int, count: int) -> Floats:
    """Return the largest difference of the built net's loss from the exact one over sequences: [member, leaf]."""
    distances = []
    for number in range(members):
        own = replace(box, grammar=number)
        grammar = random_hierarchy(box.v, box.m, box.s, box.L, seed=box.task + number, classes=box.roots)
        weights = assemble(unambiguous(grammar))
        net = weights.architecture
        index = {word: at for at, word in enumerate(net.output.symbols)}
        leaves = jax.device_get(examples(own, number, "probe", 0, count)).targets
        sentences = [[box.words[leaf] for leaf in row] for row in leaves]
        outputs = logits(weights, [encode(net, sentence) for sentence in sentences])
        far = np.zeros(box.leaves)
        for sentence, scores in zip(sentences, outputs, strict=True):
            logq, laws = log_probabilities_of(net.output, scores), grammar.next_word_probs_along(sentence)
            exact = np.log([float(law[word]) for law, word in zip(laws, sentence, strict=False)])
            there = logq[np.arange(box.leaves), [index[word] for word in sentence]]
            far = np.maximum(far, np.abs(exact - there))
        distances.append(far)
    return np.array(distances)
