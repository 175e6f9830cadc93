"""Networks that see only the last leaves of a random hierarchy: losses, the built net, and null hypotheses.

The loss of a reader is the exact loss for its view plus the mean KL divergence of its predictions: this has the same
mean as the test loss, without the noise of the sampled answers. Measured are, for each kind of reader, the `exact`
losses and those of who sees a leaf `less`, [window, member].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Floats
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.hierarchies import last_leaf, stairs
from vitrify.claims.trials.trial import Trained, Trial, measured, trained
from vitrify.constructions.grammar_unambiguous import unambiguous
from vitrify.kit import assemble
from vitrify.learn.measure import PIECE, TEST_SEED, divergence, log_probabilities
from vitrify.learn.models.catalogue import Family
from vitrify.learn.recipe import Recipe
from vitrify.net.inference import encode, logits
from vitrify.net.inference import log_probabilities as log_probabilities_of
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.hierarchy import HierarchySandbox
from vitrify.spec.grammars.families import random_hierarchy

BUILT_ROWS = 16  # sequences on which a built net is compared


def hierarchy(v: int, m: int, L: int, seeds: Sequence[int]) -> HierarchySandbox:
    """Return the sandbox in which the last leaf is predicted, with the grammars of consecutive seeds."""
    return replace(last_leaf(v, m, L), task=seeds[0], grammars=len(seeds))


def reader(
    box: HierarchySandbox, family: Family, recipe: Recipe, windows: Sequence[int], seeds: Sequence[int]
) -> Trial:
    """Return the trial [window, member] of nets that see only the last leaves, each member with its grammar."""
    axes = {"window": windows, "grammar,seed": list(enumerate(seeds))}
    return Trial(replace(box, widest=max(windows)), family, recipe, seeds, axes=axes)


def exact_losses(box: HierarchySandbox, windows: Sequence[int], members: int) -> Floats:
    """Return the exact losses [window, member] at the last leaf of who sees the last leaves."""
    boxes = [replace(box, grammar=number) for number in range(members)]
    return np.array([[own.stair(window) for own in boxes] for window in windows])


def next_leaf(box: HierarchySandbox, family: Family, recipe: Recipe, seeds: Sequence[int]) -> Trial:
    """Return the trial [member] of nets that predict every next leaf."""
    members = {"grammar,seed": list(enumerate(seeds))}
    return Trial(replace(box, mode="next"), family, recipe, seeds, axes=members)


def every_leaf(nets: Trained) -> tuple[Array, Array, Array]:
    """Return losses [member, leaf]: the exact ones, those of trained nets, and the best without the highest level.

    Nets were trained on every next leaf. Without the highest level only the $s^{L-1} - 1$ leaves before each are seen.
    """
    box, family, count = nets.trial.sandbox, nets.trial.family, nets.trial.recipe.test_examples
    net = family.architecture(box)

    @jax.jit
    def far(arrays: Mapping[str, Array], grammar: Array) -> Array:
        own = replace(box, grammar=grammar)

        def piece(start: Array) -> Array:
            row = examples(own, TEST_SEED, "test", start, PIECE)
            best, below = (jax.vmap(each)(row) for each in (own.optimal, partial(own.level, level=box.L - 1)))
            learned = log_probabilities(family.logits(net, own, arrays, row))
            return jnp.stack([divergence(best, learned).mean(axis=0), divergence(best, below).mean(axis=0)])

        return jax.lax.map(piece, jnp.arange(0, count, PIECE, dtype=jnp.uint32)).mean(axis=0)

    above = np.array([far(dict(run.weights.arrays), jnp.float32(number)) for number, run in enumerate(nets.runs)])
    exact = np.array([replace(box, grammar=number).floor() for number in range(len(above))])
    return exact, exact + above[:, 0], exact + above[:, 1]


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


def measure(subject: Subject) -> Measured:
    """Return the curves and exact losses; with convolutional nets the stairs and distances of built nets too."""
    arrays = dict(measured(subject))
    for name, nets in trained(subject).items():
        box, members = nets.trial.sandbox, len(nets.trial.seeds)
        if name == "next":
            exact, learned, without = every_leaf(nets)  # [member, leaf]
            arrays |= {"next/exact": exact, "next/learned": learned, "next/without": without}
            continue
        windows = nets.trial.axes["window"]
        arrays[f"{name}/exact"] = exact_losses(box, windows, members)
        arrays[f"{name}/less"] = exact_losses(box, [window - 1 for window in windows], members)
        if name == "convolution":
            arrays |= {"stairs": stairs(box, members), "built": built_distance(box, members, BUILT_ROWS)}
    return arrays


# Null hypotheses: how far nets are from the exact loss, on redrawn grammars


def _redrawn(arrays: Measured, name: str, rng: np.random.Generator) -> dict[str, Array]:
    """Return the exact losses and the divergences [window, member, step] of nets with redrawn grammars."""
    count = arrays[f"{name}/kl"].shape[1]
    drawn = rng.integers(count, size=count)
    return {f"{name}/{key}": arrays[f"{name}/{key}"][:, drawn] for key in ("exact", "less", "kl")}


def leaf_less(
    subject: Subject, arrays: Measured, rng: np.random.Generator, *, name: str, window: int | None = None
) -> Measured:
    """Return measurements in which nets with a window, the widest by default, have no use for its farthest leaf."""
    own, windows = _redrawn(arrays, name, rng), list(subject.trials[name].axes["window"])
    at = windows.index(window or max(windows))
    own[f"{name}/kl"][at, :, -1] += (own[f"{name}/less"] - own[f"{name}/exact"])[at]
    return {**arrays, **own}


def no_top(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which nets for every next leaf are as far from the best one without the highest level."""
    del subject
    exact, learned, without = (arrays[f"next/{key}"] for key in ("exact", "learned", "without"))
    drawn = rng.integers(len(exact), size=len(exact))
    return {**arrays, "next/exact": exact[drawn], "next/learned": (learned + without - exact)[drawn]}


def shallow(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the built net has the loss of the last stair but one at the last leaf."""
    del subject
    drawn = rng.integers(len(arrays["stairs"]), size=len(arrays["stairs"]))
    built, stair = arrays["built"][drawn], arrays["stairs"][drawn]
    built[:, -1] = stair[:, -2] - stair[:, -1]
    return {**arrays, "built": built, "stairs": stair}
