r"""The label of a phrase can be read linearly at its end, in few dimensions, from the layer on that writes it.

Statement: in the transformers built from a grammar, the residual stream at the last word of a phrase of level $h$ holds
its label in a subspace of one dimension per label, or of two dimensions in all (points of a circle), from which a
linear map reads it without an error, with a lead of 1 over other labels, or of $1 - \cos(2\pi/N)$ for $N$ of them on a
circle; where every pair of symbols is a right side, linear probes do not read it before the MLP that writes it.
Why: states are sums of unit vectors or points in convex position; the label is a function of pairs of labels below,
which is not linear in them.
Checked: at every phrase of random sentences of Random Hierarchy Models in which every pair of symbols is a right side:
the lead in the named subspace; and, after each half layer, how many phrases of unseen sentences fitted thresholds
separate, with which margin and in how few dimensions, with shuffled labels and the last word alone as controls.
Source: Nandakumar et al. 2026, arXiv 2606.17522 [A]; codes and probes are our own.
Saboteur: the units that write the labels of level 1 are cut.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.evidence import Evidence
from vitrify.certify.probes import Probe, by_layer, held_out, streams
from vitrify.claims._nets import with_sizes
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.grammar_shapes import grammar_shapes
from vitrify.constructions.grammar_unambiguous import unambiguous
from vitrify.kit import assemble
from vitrify.net.run import batch_of, encode
from vitrify.net.spaces import Circle, MultiHot
from vitrify.net.weights import Weights
from vitrify.spec.grammar import END, Grammar
from vitrify.spec.grammars import random_hierarchy

Ids = NDArray[np.int64]
SENTENCES = 160
DIGITS = 9  # to which leads are compared


def subjects() -> Iterator[Subject]:
    """Hierarchies built with labels on circles and on axes, in as many blocks as levels or in two passes."""
    five, four = (random_hierarchy(n, n, 2, 2, seed=1, classes=n) for n in (5, 4))
    yield Subject("plane, softmax", five, assemble(unambiguous(five, code="circle")))
    yield Subject("unambiguous, hard", four, assemble(unambiguous(four, attention="hard")))
    yield Subject("shapes, sparsemax", four, assemble(grammar_shapes(four, attention="sparsemax")))


@dataclass(frozen=True)
class Phrases:
    """The phrases of one level in all sentences: the sentence of each, its last position, its label."""

    sentence: Ids
    end: Ids
    label: Ids
    names: tuple[str, ...]


def phrases(grammar: Grammar, sentences: list[tuple[str, ...]], level: int) -> Phrases:
    """Every phrase of a level of a grammar with one shape and one label per phrase."""
    shapes = grammar.levelled().with_end().shapes()
    nodes = shapes.nodes(0)[level][:-1]  # the last one is the end of the sentence
    found = []
    for number, sentence in enumerate(sentences):
        labels = shapes.labels(0, (*sentence, END))[level]
        for node, own in zip(nodes, labels, strict=False):
            (label,) = own
            found.append((number, node.last, label))
    sentence_of, end, label_of = np.array(found).T
    kinds, places = np.unique(label_of, return_inverse=True)
    return Phrases(sentence_of, end, places, tuple(shapes.levels.symbols[level][kind] for kind in kinds.tolist()))


def check(subject: Subject) -> Evidence:
    """Leads in the named subspaces, and probes after each half layer, level by level."""
    start = time.perf_counter()
    grammar, weights = subject.spec, subject.weights
    every = grammar.sentences()
    sentences = [every[i] for i in np.random.default_rng(0).permutation(len(every))[:SENTENCES]]
    tokens, _ = batch_of(weights.architecture, [encode(weights.architecture, s) for s in sentences])
    layers = streams(weights, tokens)
    train = np.arange(len(sentences)) % 2 == 0
    declared: dict[str, Any] = {}
    measured: dict[str, Any] = {}
    cases = 0
    for level in (1, 2):
        own = phrases(grammar, sentences, level)
        promised, found = _level(weights, layers, tokens, own, train[own.sentence], level)
        declared |= {f"level {level}: {name}": value for name, value in promised.items()}
        measured |= {f"level {level}: {name}": value for name, value in found.items()}
        cases += len(own.label)
    evidence = Evidence(
        verdict="holds",
        method="sampled",
        domain=f"every phrase of {len(sentences)} sentences; probes are fitted on half of them, judged on the others",
        cases=cases,
        seed=0,
        seconds=time.perf_counter() - start,
    )
    return with_sizes(evidence, declared, measured)


def _level(
    weights: Weights, layers: dict[str, Any], tokens: Ids, own: Phrases, train: Any, level: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is promised and what is found of the labels of one level."""
    space = weights.labels.space(f"complete {level}.0")
    kind, kinds = space.kind, len(own.names)
    assert isinstance(kind, Circle | MultiHot)
    names = list(layers)
    written = min(label.born for label in weights.labels.spaces if label.name.startswith(f"complete {level}.0"))
    vectors = {name: layers[name][own.sentence, own.end] for name in names}
    probes = by_layer(vectors, own.label, train)
    codes = kind.codes if isinstance(kind, Circle) else np.eye(kinds)
    codes = codes[[kind.values.index(name) for name in own.names]]
    held = vectors[names[space.born]][:, list(space.dims)] @ codes.T
    mine = np.eye(kinds, dtype=bool)[own.label]
    lead = np.where(mine, held, -np.inf).max(axis=1) - np.where(mine, -np.inf, held).max(axis=1)
    words = np.eye(len(weights.architecture.inputs))[tokens[own.sentence, own.end]]
    promised = {
        "dimensions of its space": 2 if isinstance(kind, Circle) else kinds,
        "least lead over another label": round(
            1 - float(np.cos(2 * np.pi / kinds)) if isinstance(kind, Circle) else 1.0, DIGITS
        ),
        f"least share separated from {names[written]} on": 1.0,
        "readable before": False,
    }
    found = {
        "dimensions of its space": len(space.dims),
        "least lead over another label": round(float(lead.min()), DIGITS),
        f"least share separated from {names[written]} on": min(probes[name].separated for name in names[written:]),
        "readable before": max(probes[name].separated for name in names[:written]) == 1.0,
        "labels": kinds,
        "accuracy of the last word alone": held_out(words, own.label, train),
        "by layer": {name: _told(probe) for name, probe in probes.items()},
    }
    return promised, found


def _told(probe: Probe) -> dict[str, float]:
    return {name: round(value, 4) for name, value in vars(probe).items()}


def sabotage(subject: Subject) -> Subject:
    """The units that write the labels of level 1, as bits or as counts, are cut."""
    weights = subject.weights
    for units in weights.labels.units:
        if any(name.startswith("complete 1.") for name in units.writes):
            name = f"blocks.{units.block}.mlp.W_out"
            array = weights.arrays[name].copy()
            array[units.start : units.stop] = 0.0
            weights = weights.with_array(name, array)
    return replace(subject, weights=weights)


CLAIM = Claim(row="R3", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
