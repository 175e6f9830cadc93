r"""Topics of words: how value matrices, embeddings and attention treat words of the same and of other topics.

Measurements are arrays by name. Of the exact optimum: "optimum/exact", the gap at the documents' length, and, where
there is a closed form, "optimum/gaps", "optimum/c" and "optimum/words" of models. Of a trained matrix: "PART/gaps" and
"PART/ranked" [seed], and of the mean over seeds what is drawn. Of trained attention: "PART/attention" [seed, step,
kind], to the same word, other words of its topic and words of other topics, and "PART/norms" [seed, step, matrix].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import Trained, Trial, trained
from vitrify.learn.models.one_hot_head import EMBED, SCORES, VALUES, OneHotHeadFamily
from vitrify.learn.probes import between_symbols
from vitrify.learn.program import Probe
from vitrify.learn.recipe import Recipe
from vitrify.learn.stages import risen
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.corpus import Corpus
from vitrify.sandboxes.kit.masking import Masked
from vitrify.sandboxes.lda import LDA
from vitrify.sandboxes.topics import Topics

RIDGE = 1e-9
DRAWN_WORDS = 30  # of a matrix, in the figure
RANDOM_MODELS = 6  # whose optimum is compared with the closed form

Documents: TypeAlias = Topics | LDA | Corpus
Parts: TypeAlias = Mapping[str, tuple[int, int, float]]  # steps, batch and learning rate of each
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


def part_trial(sandbox: Masked, part: str, steps: int, batch: int, lr: float, seeds: Sequence[int]) -> Trial:
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
    return Trial(sandbox, family, recipe, seeds, probes=probes, first=first)


def _norms(net: object, arrays: Mapping[str, Array], row: object, seen: object) -> Array:
    del net, row, seen
    return jnp.stack([jnp.linalg.norm(arrays[name]) for name in (VALUES, *SCORES)])


def measure(subject: Subject) -> Measured:
    """Train the parts of a head on the documents of a subject, and measure its optimum with the part `values`."""
    arrays: dict[str, Array] = {}
    for part, nets in trained(subject).items():
        sandbox = nets.trial.sandbox
        labels = labels_of(len(sandbox.answers), sandbox.topics)
        if part in ("attention", "all"):
            own = attended(nets, labels)
        else:
            own = compared(matrices(nets, part), labels, sandbox)
        arrays |= {f"{part}/{name}": array for name, array in own.items()}
        if part == "values":
            arrays |= {f"optimum/{name}": array for name, array in _optimum(sandbox, labels).items()}
    return arrays


def labels_of(words: int, topics: int) -> Array:
    """Return the topic of every word."""
    return np.repeat(np.arange(topics), words // topics)


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


def _optimum(sandbox: Documents, labels: Array) -> dict[str, Array]:
    """Return the exact gap of some documents and, in a long document, those of their model and of random ones."""
    real, rng = isinstance(sandbox, Corpus), np.random.default_rng(7)
    exact = np.array(gap(sandbox.best_linear(sandbox.length)[:, 1:], labels, own=not real))
    if real:
        return {"exact": exact}
    models: list[tuple[Masked, int, int]] = [(sandbox, sandbox.topics, len(labels) // sandbox.topics)]
    for _ in range(RANDOM_MODELS if isinstance(sandbox, Topics) else 0):
        topics, words = int(rng.integers(3, 9)), int(rng.integers(2, 9))
        tau = int(rng.integers(1, topics))
        p_m, p_c, p_r = (float(rng.uniform(low, high)) for low, high in ((0.1, 0.5), (0.0, 0.4), (0.0, 0.4)))
        model = Topics(topics=topics, words=words, tau=tau, masked=p_m, unchanged=p_c, replaced=p_r)
        models.append((model, topics, words))
    gaps = [gap(model.best_linear(ridge=RIDGE)[:, 1:], labels_of(t * v, t)) for model, t, v in models]
    closed = [closed_form(model, words) for model, _, words in models]
    return {"exact": exact, "gaps": np.array(gaps), "c": np.array(closed), "words": np.array([v for *_, v in models])}


def matrices(nets: Trained, part: str) -> list[Array]:
    """Return the value matrix, or the Gram matrix of embeddings, of every trained head [answer, word]."""
    arrays = [run.weights.arrays for run in nets.runs]
    if part == "embedding":
        return [(own[EMBED] @ own[EMBED].T)[2:, 2:] for own in arrays]  # without BOS and the mask
    return [own[VALUES][0].T[:, 2:] for own in arrays]


def compared(matrices: list[Array], labels: Array, sandbox: Documents) -> dict[str, Array]:
    """Return gaps and ranks of matrices, and the part of their mean that is drawn, with its blocks."""
    mean: Array = np.mean(matrices, axis=0)
    exact = sandbox.best_linear(sandbox.length)[:, 1:]
    halves: Array = np.where(np.tri(len(mean), k=-1, dtype=bool), mean, exact)
    gaps = [gap(matrix, labels, own=not isinstance(sandbox, Corpus)) for matrix in matrices]
    numbers = {"gaps": np.array(gaps), "ranked": np.array([ranked(matrix, labels) for matrix in matrices])}
    drawn = {"halves": halves[:DRAWN_WORDS, :DRAWN_WORDS], "blocks": blocks(mean, len(np.unique(labels)))}
    return {**numbers, **{name: array.astype(np.float32) for name, array in drawn.items()}}


def attended(nets: Trained, labels: Array) -> dict[str, Array]:
    """Return attention to the same word, other words of its topic and of others [seed, step, kind], and all norms."""
    same, other = pairs(labels, own=False)
    sums = nets.curves("pairs")[:, :, :, 0, 1:, 1:]  # [seed, step, weights or pairs, word, word]
    parts = [sums[..., mask].sum(axis=-1) for mask in (np.eye(len(labels), dtype=bool), same, other)]
    return {
        "attention": np.stack([part[..., 0] / part[..., 1] for part in parts], axis=-1),
        "norms": nets.curves("norms"),
    }


def paced(trained: Mapping[str, Any], growth: float) -> dict[str, Array]:
    """Return how attention goes with the norm of the value matrix, by seed.

    `grown`: that the norm becomes `growth` times the initial one; `step` and `early`: when, and the attention to a
    topic's words over that to others then; `end`: this ratio at the end; `later`: the step from which on its logarithm
    has risen half way, over that of the norm.
    """
    norm, ratio = trained["norms"][0], np.divide(*trained["attention"][1:])
    grown = norm >= growth * norm[:, :1]
    at, half = grown.argmax(axis=1), [risen(trained["steps"], curves, 1 / 2) for curves in (norm, np.log(ratio))]
    early = ratio[np.arange(len(ratio)), at]
    numbers = {"step": np.array(trained["steps"])[at], "early": early, "end": ratio[:, -1], "later": half[1] / half[0]}
    return {"grown": grown.any(axis=1), **numbers}


def blocks(matrix: Array, topics: int) -> Array:
    """Return the mean of a matrix over the pairs of different words of every two topics, in the order of the words."""
    words = len(matrix) // topics
    off = np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix)
    return np.nanmean(off.reshape(topics, words, topics, words), axis=(1, 3))
