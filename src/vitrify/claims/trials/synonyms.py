"""Random hierarchies that are classified: how sensitive layers are to synonyms, and null hypotheses about it.

Null hypotheses rewrite accuracies [size, grammar, step] and sensitivities [size, grammar, height, layer] of the models
(v = n_c, m, L) in `subject.data["models"]`. Sizes are numbers of training sequences in units of P* = n_c m^L.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Floats
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.ladders import reached
from vitrify.claims.trials.trial import Trained
from vitrify.constructions.hierarchy import hierarchy_cnn
from vitrify.learn.measure import TEST_SEED
from vitrify.learn.resampling import moved
from vitrify.sandboxes.catalogue import Example, examples
from vitrify.sandboxes.hierarchy import HierarchySandbox
from vitrify.spec.grammars.families import random_hierarchy

Model: TypeAlias = tuple[int, int, int]  # v = n_c, m, L


def crossings(sizes: Sequence[float], curves: Array, level: float) -> Floats:
    """Return the sizes at which curves [size, …] first fall to a level; NaN where they never do."""
    flat = curves.reshape(len(curves), -1)
    at = np.reshape([reached(sizes, own, level) for own in flat.T], curves.shape[1:])
    return np.where(np.isfinite(at), at, np.nan)


def rescaled(sizes: Sequence[float], curves: Array, factor: float) -> Floats:
    """Return curves [size, …] at `factor` times each size, or at the smallest or largest size."""
    at, flat = np.log(sizes), curves.reshape(len(curves), -1)
    return np.stack([np.interp(at + np.log(factor), at, own) for own in flat.T], axis=1).reshape(curves.shape)


def diagonal(far: Array, up: int) -> Array:
    """Return the entries of [..., height, layer] at layer = height + `up`: [..., height]."""
    far = np.array(far)
    return np.diagonal(far[..., up : far.shape[-2] + up], axis1=-2, axis2=-1)


def synonym_moves(nets: Trained) -> Array:
    """Return the sensitivity of a CNN's layers to synonyms: [size, member, height, layer]."""
    box, family, shape = nets.trial.sandbox, nets.trial.family, nets.trial.shape
    net = family.architecture(box)

    def layers(arrays: Mapping[str, Array], row: Example) -> list[Array]:
        seen: dict[str, Array] = {}
        logits = family.logits(net, box, arrays, row, seen.__setitem__)
        return [*(seen[f"conv.{k}.hook_post"] for k in range(box.L)), logits]

    far = moved(box, layers)
    each = [far(dict(run.weights.arrays), at % shape[1]) for at, run in enumerate(nets.runs)]
    return np.array(each).reshape(*shape, *each[0].shape)


def built_moves(box: HierarchySandbox) -> tuple[Array, float]:
    """Return the sensitivity to synonyms of the net built for the first grammar, and its test error."""
    weights = hierarchy_cnn(random_hierarchy(box.v, box.m, box.s, box.L, seed=box.task, classes=box.roots))
    net, arrays = weights.architecture, {name: jnp.asarray(array) for name, array in weights.arrays.items()}
    channels = np.array([box.symbols.index(symbol) for symbol in net.symbols])
    one = replace(box, grammars=1)

    def layers(arrays: Mapping[str, Array], row: Example) -> list[Array]:
        seen: dict[str, Array] = {}
        inputs = jnp.swapaxes(jax.nn.one_hot(row.tokens, box.v)[..., channels], 1, 2)[:, :, None]
        logits = net.forward(arrays, inputs, record=seen.__setitem__)
        return [*(seen[f"conv.{k}.hook_post"] for k in range(box.L)), logits]

    row = examples(one, TEST_SEED, "test", 0, 512)
    names = np.array([box.answers.index(name) if name in box.answers else -1 for name in net.output.symbols])
    answers = names[np.asarray(layers(arrays, row)[-1].argmax(axis=-1))]
    return moved(one, layers)(arrays, 0), float((answers != np.asarray(row.targets[:, -1])).mean())


def _redrawn(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Iterator[tuple[Model, str, Array, Array]]:
    """Yield the models with their names, final accuracies and sensitivities of redrawn grammars."""
    for model, name in zip(subject.data["models"], subject.trials, strict=True):
        accuracy, moves = arrays[f"{name}/accuracy"][..., -1:], arrays[f"{name}/moves"]
        drawn = rng.integers(accuracy.shape[1], size=accuracy.shape[1])
        yield model, name, accuracy[:, drawn], moves[:, drawn]


def last_level(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the number of sequences that a model needs is that of the first, times its m."""
    null, ((_, m, L), _, first, _) = dict(arrays), next(_redrawn(subject, arrays, rng))
    for (_, own, levels), name, _, _ in _redrawn(subject, arrays, rng):
        drawn = first[:, rng.integers(first.shape[1], size=first.shape[1])]
        null[f"{name}/accuracy"] = rescaled(subject.data["times P*"], drawn, own ** (levels - 1) / m ** (L - 1))
    return null


def level_more(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which every net needs m times the sequences."""
    redrawn = _redrawn(subject, arrays, rng)
    return {
        **arrays,
        **{f"{name}/accuracy": rescaled(subject.data["times P*"], own, 1 / m) for (_, m, _), name, own, _ in redrawn},
    }


def gradual(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which layers h and h + 1 have equal shares in their loss of sensitivity to height h."""
    null = dict(arrays)
    for (_, _, L), name, _, moves in _redrawn(subject, arrays, rng):
        for h in range(L):
            moves[:, :, h, h : h + 2] = np.sqrt(moves[:, :, h, h : h + 2].prod(axis=-1, keepdims=True))
        null[f"{name}/moves"] = moves
    return null


def one_by_one(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which each layer loses its sensitivity with m times the sequences of the one below."""
    null = dict(arrays)
    for (_, m, L), name, _, moves in _redrawn(subject, arrays, rng):
        for h in range(1, L):
            moves[:, :, h, h + 1] = rescaled(subject.data["times P*"], moves[:, :, 0, 1], float(m) ** -h)
        null[f"{name}/moves"] = moves
    return null
