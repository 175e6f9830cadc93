r"""Topics of words: how value matrices, embeddings and attention treat words of the same and of other topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.trials.trial import Trained, Trial
from vitrify.encoding import JsonObject
from vitrify.learn.models.one_hot_head import EMBED, SCORES, VALUES, OneHotHeadFamily
from vitrify.learn.probes import between_symbols
from vitrify.learn.program import Probe
from vitrify.learn.recipe import Recipe
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.corpus import Corpus
from vitrify.sandboxes.kit.masking import Masked
from vitrify.sandboxes.lda import LDA
from vitrify.sandboxes.topics import Topics

RIDGE = 1e-9
DRAWN_WORDS = 30  # of a matrix, in the figure
RANDOM_MODELS = 6  # whose optimum is compared with the closed form

Documents: TypeAlias = Topics | LDA | Corpus
HEADS = {  # by the part that is trained
    "values": OneHotHeadFamily(learns="values", scale=0.02),
    "embedding": OneHotHeadFamily(learns="embedding", scale=0.1),
    "attention": OneHotHeadFamily(learns="attention", scale=0.02),
    "all": OneHotHeadFamily(learns="all", scale=0.02),
}


@dataclass(frozen=True)
class AtOptimum:
    """Initial weights of a head whose value matrix is optimal for uniform attention."""

    sandbox: Masked
    family: OneHotHeadFamily

    def __call__(self, net: Transformer, key: Array, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the parameters; the value matrix has an unused entry for BOS."""
        del values
        best = np.pad(self.sandbox.best_linear().T, ((1, 0), (0, 0))).astype(np.float32)
        return {**self.family.first(net, key), VALUES: jnp.asarray(best)[None]}


def part_trial(sandbox: Masked, part: str, steps: int, batch: int, lr: float, seeds: int) -> Trial:
    """Return the trial of one part of a head: its values, its embedding, its attention, or all together.

    A part is trained on squared errors, as in the theory; all together on the cross-entropy, on real documents at a
    constant rate.
    """
    family = HEADS[part]
    recipe = Recipe(steps=steps, batch=batch, lr=lr, optimizer="sgd", beta1=0.0, clip=None, warmup=0, test_examples=64)
    if part != "all":
        recipe = replace(recipe, loss="squared", evals_per_doubling=2 if part == "attention" else 1)
    if part != "all" or not isinstance(sandbox, Corpus):
        recipe = replace(recipe, schedule="linear")
    probes: dict[str, Probe] = {"pairs": between_symbols, "norms": _norms} if part in ("attention", "all") else {}
    first = AtOptimum(sandbox, family) if part == "attention" else None
    return Trial(sandbox, family, recipe, range(seeds), probes=probes, first=first)


def _norms(net: object, arrays: Mapping[str, Array], row: object, seen: object) -> Array:
    del net, row, seen
    return jnp.stack([jnp.linalg.norm(arrays[name]) for name in (VALUES, *SCORES)])


def labels_of(words: int, topics: int, shuffled: bool) -> Array:
    """Return the topic of every word, assigned at random if `shuffled`."""
    labels = np.repeat(np.arange(topics), words // topics)
    return np.random.default_rng(0).permutation(labels) if shuffled else labels


def closed_form(sandbox: Masked, words: int) -> float:
    r"""Return $c = 1/(v(1 - (1-p_c)p_m))$ for $v$ words of each topic."""
    return 1 / (words * (1 - (1 - sandbox.unchanged) * sandbox.masked))


def pairs(labels: Array, *, own: bool) -> tuple[Array, Array]:
    """Return masks of the pairs of words of one topic and of two; with `own` a word and itself are a pair."""
    same = labels[:, None] == labels
    return same & (own | ~np.eye(len(labels), dtype=bool)), ~same


def gap(matrix: Array, labels: Array, *, own: bool = True) -> float:
    """Return the mean of a matrix [word, word] over pairs of one topic minus that over pairs of two."""
    same, other = pairs(labels, own=own)
    return float(matrix[same].mean() - matrix[other].mean())


def ranked(matrix: Array, labels: Array) -> float:
    """Return how often a pair of different words of one topic has a larger value than a pair of two topics."""
    same, other = (np.sort(matrix[mask]) for mask in pairs(labels, own=False))
    return float(np.searchsorted(other, same).mean() / len(other))


def distances_from_optimum(shuffled: bool) -> list[float]:
    """Return the errors of the closed form against the exact optimum, for random models."""
    rng, errors = np.random.default_rng(7), []
    for _ in range(RANDOM_MODELS):
        topics, words = int(rng.integers(3, 9)), int(rng.integers(2, 9))
        tau = int(rng.integers(1, topics))
        p_m, p_c, p_r = (float(rng.uniform(low, high)) for low, high in ((0.1, 0.5), (0.0, 0.4), (0.0, 0.4)))
        model = Topics(topics=topics, words=words, tau=tau, masked=p_m, unchanged=p_c, replaced=p_r)
        labels = labels_of(topics * words, topics, shuffled)
        best = model.best_linear(ridge=RIDGE)[:, 1:]
        errors.append(abs(gap(best, labels) - closed_form(model, words)))
    return errors


def matrices(nets: Trained, part: str) -> list[Array]:
    """Return the value matrix, or the Gram matrix of embeddings, of every trained head [answer, word]."""
    arrays = [run.weights.arrays for run in nets.runs]
    if part == "embedding":
        return [(own[EMBED] @ own[EMBED].T)[2:, 2:] for own in arrays]  # without BOS and the mask
    return [own[VALUES][0].T[:, 2:] for own in arrays]


def compared(matrices: list[Array], labels: Array, exact: Array, goal: float, own: bool) -> JsonObject:
    """Return the gaps of matrices over the predicted one, and the part of their mean that is drawn, with its blocks."""
    mean: Array = np.mean(matrices, axis=0)
    halves: Array = np.where(np.tri(len(mean), k=-1, dtype=bool), mean, exact)
    gaps = [gap(matrix, labels, own=own) / goal for matrix in matrices]
    return {"gaps": gaps, "halves": halves[:DRAWN_WORDS, :DRAWN_WORDS], "blocks": blocks(mean, len(np.unique(labels)))}


def attended(nets: Trained, labels: Array) -> JsonObject:
    """Return attention to the same word, other words of its topic and of others [kind, seed, step], and all norms."""
    same, other = pairs(labels, own=False)
    sums = nets.curves("pairs")[:, :, :, 0, 1:, 1:]  # [seed, step, weights or pairs, word, word]
    parts = [sums[..., mask].sum(axis=-1) for mask in (np.eye(len(labels), dtype=bool), same, other)]
    attention = np.stack([part[..., 0] / part[..., 1] for part in parts])
    return {"steps": nets.steps, "attention": attention, "norms": np.moveaxis(nets.curves("norms"), -1, 0)}


def blocks(matrix: Array, topics: int) -> Array:
    """Return the mean of a matrix over the pairs of different words of every two topics, in the order of the words."""
    words = len(matrix) // topics
    off = np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix)
    return np.nanmean(off.reshape(topics, words, topics, words), axis=(1, 3))
